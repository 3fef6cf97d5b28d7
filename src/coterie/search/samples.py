"""The samples that a search works on: features, targets, weights and covariates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coterie.data.source import FeatureSource
from coterie.data.totals import mostly_zero


@dataclass(frozen=True)
class Samples:
    """What a fit works on.

    Attributes
    ----------
    attributes : dict
        What the fitted estimator will say of its data: ``n_features_in_``, names, classes.
    source : FeatureSource
        The features.
    y : ndarray of shape (n_samples,)
        Labels or targets as the user gave them.
    targets : ndarray of shape (n_samples,)
        The same as the loss wants them: numbers of classes, or numbers.
    weight : ndarray of shape (n_samples,) or None
        Sample weights; None where all are one.
    covariates : ndarray of shape (n_samples, n_covariates) or None
        What is to be accounted for.
    """

    attributes: dict[str, Any]
    source: FeatureSource
    y: np.ndarray
    targets: np.ndarray
    weight: np.ndarray | None
    covariates: np.ndarray | None = None

    @property
    def score_weight(self) -> np.ndarray | None:
        """Weights of the samples in a held-out score, where they may count that no fit learns from."""
        return self.weight

    @cached_property
    def mostly_zero(self) -> bool:
        """Whether the features are counts of rare things, whose few values a standard deviation would blow up."""
        return mostly_zero(self.source)
