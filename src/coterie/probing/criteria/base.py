"""What a criterion is: a number for every subset of the features, the higher the better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv

from coterie.data.source import FeatureSource

Fold = tuple[np.ndarray, np.ndarray]


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

    @abstractmethod
    def bind(self, source: FeatureSource, y: np.ndarray, cv: Any) -> Evaluator:
        """Check the parameters against the data and return what evaluates subsets."""


def read_cv(cv: Any, y: np.ndarray, classifier: bool) -> list[Fold]:
    """The folds that ``cross_val_score`` would use."""
    try:
        splitter = check_cv(cv, y, classifier=classifier)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cv={cv!r} must be a number of folds of at least 2, or a splitter of scikit-learn's.") from error
    folds = [(np.asarray(train), np.asarray(test)) for train, test in splitter.split(np.zeros((len(y), 1)), y)]
    for number, (train, test) in enumerate(folds):
        if not len(train) or not len(test):
            raise ValueError(f"Fold {number} of cv={cv!r} has {len(train)} samples to train and {len(test)} to test on.")
    return folds


def mean_over_folds(right: list[int], folds: list[Fold]) -> float:
    """Mean accuracy as ``cross_val_score(...).mean()`` computes it."""
    return float(np.mean([count / len(test) for count, (_, test) in zip(right, folds, strict=True)]))


def dense_columns(source: FeatureSource, features: np.ndarray) -> np.ndarray:
    """Some columns as a C-ordered float64 array."""
    columns = source.columns(features)
    return np.ascontiguousarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)


def own_columns(source: FeatureSource, features: np.ndarray) -> Any:
    """Some columns in their own value type: CSR, which estimators like best, or a C-ordered array."""
    columns = source.columns(features)
    return np.ascontiguousarray(columns) if isinstance(columns, np.ndarray) else columns.tocsr()


Scorer = Callable[[Any, np.ndarray], float]
