"""Statistics of features in each class and the rest: means, fold changes, detection rates, standardised differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, stats
from sklearn.base import BaseEstimator

from coterie.data.source import FeatureSource
from coterie.groups import FeatureGroups
from coterie.inputs.opening import opened, source_of
from coterie.inputs.targets import class_codes
from coterie.inputs.types import FeaturesLike, TargetsLike
from coterie.selection import feature_positions

if TYPE_CHECKING:
    import pandas as pd

# Added to means before division, as in scanpy. Features with mean zero have a large fold change, not an infinite one.
_OFFSET = 1e-9
# Largest number of values per block.
_BLOCK_VALUES = 1 << 22
# Columns of tables, in this order. Group, role and weight are present only if groups are given.
_GROUP_COLUMNS = ["group", "role"]
_STATISTICS = ["mean", "mean_rest", "log_fold_change", "detected", "detected_rest", "effect"]


@dataclass(frozen=True, eq=False)
class ClassStatistics:
    """Statistics of features in each class and in the rest of the samples, returned by :func:`coterie.class_statistics`.

    Arrays have one row per feature and one column per class.

    Attributes
    ----------
    features : ndarray of int of shape (n_features,)
        Indices of the features.
    names : tuple of str or None
        Names of the features, if the data have names.
    classes : list
        Labels of the classes.
    counts : ndarray of int of shape (n_classes,)
        Number of samples per class.
    mean, mean_rest : ndarray
        Mean value in the class, and in all other samples.
    variance, variance_rest : ndarray
        Sample variances; NaN for a single sample.
    detected, detected_rest : ndarray
        Share of samples with a positive value. NaN for features with negative values, for which zero does not mean absence.
    log_fold_change : ndarray
        Logarithm to base 2 of the fold change, *for values that are log1p of counts*:
        ``log2((expm1(mean) + 1e-9) / (expm1(mean_rest) + 1e-9))``, as in scanpy. NaN for features with negative values.
    effect : ndarray
        Difference of the means divided by the pooled within-group standard deviation (Cohen's d).
    weight : ndarray or None
        Signed weight of the features in the model of each class, if groups are given; NaN for affiliated features.
    group, is_support : ndarray of shape (n_features,) or None
        Number of the feature's group, starting at 1, and whether it is the support feature, if groups are given.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import class_statistics
    >>> found = class_statistics(np.log1p([[3.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 4.0]]), ["B", "B", "T", "T"])
    >>> found.detected
    array([[1. , 0. ],
           [0.5, 1. ]])
    """

    features: np.ndarray
    names: tuple[str, ...] | None
    classes: list[Any]
    counts: np.ndarray
    mean: np.ndarray
    mean_rest: np.ndarray
    variance: np.ndarray
    variance_rest: np.ndarray
    detected: np.ndarray
    detected_rest: np.ndarray
    log_fold_change: np.ndarray
    effect: np.ndarray
    weight: np.ndarray | None = None
    group: np.ndarray | None = None
    is_support: np.ndarray | None = None

    @property
    def p_value(self) -> np.ndarray:
        """Two-sided p-values of Welch's t-test between class and rest, per feature; NaN if undefined.

        They are not corrected for multiple tests. Features that were selected with the same labels have small p-values for
        that reason alone.
        """
        n = self.counts.astype(float)
        with np.errstate(all="ignore"):
            test = stats.ttest_ind_from_stats(
                self.mean, np.sqrt(self.variance), n, self.mean_rest, np.sqrt(self.variance_rest), n.sum() - n, equal_var=False
            )
        return np.asarray(test.pvalue)

    @property
    def columns(self) -> list[str]:
        """Columns of :meth:`rows` and :meth:`to_frame`."""
        grouped = self.group is not None
        return [*(_GROUP_COLUMNS * grouped), "feature", "name", "class", *(["weight"] * grouped), *_STATISTICS]

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per feature and class."""
        figures = {name: getattr(self, name).tolist() for name in _STATISTICS}
        weight = None if self.weight is None else self.weight.tolist()
        result = []
        for i, feature in enumerate(self.features.tolist()):
            place: dict[str, Any] = {"feature": feature, "name": None if self.names is None else self.names[i]}
            if self.group is not None and self.is_support is not None:
                role = "support" if self.is_support[i] else "affiliated"
                place = {"group": int(self.group[i]), "role": role, **place}
            for c, label in enumerate(self.classes):
                own = {} if weight is None else {"weight": weight[i][c]}
                result.append({**place, "class": label, **own, **{name: values[i][c] for name, values in figures.items()}})
        return result

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per feature and class (requires ``pip install coterie[tabular]``)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame() requires pandas: pip install 'coterie[tabular]'.") from error
        return pd.DataFrame(self.rows(), columns=self.columns)

    def __repr__(self) -> str:
        return f"<ClassStatistics of {len(self.features):,} features in {len(self.classes)} classes>"


def class_statistics(
    X: FeaturesLike, y: TargetsLike = None, features: ArrayLike | FeatureGroups | BaseEstimator | None = None
) -> ClassStatistics:
    """Compute statistics of features in each class and in the rest of the samples, such as fold changes of marker genes.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame, AnnData, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
        Data. Sparse data are not densified. Fold changes and detection rates assume log1p of counts, the usual form of
        single-cell data after ``normalize_total`` and ``log1p``. If the X of AnnData is scaled, open an unscaled layer:
        ``open_features(adata, label="bulk_labels", layer="raw")``.
    y : array-like of shape (n_samples,) or str, default=None
        Labels, or the name of a column of ``obs`` for AnnData. None means the labels of the path, data set or store.
    features : array-like, FeatureGroups or fitted estimator with ``groups_``, default=None
        Indices or names of features, or a mask. None means all features. For groups or a model, all members of the groups
        are used, with their weights. (Members are matched by name if both the groups and X have names, so the order of the
        features may differ.)

    Returns
    -------
    statistics : ClassStatistics
        Arrays by feature and class. ``to_frame()`` returns a table with one row per feature and class.

    Notes
    -----
    The fold change compares means of logarithms, transformed back by ``expm1``. This is scanpy's definition in
    ``rank_genes_groups``, with natural logarithms. It is not the ratio of mean counts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import GroupDiscoveryClassifier, class_statistics
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GroupDiscoveryClassifier(1, threshold=0.9).fit(X, y)
    >>> frame = class_statistics(X, y, model).to_frame()
    >>> frame[["name", "role", "class", "mean", "effect"]].head(3).round(2)
                    name     role  class  mean  effect
    0  petal length (cm)  support      0  1.46   -5.05
    1  petal length (cm)  support      1  4.26    0.43
    2  petal length (cm)  support      2  5.55    2.19
    """
    X, y = opened(X, y)
    source = source_of(X)
    classes, codes = class_codes(y, source.shape[0], "class_statistics")
    groups = features if isinstance(features, FeatureGroups) else getattr(features, "groups_", None)
    facts: dict[str, Any] = {}
    if isinstance(groups, FeatureGroups):
        chosen, facts = _of_groups(groups, source, classes.tolist())
    elif features is None:
        chosen = np.arange(source.shape[1])
    else:
        chosen = feature_positions(features, source.shape[1], source.feature_names, "features")
    names = source.feature_names
    return ClassStatistics(
        features=chosen,
        names=None if names is None else tuple(str(names[int(j)]) for j in chosen),
        classes=classes.tolist(),
        counts=np.bincount(codes, minlength=len(classes)),
        **_statistics(source, codes, len(classes), chosen),
        **facts,
    )


def _of_groups(groups: FeatureGroups, source: FeatureSource, classes: list[Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the members of groups as columns of a source, and their group, role and weights."""
    members = [int(j) for group in groups for j in group.members]
    names = source.feature_names
    if names is not None and all(group.names is not None for group in groups):
        wanted = [name for group in groups for name in group.names or ()]
        here = [str(names[j]) if j < len(names) else None for j in members]
        if here != wanted:
            members = feature_positions(wanted, source.shape[1], names, "features").tolist()
    if members and max(members) >= source.shape[1]:
        raise ValueError(f"The groups have feature {max(members)}, but X has {source.shape[1]} features.")
    known = groups.classes
    if known is not None and [str(label) for label in known] != [str(label) for label in classes]:
        raise ValueError(f"The model has the classes {_shown(known)}, but y has {_shown(classes)}.")
    support = np.array([i == 0 for group in groups for i in range(len(group))], dtype=bool)
    weight = np.full((len(members), len(classes)), np.nan)
    if groups.class_weights is not None:
        weight[support] = groups.class_weights
    number = np.array([n for n, group in enumerate(groups, start=1) for _ in group.members], dtype=np.int64)
    return np.array(members, dtype=np.int64), {"weight": weight, "group": number, "is_support": support}


def _shown(labels: list[Any]) -> str:
    return ", ".join(repr(label) for label in labels[:5]) + (", …" if len(labels) > 5 else "")


def _statistics(source: FeatureSource, codes: np.ndarray, n_classes: int, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Return all arrays of the statistics, computed in one pass over the selected features."""
    shape = (len(chosen), n_classes)
    mean, scatter, detected = np.empty(shape), np.empty(shape), np.empty(shape)
    negative = np.zeros(len(chosen), dtype=bool)
    counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
    for rows, columns in _blocks(source, chosen):
        of_block = _of_sparse if sparse.issparse(columns) else _of_dense
        mean[rows], scatter[rows], detected[rows], negative[rows] = of_block(columns, codes, counts)
    wrong = np.flatnonzero(~np.isfinite(mean).all(axis=1))
    if len(wrong):
        names, first = source.feature_names, int(chosen[wrong[0]])
        label = first if names is None else str(names[first])
        raise ValueError(
            f"Input X contains NaN or infinity in {len(wrong)} of the features. The first is {label!r}. Impute them, or omit "
            "these features."
        )
    rest = counts.sum() - counts
    overall = mean @ counts / counts.sum()
    mean_rest = (overall[:, None] * counts.sum() - mean * counts) / rest
    # Scatter of all other samples about their mean, computed from the scatter of the classes and of the class means.
    apart = counts * (mean - overall[:, None]) ** 2
    between = apart.sum(axis=1, keepdims=True) - apart - rest * (mean_rest - overall[:, None]) ** 2
    scatter_rest = np.maximum(scatter.sum(axis=1, keepdims=True) - scatter + np.maximum(between, 0.0), 0.0)
    found = detected.sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        pooled = np.sqrt((scatter + scatter_rest) / (counts.sum() - 2.0))
        difference = mean - mean_rest
        effect = np.where(difference == 0.0, 0.0, difference / pooled)
        fold = np.log2((np.expm1(mean) + _OFFSET) / (np.expm1(mean_rest) + _OFFSET))
        variance = np.where(counts > 1, scatter / (counts - 1.0), np.nan)
        variance_rest = np.where(rest > 1, scatter_rest / (rest - 1.0), np.nan)
    unknown = negative[:, None]
    return {
        "mean": mean,
        "mean_rest": mean_rest,
        "variance": variance,
        "variance_rest": variance_rest,
        "detected": np.where(unknown, np.nan, detected / counts),
        "detected_rest": np.where(unknown, np.nan, (found - detected) / rest),
        "log_fold_change": np.where(unknown, np.nan, fold),
        "effect": effect,
    }


def _blocks(source: FeatureSource, chosen: np.ndarray) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of the selected columns."""
    width = max(1, _BLOCK_VALUES // max(1, source.shape[0]))
    for start in range(0, len(chosen), width):
        yield slice(start, min(start + width, len(chosen))), source.columns(chosen[start : start + width])


def _of_dense(columns: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return mean, scatter and number of positive values per class, and a mask of columns with negative values."""
    shape = (columns.shape[1], len(counts))
    mean, scatter, detected = np.empty(shape), np.empty(shape), np.empty(shape)
    for c in range(len(counts)):
        own = np.asfortranarray(
            columns[codes == c], dtype=np.float64
        )  # the sum of a column must not depend on the number of columns
        mean[:, c] = own.mean(axis=0)
        scatter[:, c] = ((own - mean[:, c]) ** 2).sum(axis=0)
        detected[:, c] = (own > 0.0).sum(axis=0)
    return mean, scatter, detected, np.asarray((columns < 0).any(axis=0))


def _of_sparse(columns: Any, codes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the same as :func:`_of_dense`, computed from the stored values only."""
    matrix = sparse.csc_array(columns)
    n_columns, n_classes = matrix.shape[1], len(counts)
    values = matrix.data.astype(np.float64)
    column = np.repeat(np.arange(n_columns), np.diff(matrix.indptr))
    cell = column * n_classes + codes[matrix.indices]

    def by_class(weights: np.ndarray) -> np.ndarray:
        return np.bincount(cell, weights=weights, minlength=n_columns * n_classes).reshape(n_columns, n_classes)

    mean = by_class(values) / counts
    stored = by_class(np.ones(len(values)))
    scatter = by_class((values - mean.ravel()[cell]) ** 2) + (counts - stored) * mean**2
    negative = np.bincount(column[values < 0.0], minlength=n_columns) > 0
    return mean, scatter, by_class((values > 0.0).astype(np.float64)), negative
