r"""An interior-point method for master problems with few active samples.

If the classes are separable, fewer samples are active at the optimum than there are weights, and Newton's method on the primal
advances slowly from one active set to the next. The dual problem does not have this difficulty:

.. math::
    \min_{\alpha, \theta}\ \theta + \tfrac12\sum_i \alpha_i^2/h_i \quad\text{s.t.}\quad
    \tfrac12\|\tilde X_t'\alpha\|^2 \le \theta,\ \ \alpha \ge 0,\ \ \textstyle\sum_{i\in e}\alpha_i = m_e,

with :math:`h = C\omega`, signed samples :math:`\tilde x_i = d_i x_i` and strata e of mass :math:`m_e`. The matrix of a
primal-dual step (multipliers :math:`\lambda` of :math:`\alpha\ge0`, :math:`\mu_t` of the blocks, :math:`\nu_e` of the strata)
is diagonal plus low-rank. With

- :math:`D = \mathrm{diag}(1/h + \lambda/\alpha)`, :math:`G = \tilde X'D^{-1}\tilde X`, :math:`B = \tilde X'D^{-1}A'`,
  :math:`K = AD^{-1}A'` (A sums over strata), :math:`s_t = \tilde X_t'\alpha`, :math:`c_t = \theta - \tfrac12\|s_t\|^2`,
- S the matrix with :math:`s_t` in the rows of block t of its column t, and :math:`q_t = (\mu_t/c_t)(s_t'ds_t - d\theta)`,

the step solves

.. math::
    (I + G\mu)\,ds + B\,d\nu + GSq = \tilde X'D^{-1}r_\alpha,\quad
    B'\mu\,ds + K\,d\nu + B'Sq = A D^{-1}r_\alpha - r_m,\quad
    S'ds - (c/\mu)q = d\theta\,1,\quad -1'q = r_\theta .

Only q couples the outputs (the one-against-rest problems of several classes). Each output's part is factorised separately, and
the remaining system has the size of the number of blocks. The weights are :math:`W_t = \mu_t s_t`. The cost of a step is that
of one weighted Gram matrix.

Covariates that are eliminated from the loss (:mod:`coterie.solver.adjusted`) add :math:`\frac1{2\lambda}\|K'\alpha\|^2` to the
objective. They are treated as additional columns :math:`K/\sqrt\lambda` in a block of their own, whose multiplier is fixed at
1.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from coterie.kernels.interior_point import interior_steps
from coterie.solver.design import DenseDesign, Design
from coterie.solver.loss import Loss, feasible_residual, require

_MAX_STEPS = 80
# Largest number of consecutive steps that reduce the complementarity by less than a tenth.
_MAX_STALLED = 4
NEEDS = ("mass", "dual_weight")


def interior_point(design: Design, loss: Loss, blocks: np.ndarray, precision: float = 1e-11) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (n_selected, n_outputs) and residuals (n_samples, n_outputs) near the optimum.

    The residuals are dual feasible. The caller refines and certifies the pair, so this function stops when rounding prevents
    further progress.
    """
    require(loss, NEEDS, "The interior-point method")
    problem = _Problem(design, loss, blocks)
    point = best = problem.start()
    centrality = problem.complementarity(point)
    least = np.inf
    stalled = 0
    with np.errstate(all="ignore"):  # A breakdown is detected as a step that is not finite.
        for _ in range(_MAX_STEPS):
            if centrality <= precision * abs(problem.objective(point)):
                break
            ahead = problem.advance(point, centrality)
            if ahead is None:
                break
            reached = problem.complementarity(ahead)
            # One short step is normal if many constraints are close. Several in a row indicate rounding.
            stalled = 0 if reached < 0.9 * centrality else stalled + 1
            if stalled >= _MAX_STALLED or not np.isfinite(reached):
                break
            point, centrality = ahead, reached
            # In the end rounding degrades the multipliers while the complementarity still decreases, so keep the best point.
            distance = reached + problem.infeasibility(ahead)
            if distance < least:
                best, least = ahead, distance
    return problem.weights(best)[: design.n_features], problem.residual(best)


