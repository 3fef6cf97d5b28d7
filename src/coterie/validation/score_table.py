"""The table of held-out scores of all candidates, and the choice of a candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

# Pairs of a number of features and the held-out score with this number.
ScoredPath = list[tuple[int, float]]


class Candidate(NamedTuple):
    """Settings of a path and the kind of its predictive model. The sizes along the path are not included."""

    C: float
    threshold: float
    standardize: bool
    predict_with: str


def score_table(
    paths: Mapping[Candidate, Sequence[ScoredPath]],
    largest: int | None = None,
    deviances: Mapping[Candidate, Sequence[ScoredPath]] | None = None,
) -> dict[str, np.ndarray]:
    """Return the scores of all candidates at all sizes, one row each, in the format of scikit-learn's ``cv_results_``.

    Parameters
    ----------
    paths : mapping of Candidate to sequence of ScoredPath
        The paths of all folds.
    largest : int, optional
        The size that all paths have reached, if they were stopped early. Larger sizes are omitted.
    deviances : mapping of Candidate to sequence of ScoredPath, optional
        Deviances of the same models.
    """
    rows: list[Candidate] = []
    sizes: list[np.ndarray] = []
    for candidate, folds in paths.items():
        own, _ = merge_paths(folds, largest)
        rows += [candidate] * len(own)
        sizes.append(own)
    return {
        **{name: np.array([getattr(row, name) for row in rows]) for name in Candidate._fields},
        "n_features": np.concatenate(sizes),
        **_columns("score", paths, largest),
        **(_columns("deviance", deviances, largest) if deviances else {}),
    }


def _columns(name: str, paths: Mapping[Candidate, Sequence[ScoredPath]], largest: int | None) -> dict[str, np.ndarray]:
    """Return the mean and the standard deviation over the folds, and the value of each fold.

    A fold in which a score is undefined, such as the AUC of a fold with one class, is left out.
    """
    table = np.hstack([merge_paths(folds, largest)[1] for folds in paths.values()])
    known = ~np.isnan(table)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known.any(axis=0), np.where(known, table, 0.0).sum(axis=0) / count, np.nan)
    return {
        f"mean_test_{name}": mean,
        f"std_test_{name}": np.sqrt(np.where(known, (table - mean) ** 2, 0.0).sum(axis=0) / count),
        **{f"split{fold}_test_{name}": row for fold, row in enumerate(table)},
    }


def merge_paths(paths: Sequence[ScoredPath], largest: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return all sizes that every fold has reached, and their scores, of shape (n_folds, n_sizes).

    A fold without a model of a given size contributes its largest smaller model. A fold that ran out of candidates keeps its
    last score.
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
    """Return the standard error of the mean over the first axis (folds), with ``ddof=1``; 0 for a single fold.

    Folds without a score (NaN) are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.score_table import standard_error
    >>> round(float(standard_error(np.array([1.0, 2.0, np.nan, 3.0]))), 3)
    0.577
    """
    known = ~np.isnan(scores)
    count = known.sum(axis=0)
    mean = np.where(known, scores, 0.0).sum(axis=0) / np.maximum(count, 1)
    squares = np.where(known, (scores - mean) ** 2, 0.0).sum(axis=0)
    return np.asarray(np.sqrt(squares / np.maximum(count - 1, 1) / np.maximum(count, 1)))[()]


def choose(results: Mapping[str, np.ndarray], rule: str, fewest: int = 1) -> int:
    """Return the row that a rule chooses among those with at least ``fewest`` features (or the largest size, if smaller).

    ``"best"`` chooses the best mean score, ``"deviance"`` the smallest mean deviance. ``"one_se"`` chooses the fewest features
    within one standard error (:func:`standard_error` over the folds, of the best row) of the smallest mean deviance, or of
    the best mean score if the table has no deviances. Ties are broken by fewer features, then the better criterion, then the
    smaller C, then the first row.
    """
    return _chosen_row(results, rule, fewest, within=rule == "one_se")


def smallest_size(results: Mapping[str, np.ndarray], rule: str, fewest: int = 1) -> int:
    """Return the fewest features with which a rule's criterion is within one standard error of its best value."""
    return int(results["n_features"][_chosen_row(results, rule, fewest, within=True)])


def _chosen_row(results: Mapping[str, np.ndarray], rule: str, fewest: int, *, within: bool) -> int:
    """Return the row with the best mean, or the fewest features ``within`` one standard error of the best."""
    criterion = "deviance" if rule != "best" and "mean_test_deviance" in results else "score"
    mean = results[f"mean_test_{criterion}"] * (-1.0 if criterion == "deviance" else 1.0)
    mean = np.where(np.isnan(mean), -np.inf, mean)
    if np.isneginf(mean).all():
        raise ValueError("The score is NaN for every number of features. Choose another scoring or other folds.")
    mean = np.where(results["n_features"] >= min(fewest, results["n_features"].max()), mean, -np.inf)
    order = np.lexsort((results["C"], -mean, results["n_features"]))
    best = order[np.argmax(mean[order])]
    limit = mean[best]
    if within:
        splits = [column for name, column in results.items() if name.startswith("split") and name.endswith(criterion)]
        limit = limit - standard_error(np.array([column[best] for column in splits]))
    return int(order[np.argmax(mean[order] >= limit)])
