"""What every selector of the package shares: columns kept in the format and under the names they came with."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from coterie._validation import check_features, stays_frame, take_columns


class ColumnSelectorMixin(SelectorMixin):
    """Selector methods for an estimator that says which columns it keeps.

    scikit-learn's own ``transform`` turns CSC into CSR; this one leaves every format as it is. And it
    works on indices, not on a mask, so that names are made for the kept features alone.
    """

    n_features_in_: int

    @abstractmethod
    def _kept(self) -> np.ndarray:
        """Indices of the kept features, sorted."""

    def _get_support_mask(self) -> np.ndarray:
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self._kept()] = True
        return mask

    def transform(self, X: Any) -> Any:
        """Keep the selected columns of X, in the order and format in which X has them.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Data with the features seen in ``fit``.

        Returns
        -------
        X_selected : of shape (n_samples, n_selected)
            The selected columns. CSC stays CSC, CSR stays CSR, arrays keep their type; data frames come
            back as arrays unless ``set_output`` says otherwise, as everywhere in scikit-learn.
        """
        check_is_fitted(self)
        checked = check_features(self, X)
        if stays_frame(self, X):
            return take_columns(X, self._kept())  # each column keeps its own type
        columns = take_columns(checked, self._kept())
        return columns.asformat(X.format) if sparse.issparse(X) else columns

    def inverse_transform(self, X: Any) -> Any:
        """Put selected columns back in their places, with zeros everywhere else.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_selected)
            Data as :meth:`transform` returns them.

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
        """Names of the selected features; ``x7`` for feature 7 of data without names.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all input features; must equal ``feature_names_in_`` where that is known.

        Returns
        -------
        names : ndarray of str objects
        """
        kept = self._kept()
        if input_features is None and not hasattr(self, "feature_names_in_"):
            return np.array([f"x{j}" for j in kept], dtype=object)  # never a name for each of 30 million
        return np.asarray(super().get_feature_names_out(input_features), dtype=object)

    def _label(self, feature: int) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return int(feature) if names is None else names[feature]
