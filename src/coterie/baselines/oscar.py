"""Octagonal shrinkage and clustering (OSCAR)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from coterie._parameters import SHARE, Rule
from coterie.baselines.base import LabelledData
from coterie.baselines.least_squares import ProximalGradient, StandardizedDesign
from coterie.baselines.penalized import PenalizedModel, PenalizedSelector
from coterie.kernels.shrinkage import decreasing_fit


class OSCARSelector(PenalizedSelector):
    r"""Least squares with a penalty that selects features and makes coefficients of similar ones equal.

    Minimises, over standardised features and labels y = -1, 1 (centred),

    .. math:: \frac{1}{2n}\|y - Xw\|^2 + \alpha\Big(\|w\|_1 + \frac{g}{m-1}\sum_{j<k}\max(|w_j|, |w_k|)\Big)

    [1]_. The penalty is a sorted L1 norm, :math:`\alpha\sum_j (1 + g\,\tfrac{m-j}{m-1})\,|w|_{(j)}` with
    :math:`|w|_{(1)}\ge|w|_{(2)}\ge\dots` [2]_, whose proximal step is an isotonic regression.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default=10
        Number of features to keep, or their fraction of all features. ``"auto"``, together with ``alpha``, keeps all
        features with a coefficient.

    alpha : float or None, default=None
        Strength of the penalty. None: the one that gives the number of features asked for, by bisection along the path.

    grouping : float, default=1.0
        The weight g of the pairs: the largest coefficient pays 1 + g times what the smallest one pays.

    tol : float, default=1e-5
        Tolerance: see Notes.

    max_iter : int, default=5000
        Largest number of steps for one ``alpha``.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, that of the largest \|coefficient\| first, of equal ones the one most correlated
        with the labels.

    coef_ : ndarray of shape (n_features,)
        Coefficients for the standardised features.

    groups_ : FeatureGroups
        The features with coefficients, those of equal \|coefficient\| together.

    alpha_ : float
        Strength of the penalty that was used.

    objective_, dual_gap_ : float
        The objective, and a bound on how far it is from the optimum.

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
    GraphFusedLassoSelector, FeatureGroupingSelector : Equal coefficients for features that are neighbours in a graph.

    Notes
    -----
    The solver is an accelerated proximal gradient method. It stops when the step, times the Lipschitz constant of the
    gradient, is at most ``tol`` times the norm of the gradient at zero. Groups may enter the path together, so that
    the number of features jumps; then the fewest that are enough are found, and the strongest of them kept. The
    package sortedl1 solves the same problem by coordinate descent; it is what the tests compare with.

    References
    ----------
    .. [1] H. D. Bondell, B. J. Reich, "Simultaneous regression shrinkage, variable selection, and supervised clustering of
       predictors with OSCAR", Biometrics 64, 2008.
    .. [2] L. W. Zhong, J. T. Kwok, "Efficient sparse modeling with automatic feature grouping", ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.baselines import OSCARSelector
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(100)
    >>> X = np.column_stack([x, -x + 0.01 * rng.standard_normal(100), rng.standard_normal(100)])
    >>> OSCARSelector(2).fit(X, x > 0).groups_
    1 group, 2 features
      1. 1 ~ 0 (-1.00)
    """

    _allowed: ClassVar[dict[str, Rule]] = {**PenalizedSelector._allowed, "grouping": SHARE}

    def __init__(
        self,
        n_features_to_select: int | float | str = 10,
        *,
        alpha: float | None = None,
        grouping: float = 1.0,
        tol: float = 1e-5,
        max_iter: int = 5000,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.grouping = grouping
        self.tol = tol
        self.max_iter = max_iter

    def _prepare(self, data: LabelledData, design: StandardizedDesign) -> np.ndarray:
        """Weights of the sorted coefficients for a strength of one."""
        n_features = data.view.n_features
        return 1.0 + float(self.grouping) * np.arange(n_features - 1, -1, -1) / max(n_features - 1, 1)

    def _strongest(self, design: StandardizedDesign, shared: np.ndarray) -> float:
        return SortedL1(shared).dual_norm(design.relevance)

    def _model(
        self, solver: ProximalGradient, strength: float, shared: np.ndarray, start: np.ndarray | None
    ) -> PenalizedModel:
        penalty = SortedL1(strength * shared)
        solution = solver.solve(penalty, start)
        residual, targets = solution.residual, solver.design.targets
        # The residual, shortened until it is feasible for the dual: max y'u - ||u||^2 / 2 with dual norm of X'u at most 1.
        factor = 1.0 / max(penalty.dual_norm(solver.design.adjoint(residual)), 1.0)
        dual = factor * float(targets @ residual) - 0.5 * factor**2 * float(residual @ residual)
        return PenalizedModel(solution, {"dual_gap_": max(solution.objective - dual, 0.0) / len(targets)})

    def _equal_pairs(self, coef: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        used = np.flatnonzero(coef)
        order = used[np.argsort(np.abs(coef[used]), kind="stable")]
        size = np.abs(coef[order])
        equal = np.diff(size) <= 1e-12 * size[1:]
        return order[:-1][equal], order[1:][equal]


class SortedL1:
    """The sorted L1 norm with given weights, the largest first."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def value(self, coef: np.ndarray) -> float:
        """The largest weight times the largest coefficient, and so on."""
        return float(self.weights @ np.sort(np.abs(coef))[::-1])

    def dual_norm(self, vector: np.ndarray) -> float:
        """Largest ratio of the sums of the k largest entries and of the k largest weights."""
        return float((np.cumsum(np.sort(np.abs(vector))[::-1]) / np.cumsum(self.weights)).max())

    def prox(self, point: np.ndarray, step: float) -> np.ndarray:
        """Sorted sizes less the weights, made non-increasing and non-negative, back in their places."""
        size = np.abs(point)
        order = np.argsort(-size, kind="stable")
        levels = size[order] - step * self.weights
        decreasing_fit(levels, np.empty(len(levels)), np.empty(len(levels), dtype=np.int64))
        result = np.empty(len(point))
        result[order] = levels
        return np.copysign(result, point)
