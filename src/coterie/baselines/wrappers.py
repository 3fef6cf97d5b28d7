"""Selectors by the values of a criterion: best individual features (BIF) and floating search (SFFS)."""

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

# Features evaluated between two signs of life.
_WAVE = 256


@documented
class BestIndividualSelector(CriterionSelector):
    """Rank features by the criterion's value of each one alone, and keep the best.

    The usual ranking of single features (best individual features, BIF). It is fast and stable, and blind to features that are
    of use only together.

    Parameters
    ----------
    %(criterion_kept)s

    cv : int or cross-validation generator, default=3
        Folds of the criterion.

    n_jobs : int or None, default=None
        Number of features evaluated at the same time, through joblib. The result does not depend on it.

    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Value of each feature alone.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature, 1 for the best; ties by the content of the columns.

    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, the best first.

    %(seen)s

    See Also
    --------
    DependencyAwareSelector : Ranks features by what they add to others.
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
    """The best subset of a size that was met: its features (sorted) and its value."""

    features: np.ndarray
    value: float


@documented
class FloatingSelector(CriterionSelector):
    """Sequential floating forward selection: add the best feature, then drop features as long as that helps.

    After each feature that is added, features are taken away one at a time as long as the smaller subset is better than the
    best one of its size so far [1]_. It finds subsets that are good for the criterion, often the best ones. It takes about
    as many evaluations as there are features for each step, so it is meant for some dozens of features, and it fits the
    criterion so closely that the subset may be worse for another classifier or sample.

    Parameters
    ----------
    %(criterion_kept)s

    look_ahead : int, default=3
        The search goes on until subsets are larger than ``n_features_to_select`` by this number, since
        going back from larger subsets may find a better one of the size wanted.

    max_seconds : float or None, default=None
        End the search after this time (a step under way is finished), once there is a subset of the size wanted.

    cv : int or cross-validation generator, default=3
        Folds of the criterion.

    n_jobs : int or None, default=None
        Number of subsets evaluated at the same time, through joblib. The result does not depend on it.

    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, sorted.

    value_ : float
        The criterion's value of these.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature, 1 for the best: the selected ones first, and among these, as among the others, by the number
        of sizes whose best subset holds them; ties by the content of the columns. Subsets of different sizes need not be
        nested: for another number of features fit again, or look at ``subsets_``.

    subsets_ : dict of int to FloatingSubset
        The best subset of each size that was met: its ``features`` and its ``value``.

    n_evaluations_ : int
        Number of subsets evaluated.

    %(seen)s

    See Also
    --------
    DependencyAwareSelector : A ranking, for many features.
    sklearn.feature_selection.SequentialFeatureSelector : Without the floating.

    Notes
    -----
    Of subsets of equal value the content of the feature that was added, or dropped, decides. A subset replaces the best one
    of its size only if it is better by more than rounding (1e-12 of the value), so the search ends.

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
        """Add and drop features until subsets are large enough, or time is over."""
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
    """Ranks by how many of the best subsets hold a feature, the selected ones first."""
    held = np.zeros(source.shape[1])
    for subset in subsets.values():
        held[subset.features] += 1.0
    held[selected] += len(subsets) + 1.0
    return ranks(ranked(source, held), len(held))


class _Search:
    """The current subset, and the best one of each size."""

    def __init__(self, problem: Problem, pool: Parallel) -> None:
        self.problem = problem
        self.pool = pool
        self.current = np.empty(0, dtype=np.int64)
        self.value = -np.inf
        self.best: dict[int, FloatingSubset] = {}
        self.n_evaluations = 0

    def add(self) -> None:
        """Add the feature that makes the best subset; where an earlier subset of that size is better, go on from that one."""
        others = np.setdiff1d(np.arange(self.problem.source.shape[1]), self.current, assume_unique=True)
        subset, value = self._best_of(others, [np.sort(np.append(self.current, feature)) for feature in others])
        self._take(subset, value)
        self.current, self.value = self.best[len(subset)]

    def drop(self) -> bool:
        """Drop the feature whose loss makes the best subset, if that is better than the best one of its size so far."""
        subset, value = self._best_of(self.current, [np.delete(self.current, i) for i in range(len(self.current))])
        if not self._better(value, len(subset)):
            return False
        self._take(subset, value)
        self.current, self.value = subset, value
        return True

    def _best_of(self, features: np.ndarray, subsets: list[np.ndarray]) -> tuple[np.ndarray, float]:
        """The best of some subsets, each made by adding or dropping one of the features, and its value."""
        values = evaluate_subsets(self.problem.evaluate, subsets, self.problem.workers, self.pool)
        self.n_evaluations += len(subsets)
        best = int(np.flatnonzero(features == best_of(self.problem.source, features, values))[0])
        return subsets[best], float(values[best])

    def _better(self, value: float, size: int) -> bool:
        known = self.best.get(size)
        return known is None or value > known.value + 1e-12 * abs(known.value)

    def _take(self, subset: np.ndarray, value: float) -> None:
        if self._better(value, len(subset)):
            self.best[len(subset)] = FloatingSubset(subset, value)
