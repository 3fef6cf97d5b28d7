"""Columns that identify samples, and features that may be derived from the label."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from coterie.cautions.caution import IDENTIFIER, LEAK, Caution
from coterie.data.source import FeatureSource

# Last words of the names of columns that identify samples, or what they belong to.
_WORDS = (
    "id|iid|fid|uuid|identifier|patient|subject|donor|individual|participant|person|family|pedigree|animal|mouse|litter|sample|"
    "specimen|batch|plate|library|lane|hospital|replicate|orig.ident"
)
_NAME = re.compile(rf"(?:^|[\s_.\-])(?:{_WORDS})s?(?:[\s_.\-]?(?:id|no|nr|num|number|name|code|key))?$", re.IGNORECASE)
# Smallest number of values of a column with repeats, and smallest share of samples whose value repeats.
_MIN_VALUES, _MIN_REPEATED = 5, 0.9
# Largest mean number of samples per value, for columns whose name says nothing.
_MAX_UNNAMED_SIZE = 20
# Smallest share of samples in values whose labels are all equal.
_MIN_CONSTANT = 0.95
# Largest number of values of features that are examined, if their names say nothing, and of features with telling names.
_MAX_VALUES, _MAX_NAMED, _MAX_NAMES = 5_000_000, 20, 1_000_000
# Correlation with the label from which on a feature may be a leak, number of best features that are examined, and largest
# correlation of a feature that counts as another one.
_LEAK_CORRELATION, _N_BEST, _SAME = 0.95, 20, 0.95
# Largest number of values of the best features, if there are many samples.
_MAX_BEST_VALUES = 20_000_000
# Smallest share of errors of the next feature, and largest ratio of that of a leak to it.
_MIN_NEXT_ERRORS, _MAX_ERROR_RATIO = 0.05, 0.1
# Largest number of perfect separators that is expected by chance.
_MAX_BY_CHANCE = 0.01
_MAX_SHOWN = 3


def looks_like_id(name: str) -> bool:
    """Return True if the name of a column says that it identifies samples.

    Examples
    --------
    >>> from coterie.cautions.columns import looks_like_id
    >>> [looks_like_id(name) for name in ("patient", "Donor_ID", "PatientID", "orig.ident", "sample.no")]
    [True, True, True, True, True]
    >>> [looks_like_id(name) for name in ("idle", "ID1", "age", "mouse_weight", "acid", "width")]
    [False, False, False, False, False, False]
    """
    return _NAME.search(name) is not None


class _Repeats(NamedTuple):
    """Values of a column that repeat: their number, and whether labels are constant within them (None without labels)."""

    n_values: int
    mean_size: float
    constant: bool | None
    n_runs: int  # of equal labels, if samples are sorted by value


def _repeats(values: np.ndarray, y: np.ndarray | None) -> _Repeats | None:
    """Return a description of a column whose values repeat; None if they do not."""
    codes, sizes = np.unique(values, return_inverse=True, return_counts=True)[1:]
    if len(sizes) < _MIN_VALUES or sizes[sizes > 1].sum() < _MIN_REPEATED * len(values):
        return None
    constant, n_runs = None, 0
    if y is not None:
        labels = np.unique(y, return_inverse=True)[1]
        pairs = np.unique(np.stack([codes, labels]), axis=1)
        single = np.bincount(pairs[0], minlength=len(sizes)) == 1
        constant = bool(sizes[single].sum() >= _MIN_CONSTANT * len(values))
        by_value = labels[np.argsort(codes, kind="stable")]
        n_runs = 1 + int((by_value[1:] != by_value[:-1]).sum())
    return _Repeats(len(sizes), len(values) / len(sizes), constant, n_runs)


def id_caution(name: str, values: np.ndarray, y: np.ndarray | None, *, is_feature: bool) -> Caution | None:
    """Return the caution about a column that identifies samples, or what they belong to; None for any other column.

    Parameters
    ----------
    name : str
        Name of the column.
    values : ndarray of shape (n_samples,)
        Its values; codes (-1 if missing) of a column that is not a feature.
    y : ndarray of shape (n_samples,) or None
        Labels.
    is_feature : bool
        Whether the column is a feature. Otherwise it is text that was ignored, or a column of ``obs``.
    """
    if is_feature and (values.dtype.kind not in "iufb" or not np.array_equal(values, np.rint(values))):
        return None
    named = looks_like_id(name)
    remedy = f"--drop {name}" if " " not in name else f"--drop '{name}'"
    if is_feature and len(np.unique(values)) == len(values):
        consecutive = values.max() - values.min() == len(values) - 1
        if not (named or consecutive) or len(values) < _MIN_VALUES:
            return None
        return Caution(
            IDENTIFIER,
            f"Feature {name!r} has a different whole number in every sample, so it looks like a row number or an identifier. "
            f"Remove it ({remedy}) unless it is a measurement.",
        )
    if not is_feature:
        known = values >= 0
        values, y = values[known], None if y is None else y[known]
    found = _repeats(values, y)
    if found is None:
        return None
    n_classes = 0 if y is None else len(np.unique(y))
    small = found.mean_size <= _MAX_UNNAMED_SIZE and found.n_runs > 3 * n_classes
    if not (named and (is_feature or found.constant is not False)) and not (found.constant and small):
        return None
    labels = ", and all samples with the same value have the same label" if found.constant else ""
    use = f"Pass it as sample groups (--sample-groups {name}, or groups=)"
    drop = f", and not as a feature ({remedy})" if is_feature else ""
    return Caution(
        IDENTIFIER,
        f"{'Feature' if is_feature else 'Column'} {name!r} has {found.n_values} values that repeat{labels}. If it says which "
        f"samples belong together, folds must keep them together. {use}{drop}.",
    )


def feature_id_cautions(source: FeatureSource, y: np.ndarray | None) -> list[Caution]:
    """Return cautions about features that identify samples."""
    names = source.feature_names
    if names is None or source.is_sparse or source.shape[1] > _MAX_NAMES:
        return []
    n_samples, n_features = source.shape
    chosen: Iterable[int] = range(n_features)
    if n_samples * n_features > _MAX_VALUES:
        chosen = [j for j, name in enumerate(names) if looks_like_id(str(name))][:_MAX_NAMED]
    found = []
    for feature in chosen:
        column = np.asarray(source.columns(np.array([feature])))[:, 0]
        if np.isfinite(column).all():
            found.append(id_caution(str(names[feature]), column, y, is_feature=True))
    return _few([one for one in found if one is not None])


def other_id_cautions(columns: Iterable[tuple[str, np.ndarray]], y: np.ndarray | None) -> list[Caution]:
    """Return cautions about columns that are not features."""
    found = [id_caution(name, values, y, is_feature=False) for name, values in columns]
    return _few([one for one in found if one is not None])


def _few(found: list[Caution]) -> list[Caution]:
    """Return the first cautions. Many columns that look like identifiers are something else, such as counts."""
    return found if len(found) <= _MAX_SHOWN else []


def leak_caution(source: FeatureSource, correlation: np.ndarray, y: np.ndarray, *, classes: bool) -> Caution | None:
    """Return the caution about a feature that alone determines the label, where no other feature nearly does.

    Parameters
    ----------
    source : FeatureSource
        Features.
    correlation : ndarray of shape (n_features,)
        Largest |correlation| of each feature with a class or the target.
    y : ndarray of shape (n_samples,)
        Labels or targets.
    classes : bool
        Whether y are classes.
    """
    n_best = min(max(2, min(_N_BEST, _MAX_BEST_VALUES // len(y))), len(correlation))
    best = np.argsort(-correlation, kind="stable")[:n_best]
    columns = source.columns(best)
    values = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
    if not classes:
        errors = 1.0 - correlation[best]
        most, other = 1.0 - _LEAK_CORRELATION, 2.0 * (1.0 - _LEAK_CORRELATION)
    else:
        codes = np.unique(y, return_inverse=True)[1]
        if _expected_separators(codes, source.shape[1]) > _MAX_BY_CHANCE:
            return None
        errors = np.array([_share_of_errors(column, codes) for column in values.T])
        most, other = _MIN_NEXT_ERRORS * _MAX_ERROR_RATIO, _MIN_NEXT_ERRORS
    first = int(np.argmin(errors))
    scaled = values - values.mean(axis=0)
    scaled /= np.maximum(np.sqrt((scaled**2).sum(axis=0)), 1e-300)
    different = np.abs(scaled.T @ scaled[:, first]) < _SAME
    if different.any():
        following = float(errors[different].min())
        if following < other:
            return None  # Several different features determine the label, so it is easy to predict.
        most = following * _MAX_ERROR_RATIO if classes else most
    if errors[first] > most:
        return None
    if not different.any() and n_best < len(correlation):
        return None  # A group of many correlated features is a signal rather than a leak.
    names = source.feature_names
    name = f"{int(best[first])}" if names is None else repr(str(names[int(best[first])]))
    what = (
        f"separates the classes ({100 * (1 - errors[first]):.1f} % of the samples)"
        if classes
        else f"has a correlation of {correlation[best[first]]:.3f} with the target"
    )
    return Caution(
        LEAK,
        f"Feature {name} alone {what}, and no other feature nearly does. Check that it is not derived from the label or "
        "measured after it. If it is, remove it (--drop).",
    )


def _share_of_errors(column: np.ndarray, codes: np.ndarray) -> float:
    """Return about the share of samples that are misplaced if the classes are intervals of the feature.

    Equal values form one place, with its most frequent class. Every change of class beyond the necessary number of changes
    counts as an error, and so does every sample of another class in a place.
    """
    values, where = np.unique(column, return_inverse=True)
    n_classes = int(codes.max()) + 1
    table = np.bincount(where * n_classes + codes, minlength=len(values) * n_classes).reshape(-1, n_classes)
    major = table.argmax(axis=1)
    changes = int((major[1:] != major[:-1]).sum())
    wrong = len(codes) - int(table.max(axis=1).sum())
    return (wrong + max(changes - n_classes + 1, 0) / 2) / len(codes)


def _expected_separators(codes: np.ndarray, n_features: int) -> float:
    """Return the expected number of features that separate the classes perfectly by chance."""
    counts = np.bincount(codes)
    orders = gammaln(len(counts) + 1) + gammaln(counts + 1).sum() - gammaln(len(codes) + 1)
    return float(n_features * np.exp(min(orders, 0.0)))
