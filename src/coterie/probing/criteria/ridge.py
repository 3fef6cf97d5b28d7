"""Leave-one-out accuracy of ridge regression on the classes, in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from coterie._inputs import Fold, read_labels, read_targets
from coterie._parameters import PENALTY, OneOf, Rule, check_parameters
from coterie.data.source import FeatureSource
from coterie.probing.criteria.base import Criterion, dense_columns


class RidgeCriterion(Criterion):
    r"""Leave-one-out accuracy (or :math:`R^2`) of ridge regression, without fitting it more than once.

    For classes, ridge regression on indicators of -1 and 1, one for each class against the rest: with two classes and a
    small penalty the discriminant of linear discriminant analysis. With the hat matrix H of the fit to all samples,
    the prediction for a sample that is left out is :math:`y_i - (y_i - \hat y_i) / (1 - h_{ii})`, so that the
    n fits of leave-one-out cross-validation cost one Cholesky factorisation. The parameter ``cv`` of a selector plays no part.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty on the squared weights. The intercept is free.
    scoring : {"accuracy", "r2"}, default="accuracy"
        Accuracy of the predicted classes, or the coefficient of determination of predicted numbers (over all samples left
        out in turn).

    See Also
    --------
    LinearSVMCriterion : Another linear classifier.

    Notes
    -----
    The same as the accuracy of ``cross_val_predict(RidgeClassifier(alpha), X[:, features], y, cv=LeaveOneOut())``.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import DependencyAwareSelector
    >>> from coterie.probing import RidgeCriterion
    >>> X = np.random.default_rng(0).standard_normal((100, 6))
    >>> y = X[:, 1] - X[:, 4] > 0
    >>> selector = DependencyAwareSelector(RidgeCriterion(), n_features_to_select=2, n_probes=100, random_state=0)
    >>> selector.fit(X, y).get_support()
    array([False,  True, False, False,  True, False])
    """

    prefer: ClassVar[str] = "threads"
    _allowed: ClassVar[Mapping[str, Rule]] = {"alpha": PENALTY, "scoring": OneOf("accuracy", "r2")}

    def __init__(self, alpha: float = 1.0, *, scoring: str = "accuracy") -> None:
        self.alpha = alpha
        self.scoring = scoring

    def bind(self, source: FeatureSource, y: np.ndarray, cv: Any) -> LeaveOneOut:
        """Check the parameters against the data and return what evaluates subsets."""
        check_parameters(self)
        if self.scoring == "r2":
            return LeaveOneOut(source, float(self.alpha), read_targets(y)[:, None], None)
        classes, codes = read_labels(y, None)
        indicators = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        return LeaveOneOut(source, float(self.alpha), indicators[:, 1:] if len(classes) == 2 else indicators, codes)


class LeaveOneOut:
    """Leave-one-out score of ridge regression on some features."""

    def __init__(self, source: FeatureSource, alpha: float, targets: np.ndarray, codes: np.ndarray | None) -> None:
        self.source = source
        self.alpha = alpha
        self.targets = targets
        self.codes = codes
        self.folds: list[Fold] | None = None

    def __call__(self, features: np.ndarray) -> float:
        """Accuracy, or the coefficient of determination, over all samples."""
        predicted = self.predictions(features)
        if self.codes is None:
            y = self.targets[:, 0]
            return float(1.0 - ((y - predicted[:, 0]) ** 2).sum() / ((y - y.mean()) ** 2).sum())
        classes = (predicted[:, 0] > 0).astype(np.int64) if predicted.shape[1] == 1 else predicted.argmax(axis=1)
        return float(np.mean(classes == self.codes))

    def predictions(self, features: np.ndarray) -> np.ndarray:
        """Prediction of each sample by a fit to all others."""
        matrix = dense_columns(self.source, features)
        matrix -= matrix.mean(axis=0)
        middle = self.targets.mean(axis=0)
        n_samples, n_features = matrix.shape
        if n_features <= n_samples:
            product = matrix.T @ matrix
            product[np.diag_indices(n_features)] += self.alpha
            # H = 1/n + Z'Z with L Z' = X', so its diagonal is that of squared norms.
            half = linalg.solve_triangular(linalg.cholesky(product, lower=True), matrix.T, lower=True).T
            leverage = 1.0 / n_samples + np.einsum("ij,ij->i", half, half)
            fitted = middle + half @ (half.T @ self.targets)
            residual = (self.targets - fitted) / (1.0 - leverage)[:, None]
            return np.asarray(self.targets - residual)
        # More features than samples: y - y_hat = alpha a and 1 - h_ii = alpha (K + alpha)^-1_ii - 1/n, a the dual solution.
        inverse = linalg.inv(matrix @ matrix.T + self.alpha * np.eye(n_samples))
        kept = self.alpha * np.diag(inverse) - 1.0 / n_samples
        residual = self.alpha * (inverse @ (self.targets - middle)) / kept[:, None]
        return np.asarray(self.targets - residual)
