"""The table of held-out scores of all candidates, and the choice from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

# Number of features, and the held-out score with so many.
ScoredPath = list[tuple[int, float]]


class Candidate(NamedTuple):
    """What a path was searched with, and what predicted on it; the sizes along the path come on top."""

    C: float
    threshold: float
    standardize: bool
    predict_with: str


def score_table(paths: Mapping[Candidate, Sequence[ScoredPath]], largest: int | None = None) -> dict[str, np.ndarray]:
    """Scores of all candidates at all sizes, a row each, in scikit-learn's form of ``cv_results_``.

    Parameters
    ----------
    paths : mapping of Candidate to sequence of ScoredPath
        The path of every fold.
    largest : int, optional
        The size that all paths have reached, where somebody has stopped them; larger ones are left out.
    """
    rows: list[Candidate] = []
    sizes: list[np.ndarray] = []
    tables: list[np.ndarray] = []
    for candidate, folds in paths.items():
        own, table = merge_paths(folds, largest)
        rows += [candidate] * len(own)
        sizes.append(own)
        tables.append(table)
    scores = np.hstack(tables)
    return {
        **{name: np.array([getattr(row, name) for row in rows]) for name in Candidate._fields},
        "n_features": np.concatenate(sizes),
        "mean_test_score": scores.mean(axis=0),
        "std_test_score": scores.std(axis=0),
        **{f"split{fold}_test_score": row for fold, row in enumerate(scores)},
    }


def merge_paths(paths: Sequence[ScoredPath], largest: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All sizes that every fold has reached, and the scores of the folds at these, of shape (n_folds, n_sizes).

    A fold that has no model of just this size gives its largest smaller one; a fold that ran out of candidates
    keeps its last score.
    """
    first = max(path[0][0] for path in paths)
    last = np.inf if largest is None else max(largest, first)
    sizes = np.array(sorted({size for path in paths for size, _ in path if first <= size <= last}))
    table = np.empty((len(paths), len(sizes)))
    for row, path in zip(table, paths, strict=True):
        reached = np.array([size for size, _ in path])
        row[:] = np.array([value for _, value in path])[np.searchsorted(reached, sizes, side="right") - 1]
    return sizes, table


def standard_error(scores: np.ndarray) -> np.ndarray:
    """Standard error of the mean over the first axis, one score per fold (``ddof=1``); 0 for a single fold.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.score_table import standard_error
    >>> round(float(standard_error(np.array([1.0, 2.0, 3.0]))), 3)
    0.577
    """
    n_folds = len(scores)
    return np.std(scores, axis=0, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(scores.shape[1:])[()]


def choose(results: Mapping[str, np.ndarray], rule: str, fewest: int = 1) -> int:
    """The row that a rule chooses among those with at least so many features (the largest, where there is none).

    ``"best"`` is the best mean score; ``"one_se"`` the fewest features with a mean score within one standard error
    (:func:`standard_error` over the folds, of the best row) of it. Of equal rows the one with fewer features, then the better
    score, then the smaller C, then the first.
    """
    mean = np.where(np.isnan(results["mean_test_score"]), -np.inf, results["mean_test_score"])
    if np.isneginf(mean).all():
        raise ValueError("The score is not a number for any number of features; choose another scoring or other folds.")
    mean = np.where(results["n_features"] >= min(fewest, results["n_features"].max()), mean, -np.inf)
    order = np.lexsort((results["C"], -mean, results["n_features"]))
    best = order[np.argmax(mean[order])]
    limit = mean[best]
    if rule == "one_se":
        limit = limit - standard_error(np.array([results[name][best] for name in results if name.startswith("split")]))
    return int(order[np.argmax(mean[order] >= limit)])
