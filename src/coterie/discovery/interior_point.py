r"""An interior-point method for the master problem, for when few samples are active.

Where the classes can be separated, the optimum rests on fewer samples than there are weights and
Newton's method on the primal creeps from one active set to the next. The dual does not mind:

.. math::
    \min_{\alpha, \theta}\ \theta + \tfrac12\sum_i \alpha_i^2/h_i \quad\text{s.t.}\quad
    \tfrac12\|\tilde X_t'\alpha\|^2 \le \theta,\ \ \alpha \ge 0,\ \ \textstyle\sum_{i\in e}\alpha_i = m_e,

with :math:`h = C\omega`, signed samples :math:`\tilde x_i = d_i x_i` and strata e of mass
:math:`m_e`. A primal-dual step (multipliers :math:`\lambda` of :math:`\alpha\ge0`, :math:`\mu_t` of
the blocks, :math:`\nu_e` of the strata) has a diagonal plus low-rank matrix, so with

- :math:`D = \mathrm{diag}(1/h + \lambda/\alpha)`, :math:`G = \tilde X'D^{-1}\tilde X`, :math:`s_t = \tilde X_t'\alpha`,
  :math:`c_t = \theta - \tfrac12\|s_t\|^2`,
- :math:`M = \mathrm{blockdiag}(\mu_t I + (\mu_t/c_t)s_ts_t')`, :math:`v_t = (\mu_t/c_t)s_t`, :math:`\kappa = \sum\mu_t/c_t`,

it is one solve in as many unknowns as there are weights:

.. math::
    (I + GM)\,ds - Gv\,d\theta + B\,d\nu = \tilde X'D^{-1}r_\alpha,\quad
    \kappa\,d\theta - v'ds = r_\theta,\quad B'(M ds - v d\theta) + K d\nu = A D^{-1}r_\alpha - r_m .

The weights are :math:`W_t = \mu_t s_t`. The cost of a step is that of one weighted Gram matrix.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from coterie.discovery.design import Design
from coterie.discovery.losses import SimplexLoss

_MAX_STEPS = 80
# Steps in a row that gain less than a tenth.
_MAX_STALLED = 4


def interior_point(
    design: Design, loss: SimplexLoss, blocks: np.ndarray, precision: float = 1e-11
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (n_selected, n_outputs) and residuals (n_samples, n_outputs) near the optimum.

    The residuals are dual feasible. The caller certifies the pair (and polishes it); this function
    only has to come close, and stops where rounding ends its progress.
    """
    problem = _Problem(design, loss, blocks)
    point = best = problem.start()
    centrality = least = problem.complementarity(point)
    stalled = 0
    with np.errstate(all="ignore"):  # a breakdown shows as a step that is not finite
        for _ in range(_MAX_STEPS):
            if centrality <= precision * abs(problem.objective(point)):
                break
            ahead = problem.advance(point, centrality)
            if ahead is None:
                break
            reached = problem.complementarity(ahead)
            # A short step may come first where many constraints are near; rounding shows as several of them.
            stalled = 0 if reached < 0.9 * centrality else stalled + 1
            if stalled >= _MAX_STALLED or not np.isfinite(reached):
                break
            point, centrality = ahead, reached
            if reached < least:
                best, least = ahead, reached
    return problem.weights(best), problem.residual(best)


class _Point:
    """The variables of the primal-dual pair, with the arithmetic of a step."""

    __slots__ = ("alpha", "lam", "mu", "nu", "theta")

    def __init__(self, alpha: np.ndarray, theta: float, lam: np.ndarray, mu: np.ndarray, nu: np.ndarray) -> None:
        self.alpha, self.theta, self.lam, self.mu, self.nu = alpha, theta, lam, mu, nu

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
    """What a step's linear system is made of; shared by the affine and the corrected step."""

    __slots__ = ("curvature", "factor", "gap", "inverse", "link", "matrix", "scores", "shift", "totals")

    inverse: np.ndarray
    scores: np.ndarray
    gap: np.ndarray
    matrix: np.ndarray
    shift: np.ndarray
    link: np.ndarray
    totals: np.ndarray
    curvature: float
    factor: tuple[np.ndarray, np.ndarray]


