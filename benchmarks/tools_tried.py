"""Try other feature selectors on small data and print what each of them did: the source of the README's comparison.

    python benchmarks/tools_tried.py                     every tool; environments in a temporary folder
    python benchmarks/tools_tried.py boruta adelie       some tools
    python benchmarks/tools_tried.py --folder DIR        keep the environments in DIR and use them again

Each tool is installed from PyPI into an environment of its own and runs in a process of its own, on one core, within a
time limit. The trials:

dense     200 samples x 60 features, three planted groups of four features
sparse    the same size as a SciPy CSC matrix
wide      100 samples x 20,000 dense features; memory is compared with that of a matrix of all pairs (3.2 GB)
sparse-wide  300 samples x 100,000 sparse features; memory is compared with that of a dense copy (240 MB)
mapped    500 samples x 50,000 features in a memory-mapped file (200 MB); memory is compared with that of a copy

Memory is the largest resident memory that no file backs, less that of the process before the call.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
SEED = 0
SHAPES = {
    "dense": (200, 60),
    "sparse": (200, 60),
    "wide": (100, 20_000),
    "sparse-wide": (300, 100_000),
    "mapped": (500, 50_000),
}
N_GROUPS, GROUP_SIZE = 3, 4
SECONDS = 300
UNFINISHED = f"not finished after {SECONDS} s"
BYTES = 4e9  # more than any trial needs without a matrix of all pairs


@dataclass(frozen=True)
class Tool:
    """A tool: what pip installs, and facts that no trial shows."""

    name: str
    packages: tuple[str, ...]
    note: str = ""


TOOLS = (
    Tool("coterie", ("{root}",), "cluster: tests/cluster run it on Dask workers."),
    Tool("feature-engine", ("feature-engine",)),
    Tool("scikit-learn", ("scikit-learn", "pandas"), "RFE with a linear SVM."),
    Tool("mrmr", ("mrmr_selection",), "Variants for polars, BigQuery and Spark are documented; only pandas was tried."),
    Tool("boruta", ("boruta", "pandas"), "Per-feature tests with a correction for their number; FDR is not stated."),
    Tool("boruta-shap", ("BorutaShap", "scipy<1.12", "numpy<2"), "Imports scipy.stats.binom_test, removed in SciPy 1.12."),
    Tool("arfs", ("arfs", "pandas<3"), "Leshy, its Boruta; fails with pandas 3."),
    Tool("trexselector", ("trexselector",), "tFDR=0.1; with more than 1,000 features, K=4 experiments instead of 20."),
    Tool("pysusie", ("pysusie",), "A port of susieR."),
    Tool("adelie", ("adelie",), "Group elastic net; the groups are an input."),
    Tool("knockpy", ("knockpy",), "Gaussian knockoffs, FDR 0.2."),
    Tool("stabl", (), "Not tried: not on PyPI (the package of that name there is an unrelated project)."),
)


# Data


def data(trial: str, folder: Path) -> tuple[Any, Any, list[list[int]]]:
    """Features, a numeric target, and the planted groups."""
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(SEED)
    n_samples, n_features = SHAPES[trial]
    groups = [list(range(GROUP_SIZE * k, GROUP_SIZE * (k + 1))) for k in range(N_GROUPS)]
    if trial in {"sparse", "sparse-wide"}:
        X = sparse.random(n_samples, n_features, density=0.2 if trial == "sparse" else 0.001, format="csc", random_state=rng)
        latent = (rng.random((n_samples, N_GROUPS)) < 0.3).astype(float)
        planted = np.repeat(latent, GROUP_SIZE, axis=1) * (rng.random((n_samples, N_GROUPS * GROUP_SIZE)) < 0.95)
        X = sparse.csc_matrix(sparse.hstack([planted, X[:, N_GROUPS * GROUP_SIZE :]]))
    else:
        latent = rng.standard_normal((n_samples, N_GROUPS))
        if trial == "mapped":
            X = np.memmap(folder / "mapped.bin", dtype=np.float64, mode="w+", shape=(n_samples, n_features), order="F")
            for start in range(0, n_features, 5000):
                X[:, start : start + 5000] = rng.standard_normal((n_samples, 5000))
        else:
            X = np.asfortranarray(rng.standard_normal((n_samples, n_features)))
        noise = 0.3 * rng.standard_normal((n_samples, N_GROUPS * GROUP_SIZE))
        X[:, : N_GROUPS * GROUP_SIZE] = np.repeat(latent, GROUP_SIZE, axis=1) + noise
        if trial == "mapped":
            X.flush()
            X = np.memmap(folder / "mapped.bin", dtype=np.float64, mode="r", shape=(n_samples, n_features), order="F")
    target = latent @ np.array([1.5, -1.0, 1.0]) + 0.5 * rng.standard_normal(n_samples)
    return X, target, groups


# Tools: each returns the selected features and, if the tool has them, groups, confidences, a certificate, a guarantee.


def run_coterie(X: Any, y: Any) -> dict[str, Any]:
    """Group discovery with confidences."""
    from coterie import GroupDiscoveryRegressor, group_confidence

    model = GroupDiscoveryRegressor(6, C=1.0).fit(X, y)
    few = X.shape[1] <= 1000
    confidence = group_confidence(model, X, y, n_pairs=10, n_permutations=1, random_state=0).confidence if few else None
    return {
        "selected": model.support_features_,
        "groups": [group.members for group in model.groups_],
        "certificate": model.dual_gap_,
        "confidence": confidence,
    }


def _frame(X: Any) -> Any:
    import pandas as pd
    from scipy import sparse

    if sparse.issparse(X):
        return pd.DataFrame.sparse.from_spmatrix(X, columns=[str(j) for j in range(X.shape[1])])
    return pd.DataFrame(X, columns=[str(j) for j in range(X.shape[1])])


def run_feature_engine(X: Any, y: Any) -> dict[str, Any]:
    """SmartCorrelatedSelection, which does not use y."""
    from feature_engine.selection import SmartCorrelatedSelection

    frame = _frame(X)
    tool = SmartCorrelatedSelection(threshold=0.7, selection_method="variance").fit(frame)
    kept = [int(name) for name in frame.columns if name not in set(tool.features_to_drop_)]
    groups = [[int(kept), *map(int, others)] for kept, others in tool.correlated_feature_dict_.items()]
    return {"selected": kept, "groups": groups}


def run_scikit_learn(X: Any, y: Any) -> dict[str, Any]:
    """RFE with LinearSVC."""
    import numpy as np
    from sklearn.feature_selection import RFE
    from sklearn.svm import LinearSVC

    tool = RFE(LinearSVC(), n_features_to_select=6, step=0.5).fit(X, y > 0)
    return {"selected": np.flatnonzero(tool.support_)}


def run_mrmr(X: Any, y: Any) -> dict[str, Any]:
    """mRMR for regression."""
    import pandas as pd
    from mrmr import mrmr_regression

    names = mrmr_regression(X=_frame(X), y=pd.Series(y), K=6, n_jobs=1, show_progress=False)
    return {"selected": [int(name) for name in names]}


def run_boruta(X: Any, y: Any) -> dict[str, Any]:
    """Boruta with a random forest."""
    import numpy as np
    from boruta import BorutaPy
    from sklearn.ensemble import RandomForestRegressor

    few = X.shape[1] <= 1000
    forest = RandomForestRegressor(max_depth=5, n_jobs=1, random_state=0)
    tool = BorutaPy(forest, n_estimators=100 if few else 10, max_iter=50 if few else 4, random_state=0).fit(X, y)
    return {"selected": np.flatnonzero(tool.support_), "confidence": tool.ranking_}


def run_boruta_shap(X: Any, y: Any) -> dict[str, Any]:
    """BorutaShap with its own forest."""
    from BorutaShap import BorutaShap

    frame = _frame(X)
    tool = BorutaShap(importance_measure="shap", classification=False)
    tool.fit(X=frame, y=y, n_trials=20 if X.shape[1] <= 1000 else 2, random_state=0, verbose=False)
    return {"selected": [int(name) for name in tool.Subset().columns], "confidence": tool.hits}


def run_arfs(X: Any, y: Any) -> dict[str, Any]:
    """Leshy with LightGBM."""
    import pandas as pd
    from arfs.feature_selection.allrelevant import Leshy
    from lightgbm import LGBMRegressor

    tool = Leshy(LGBMRegressor(n_jobs=1, verbose=-1, random_state=0), n_estimators=50, max_iter=20, random_state=0)
    tool.fit(_frame(X), pd.Series(y))
    return {"selected": [int(name) for name in tool.get_feature_names_out()], "confidence": tool.ranking_}


def run_trexselector(X: Any, y: Any) -> dict[str, Any]:
    """The T-Rex selector at a target FDR of 0.1."""
    import numpy as np
    from trexselector import trex

    # Memory is proportional to the number of experiments, K. Fewer show whether a matrix of all pairs is formed.
    found = trex(X, y, tFDR=0.1, K=20 if X.shape[1] <= 1000 else 4, seed=0, verbose=False)
    guarantee = "FDR at most 0.1 (tFDR)"
    return {"selected": np.flatnonzero(found["selected_var"]), "confidence": found.get("Phi_prime"), "guarantee": guarantee}


def run_pysusie(X: Any, y: Any) -> dict[str, Any]:
    """SuSiE with ten effects."""
    from pysusie import susie

    found = susie(X, y, L=10, coverage=0.95)
    sets = found["sets"]["cs"] or {}
    groups = [list(members) for members in (sets.values() if isinstance(sets, dict) else sets)]
    best = [max(members, key=lambda j: found["pip"][j]) for members in groups]
    return {"selected": best, "groups": groups, "confidence": found["pip"], "guarantee": "95 % credible sets"}


def run_adelie(X: Any, y: Any) -> dict[str, Any]:
    """The lasso path of grpnet, first model with six features or more."""
    import adelie
    import numpy as np
    from scipy import sparse

    matrix = adelie.matrix.sparse(X) if sparse.issparse(X) else X
    state = adelie.grpnet(matrix, adelie.glm.gaussian(y=y), max_active_size=30, progress_bar=False)
    rows = sparse.csr_matrix(state.betas)
    sizes = np.diff(rows.indptr)
    row = int(np.argmax(sizes >= 6)) if (sizes >= 6).any() else len(sizes) - 1
    return {"selected": rows.indices[rows.indptr[row] : rows.indptr[row + 1]]}


def run_knockpy(X: Any, y: Any) -> dict[str, Any]:
    """Gaussian knockoffs with lasso statistics at a level of 0.2."""
    import numpy as np
    from knockpy import KnockoffFilter

    np.random.seed(0)  # noqa: NPY002 - knockpy draws from the global state
    tool = KnockoffFilter(ksampler="gaussian", fstat="lasso")
    chosen = tool.forward(X=X, y=y, fdr=0.2)
    return {"selected": np.flatnonzero(chosen), "guarantee": "FDR at most 0.2 (fdr)"}


# One trial in the tool's own environment


def _anonymous() -> int:
    """Resident memory of this process that no file backs, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def trial(tool: str, name: str) -> dict[str, Any]:
    """Run one trial in this process."""
    import numpy as np

    runner: Callable[[Any, Any], dict[str, Any]] = globals()[f"run_{tool.replace('-', '_')}"]
    with tempfile.TemporaryDirectory() as folder:
        X, y, groups = data(name, Path(folder))
        before, largest, done = _anonymous(), 0, threading.Event()

        def watch() -> None:
            nonlocal largest
            while not done.wait(0.02):
                largest = max(largest, _anonymous())
                if largest - before > BYTES:
                    print(f"more than {BYTES / 1e9:g} GB of memory", file=sys.stderr, flush=True)
                    os._exit(1)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        began = time.perf_counter()
        try:
            found = runner(X, y)
        finally:
            done.set()
            watcher.join()
    selected = [int(j) for j in found["selected"]]
    members = [set(map(int, group)) for group in found.get("groups") or []]
    confidence = found.get("confidence")
    certificate = found.get("certificate")
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "megabytes": round(max(0, largest - before) / 1e6),
        "selected": len(selected),
        "hit": sum(any(j in group for j in selected) for group in groups),
        "whole": sum(any(set(group) <= found for found in members) for group in groups) if members else None,
        "confidence": None if confidence is None else int(np.size(confidence)),
        "certificate": None if certificate is None else float(certificate),
        "guarantee": found.get("guarantee"),
    }


