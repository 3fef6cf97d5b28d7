"""What comes in: features, labels, weights, folds and lists of features, checked once, for estimators and functions."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from coterie._parameters import LARGEST_FACTOR, SMALLEST_FACTOR
from coterie._sklearn import check_sample_weight, check_targets, safe_indexing, validate_data
from coterie.data.addresses import is_address
from coterie.data.dataset import Dataset
from coterie.data.imputation import ImputedSource
from coterie.data.memory import as_source
from coterie.data.names import refuse_repeated
from coterie.data.opening import open_features
from coterie.data.readers.anndata_parts import candidates, is_anndata
from coterie.data.source import LARGEST_NORM, SMALLEST_NORM, FeatureSource
from coterie.data.store import Store, is_store
from coterie.data.structure import check_structure
from coterie.inputs.frames import KINDS, is_frame, is_lazy, refuse_columns
from coterie.inputs.placing import lives_on_cluster, on_cluster

# Features up to which a fit on a cluster has the names of all of them as an attribute.
_MANY_NAMES = 1 << 20
# Training and test samples.
Fold = tuple[np.ndarray, np.ndarray]
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


def read_features(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Reading, np.ndarray]:
    """The training data, and the targets as a checked 1D array; see :func:`read_source`."""
    hint = _obs_hint(X)
    X, y = opened(X, y, cluster=lives_on_cluster(estimator, X))
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"requires y to be passed, but the target y is None: {name} learns from labels.{hint}")
    _refuse_missing_labels(y)
    reading = read_source(estimator, X)
    y = check_targets(y)
    check_consistent_length(_Rows(reading.source.shape[0]), y)
    return reading, y


def read_source(estimator: BaseEstimator, X: Any) -> Reading:
    """The training data: arrays, sparse matrices, frames, AnnData, a path, an opened store or data set, a source.

    The estimator stays as it is: what scikit-learn would set on it (``n_features_in_`` and, where there are names,
    ``feature_names_in_``) is part of the result. Whether the values are finite is found out by the pass that computes the
    moments, not here.
    """
    X, _ = opened(X, cluster=lives_on_cluster(estimator, X))
    if isinstance(X, FeatureSource):
        attributes: dict[str, Any] = {"n_features_in_": X.shape[1]}
        many = X.n_workers is not None and X.shape[1] > _MANY_NAMES
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


def source_of(X: Any) -> FeatureSource:
    """Source over the data that a function (not an estimator) was given, checked like those of :func:`read_source`."""
    X, _ = opened(X)
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


def class_codes(y: Any, n_samples: int, reader: str) -> tuple[np.ndarray, np.ndarray]:
    """The classes of checked labels, and the number of each sample's class, for a function or estimator ``reader``."""
    if y is None:
        raise ValueError(f"requires y to be passed, but the target y is None: {reader} learns from labels.")
    _refuse_missing_labels(y)
    labels = column_or_1d(y, warn=True)
    check_consistent_length(_Rows(n_samples), labels)
    classes, codes = _codes(labels)
    _warn_about_lone_classes(classes, np.bincount(codes, minlength=len(classes)))
    return classes, codes


def opened(X: Any, y: Any = None, *, cluster: bool = False) -> tuple[Any, Any]:
    """Open a path; take features (and labels, where y is None) out of a data set or a store; bring in guests.

    AnnData objects become sources with their names; Dask arrays and lazy frames are computed; the rest is left alone. A word
    as y is the name of a column: of ``obs`` for an AnnData object, of the file (as ``label`` of :func:`open_features`) for a
    path. With ``cluster`` and an active client of Dask, stores and Dask arrays stay with its workers.
    """
    found = on_cluster(X) if cluster else None
    if found is not None:
        return found[0], found[1] if y is None else y
    named = isinstance(y, str)
    if isinstance(X, (str, os.PathLike)) or is_anndata(X):
        X = open_features(X, label=y) if named else open_features(X)
        named = False
        y = X.y if isinstance(y, str) else y
    if named:
        raise ValueError(
            f"y is the word {y!r}. It may be the name of a column for an AnnData object or a path; "
            f"of other data, pass the labels themselves{f' (X[{y!r}]) and X without them' if hasattr(X, 'columns') else ''}."
        )
    if isinstance(X, (Dataset, Store)):
        return X.source, X.y if y is None else y
    if type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "compute") and hasattr(X, "blocks"):
        return _computed(X), y
    return X.collect() if is_lazy(X) else X, y


def _obs_hint(X: Any) -> str:
    """What y could be for an AnnData object."""
    known = candidates(X) if is_anndata(X) else ""
    return f" Pass the name of a column of obs: {known}." if known else ""


