"""What the selectors to compare with share: labels, the number of features, the selector contract."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from coterie._numba import one_blas_thread
from coterie._validation import n_features_wanted, read_features, read_labels
from coterie.data.source import FeatureSource, Moments
from coterie.selection import ColumnSelectorMixin

_SET_BY_READING = ("n_features_in_", "feature_names_in_")


class LabelledData(NamedTuple):
    """What a fit works on: the features, their moments, the labels, and the number of features wanted (None: "auto")."""

    source: FeatureSource
    moments: Moments
    classes: np.ndarray
    codes: np.ndarray
    n_wanted: int | None

    @property
    def targets(self) -> np.ndarray:
        """The two classes as -1 and 1."""
        return np.where(self.codes == 1, 1.0, -1.0)


class LabelSelector(ColumnSelectorMixin, BaseEstimator):
    """Base class: a selector that learns from class labels.

    A subclass checks its parameters and computes in ``_select``, which returns the fitted attributes: a fit that
    fails changes nothing.
    """

    support_features_: np.ndarray
    _allows_auto = False
    _two_classes_only = False

    @abstractmethod
    def _select(self, data: LabelledData) -> dict[str, Any]:
        """The fitted attributes by name; ``support_features_`` is one of them."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select features.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource, path, …} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels of any kind. Files and stores may bring their own.

        Returns
        -------
        self : object
            The fitted selector.
        """
        seen = {name: self.__dict__[name] for name in _SET_BY_READING if name in self.__dict__}
        try:
            with one_blas_thread():
                fitted = self._select(self._read(X, y))
        except BaseException:
            for name in _SET_BY_READING:
                self.__dict__.pop(name, None)
            self.__dict__.update(seen)
            raise
        for name, value in fitted.items():
            setattr(self, name, value)
        return self

    def _read(self, X: Any, y: Any) -> LabelledData:
        source, labels = read_features(self, X, y)
        moments = source.moments()  # refuses values that are not finite
        n_wanted = n_features_wanted(self.n_features_to_select, source.shape[1], auto=self._allows_auto)
        classes, codes = read_labels(labels, None)
        if self._two_classes_only and len(classes) > 2:
            raise ValueError(
                f"Only binary classification is supported: y has {len(classes)} classes, and {type(self).__name__} is a "
                "method for 2. Select for one class against the rest."
            )
        return LabelledData(source, moments, classes, codes, n_wanted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        if self._two_classes_only:
            tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _kept(self) -> np.ndarray:
        check_is_fitted(self)
        return np.sort(self.support_features_)

    def _names(self, features: np.ndarray) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(str(names[j]) for j in features)


def by_score(scores: np.ndarray) -> np.ndarray:
    """Features by falling score; of equal ones the first comes first."""
    return np.argsort(-scores, kind="stable")


def ranking_of(order: np.ndarray, n_features: int) -> np.ndarray:
    """Rank of each feature from 1; those not in the order share the rank after the last."""
    ranking = np.full(n_features, len(order) + 1, dtype=np.int64)
    ranking[order] = np.arange(1, len(order) + 1)
    return ranking
