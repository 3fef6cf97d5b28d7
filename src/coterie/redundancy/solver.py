r"""Solvers of global redundancy minimisation: working set, the paper's method, and exchanges within a set.

**Problem** (eqs. 1 and 26 of the paper), without a matrix of all pairs:

.. math:: \min_{z \ge 0,\ 1'z = 1} f(z) = \frac{q(z)}{s'z}, \qquad q(z) = z'(A + \gamma G'G)z.

A quadratic over a linear function is jointly convex, so f is convex. With :math:`t = s'z`,
:math:`\nabla f = 2(A + \gamma G'G)z/t - (f/t)\,s` and :math:`\nabla f'z = f`, hence for every other point z' of the simplex
:math:`f(z') \ge f(z) + \nabla f'(z' - z) \ge \min_i \nabla_i f`. The smallest entry of the gradient is a lower bound on the
optimum, and the Frank-Wolfe gap :math:`f - \min_i \nabla_i f` is a certificate.

**Working set.** Few candidates have a positive weight at the optimum. The problem is solved on a working set of them by
coordinate descent. The gradient of *all* candidates (one pass over the data) then either certifies the solution or
determines the candidates to add.

**The paper's method** (Algorithms 2 and 4) is an augmented Lagrangian method with the matrix of all pairs, for comparison
on few candidates. The paper inverts :math:`A + \frac\mu2 I` in every step. Here A is decomposed once, which gives the same
steps.

**Sets.** Relevance minus redundancy of a set of k candidates is

.. math:: J(S) = \frac1k \sum_{i \in S} r_i - \lambda\,\frac{1}{k(k-1)} \sum_{i \ne j \in S} A_{ij}.

The convex problem penalises redundancy with *any* candidate of positive weight; here only redundancy with members counts. The
greedy method adds the feature with the largest increase of J, one at a time (mRMR by difference is the case
:math:`\lambda = 1/2` with mutual information). It never removes a feature. Exchanges do: the search ends when no replacement
of a member by another candidate increases J. Only the rows of A of the members are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from coterie.kernels import descent as kernels
from coterie.order import TIE
from coterie.redundancy.measures import Redundancy, SquaredCosine

# Size of the first working set, and lower limit of the number of candidates added per round.
_FIRST = 512
# Largest working set whose matrix is stored (0.5 GB). For larger ones, products use a matrix of samples by samples, if the
# number of samples is at most _MAX_SAMPLES.
_MAX_MATRIX = 8192
_MAX_SAMPLES = 4096
# Two candidates are copies if their redundancy is at most this share below that with themselves.
_COPY = 1e-12
# Largest number of sweeps per call of coordinate descent.
_MAX_SWEEPS = 500
# Largest number of attempts to solve for the support exactly. Each attempt drops candidates.
_MAX_POLISHES = 12
# Relative tolerance for the agreement of z and v, and largest number of steps.
_AGREEMENT = 1e-10
_MAX_STEPS = 2000


class Certificate(NamedTuple):
    """Value and gradient of the objective at a point, and a lower bound on the optimum."""

    value: float
    gradient: np.ndarray
    bound: float


class GroupPenalty:
    r"""Penalty of prior groups (section 2.4): :math:`\|Gz\|^2 = \sum_g \sum_{i<j \in g} (z_i - z_j)^2`, times a strength γ.

    For each group (groups may overlap), this is the Laplacian of its complete graph,
    :math:`m_g \sum z_i^2 - (\sum z_i)^2`. A product therefore takes one pass over the members, and G, with one row per pair,
    is never formed.
    """

    def __init__(self, groups: Sequence[np.ndarray], n_candidates: int, strength: float) -> None:
        groups = [group for group in groups if len(group) > 1]
        sizes = np.array([len(group) for group in groups], dtype=np.int64)
        members = np.concatenate([np.empty(0, dtype=np.int64), *groups])
        which = np.repeat(np.arange(len(groups)), sizes)
        self.strength = strength
        self.membership = sparse.csr_array((np.ones(len(members)), (members, which)), shape=(n_candidates, len(groups)))
        self.degree = np.asarray(self.membership @ sizes.astype(np.float64))

    def within(self, candidates: np.ndarray) -> np.ndarray:
        """Return the Laplacian between some candidates, times γ."""
        rows = self.membership[candidates]
        matrix = -(rows @ rows.T).toarray()
        matrix[np.diag_indices_from(matrix)] += self.degree[candidates]
        return self.strength * matrix

    def product(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return γ G'G z for all candidates."""
        sums = weights @ self.membership[support]
        result = -(self.membership @ sums)
        result[support] += self.degree[support] * weights
        return self.strength * result