def with_covariates(X: Any, covariates: Any, y: Any = None) -> tuple[Any, Any, Any]:
    """Open a path; take the covariates of a data set or a store where none are given."""
    if isinstance(X, (str, os.PathLike)):
        if isinstance(y, str):
            X = open_features(X, label=y)
            y = X.y
        else:  # of a store nothing is read yet: its features may stay with the workers of a cluster
            X = Store(X) if is_address(X) or is_store(X) else open_features(X)
    if covariates is None and isinstance(X, (Dataset, Store)):
        covariates = X.covariates
    return X, covariates, y


def _computed(X: Any) -> Any:
    """A Dask array in memory; blocks may be dense or sparse."""
    computed = X.compute()
    if not sparse.issparse(computed) and not isinstance(computed, np.ndarray):
        raise ValueError(f"The Dask array has blocks of type {type(computed).__name__}; NumPy and SciPy's sparse are known.")
    return computed


class _Rows:
    """Something with a number of samples, for scikit-learn's check of lengths."""

    def __init__(self, n_samples: int) -> None:
        self.shape = (n_samples,)

    def __len__(self) -> int:
        return self.shape[0]


def _refuse_missing_labels(y: Any) -> None:
    """Raise an error that counts and places labels that are None or NaN."""
    if isinstance(y, np.ma.MaskedArray) and y.mask.any():
        raise ValueError(f"y contains {int(y.mask.sum())} masked (missing) label(s). Drop those samples.")
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.dtype.kind not in "fO":
        return
    missing = np.flatnonzero([_is_missing(label) for label in labels] if labels.dtype.kind == "O" else np.isnan(labels))
    if len(missing):
        raise ValueError(
            f"y contains NaN or None: {len(missing)} label(s) are missing, the first that of sample {missing[0]}. "
            "Drop those samples."
        )


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN or pandas.NA."""
    if isinstance(label, (str, bytes)):
        return False
    return label is None or str(label) in ("nan", "NaN", "<NA>", "NaT")


def check_features(estimator: BaseEstimator, X: Any, *, any_kind: bool = False, allow_nan: bool = False) -> Any:
    """Data to predict or transform, checked against the fitted estimator, in their own format.

    Frames may hold ``any_kind`` of values, and numbers may be missing, where that is allowed.
    """
    X, _ = opened(X)
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
    if is_frame(X):
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


def read_labels(y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The classes, and the number of each sample's class."""
    classes, codes = _codes(y)
    weight = np.ones(len(y)) if weight is None else weight
    totals = np.bincount(codes, weights=weight, minlength=len(classes))
    counts = np.bincount(codes[weight > 0], minlength=len(classes))
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        raise ValueError(f"class {classes.tolist()[empty[0]]!r} has 0 samples of positive weight; at least 1 is needed.")
    # A sample of weight 2 counts as two.
    _warn_about_lone_classes(classes, np.where(totals >= 2, np.maximum(counts, 2), counts))
    return classes, codes


class LoneClassWarning(UserWarning):
    """A class has one sample."""


def _warn_about_lone_classes(classes: np.ndarray, counts: np.ndarray) -> None:
    """The one rule for classes of one sample, in all selectors and scores: they count like any other, with a warning."""
    lone = np.flatnonzero(counts == 1)
    if len(lone):
        others = f" and {len(lone) - 1} other class(es) have" if len(lone) > 1 else " has"
        warnings.warn(
            f"class {classes.tolist()[lone[0]]!r}{others} one sample. It counts like any other class, but what sets it apart "
            "cannot be told from chance, and no fold can both learn and test it. Leave such classes out, or merge them.",
            LoneClassWarning,
            stacklevel=4,
        )


def _codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes, at least two, and the number of each sample's class."""
    if y.dtype.kind != "O" or all(isinstance(label, str) for label in y):
        check_classification_targets(y)
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:  # labels that cannot be compared: any fixed order will do
        known = sorted(set(y.tolist()), key=lambda label: (type(label).__name__, str(label)))
        classes = np.empty(len(known), dtype=object)
        classes[:] = known
        codes = np.array([known.index(label) for label in y])
    if len(classes) == 1:
        raise ValueError(f"y has one class only ({classes.tolist()[0]!r}); a classifier needs samples of 2 classes.")
    return classes, codes


