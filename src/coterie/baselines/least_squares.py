"""Penalised least squares on standardised features: the design, and a proximal gradient method for any penalty."""

from __future__ import annotations

import warnings
from typing import NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie.baselines.base import LabelledData
from coterie.data.source import shifted


class Penalty(Protocol):
    """What the solver asks of a penalty (convex, plus a linear term perhaps)."""

    def value(self, coef: np.ndarray) -> float:
        """The penalty of some coefficients."""
        ...

    def prox(self, point: np.ndarray, step: float) -> np.ndarray:
        """Minimiser of ``step * value(w) + 0.5 * ||w - point||^2``."""
        ...


class StandardizedDesign:
    """Centred features of unit variance and centred targets; constant features are zero.

    There is no standardised copy, unless some features vary by less than a millionth of their mean.

    Parameters
    ----------
    data : LabelledData
        Labels of two classes, seen as -1 and 1.
    """

    def __init__(self, data: LabelledData) -> None:
        self.matrix = data.view.source.block(0, data.view.n_features)
        if self.matrix.dtype != np.float64:
            self.matrix = self.matrix.astype(np.float64)
        far = data.view.moments.far_mean
        if far.any():  # a product less the mean's part of it would be all rounding
            self.matrix = shifted(self.matrix, far)
        self.mean = data.view.moments.mean - far
        self.norm = data.view.moments.norm
        scale = data.view.moments.scale
        self._inverse = np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0.0)
        self.targets = data.targets - data.targets.mean()
        # The correlations with the targets: the gradient at zero.
        self.relevance = self.adjoint(self.targets)

    def forward(self, coef: np.ndarray) -> np.ndarray:
        """Predictions; few coefficients need few columns."""
        used = np.flatnonzero(coef)
        scaled = (coef * self._inverse)[used]
        columns = self.matrix[:, used] if len(used) < 0.25 * len(coef) else self.matrix
        product = columns @ (scaled if columns is not self.matrix else coef * self._inverse)
        return np.asarray(product) - float(self.mean[used] @ scaled)

    def adjoint(self, vector: np.ndarray) -> np.ndarray:
        """Products of all features with a vector of the samples."""
        return (np.asarray(self.matrix.T @ vector) - self.mean * vector.sum()) * self._inverse

    def largest_eigenvalue(self) -> float:
        """Estimate from below of that of the Gram matrix, by the power method from the targets."""
        vector = self.targets
        value = 1.0
        for _ in range(15):
            vector = vector / np.linalg.norm(vector)
            vector = self.forward(self.adjoint(vector))
            value = float(np.linalg.norm(vector))
            if value == 0.0:
                return 1.0
        return value


class PenalizedFit(NamedTuple):
    """Coefficients, residual, objective, how many steps it took, whether they were enough, and the criterion reached."""

    coef: np.ndarray
    residual: np.ndarray
    objective: float
    n_iter: int
    converged: bool
    reached: float


class ProximalGradient:
    r"""Accelerated proximal gradient (FISTA) with restarts for :math:`\tfrac12\|y - Xw\|^2 + P(w)`.

    It stops at :math:`L\|w^+ - v\| \le` ``tol`` :math:`\|X'y\|`, where :math:`w^+` is the proximal step from v: at
    :math:`w^+ = v` the optimality conditions hold exactly. The step 1/L is shortened whenever the quadratic bound fails.

    Parameters
    ----------
    design : StandardizedDesign
        Features and targets.
    tol : float
        The tolerance.
    max_iter : int
        Largest number of steps of one solution.
    """

    def __init__(self, design: StandardizedDesign, tol: float, max_iter: int) -> None:
        self.design = design
        self.tol = tol
        self.max_iter = max_iter
        # No eigenvalue of the Gram matrix is above its trace: a bound that fails there fails by rounding.
        self._largest = 1.05 * len(design.targets) * max(int(np.count_nonzero(design.norm)), 1)
        self.lipschitz = 1.05 * design.largest_eigenvalue()
        self.n_iter = 0
        self._limit = tol * max(float(np.linalg.norm(design.relevance)), np.finfo(float).tiny)

    def solve(self, penalty: Penalty, start: np.ndarray | None = None) -> PenalizedFit:
        """The minimiser, from zero or from a first guess."""
        design = self.design
        coef = np.zeros(len(design.mean)) if start is None else start.copy()
        image = design.forward(coef)
        point, point_image, momentum = coef, image, 1.0
        converged, step, reached = False, 0, np.inf
        while step < self.max_iter and not converged:
            step += 1
            gradient = design.adjoint(point_image - design.targets)
            while True:
                new = penalty.prox(point - gradient / self.lipschitz, 1.0 / self.lipschitz)
                new_image = design.forward(new)
                change = new - point
                length = float(change @ change)
                if float(np.sum((new_image - point_image) ** 2)) <= self.lipschitz * length * (1.0 + 1e-9):
                    break
                if self.lipschitz >= self._largest:
                    break
                self.lipschitz = min(1.5 * self.lipschitz, self._largest)
            distance = self.lipschitz * np.sqrt(length)
            converged, reached = distance <= self._limit, self.tol * distance / self._limit
            if float((point - new) @ (new - coef)) > 0.0:
                momentum = 1.0  # the last step went uphill: start the acceleration again
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            weight = (momentum - 1.0) / following
            point, point_image = new + weight * (new - coef), new_image + weight * (new_image - image)
            coef, image, momentum = new, new_image, following
        self.n_iter += step
        residual = design.targets - image
        objective = 0.5 * float(residual @ residual) + penalty.value(coef)
        if not np.isfinite(objective):
            raise ValueError(
                "The penalised fit cannot be computed: the scales of its penalties are too far apart for floating point. "
                "Bring their weights closer to 1."
            )
        return PenalizedFit(coef, residual, objective, step, converged, float(reached))


def warn_unless_converged(fit: PenalizedFit, name: str, tol: float, limits: str) -> None:
    """Warn that the solver was stopped, by which limits, and how far it came."""
    if not fit.converged:
        warnings.warn(
            f"{name} stopped after {limits} before the tolerance was reached: its criterion is {fit.reached:.1e}, above "
            f"tol={tol:g}; raise the limit or tol.",
            ConvergenceWarning,
            stacklevel=5,
        )