class Objective:
    """Objective of the problem: scores (non-negative, not all zero), redundancy and prior groups of the candidates."""

    def __init__(self, scores: np.ndarray, redundancy: Redundancy, penalty: GroupPenalty | None = None) -> None:
        self.scores = scores
        self.redundancy = redundancy
        self.penalty = penalty

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.scores)

    def within(self, candidates: np.ndarray) -> np.ndarray:
        """Return the matrix of the quadratic form between some candidates."""
        matrix = self.redundancy.within(candidates)
        return matrix if self.penalty is None else matrix + self.penalty.within(candidates)

    def certificate(self, support: np.ndarray, weights: np.ndarray) -> Certificate:
        """Return value, gradient and bound at z, which is ``weights`` (with sum 1) on ``support``."""
        product = self.redundancy.product(support, weights)
        if self.penalty is not None:
            product = product + self.penalty.product(support, weights)
        relevance = float(self.scores[support] @ weights)
        value = float(product[support] @ weights) / relevance
        product *= 2.0 / relevance
        product -= (value / relevance) * self.scores
        return Certificate(value, product, float(product.min()))


class RefinedWeights(NamedTuple):
    """Weights of the candidates, with objective, bound, gap and iterations."""

    support: np.ndarray
    weights: np.ndarray
    objective: float
    bound: float
    gap: float
    n_iter: int
    working_set_size: int
    converged: bool


def solve(objective: Objective, tol: float, max_iter: int) -> RefinedWeights:
    """Minimise the objective to a relative gap of ``tol``.

    Candidates must be in an order that does not depend on the order of the data (decreasing scores). Of several equal
    candidates the first one gets the weight.
    """
    working = np.arange(min(_FIRST, objective.size))
    weights = np.zeros(len(working))
    weights[np.argmax(objective.scores[working])] = 1.0
    bound, precision = -np.inf, 0.1 * tol
    for iteration in range(1, max_iter + 1):
        size = len(working)
        weights = _restricted(objective, working, weights, precision)
        working, weights = working[weights > 0], weights[weights > 0]
        found = objective.certificate(working, weights)
        bound = max(bound, found.bound)
        gap = max(found.value - bound, 0.0) / found.value
        joining = _violators(found, working, tol, max(_FIRST, len(working)))
        if gap <= tol or iteration == max_iter or (not len(joining) and precision < 1e-14):
            break
        if not len(joining):
            precision *= 0.01  # the working set is correct, but its solution is not precise enough
        order = np.argsort(np.concatenate([working, joining]))
        weights = np.concatenate([weights, np.zeros(len(joining))])[order]
        working = np.concatenate([working, joining])[order]
    return RefinedWeights(working, weights, found.value, bound, gap, iteration, size, gap <= tol)


def _violators(found: Certificate, working: np.ndarray, tol: float, most: int) -> np.ndarray:
    """Return candidates outside the working set with too small a gradient, in increasing order; ties keep their order."""
    low = found.gradient < found.value * (1.0 - 0.5 * tol)
    low[working] = False
    candidates = np.flatnonzero(low)
    steps = np.rint(found.gradient[candidates] / (1e-11 * found.value))
    return candidates[np.argsort(steps, kind="stable")[:most]]


def _restricted(objective: Objective, working: np.ndarray, weights: np.ndarray, precision: float) -> np.ndarray:
    """Solve the problem on the working set, starting from given weights."""
    scores = objective.scores[working]
    redundancy = objective.redundancy
    if len(working) > _MAX_MATRIX and isinstance(redundancy, SquaredCosine) and redundancy.n_samples <= _MAX_SAMPLES:
        return _implicit(objective, redundancy, working, weights, precision)
    matrix = objective.within(working)
    product = matrix @ weights
    length = 2.0 * np.sqrt(scores @ weights) / (weights @ product)
    x = length * weights
    kernels.descend(matrix, scores, x, length * product, precision, _MAX_SWEEPS)
    return _polish(matrix, scores, _merge_copies(matrix, x / x.sum()))


