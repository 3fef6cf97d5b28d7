"""Criteria from ridge regression: leave-one-out accuracy or coefficient of determination in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from scipy import linalg

from coterie._parameters import PENALTY, OneOf, Rule, check_parameters
from coterie.data.source import FeatureSource
from coterie.inputs.folds import Fold
from coterie.inputs.targets import read_labels, read_targets
from coterie.inputs.types import FoldsLike
from coterie.probing.criteria.base import Criterion, dense_columns

# Smallest 1 - h_ii (h_ii: leverage) that is not dominated by rounding errors.
_MIN_KEPT = 1e-9


class RidgeCriterion(Criterion):
    r"""Leave-one-out accuracy (or :math:`R^2`) of ridge regression, from a single fit.

    For classes, the targets are indicators of -1 and 1, one per class against the rest. With two classes and a small
    penalty this is the discriminant of linear discriminant analysis. With the hat matrix H of the fit to all samples, the
    prediction for a left-out sample is :math:`y_i - (y_i - \hat y_i) / (1 - h_{ii})`. The n fits of leave-one-out
    cross-validation therefore cost one Cholesky factorisation. The parameter ``cv`` of a selector is not used.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty on the squared weights. The intercept is not penalised.
    scoring : {"accuracy", "r2"}, default="accuracy"
        Accuracy of the predicted classes, or coefficient of determination of the predicted numbers (over all left-out
        samples).

    See Also
    --------
    LinearSVMCriterion : Another linear classifier.

    Notes
    -----
    The value equals the accuracy of ``cross_val_predict(RidgeClassifier(alpha), X[:, features], y, cv=LeaveOneOut())``.

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

    def bind(self, source: FeatureSource, y: np.ndarray, cv: FoldsLike) -> LeaveOneOut:
        """Check the parameters against the data and return an evaluator."""
        check_parameters(self)
        if self.scoring == "r2":
            return LeaveOneOut(source, float(self.alpha), read_targets(y)[:, None], None)
        classes, codes = read_labels(y, None)
        indicators = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        return LeaveOneOut(source, float(self.alpha), indicators[:, 1:] if len(classes) == 2 else indicators, codes)


class RidgeRegressionCriterion(Criterion):
    """Leave-one-out coefficient of determination (R²) of ridge regression.

    Equal to ``RidgeCriterion(alpha, scoring="r2")``, but available by the name ``"ridge_regression"``.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty on the squared weights. The intercept is not penalised.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from coterie import DependencyAwareSelector
    >>> X, y = load_diabetes(return_X_y=True)
    >>> selector = DependencyAwareSelector("ridge_regression", n_features_to_select=2, n_probes=60, random_state=0)
    >>> selector.fit(100 * X, y).support_features_
    array([2, 8])
    """

    prefer: ClassVar[str] = "threads"
    _allowed: ClassVar[Mapping[str, Rule]] = {"alpha": PENALTY}

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def bind(self, source: FeatureSource, y: np.ndarray, cv: FoldsLike) -> LeaveOneOut:
        """Check the parameters against the data and return an evaluator."""
        check_parameters(self)
        return LeaveOneOut(source, float(self.alpha), read_targets(y)[:, None], None)


