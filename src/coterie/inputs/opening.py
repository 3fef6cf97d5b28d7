"""Opening of the data that users pass to ``fit``, ``predict``, ``group_confidence`` or ``report``.

The function :func:`unwrap` opens containers of features: paths, data sets, stores, AnnData objects, Dask arrays, lazy
frames and dictionaries of several matrices. It returns an array, a sparse matrix, a data frame or a source. The function
:func:`open_input` checks it together with labels, weights and covariates, and returns an :class:`Input`, which all other
packages use.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from coterie.data.covariates import Covariates, as_covariates, explains_target
from coterie.data.dataset import Dataset
from coterie.data.encoding import strip_block
from coterie.data.errors import is_address
from coterie.data.source import FeatureSource
from coterie.data.view import mostly_zero
from coterie.inputs.arrays import Reading, plain_source, read_source
from coterie.inputs.blocks import is_blocks, open_blocks
from coterie.inputs.frames import has_other_columns, is_lazy
from coterie.inputs.naming import named, names_at
from coterie.inputs.offsets import explains_numbers, read_offset
from coterie.inputs.placement import move_to_cluster, on_cluster, supports_cluster
from coterie.inputs.sample_groups import read_sample_groups
from coterie.inputs.several_targets import are_several, read_several
from coterie.inputs.survival import read_survival, require_events
from coterie.inputs.targets import read_labels, read_normality, read_sample_weight, read_target, read_targets
from coterie.inputs.types import (
    ClientLike,
    CovariatesLike,
    FeaturesLike,
    NamesLike,
    SampleGroupsLike,
    SamplesLike,
    TargetsLike,
    WeightsLike,
)

if TYPE_CHECKING:
    from coterie.data.encoding import TableEncoding
    from coterie.data.store import Store


class Unwrapped(NamedTuple):
    """Content of a container.

    Attributes
    ----------
    X : array, sparse matrix, data frame or FeatureSource
        Features.
    y : array-like or None
        Labels passed by the user, or else those of the container.
    origin : Dataset, Store or None
        The container, if it is a data set or a store.
    """

    X: Any
    y: Any
    origin: Dataset | Store | None = None

    @property
    def covariates(self) -> Covariates | None:
        """Covariates of the container, or None."""
        return None if self.origin is None else self.origin.covariates

    @property
    def sample_groups(self) -> np.ndarray | None:
        """Sample groups of the container, or None."""
        return None if self.origin is None else self.origin.sample_groups

    @property
    def sample_weight(self) -> np.ndarray | None:
        """Sample weights of the container, or None."""
        return self.origin.sample_weight if isinstance(self.origin, Dataset) else None


class NamedColumns(NamedTuple):
    """Columns of a table that the user has named, and the encoding with which it is read.

    Attributes
    ----------
    covariates : list of str
        Columns of covariates.
    weight : str or None
        Column of sample weights.
    encoding : TableEncoding or None
        Encoding of a fitted model, for new data.
    features : sequence of str or None
        Features that the model reads.
    """

    covariates: Sequence[str] = ()
    weight: str | None = None
    encoding: TableEncoding | None = None
    features: Sequence[str] | None = None

    @classmethod
    def of(cls, covariates: CovariatesLike, sample_weight: WeightsLike) -> NamedColumns:
        """Return the columns among the arguments of a function, which may also be values."""
        names: list[str] = []
        if isinstance(covariates, str):
            names = [covariates]
        elif isinstance(covariates, Sequence) and covariates and all(isinstance(name, str) for name in covariates):
            names = [str(name) for name in covariates]
        return cls(names, sample_weight if isinstance(sample_weight, str) else None)

    @property
    def options(self) -> dict[str, Any]:
        """Options of :func:`coterie.data.open_features`."""
        found: dict[str, Any] = {} if not self.covariates else {"covariates": list(self.covariates)}
        found |= {} if self.weight is None else {"weight": self.weight}
        return found if self.encoding is None else found | {"columns": self.encoding.reading(self.features or ())}

    def of_block(self, block: str) -> NamedColumns | None:
        """Return the encoding and the features of one of several matrices; None if no encoded column is to be read."""
        own = None if self.encoding is None else self.encoding.of_block(block)
        names = [strip_block(str(name), block) for name in self.features or ()]
        features = [name for name in names if name is not None]
        return NamedColumns(encoding=own, features=features) if own is not None and features else None

    def reads(self, X: Any) -> bool:
        """Return True if a data frame has columns that the encoding reads."""
        if self.encoding is None:
            return False
        names = set(map(str, X.columns))
        return any(column.column in names for column in self.encoding.columns)


def unwrap(
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    groups: SampleGroupsLike = None,
    reader: BaseEstimator | str | None = None,
    client: ClientLike = None,
    named: NamedColumns | None = None,
) -> Unwrapped:
    """Open a container; return anything else unchanged.

    Parameters
    ----------
    X : array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store, Dask array, mapping or MuData
        Features. Stores and Dask arrays remain with the workers of a Dask cluster if a client is given or active and the
        reader supports it. Otherwise Dask arrays, as well as lazy frames, are computed. A mapping has several matrices of
        the same samples.
    y : array-like, str or None
        Labels. A string is the name of a column: of ``obs`` for an AnnData object, of the file for a path. None means the
        labels of the container.
    groups : array-like, str or None
        Sample groups. A string is the name of a column, as for y. Anything else is ignored here.
    reader : estimator or str, optional
        Estimator that reads the data, or name of a function that supports clusters; None for functions that do not.
    client : distributed.Client, optional
        Client of a cluster.
    named : NamedColumns, optional
        Further named columns. With it, also data frames are containers, if they have named columns or columns that are not
        numeric. Functions pass it. For estimators, data frames are matrices, as in scikit-learn.
    """
    held: Any = X
    labels: Any = y
    if _is_matrix(held) and client is None and not isinstance(labels, str) and not isinstance(groups, str):
        return Unwrapped(held, labels)  # not a container
    from coterie.data.opening import is_table, open_features  # A fit on arrays needs neither readers nor stores.
    from coterie.data.readers.h5ad import is_anndata
    from coterie.data.readers.h5mu import is_mudata
    from coterie.data.store import Store, is_store

    if is_blocks(held):
        held = open_blocks(held, labels, groups, partial(_open_block, named))
        labels, groups = (None if isinstance(given, str) else given for given in (labels, groups))
    in_memory = is_anndata(held) or is_mudata(held)
    options = {} if named is None else named.options
    if (
        named is not None
        and is_table(held)
        and (is_raw(held, labels, groups, options) if named.encoding is None else named.reads(held))
    ):
        held = open_features(
            held,
            label=labels if isinstance(labels, str) else False,
            sample_groups=groups if isinstance(groups, str) else None,
            **options,
        )
        labels, groups = held.y if isinstance(labels, str) else labels, None
    elif isinstance(held, (str, os.PathLike)) or in_memory:
        if named is not None and named.encoding is not None and not (is_anndata(held) or _reads_encodings(held)):
            options = {}
        if isinstance(labels, str) or isinstance(groups, str) or options:
            column = groups if isinstance(groups, str) else None
            held = open_features(held, label=labels if isinstance(labels, str) else None, sample_groups=column, **options)
            labels = held.y if labels is None or isinstance(labels, str) else labels
            groups = None
        elif not in_memory and (is_address(held) or is_store(held)):
            held = Store(held)  # reads no features, which may remain with the workers of a cluster
        else:
            held = open_features(held)
    origin = held if isinstance(held, (Dataset, Store)) else None
    if reader is not None:
        held, labels = _on_workers(held, labels, reader, client)
    for name, given, what in (("y", labels, "labels"), ("groups", groups, "sample groups")):
        if isinstance(given, str):
            columns = f" (X[{given!r}]) and X without them" if hasattr(held, "columns") else ""
            raise ValueError(
                f"{name} is the string {given!r}. A column name is supported for an AnnData or MuData object or a path only, "
                f"and by coterie.discover for a data frame. For other data, pass the {what} themselves{columns}."
            )
    if isinstance(held, (Dataset, Store)):
        return Unwrapped(held.source, held.y if labels is None else labels, origin)
    if type(held).__module__.partition(".")[0] == "dask" and hasattr(held, "compute") and hasattr(held, "blocks"):
        held = _computed(held)
    return Unwrapped(held.collect() if is_lazy(held) else held, labels, origin)


def unwrap_new(
    estimator: Any, X: FeaturesLike, y: TargetsLike = None, *, features: np.ndarray, covariates: bool = True
) -> Unwrapped:
    """Open new data for a fitted estimator. Tables are encoded like those of the fit.

    Parameters
    ----------
    estimator : estimator
        Fitted selector.
    X, y : as for :func:`unwrap`
        The data.
    features : ndarray of int
        Features that are read.
    covariates : bool, default=True
        Whether to read the covariates of the fit from a table, too.
    """
    encoding: TableEncoding | None = getattr(estimator, "encoding_", None)
    if encoding is None:
        return unwrap(X, y)
    if not covariates:
        encoding = encoding.without_covariates()
    return unwrap(X, y, named=NamedColumns(encoding=encoding, features=names_at(estimator, features)))


def is_raw(X: Any, labels: Any, groups: Any, options: dict[str, Any]) -> bool:
    """Return True if a data frame has named columns, or columns that are not numeric."""
    return isinstance(labels, str) or isinstance(groups, str) or bool(options) or has_other_columns(X)


def _reads_encodings(X: Any) -> bool:
    """Return True if this is the path of a file with columns that an encoding can describe."""
    from pathlib import Path

    from coterie.data.readers.formats import FORMATS, detect_format, resolve

    if not isinstance(X, (str, os.PathLike)) or is_address(X):
        return False
    file = resolve(Path(X))
    if not file.is_file():
        return False
    name = detect_format(file)
    return FORMATS[name].table or name == "h5ad"


def _open_block(
    named: NamedColumns | None, name: str, X: Any, label: str | None, sample_groups: str | None
) -> Dataset | FeatureSource:
    """Open one of several matrices: a data set for a container, else a source."""
    found = unwrap(X, label, groups=sample_groups, named=None if named is None else named.of_block(name))
    if isinstance(found.origin, Dataset):
        return found.origin
    if found.origin is not None:
        from coterie.data.opening import open_features

        return open_features(found.origin.path)
    return plain_source(found.X)


def _is_matrix(X: Any) -> bool:
    """Return True if X is an array or a sparse matrix."""
    return isinstance(X, np.ndarray) or sparse.issparse(X)


def source_of(X: FeaturesLike) -> FeatureSource:
    """Return a source over the data that were passed to a function (not an estimator)."""
    return plain_source(unwrap(X).X)


def opened(X: FeaturesLike, y: TargetsLike = None, *, cluster: bool = False) -> tuple[Any, Any]:
    """Return the features and labels of a container, for functions."""
    on_workers = on_cluster(X) if cluster else None
    if on_workers is not None:
        return on_workers[0], on_workers[1] if y is None else y
    found = unwrap(X, y)
    return found.X, found.y


def _on_workers(X: Any, y: Any, reader: BaseEstimator | str, client: ClientLike) -> tuple[Any, Any]:
    """Move features to the workers of a cluster, if there is a client and the reader supports it."""
    able = isinstance(reader, str) or supports_cluster(reader)
    X, y = move_to_cluster(X, y, client, reader=reader, able=able)
    found = on_cluster(X) if isinstance(reader, str) or supports_cluster(reader, X) else None
    return (X, y) if found is None else (found[0], found[1] if y is None else y)


def labels_hint(X: Any) -> str:
    """Return a sentence with possible label columns of an AnnData object."""
    if _is_matrix(X):
        return ""
    from coterie.data.readers.h5ad import describe_obs_columns, is_anndata

    known = describe_obs_columns(X) if is_anndata(X) else ""
    return f" Pass the name of a column of obs: {known}." if known else ""


def _computed(X: Any) -> Any:
    """Compute a Dask array, whose blocks may be dense or sparse."""
    computed = X.compute()
    if not _is_matrix(computed):
        raise ValueError(
            f"The Dask array has blocks of type {type(computed).__name__}. Only NumPy arrays and SciPy sparse matrices are "
            "supported."
        )
    return computed


# Interpretation of y: classes, one number per sample, one or several numbers per sample, survival times with events, or 1 and
# -1 for normal samples and outliers ("normality"). "labels" and "optional" are only checked: always, or if y is given. "any"
# is kept unchanged, "none" is ignored.
TargetKind: TypeAlias = Literal["classes", "number", "numbers", "survival", "normality", "labels", "optional", "any", "none"]


@dataclass(frozen=True)
class Input:
    """Opened and checked data of a fit.

    Attributes
    ----------
    source : FeatureSource
        Features.
    X : array, sparse matrix, data frame or FeatureSource
        Features as passed by the user, unwrapped.
    y : ndarray of shape (n_samples,) or (n_samples, n_targets), or None
        Labels or targets as passed by the user.
    targets : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets as used by losses: class codes, numbers (two-dimensional for several targets), or records of event,
        time, stratum and entry (:data:`coterie.inputs.survival.SURVIVAL`); ones if there is no target.
    classes : ndarray or None
        Classes of the codes.
    weight : ndarray of shape (n_samples,) or None
        Sample weights in the fit; None if all are one. Zero for samples that are used in scores only.
    score_weight : ndarray of shape (n_samples,) or None
        Sample weights in held-out scores.
    covariates : ndarray of shape (n_samples, n_covariates) or None
        Covariates. For classes, the last one is the offset, if there is one.
    offset : ndarray of the shape of ``targets`` or None
        Offset that is added to the outputs; None for classes.
    groups : ndarray of int of shape (n_samples,) or None
        Numbers of the sample groups, which folds, half-samples and permutations keep together.
    attributes : dict
        Attributes of the fitted estimator that describe its data: ``n_features_in_``, feature names, covariate names.
    target_scale : ndarray of shape (n_targets,) or None
        Numbers by which several targets and their offsets were divided; see :mod:`coterie.solver.several`.
    target_factors : ndarray of shape (n_targets,) or None
        Relative weights of several targets in the loss.
    """

    source: FeatureSource
    X: Any
    y: np.ndarray | None
    targets: np.ndarray
    classes: np.ndarray | None
    weight: np.ndarray | None
    score_weight: np.ndarray | None
    covariates: np.ndarray | None
    offset: np.ndarray | None
    groups: np.ndarray | None
    attributes: dict[str, Any]
    target_scale: np.ndarray | None = None
    target_factors: np.ndarray | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.source.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.source.shape[1]

    @property
    def labels(self) -> np.ndarray:
        """Labels or targets for folds; ``targets`` if the user passed none."""
        return self.targets if self.y is None else self.y

    @property
    def target_names(self) -> tuple[str, ...] | None:
        """Names of several targets; None for one target, and without a target."""
        return tuple(self.attributes["target_names_"]) if self.targets.ndim == 2 else None

    def in_units(self, values: np.ndarray) -> np.ndarray:
        """Return targets, or predictions of them, in the units of the user."""
        return values if self.target_scale is None else values * self.target_scale

    @property
    def is_survival(self) -> bool:
        """Whether the targets are survival times."""
        return self.targets.dtype.names is not None

    @property
    def balanced(self) -> np.ndarray | None:
        """Codes whose shares folds and half-samples keep: classes, or events of survival times; None for others."""
        if self.is_survival:
            return self.targets["event"].astype(np.int64)
        return None if self.classes is None else self.targets

    @cached_property
    def mostly_zero(self) -> bool:
        """Whether most values are zero, as in counts of rare events, whose few values standardisation would inflate."""
        return mostly_zero(self.source)


def open_input(
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    reader: BaseEstimator,
    target: TargetKind,
    sample_weight: SamplesLike = None,
    covariates: CovariatesLike = None,
    adjusts: bool = False,
    offset: SamplesLike = None,
    groups: SampleGroupsLike = None,
    feature_names: NamesLike = None,
    client: ClientLike = None,
) -> Input:
    """Open and check the data of a fit.

    Parameters
    ----------
    X : array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store or Dask array
        Features.
    y : array-like of shape (n_samples,), str or None
        Labels or targets, or the name of their column. None means those of X.
    reader : estimator
        Estimator that reads the data. It is not changed.
    target : {"classes", "number", "numbers", "survival", "normality", "labels", "optional", "any", "none"}
        Interpretation of y. With ``"labels"``, y is checked but not interpreted; with ``"optional"``, it may also be missing.
        With ``"any"``, y is not changed; with ``"none"``, it is ignored.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    covariates : array-like or data frame of shape (n_samples, n_covariates), optional
        Covariates. With ``adjusts``, None means those of X.
    adjusts : bool, default=False
        Whether the reader adjusts for covariates.
    offset : array-like of shape (n_samples,), optional
        Offset, for classes and numbers.
    groups : array-like of shape (n_samples,), str or None
        Sample groups, or the name of their column. None means those of X.
    feature_names : array-like of str or callable, optional
        Names of the features.
    client : distributed.Client, optional
        Client of a Dask cluster whose workers hold the features.
    """
    found = unwrap(X, y, groups=groups, reader=reader, client=client)
    if adjusts and covariates is None:
        covariates = found.covariates
    sample_weight = found.sample_weight if sample_weight is None else sample_weight
    reading = read_source(reader, found.X)
    if feature_names is not None:
        reading = read_source(reader, named(reading.source, feature_names))
    hint = labels_hint(X) if found.y is None else ""
    groups = found.sample_groups if groups is None or isinstance(groups, str) else groups
    return _checked(reading, found.X, found.y, reader, target, sample_weight, covariates, offset, groups, hint)


def _checked(
    reading: Reading,
    X: Any,
    y: Any,
    reader: BaseEstimator,
    target: TargetKind,
    sample_weight: Any,
    covariates: Any,
    offset: Any,
    groups: Any,
    hint: str,
) -> Input:
    """Check targets, weights, covariates, offset and sample groups, and return the input."""
    n_samples, attributes = reading.source.shape[0], dict(reading.attributes)
    targets: np.ndarray
    classes: np.ndarray | None = None
    if target in ("none", "any") or (target == "optional" and y is None):
        labels, targets = (y if target == "any" else None), np.ones(n_samples)
        weight = score_weight = read_sample_weight(sample_weight, targets)
    elif target == "normality":
        labels = read_normality(y, n_samples)
        score_weight = read_sample_weight(sample_weight, labels)
        weight, targets = _normal_weight(labels == 1, score_weight), np.ones(n_samples)
    elif target == "survival":
        targets, strata = read_survival(y, n_samples, reader, hint)
        labels, weight = targets, read_sample_weight(sample_weight, np.asarray(targets))
        score_weight = weight
        require_events(targets, weight)
        if strata is not None:
            attributes["strata_"] = strata
    elif target == "numbers" and are_several(y):
        labels, names = read_several(y, n_samples, reader)
        targets, attributes["target_names_"] = labels, names
        weight = score_weight = read_sample_weight(sample_weight, labels)
    else:
        labels = read_target(y, n_samples, reader, hint)
        weight = score_weight = read_sample_weight(sample_weight, labels)
        if target == "classes":
            classes, targets = read_labels(labels, weight)
        else:
            targets = read_targets(labels) if target in ("number", "numbers") else labels
    values = None
    if covariates is not None:
        values, known = as_covariates(covariates, n_samples)
        if _covariates_explain(values, targets, target):
            raise ValueError(
                f"The covariates ({', '.join(known)}) explain y completely. Is y one of them, or are there as many covariates "
                "as samples?"
            )
        attributes["covariate_names_"] = np.array(known, dtype=object)
    n_targets = targets.shape[1] if targets.ndim == 2 else None
    added = None if offset is None else read_offset(offset, n_samples, n_targets=n_targets)
    if added is not None:
        attributes["offset_coef_"] = np.ones(n_targets or 1)
        if _offset_explains(added, targets, target):
            raise ValueError(
                "The offset explains y completely. Is y part of it? Use predictions made without each sample's own y."
            )
        if target == "classes":
            values, added = np.column_stack([*([] if values is None else [values]), added]), None
    codes = None if groups is None else read_sample_groups(groups, n_samples)
    if codes is not None:
        attributes["n_sample_groups_"] = int(codes.max(initial=-1)) + 1
    return Input(reading.source, X, labels, targets, classes, weight, score_weight, values, added, codes, attributes)


def _covariates_explain(covariates: np.ndarray, targets: np.ndarray, target: TargetKind) -> bool:
    """Return True if the target (for survival, the time) is a linear function of the covariates."""
    return explains_target(covariates, targets["time"] if target == "survival" else targets)


def _offset_explains(offset: np.ndarray, targets: np.ndarray, target: TargetKind) -> bool:
    """Return True if an offset leaves nothing to explain."""
    if target == "survival":
        return False  # The order of the events has no scale.
    return explains_target(offset[:, None], targets) if target == "classes" else explains_numbers(offset, targets)


def _normal_weight(normal: np.ndarray, given: np.ndarray | None) -> np.ndarray | None:
    """Return the weights in the fit of one class, in which outliers have weight zero."""
    if normal.all():
        return given
    weight = np.where(normal, 1.0 if given is None else given, 0.0)
    if not weight.any():
        raise ValueError("There are no normal samples (label 1) with positive weight.")
    return weight
