"""What the selectors with a criterion share: parameters, reading of the data, the selector contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coterie._validation import n_features_wanted, read_features, require_integer
from coterie.data.source import FeatureSource
from coterie.probing.criteria import Criterion, as_criterion
from coterie.probing.criteria.base import Evaluator
from coterie.probing.evaluation import Workers
from coterie.selection import ColumnSelectorMixin

_SET_BY_READING = ("n_features_in_", "feature_names_in_")


class CriterionSelector(ColumnSelectorMixin, BaseEstimator):
    """Base class: a selector that evaluates subsets of the features by a criterion."""

    support_features_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _kept(self) -> np.ndarray:
        check_is_fitted(self)
        return np.sort(self.support_features_)

    def _read(self, X: Any, y: Any) -> Problem:
        """Check the parameters that all have, and the data."""
        if self.n_jobs is not None:
            require_integer("n_jobs", self.n_jobs, minimum=None)
            if self.n_jobs == 0:
                raise ValueError("n_jobs=0 has no meaning; use None, a positive number, or -1 for all cores.")
        if not isinstance(self.verbose, bool):
            require_integer("verbose", self.verbose, minimum=0)
        criterion = as_criterion(self.criterion)
        problem = Problem(self, criterion, Workers(self.n_jobs, criterion.prefer))
        try:
            problem.read(X, y)
        except BaseException:
            problem.forget()
            raise
        return problem


class Problem:
    """What a fit works on: data, bound criterion, number of features wanted."""

    source: FeatureSource
    y: np.ndarray
    evaluate: Evaluator
    n_wanted: int

    def __init__(self, selector: CriterionSelector, criterion: Criterion, workers: Workers) -> None:
        self.criterion = criterion
        self.workers = workers
        self._selector = selector
        self._seen = {name: selector.__dict__[name] for name in _SET_BY_READING if name in selector.__dict__}

    def read(self, X: Any, y: Any) -> None:
        """Check the data and bind the criterion to them."""
        selector = self._selector
        self.source, self.y = read_features(selector, X, y)
        self.source.moments()  # refuses values that are not finite
        n_wanted = n_features_wanted(selector.n_features_to_select, self.source.shape[1])
        if n_wanted is None:
            raise ValueError("n_features_to_select='auto' has no meaning here; give a number or a fraction of the features.")
        self.n_wanted = n_wanted
        self.evaluate = self.criterion.bind(self.source, self.y, selector.cv)

    def forget(self) -> None:
        """Undo what reading the data set on the selector: a failed fit changes nothing."""
        for name in _SET_BY_READING:
            self._selector.__dict__.pop(name, None)
        self._selector.__dict__.update(self._seen)


def ranks(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features by falling score (the first of equal ones first), and the rank of each feature, from 1."""
    order = np.argsort(-scores, kind="stable")
    ranking = np.empty(len(order), dtype=np.int64)
    ranking[order] = np.arange(1, len(order) + 1)
    return order, ranking
