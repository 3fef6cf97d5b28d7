"""Growth of the time with rounds, classes, samples and nonzeros, and two ratios of the performance goals.

``rounds``: 100 to 1,000 support features, ten per round, on the shape of news20. ``classes``: 100 of the 1.6 million words of
20 Newsgroups for 2, 5, 10 and 20 classes (the samples of the first classes, so that the number of samples grows as well; the
exponent is over classes). ``samples`` and ``nonzeros``: the shape of news20 with twice and four times as many.
``elimination``: 20 classes compared with recursive elimination that drops a tenth per step, on log counts of all words.
``folds``: five folds of ten C compared with one fit. Times are the best of several runs, measured in turn. An exponent is the
slope of log time over log size. Writes docs/evidence/growth.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _models import warnings_counted
from _real import load
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section, verdict
from _timing import measure_in_turn
from scipy import sparse
from sklearn.feature_selection import RFE
from sklearn.svm import LinearSVC

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV
from coterie.datasets import make_big_dimensional

PARTS = ("rounds", "classes", "samples", "nonzeros", "elimination", "folds")


def timed(functions: list[Callable[[], Any]], options: Any) -> list[float]:
    """Return the best time of each function in seconds, after a first run that compiles."""
    functions[0]()
    return [timing.best for timing in measure_in_turn(functions, options.repeats)]


def table(what: str, sizes: list[int], seconds: list[float]) -> list[dict[str, Any]]:
    """Return one row per size, with the exponent from the previous size."""
    rows: list[dict[str, Any]] = []
    for k, (size, took) in enumerate(zip(sizes, seconds, strict=True)):
        slope = np.log(took / seconds[k - 1]) / np.log(size / sizes[k - 1]) if k else None
        exponent = "" if slope is None else f"{slope:.2f}"
        rows.append({what: size, "s": took, "times the first": f"{took / seconds[0]:.1f}", "exponent": exponent})
    return rows


def fit(X: Any, y: np.ndarray, n_features: int, options: Any, **settings: Any) -> Callable[[], Any]:
    model = GroupDiscoveryClassifier(n_features, C=1.0, n_features_per_round=10, n_jobs=options.threads, **settings)
    return lambda: model.fit(X, y)


def rounds(options: Any) -> list[dict[str, Any]]:
    data = make_big_dimensional("news20", scale=0.1 if options.quick else 1.0, random_state=options.seed)
    sizes = [20, 40] if options.quick else [100, 200, 500, 1000]
    return table("support features", sizes, timed([fit(data.X, data.y, size, options) for size in sizes], options))


def classes(options: Any) -> list[dict[str, Any]]:
    X, y = load("20news_bigrams", "y20")
    names, sizes = np.unique(y), [2, 5] if options.quick else [2, 5, 10, 20]
    parts = [np.flatnonzero(np.isin(y, names[:size])) for size in sizes]
    data = [(sparse.csc_array(X[rows]), y[rows]) for rows in parts]
    return table("classes", sizes, timed([fit(*one, 20 if options.quick else 100, options) for one in data], options))


def _news20(options: Any, **factors: int) -> tuple[Any, np.ndarray]:
    scale = 0.1 if options.quick else 1.0
    shape = {"n_samples": int(9996 * scale), "n_features": int(1_355_191 * scale), "n_values": int(3.6e6 * scale)}
    for name, factor in factors.items():
        shape[name] *= factor
    data = make_big_dimensional("news20", random_state=options.seed, **shape)  # type: ignore[arg-type]
    return data.X, data.y


def samples(options: Any) -> list[dict[str, Any]]:
    """Time more samples with nonzeros in proportion, as in more texts of the same length."""
    data = [_news20(options, n_samples=factor, n_values=factor) for factor in (1, 2, 4)]
    return table("samples", [len(y) for _, y in data], timed([fit(X, y, 100, options) for X, y in data], options))


def nonzeros(options: Any) -> list[dict[str, Any]]:
    data = [_news20(options, n_values=factor) for factor in (1, 2, 4)]
    return table("nonzeros", [int(X.nnz) for X, _ in data], timed([fit(X, y, 100, options) for X, y in data], options))


def _ratio(what: str, goal: float, ours: float, other: float, note: str) -> list[dict[str, Any]]:
    ratio = ours / other
    return [{"work": what, "Coterie, s": ours, note: other, "ratio": ratio, "goal": f"≤ {goal:g}: {verdict(ratio <= goal)}"}]


def elimination(options: Any) -> list[dict[str, Any]]:
    X, y = load("20news_bigrams", "y20")
    if options.quick:
        X = X[:, np.diff(X.tocsc().indptr) >= 500]
    by_rows = sparse.csr_array(X, dtype=np.float64)
    by_rows.data = np.log1p(by_rows.data)  # liblinear takes far longer on raw counts
    by_columns = sparse.csc_array(by_rows)
    ours = timed([fit(by_columns, y, 100, options)], options)[0]
    elimination_model = RFE(LinearSVC(random_state=0), n_features_to_select=100, step=0.1)
    other = measure_in_turn([lambda: elimination_model.fit(by_rows, y)], 1)[0].best
    return _ratio("20 classes, 1.6 M words, 100 features / RFE step 0.1", 0.2, ours, other, "RFE, s")


def folds(options: Any) -> list[dict[str, Any]]:
    rows = []
    text = _news20(options)
    pixels, digits = load("usps")
    few = slice(200 if options.quick else None)
    for name, (X, y) in {"news20 shape, 100 features": text, "usps, 50 features": (pixels[few], digits[few])}.items():
        n_features = 50 if name.startswith("usps") else 100
        same = {"n_features_per_round": 10, "standardize": False, "n_jobs": options.threads}
        one = GroupDiscoveryClassifier(n_features, C=1.0, **same)
        many = GroupDiscoveryClassifierCV(n_features, Cs=10, cv=5, random_state=0, **same)
        single, all_of_them = timed([lambda one=one, X=X, y=y: one.fit(X, y), lambda m=many, X=X, y=y: m.fit(X, y)], options)
        rows += _ratio(f"5 folds × 10 C / one fit, {name}", 12, all_of_them, single, "one fit, s")
    return rows


def main() -> None:
    options = read_arguments(__doc__, parts=PARTS)
    found = {}
    with warnings_counted():
        for part in [options.only] if options.only else PARTS:
            found[part] = globals()[part](options)
            print_table(part, found[part])
            if not options.quick:
                replace_section(DOCS / "growth.md", part, markdown_table(found[part]))
    write_results("growth", options, tables=found)


if __name__ == "__main__":
    main()
