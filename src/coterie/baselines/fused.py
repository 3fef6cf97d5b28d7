"""Fusion over a graph of the features: the graph-guided fused lasso (GFlasso), ncFGS and ncTFGS."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coterie._numba import read_only
from coterie._parameters import N_JOBS, SHARE, AnyValue, Boolean, Integer, Number, Rule
from coterie.baselines.base import TrainingData
from coterie.baselines.graph import FeatureGraph, feature_graph
from coterie.baselines.penalized import PenalizedModel, PenalizedSelector, ProximalGradient, StandardizedDesign
from coterie.estimators.documentation import documented
from coterie.kernels.descent import fuse

_MAX_SWEEPS = 500


class Edges(NamedTuple):
    """Pairs of features, the sign that relates their coefficients, and the weight of each pair."""

    first: np.ndarray
    second: np.ndarray
    sign: np.ndarray
    weight: np.ndarray

    def differences(self, coef: np.ndarray) -> np.ndarray:
        """Return the penalised differences: the first coefficient minus the sign times the second."""
        return coef[self.first] - self.sign * coef[self.second]

    def gather(self, dual: np.ndarray, n_features: int) -> np.ndarray:
        """Apply the transpose of :meth:`differences`."""
        return np.bincount(self.first, dual, n_features) - np.bincount(self.second, self.sign * dual, n_features)


def both_signs(graph: FeatureGraph) -> Edges:
    """Return each edge twice, for the sum and the difference. Their absolute values add up to twice the larger size."""
    sign = np.repeat([1.0, -1.0], len(graph.first))
    return Edges(np.tile(graph.first, 2), np.tile(graph.second, 2), sign, np.ones(len(sign)))


class FusedPenalty:
    r"""Penalty :math:`\lambda\|w\|_1 + \mu\sum_e \omega_e |w_i - s_e w_j| - c'w`.

    The parameters are ``lasso``, ``fusion``, ``edges`` and ``linear``. The proximal step of the fusion alone is computed
    first, by its dual, until no edge changes by more than ``precision`` times the largest entry. Soft thresholding follows.
    This is exact for the sum of both, because thresholding is odd and monotone and therefore preserves the sign of every
    difference.
    """

    def __init__(
        self, lasso: float, fusion: float, edges: Edges, *, linear: np.ndarray | None = None, precision: float = 1e-12
    ) -> None:
        self.lasso = lasso
        self.fusion = fusion
        self.edges = edges
        self.linear = linear
        self.precision = precision
        self.dual = np.zeros(len(edges.first))  # dual of the last step, used to start the next one

    def value(self, coef: np.ndarray) -> float:
        """Return the penalty of coefficients."""
        fused = self.fusion * float(self.edges.weight @ np.abs(self.edges.differences(coef)))
        tilt = 0.0 if self.linear is None else float(self.linear @ coef)
        return self.lasso * float(np.abs(coef).sum()) + fused - tilt

    def prox(self, point: np.ndarray, step: float) -> np.ndarray:
        """Return the proximal step: fusion, then soft thresholding."""
        fused = point.copy() if self.linear is None else point + step * self.linear
        scaled = self.dual * step
        edges = self.edges
        fuse(
            fused, read_only(edges.first), read_only(edges.second), read_only(edges.sign), step * self.fusion * edges.weight,
            scaled, self.precision * float(np.abs(fused).max(initial=0.0)), _MAX_SWEEPS,
        )  # fmt: skip
        self.dual = scaled / step
        return np.sign(fused) * np.maximum(np.abs(fused) - step * self.lasso, 0.0)


def equal_along_edges(
    coef: np.ndarray, edges: Edges | FeatureGraph, size: np.ndarray, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return edges between features with coefficients whose difference ``size`` is within the solver's tolerance."""
    close = size <= max(100.0 * tol, 1e-6) * np.abs(coef).max(initial=0.0)
    both = (coef[edges.first] != 0.0) & (coef[edges.second] != 0.0)
    return edges.first[close & both], edges.second[close & both]


