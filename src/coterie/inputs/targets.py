"""Checks of labels, targets, sample weights and class weights."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from coterie._parameters import LARGEST_FACTOR, SMALLEST_FACTOR
from coterie._sklearn import check_sample_weight, check_targets
from coterie.data.source import LARGEST_NORM, SMALLEST_NORM

# Range of integer labels up to which they are counted instead of sorted.
_MAX_LABEL_RANGE = 1 << 16
# Whole numbers with more values than this look like counts if the rarest has less than this share of the most frequent one.
_MANY_CLASSES, _UNEQUAL = 10, 0.2


def read_target(y: Any, n_samples: int, reader: BaseEstimator, hint: str = "") -> np.ndarray:
    """Return labels or numbers as a checked 1D array. ``hint`` is appended to the message if y is None."""
    if y is None:
        name = type(reader).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None.{hint}")
    _require_labels(y)
    y = check_targets(y)
    check_consistent_length(Rows(n_samples), y)
    return y


class Rows:
    """Object with a number of samples, for ``check_consistent_length``."""

    def __init__(self, n_samples: int) -> None:
        self.shape = (n_samples,)

    def __len__(self) -> int:
        return self.shape[0]


def _require_labels(y: Any) -> None:
    """Raise ``ValueError`` with number and place of missing labels (None or NaN), if there are any."""
    if isinstance(y, np.ma.MaskedArray) and y.mask.any():
        raise ValueError(f"y contains {int(y.mask.sum())} masked (missing) label(s). Drop these samples.")
    try:
        labels = np.asarray(y)
    except ValueError as error:  # NumPy's message is about the shape of an array
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError("y must be one-dimensional, but its entries are sequences of different lengths.") from error
    if labels.ndim == 2 and labels.shape[1] == 0:
        raise ValueError("y has no columns. Pass one value per sample.")
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, but it has {labels.shape[1]} columns. Pass one column. For several numeric targets, use "
            "GroupDiscoveryRegressor (task='regression')."
        )
    if labels.ndim != 1 or labels.dtype.kind not in "fO":
        return
    missing = np.flatnonzero([_is_missing(label) for label in labels] if labels.dtype.kind == "O" else np.isnan(labels))
    if len(missing):
        raise ValueError(
            f"y contains NaN or None: {len(missing)} label(s) are missing. The first is that of sample {missing[0]}. "
            "Drop these samples."
        )


def _is_missing(label: Any) -> bool:
    """Return True if a label is None, NaN or pandas.NA."""
    if isinstance(label, (str, bytes)):
        return False
    return label is None or str(label) in ("nan", "NaN", "<NA>", "NaT")


def class_codes(y: Any, n_samples: int, reader: str) -> tuple[np.ndarray, np.ndarray]:
    """Check labels and return their classes and the class code of each sample. ``reader`` is named in errors."""
    if y is None:
        raise ValueError(f"{reader} requires y to be passed, but the target y is None.")
    _require_labels(y)
    labels = column_or_1d(y, warn=True)
    check_consistent_length(Rows(n_samples), labels)
    classes, codes = _codes(labels)
    _warn_about_lone_classes(classes, np.bincount(codes, minlength=len(classes)))
    return classes, codes


def read_labels(y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, and the class code of each sample."""
    classes, codes = _codes(y)
    weight = np.ones(len(y)) if weight is None else weight
    totals = np.bincount(codes, weights=weight, minlength=len(classes))
    counts = np.bincount(codes[weight > 0], minlength=len(classes))
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        raise ValueError(
            f"Class {classes.tolist()[empty[0]]!r} has no samples of positive weight. Give at least one of its samples a "
            "positive weight, or remove the class."
        )
    # A sample of weight 2 counts as two samples.
    _warn_about_lone_classes(classes, np.where(totals >= 2, np.maximum(counts, 2), counts))
    return classes, codes


class LoneClassWarning(UserWarning):
    """Warning about a class with a single sample."""


def _warn_about_lone_classes(classes: np.ndarray, counts: np.ndarray) -> None:
    """Warn about classes with one sample, which all selectors and scores treat like any other class."""
    lone = np.flatnonzero(counts == 1)
    if len(lone):
        others = f" and {len(lone) - 1} other class(es) have" if len(lone) > 1 else " has"
        warnings.warn(
            f"Class {classes.tolist()[lone[0]]!r}{others} one sample. It is used like any other class, but features that "
            "separate it cannot be distinguished from chance, and no fold can both train and test on it. Drop or merge such "
            "classes.",
            LoneClassWarning,
            stacklevel=4,
        )