# All trials


def python_of(tool: Tool, folder: Path) -> tuple[Path | None, str]:
    """Return the interpreter of the tool's environment, or None and the reason."""
    home = folder / tool.name
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        words = [str(python), "-m", "pip", "install", "--quiet", *(p.format(root=HERE.parents[1]) for p in tool.packages)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            return None, done.stderr.strip().splitlines()[-1][:200]
        (home / "ready").touch()
    return python, ""


def outcome(tool: Tool, name: str, python: Path) -> dict[str, Any]:
    """Run one trial in the tool's environment: its result, or the reason why there is none."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "COTERIE")}
    words = [str(python), str(HERE), "--trial", tool.name, name]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": SECONDS}
    try:
        done = subprocess.run(words, env=os.environ | threads, cwd=tempfile.gettempdir(), check=False, **options)
    except subprocess.TimeoutExpired:
        return {"reason": UNFINISHED}
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        lines = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)] or lines
        return {"reason": (lines[-1] if lines else f"ended with code {done.returncode}")[:200]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def version(tool: Tool, python: Path) -> str:
    """Return the installed version of the tool's first package."""
    package = tool.packages[0].format(root="coterie")
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def rows(results: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (column of the README's table, what was seen) for one tool."""

    def seen(name: str, words: Callable[[dict[str, Any]], str]) -> str:
        result = results[name]
        if "reason" not in result:
            return words(result)
        return f"{'undecided' if result['reason'] == UNFINISHED else 'no'}: {result['reason']}"

    def found(result: dict[str, Any]) -> str:
        return f"{result['selected']} features, {result['hit']} of {N_GROUPS} planted groups hit, {result['seconds']} s"

    def against(limit: float, what: str) -> Callable[[dict[str, Any]], str]:
        def words(result: dict[str, Any]) -> str:
            answer = "yes" if result["megabytes"] < limit / 2e6 else "no"
            return f"{answer}: {result['megabytes']} MB ({what}: {limit / 1e6:.0f} MB), {result['seconds']} s"

        return words

    dense = results["dense"]
    none = "reason" in dense
    whole = None if none else dense["whole"]
    n_pairs = SHAPES["wide"][1] ** 2
    return [
        ("runs", seen("dense", found)),
        ("groups", "?" if none else "no" if whole is None else f"yes: {whole} of {N_GROUPS} planted groups whole"),
        ("no m x m matrix", seen("wide", against(8.0 * n_pairs, "all pairs"))),
        ("sparse", seen("sparse", lambda result: f"yes: {found(result)}")),
        ("sparse stays sparse", seen("sparse-wide", against(8.0 * 300 * 100_000, "dense copy"))),
        ("certified", "?" if none else "no" if dense["certificate"] is None else f"gap {dense['certificate']:.1e}"),
        ("confidence", "?" if none else "no" if dense["confidence"] is None else f"{dense['confidence']} numbers"),
        ("error rate", "?" if none else dense["guarantee"] or "no"),
        ("out of core", seen("mapped", against(8.0 * 500 * 50_000, "copy"))),
    ]


def main() -> None:
    """Run the trials that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tools", nargs="*", help="names of tools; all by default")
    parser.add_argument("--folder", type=Path, help="folder of the environments")
    parser.add_argument("--trial", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trial:
        print(json.dumps(trial(*options.trial)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        print("| tool | version | column | tried |\n|---|---|---|---|")
        for tool in TOOLS:
            if options.tools and tool.name not in options.tools:
                continue
            python, reason = python_of(tool, folder) if tool.packages else (None, tool.note)
            if python is None:
                print(f"| {tool.name} | – | all | {reason} |", flush=True)
                continue
            number = version(tool, python)
            results = {name: outcome(tool, name, python) for name in SHAPES}
            for column, words in rows(results):
                print(f"| {tool.name} | {number} | {column} | {words} |", flush=True)
            if tool.note:
                print(f"| {tool.name} | {number} | note | {tool.note} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
