"""The graph-guided fused lasso (GFlasso)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from coterie._parameters import N_JOBS, SHARE, Anything, Flag, Number, Rule
from coterie.baselines.base import LabelledData
from coterie.baselines.fusion import Edges, FusedPenalty, equal_along_edges
from coterie.baselines.graph import feature_graph
from coterie.baselines.least_squares import ProximalGradient, StandardizedDesign
from coterie.baselines.penalized import PenalizedModel, PenalizedSelector


class GraphFusedLassoSelector(PenalizedSelector):
    r"""Lasso with a penalty on the difference of the coefficients of correlated features.

    Minimises, over standardised features and labels y = -1, 1 (centred),

    .. math:: \frac{1}{2n}\|y - Xw\|^2 + \alpha\Big(\|w\|_1
        + \gamma\sum_{(i,j)\in E}\omega_{ij}\,\big|w_i - \mathrm{sign}(\rho_{ij})\,w_j\big|\Big)

    where E are the pairs with a correlation of at least ``threshold`` in absolute value [1]_, [2]_.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default=10
        Number of features to keep, or their fraction of all features. ``"auto"``, together with ``alpha``, keeps all
        features with a coefficient.

    alpha : float or None, default=None
        Strength of the penalty. None: the one that gives the number of features asked for, by bisection along the path.

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
        "edges": Anything(),
        "weighted": Flag(),
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = 10,
        *,
        alpha: float | None = None,
        fusion: float = 1.0,
        threshold: float = 0.7,
        edges: Any = None,
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

    def _prepare(self, data: LabelledData, design: StandardizedDesign) -> Edges:
        graph = feature_graph(data, self.edges, float(self.threshold))
        weight = np.abs(graph.correlation) if self.weighted else np.ones(len(graph.first))
        return Edges(graph.first, graph.second, np.where(graph.correlation < 0.0, -1.0, 1.0), weight)

    def _strongest(self, design: StandardizedDesign, shared: Edges) -> float:
        return float(np.abs(design.relevance).max())

    def _model(self, solver: ProximalGradient, strength: float, shared: Edges, start: np.ndarray | None) -> PenalizedModel:
        penalty = FusedPenalty(strength, strength * float(self.fusion), shared, precision=1e-4 * solver.tol)
        solution = solver.solve(penalty, start)
        residual, targets = solution.residual, solver.design.targets
        # Residual and dual of the edges, shortened together until max |X'u - D'z| is at most the strength.
        slope = solver.design.adjoint(residual) - shared.gather(penalty.dual, len(solution.coef))
        factor = 1.0 / max(float(np.abs(slope).max()) / strength, 1.0)
        dual = factor * float(targets @ residual) - 0.5 * factor**2 * float(residual @ residual)
        gap = max(solution.objective - dual, 0.0) / len(targets)
        return PenalizedModel(solution, {"dual_gap_": gap, "n_edges_": len(shared.first)})

    def _equal_pairs(self, coef: np.ndarray, shared: Edges) -> tuple[np.ndarray, np.ndarray]:
        return equal_along_edges(coef, shared, np.abs(shared.differences(coef)), float(self.tol))
