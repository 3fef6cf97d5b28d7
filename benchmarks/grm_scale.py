"""Global redundancy minimisation over all features: certified gap, time and peak memory, compared with the paper's ALM.

d = 4,434 (GLIOMA), 54,051 (1000 Genomes, PLINK; requires the extra bench) and 1,000,000 (synthetic, 100 samples, planted
blocks), each with n_candidates=None. The ALM decomposes the d x d matrix, so it is compared on at most the 2,000 features
with the best scores.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from _fresh_process import run_in_child
from _models import warm_up
from _real import data_path, load
from _record import read_arguments, write_results
from _side_by_side import data_bytes
from _tables import print_table, verdict
from _timing import measure

from coterie import GlobalRedundancySelector
from coterie.filters import fisher_score

GOAL_GAP = 1e-4


def fit_all(X: Any, y: np.ndarray, score: str = "fisher", tol: float = GOAL_GAP, threads: int | None = None) -> Any:
    """Fit the exact problem of all features."""
    n_features = min(20, X.shape[1])
    return GlobalRedundancySelector(
        score, n_features, n_candidates=None, fdr=None, solution="weights", options={"tol": tol}, n_jobs=threads
    ).fit(X, y)


def fit_method(X: Any, y: np.ndarray, method: str, tol: float = GOAL_GAP) -> Any:
    return GlobalRedundancySelector(
        "fisher", 20, n_candidates=None, fdr=None, solution="weights", options={"method": method, "tol": tol}
    ).fit(X, y)


def genotypes() -> tuple[np.ndarray, np.ndarray] | None:
    """Return allele counts as bytes, and whether the phenotype is above its median; samples without one are omitted."""
    try:
        from bed_reader import open_bed
    except ImportError:
        print("The genotypes are skipped: bed-reader (extra bench) is not installed.")
        return None
    folder = data_path("plink_eur")
    with open_bed(folder / "EUR_subset.bed") as bed:
        X, samples = bed.read(dtype="int8"), list(bed.iid)
    lines = (folder / "EUR_subset.pheno.covars").read_text().splitlines()[1:]
    phenotype = {line.split()[1]: line.split()[2] for line in lines}
    values = np.array([float(v) if (v := phenotype.get(one, "NA")) != "NA" else np.nan for one in samples])
    known = np.isfinite(values)
    return np.asfortranarray(X[known]), (values[known] > np.median(values[known])).astype(np.int64)


def planted(n_samples: int, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 blocks of fifty features with correlation 0.81; the first twenty are shifted between the classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % 2
    X = np.empty((n_samples, n_features), dtype=np.float32, order="F")
    for first in range(0, n_features, 50):
        width = min(50, n_features - first)
        common, own = (rng.standard_normal((n_samples, k), dtype=np.float32) for k in (1, width))
        X[:, first : first + width] = np.float32(0.9) * common + np.float32(np.sqrt(0.19)) * own
    X[:, :1000] += np.float32(0.8) * y[:, None].astype(np.float32)
    return X, y


def scale_row(name: str, X: np.ndarray, y: np.ndarray, options: Any, score: str = "fisher") -> dict[str, Any]:
    fit = partial(fit_all, score=score, threads=options.threads)
    warm_up(fit, X)
    peak = run_in_child(fit, X, y)
    timing = measure(partial(fit, X, y), 1 if options.quick else min(options.repeats, 2))
    model = timing.result
    return {
        "data": name,
        "score": score,
        "samples": X.shape[0],
        "features": X.shape[1],
        "type": str(X.dtype),
        "gap": model.duality_gap_,
        "goal 1e-4": verdict(model.duality_gap_ <= GOAL_GAP),
        "rounds": model.n_iter_,
        "working set": model.working_set_size_,
        "weights > 0": int((model.refined_scores_ > 0).sum()),
        "best s": timing.best,
        "cores of other processes": timing.other_cores,
        "data MB": data_bytes(X) / 1e6,
        "peak MB": None if peak.peak_increase is None else peak.peak_increase / 1e6,
        "d x d MB": 8 * X.shape[1] ** 2 / 1e6,
    }


def alm_row(X: np.ndarray, y: np.ndarray, n_features: int) -> dict[str, Any]:
    """Compare both methods on the features with the best Fisher scores."""
    best = np.argsort(-fisher_score(X, y), kind="stable")[:n_features]
    X = np.asfortranarray(X[:, best])
    timings = {method: measure(partial(fit_method, X, y, method), 1) for method in ("working_set", "alm")}
    ours, theirs = timings["working_set"], timings["alm"]
    return {
        "features": n_features,
        "ours s": ours.best,
        "ALM s": theirs.best,
        "ours/ALM": ours.best / theirs.best,
        "gap ours": ours.result.duality_gap_,
        "gap ALM": theirs.result.duality_gap_,
        "ALM above ours": theirs.result.objective_ / ours.result.objective_ - 1.0,
    }


def main() -> None:
    options = read_arguments(__doc__, repeats=2)
    rows = [scale_row("GLIOMA", *load("glioma"), options)]
    known = genotypes()
    if known is not None and not options.quick:
        rows.append(scale_row("1000 Genomes", *known, options))
        rows.append(scale_row("1000 Genomes", *known, options, score="lgd"))
    rows.append(scale_row("planted blocks", *planted(100, 20_000 if options.quick else 1_000_000, options.seed), options))
    print_table("All features, tol = 1e-4", rows)
    X, y = load("glioma")
    compared = [alm_row(X, y, d) for d in ((200, 400) if options.quick else (500, 1000, 2000))]
    print_table("Comparison with the augmented Lagrangian method, GLIOMA, best features by Fisher score", compared)
    write_results("grm_scale", options, rows=rows, alm=compared)


if __name__ == "__main__":
    main()
