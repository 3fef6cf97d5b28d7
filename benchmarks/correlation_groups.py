"""CorrelationGroups compared with feature-engine's SmartCorrelatedSelection: agreement of the groups, time and memory.

The groups can only be compared if they depend neither on the order of the columns nor on the choice of a representative. This
holds in connected components of the graph of strong pairs in which every pair is strong (cliques). In other components
(chains), a feature can go to either neighbour. Times are processor times of a fit in a fresh process, which is stopped after
``--limit`` seconds or beyond ``MAX_GB`` of memory. Requires feature-engine, which is not an extra of Coterie.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from _record import source_digest, write_results
from _tables import print_table
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn import datasets

from coterie import CorrelationGroups

THRESHOLD = 0.8
MAX_GB = 8.0
LIMIT = 120.0
SIZES: dict[str, tuple[int, ...]] = {
    "dense": (1_000, 2_000, 4_000, 8_000, 20_000, 50_000, 100_000),
    "holes": (1_000, 2_000, 4_000, 8_000, 20_000),
    "sparse": (2_000, 4_000, 8_000, 50_000, 200_000, 500_000),
}
# Largest ratio of wall time to processor time of a fit, for busy machines.
MAX_WALL_RATIO = 20.0


SAME = (
    *("well-defined", "found by feature-engine", "found by Coterie", "other groups, feature-engine", "other groups, Coterie"),
    *("strong pairs left, feature-engine", "strong pairs left, Coterie"),
)


def blocks(n_samples: int, n_features: int, seed: int) -> np.ndarray:
    """Return groups of five features with correlations of about 0.94 within and about 0 between groups."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_samples, n_features // 5))
    return np.repeat(factors, 5, axis=1) + 0.25 * rng.standard_normal((n_samples, 5 * (n_features // 5)))


def words(n_samples: int, n_features: int, seed: int) -> sparse.csc_array:
    """Return word counts with about ten nonzeros per column; every fifth word is a copy of the one before it."""
    rng = np.random.default_rng(seed)
    counts = 3 + rng.geometric(0.1, n_features)
    columns = np.repeat(np.arange(n_features), counts)
    values = rng.integers(1, 4, len(columns)).astype(np.float64)
    X = sparse.csc_array((values, (rng.integers(0, n_samples, len(columns)), columns)), shape=(n_samples, n_features))
    source = np.arange(n_features)
    source[4::5] -= 1
    return sparse.csc_array(X[:, source])


def with_holes(X: np.ndarray, share: float, seed: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def cliques(X: pd.DataFrame) -> list[set[str]]:
    """Return the connected components of the graph of strong pairs in which every pair is strong, from two features."""
    strong = X.corr().abs().fillna(0.0).to_numpy() > THRESHOLD
    labels = connected_components(sparse.csr_array(strong), directed=False)[1]
    parts = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return [set(X.columns[part]) for part in parts if len(part) > 1 and strong[np.ix_(part, part)].all()]


def same_groups(seed: int) -> list[dict[str, Any]]:
    """Return one row per table: the number of well-defined groups, and how many of them each tool finds."""
    from feature_engine.selection import SmartCorrelatedSelection

    tables: dict[str, pd.DataFrame] = {
        "blocks 500 x 1,000": pd.DataFrame(blocks(500, 1_000, seed)),
        "the same, 10 % missing": pd.DataFrame(with_holes(blocks(500, 1_000, seed), 0.1, seed)),
        "breast cancer 569 x 30": pd.DataFrame(datasets.load_breast_cancer().data),
        "digits 1,797 x 64": pd.DataFrame(datasets.load_digits().data),
        "wine 178 x 13": pd.DataFrame(datasets.load_wine().data),
        "diabetes 442 x 10": pd.DataFrame(datasets.load_diabetes().data),
    }
    rows = []
    for name, X in tables.items():
        X.columns = [f"c{j}" for j in range(X.shape[1])]
        X["text"] = "word"  # both tools pass it through
        theirs = SmartCorrelatedSelection(threshold=THRESHOLD, selection_method="variance").fit(X)
        ours = CorrelationGroups(THRESHOLD, representative="variance", missing_values="ignore").fit(X)
        defined = cliques(X.drop(columns="text"))
        found = [list(map(set, one.correlated_feature_sets_)) for one in (theirs, ours)]
        n_right = [sum(group in own for group in defined) for own in found]
        chains = [len(own) - right for own, right in zip(found, n_right, strict=True)]
        strong = X[ours.get_feature_names_out()].drop(columns="text").corr().abs().to_numpy()
        left = X[theirs.get_feature_names_out()].drop(columns="text").corr().abs().to_numpy()
        over = [int((np.triu(matrix, 1) > THRESHOLD).sum()) for matrix in (left, strong)]
        if not all("text" in one.get_feature_names_out() for one in (theirs, ours)):
            raise AssertionError("The text column is missing from the output.")
        values = [len(defined), *n_right, *chains, *over]
        rows.append({"table": name, **dict(zip(SAME, values, strict=True))})
    return rows


def child(kind: str, tool: str, n_features: int, seed: int, limit: float) -> None:
    """Fit once and print time, memory and number of groups as JSON on the last line; runs in its own process."""
    max_memory = int(MAX_GB * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (max_memory, max_memory))
    X: Any = words(2_000, n_features, seed) if kind == "sparse" else blocks(500, n_features, seed)
    if kind == "holes":
        X = with_holes(X, 0.1, seed)
    if tool == "Coterie":
        CorrelationGroups(THRESHOLD, missing_values="ignore" if kind == "holes" else "raise").fit(X[:, :100])  # compile
        model: Any = CorrelationGroups(
            THRESHOLD, representative="variance", missing_values="ignore" if kind == "holes" else "raise", n_jobs=1
        )
    else:
        from feature_engine.selection import SmartCorrelatedSelection

        model = SmartCorrelatedSelection(threshold=THRESHOLD, selection_method="variance")
    start = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(start + limit) + 1, int(start + limit) + 10))
    if tool != "Coterie":  # feature-engine requires dense data frames
        X = pd.DataFrame(X.toarray() if sparse.issparse(X) else X)
        X.columns = [f"c{j}" for j in range(n_features)]
    model.fit(X)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "gb": peak, "groups": len(model.correlated_feature_sets_)}))


