r"""The paper's own solver: Algorithms 2 and 4, an augmented Lagrangian method with the matrix of all pairs.

For comparison on few candidates. Where the paper inverts :math:`A + \frac\mu2 I` in every step, A is decomposed once here,
which gives the same steps.
"""

from __future__ import annotations

import numpy as np

from coterie._parameters import Number, check
from coterie.redundancy.objective import Objective
from coterie.redundancy.solver import RefinedWeights

# Where z and v agree, and the most steps until they do.
_AGREEMENT = 1e-10
_MOST_STEPS = 2000


def solve_alm(
    objective: Objective, tol: float, max_iter: int, *, penalty_growth: float = 1.03, penalty_start: float = 0.01
) -> RefinedWeights:
    """Algorithm 2: outer loop over :math:`\\lambda = z'Az/z's`, inner augmented Lagrangian loop for eq. 6.

    ``penalty_growth`` is the paper's ρ, the factor by which the penalty µ grows in each step, between 1 and 2;
    ``penalty_start`` is the µ that each inner loop starts with, relative to the mean eigenvalue of A. The paper states
    neither.
    """
    check("penalty_growth", penalty_growth, Number(above=1.0, below=2.0))
    check("penalty_start", penalty_start, Number())
    candidates = np.arange(objective.size)
    values, vectors = np.linalg.eigh(objective.within(candidates))
    values = np.maximum(values, 0.0)
    scores = objective.scores
    turned = vectors.T @ scores
    start = float(penalty_start) * float(values.mean())
    z = np.full(objective.size, 1.0 / objective.size)
    bound, dual = -np.inf, np.zeros(objective.size)
    for iteration in range(1, max_iter + 1):
        ratio = float(values @ (vectors.T @ z) ** 2) / float(scores @ z)
        z, dual = _quadratic_program(values, vectors, turned, ratio, z, dual, start, float(penalty_growth))
        support = np.flatnonzero(z > 0)
        found = objective.certificate(support, z[support])
        bound = max(bound, found.bound)
        gap = max(found.value - bound, 0.0) / found.value
        if gap <= tol or iteration == max_iter:
            break
    return RefinedWeights(support, z[support], found.value, bound, gap, iteration, objective.size, gap <= tol)


def _quadratic_program(
    values: np.ndarray,
    vectors: np.ndarray,
    turned: np.ndarray,
    ratio: float,
    z: np.ndarray,
    dual: np.ndarray,
    penalty: float,
    growth: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Eq. 6, :math:`\\min z'Az - \\lambda z's` on the simplex, by the inner loop of Algorithm 2; also the multipliers α."""
    for _ in range(_MOST_STEPS):
        right = 0.5 * ratio * turned + vectors.T @ (0.5 * (penalty * z + dual))
        v = vectors @ (right / (values + 0.5 * penalty))  # eq. 8
        z = project_to_simplex(v - dual / penalty)  # eq. 22
        difference = z - v
        dual = dual + penalty * difference
        penalty *= growth
        if np.abs(difference).max() <= _AGREEMENT * z.max():
            break
    return z, dual


def project_to_simplex(w: np.ndarray) -> np.ndarray:
    r"""Nearest point of the simplex, :math:`z_i = (u_i - \bar\lambda)_+` (eqs. 10 to 24).

    Newton's method finds the root of eq. 24, a convex piecewise linear function, in a finite number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.redundancy.alm import project_to_simplex
    >>> project_to_simplex(np.array([0.9, 0.7, -3.0]))
    array([0.6, 0.4, 0. ])
    """
    u = w - w.mean() + 1.0 / len(w)
    level = 0.0
    for _ in range(len(w) + 1):
        below = u < level
        value = float((level - u[below]).sum()) / len(w) - level
        slope = np.count_nonzero(below) / len(w) - 1.0
        new = level - value / slope
        if abs(new - level) <= 1e-15 * max(abs(new), 1.0):
            break
        level = new
    z = np.maximum(u - level, 0.0)
    return z / z.sum()
