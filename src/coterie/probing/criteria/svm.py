"""Criteria from support vector machines, linear and with a kernel: cross-validated accuracy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from coterie._parameters import PENALTY, AnyValue, Integer, Number, OneOf, Rule, check_parameters
from coterie._sklearn import fitted_svm
from coterie._warnings import ignored
from coterie.data.source import FeatureSource
from coterie.inputs.folds import Fold, read_folds
from coterie.inputs.targets import read_labels
from coterie.inputs.types import ClassWeightLike, FoldsLike
from coterie.probing.criteria.base import Criterion, mean_over_folds, own_columns


class _SVMCriterion(Criterion):
    """Base class: accuracy of a scikit-learn classifier with the parameters of the criterion."""

    class_weight: ClassWeightLike

    @abstractmethod
    def fitted(self, X: Any, y: np.ndarray) -> Any:
        """Return a fitted classifier."""

    def bind(self, source: FeatureSource, y: np.ndarray, cv: FoldsLike) -> SVMAccuracy:
        """Check the parameters against the data and return an evaluator."""
        check_parameters(self)
        _, codes = read_labels(y, None)
        labels = codes if self.class_weight is None else y
        return SVMAccuracy(source, labels, self, read_folds(cv, codes, classifier=True))


class SVMAccuracy:
    """Cross-validated accuracy of a support vector machine, as a function of the features."""

    def __init__(self, source: FeatureSource, labels: np.ndarray, criterion: _SVMCriterion, folds: list[Fold]) -> None:
        self.source = source
        self.labels = labels
        self.criterion = criterion
        self.folds: list[Fold] | None = folds

    def __call__(self, features: np.ndarray) -> float:
        """Return the mean accuracy over the folds."""
        # The solvers require row-major float64. The conversion is made once for all folds.
        matrix = own_columns(self.source, features).astype(np.float64, copy=False)
        assert self.folds is not None
        n_correct = []
        with ignored(ConvergenceWarning):
            for train, test in self.folds:
                model = self.criterion.fitted(matrix[train], self.labels[train])
                n_correct.append(int((model.predict(matrix[test]) == self.labels[test]).sum()))
        return mean_over_folds(n_correct, self.folds)


class LinearSVMCriterion(_SVMCriterion):
    """Cross-validated accuracy of a linear support vector machine.

    The value equals ``cross_val_score(LinearSVC(...), X[:, features], y, cv=cv).mean()`` with the same parameters. It uses
    the same solver (liblinear), without the overhead of checking, cloning and scoring.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Loss.
    tol : float, default=1e-4
        Tolerance of the solver.
    max_iter : int, default=1000
        Largest number of iterations of the solver. The limit is often reached on unscaled data. There is no warning,
        because a criterion need not be exact to be useful.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    random_state : int, default=0
        Seed of the solver. It is fixed, so that each subset has one value.

    See Also
    --------
    RidgeCriterion : A linear classifier in closed form; much faster.
    KNNCriterion : Nearest neighbours.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import DependencyAwareSelector
    >>> from coterie.probing import LinearSVMCriterion
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = DependencyAwareSelector(LinearSVMCriterion(), n_features_to_select=2, n_probes=20, random_state=0)
    >>> selector.fit(X, y).get_support()
    array([False, False,  True,  True])
    """

    _allowed: ClassVar[Mapping[str, Rule]] = {
        "C": PENALTY,
        "loss": OneOf("squared_hinge", "hinge"),
        "tol": Number(),
        "max_iter": Integer(1),
        "class_weight": AnyValue(),
        "random_state": Integer(0),
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        tol: float = 1e-4,
        max_iter: int = 1000,
        class_weight: ClassWeightLike = None,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.random_state = random_state

    def fitted(self, X: Any, y: np.ndarray) -> LinearSVC:
        """Return a fitted classifier."""
        return fitted_svm(X, y, dual="auto", **self.get_params())


class SVMCriterion(_SVMCriterion):
    """Cross-validated accuracy of a support vector machine with a kernel.

    The value equals ``cross_val_score(SVC(...), X[:, features], y, cv=cv).mean()`` with the same parameters. The influence
    of a feature on the kernel depends on its scale. Standardise the features unless their scales are meaningful.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors.
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default="rbf"
        Kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernel, as in scikit-learn.
    degree : int, default=3
        Degree of the polynomial kernel.
    tol : float, default=1e-3
        Tolerance of the solver.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.

    See Also
    --------
    LinearSVMCriterion : Linear support vector machine; faster on many samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import DependencyAwareSelector
    >>> from coterie.probing import SVMCriterion
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = DependencyAwareSelector(SVMCriterion(C=10), n_features_to_select=2, min_coverage=10, random_state=0)
    >>> selector.fit(X, y).get_support()
    array([False, False,  True,  True])
    """

    _allowed: ClassVar[Mapping[str, Rule]] = {
        "C": PENALTY,
        "kernel": OneOf("rbf", "linear", "poly", "sigmoid"),
        "gamma": OneOf("scale", "auto") | Number(),
        "degree": Integer(1),
        "tol": Number(),
        "class_weight": AnyValue(),
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        tol: float = 1e-3,
        class_weight: ClassWeightLike = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.tol = tol
        self.class_weight = class_weight

    def fitted(self, X: Any, y: np.ndarray) -> SVC:
        """Return a fitted classifier."""
        return SVC(**self.get_params()).fit(X, y)