def compiled_interior_point(
    design: DenseDesign, loss: Loss, blocks: np.ndarray, precision: float = 1e-11
) -> tuple[np.ndarray, np.ndarray]:
    """Do the same as :func:`interior_point` by a kernel, for samples of positive weight, without covariates."""
    arrays, columns = loss.arrays, design.array
    coef, dual = np.empty((loss.n_outputs, columns.shape[1])), np.empty((loss.n_outputs, len(columns)))
    weight = arrays.C * arrays.weight
    interior_steps(columns, weight, arrays.strata, arrays.signs, arrays.mass, blocks, precision, coef, dual)
    return np.ascontiguousarray(coef.T), feasible_residual(loss, loss.signs * dual.T)


Factors = tuple[np.ndarray, np.ndarray]


def _factorised(matrix: np.ndarray) -> Factors:
    """Return LU factors without SciPy's warning about singular matrices, which here lead to a step that is not finite."""
    factors, pivots, _ = lapack.dgetrf(matrix)
    return factors, pivots


def _solved(factors: Factors, right: np.ndarray) -> np.ndarray:
    """Solve with LU factors. LAPACK is called directly, because SciPy's checks would dominate for few weights."""
    solution, _ = lapack.dgetrs(*factors, right)
    return np.asarray(solution)


class _Point:
    """Variables of the primal-dual pair, with the arithmetic of a step and cached scores and slopes."""

    __slots__ = ("alpha", "lam", "mu", "nu", "scores", "slope", "theta")

    def __init__(self, alpha: np.ndarray, theta: float, lam: np.ndarray, mu: np.ndarray, nu: np.ndarray) -> None:
        self.alpha, self.theta, self.lam, self.mu, self.nu = alpha, theta, lam, mu, nu
        self.scores: np.ndarray | None = None
        self.slope: np.ndarray | None = None

    def __add__(self, other: _Point) -> _Point:
        return _Point(
            self.alpha + other.alpha,
            self.theta + other.theta,
            self.lam + other.lam,
            self.mu + other.mu,
            self.nu + other.nu,
        )

    def __rmul__(self, factor: float) -> _Point:
        return _Point(factor * self.alpha, factor * self.theta, factor * self.lam, factor * self.mu, factor * self.nu)


class _System:
    """Linear system of a step, shared by the affine and the corrected step."""

    __slots__ = ("coupled", "factors", "gap", "inverse", "response", "scores")

    inverse: np.ndarray
    scores: np.ndarray
    gap: np.ndarray
    # LU factors per output for its weights and strata, their solutions for q, and the LU factors of the system of q and theta.
    factors: list[Factors]
    response: np.ndarray
    coupled: Factors


class _ExtendedDesign:
    """A design with additional dense columns."""

    def __init__(self, design: Design, columns: np.ndarray) -> None:
        self._design, self._columns = design, columns
        self._n = design.n_features
        self.n_features = self._n + columns.shape[1]

    def output(self, coef: np.ndarray) -> np.ndarray:
        return self._design.output(coef[: self._n]) + self._columns @ coef[self._n :]

    def scores(self, residual: np.ndarray) -> np.ndarray:
        return np.vstack([self._design.scores(residual), self._columns.T @ residual])

    def grams(self, weights: np.ndarray) -> np.ndarray:
        own, result = slice(self._n), np.empty((weights.shape[1], self.n_features, self.n_features))
        result[:, own, own] = self._design.grams(weights)
        for gram, weight in zip(result, weights.T, strict=True):
            weighted = weight[:, None] * self._columns
            gram[own, self._n :] = self._design.scores(weighted)
            gram[self._n :, own] = gram[own, self._n :].T
            gram[self._n :, self._n :] = self._columns.T @ weighted
        return result