def _unique(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted distinct labels and the position of each label, as numpy.unique does; integers without sorting."""
    if y.dtype.kind != "i" or not len(y) or int(y.max()) - int(y.min()) >= _MAX_LABEL_RANGE:
        classes, codes = np.unique(y, return_inverse=True)
        return classes, codes
    lowest = int(y.min())
    codes = y.astype(np.intp) - lowest
    is_label = np.bincount(codes) > 0
    return (np.flatnonzero(is_label) + lowest).astype(y.dtype), (np.cumsum(is_label) - 1)[codes]


def _codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, at least two, and the class code of each sample."""
    if y.dtype.kind == "S":  # scikit-learn 1.6 only warns, later versions refuse them.
        raise TypeError("The labels in y are bytes. Convert them to text: y.astype(str).")
    if y.dtype.kind != "O" or all(isinstance(label, str) for label in y):
        check_classification_targets(y)
    try:
        classes, codes = _unique(y)
    except TypeError:  # labels that cannot be compared are sorted by type and text
        known = sorted(set(y.tolist()), key=lambda label: (type(label).__name__, str(label)))
        classes = np.empty(len(known), dtype=object)
        classes[:] = known
        codes = np.array([known.index(label) for label in y])
    if len(classes) == 1:
        raise ValueError(
            f"y has only one class ({classes.tolist()[0]!r}). A classifier requires at least two. Check the labels."
        )
    return classes, codes


def read_normality(y: Any, n_samples: int) -> np.ndarray:
    """Check labels of an outlier detector: 1 for normal samples, -1 for outliers; all normal if y is None."""
    if y is None:
        return np.ones(n_samples, dtype=np.int64)
    _require_labels(y)
    y = check_targets(y)
    check_consistent_length(Rows(n_samples), y)
    found = list(y) if y.dtype.kind == "O" else np.unique(y).tolist()
    wrong = [label for label in found if isinstance(label, (bool, str, bytes)) or label not in (1, -1)]
    if wrong:
        raise ValueError(
            f"y has the label {wrong[0]!r}. The labels of an outlier detector must be 1 for normal samples and -1 for "
            "outliers. Pass y=None if all samples are normal."
        )
    return y.astype(np.int64)


def read_targets(y: np.ndarray) -> np.ndarray:
    """Return the targets of a regression as float64."""
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Targets must be numbers: {_first_non_number(np.asarray(y))}. For class labels, use a classifier "
            "(task='classification')."
        ) from error
    if targets.dtype.kind != "f" or not np.isfinite(targets).all():
        place = int(np.argmax(~np.isfinite(targets)))
        raise ValueError(f"y contains NaN or infinity, first in sample {place}. Drop these samples.")
    largest, spread = np.abs(targets).max(), np.ptp(targets)
    if largest > LARGEST_NORM:
        raise ValueError(f"The values of y are too large ({largest:.0e}, above {LARGEST_NORM:.0e}). Rescale y.")
    if spread < SMALLEST_NORM:
        raise ValueError("y is constant (or varies by less than 1e-75), so there is nothing to predict. Check the target.")
    return targets


class CountWarning(UserWarning):
    """Warning about counts that are not whole."""


def check_counts(targets: np.ndarray, weight: np.ndarray | None) -> None:
    """Raise a ``ValueError`` for numbers that cannot be counts. ``weight`` is None if all are one.

    Counts that are not whole raise a warning unless there are weights: rates with their exposures as weights are equivalent
    to counts with an offset.
    """
    negative = np.flatnonzero(targets < 0)
    if len(negative):
        raise ValueError(
            f"Counts must be at least 0, but y is {targets[negative[0]]:g} in sample {negative[0]} ({len(negative)} negative "
            "value(s)). Correct y, or use loss='squared' (task='regression')."
        )
    if not (targets if weight is None else targets[weight > 0]).any():
        raise ValueError("All counts of positive weight are 0, so there is nothing to predict. Check y.")
    broken = np.flatnonzero(np.mod(targets, 1.0) != 0.0)
    if weight is None and len(broken):
        warnings.warn(
            f"{len(broken)} value(s) of y are not whole numbers, the first is {targets[broken[0]]:g} in sample {broken[0]}. "
            "Pass counts, with the logarithm of their exposure as offset, or rates with their exposure as sample_weight.",
            CountWarning,
            stacklevel=2,
        )


def _first_non_number(values: np.ndarray) -> str:
    """Describe the first value that is not a number, with its sample."""
    for sample, value in enumerate(values.tolist()):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"sample {sample} has {value!r}"
    return "they cannot be converted"


def numeric_targets(y: Any, n_samples: int, reader: str) -> np.ndarray:
    """Check targets and return them as float64. ``reader`` is the function named in errors."""
    if y is None:
        raise ValueError(f"{reader} requires y to be passed, but the target y is None.")
    _require_labels(y)
    targets = column_or_1d(y, warn=True)
    check_consistent_length(Rows(n_samples), targets)
    return read_targets(targets)


