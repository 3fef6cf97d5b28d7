"""Cross-validated accuracy of the support vector machine with a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.svm import SVC

from coterie._parameters import PENALTY, Anything, Number, OneOf, Rule, Whole, check_parameters
from coterie.data.source import FeatureSource
from coterie.inputs.folds import Fold, read_folds
from coterie.inputs.targets import read_labels
from coterie.probing.criteria.base import Criterion, mean_over_folds, own_columns


class SVMCriterion(Criterion):
    """Accuracy of a support vector machine with a kernel, cross-validated.

    The same number as ``cross_val_score(SVC(...), X[:, features], y, cv=cv).mean()`` with the same parameters. The kernel sees
    features by their spread: standardise them first unless the scales mean something.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors.
    kernel : {"rbf", "linear", "poly", "sigmoid"}, default="rbf"
        The kernel.
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
    LinearSVMCriterion : Without a kernel; faster on many samples.

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
        "degree": Whole(1),
        "tol": Number(),
        "class_weight": Anything(),
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        tol: float = 1e-3,
        class_weight: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.tol = tol
        self.class_weight = class_weight

    def bind(self, source: FeatureSource, y: np.ndarray, cv: Any) -> KernelAccuracy:
        """Check the parameters against the data and return what evaluates subsets."""
        check_parameters(self)
        _, codes = read_labels(y, None)
        labels = codes if self.class_weight is None else y
        return KernelAccuracy(source, labels, self.get_params(), read_folds(cv, codes, classifier=True))


class KernelAccuracy:
    """Cross-validated accuracy of a support vector machine on some features."""

    def __init__(self, source: FeatureSource, labels: np.ndarray, parameters: dict[str, Any], folds: list[Fold]) -> None:
        self.source = source
        self.labels = labels
        self.parameters = parameters
        self.folds: list[Fold] | None = folds

    def __call__(self, features: np.ndarray) -> float:
        """Mean accuracy over the folds."""
        matrix = own_columns(self.source, features).astype(np.float64, copy=False)
        assert self.folds is not None
        right = []
        for train, test in self.folds:
            model = SVC(**self.parameters).fit(matrix[train], self.labels[train])
            right.append(int((model.predict(matrix[test]) == self.labels[test]).sum()))
        return mean_over_folds(right, self.folds)