def _implicit(
    objective: Objective, redundancy: SquaredCosine, working: np.ndarray, weights: np.ndarray, precision: float
) -> np.ndarray:
    """Solve the problem by coordinate descent without the matrix of the working set."""
    rows = np.ascontiguousarray(redundancy.unit_columns(working).T)
    scores = objective.scores[working]
    scatter = (rows.T * weights) @ rows
    quadratic = float(np.einsum("ij,ij->", scatter, scatter))
    penalty = objective.penalty
    degree, indptr, indices = np.zeros(len(working)), np.zeros(len(working) + 1, dtype=np.int32), np.empty(0, dtype=np.int32)
    sums, strength = np.empty(0), 0.0
    if penalty is not None:
        mine = penalty.membership[working]
        degree, indptr, indices, strength = penalty.degree[working], mine.indptr, mine.indices, penalty.strength
        sums = weights @ mine
        quadratic += strength * (degree @ weights**2 - sums @ sums)
    length = 2.0 * np.sqrt(scores @ weights) / quadratic
    x, scatter, sums = length * weights, length * scatter, length * sums
    kernels.descend_implicit(rows, scores, scatter, x, degree, indptr, indices, strength, sums, precision, _MAX_SWEEPS)
    return x / x.sum()


def _merge_copies(matrix: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Move the weight of copies (equal rows) to the first, which has the highest score.

    The objective does not increase, and the solution becomes unique.
    """
    support = np.flatnonzero(weights)
    small = matrix[np.ix_(support, support)]
    size = np.diag(small)
    first = np.argmax(small >= (1.0 - _COPY) * np.maximum(size[:, None], size), axis=1)
    result = np.zeros(len(weights))
    np.add.at(result, support[first], weights[support])
    return result


def _polish(matrix: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Solve for the weights of a known support.

    On the support :math:`Az = (f/2)(s + \tau 1)`, so that

    .. math:: z \propto u + \tau v, \qquad A u = s,\ A v = 1,\ \tau = \sqrt{s'u / 1'v}.

    Weights that become negative on the segment to this point are dropped. The objective decreases along the segment.
    """
    result = weights.copy()
    for _ in range(_MAX_POLISHES):
        support = np.flatnonzero(result)
        target = _stationary(matrix[np.ix_(support, support)], scores[support])
        if target is None:
            break
        current = result[support]
        leaving = target <= 0.0
        if not leaving.any():
            result[support] = target
            break
        steps = current[leaving] / (current[leaving] - target[leaving])
        step = float(steps.min())
        moved = np.maximum(current + step * (target - current), 0.0)
        moved[np.flatnonzero(leaving)[steps <= step]] = 0.0
        result[support] = moved / moved.sum()
    # Nearly equal candidates make the equations ill-conditioned. Coordinate descent is not affected.
    return result if _value(matrix, scores, result) <= _value(matrix, scores, weights) else weights


def _stationary(matrix: np.ndarray, scores: np.ndarray) -> np.ndarray | None:
    """Return the stationary point of the objective for weights with sum 1, or None if the equations have no solution."""
    try:
        solved = cho_solve(cho_factor(matrix, lower=True), np.column_stack([scores, np.ones(len(scores))]))
    except LinAlgError:
        return None
    ratio = (scores @ solved[:, 0]) / solved[:, 1].sum()
    if not (np.isfinite(ratio) and ratio > 0.0):
        return None
    target = solved[:, 0] + np.sqrt(ratio) * solved[:, 1]
    total = target.sum()
    return target / total if np.isfinite(total) and total > 0.0 and scores @ target > 0.0 else None


def _value(matrix: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
    return float(weights @ (matrix @ weights) / (scores @ weights))


def solve_alm(
    objective: Objective, tol: float, max_iter: int, *, penalty_growth: float = 1.03, penalty_start: float = 0.01
) -> RefinedWeights:
    """Minimise the objective by Algorithm 2.

    The outer loop is over :math:`\\lambda = z'Az/z's`; the inner augmented Lagrangian loop solves eq. 6.

    ``penalty_growth`` is the paper's ρ, the growth factor of the penalty µ per step, between 1 and 2. ``penalty_start`` is
    the initial µ of each inner loop, relative to the mean eigenvalue of A. The paper does not state their values.
    """
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
    """Solve eq. 6, :math:`\\min z'Az - \\lambda z's` on the simplex, by the inner loop of Algorithm 2. Return z and α."""
    for _ in range(_MAX_STEPS):
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
    r"""Return the nearest point of the simplex, :math:`z_i = (u_i - \bar\lambda)_+` (eqs. 10 to 24).

    Newton's method finds the root of eq. 24, a convex piecewise linear function, in a finite number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.redundancy.solver import project_to_simplex
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


class ChosenSet(NamedTuple):
    """Set of candidates and its J.

    ``members`` are in the reverse order of removal: the removal of the last member leaves the set with the highest J, and so
    on. ``n_exchanges`` is the number of exchanges after the greedy search. ``converged`` is True if no exchange of one member
    improves the set.
    """

    members: np.ndarray
    objective: float
    n_exchanges: int
    converged: bool


def choose_set(relevance: np.ndarray, redundancy: Redundancy, n_wanted: int, strength: float, max_exchanges: int) -> ChosenSet:
    """Build a set greedily, then make the best exchange as long as it increases J.

    Candidates must be in an order that does not depend on the order of the data (decreasing scores). Of equal candidates
    the first enters and the last leaves.
    """
    tie = TIE * max(float(relevance.max()), strength)
    members, rows = _greedy(relevance, redundancy, n_wanted, strength, tie)
    factor = 2.0 * strength / max(n_wanted - 1, 1)
    n_exchanges, converged = 0, False
    while True:
        leaving, entering = _best_exchange(relevance, members, rows, factor, tie)
        converged = leaving < 0
        if converged or n_exchanges == max_exchanges:
            break
        members[leaving], rows[leaving] = entering, _row(redundancy, entering)
        n_exchanges += 1
    within = rows[:, members]
    order = _removal_order(relevance[members], within, strength, members, tie)
    value = float(relevance[members].mean()) - 0.5 * factor * float(within.sum()) / n_wanted
    return ChosenSet(members[order], value, n_exchanges, converged)


def _row(redundancy: Redundancy, candidate: int) -> np.ndarray:
    """Return the redundancy of all candidates with one candidate, 0 with itself."""
    row = redundancy.product(np.array([candidate]), np.ones(1))
    row[candidate] = 0.0
    return row


def _greedy(
    relevance: np.ndarray, redundancy: Redundancy, n_wanted: int, strength: float, tie: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the greedy set, to which the candidate with the largest increase of J is added, and its rows of A."""
    members, rows = np.empty(n_wanted, dtype=np.int64), np.empty((n_wanted, len(relevance)))
    total = np.zeros(len(relevance))
    for place in range(n_wanted):
        value = relevance - (2.0 * strength / max(place, 1)) * total
        value[members[:place]] = -np.inf
        members[place] = np.argmax(value >= value.max() - tie)
        rows[place] = _row(redundancy, int(members[place]))
        total += rows[place]
    return members, rows


def _best_exchange(relevance: np.ndarray, members: np.ndarray, rows: np.ndarray, factor: float, tie: float) -> tuple[int, int]:
    """Return the position of the leaving member and the entering candidate, or (-1, -1) if no exchange increases J."""
    value = relevance - factor * rows.sum(axis=0)
    # Redundancy of the entering candidate with the leaving member does not count.
    gains = factor * rows
    gains += value
    gains -= value[members][:, None]
    gains[:, members] = -np.inf
    best = float(gains.max())
    if best <= tie:
        return -1, -1
    leaving, entering = np.nonzero(gains >= best - tie)
    first = int(entering.min())
    able = leaving[entering == first]
    return int(able[np.argmax(members[able])]), first


def _removal_order(relevance: np.ndarray, within: np.ndarray, strength: float, members: np.ndarray, tie: float) -> np.ndarray:
    """Return the members in the reverse order of removal. Each step removes the one that leaves the highest J."""
    left = np.argsort(members)
    order: list[int] = []
    while len(left):
        factor = 2.0 * strength / max(len(left) - 2, 1)
        worth = relevance[left] - factor * within[np.ix_(left, left)].sum(axis=1)
        if len(left) == 2:  # the redundancy of two members is the same for both, so the more relevant one stays
            worth = relevance[left]
        last = int(np.flatnonzero(worth <= worth.min() + tie)[-1])
        order.append(int(left[last]))
        left = np.delete(left, last)
    return np.array(order[::-1], dtype=np.int64)