@documented
class GraphFusedLassoSelector(PenalizedSelector):
    r"""Lasso with a penalty on the difference of the coefficients of correlated features.

    Minimises, over standardised features and labels y = -1, 1 (centred),

    .. math:: \frac{1}{2n}\|y - Xw\|^2 + \alpha\Big(\|w\|_1
        + \gamma\sum_{(i,j)\in E}\omega_{ij}\,\big|w_i - \mathrm{sign}(\rho_{ij})\,w_j\big|\Big)

    where E is the set of pairs with an absolute correlation of at least ``threshold`` [1]_, [2]_.

    Parameters
    ----------
    %(penalized)s

    fusion : float, default=1.0
        Weight :math:`\gamma` of the differences.

    threshold : float, default=0.7
        Smallest \|correlation\| of an edge. Pairs are found in blocks, without the matrix of all pairs.

    edges : array-like of shape (n_edges, 2) or None, default=None
        Edges as pairs of feature indices, instead of the pairs above the threshold. The signs are those of the
        correlations.

    weighted : bool, default=False
        Whether edges have the weight :math:`\omega_{ij} = |\rho_{ij}|`. Otherwise the weight is 1.

    tol : float, default=1e-5
        Tolerance. See Notes.

    max_iter : int, default=5000
        Largest number of steps per ``alpha``.

    n_jobs : int or None, default=None
        Number of threads in the search for edges. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, in decreasing order of \|coefficient\| and, within a group, of correlation with the
        labels.

    coef_ : ndarray of shape (n_features,)
        Coefficients for the standardised features.

    groups_ : FeatureGroups
        Groups of the features with nonzero coefficients. Neighbours in the graph whose coefficients are fused (equal up to
        100 times ``tol``, relative to the largest) are in the same group.

    alpha_ : float
        Strength of the penalty.

    objective_, dual_gap_ : float
        Objective, and an upper bound on its distance from the optimum.

    n_edges_ : int
        Number of edges of the graph.

    %(penalized_found)s

    %(seen)s

    See Also
    --------
    FeatureGroupingSelector : Requires no signs, and shrinks less.
    OSCARSelector : Requires no graph.

    Notes
    -----
    The solver is an accelerated proximal gradient method. The proximal step of the fusion is computed by coordinate ascent
    on its dual. The solver stops if the step, times the Lipschitz constant of the gradient, is at most ``tol`` times the
    norm of the gradient at zero.

    References
    ----------
    .. [1] S. Kim, K.-A. Sohn, E. P. Xing, "A multivariate regression approach to association analysis of a quantitative
       trait network", Bioinformatics 25(12), 2009.
    .. [2] S. Kim, E. P. Xing, "Statistical estimation of correlated genome associations to a quantitative trait
       network", PLoS Genetics 5(8), 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.baselines import GraphFusedLassoSelector
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(100)
    >>> X = np.column_stack([x, rng.standard_normal(100), -x + 0.1 * rng.standard_normal(100)])
    >>> GraphFusedLassoSelector(2).fit(X, x > 0).groups_
    1 group, 2 features
      1. 0 ~ 2 (-0.99)
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        **PenalizedSelector._allowed,
        "fusion": SHARE,
        "threshold": Number(at_most=1),
        "edges": AnyValue(),
        "weighted": Boolean(),
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = 10,
        *,
        alpha: float | None = None,
        fusion: float = 1.0,
        threshold: float = 0.7,
        edges: ArrayLike | None = None,
        weighted: bool = False,
        tol: float = 1e-5,
        max_iter: int = 5000,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.fusion = fusion
        self.threshold = threshold
        self.edges = edges
        self.weighted = weighted
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _prepare(self, data: TrainingData, design: StandardizedDesign) -> Edges:
        graph = feature_graph(data, self.edges, float(self.threshold))
        weight = np.abs(graph.correlation) if self.weighted else np.ones(len(graph.first))
        return Edges(graph.first, graph.second, np.where(graph.correlation < 0.0, -1.0, 1.0), weight)

    def _model(self, solver: ProximalGradient, strength: float, shared: Edges, start: np.ndarray | None) -> PenalizedModel:
        penalty = FusedPenalty(strength, strength * float(self.fusion), shared, precision=1e-4 * solver.tol)
        solution = solver.solve(penalty, start)
        # Residual and dual of the edges are scaled by a common factor such that max |X'u - D'z| is at most the strength.
        slope = solver.design.adjoint(solution.residual) - shared.gather(penalty.dual, len(solution.coef))
        factor = 1.0 / max(float(np.abs(slope).max()) / strength, 1.0)
        gap = solution.gap(solver.design.targets, factor)
        return PenalizedModel(solution, {"dual_gap_": gap, "n_edges_": len(shared.first)})

    def _equal_pairs(self, coef: np.ndarray, shared: Edges) -> tuple[np.ndarray, np.ndarray]:
        return equal_along_edges(coef, shared, np.abs(shared.differences(coef)), float(self.tol))


@documented
class FeatureGroupingSelector(PenalizedSelector):
    r"""Least squares with penalties on absolute coefficients and on their differences between neighbours in a graph.

    Minimises, over standardised features and labels y = -1, 1 (centred),

    .. math:: \frac{1}{2n}\|y - Xw\|^2 + \alpha\Big(\sum_j J(|w_j|)
        + \gamma\sum_{(i,j)\in E} J\big(\big||w_i| - |w_j|\big|\big)\Big)

    with :math:`J(x) = x` (ncFGS) or :math:`J(x) = \min(x, \tau)` (ncTFGS, ``truncated=True``) [1]_. Unlike the graph-guided
    fused lasso, the method does not use the signs of the correlations, and wrong signs cannot affect it.

    Parameters
    ----------
    %(penalized)s

    fusion : float, default=1.0
        Weight :math:`\gamma` of the differences.

    truncated : bool, default=False
        Whether the penalty is constant for coefficients and differences above :math:`\tau` (ncTFGS).

    tau : float, default=0.15
        Value above which the truncated penalty is constant.

    threshold : float, default=0.7
        Smallest \|correlation\| of an edge. Pairs are found in blocks, without the matrix of all pairs.

    edges : array-like of shape (n_edges, 2) or None, default=None
        Edges as pairs of feature indices, instead of the pairs above the threshold.

    tol : float, default=1e-5
        Tolerance. See Notes.

    max_iter : int, default=5000
        Largest number of steps per convex problem.

    max_rounds : int, default=50
        Largest number of convex problems per ``alpha``.

    n_jobs : int or None, default=None
        Number of threads in the search for edges. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, in decreasing order of \|coefficient\| and, within a group, of correlation with the
        labels.

    coef_ : ndarray of shape (n_features,)
        Coefficients for the standardised features.

    groups_ : FeatureGroups
        Groups of the features with nonzero coefficients. Neighbours in the graph with equal \|coefficient\| (up to 100 times
        ``tol``, relative to the largest) are in the same group.

    alpha_ : float
        Strength of the penalty.

    objective_ : float
        Objective at a stationary point.

    history_ : ndarray of shape (n_rounds,)
        Objective after each convex problem. It never increases (up to the tolerance).

    n_edges_ : int
        Number of edges of the graph.

    %(penalized_found)s

    %(seen)s

    See Also
    --------
    GraphFusedLassoSelector : Convex variant with signs.

    Notes
    -----
    Both penalties are differences of convex functions:

    .. math:: \min(||a|-|b||, \tau) = |a+b| + |a-b| - \max(|a|+|b|,\; 2\max(|a|,|b|) - \tau)

    (:math:`\tau = \infty` without truncation). The algorithm starts at w = 0. In each round, the second part is replaced by
    its tangent at the last solution. The remaining convex problem is solved by the solver of
    :class:`GraphFusedLassoSelector`, with its stopping rule. The algorithm ends if the objective decreases by at most ``tol``
    times its value.

    The paper divides J by :math:`\tau` in the truncated case. Here this factor is part of ``alpha``, so that both penalties
    agree for small coefficients.

    References
    ----------
    .. [1] S. Yang, L. Yuan, Y.-C. Lai, X. Shen, P. Wonka, J. Ye, "Feature grouping and selection over an undirected graph",
       KDD 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.baselines import FeatureGroupingSelector
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(100)
    >>> X = np.column_stack([x, rng.standard_normal(100), -x + 0.1 * rng.standard_normal(100)])
    >>> FeatureGroupingSelector(2).fit(X, x > 0).groups_
    1 group, 2 features
      1. 0 ~ 2 (-0.99)
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        **PenalizedSelector._allowed,
        "fusion": SHARE,
        "truncated": Boolean(),
        "tau": Number(),
        "threshold": Number(at_most=1),
        "edges": AnyValue(),
        "max_rounds": Integer(1),
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = 10,
        *,
        alpha: float | None = None,
        fusion: float = 1.0,
        truncated: bool = False,
        tau: float = 0.15,
        threshold: float = 0.7,
        edges: ArrayLike | None = None,
        tol: float = 1e-5,
        max_iter: int = 5000,
        max_rounds: int = 50,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.fusion = fusion
        self.truncated = truncated
        self.tau = tau
        self.threshold = threshold
        self.edges = edges
        self.tol = tol
        self.max_iter = max_iter
        self.max_rounds = max_rounds
        self.n_jobs = n_jobs

    history_: np.ndarray
    _limits: ClassVar[tuple[str, ...]] = ("max_iter", "max_rounds")

    def _prepare(self, data: TrainingData, design: StandardizedDesign) -> tuple[FeatureGraph, Edges]:
        graph = feature_graph(data, self.edges, float(self.threshold))
        return graph, both_signs(graph)

    def _model(
        self, solver: ProximalGradient, strength: float, shared: tuple[FeatureGraph, Edges], start: np.ndarray | None
    ) -> PenalizedModel:
        graph, edges = shared
        fusion = strength * float(self.fusion)
        concave = ConcavePart(graph, strength, fusion, float(self.tau) if self.truncated else np.inf)
        penalty = FusedPenalty(strength, fusion, edges, precision=1e-4 * solver.tol)
        tangent = np.zeros(len(solver.design.mean))
        history: list[float] = []
        while True:
            penalty.linear = tangent
            solution = solver.solve(penalty, start)
            penalty.linear = None
            loss = 0.5 * float(solution.residual @ solution.residual)
            history.append(loss + penalty.value(solution.coef) - concave.value(solution.coef))
            fall = history[-2] - history[-1] if len(history) > 1 else np.inf
            settled = fall <= solver.tol * abs(history[-1])
            if settled or len(history) == self.max_rounds:
                break
            start, tangent = solution.coef, concave.slope(solution.coef)
        reached = solution.reached if settled else max(solution.reached, fall / abs(history[-1]))
        solution = solution._replace(objective=history[-1], converged=solution.converged and settled, reached=reached)
        report = {"history_": np.array(history) / len(solution.residual), "n_edges_": len(graph.first)}
        return PenalizedModel(solution, report)

    def _equal_pairs(self, coef: np.ndarray, shared: tuple[FeatureGraph, Edges]) -> tuple[np.ndarray, np.ndarray]:
        graph = shared[0]
        size = np.abs(np.abs(coef[graph.first]) - np.abs(coef[graph.second]))
        return equal_along_edges(coef, graph, size, float(self.tol))