def read_normality(y: Any, n_samples: int) -> np.ndarray:
    """Labels of an outlier detector: 1 for normal samples and -1 for outliers; all are normal where y is None."""
    if y is None:
        return np.ones(n_samples, dtype=np.int64)
    _refuse_missing_labels(y)
    y = check_targets(y)
    check_consistent_length(_Rows(n_samples), y)
    found = list(y) if y.dtype.kind == "O" else np.unique(y).tolist()
    wrong = [label for label in found if isinstance(label, (bool, str, bytes)) or label not in (1, -1)]
    if wrong:
        raise ValueError(
            f"y has the label {wrong[0]!r}; the labels of an outlier detector are 1 for normal samples and -1 for outliers "
            "(None: all are normal)."
        )
    return y.astype(np.int64)


def read_targets(y: np.ndarray) -> np.ndarray:
    """Targets of a regression as float64."""
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Targets must be numbers: {_no_number(np.asarray(y))}.") from error
    if targets.dtype.kind != "f" or not np.isfinite(targets).all():
        place = int(np.argmax(~np.isfinite(targets)))
        raise ValueError(f"y contains NaN or infinity, first in sample {place}. Drop those samples.")
    largest, spread = np.abs(targets).max(), np.ptp(targets)
    if largest > LARGEST_NORM:
        raise ValueError(f"The values of y are too large to compute with ({largest:.0e}, over {LARGEST_NORM:.0e}). Rescale y.")
    if spread < SMALLEST_NORM:
        raise ValueError("y is constant (or varies by less than 1e-75); there is nothing to predict.")
    return targets


def _no_number(values: np.ndarray) -> str:
    """The first value that is no number, with its sample."""
    for sample, value in enumerate(values.tolist()):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"sample {sample} has {value!r}"
    return "they cannot be converted"


def numeric_targets(y: Any, n_samples: int, reader: str) -> np.ndarray:
    """Checked targets for a function ``reader``, as float64."""
    if y is None:
        raise ValueError(f"requires y to be passed, but the target y is None: {reader} learns from numbers.")
    _refuse_missing_labels(y)
    targets = column_or_1d(y, warn=True)
    check_consistent_length(_Rows(n_samples), targets)
    return read_targets(targets)


def task_of(y: np.ndarray) -> str:
    """``"classification"`` for text, booleans and whole numbers; ``"regression"`` for numbers that are no classes.

    These are numbers with fractions, or whole ones that hardly ever repeat.
    """
    y = np.asarray(y)
    if y.dtype.kind not in "iuf":
        return "classification"
    if y.dtype.kind == "f" and not np.equal(np.mod(y, 1), 0).all():
        return "regression"
    n_values = len(np.unique(y))
    return "regression" if n_values > 20 and n_values > len(y) / 5 else "classification"