def task_of(y: np.ndarray) -> str:
    """Return ``"regression"`` for non-integers and for integers that rarely repeat, else ``"classification"``.

    Structured arrays contain survival times (``"survival"``). Text and booleans are classes. Integers rarely repeat if they
    have more than 20 distinct values, which are more than a fifth of the number of samples. Several columns are numbers.
    """
    y = np.asarray(y)
    if y.ndim == 2:
        return "regression"
    if y.dtype.names is not None:
        return "survival"
    if y.dtype.kind not in "iuf":
        return "classification"
    if y.dtype.kind == "f" and not np.equal(np.mod(y, 1), 0).all():
        return "regression"
    n_values = len(np.unique(y))
    return "regression" if n_values > 20 and n_values > len(y) / 5 else "classification"


class SettledTask(NamedTuple):
    """A task that labels imply, and a sentence about the choice, empty if it is obvious."""

    task: str
    note: str


def settle_by_labels(y: np.ndarray, groups: np.ndarray | None = None) -> SettledTask:
    """Return the task that labels imply. Whole numbers that could also be a quantity are announced.

    The task is that of :func:`task_of`, except for whole numbers with at least three values, one of which only one sample (or
    one sample group, in ``groups``) has: such classes cannot be validated, so the numbers are a quantity. Several columns are
    several numeric targets.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.inputs.targets import settle_by_labels
    >>> settle_by_labels(np.array([0, 1, 0, 1]))
    SettledTask(task='classification', note='')
    >>> settle_by_labels(np.array([0, 0, 0, 1, 1, 2])).task
    'regression'
    """
    y = np.asarray(y)
    if y.ndim == 2:
        return SettledTask("regression", _like_survival_times(y))
    task = task_of(y)
    if task != "classification" or y.dtype.kind not in "iuf":
        return SettledTask(task, "")
    values, sizes = np.unique(y, return_counts=True)
    if groups is not None:
        sizes = np.array([len(set(np.asarray(groups)[y == value].tolist())) for value in values])
    if len(values) > 2 and sizes.min() == 1:
        unit = "sample" if groups is None else "sample group"
        return SettledTask(
            "regression",
            f"The {len(values)} whole numbers of y are taken as a quantity (regression), because only one {unit} has the "
            f"value {values[int(sizes.argmin())]:g}. For counts, use task='counts'. For classes, use "
            "task='classification' and drop or merge rare ones.",
        )
    if len(values) > _MANY_CLASSES and sizes.min() < _UNEQUAL * sizes.max():
        return SettledTask(
            task, f"y is taken as {len(values)} classes. For a quantity, use task='counts' or task='regression'."
        )
    return SettledTask(task, "")


def _like_survival_times(y: np.ndarray) -> str:
    """Return a sentence if two or three columns could be survival times, empty if not."""
    if y.shape[1] not in (2, 3) or not any(np.isin(column, (0, 1)).all() for column in y.T):
        return ""
    return (
        f"The {y.shape[1]} columns of y are taken as numeric targets (regression), although one contains 0 and 1 only. For "
        "survival times and events, use task='survival'."
    )


def read_sample_weight(sample_weight: Any, y: np.ndarray) -> np.ndarray | None:
    """Return checked float64 weights, or None if all are one."""
    if sample_weight is None:
        return None
    try:
        weight = check_sample_weight(sample_weight, y, dtype=np.float64)
    except ValueError as error:
        if "convert" not in str(error):
            raise
        raise ValueError(f"sample_weight must be numbers: {_first_non_number(np.asarray(sample_weight))}.") from error
    if (weight < 0).any():
        place = int(np.argmax(weight < 0))
        raise ValueError(f"Negative sample_weight {weight[place]:g} of sample {place}. Weights must be at least 0.")
    wrong = (weight > LARGEST_FACTOR) | ((weight < SMALLEST_FACTOR) & (weight > 0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            f"sample_weight {weight[place]:g} of sample {place} is out of range. Weights must be 0 or between "
            f"{SMALLEST_FACTOR:g} and {LARGEST_FACTOR:g}."
        )
    return None if bool((weight == 1.0).all()) else weight


def class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the weights of the loss: sample weights times class weights."""
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


def spread_sample(used: np.ndarray, classes: np.ndarray | None, most: int) -> np.ndarray:
    """Return at most ``most`` samples at regular steps, with equal numbers per class as far as possible."""
    if len(used) <= most:
        return used
    if classes is None:
        return used[np.linspace(0, len(used) - 1, most).round().astype(np.int64)]
    parts = [used[classes[used] == label] for label in np.unique(classes[used])]
    left, kept = most, []
    for number, part in enumerate(sorted(parts, key=len)):  # large classes take the share that small ones do not use
        size = min(len(part), left // (len(parts) - number))
        left -= size
        kept.append(part[np.linspace(0, len(part) - 1, size).round().astype(np.int64)])
    return np.sort(np.concatenate(kept))
