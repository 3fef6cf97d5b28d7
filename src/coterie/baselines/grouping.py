"""Feature grouping and selection over a graph by non-convex penalties (ncFGS and ncTFGS)."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from coterie._parameters import N_JOBS, SHARE, Anything, Flag, Number, Rule, Whole
from coterie.baselines.base import LabelledData
from coterie.baselines.fusion import Edges, FusedPenalty, both_signs, equal_along_edges
from coterie.baselines.graph import FeatureGraph, feature_graph
from coterie.baselines.least_squares import ProximalGradient, StandardizedDesign
from coterie.baselines.penalized import PenalizedModel, PenalizedSelector


class FeatureGroupingSelector(PenalizedSelector):
    r"""Least squares with penalties on the size of coefficients and on differences in size between neighbours in a graph.

    Minimises, over standardised features and labels y = -1, 1 (centred),

    .. math:: \frac{1}{2n}\|y - Xw\|^2 + \alpha\Big(\sum_j J(|w_j|)
        + \gamma\sum_{(i,j)\in E} J\big(\big||w_i| - |w_j|\big|\big)\Big)

    with :math:`J(x) = x` (ncFGS) or :math:`J(x) = \min(x, \tau)` (ncTFGS, ``truncated=True``) [1]_. Other than in the
    graph-guided fused lasso no sign of a correlation enters, so none can be wrong.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default=10
        Number of features to keep, or their fraction of all features. ``"auto"``, together with ``alpha``, keeps all
        features with a coefficient.

    alpha : float or None, default=None
        Strength of the penalty. None: the one that gives the number of features asked for, by bisection along the path.

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

    path_ : list of (float, int)
        Each alpha that was tried, and the number of features with a coefficient.

    n_iter_ : int
        Steps of the solver along the whole path.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X has names that are all strings.

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
        "truncated": Flag(),
        "tau": Number(),
        "threshold": Number(at_most=1),
        "edges": Anything(),
        "max_rounds": Whole(1),
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
        edges: Any = None,
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

    def _prepare(self, data: LabelledData, design: StandardizedDesign) -> tuple[FeatureGraph, Edges]:
        graph = feature_graph(data, self.edges, float(self.threshold))
        return graph, both_signs(graph)

    def _strongest(self, design: StandardizedDesign, shared: tuple[FeatureGraph, Edges]) -> float:
        return float(np.abs(design.relevance).max())

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
