"""CorrelationGroups beside feature-engine's SmartCorrelatedSelection: the same groups where they are defined, time, memory.

The groups of the two can only be compared where neither the order of the columns nor the choice of a representative decides:
in connected parts of the graph of strong pairs in which every pair is strong (cliques). Everywhere else (chains) a feature can
go to one neighbour or the other. Times are those of the processor, of a fit in a fresh process, ended after ``--limit``
seconds or beyond ``MAX_GB`` of memory. feature-engine must be installed (it is none of Coterie's extras).
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
# How many times as long a fit may take by the clock, on a busy machine.
WALL = 20.0


SAME = (
    *("well-defined", "found by feature-engine", "found by Coterie", "other groups, feature-engine", "other groups, Coterie"),
    *("strong pairs left, feature-engine", "strong pairs left, Coterie"),
)


def blocks(n_samples: int, n_features: int, seed: int) -> np.ndarray:
    """Groups of five features with correlations of about 0.94, and none in between."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_samples, n_features // 5))
    return np.repeat(factors, 5, axis=1) + 0.25 * rng.standard_normal((n_samples, 5 * (n_features // 5)))


def words(n_samples: int, n_features: int, seed: int) -> sparse.csc_array:
    """Counts of words, some ten nonzeros a column, every fifth word a companion of the one before it."""
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
    """The connected parts of the graph of strong pairs in which every pair is strong; two features and more."""
    strong = X.corr().abs().fillna(0.0).to_numpy() > THRESHOLD
    labels = connected_components(sparse.csr_array(strong), directed=False)[1]
    parts = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return [set(X.columns[part]) for part in parts if len(part) > 1 and strong[np.ix_(part, part)].all()]


def same_groups(seed: int) -> list[dict[str, Any]]:
    """A row for each table: how many groups are well-defined, and how many of them each of the two finds."""
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
        X["text"] = "word"  # goes in as it is, with both
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
            raise AssertionError("the column of text is gone")
        values = [len(defined), *n_right, *chains, *over]
        rows.append({"table": name, **dict(zip(SAME, values, strict=True))})
    return rows


def child(kind: str, who: str, n_features: int, seed: int, limit: float) -> None:
    """One fit, in a process of its own: what it took, as JSON on the last line."""
    most = int(MAX_GB * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    X: Any = words(2_000, n_features, seed) if kind == "sparse" else blocks(500, n_features, seed)
    if kind == "holes":
        X = with_holes(X, 0.1, seed)
    if who == "Coterie":
        CorrelationGroups(THRESHOLD, missing_values="ignore" if kind == "holes" else "raise").fit(X[:, :100])  # compiled
        model: Any = CorrelationGroups(
            THRESHOLD, representative="variance", missing_values="ignore" if kind == "holes" else "raise", n_jobs=1
        )
    else:
        from feature_engine.selection import SmartCorrelatedSelection

        model = SmartCorrelatedSelection(threshold=THRESHOLD, selection_method="variance")
    start = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(start + limit) + 1, int(start + limit) + 10))
    if who != "Coterie":  # it takes data frames alone, and dense ones
        X = pd.DataFrame(X.toarray() if sparse.issparse(X) else X)
        X.columns = [f"c{j}" for j in range(n_features)]
    model.fit(X)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "gb": peak, "groups": len(model.correlated_feature_sets_)}))


def run_child(kind: str, who: str, n_features: int, seed: int, limit: float) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", kind, who, str(n_features), str(seed), str(limit)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WALL * limit, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {"end": f"over {limit:.0f} s"}
    if done.returncode:
        if done.returncode == -signal.SIGXCPU:
            return {"end": f"over {limit:.0f} s"}
        memory = "memory" in done.stderr.lower() or done.returncode < 0
        return {"end": f"over {MAX_GB:.0f} GB" if memory else done.stderr.strip().splitlines()[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def sizes(kind: str, every: tuple[int, ...], seed: int, limit: float) -> list[dict[str, Any]]:
    """A row for each size, until both have met their end."""
    rows, ended = [], {"feature-engine": "", "Coterie": ""}
    for n_features in every:
        row: dict[str, Any] = {"data": kind, "features": f"{n_features:,}"}
        for who, over in list(ended.items()):
            result = {"end": "–"} if over else run_child(kind, who, n_features, seed, limit)
            ended[who] = over or result.get("end", "")
            row[f"{who}, s"] = result["end"] if "end" in result else f"{result['seconds']:.1f}"
            row[f"{who}, GB"] = f"{result['gb']:.2f}" if "gb" in result else ""
            row[f"{who}, groups"] = result.get("groups", "")
        rows.append(row)
        print("  " + "  ".join(str(cell) for cell in row.values()), flush=True)
        if all(ended.values()):
            break
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of a fit (default {LIMIT:.0f})")
    parser.add_argument("--only", choices=["same", *SIZES], default=None, help="this part alone (default: all)")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, who, n_features, seed, limit = options.child
        child(kind, who, int(n_features), int(seed), float(limit))
        return
    options.source = source_digest()
    same = same_groups(options.seed) if options.only in (None, "same") else []
    if same:
        print_table("The same groups", same)
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
