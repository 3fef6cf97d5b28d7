"""Base class of all selectors: atomic fits, and transformed data in the format of the input."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from coterie._parameters import Rule, check_parameters
from coterie._sklearn import DocumentationLinkMixin, stays_frame
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.groups import FeatureGroups
from coterie.inputs.naming import columns_read, names_at
from coterie.inputs.opening import unwrap_new


class FitData(Protocol):
    """Data of a fit."""

    @property
    def source(self) -> FeatureSource:
        """The features."""
        ...

    @property
    def attributes(self) -> Mapping[str, Any]:
        """``n_features_in_`` and, if they exist, ``feature_names_in_`` and ``classes_``."""
        ...


class Selector(DocumentationLinkMixin, SelectorMixin, BaseEstimator):
    """Base class of estimators that select features.

    A subclass lists the rules of its parameters in ``_allowed`` and implements ``_compute``, which returns the fitted
    attributes. Its ``fit`` calls ``_fit`` with a function that opens the data (:func:`coterie.inputs.opening.open_input`).
    This checks the parameters, reads the data and computes the result. Only then is the estimator changed, in one step. A fit
    that fails or is interrupted leaves it as it was, fitted or not.

    scikit-learn's own ``transform`` converts CSC to CSR. This one keeps the format. It uses indices instead of a mask, so
    names are created for the kept features only.
    """

    _allowed: ClassVar[Mapping[str, Rule]] = {}
    n_features_in_: int
    support_features_: np.ndarray

    @abstractmethod
    def _compute(self, data: Any) -> dict[str, Any]:
        """Return the fitted attributes by name. Must not change the estimator."""

    def _fit(self, read: Callable[[], FitData]) -> Self:
        """Check the parameters, read the data, compute, and then change the estimator in one step."""
        check_parameters(self)
        data = read()
        fitted = {**data.attributes, **self._compute(data)}
        columns = data.source.annotations
        if columns and isinstance(groups := fitted.get("groups_"), FeatureGroups):
            fitted["groups_"] = groups.annotated(columns)
        kept = {name: value for name, value in vars(self).items() if not _is_fitted(name)}
        self.__dict__ = {**kept, **fitted}
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _kept(self) -> np.ndarray:
        """Return the sorted indices of the kept features."""
        check_is_fitted(self)
        return np.sort(self.support_features_)

    def _get_support_mask(self) -> np.ndarray:
        kept = self._kept()
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[kept] = True
        return mask

    def transform(self, X: Any) -> Any:
        """Return the selected columns of X, in the order and format of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Data with the features seen in ``fit``. If both have feature names, columns are matched by name: they may be in
            any order, with additional columns, or only those that are kept.

        Returns
        -------
        X_selected : of shape (n_samples, n_selected)
            The selected columns. CSC stays CSC, CSR stays CSR, and arrays keep their type. Data frames are returned as arrays
            unless ``set_output`` is used, as in scikit-learn.
        """
        check_is_fitted(self)
        X = unwrap_new(self, X, features=self._kept(), covariates=False).X
        columns = columns_read(self, X, self._kept(), as_given=stays_frame(self, X))
        return columns.asformat(X.format) if sparse.issparse(X) else columns

    def inverse_transform(self, X: Any) -> Any:
        """Return data with the selected columns in their original positions and zeros elsewhere.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_selected)
            Data as returned by :meth:`transform`.

        Returns
        -------
        X_original : of shape (n_samples, n_features)
            CSC for sparse X, else an array.
        """
        kept = self._kept()
        if not sparse.issparse(X):
            return super().inverse_transform(X)
        if X.shape[1] != len(kept):
            raise ValueError("X has a different shape than during fitting.")
        columns = X.tocsc()
        counts = np.zeros(self.n_features_in_ + 1, dtype=columns.indptr.dtype)
        counts[kept + 1] = np.diff(columns.indptr)
        return type(columns)(
            (columns.data, columns.indices, np.cumsum(counts, dtype=columns.indptr.dtype)),
            shape=(X.shape[0], self.n_features_in_),
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the selected features, or ``x7`` for feature 7 of data without names.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all input features. Must equal ``feature_names_in_`` if that is defined.

        Returns
        -------
        names : ndarray of str objects
        """
        kept = self._kept()
        if input_features is None:  # Avoids creating names of all features, of which there can be millions.
            names = names_at(self, kept)
            return np.array([f"x{j}" for j in kept] if names is None else names, dtype=object)
        return np.asarray(super().get_feature_names_out(input_features), dtype=object)

    def _label(self, feature: int) -> Any:
        names = names_at(self, np.array([feature]))
        return int(feature) if names is None else names[0]


