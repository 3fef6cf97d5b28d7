"""A selector by any of the filter scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coterie._validation import n_features_wanted, read_features, read_source, require_choice
from coterie.filters.registry import SCORES
from coterie.selection import ColumnSelectorMixin


class FilterSelector(ColumnSelectorMixin, BaseEstimator):
    """Keep the features with the largest scores of a filter.

    Parameters
    ----------
    score_func : str, default="fisher"
        Name of one of the scores of :mod:`coterie.filters`.

    n_features_to_select : int or float, default=10
        Number of features to keep, or their fraction of all features.

    parameters : dict or None, default=None
        Parameters of the score.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Scores.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature, 1 for the best; of equal scores the first feature comes first.

    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, the best first.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.filters.selector import FilterSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> FilterSelector("fisher", 2).fit(X, y).support_features_
    array([2, 3])
    """

    def __init__(
        self, score_func: str = "fisher", n_features_to_select: int | float = 10, *, parameters: dict[str, Any] | None = None
    ) -> None:
        self.score_func = score_func
        self.n_features_to_select = n_features_to_select
        self.parameters = parameters

    def fit(self, X: Any, y: Any = None) -> Self:
        """Score the features.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), default=None
            Labels; not needed by scores that do not learn from them.

        Returns
        -------
        self : FilterSelector
            The fitted selector.
        """
        require_choice("score_func", self.score_func, tuple(SCORES))
        score = SCORES[self.score_func]
        if score.supervised:
            source, y = read_features(self, X, y)
        else:
            source = read_source(self, X)
        n_wanted = n_features_wanted(self.n_features_to_select, source.shape[1], auto=False)
        scores = np.asarray(score.function(source, y, **(self.parameters or {})))
        order = np.argsort(-scores, kind="stable")
        self.scores_ = scores
        self.ranking_ = np.empty(len(order), dtype=np.int64)
        self.ranking_[order] = np.arange(1, len(order) + 1)
        self.support_features_ = order[:n_wanted]
        return self

    def _kept(self) -> np.ndarray:
        check_is_fitted(self)
        return np.sort(self.support_features_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self.score_func in SCORES and SCORES[self.score_func].supervised
        return tags
