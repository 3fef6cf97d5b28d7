"""Growth of a validated fit with rounds, paths, classes, samples and features, and the speed-up of two threads over one.

Dense normal features with planted groups. Each row doubles or varies one quantity. Times are the best of some runs in turn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _record import read_arguments, write_results
from _tables import print_table
from _timing import measure

from coterie import GroupDiscoveryClassifierCV, group_confidence

BASE = {"samples": 100, "features": 5000, "classes": 2, "largest size": 40, "values of C": 4}
VARIED = {
    "samples": (100, 200, 400, 800),
    "features": (2500, 5000, 10_000, 20_000),
    "classes": (2, 4, 8),
    "largest size": (10, 20, 40, 80),
    "values of C": (2, 4, 8),
}


def make(case: dict[str, int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return correlated features and classes that depend on ten of them."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((case["samples"], 100))
    X = factors[:, rng.integers(0, 100, case["features"])] + rng.standard_normal((case["samples"], case["features"]))
    target = factors[:, :10].sum(axis=1) + 2.0 * rng.standard_normal(case["samples"])
    inner = np.quantile(target, np.linspace(0, 1, case["classes"] + 1)[1:-1])
    return X, np.digitize(target, inner)


def fit(case: dict[str, int], X: np.ndarray, y: np.ndarray, threads: int) -> Callable[[], Any]:
    """Return a fit with five folds and nested scores."""
    return lambda: GroupDiscoveryClassifierCV(
        case["largest size"], Cs=case["values of C"], nested=True, random_state=0, n_jobs=threads
    ).fit(X, y)


def main() -> None:
    options = read_arguments(__doc__)
    warnings.simplefilter("ignore")
    rows = []
    for name, values in VARIED.items():
        for value in values[: 1 if options.quick else None]:
            case = BASE | {name: value}
            X, y = make(case, options.seed)
            one, two = (measure(fit(case, X, y, threads), options.repeats).best for threads in (1, 2))
            rows.append({"varied": name, "value": value, "one thread, s": one, "two threads, s": two, "two / one": two / one})
    X, y = make(BASE, options.seed)
    model = GroupDiscoveryClassifierCV(20, Cs=4, random_state=0).fit(X, y)
    one, two = (
        measure(
            lambda threads=threads: group_confidence(
                model, X, y, n_pairs=25, n_permutations=1, random_state=0, n_jobs=threads
            ),
            options.repeats,
        ).best
        for threads in (1, 2)
    )
    rows.append(
        {"varied": "confidence, 25 pairs", "value": 1, "one thread, s": one, "two threads, s": two, "two / one": two / one}
    )
    print_table("Validated fits with nested scores, and confidence", rows)
    write_results("path_growth", options, rows=rows)


if __name__ == "__main__":
    main()
