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
    """Pairs of features with the sign that their coefficients are to agree in, and the weight of each pair."""

    first: np.ndarray
    second: np.ndarray
    sign: np.ndarray
    weight: np.ndarray

    def differences(self, coef: np.ndarray) -> np.ndarray:
        """What is penalised: the first coefficient less the sign times the second."""
        return coef[self.first] - self.sign * coef[self.second]

    def gather(self, dual: np.ndarray, n_features: int) -> np.ndarray:
        """The transpose of :meth:`differences`."""
        return np.bincount(self.first, dual, n_features) - np.bincount(self.second, self.sign * dual, n_features)


def both_signs(graph: FeatureGraph) -> Edges:
    """Each edge twice, for the sum and the difference: together twice the larger of the two sizes."""
    sign = np.repeat([1.0, -1.0], len(graph.first))
    return Edges(np.tile(graph.first, 2), np.tile(graph.second, 2), sign, np.ones(len(sign)))


class FusedPenalty:
    r""":math:`\lambda\|w\|_1 + \mu\sum_e \omega_e |w_i - s_e w_j| - c'w` for ``lasso``, ``fusion``, ``edges`` and ``linear``.

    The proximal step of the fusion alone comes first, by the dual, until no edge changes by more than ``precision`` times the
    largest entry; then soft thresholding. This is exact for the sum of both, since thresholding is odd and monotone and thus
    keeps the sign of every difference.
    """

    def __init__(
        self, lasso: float, fusion: float, edges: Edges, *, linear: np.ndarray | None = None, precision: float = 1e-12
    ) -> None:
        self.lasso = lasso
        self.fusion = fusion
        self.edges = edges
        self.linear = linear
        self.precision = precision
        self.dual = np.zeros(len(edges.first))  # of the last step: a good first guess for the next

    def value(self, coef: np.ndarray) -> float:
        """The penalty of some coefficients."""
        fused = self.fusion * float(self.edges.weight @ np.abs(self.edges.differences(coef)))
        tilt = 0.0 if self.linear is None else float(self.linear @ coef)
        return self.lasso * float(np.abs(coef).sum()) + fused - tilt

    def prox(self, point: np.ndarray, step: float) -> np.ndarray:
        """Fusion, then soft thresholding."""
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
    """Edges between features with coefficients where the difference ``size`` is within the tolerance of the solver."""
    close = size <= max(100.0 * tol, 1e-6) * np.abs(coef).max(initial=0.0)
    both = (coef[edges.first] != 0.0) & (coef[edges.second] != 0.0)
    return edges.first[close & both], edges.second[close & both]