class ConcavePart(NamedTuple):
    r"""Convex function subtracted from the convex part :math:`\lambda\|w\|_1 + \mu\sum_E (|w_i + w_j| + |w_i - w_j|)`.

    It is :math:`\lambda\sum_j \max(|w_j| - \tau, 0) + \mu\sum_E \max(|w_i| + |w_j|, 2\max(|w_i|, |w_j|) - \tau)`.
    """

    graph: FeatureGraph
    lasso: float
    fusion: float
    tau: float

    def value(self, coef: np.ndarray) -> float:
        """Return the value of the function."""
        size = np.abs(coef)
        a, b = size[self.graph.first], size[self.graph.second]
        pairs = np.maximum(a + b, 2.0 * np.maximum(a, b) - self.tau).sum()
        return self.lasso * float(np.maximum(size - self.tau, 0.0).sum()) + self.fusion * float(pairs)

    def slope(self, coef: np.ndarray) -> np.ndarray:
        """Return a subgradient (0 for zero coefficients)."""
        size = np.abs(coef)
        first, second = self.graph.first, self.graph.second
        apart = size[first] - size[second]
        # Neighbours whose sizes differ by at most tau contribute 1 each; otherwise the larger one contributes 2.
        of_first = np.where(apart > self.tau, 2.0, np.where(apart < -self.tau, 0.0, 1.0))
        pull = np.bincount(first, of_first, len(coef)) + np.bincount(second, 2.0 - of_first, len(coef))
        return np.sign(coef) * (self.lasso * (size > self.tau) + self.fusion * pull)
