"""Feature-major and sample-major data (TPAMI section 3.10): the same fit on both layouts, in turn, on one thread.

Features are read one by one, so feature-major data (columns in memory one after the other) should be faster. Processor
seconds are the best of several runs. The fits find the same features.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie.datasets import make_big_dimensional, make_support_affiliated


def processor_seconds(function: Callable[[], Any], others: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the least processor time of two functions, called in turn."""
    best = [np.inf, np.inf]
    for _ in range(repeats + 1):  # the first run compiles
        for k, call in enumerate((function, others)):
            start = time.process_time()
            call()
            best[k] = min(best[k], time.process_time() - start)
    return best[0], best[1]


def row(name: str, feature_major: Any, sample_major: Any, y: np.ndarray, repeats: int) -> dict[str, Any]:
    """Return the times of a fit on both layouts."""
    models = [GroupDiscoveryClassifier(50, n_features_per_round=10, C=1.0, n_jobs=1) for _ in range(2)]
    first, second = models
    seconds = processor_seconds(lambda: first.fit(feature_major, y), lambda: second.fit(sample_major, y), repeats)
    same = np.array_equal(first.support_features_, second.support_features_)
    return {
        "data": name,
        "samples x features": f"{feature_major.shape[0]:,} x {feature_major.shape[1]:,}",
        "feature-major, s": seconds[0],
        "sample-major, s": seconds[1],
        "ratio": seconds[1] / seconds[0],
        "same features": "yes" if same else "no",
    }


def main() -> None:
    """Run the benchmark and write the table of the page."""
    options = read_arguments(__doc__)
    size = 1000 if options.quick else 10_000
    dense = make_support_affiliated(2048, size, random_state=options.seed)
    X = np.asarray(dense.X, dtype=np.float32)
    rows = [row("dense, float32", np.asfortranarray(X), np.ascontiguousarray(X), dense.y, options.repeats)]
    text = make_big_dimensional("news20", scale=0.05 if options.quick else 0.5, random_state=options.seed)
    S = sparse.csc_array(text.X)
    rows.append(row("sparse, news20 shape", S, S.tocsr(), text.y, options.repeats))
    print_table("layouts", rows)
    if not options.quick:
        replace_section(DOCS / "growth.md", "layouts", markdown_table(rows))
    write_results("layouts", options, rows=rows)


if __name__ == "__main__":
    main()
