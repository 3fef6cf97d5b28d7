"""What a criterion is: a number for every subset of the features, the higher the better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from coterie._parameters import Rule
from coterie._sklearn import sample_major
from coterie.data.source import LARGEST_NORM, FeatureSource
from coterie.inputs.folds import Fold


class Evaluator(Protocol):
    """A criterion bound to data: the value of a subset of the features.

    Evaluators are called from several threads or sent to other processes. ``folds`` are the samples to train and to test
    on, or None for criteria without.
    """

    folds: list[Fold] | None

    def __call__(self, features: np.ndarray) -> float:
        """Value of a subset, given as sorted indices."""
        ...


class Criterion(BaseEstimator, ABC):
    """Base class of criteria: parameters as in scikit-learn, and a method that binds them to data."""

    # What joblib should use unless told otherwise: threads for code that releases the GIL.
    prefer: ClassVar[str] = "processes"
    # Whether it needs labels or targets; without, y may be None.
    supervised: ClassVar[bool] = True
    # What the parameters may be.
    _allowed: ClassVar[Mapping[str, Rule]] = {}

    @abstractmethod
    def bind(self, source: FeatureSource, y: Any, cv: Any) -> Evaluator:
        """Check the parameters against the data and return what evaluates subsets; y may be None if not ``supervised``."""


def mean_over_folds(right: list[int], folds: list[Fold]) -> float:
    """Mean accuracy as ``cross_val_score(...).mean()`` computes it."""
    return float(np.mean([count / len(test) for count, (_, test) in zip(right, folds, strict=True)]))


def check_value(value: float, subset: Callable[[], str]) -> None:
    """Raise an error unless a criterion's value can be computed with: its square must be finite. ``subset`` says of what."""
    if not abs(value) <= LARGEST_NORM:
        raise ValueError(
            f"The criterion returned {value} for {subset()}. It must return a finite number (at most {LARGEST_NORM:.0e}) for "
            "every subset of features."
        )


def dense_columns(source: FeatureSource, features: np.ndarray) -> np.ndarray:
    """Some columns as a C-ordered float64 array."""
    columns = source.columns(features)
    return np.ascontiguousarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)


def own_columns(source: FeatureSource, features: np.ndarray) -> Any:
    """Some columns in their own value type: CSR, which estimators like best, or a C-ordered array."""
    return sample_major(source.columns(features))


Scorer = Callable[..., float]
