"""Base class of criteria, which rate feature subsets, and criteria made from an estimator or a function."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags

from coterie._parameters import Rule
from coterie._sklearn import DocumentationLinkMixin, sample_major
from coterie.data.source import LARGEST_NORM, FeatureSource
from coterie.inputs.folds import Fold, read_folds
from coterie.inputs.targets import read_labels
from coterie.inputs.types import FoldsLike, ScoringLike
from coterie.methods import CRITERIA, load


class Evaluator(Protocol):
    """Criterion bound to data: a function that returns the value of a feature subset.

    Evaluators are called from several threads or sent to other processes. ``folds`` is None for criteria without
    cross-validation.
    """

    folds: list[Fold] | None

    def __call__(self, features: np.ndarray) -> float:
        """Return the value of a subset, given as sorted indices."""
        ...


class Criterion(DocumentationLinkMixin, BaseEstimator, ABC):
    """Base class of criteria: parameters as in scikit-learn, and a method that binds the criterion to data."""

    # Default preference passed to joblib: threads for code that releases the GIL.
    prefer: ClassVar[str] = "processes"
    # Whether the criterion requires labels or targets. If not, y may be None.
    supervised: ClassVar[bool] = True
    # Constraints on the parameters.
    _allowed: ClassVar[Mapping[str, Rule]] = {}

    @abstractmethod
    def bind(self, source: FeatureSource, y: Any, cv: FoldsLike) -> Evaluator:
        """Check the parameters against the data and return an evaluator. y may be None unless ``supervised``."""


def mean_over_folds(n_correct: list[int], folds: list[Fold]) -> float:
    """Return the mean accuracy as ``cross_val_score(...).mean()`` computes it."""
    return float(np.mean([count / len(test) for count, (_, test) in zip(n_correct, folds, strict=True)]))


def check_value(value: float, subset: Callable[[], str]) -> None:
    """Raise an error unless the square of a criterion's value is finite. ``subset`` returns the subset's description."""
    if not abs(value) <= LARGEST_NORM:
        raise ValueError(
            f"The criterion returned {value} for {subset()}. It must return a finite number (at most {LARGEST_NORM:.0e}) for "
            "every subset of features."
        )


def dense_columns(source: FeatureSource, features: np.ndarray) -> np.ndarray:
    """Return columns as a C-ordered float64 array."""
    columns = source.columns(features)
    return np.ascontiguousarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)


def own_columns(source: FeatureSource, features: np.ndarray) -> np.ndarray | sparse.csr_array:
    """Return columns in their own value type, in CSR format or as a C-ordered array."""
    return sample_major(source.columns(features))


Scorer = Callable[..., float]


class EstimatorCriterion(Criterion):
    """Cross-validated score of any estimator.

    The value is ``cross_val_score(estimator, X[:, features], y, cv=cv, scoring=scoring).mean()``. Without labels (y=None),
    the estimator must support fitting and scoring without labels, as ``PCA`` and ``GaussianMixture`` do.

    Parameters
    ----------
    estimator : estimator
        A classifier, a regressor or a pipeline. It is cloned for each fit. Set the ``random_state`` of a randomised
        estimator, so that each subset has one value.
    scoring : str or callable, default=None
        As in ``cross_val_score``. None means the estimator's own ``score``.

    See Also
    --------
    KNNCriterion, LinearSVMCriterion, RidgeCriterion : Built-in criteria.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from coterie import DependencyAwareSelector
    >>> from coterie.probing import EstimatorCriterion
    >>> X, y = load_diabetes(return_X_y=True)
    >>> criterion = EstimatorCriterion(LinearRegression(), scoring="neg_mean_absolute_error")
    >>> DependencyAwareSelector(criterion, n_features_to_select=2, n_probes=60, random_state=0).fit(X, y).support_features_
    array([2, 8])
    """

    def __init__(self, estimator: BaseEstimator, *, scoring: ScoringLike = None) -> None:
        self.estimator = estimator
        self.scoring = scoring

    @property
    def supervised(self) -> bool:  # type: ignore[override]
        """Whether the estimator needs a target."""
        tags = getattr(get_tags(self.estimator), "target_tags", None) if hasattr(self.estimator, "fit") else None
        return tags is None or bool(tags.required)

    def bind(self, source: FeatureSource, y: np.ndarray | None, cv: FoldsLike) -> CrossValidatedScore:
        """Check the parameters against the data and return an evaluator."""
        if isinstance(self.estimator, type) or not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "get_params")):
            raise ValueError(f"estimator={self.estimator!r} must be a scikit-learn estimator with fit and get_params.")
        classifier = is_classifier(self.estimator)
        if classifier and y is not None:
            read_labels(y, None)
        check_scoring(self.estimator, self.scoring)
        folds = read_folds(cv, np.zeros(source.shape[0]) if y is None else y, classifier=classifier)
        return CrossValidatedScore(source, y, clone(self.estimator), self.scoring, folds)


class CrossValidatedScore:
    """Mean score of an estimator over the folds, as a function of the features."""

    def __init__(
        self, source: FeatureSource, y: np.ndarray | None, estimator: BaseEstimator, scoring: ScoringLike, folds: list[Fold]
    ) -> None:
        self.source = source
        self.y = y
        self.estimator = estimator
        self.scoring = scoring
        self.folds: list[Fold] | None = folds

    def __call__(self, features: np.ndarray) -> float:
        """Return the mean score over the folds."""
        X = own_columns(self.source, features)
        return float(
            cross_val_score(self.estimator, X, self.y, cv=self.folds, scoring=self.scoring, error_score="raise").mean()
        )


class CallableCriterion(Criterion):
    """Criterion made from a function of the columns and the labels.

    A function passed as ``criterion`` is converted to this class.

    Parameters
    ----------
    function : callable
        ``function(X_S, y) -> float``, or ``function(X_S)`` if there is no y; higher values are better. ``X_S`` contains
        the columns of the subset in the order of X, as a C-ordered array or in CSR format. The result should depend on
        the arguments only.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import DependencyAwareSelector
    >>> X = np.random.default_rng(0).standard_normal((50, 6))
    >>> y = X[:, 1] + X[:, 4]
    >>> fit_of_sum = lambda X_S, y: -((X_S.sum(axis=1) - y) ** 2).mean()
    >>> DependencyAwareSelector(fit_of_sum, n_features_to_select=2, n_probes=200, random_state=0).fit(X, y).support_features_
    array([1, 4])
    """

    supervised: ClassVar[bool] = False

    def __init__(self, function: Scorer) -> None:
        self.function = function

    def bind(self, source: FeatureSource, y: np.ndarray | None, cv: FoldsLike) -> FunctionValue:
        """Return an evaluator."""
        return FunctionValue(source, y, self.function)


class FunctionValue:
    """Value of a function of the columns, as a function of the features."""

    def __init__(self, source: FeatureSource, y: np.ndarray | None, function: Scorer) -> None:
        self.source = source
        self.y = y
        self.function = function
        self.folds: list[Fold] | None = None

    def __call__(self, features: np.ndarray) -> float:
        """Return the value of the function."""
        columns = own_columns(self.source, features)
        value = self.function(columns) if self.y is None else self.function(columns, self.y)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"The criterion must return a number, but returned {value!r}.") from error


# A criterion, its name, an estimator, or a function of the columns and y.
CriterionLike: TypeAlias = "str | Criterion | BaseEstimator | Scorer"


def criterion_named(name: object, **parameters: Any) -> Criterion:
    """Return the built-in criterion with this name and these parameters.

    Examples
    --------
    >>> from coterie.probing.criteria import criterion_named
    >>> criterion_named("knn", n_neighbors=7)
    KNNCriterion(n_neighbors=7)
    """
    if not isinstance(name, str) or name not in CRITERIA:
        raise ValueError(f"criterion={name!r} has no parameters. Criteria with parameters are {', '.join(CRITERIA)}.")
    kind: type[Criterion] = load(CRITERIA[name])
    known = list(inspect.signature(kind).parameters)
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"The criterion {name} has no parameter {parameter}. Its parameters are {', '.join(known)}.")
    return kind(**parameters)


def as_criterion(criterion: CriterionLike) -> Criterion:
    """Return a criterion, given its name, a criterion, an estimator or a function."""
    criterion = criterion.item() if isinstance(criterion, np.generic) else criterion
    if isinstance(criterion, Criterion):
        return criterion
    if isinstance(criterion, str) and criterion in CRITERIA:
        return criterion_named(criterion)
    if not isinstance(criterion, type):
        if hasattr(criterion, "fit") and hasattr(criterion, "get_params"):
            return EstimatorCriterion(criterion)
        if callable(criterion):
            return CallableCriterion(criterion)
    raise ValueError(
        f"criterion={criterion!r} must be one of {', '.join(map(repr, CRITERIA))}, a criterion such as KNNCriterion(), an "
        "scikit-learn estimator, or a function of the columns and y that returns a number."
    )
