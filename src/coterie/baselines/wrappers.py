"""Wrapper methods with a criterion: best individual features (BIF) and floating search (SFFS)."""

from __future__ import annotations

import time
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel

from coterie._parameters import Integer, Number, OneOf, Rule
from coterie.data.source import FeatureSource
from coterie.estimators.documentation import documented
from coterie.inputs.types import FoldsLike
from coterie.order import best_of, ranked, ranks
from coterie.probing.criteria.base import CriterionLike
from coterie.probing.evaluation import CriterionSelector, Problem, evaluate_subsets
from coterie.progress import RoundProgress

# Number of features evaluated between two updates of the progress.
_WAVE = 256


@documented
class BestIndividualSelector(CriterionSelector):
    """Rank features by the criterion's value of each single feature, and select the best.

    This is the common ranking of single features (best individual features, BIF). It is fast and stable, but does not find
    features that are useful only in combination.

    Parameters
    ----------
    %(criterion_kept)s

    cv : int or cross-validation generator, default=3
        Folds of the criterion.

    n_jobs : int or None, default=None
        Number of features evaluated in parallel by joblib. The result does not depend on it.

    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Value of each single feature.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature, starting at 1. Ties are broken by the content of the columns.

    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, the best first.

    %(seen)s

    See Also
    --------
    DependencyAwareSelector : Ranks features by their benefit to subsets of the others.
    FloatingSelector : Sequential floating search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.baselines import BestIndividualSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> BestIndividualSelector(n_features_to_select=2).fit(X, y).get_support()
    array([False, False,  True,  True])
    """

    def __init__(
        self,
        criterion: CriterionLike = "knn",
        *,
        n_features_to_select: int | float = 10,
        cv: FoldsLike = 3,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose

    scores_: np.ndarray
    ranking_: np.ndarray

    def _compute(self, data: Problem) -> dict[str, Any]:
        n_features = data.source.shape[1]
        scores = np.empty(n_features)
        with (
            data.workers.parallel() as pool,
            RoundProgress(n_features, int(self.verbose), type(self).__name__, unit="features") as bar,
        ):
            for start in range(0, n_features, _WAVE):
                wave = np.arange(start, min(start + _WAVE, n_features))
                alone = [wave[i : i + 1] for i in range(len(wave))]
                scores[wave] = evaluate_subsets(data.evaluate, alone, data.workers, pool)
                bar.update(int(wave[-1]) + 1, f"best {scores[: wave[-1] + 1].max():.4g}")
        order = ranked(data.source, scores)
        return {"scores_": scores, "ranking_": ranks(order, n_features), "support_features_": order[: data.n_wanted]}


class FloatingSubset(NamedTuple):
    """Best subset of a size that was evaluated: its features (sorted) and its value."""

    features: np.ndarray
    value: float


@documented
class FloatingSelector(CriterionSelector):
    """Sequential floating forward selection: add the best feature, then drop features as long as the value improves.

    After each added feature, features are dropped one at a time as long as the smaller subset is better than the best subset
    of its size so far [1]_. The method finds good subsets for the criterion, often the best. Each step takes about as many
    evaluations as there are features, so the method is suitable for some dozens of features. It may overfit the criterion:
    the subset may be worse for another classifier or other samples.

    Parameters
    ----------
    %(criterion_kept)s

    look_ahead : int, default=3
        The search continues until subsets are larger than ``n_features_to_select`` by this number, because dropping features
        from larger subsets may give a better subset of the requested size.

    max_seconds : float or None, default=None
        End the search after this time, as soon as there is a subset of the requested size. The current step is finished
        first.

    cv : int or cross-validation generator, default=3
        Folds of the criterion.

    n_jobs : int or None, default=None
        Number of subsets evaluated in parallel by joblib. The result does not depend on it.

    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, sorted.

    value_ : float
        Value of the criterion for the selected features.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature, starting at 1. The selected features come first. Both the selected and the other features are
        ordered by the number of sizes whose best subset contains them. Ties are broken by the content of the columns.
        Subsets of different sizes need not be nested. For another number of features, fit again or use ``subsets_``.

    subsets_ : dict of int to FloatingSubset
        Best subset of each size that was evaluated: its ``features`` and its ``value``.

    n_evaluations_ : int
        Number of evaluated subsets.

    %(seen)s

    See Also
    --------
    DependencyAwareSelector : Ranking for many features.
    sklearn.feature_selection.SequentialFeatureSelector : Sequential search without floating.

    Notes
    -----
    Ties between subsets of equal value are broken by the content of the added or dropped feature. A subset replaces the best
    subset of its size only if it is better by more than rounding errors (1e-12 of the value). The search therefore ends.

    References
    ----------
    .. [1] P. Pudil, J. Novovičová, J. Kittler, "Floating search methods in feature selection", Pattern Recognition
       Letters 15(11), 1994.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.baselines import FloatingSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = FloatingSelector(n_features_to_select=2).fit(X, y)
    >>> selector.support_features_
    array([2, 3])
    >>> sorted(selector.subsets_)
    [1, 2, 3, 4]
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        **CriterionSelector._allowed,
        "look_ahead": Integer(0),
        "max_seconds": Number() | OneOf(None),
    }

    def __init__(
        self,
        criterion: CriterionLike = "knn",
        *,
        n_features_to_select: int | float = 10,
        look_ahead: int = 3,
        max_seconds: float | None = None,
        cv: FoldsLike = 3,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.look_ahead = look_ahead
        self.max_seconds = max_seconds
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose

    subsets_: dict[int, FloatingSubset]
    ranking_: np.ndarray

    def _compute(self, data: Problem) -> dict[str, Any]:
        with data.workers.parallel() as pool:
            search = _Search(data, pool)
            self._run(search, data)
        best = search.best[data.n_wanted]
        return {
            "subsets_": dict(sorted(search.best.items())),
            "support_features_": best.features,
            "value_": best.value,
            "ranking_": _ranking(data.source, search.best, best.features),
            "n_evaluations_": search.n_evaluations,
        }

    def _run(self, search: _Search, problem: Problem) -> None:
        """Add and drop features until subsets are large enough or the time limit is reached."""
        largest = min(problem.n_wanted + int(self.look_ahead), problem.source.shape[1])
        deadline = time.perf_counter() + (np.inf if self.max_seconds is None else float(self.max_seconds))
        with RoundProgress(largest, int(self.verbose), type(self).__name__, unit="features") as bar:
            while len(search.current) < largest:
                search.add()
                while len(search.current) > 2 and search.drop():
                    pass
                bar.update(len(search.current), f"value {search.value:.6g}, {search.n_evaluations} subsets")
                if time.perf_counter() > deadline and problem.n_wanted in search.best:
                    break


def _ranking(source: FeatureSource, subsets: dict[int, FloatingSubset], selected: np.ndarray) -> np.ndarray:
    """Return ranks by the number of best subsets that contain a feature, the selected features first."""
    held = np.zeros(source.shape[1])
    for subset in subsets.values():
        held[subset.features] += 1.0
    held[selected] += len(subsets) + 1.0
    return ranks(ranked(source, held), len(held))


class _Search:
    """State of the search: the current subset, and the best subset of each size."""

    def __init__(self, problem: Problem, pool: Parallel) -> None:
        self.problem = problem
        self.pool = pool
        self.current = np.empty(0, dtype=np.int64)
        self.value = -np.inf
        self.best: dict[int, FloatingSubset] = {}
        self.n_evaluations = 0

    def add(self) -> None:
        """Add the feature that gives the best subset. If an earlier subset of this size is better, continue from it."""
        others = np.setdiff1d(np.arange(self.problem.source.shape[1]), self.current, assume_unique=True)
        subset, value = self._best_of(others, [np.sort(np.append(self.current, feature)) for feature in others])
        self._update_best(subset, value)
        self.current, self.value = self.best[len(subset)]

    def drop(self) -> bool:
        """Drop the feature whose removal gives the best subset, if it improves on the best subset of its size so far."""
        subset, value = self._best_of(self.current, [np.delete(self.current, i) for i in range(len(self.current))])
        if not self._better(value, len(subset)):
            return False
        self._update_best(subset, value)
        self.current, self.value = subset, value
        return True

    def _best_of(self, features: np.ndarray, subsets: list[np.ndarray]) -> tuple[np.ndarray, float]:
        """Return the best of subsets that were made by adding or dropping one of the features, and its value."""
        values = evaluate_subsets(self.problem.evaluate, subsets, self.problem.workers, self.pool)
        self.n_evaluations += len(subsets)
        best = int(np.flatnonzero(features == best_of(self.problem.source, features, values))[0])
        return subsets[best], float(values[best])

    def _better(self, value: float, size: int) -> bool:
        known = self.best.get(size)
        return known is None or value > known.value + 1e-12 * abs(known.value)

    def _update_best(self, subset: np.ndarray, value: float) -> None:
        if self._better(value, len(subset)):
            self.best[len(subset)] = FloatingSubset(subset, value)
