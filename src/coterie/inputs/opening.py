"""The front door: whatever a user passes to ``fit``, ``predict``, ``group_confidence`` or ``report`` is opened here, once.

Containers of features (paths, data sets, stores, AnnData objects, Dask arrays, lazy frames) are opened by :func:`unwrapped`;
what is left is an array, a sparse matrix, a data frame or a source. :func:`open_input` checks it, with labels, weights and
covariates; everything below takes the :class:`Input` that it returns.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from coterie.data.covariates import Covariates, as_covariates, explains_target
from coterie.data.dataset import Dataset
from coterie.data.errors import is_address
from coterie.data.opening import open_features
from coterie.data.readers.h5ad import describe_obs_columns, is_anndata
from coterie.data.source import FeatureSource
from coterie.data.store import Store, is_store
from coterie.data.view import mostly_zero
from coterie.inputs.arrays import Reading, plain_source, read_source
from coterie.inputs.frames import is_lazy
from coterie.inputs.naming import named
from coterie.inputs.placement import lives_on_cluster, on_cluster, placed
from coterie.inputs.targets import read_labels, read_normality, read_sample_weight, read_target, read_targets
from coterie.inputs.types import ClientLike, CovariatesLike, FeaturesLike, NamesLike, SamplesLike, TargetsLike


class Unwrapped(NamedTuple):
    """What a container holds.

    Attributes
    ----------
    X : array, sparse matrix, data frame or FeatureSource
        The features.
    y : array-like or None
        The labels given, or else those of the container.
    origin : Dataset, Store or None
        The container, where it is more than a matrix.
    """

    X: Any
    y: Any
    origin: Dataset | Store | None = None

    @property
    def covariates(self) -> Covariates | None:
        """The covariates that the container brings."""
        return None if self.origin is None else self.origin.covariates


def unwrapped(
    X: FeaturesLike, y: TargetsLike = None, *, reader: BaseEstimator | str | None = None, client: ClientLike = None
) -> Unwrapped:
    """Open a container; anything else is left as it is.

    Parameters
    ----------
    X : array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store or Dask array
        The features. Stores and Dask arrays stay with the workers of a Dask cluster where a client is given or active and the
        reader can work there. Other Dask arrays and lazy frames are computed.
    y : array-like, str or None
        Labels. Text is the name of a column: of ``obs`` for an AnnData object, of the file for a path. None takes the labels
        of the container.
    reader : estimator or str, optional
        The estimator that reads, or the name of a function that can work on a cluster; None for functions that cannot.
    client : distributed.Client, optional
        Client of a cluster.
    """
    held: Any = X
    labels: Any = y
    if (isinstance(held, np.ndarray) or sparse.issparse(held)) and client is None and not isinstance(labels, str):
        return Unwrapped(held, labels)  # no container
    if isinstance(held, (str, os.PathLike)) or is_anndata(held):
        if isinstance(labels, str):
            held = open_features(held, label=labels)
            labels = held.y
        elif not is_anndata(held) and (is_address(held) or is_store(held)):
            held = Store(held)  # nothing is read yet: its features may stay with the workers of a cluster
        else:
            held = open_features(held)
    origin = held if isinstance(held, (Dataset, Store)) else None
    if reader is not None:
        held, labels = _on_workers(held, labels, reader, client)
    if isinstance(labels, str):
        columns = f" (X[{labels!r}]) and X without them" if hasattr(held, "columns") else ""
        raise ValueError(
            f"y is the word {labels!r}. It may be the name of a column for an AnnData object or a path; "
            f"of other data, pass the labels themselves{columns}."
        )
    if isinstance(held, (Dataset, Store)):
        return Unwrapped(held.source, held.y if labels is None else labels, origin)
    if type(held).__module__.partition(".")[0] == "dask" and hasattr(held, "compute") and hasattr(held, "blocks"):
        held = _computed(held)
    return Unwrapped(held.collect() if is_lazy(held) else held, labels, origin)


def source_of(X: FeaturesLike) -> FeatureSource:
    """Source over the data that a function (not an estimator) was given."""
    return plain_source(unwrapped(X).X)


def opened(X: FeaturesLike, y: TargetsLike = None, *, cluster: bool = False) -> tuple[Any, Any]:
    """Features and labels out of a container, for functions."""
    on_workers = on_cluster(X) if cluster else None
    if on_workers is not None:
        return on_workers[0], on_workers[1] if y is None else y
    found = unwrapped(X, y)
    return found.X, found.y


def _on_workers(X: Any, y: Any, reader: BaseEstimator | str, client: ClientLike) -> tuple[Any, Any]:
    """Features with the workers of a cluster, where there is a client and the reader can work there."""
    able = isinstance(reader, str) or lives_on_cluster(reader)
    X, y = placed(X, y, client, reader=reader, able=able)
    found = on_cluster(X) if isinstance(reader, str) or lives_on_cluster(reader, X) else None
    return (X, y) if found is None else (found[0], found[1] if y is None else y)


def labels_hint(X: Any) -> str:
    """What y could be for an AnnData object."""
    known = describe_obs_columns(X) if is_anndata(X) else ""
    return f" Pass the name of a column of obs: {known}." if known else ""


def _computed(X: Any) -> Any:
    """A Dask array in memory; blocks may be dense or sparse."""
    computed = X.compute()
    if not sparse.issparse(computed) and not isinstance(computed, np.ndarray):
        raise ValueError(f"The Dask array has blocks of type {type(computed).__name__}; NumPy and SciPy's sparse are known.")
    return computed


# How y is read: as classes, as numbers, as 1 and -1 for normal samples and outliers; checked alone, where it must be given
# or where it is; as it is; or not at all.
TargetKind: TypeAlias = Literal["classes", "numbers", "normality", "labels", "optional", "any", "none"]


@dataclass(frozen=True)
class Input:
    """The data of a fit, opened and checked.

    Attributes
    ----------
    source : FeatureSource
        The features.
    X : array, sparse matrix, data frame or FeatureSource
        The features as the user passed them, out of their container.
    y : ndarray of shape (n_samples,) or None
        Labels or targets as the user gave them.
    targets : ndarray of shape (n_samples,)
        The same as losses take them: class codes, or numbers; ones where there is nothing to predict.
    classes : ndarray or None
        The classes that the codes stand for.
    weight : ndarray of shape (n_samples,) or None
        Sample weights in the fit; None where all are one. Zero for samples that only take part in scores.
    score_weight : ndarray of shape (n_samples,) or None
        Sample weights in held-out scores.
    covariates : ndarray of shape (n_samples, n_covariates) or None
        What is to be accounted for.
    attributes : dict
        What the fitted estimator publishes about its data: ``n_features_in_``, names, names of the covariates.
    """

    source: FeatureSource
    X: Any
    y: np.ndarray | None
    targets: np.ndarray
    classes: np.ndarray | None
    weight: np.ndarray | None
    score_weight: np.ndarray | None
    covariates: np.ndarray | None
    attributes: dict[str, Any]

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
        """Labels or targets, for folds; the targets where the user gave none."""
        return self.targets if self.y is None else self.y

    @cached_property
    def mostly_zero(self) -> bool:
        """Whether most values are zero: counts of rare things, whose few values a standard deviation would blow up."""
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
    feature_names: NamesLike = None,
    client: ClientLike = None,
) -> Input:
    """Open and check the data of a fit.

    Parameters
    ----------
    X : array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store or Dask array
        The features.
    y : array-like of shape (n_samples,), str or None
        Labels or targets, or the name of their column; None takes those that X brings.
    reader : estimator
        The estimator that reads; it is not changed.
    target : {"classes", "numbers", "normality", "labels", "optional", "any", "none"}
        How y is read. ``"labels"`` are checked and not interpreted, ``"optional"`` ones may be missing; for ``"any"`` y is
        left as it is, for ``"none"`` it is ignored.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    covariates : array-like or data frame of shape (n_samples, n_covariates), optional
        Covariates; with ``adjusts``, None takes those that X brings.
    adjusts : bool, default=False
        Whether the reader accounts for covariates.
    feature_names : array-like of str or callable, optional
        Names for features that have none.
    client : distributed.Client, optional
        Client of a Dask cluster whose workers hold the features.
    """
    found = unwrapped(X, y, reader=reader, client=client)
    if adjusts and covariates is None:
        covariates = found.covariates
    reading = read_source(reader, found.X)
    if feature_names is not None:
        reading = read_source(reader, named(reading.source, feature_names))
    hint = labels_hint(X) if found.y is None else ""
    return _checked(reading, found.X, found.y, reader, target, sample_weight, covariates, hint)


def _checked(
    reading: Reading, X: Any, y: Any, reader: BaseEstimator, target: TargetKind, sample_weight: Any, covariates: Any, hint: str
) -> Input:
    """The input with targets, weights and covariates read."""
    n_samples, attributes = reading.source.shape[0], dict(reading.attributes)
    classes: np.ndarray | None = None
    if target in ("none", "any") or (target == "optional" and y is None):
        labels, targets = (y if target == "any" else None), np.ones(n_samples)
        weight = score_weight = read_sample_weight(sample_weight, targets)
    elif target == "normality":
        labels = read_normality(y, n_samples)
        score_weight = read_sample_weight(sample_weight, labels)
        weight, targets = _normal_weight(labels == 1, score_weight), np.ones(n_samples)
    else:
        labels = read_target(y, n_samples, reader, hint)
        weight = score_weight = read_sample_weight(sample_weight, labels)
        if target == "classes":
            classes, targets = read_labels(labels, weight)
        else:
            targets = read_targets(labels) if target == "numbers" else labels
    values = None
    if covariates is not None:
        values, names = as_covariates(covariates, n_samples)
        if explains_target(values, targets):
            raise ValueError(
                f"The covariates ({', '.join(names)}) explain y completely, so that nothing is left for the features. Is y "
                "one of them, or are there as many covariates as samples?"
            )
        attributes["covariate_names_"] = np.array(names, dtype=object)
    return Input(reading.source, X, labels, targets, classes, weight, score_weight, values, attributes)


def _normal_weight(normal: np.ndarray, given: np.ndarray | None) -> np.ndarray | None:
    """Weights in the fit of one class: outliers have none."""
    if normal.all():
        return given
    weight = np.where(normal, 1.0 if given is None else given, 0.0)
    if not weight.any():
        raise ValueError("There are no normal samples (label 1) of positive weight to learn from.")
    return weight