def read_sample_weight(sample_weight: Any, y: np.ndarray) -> np.ndarray | None:
    """Checked float64 weights, or None when all are equal to one."""
    if sample_weight is None:
        return None
    weight = check_sample_weight(sample_weight, y, dtype=np.float64)
    if (weight < 0).any():
        place = int(np.argmax(weight < 0))
        raise ValueError(f"Negative sample_weight {weight[place]:g} of sample {place}; weights must be at least 0.")
    wrong = (weight > LARGEST_FACTOR) | ((weight < SMALLEST_FACTOR) & (weight > 0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            f"sample_weight {weight[place]:g} of sample {place} is out of range; weights must be 0 or between "
            f"{SMALLEST_FACTOR:g} and {LARGEST_FACTOR:g}."
        )
    return None if bool((weight == 1.0).all()) else weight


def read_folds(cv: Any, y: np.ndarray, *, classifier: bool, shuffle: bool = False, random_state: Any = None) -> list[Fold]:
    """Training and test samples of each fold.

    Parameters
    ----------
    cv : int, splitter or iterable
        A number of folds, a splitter of scikit-learn's, or pairs of training and test samples.
    y : ndarray of shape (n_samples,)
        Labels or targets.
    classifier : bool
        Whether a number of folds means stratified ones, and y are labels (of any kind).
    shuffle : bool, default=False
        Whether a number of folds means shuffled ones; else they are those of ``cross_val_score``.
    random_state : int, RandomState instance or None
        Seed of the shuffling.
    """
    cv = cv.item() if isinstance(cv, np.generic) else cv  # as messages show it
    if classifier and y.dtype.kind != "f":
        y = np.unique(y.astype(str), return_inverse=True)[1]  # labels of any kind as numbers
    whole = isinstance(cv, Integral) and not isinstance(cv, bool)
    if whole and int(cv) > len(y):
        raise ValueError(f"cv={cv} folds are more than the {len(y)} samples.")
    try:
        if isinstance(cv, (str, bytes)):  # they have a split of their own
            raise TypeError(cv)
        splitter = check_cv(cv, y, classifier=classifier)
    except (TypeError, ValueError) as error:
        message = f"cv={cv!r} must be a number of folds of at least 2, or a splitter of scikit-learn's."
        raise ValueError(message) from error
    if whole and shuffle:
        splitter = type(splitter)(int(cv), shuffle=True, random_state=random_state)
    given = not (whole or cv is None or hasattr(cv, "split"))  # then scikit-learn has a list of what the iterable gave
    parts = splitter.cv if given else splitter.split(np.zeros((len(y), 1)), y)
    folds = [_checked_fold(fold, number, len(y)) for number, fold in enumerate(parts)]
    if not folds:
        raise ValueError(f"cv={cv!r} has no folds.")
    return folds


def _checked_fold(fold: Any, number: int, n_samples: int) -> Fold:
    """Training and test samples of a fold that came from anywhere."""
    try:
        train, test = (np.asarray(part) for part in fold)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Fold {number} of cv is not a pair of training and test samples.") from error
    for name, part in (("train", train), ("test", test)):
        if part.ndim != 1 or not len(part):
            raise ValueError(f"Fold {number} of cv has no samples to {name} on.")
        if part.dtype == np.bool_ and len(part) == n_samples:
            continue
        if part.dtype.kind not in "iu" or part.min() < -n_samples or part.max() >= n_samples:
            raise ValueError(f"Fold {number} of cv has samples to {name} on that are no indices of the {n_samples} samples.")
    return train, test


def class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Weights of the loss: the sample weights times those of the classes."""
    result = np.ones(len(codes)) if weight is None else weight.copy()
    if class_weight is None:
        return result
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights=result, minlength=len(classes))
        factors = result.sum() / (len(classes) * totals)
    else:
        factors = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise ValueError(
            f"class_weight must be positive for all classes, got {dict(zip(classes.tolist(), factors.tolist(), strict=True))}."
        )
    return result * factors[codes]


def features_of_share(value: float, n_features: int) -> int:
    """The number of features that a fraction of them is."""
    return max(1, int(float(value) * n_features))


def n_features_wanted(value: int | float, n_features: int) -> int:
    """The number of features asked for, as a number or a fraction; the selector's table has seen to it that it is one.

    Where there are fewer, that is all of them, with a warning, as in scikit-learn's ``SelectKBest``.
    """
    if not isinstance(value, Integral):
        return features_of_share(value, n_features)
    if int(value) > n_features:
        warnings.warn(
            f"n_features_to_select={value} is more than the {n_features} feature(s) of X; as many are taken as there are.",
            UserWarning,
            stacklevel=2,
        )
    return min(int(value), n_features)


def n_features_or_auto(value: int | float | str, n_features: int) -> int | None:
    """The number of features asked for; None for ``"auto"``."""
    return None if isinstance(value, str) else n_features_wanted(value, n_features)


def feature_positions(features: Any, n_features: int, names: Sequence[str] | None, parameter: str) -> np.ndarray:
    """Indices of features given as indices, names or a boolean mask."""
    if features is None:
        return np.empty(0, dtype=np.int64)
    chosen = np.atleast_1d(np.asarray(features))
    if chosen.size == 0:
        return np.empty(0, dtype=np.int64)
    if chosen.ndim != 1:
        raise ValueError(f"{parameter} must be a list of feature indices or names, or a mask.")
    if chosen.dtype == np.bool_:
        if len(chosen) != n_features:
            raise ValueError(f"{parameter} is a mask of length {len(chosen)}, but X has {n_features} features.")
        return np.flatnonzero(chosen)
    if chosen.dtype.kind in "iu":
        wrong = chosen[(chosen < -n_features) | (chosen >= n_features)]
        if len(wrong):
            raise ValueError(f"{parameter} has index {wrong[0]}, but X has {n_features} features.")
        positions = np.where(chosen < 0, chosen + n_features, chosen).astype(np.int64)
    else:
        if names is None:
            raise ValueError(f"{parameter} has names, but X has none; give indices or pass X as a data frame.")
        where = {str(name): position for position, name in enumerate(names)}
        unknown = [str(name) for name in chosen if str(name) not in where]
        if unknown:
            raise ValueError(f"{parameter} names {unknown[0]!r}, which is not a feature of X.")
        positions = np.array([where[str(name)] for name in chosen], dtype=np.int64)
    if len(np.unique(positions)) < len(positions):
        raise ValueError(f"{parameter} names a feature twice.")
    return positions


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