class LeaveOneOut:
    """Leave-one-out score of ridge regression, as a function of the features."""

    def __init__(self, source: FeatureSource, alpha: float, targets: np.ndarray, codes: np.ndarray | None) -> None:
        self.source = source
        self.alpha = alpha
        self.targets = targets
        self.codes = codes
        self.folds: list[Fold] | None = None

    def __call__(self, features: np.ndarray) -> float:
        """Return the accuracy or the coefficient of determination over all samples."""
        predicted = self.predictions(features)
        if self.codes is None:
            y = self.targets[:, 0]
            return float(1.0 - ((y - predicted[:, 0]) ** 2).sum() / ((y - y.mean()) ** 2).sum())
        classes = (predicted[:, 0] > 0).astype(np.int64) if predicted.shape[1] == 1 else predicted.argmax(axis=1)
        return float(np.mean(classes == self.codes))

    def predictions(self, features: np.ndarray) -> np.ndarray:
        """Return the prediction for each sample by a fit to all other samples."""
        matrix = dense_columns(self.source, features)
        matrix -= matrix.mean(axis=0)
        kept, residual = self._wide(matrix) if matrix.shape[1] > matrix.shape[0] else self._tall(matrix)
        # If 1 - h_ii is too small (one value far above all others, a tiny penalty), the fit without the sample is made.
        refitted = np.flatnonzero(kept < _MIN_KEPT)
        kept[refitted] = 1.0
        result = np.asarray(self.targets - residual / kept[:, None])
        if len(refitted):
            matrix = dense_columns(self.source, features)  # centring with an extreme value loses digits of the others
            for sample in refitted:
                result[sample] = self._without(matrix, int(sample))
        return result

    def _tall(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the diagonal of 1 - H and the residual of the fit to all samples, for at most as many features as samples."""
        # H = 1/n + ZZ' with L Z' = X', so its diagonal consists of squared norms.
        half = linalg.solve_triangular(self._factor(matrix), matrix.T, lower=True).T
        leverage = 1.0 / len(matrix) + np.einsum("ij,ij->i", half, half)
        fitted = self.targets.mean(axis=0) + half @ (half.T @ self.targets)
        return 1.0 - leverage, self.targets - fitted

    def _wide(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Return the same for more features than samples, both up to a common factor.

        With :math:`K = XX'`, :math:`y - \hat y = \alpha (K + \alpha)^{-1} (y - \bar y)` and
        :math:`1 - h_{ii} = \alpha (K + \alpha)^{-1}_{ii} - 1/n`.
        """
        dual = self._dual(matrix)
        if dual is None:
            return np.zeros(len(matrix)), self.targets
        inverse, level = dual
        return (
            level * np.diag(inverse) - 1.0 / len(matrix),
            level * (inverse @ (self.targets - self.targets.mean(axis=0))),
        )

    def _dual(self, matrix: np.ndarray) -> tuple[np.ndarray, float] | None:
        r"""Return :math:`(K + \alpha)^{-1}` and the eigenvalue of :math:`K + \alpha` for the vector of ones.

        The eigenvalue is :math:`\alpha`. For small penalties, the mean eigenvalue of K is added to it, which avoids
        differences of nearly equal numbers. Results do not depend on the vector of ones. None is returned if few digits
        would be correct.
        """
        n_samples = len(matrix)
        product = matrix @ matrix.T
        mean = float(np.trace(product)) / n_samples
        lift = mean if self.alpha < _MIN_KEPT * mean else 0.0
        product[np.diag_indices(n_samples)] += self.alpha
        if not lift:
            return np.asarray(linalg.inv(product)), self.alpha
        product += lift / n_samples
        try:
            factor = linalg.cholesky(product, lower=True)
        except linalg.LinAlgError:
            return None
        inverse = linalg.cho_solve((factor, True), np.eye(n_samples))
        few = np.abs(inverse).max() * np.abs(product).max() > 1.0 / _MIN_KEPT
        return None if few else (inverse, self.alpha + lift)

    def _without(self, matrix: np.ndarray, sample: int) -> np.ndarray:
        """Return the prediction for a sample by an explicit fit to all other samples."""
        others = np.delete(matrix, sample, axis=0)
        targets = np.delete(self.targets, sample, axis=0)
        mean, middle = others.mean(axis=0), targets.mean(axis=0)
        others -= mean
        dual = self._dual(others) if others.shape[1] >= others.shape[0] else None
        if dual is None:
            weights = linalg.cho_solve((self._factor(others), True), others.T @ (targets - middle))
        else:
            weights = others.T @ (dual[0] @ (targets - middle))
        return np.asarray(middle + (matrix[sample] - mean) @ weights)

    def _factor(self, matrix: np.ndarray) -> np.ndarray:
        """Return the Cholesky factor of X'X + alpha. A penalty below the rounding errors is raised to their size."""
        product = matrix.T @ matrix
        diagonal = np.diag_indices(matrix.shape[1])
        product[diagonal] += self.alpha
        try:
            return np.asarray(linalg.cholesky(product, lower=True))
        except linalg.LinAlgError:
            product[diagonal] *= 1.0 + 1e-15 * sum(matrix.shape) ** 2
            return np.asarray(linalg.cholesky(product, lower=True))