class _Problem:
    """The dual problem seen through a design. Arrays over samples have shape (n_samples, n_outputs)."""

    def __init__(self, design: Design, loss: SimplexLoss, blocks: np.ndarray) -> None:
        self.design = design
        self.signs = loss.signs
        self.used = loss.dual_weight > 0
        # A sample of weight zero is held at zero by an infinite diagonal.
        self.inverse_weight = np.where(self.used, 1.0 / np.where(self.used, loss.dual_weight, 1.0), np.inf)
        self.strata = loss.strata
        self.n_strata = loss.n_strata
        self.mass = loss.mass
        self.owner = np.repeat(np.arange(len(blocks) - 1), np.diff(blocks))
        self.n_blocks = len(blocks) - 1
        self.shape = (design.n_features, loss.n_outputs)

    def start(self) -> _Point:
        """Uniform weights in each stratum, and a point well inside."""
        share = np.where(self.used, 1.0 / self.inverse_weight, 0.0)
        alpha = share * self._spread(self.mass / self._sums(share))
        squares = self._squares(self.scores(alpha))
        theta = 1.5 * squares.max() + 0.5 * self._quadratic(alpha)
        centrality = theta / (self.used.sum() + self.n_blocks)
        lam = np.where(self.used, centrality / np.where(self.used, alpha, 1.0), 0.0)
        mu = 1.0 / (theta - squares)
        return _Point(alpha, theta, lam, mu / mu.sum(), np.zeros((self.shape[1], self.n_strata)))

    def advance(self, point: _Point, centrality: float) -> _Point | None:
        """One predictor-corrector step, or None when rounding spoils it."""
        try:
            system = self.factorise(point)
            # Mehrotra: how far an affine step gets says how much centring is needed.
            affine = self.direction(point, system, 0.0, None)
            reach = min(self.longest_step(point, affine), 1.0)
            ahead = self.complementarity(point + reach * affine)
            sigma = min(1.0, max(ahead, 0.0) / centrality) ** 3
            step = self.direction(point, system, sigma * centrality, affine)
            length = min(0.99 * self.longest_step(point, step), 1.0)
        except (ValueError, linalg.LinAlgError):
            return None
        if not np.isfinite(length) or length < 1e-8:
            return None
        return point + length * step

    def objective(self, point: _Point) -> float:
        return point.theta + 0.5 * self._quadratic(point.alpha)

    def complementarity(self, point: _Point) -> float:
        """Sum of all products of a constraint and its multiplier: the duality gap at feasibility."""
        gap = point.theta - self._squares(self.scores(point.alpha))
        return float((point.lam * point.alpha).sum() + (point.mu * gap).sum())

    def weights(self, point: _Point) -> np.ndarray:
        return np.asarray(point.mu[self.owner][:, None] * self.scores(point.alpha))

    def residual(self, point: _Point) -> np.ndarray:
        """The dual variables with their signs, rounding errors in their sums removed."""
        return np.asarray(self.signs * point.alpha * self._spread(self.mass / self._sums(point.alpha)))

    def factorise(self, point: _Point) -> _System:
        n_features, n_outputs = self.shape
        size = n_features * n_outputs
        system = _System()
        diagonal = self.inverse_weight + point.lam / np.where(self.used, point.alpha, 1.0)
        system.inverse = 1.0 / diagonal
        system.scores = self.scores(point.alpha)
        system.gap = point.theta - self._squares(system.scores)
        ratio = point.mu / system.gap
        flat, owner = system.scores.T.ravel(), np.tile(self.owner, n_outputs)
        system.matrix = np.where(owner[:, None] == owner[None, :], ratio[owner][:, None] * np.outer(flat, flat), 0.0)
        system.matrix[np.diag_indices(size)] += point.mu[owner]
        system.shift = ratio[owner] * flat
        system.curvature = float(ratio.sum())
        gram = linalg.block_diag(*[self.design.gram(system.inverse[:, c]) for c in range(n_outputs)])
        system.link, system.totals = self._strata_links(system.inverse)
        n_links = system.link.shape[1]
        full = np.zeros((size + 1 + n_links, size + 1 + n_links))
        full[:size, :size] = np.eye(size) + gram @ system.matrix
        full[:size, size] = -gram @ system.shift
        full[:size, size + 1 :] = system.link
        full[size, :size] = -system.shift
        full[size, size] = system.curvature
        full[size + 1 :, :size] = system.link.T @ system.matrix
        full[size + 1 :, size] = -system.link.T @ system.shift
        full[size + 1 :, size + 1 :] = np.diag(system.totals)
        system.factor = linalg.lu_factor(full, check_finite=False)
        return system

    def direction(self, point: _Point, system: _System, centring: float, affine: _Point | None) -> _Point:
        """A Newton step towards complementarity ``centring`` (a total), with second-order correction."""
        n_outputs = self.shape[1]
        tau = centring / (self.used.sum() + self.n_blocks)
        bound_target, block_target = tau - point.lam * point.alpha, tau - point.mu * system.gap
        if affine is not None:
            step_scores = self.scores(affine.alpha)
            change = affine.theta - self._inner(system.scores, step_scores)
            bound_target = bound_target - affine.lam * affine.alpha
            block_target = (
                block_target - affine.mu * (change - self._squares(step_scores)) + point.mu * self._squares(step_scores)
            )
        safe = np.where(self.used, point.alpha, 1.0)
        push = np.where(self.used, bound_target / safe, 0.0)
        pull = block_target / system.gap
        weights = point.mu[self.owner][:, None] * system.scores
        stationarity = (
            np.where(self.used, point.alpha * np.where(self.used, self.inverse_weight, 0.0), 0.0)
            + self.signs * self.design.output(weights)
            - point.lam
            + self._spread(point.nu)
        )
        rhs_alpha = -stationarity - self.signs * self.design.output(pull[self.owner][:, None] * system.scores) + push
        rhs_alpha = np.where(self.used, rhs_alpha, 0.0)
        scaled = system.inverse * rhs_alpha
        rhs_theta = float(point.mu.sum() - 1.0 + pull.sum())
        rhs_mass = (self._sums(scaled) - (self.mass - self._sums(point.alpha))).ravel()
        right = np.concatenate([self.scores(scaled).T.ravel(), [rhs_theta], rhs_mass])
        solution = linalg.lu_solve(system.factor, right, check_finite=False)
        size = system.matrix.shape[0]
        step_scores = solution[:size]
        theta = float(solution[size])
        nu = solution[size + 1 :].reshape(n_outputs, self.n_strata)
        combined = (system.matrix @ step_scores - system.shift * theta).reshape(n_outputs, -1).T
        alpha = system.inverse * (rhs_alpha - self.signs * self.design.output(combined) - self._spread(nu))
        alpha = np.where(self.used, alpha, 0.0)
        lam = np.where(self.used, push - point.lam / safe * alpha, 0.0)
        moved = theta - self._inner(system.scores, step_scores.reshape(n_outputs, -1).T)
        return _Point(alpha, theta, lam, pull - point.mu / system.gap * moved, nu)

    def longest_step(self, point: _Point, step: _Point) -> float:
        """Largest step that keeps every constraint and multiplier non-negative."""
        length = np.inf
        for value, change in ((point.alpha, step.alpha), (point.lam, step.lam), (point.mu, step.mu)):
            falling = change < 0
            if falling.any():
                length = min(length, float((-value[falling] / change[falling]).min()))
        # theta + x dtheta - |s + x ds|^2 / 2 >= 0 for each block: the positive root of a quadratic.
        scores, step_scores = self.scores(point.alpha), self.scores(step.alpha)
        a = self._squares(step_scores)
        b = step.theta - self._inner(scores, step_scores)
        c = point.theta - self._squares(scores)
        root = np.sqrt(np.maximum(b * b + 4 * a * c, 0.0))
        denominator = root - b
        positive = denominator > 0
        if positive.any():
            length = min(length, float((2 * c[positive] / denominator[positive]).min()))
        return length

    def scores(self, alpha: np.ndarray) -> np.ndarray:
        return self.design.scores(self.signs * alpha)

    def _squares(self, scores: np.ndarray) -> np.ndarray:
        return 0.5 * self._inner(scores, scores)

    def _inner(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.bincount(self.owner, weights=(left * right).sum(axis=1), minlength=self.n_blocks)

    def _quadratic(self, alpha: np.ndarray) -> float:
        return float((alpha * alpha * np.where(self.used, self.inverse_weight, 0.0)).sum())

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return np.array(
            [[values[self.strata[:, c] == e, c].sum() for e in range(self.n_strata)] for c in range(self.shape[1])]
        )

    def _spread(self, per_stratum: np.ndarray) -> np.ndarray:
        return np.stack([per_stratum[c][self.strata[:, c]] for c in range(self.shape[1])], axis=1)

    def _strata_links(self, inverse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``B`` (one column for each output and stratum) and the diagonal of ``K``."""
        n_features, n_outputs = self.shape
        link = np.zeros((n_outputs, n_features, n_outputs * self.n_strata))
        for c in range(n_outputs):
            members = np.stack(
                [np.where(self.strata[:, c] == e, self.signs[:, c] * inverse[:, c], 0.0) for e in range(self.n_strata)], axis=1
            )
            link[c, :, c * self.n_strata : (c + 1) * self.n_strata] = self.design.scores(members)
        return link.reshape(n_outputs * n_features, -1), self._sums(inverse).ravel()