class _Problem:
    """The dual problem for a design. Arrays over samples have shape (n_samples, n_outputs)."""

    def __init__(self, design: Design, loss: Loss, blocks: np.ndarray) -> None:
        self.design: Design | _ExtendedDesign = design
        self.loss = loss
        self.signs = loss.signs
        self.used = loss.dual_weight > 0
        # An infinite diagonal keeps the dual variables of samples of weight zero at zero.
        self.inverse_weight = np.where(self.used, 1.0 / np.where(self.used, loss.dual_weight, 1.0), np.inf)
        self.curvature = np.where(self.used, self.inverse_weight, 0.0)
        self.n_strata = loss.n_strata
        self.mass = loss.mass
        # Position of a sample's stratum among the strata of all outputs.
        self.positions = loss.strata + loss.n_strata * np.arange(loss.n_outputs)
        self.owner = np.repeat(np.arange(len(blocks) - 1), np.diff(blocks))
        self.starts = blocks[:-1]
        self.n_blocks = len(blocks) - 1
        self.n_constraints = int(self.used.sum()) + self.n_blocks
        self.n_features = design.n_features
        if loss.covariates is not None:
            self.design = _ExtendedDesign(design, loss.covariates / np.sqrt(loss.covariate_penalty))
            self.owner = np.append(self.owner, np.full(loss.covariates.shape[1], self.n_blocks))
        self.shape = (self.design.n_features, loss.n_outputs)

    def start(self) -> _Point:
        """Return a strictly interior point, with weights in proportion to the sample weights within each stratum."""
        share = np.where(self.used, 1.0 / self.inverse_weight, 0.0)
        alpha = share * self._spread(self.mass / self._sums(share))
        squares = self._squares(self._scores(alpha))
        theta = 1.5 * squares.max() + 0.5 * self._quadratic(alpha)
        centrality = theta / self.n_constraints
        lam = np.where(self.used, centrality / np.where(self.used, alpha, 1.0), 0.0)
        mu = 1.0 / (theta - squares)
        return _Point(alpha, theta, lam, mu / mu.sum(), np.zeros((self.shape[1], self.n_strata)))

    def advance(self, point: _Point, centrality: float) -> _Point | None:
        """Return the point after one predictor-corrector step, or None if rounding prevents it."""
        try:
            system = self.factorise(point)
            # Mehrotra's rule: the length of the affine step determines the amount of centring.
            affine = self.direction(point, system, 0.0, None)
            affine_length = min(self.longest_step(point, affine), 1.0)
            ahead = self.complementarity(point + affine_length * affine)
            sigma = min(1.0, max(ahead, 0.0) / centrality) ** 3
            step = self.direction(point, system, sigma * centrality, affine)
            length = min(0.99 * self.longest_step(point, step), 1.0)
        except (ValueError, linalg.LinAlgError):
            return None
        if not np.isfinite(length) or length < 1e-8:
            return None
        return point + length * step

    def objective(self, point: _Point) -> float:
        return point.theta + 0.5 * (self._quadratic(point.alpha) + float((self.scores(point)[self.n_features :] ** 2).sum()))

    def complementarity(self, point: _Point) -> float:
        """Return the sum of all products of a constraint and its multiplier: the duality gap if feasible."""
        gap = point.theta - self._squares(self.scores(point))
        return float((point.lam * point.alpha).sum() + (point.mu * gap).sum())

    def infeasibility(self, point: _Point) -> float:
        """Return the violation of stationarity by the multipliers, in units of the objective."""
        along_alpha = np.abs(self.stationarity(point)) * point.alpha
        return float(along_alpha.sum() + abs(point.mu.sum() - 1.0) * point.theta)

    def stationarity(self, point: _Point) -> np.ndarray:
        """Return the derivative of the Lagrangian with respect to alpha."""
        if point.slope is None:
            outputs = self.design.output(self.weights(point))
            slope = point.alpha * self.curvature + self.signs * outputs - point.lam + self._spread(point.nu)
            point.slope = np.where(self.used, slope, 0.0)
        return point.slope

    def weights(self, point: _Point) -> np.ndarray:
        return np.asarray(self._by_column(point.mu, 1.0)[:, None] * self.scores(point))

    def residual(self, point: _Point) -> np.ndarray:
        """Return the signed dual variables with rounding errors in their sums removed."""
        return feasible_residual(self.loss, self.signs * point.alpha)

    def factorise(self, point: _Point) -> _System:
        p, n_outputs = self.shape
        system = _System()
        diagonal = self.inverse_weight + point.lam / np.where(self.used, point.alpha, 1.0)
        system.inverse = 1.0 / diagonal
        system.scores = self.scores(point)
        system.gap = point.theta - self._squares(system.scores)
        both = np.concatenate([self.design.grams(system.inverse), self._links(system.inverse)], axis=1)
        own = np.empty((n_outputs, p + self.n_strata, p + self.n_strata))
        own[:, :, :p] = both * self._by_column(point.mu, 1.0)
        own[:, :p, p:] = both[:, p:].transpose(0, 2, 1)
        own[:, p:, p:] = 0.0
        diagonals = np.einsum("cii->ci", own)  # A view, so the assignments change ``own``.
        diagonals[:, :p] += 1.0
        diagonals[:, p:] = self._sums(system.inverse)
        moved = self._in_blocks(both, system.scores.T[:, None, :], axis=2)
        system.factors = [_factorised(matrix) for matrix in own]
        system.response = np.stack([_solved(*pair) for pair in zip(system.factors, moved, strict=True)])
        coupled = np.zeros((self.n_blocks + 1, self.n_blocks + 1))
        coupled[:-1, :-1] = self._in_blocks(system.response, system.scores.T[:, :, None], axis=1).sum(axis=0)
        coupled[np.arange(self.n_blocks), np.arange(self.n_blocks)] += system.gap / point.mu
        coupled[-1, :-1] = coupled[:-1, -1] = 1.0
        system.coupled = _factorised(coupled)
        return system

    def solve(
        self, system: _System, rhs_scores: np.ndarray, rhs_theta: float, rhs_mass: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
        """Return the steps of the scores, theta and nu, and q, for the right-hand sides of the module's equations."""
        p, _ = self.shape
        right = np.concatenate([rhs_scores.T, rhs_mass], axis=1)
        alone = np.stack([_solved(*pair) for pair in zip(system.factors, right, strict=True)])
        inner = self._inner(system.scores, alone[:, :p].T)
        coupling = _solved(system.coupled, np.append(inner, -rhs_theta))
        q, theta = coupling[:-1], float(coupling[-1])
        steps = alone - system.response @ q
        return steps[:, :p].T, theta, steps[:, p:], q

    def direction(self, point: _Point, system: _System, centring: float, affine: _Point | None) -> _Point:
        """Return a Newton step towards the total complementarity ``centring``, with second-order correction."""
        tau = centring / self.n_constraints
        bound_target, block_target = tau - point.lam * point.alpha, tau - point.mu * system.gap
        if affine is not None:
            step_scores = self.scores(affine)
            change = affine.theta - self._inner(system.scores, step_scores)
            bound_target = bound_target - affine.lam * affine.alpha
            block_target = (
                block_target - affine.mu * (change - self._squares(step_scores)) + point.mu * self._squares(step_scores)
            )
        safe = np.where(self.used, point.alpha, 1.0)
        push = np.where(self.used, bound_target / safe, 0.0)
        pull = block_target / system.gap
        rhs_alpha = (
            push - self.stationarity(point) - self.signs * self.design.output(self._by_column(pull)[:, None] * system.scores)
        )
        rhs_alpha = np.where(self.used, rhs_alpha, 0.0)
        scaled = system.inverse * rhs_alpha
        rhs_theta = float(point.mu.sum() - 1.0 + pull.sum())
        rhs_mass = self._sums(scaled) - (self.mass - self._sums(point.alpha))
        step_scores, theta, nu, q = self.solve(system, self._scores(scaled), rhs_theta, rhs_mass)
        combined = self._by_column(point.mu, 1.0)[:, None] * step_scores + self._by_column(q)[:, None] * system.scores
        alpha = system.inverse * (rhs_alpha - self.signs * self.design.output(combined) - self._spread(nu))
        alpha = np.where(self.used, alpha, 0.0)
        lam = np.where(self.used, push - point.lam / safe * alpha, 0.0)
        # q is the change of the multipliers by that of the constraints. Computed from the latter it would lose digits.
        return _Point(alpha, theta, lam, pull + q, nu)

    def longest_step(self, point: _Point, step: _Point) -> float:
        """Return the largest step that keeps every constraint and multiplier non-negative."""
        length = np.inf
        for value, change in ((point.alpha, step.alpha), (point.lam, step.lam), (point.mu, step.mu)):
            falling = change < 0
            if falling.any():
                length = min(length, float((-value[falling] / change[falling]).min()))
        # theta + x dtheta - |s + x ds|^2 / 2 >= 0 for each block: the positive root of a quadratic.
        scores, step_scores = self.scores(point), self.scores(step)
        a = self._squares(step_scores)
        b = step.theta - self._inner(scores, step_scores)
        c = point.theta - self._squares(scores)
        root = np.sqrt(np.maximum(b * b + 4 * a * c, 0.0))
        denominator = root - b
        positive = denominator > 0
        if positive.any():
            length = min(length, float((2 * c[positive] / denominator[positive]).min()))
        return length

    def scores(self, point: _Point) -> np.ndarray:
        """Return the scores of the dual variables of a point or step, computed once."""
        if point.scores is None:
            point.scores = self._scores(point.alpha)
        return point.scores

    def _scores(self, alpha: np.ndarray) -> np.ndarray:
        return self.design.scores(self.signs * alpha)

    def _squares(self, scores: np.ndarray) -> np.ndarray:
        return 0.5 * self._inner(scores, scores)

    def _inner(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.bincount(self.owner, weights=(left * right).sum(axis=1), minlength=self.n_blocks)[: self.n_blocks]

    def _quadratic(self, alpha: np.ndarray) -> float:
        return float((alpha * alpha * self.curvature).sum())

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums over the strata of each output."""
        n_outputs = self.shape[1]
        sums = np.bincount(self.positions.ravel(), weights=values.ravel(), minlength=n_outputs * self.n_strata)
        return sums.reshape(n_outputs, self.n_strata)

    def _spread(self, per_stratum: np.ndarray) -> np.ndarray:
        """Return the value of each sample's stratum."""
        return np.asarray(per_stratum.ravel()[self.positions])

    def _in_blocks(self, values: np.ndarray, scores: np.ndarray, axis: int) -> np.ndarray:
        """Multiply by the matrices S of the outputs from the right (axis 2), or by S' from the left (axis 1)."""
        own = (slice(None),) * axis + (slice(self.n_features),)
        return np.add.reduceat(values[own] * scores[own], self.starts, axis=axis)

    def _by_column(self, by_block: np.ndarray, of_covariates: float = 0.0) -> np.ndarray:
        """Return the value of each column's block."""
        return np.append(by_block, of_covariates)[self.owner]

    def _links(self, inverse: np.ndarray) -> np.ndarray:
        """Return the transposed columns of B of each output, one per stratum."""
        n_outputs = self.shape[1]
        weights = np.zeros((len(inverse), n_outputs * self.n_strata))
        np.put_along_axis(weights, self.positions, self.signs * inverse, axis=1)
        return self.design.scores(weights).T.reshape(n_outputs, self.n_strata, -1)
