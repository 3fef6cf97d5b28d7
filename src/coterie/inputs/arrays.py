"""Arrays, sparse matrices, data frames and sources: checked, and wrapped in a source without a copy."""

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
from coterie.data.names import refuse_repeated
from coterie.data.source import FeatureSource
from coterie.data.validity import check_structure
from coterie.inputs.frames import KINDS, is_frame, refuse_columns

# Features up to which a fit on a cluster has the names of all of them as an attribute.
_MAX_NAMES_IN_MEMORY = 1 << 20
# Value types that kernels work on as they are; anything else becomes float64.
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


_ALL_FEATURES = "Data without names must have all of them, in the order of the training data."
# The formats left out (DOK) cannot be checked as they are and become CSC.
SPARSE_FORMATS = ("csc", "csr", "coo", "bsr", "dia", "lil")


class Reading(NamedTuple):
    """Features as an estimator has read them: the source, and the attributes that scikit-learn wants to see afterwards."""

    source: FeatureSource
    attributes: dict[str, Any]


def plain_source(X: Any) -> FeatureSource:
    """Source over the data that a function (not an estimator) was given, out of their container and checked."""
    if isinstance(X, FeatureSource):
        return X
    refuse_kinds(X)
    columns = getattr(X, "columns", None)
    names = [str(name) for name in columns] if columns is not None else None
    try:
        X = check_array(X, **_ANY_VALUES)
    except (ValueError, OverflowError) as error:
        raise with_remedy(error) from error
    return as_source(X, names)


def read_source(estimator: BaseEstimator, X: Any) -> Reading:
    """The training data, out of their container: an array, a sparse matrix, a frame or a source.

    The estimator stays as it is: what scikit-learn would set on it (``n_features_in_`` and, where there are names,
    ``feature_names_in_``) is part of the result. Whether the values are finite is found out by the pass that computes the
    moments, not here.
    """
    if isinstance(X, FeatureSource):
        attributes: dict[str, Any] = {"n_features_in_": X.shape[1]}
        many = X.n_workers is not None and X.shape[1] > _MAX_NAMES_IN_MEMORY
        if X.feature_names is not None and not many:  # other data, in an array, have none
            attributes |= {"feature_names_in_": np.asarray(X.feature_names, dtype=object), "names_given_": True}
        if isinstance(X, ImputedSource):
            attributes["fill_values_"] = X.fill_values
        return Reading(X, attributes)
    refuse_kinds(X)
    reader = copy.copy(estimator)  # scikit-learn sets attributes while it reads
    try:
        X = validate_data(reader, X, **_ANY_VALUES)
    except (ValueError, OverflowError) as error:
        raise with_remedy(error) from error
    attributes = {name: vars(reader)[name] for name in ("n_features_in_", "feature_names_in_") if name in vars(reader)}
    return Reading(as_source(X, attributes.get("feature_names_in_")), attributes)


def check_features(estimator: BaseEstimator, X: Any, *, any_kind: bool = False, allow_nan: bool = False) -> Any:
    """Data to predict or transform, checked against the fitted estimator, in their own format.

    Frames may hold ``any_kind`` of values, and numbers may be missing, where that is allowed.
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
    refuse_kinds(X)
    if sparse.issparse(X):
        check_structure(X)
    # Objects become numbers, or are refused.
    dtype = "numeric" if getattr(getattr(X, "dtype", None), "kind", "") == "O" or isinstance(X, (list, tuple)) else None
    # What cannot have names need not have them; and where names were given apart from the data, these need not either.
    if sparse.issparse(X) or (getattr(estimator, "names_given_", False) and not hasattr(X, "columns")):
        estimator = copy.copy(estimator)
        vars(estimator).pop("feature_names_in_", None)
    gaps = allow_nan or hasattr(estimator, "fill_values_")  # gaps that will be filled
    options: dict[str, Any] = {"dtype": dtype, "accept_sparse": SPARSE_FORMATS, "accept_large_sparse": True}
    try:
        return validate_data(estimator, X, reset=False, ensure_all_finite="allow-nan" if gaps else True, **options)
    except (ValueError, OverflowError) as error:
        if "features as input" in str(error):
            raise ValueError(f"{error} {_ALL_FEATURES}") from error
        raise with_remedy(error) from error


def filled(estimator: BaseEstimator, columns: Any, features: np.ndarray) -> Any:
    """Columns of new data, dense, with gaps filled as they were in the fit (:func:`coterie.imputed`); else as they are."""
    values = getattr(estimator, "fill_values_", None)
    if values is None or not isinstance(columns, np.ndarray) or columns.dtype.kind != "f":
        return columns
    return np.where(np.isnan(columns), values[features].astype(columns.dtype), columns)


def refuse_kinds(X: Any) -> None:
    """Refuse what scikit-learn would take for numbers, or not see: dates, text that looks like numbers, masked values."""
    if isinstance(X, np.ma.MaskedArray) and X.mask.any():
        raise ValueError(
            f"Input X contains {int(X.mask.sum())} masked (missing) value(s); the first is in sample "
            f"{np.argwhere(X.mask)[0][0]}. Impute them (for instance with X.filled(np.nan) and sklearn.impute.SimpleImputer) "
            "or drop those features or samples."
        )
    if not isinstance(X, np.ndarray) and is_frame(X):
        if all(isinstance(name, str) for name in X.columns):  # others are no names of features for scikit-learn either
            refuse_repeated(list(X.columns), of="X: ")
        refuse_columns(X)
    else:
        kind = KINDS.get(getattr(getattr(X, "dtype", None), "kind", ""))
        if kind is not None:
            raise ValueError(f"Features must be numbers, but X has {kind} (dtype {X.dtype}). Convert, encode or drop them.")


def with_remedy(error: ValueError | OverflowError) -> ValueError:
    """Say what to do about text among the values; other messages of scikit-learn's are clear."""
    text = str(error)
    if "convert string" in text or "bytes/strings" in text:
        return ValueError(f"{text}. Features must be numbers: encode text first, for instance with sklearn's OneHotEncoder.")
    if isinstance(error, OverflowError):
        return ValueError(f"X has a number that no type of NumPy's can hold ({text}). Rescale the feature.")
    return error


def take_columns(X: Any, features: np.ndarray) -> Any:
    """Some columns of validated data in the format they came in: CSC stays CSC, a frame a frame."""
    if isinstance(X, FeatureSource):
        return X.columns(features)
    if sparse.issparse(X) and X.format not in ("csc", "csr"):
        return X.tocsc()[:, features].asformat(X.format)
    return safe_indexing(X, features, axis=1) if hasattr(X, "columns") else X[:, features]


def take_samples(X: Any, samples: np.ndarray) -> Any:
    """Some rows of an array, a sparse matrix or a data frame, in the format they came in."""
    if sparse.issparse(X):
        return X.tocsr()[samples].asformat(X.format)
    return safe_indexing(X, samples, axis=0)