def run_child(kind: str, tool: str, n_features: int, seed: int, limit: float) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", kind, tool, str(n_features), str(seed), str(limit)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=MAX_WALL_RATIO * limit, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return {"end": f"over {limit:.0f} s"}
    if done.returncode:
        if done.returncode == -signal.SIGXCPU:
            return {"end": f"over {limit:.0f} s"}
        memory = "memory" in done.stderr.lower() or done.returncode < 0
        return {"end": f"over {MAX_GB:.0f} GB" if memory else done.stderr.strip().splitlines()[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def sizes(kind: str, every: tuple[int, ...], seed: int, limit: float) -> list[dict[str, Any]]:
    """Return one row per size, until both tools have exceeded a limit."""
    rows, ended = [], {"feature-engine": "", "Coterie": ""}
    for n_features in every:
        row: dict[str, Any] = {"data": kind, "features": f"{n_features:,}"}
        for tool, over in list(ended.items()):
            result = {"end": "–"} if over else run_child(kind, tool, n_features, seed, limit)
            ended[tool] = over or result.get("end", "")
            row[f"{tool}, s"] = result["end"] if "end" in result else f"{result['seconds']:.1f}"
            row[f"{tool}, GB"] = f"{result['gb']:.2f}" if "gb" in result else ""
            row[f"{tool}, groups"] = result.get("groups", "")
        rows.append(row)
        print("  " + "  ".join(str(cell) for cell in row.values()), flush=True)
        if all(ended.values()):
            break
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"time limit of a fit in seconds (default {LIMIT:.0f})")
    parser.add_argument("--only", choices=["same", *SIZES], default=None, help="part to run (default: all)")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, tool, n_features, seed, limit = options.child
        child(kind, tool, int(n_features), int(seed), float(limit))
        return
    options.source = source_digest()
    same = same_groups(options.seed) if options.only in (None, "same") else []
    if same:
        print_table("Agreement of the groups", same)
    rows = []
    for kind, every in SIZES.items():
        if options.only in (None, kind):
            rows += sizes(kind, every[:2] if options.quick else every, options.seed, options.limit)
    if rows:
        print_table("Time and memory", rows)
    name = "correlation_groups" if options.only is None else f"correlation_groups_{options.only}"
    write_results(name, options, same=same, sizes=rows)


if __name__ == "__main__":
    main()
