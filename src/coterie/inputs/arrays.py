"""Checks of arrays, sparse matrices, data frames and sources, and sources over them without a copy."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from coterie._sklearn import safe_indexing, validate_data
from coterie.data.imputation import ImputedSource
from coterie.data.memory import as_source
from coterie.data.names import require_unique_names
from coterie.data.source import FeatureSource
from coterie.data.validity import check_structure
from coterie.inputs.frames import KINDS, is_frame, require_numeric_columns

# Maximum number of features whose names a fit on a cluster keeps as an attribute.
_MAX_NAMES_IN_MEMORY = 1 << 20
# Value types that kernels support; anything else is converted to float64.
_VALUE_TYPES = [
    np.float64, np.float32, np.int8, np.uint8, np.bool_,
    np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
]  # fmt: skip
_ANY_VALUES: dict[str, Any] = {
    "dtype": _VALUE_TYPES,
    "accept_sparse": True,
    "accept_large_sparse": True,
    "ensure_all_finite": False,
    "ensure_min_samples": 2,
}


_ALL_FEATURES = "Data without feature names must have all features, in the order of the training data."
# Sparse formats that are kept. DOK cannot be checked and becomes CSC.
SPARSE_FORMATS = ("csc", "csr", "coo", "bsr", "dia", "lil")


class Reading(NamedTuple):
    """Source of an estimator's features, and the attributes that scikit-learn requires after a fit."""

    source: FeatureSource
    attributes: dict[str, Any]


def plain_source(X: Any) -> FeatureSource:
    """Check unwrapped data that were passed to a function (not an estimator), and return a source over them."""
    if isinstance(X, FeatureSource):
        return X
    require_numeric(X)
    columns = getattr(X, "columns", None)
    names = [str(name) for name in columns] if columns is not None else None
    try:
        X = check_array(X, **_ANY_VALUES)
    except (ValueError, OverflowError) as error:
        raise add_remedy(error) from error
    return as_source(X, names)


def read_source(estimator: BaseEstimator, X: Any) -> Reading:
    """Check unwrapped training data: an array, a sparse matrix, a data frame or a source.

    The estimator is not changed. The attributes that scikit-learn would set (``n_features_in_`` and, if there are names,
    ``feature_names_in_``) are part of the result. Values are not checked here for NaN and infinity, but in the pass that
    computes the moments.
    """
    if isinstance(X, FeatureSource):
        attributes: dict[str, Any] = {"n_features_in_": X.shape[1]}
        many = X.n_workers is not None and X.shape[1] > _MAX_NAMES_IN_MEMORY
        if X.feature_names is not None and not many:  # later data without names are accepted too (names_given_)
            attributes |= {"feature_names_in_": np.asarray(X.feature_names, dtype=object), "names_given_": True}
        if isinstance(X, ImputedSource):
            attributes["fill_values_"] = X.fill_values
        if X.encoding is not None:
            attributes["encoding_"] = X.encoding
        return Reading(X, attributes)
    require_numeric(X)
    reader = copy.copy(estimator)  # validate_data sets attributes
    try:
        X = validate_data(reader, X, **_ANY_VALUES)
    except (ValueError, OverflowError) as error:
        raise add_remedy(error) from error
    attributes = {name: vars(reader)[name] for name in ("n_features_in_", "feature_names_in_") if name in vars(reader)}
    return Reading(as_source(X, attributes.get("feature_names_in_")), attributes)


def check_features(estimator: BaseEstimator, X: Any, *, any_kind: bool = False, allow_nan: bool = False) -> Any:
    """Check data to predict or transform against the fitted estimator, and return them in their own format.

    With ``any_kind``, frames may hold values of any type. With ``allow_nan``, values may be missing.
    """
    if isinstance(X, FeatureSource):
        if X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
                f"features as input. {_ALL_FEATURES}"
            )
        return X
    if any_kind:
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return X
    require_numeric(X)
    if sparse.issparse(X):
        check_structure(X)
    # Objects are converted to numbers, or rejected.
    dtype = "numeric" if getattr(getattr(X, "dtype", None), "kind", "") == "O" or isinstance(X, (list, tuple)) else None
    # Sparse matrices have no names. If the names were passed separately from the training data, other data need none either.
    if sparse.issparse(X) or (getattr(estimator, "names_given_", False) and not hasattr(X, "columns")):
        estimator = copy.copy(estimator)
        vars(estimator).pop("feature_names_in_", None)
    gaps = allow_nan or hasattr(estimator, "fill_values_")  # missing values that will be imputed
    options: dict[str, Any] = {"dtype": dtype, "accept_sparse": SPARSE_FORMATS, "accept_large_sparse": True}
    try:
        return validate_data(estimator, X, reset=False, ensure_all_finite="allow-nan" if gaps else True, **options)
    except (ValueError, OverflowError) as error:
        if "features as input" in str(error):
            raise ValueError(f"{error} {_ALL_FEATURES}") from error
        raise add_remedy(error) from error


def fill_missing(estimator: BaseEstimator, columns: Any, features: np.ndarray) -> Any:
    """Impute missing values of dense new data as in the fit (:func:`coterie.imputed`); return other data unchanged."""
    values = getattr(estimator, "fill_values_", None)
    if values is None or not isinstance(columns, np.ndarray) or columns.dtype.kind != "f":
        return columns
    return np.where(np.isnan(columns), values[features].astype(columns.dtype), columns)


def require_numeric(X: Any) -> None:
    """Raise ``ValueError`` for data that scikit-learn would convert or ignore: dates, numbers as text, masked values."""
    if isinstance(X, np.ma.MaskedArray) and X.mask.any():
        raise ValueError(
            f"Input X contains {int(X.mask.sum())} masked (missing) value(s). The first is in sample "
            f"{np.argwhere(X.mask)[0][0]}. Impute them (for instance with X.filled(np.nan) and sklearn.impute.SimpleImputer) "
            "or drop these features or samples."
        )
    if not isinstance(X, np.ndarray) and is_frame(X):
        if all(isinstance(name, str) for name in X.columns):  # as in scikit-learn, feature names must be strings
            require_unique_names(list(X.columns), of="X: ")
        require_numeric_columns(X)
    else:
        kind = KINDS.get(getattr(getattr(X, "dtype", None), "kind", ""))
        if kind is not None:
            raise ValueError(f"Features must be numbers, but X has {kind} (dtype {X.dtype}). Convert, encode or drop them.")


def add_remedy(error: ValueError | OverflowError) -> ValueError:
    """Return an error of scikit-learn with a remedy, if it is about text or numbers that are too large."""
    text = str(error)
    if "convert string" in text or "bytes/strings" in text:
        return ValueError(f"{text}. Features must be numbers. Encode text, for instance with sklearn's OneHotEncoder.")
    if isinstance(error, OverflowError):
        return ValueError(f"X has a number that is too large for floating point ({text}). Rescale the feature.")
    return error


def take_columns(X: Any, features: np.ndarray) -> Any:
    """Return some columns of validated data in their original format: CSC as CSC, a frame as a frame."""
    if isinstance(X, FeatureSource):
        return X.columns(features)
    if sparse.issparse(X) and X.format not in ("csc", "csr"):
        return X.tocsc()[:, features].asformat(X.format)
    return safe_indexing(X, features, axis=1) if hasattr(X, "columns") else X[:, features]


def take_samples(X: Any, samples: np.ndarray) -> Any:
    """Return some rows of an array, a sparse matrix or a data frame, in their original format."""
    if sparse.issparse(X):
        return X.tocsr()[samples].asformat(X.format)
    return safe_indexing(X, samples, axis=0)