@documented
class GraphFusedLassoSelector(PenalizedSelector):
    r"""Lasso with a penalty on the difference of the coefficients of correlated features.

    Minimises, over standardised features and labels y = -1, 1 (centred),

    .. math:: \frac{1}{2n}\|y - Xw\|^2 + \alpha\Big(\|w\|_1
        + \gamma\sum_{(i,j)\in E}\omega_{ij}\,\big|w_i - \mathrm{sign}(\rho_{ij})\,w_j\big|\Big)

    where E are the pairs with a correlation of at least ``threshold`` in absolute value [1]_, [2]_.

    Parameters
    ----------
    %(penalized)s

    fusion : float, default=1.0
        The weight :math:`\gamma` of the differences.

    threshold : float, default=0.7
        Smallest \|correlation\| of an edge. Pairs are found in blocks; there is no matrix of all pairs.

    edges : array-like of shape (n_edges, 2) or None, default=None
        The edges as pairs of feature indices, instead of those that the threshold gives. The signs are those of the
        correlations.

    weighted : bool, default=False
        Whether edges have the weight :math:`\omega_{ij} = |\rho_{ij}|`; otherwise 1.

    tol : float, default=1e-5
        Tolerance: see Notes.

    max_iter : int, default=5000
        Largest number of steps for one ``alpha``.

    n_jobs : int or None, default=None
        Number of threads that look for edges. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, that of the largest \|coefficient\| first; in a group the one most
        correlated with the labels.

    coef_ : ndarray of shape (n_features,)
        Coefficients for the standardised features.

    groups_ : FeatureGroups
        The features with coefficients; neighbours in the graph whose coefficients are fused (equal up to 100 times
        ``tol``, relative to the largest) are together.

    alpha_ : float
        Strength of the penalty that was used.

    objective_, dual_gap_ : float
        The objective, and a bound on how far it is from the optimum.

    n_edges_ : int
        Number of edges of the graph.

    %(penalized_found)s

    %(seen)s

    See Also
    --------
    FeatureGroupingSelector : Needs no signs, and shrinks less.
    OSCARSelector : Needs no graph.

    Notes
    -----
    The solver is an accelerated proximal gradient method; the proximal step of the fusion is solved by coordinate
    ascent on its dual.
    It stops when the step, times the Lipschitz constant of the gradient, is at most ``tol`` times the norm of the
    gradient at zero.

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
        # Residual and dual of the edges, shortened together until max |X'u - D'z| is at most the strength.
        slope = solver.design.adjoint(solution.residual) - shared.gather(penalty.dual, len(solution.coef))
        factor = 1.0 / max(float(np.abs(slope).max()) / strength, 1.0)
        gap = solution.gap(solver.design.targets, factor)
        return PenalizedModel(solution, {"dual_gap_": gap, "n_edges_": len(shared.first)})

    def _equal_pairs(self, coef: np.ndarray, shared: Edges) -> tuple[np.ndarray, np.ndarray]:
        return equal_along_edges(coef, shared, np.abs(shared.differences(coef)), float(self.tol))


@documented
class FeatureGroupingSelector(PenalizedSelector):
    r"""Least squares with penalties on the size of coefficients and on differences in size between neighbours in a graph.

    Minimises, over standardised features and labels y = -1, 1 (centred),

    .. math:: \frac{1}{2n}\|y - Xw\|^2 + \alpha\Big(\sum_j J(|w_j|)
        + \gamma\sum_{(i,j)\in E} J\big(\big||w_i| - |w_j|\big|\big)\Big)

    with :math:`J(x) = x` (ncFGS) or :math:`J(x) = \min(x, \tau)` (ncTFGS, ``truncated=True``) [1]_. Other than in the
    graph-guided fused lasso no sign of a correlation enters, so none can be wrong.

    Parameters
    ----------
    %(penalized)s

    fusion : float, default=1.0
        The weight :math:`\gamma` of the differences.

    truncated : bool, default=False
        Whether large coefficients and differences are penalised no further than :math:`\tau` (ncTFGS).

    tau : float, default=0.15
        Where the truncated penalty ends.

    threshold : float, default=0.7
        Smallest \|correlation\| of an edge. Pairs are found in blocks; there is no matrix of all pairs.

    edges : array-like of shape (n_edges, 2) or None, default=None
        The edges as pairs of feature indices, instead of those that the threshold gives.

    tol : float, default=1e-5
        Tolerance: see Notes.

    max_iter : int, default=5000
        Largest number of steps for one convex problem.

    max_rounds : int, default=50
        Largest number of convex problems for one ``alpha``.

    n_jobs : int or None, default=None
        Number of threads that look for edges. The result does not depend on it.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, that of the largest \|coefficient\| first; in a group the one most
        correlated with the labels.

    coef_ : ndarray of shape (n_features,)
        Coefficients for the standardised features.

    groups_ : FeatureGroups
        The features with coefficients; neighbours in the graph of equal \|coefficient\| (up to 100 times ``tol``,
        relative to the largest) are together.

    alpha_ : float
        Strength of the penalty that was used.

    objective_ : float
        The objective, at a stationary point.

    history_ : ndarray of shape (n_rounds,)
        The objective after each convex problem; it never rises (up to the tolerance).

    n_edges_ : int
        Number of edges of the graph.

    %(penalized_found)s

    %(seen)s

    See Also
    --------
    GraphFusedLassoSelector : The convex relative, with signs.

    Notes
    -----
    Both penalties are differences of convex functions:

    .. math:: \min(||a|-|b||, \tau) = |a+b| + |a-b| - \max(|a|+|b|,\; 2\max(|a|,|b|) - \tau)

    (:math:`\tau = \infty` without truncation). From w = 0, the second part is replaced by its tangent at the last
    solution and the
    convex problem that is left solved, by the solver of :class:`GraphFusedLassoSelector` with its stopping rule, until
    the objective falls by at most ``tol`` times its value.

    The paper divides J by :math:`\tau` in the truncated case; here that factor is part of ``alpha``, so that both
    penalties agree for small coefficients.

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
    r"""What is subtracted from the convex part :math:`\lambda\|w\|_1 + \mu\sum_E (|w_i + w_j| + |w_i - w_j|)`; convex itself.

    That is :math:`\lambda\sum_j \max(|w_j| - \tau, 0) + \mu\sum_E \max(|w_i| + |w_j|, 2\max(|w_i|, |w_j|) - \tau)`.
    """

    graph: FeatureGraph
    lasso: float
    fusion: float
    tau: float

    def value(self, coef: np.ndarray) -> float:
        """Its value."""
        size = np.abs(coef)
        a, b = size[self.graph.first], size[self.graph.second]
        pairs = np.maximum(a + b, 2.0 * np.maximum(a, b) - self.tau).sum()
        return self.lasso * float(np.maximum(size - self.tau, 0.0).sum()) + self.fusion * float(pairs)

    def slope(self, coef: np.ndarray) -> np.ndarray:
        """A subgradient (0 for coefficients that are 0)."""
        size = np.abs(coef)
        first, second = self.graph.first, self.graph.second
        apart = size[first] - size[second]
        # Neighbours that are close pull with one each; of those that are apart the larger one with two.
        of_first = np.where(apart > self.tau, 2.0, np.where(apart < -self.tau, 0.0, 1.0))
        pull = np.bincount(first, of_first, len(coef)) + np.bincount(second, 2.0 - of_first, len(coef))
        return np.sign(coef) * (self.lasso * (size > self.tau) + self.fusion * pull)
