"""The front door: whatever a user passes to ``fit``, ``group_confidence`` or ``report`` is opened and checked here, once.

Everything below takes the :class:`Input` that :func:`open_input` returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from coterie.data.covariates import as_covariates, explains
from coterie.data.source import FeatureSource
from coterie.data.totals import mostly_zero
from coterie.inputs.arrays import Reading, read_source
from coterie.inputs.containers import labels_hint, unwrapped
from coterie.inputs.naming import named
from coterie.inputs.targets import read_labels, read_normality, read_sample_weight, read_target, read_targets
from coterie.inputs.types import ClientLike, CovariatesLike, FeaturesLike, NamesLike, SamplesLike, TargetsLike

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
    hint = labels_hint(X)
    found = unwrapped(X, y, reader=reader, client=client)
    if adjusts and covariates is None:
        covariates = found.covariates
    reading = read_source(reader, found.X)
    if feature_names is not None:
        reading = read_source(reader, named(reading.source, feature_names))
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
        if explains(values, targets):
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