class FeatureSets:
    """Mixin that provides the groups of a selector in the format of feature-engine."""

    groups_: FeatureGroups
    _label: Callable[[int], Any]

    @property
    def correlated_feature_sets_(self) -> list[set[Any]]:
        """Groups of at least two features as sets of names (or indices), as in feature-engine."""
        return [{self._label(j) for j in group.members} for group in self.groups_ if len(group) > 1]

    @property
    def correlated_feature_dict_(self) -> dict[Any, set[Any]]:
        """Mapping from support feature to the set of its affiliated features, as in feature-engine."""
        return {
            self._label(group.support): {self._label(j) for j in group.affiliated} for group in self.groups_ if len(group) > 1
        }


def feature_label(names: Sequence[str] | None, feature: int) -> Any:
    """Return the name of a feature, or its index if there are no names."""
    return int(feature) if names is None else names[int(feature)]


def fixed_positions(features: Any, view: FeatureView) -> np.ndarray:
    """Return the indices of the features given as ``fixed_features``. Constant features raise a ValueError."""
    fixed = feature_positions(features, view.n_features, view.feature_names, "fixed_features")
    constant = fixed[view.moments.norm[fixed] == 0.0]
    if len(constant):
        label = feature_label(view.feature_names, constant[0])
        raise ValueError(f"fixed_features has feature {label!r}, which is constant. Remove it from fixed_features.")
    return fixed


def names_of(names: Sequence[str] | None, features: np.ndarray) -> tuple[str, ...] | None:
    """Return the names of some features, or None if there are no names."""
    return None if names is None else tuple(str(names[int(j)]) for j in features)


def features_of_share(value: float, n_features: int) -> int:
    """Return the number of features for a fraction of all features, at least 1."""
    return max(1, int(float(value) * n_features))


def n_features_wanted(value: int | float, n_features: int) -> int:
    """Return the requested number of features, given as a number or a fraction that was checked before.

    If there are fewer features, warn and return their number, as in scikit-learn's ``SelectKBest``.
    """
    if not isinstance(value, Integral):
        return features_of_share(value, n_features)
    if int(value) > n_features:
        warnings.warn(
            f"n_features_to_select={value} is more than the {n_features} feature(s) of X. "
            f"n_features_to_select={n_features} is used.",
            UserWarning,
            stacklevel=2,
        )
    return min(int(value), n_features)


def n_features_or_auto(value: int | float | str, n_features: int) -> int | None:
    """Return the requested number of features, or None for ``"auto"``."""
    return None if isinstance(value, str) else n_features_wanted(value, n_features)


def feature_positions(features: Any, n_features: int, names: Sequence[str] | None, parameter: str) -> np.ndarray:
    """Return the indices of features given as indices, names or a boolean mask."""
    if features is None:
        return np.empty(0, dtype=np.int64)
    flat = f"{parameter} must be a flat list of feature indices or names, or a boolean mask."
    try:
        chosen = np.atleast_1d(np.asarray(features))
    except ValueError as error:  # nested lists of different lengths
        raise ValueError(flat) from error
    if chosen.size == 0:
        return np.empty(0, dtype=np.int64)
    if chosen.ndim != 1:
        raise ValueError(flat)
    if chosen.dtype == np.bool_:
        if len(chosen) != n_features:
            raise ValueError(f"{parameter} is a mask of length {len(chosen)}, but X has {n_features} features.")
        return np.flatnonzero(chosen)
    if chosen.dtype.kind in "iu":
        invalid = chosen[(chosen < -n_features) | (chosen >= n_features)]
        if len(invalid):
            raise ValueError(f"{parameter} has index {invalid[0]}, but X has {n_features} features.")
        positions = np.where(chosen < 0, chosen + n_features, chosen).astype(np.int64)
    else:
        if names is None:
            raise ValueError(f"{parameter} contains names, but X has no feature names. Pass indices, or X as a data frame.")
        position_of = {str(name): position for position, name in enumerate(names)}
        unknown = [str(name) for name in chosen if str(name) not in position_of]
        if unknown:
            raise ValueError(f"{parameter} contains {unknown[0]!r}, which is not a feature of X. Check the name.")
        positions = np.array([position_of[str(name)] for name in chosen], dtype=np.int64)
    if len(np.unique(positions)) < len(positions):
        raise ValueError(f"{parameter} contains a feature twice. Remove one of them.")
    return positions


def _is_fitted(name: str) -> bool:
    """Return True if an attribute with this name is set by a fit."""
    return name.endswith("_") and not name.startswith("_")
