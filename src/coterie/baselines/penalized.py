"""Least squares with penalties that make coefficients equal: design, solver, base class of the selectors, and OSCAR."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie._parameters import N_FEATURES_OR_AUTO, SHARE, Integer, Number, OneOf, Rule
from coterie.baselines.base import LabelSelector, TrainingData, search_path
from coterie.baselines.graph import components
from coterie.correlation.pearson import PearsonCorrelation
from coterie.data.source import FeatureSource, shifted
from coterie.estimators.documentation import documented
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.kernels.descent import decreasing_fit
from coterie.order import in_order
from coterie.selection import names_of


class Penalty(Protocol):
    """Penalty with the operations of the solver: a convex function, possibly plus a linear term."""

    def value(self, coef: np.ndarray) -> float:
        """Return the penalty of coefficients."""
        ...

    def prox(self, point: np.ndarray, step: float) -> np.ndarray:
        """Return the minimiser of ``step * value(w) + 0.5 * ||w - point||^2``."""
        ...


class StandardizedDesign:
    """Centred features of unit variance and centred targets (two classes as -1 and 1). Constant features are zero.

    No standardised copy is made, unless some features vary by less than a millionth of their mean.
    """

    def __init__(self, data: TrainingData) -> None:
        self.matrix = data.view.source.block(0, data.view.n_features)
        if self.matrix.dtype != np.float64:
            self.matrix = self.matrix.astype(np.float64)
        far = data.view.moments.far_mean
        if far.any():  # centring after the product would leave rounding errors only
            self.matrix = shifted(self.matrix, far)
        self.mean = data.view.moments.mean - far
        self.norm = data.view.moments.norm
        scale = data.view.moments.scale
        self._inverse = np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0.0)
        self.targets = data.targets - data.targets.mean()
        # Products with the targets, which are the negative gradient at zero.
        self.relevance = self.adjoint(self.targets)

    def forward(self, coef: np.ndarray) -> np.ndarray:
        """Return the predictions. Only the columns of nonzero coefficients are used if these are few."""
        used = np.flatnonzero(coef)
        scaled = (coef * self._inverse)[used]
        columns = self.matrix[:, used] if len(used) < 0.25 * len(coef) else self.matrix
        product = columns @ (scaled if columns is not self.matrix else coef * self._inverse)
        return np.asarray(product) - float(self.mean[used] @ scaled)

    def adjoint(self, vector: np.ndarray) -> np.ndarray:
        """Return the products of all features with a vector over the samples."""
        return (np.asarray(self.matrix.T @ vector) - self.mean * vector.sum()) * self._inverse

    def largest_eigenvalue(self) -> float:
        """Return a lower estimate of the largest eigenvalue of the Gram matrix, by the power method from the targets."""
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
    """Coefficients, residual, objective, number of steps, convergence, and final value of the stopping criterion."""

    coef: np.ndarray
    residual: np.ndarray
    objective: float
    n_iter: int
    converged: bool
    reached: float

    def gap(self, targets: np.ndarray, factor: float) -> float:
        """Return the duality gap per sample. The dual is max y'u - ||u||^2 / 2, here at ``factor`` times the residual."""
        dual = factor * float(targets @ self.residual) - 0.5 * factor**2 * float(self.residual @ self.residual)
        return max(self.objective - dual, 0.0) / len(targets)


class ProximalGradient:
    r"""Accelerated proximal gradient (FISTA) with restarts for :math:`\tfrac12\|y - Xw\|^2 + P(w)`.

    It stops if :math:`L\|w^+ - v\| \le` ``tol`` :math:`\|X'y\|`, where :math:`w^+` is the proximal step from v, or after
    ``max_iter`` steps per solution. At :math:`w^+ = v` the optimality conditions hold exactly. The step 1/L is reduced
    whenever the quadratic bound fails.
    """

    def __init__(self, design: StandardizedDesign, tol: float, max_iter: int) -> None:
        self.design = design
        self.tol = tol
        self.max_iter = max_iter
        # The eigenvalues of the Gram matrix are at most its trace. Beyond it the bound fails by rounding errors only.
        self._largest = 1.05 * len(design.targets) * max(int(np.count_nonzero(design.norm)), 1)
        self.lipschitz = 1.05 * design.largest_eigenvalue()
        self.n_iter = 0
        self._limit = tol * max(float(np.linalg.norm(design.relevance)), np.finfo(float).tiny)

    def solve(self, penalty: Penalty, start: np.ndarray | None = None) -> PenalizedFit:
        """Return the minimiser, starting from zero or from given coefficients."""
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
                momentum = 1.0  # restart the acceleration, because the last step increased the objective
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            weight = (momentum - 1.0) / following
            point, point_image = new + weight * (new - coef), new_image + weight * (new_image - image)
            coef, image, momentum = new, new_image, following
        self.n_iter += step
        residual = design.targets - image
        objective = 0.5 * float(residual @ residual) + penalty.value(coef)
        if not np.isfinite(objective):
            raise ValueError(
                "The penalised fit cannot be computed, because the scales of its penalties are too far apart for floating "
                "point. Set their weights closer to 1."
            )
        return PenalizedFit(coef, residual, objective, step, converged, float(reached))


def warn_unless_converged(fit: PenalizedFit, name: str, tol: float, limits: str) -> None:
    """Warn if the solver stopped at a limit, with the value of its stopping criterion."""
    if not fit.converged:
        warnings.warn(
            f"{name} stopped at {limits} before the tolerance was reached: its stopping criterion is {fit.reached:.1e}, above "
            f"tol={tol:g}. Increase the limit or tol.",
            ConvergenceWarning,
            stacklevel=5,
        )


class PenalizedModel(NamedTuple):
    """Solution for one strength of the penalty, and further fitted attributes of its selector."""

    solution: PenalizedFit
    report: dict[str, Any]


class PenalizedSelector(LabelSelector):
    """Base class of selectors by the coefficients of a penalised least-squares fit to labels -1 and 1.

    The features are standardised. Subclasses have the parameters ``n_features_to_select``, ``alpha``, ``tol`` and
    ``max_iter``.
    """

    _two_classes_only = True
    _limits: ClassVar[tuple[str, ...]] = ("max_iter",)  # parameters that limit the solver
    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES_OR_AUTO,
        "alpha": Number() | OneOf(None),
        "tol": Number(),
        "max_iter": Integer(1),
    }
    groups_: FeatureGroups
    path_: list[tuple[float, int]]

    @abstractmethod
    def _prepare(self, data: TrainingData, design: StandardizedDesign) -> Any:
        """Check the parameters of the subclass and return the data shared by its models (such as the graph)."""

    def _strongest(self, design: StandardizedDesign, shared: Any) -> float:
        """Return a strength (times the number of samples) at which all coefficients are zero."""
        return float(np.abs(design.relevance).max())

    @abstractmethod
    def _model(self, solver: ProximalGradient, strength: float, shared: Any, start: np.ndarray | None) -> PenalizedModel:
        """Return the solution for a strength (``alpha`` times the number of samples)."""

    @abstractmethod
    def _equal_pairs(self, coef: np.ndarray, shared: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of features with nonzero coefficients that belong to the same group."""

    def _compute(self, data: TrainingData) -> dict[str, Any]:
        if self.alpha is None and data.n_wanted is None:
            raise ValueError(
                "n_features_to_select='auto' requires alpha, which determines the number. Set alpha or a number of features."
            )
        design = StandardizedDesign(data)
        shared = self._prepare(data, design)
        if not design.relevance.any():
            raise ValueError("No feature is correlated with y. Check y, and whether all features are constant.")
        solver = ProximalGradient(design, float(self.tol), int(self.max_iter))
        n_samples = data.view.n_samples
        models: dict[float, PenalizedModel] = {}

        def solve(strength: float, start: np.ndarray | None) -> np.ndarray:
            models[strength] = self._model(solver, strength, shared, start)
            return models[strength].solution.coef

        if self.alpha is not None:
            strength = float(self.alpha) * n_samples
            path = [(strength, int(np.count_nonzero(solve(strength, None))))]
        else:
            point, path = search_path(solve, self._strongest(design, shared), data.n_selected)
            strength = point.strength
        solution, report = models[strength]
        limits = " or ".join(f"{name}={getattr(self, name)}" for name in self._limits)
        warn_unless_converged(solution, type(self).__name__, float(self.tol), limits)
        labels = components(len(solution.coef), *self._equal_pairs(solution.coef, shared))
        order = _order(data.view.source, design, solution, labels)
        n_kept = max(np.count_nonzero(solution.coef), 1) if data.n_wanted is None else data.n_wanted
        return {
            "support_features_": order[:n_kept],
            "coef_": solution.coef,
            "alpha_": strength / n_samples,
            "objective_": solution.objective / n_samples,
            "groups_": self._groups(data, solution.coef, order, labels),
            "path_": [(value / n_samples, count) for value, count in path],
            "n_iter_": solver.n_iter,
            **report,
        }

    def _groups(self, data: TrainingData, coef: np.ndarray, order: np.ndarray, labels: np.ndarray) -> FeatureGroups:
        """Return groups of the features with nonzero coefficients, in decreasing order of the coefficients."""
        used = order[: np.count_nonzero(coef)]
        labels = labels[used]
        _, first = np.unique(labels, return_index=True)
        measure = PearsonCorrelation(data.view)
        groups = []
        for number, label in enumerate(labels[np.sort(first)], start=1):
            members = used[labels == label]
            support, affiliated = members[:1], members[1:]
            correlation = measure.between(affiliated, support)[:, 0] if len(affiliated) else np.empty(0)
            closest = in_order(data.view.source, affiliated, np.abs(correlation))
            affiliated, correlation = affiliated[closest], correlation[closest]
            groups.append(
                FeatureGroup(
                    int(support[0]),
                    affiliated,
                    correlation,
                    names=names_of(data.view.feature_names, np.append(support, affiliated)),
                    score=float(abs(coef[support[0]])),
                    affiliated_scores=np.abs(coef[affiliated]),
                    weight=float(coef[support[0]]),
                    round=number,
                )
            )
        return FeatureGroups(groups)


def _order(source: FeatureSource, design: StandardizedDesign, solution: PenalizedFit, labels: np.ndarray) -> np.ndarray:
    """Return the features in decreasing order of coefficient, and within a group of relevance.

    Features with zero coefficients are ordered by the slope of the loss. Coefficients of a group are equal up to the solver's
    tolerance. Their mean is used, so that rounding errors do not determine the order.
    """
    size = np.abs(solution.coef)
    level = (np.bincount(labels, size) / np.bincount(labels))[labels]
    slope = np.abs(np.where(solution.coef == 0.0, design.adjoint(solution.residual), design.relevance))
    return in_order(source, np.arange(len(size)), slope, votes=np.where(size > 0.0, level, 0.0))


@documented
class OSCARSelector(PenalizedSelector):
    r"""Least squares with a penalty that selects features and makes coefficients of similar features equal.

    Minimises, over standardised features and labels y = -1, 1 (centred),

    .. math:: \frac{1}{2n}\|y - Xw\|^2 + \alpha\Big(\|w\|_1 + \frac{g}{m-1}\sum_{j<k}\max(|w_j|, |w_k|)\Big)

    [1]_. The penalty is a sorted L1 norm, :math:`\alpha\sum_j (1 + g\,\tfrac{m-j}{m-1})\,|w|_{(j)}` with
    :math:`|w|_{(1)}\ge|w|_{(2)}\ge\dots` [2]_, whose proximal step is an isotonic regression.

    Parameters
    ----------
    %(penalized)s

    grouping : float, default=1.0
        Weight g of the pairs. The penalty per unit of the largest coefficient is 1 + g times that of the smallest.

    tol : float, default=1e-5
        Tolerance. See Notes.

    max_iter : int, default=5000
        Largest number of steps per ``alpha``.

    Attributes
    ----------
    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, in decreasing order of \|coefficient\| and, if equal, of correlation with the
        labels.

    coef_ : ndarray of shape (n_features,)
        Coefficients for the standardised features.

    groups_ : FeatureGroups
        Groups of the features with nonzero coefficients. Features with equal \|coefficient\| are in the same group.

    alpha_ : float
        Strength of the penalty.

    objective_, dual_gap_ : float
        Objective, and an upper bound on its distance from the optimum.

    %(penalized_found)s

    %(seen)s

    See Also
    --------
    GraphFusedLassoSelector, FeatureGroupingSelector : Equal coefficients for features that are neighbours in a graph.

    Notes
    -----
    The solver is an accelerated proximal gradient method. It stops if the step, times the Lipschitz constant of the
    gradient, is at most ``tol`` times the norm of the gradient at zero. A whole group may enter the path at once, so that
    the requested number of features is skipped. The model with the smallest sufficient number is then used, and its
    features with the largest coefficients are selected. The package sortedl1 solves the same problem by coordinate descent;
    the tests compare with it.

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

    def _prepare(self, data: TrainingData, design: StandardizedDesign) -> np.ndarray:
        """Return the weights of the sorted coefficients for a strength of one."""
        n_features = data.view.n_features
        return 1.0 + float(self.grouping) * np.arange(n_features - 1, -1, -1) / max(n_features - 1, 1)

    def _strongest(self, design: StandardizedDesign, shared: np.ndarray) -> float:
        return SortedL1(shared).dual_norm(design.relevance)

    def _model(
        self, solver: ProximalGradient, strength: float, shared: np.ndarray, start: np.ndarray | None
    ) -> PenalizedModel:
        penalty = SortedL1(strength * shared)
        solution = solver.solve(penalty, start)
        # The residual is scaled to be feasible for the dual: the dual norm of X'u is at most 1.
        factor = 1.0 / max(penalty.dual_norm(solver.design.adjoint(solution.residual)), 1.0)
        return PenalizedModel(solution, {"dual_gap_": solution.gap(solver.design.targets, factor)})

    def _equal_pairs(self, coef: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        used = np.flatnonzero(coef)
        order = used[np.argsort(np.abs(coef[used]), kind="stable")]
        size = np.abs(coef[order])
        equal = np.diff(size) <= 1e-12 * size[1:]
        return order[:-1][equal], order[1:][equal]


class SortedL1:
    """Sorted L1 norm with weights in decreasing order."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def value(self, coef: np.ndarray) -> float:
        """Return the norm: the largest weight times the largest absolute coefficient, and so on."""
        return float(self.weights @ np.sort(np.abs(coef))[::-1])

    def dual_norm(self, vector: np.ndarray) -> float:
        """Return the largest ratio of the sum of the k largest entries to the sum of the k largest weights."""
        return float((np.cumsum(np.sort(np.abs(vector))[::-1]) / np.cumsum(self.weights)).max())

    def prox(self, point: np.ndarray, step: float) -> np.ndarray:
        """Return the proximal step: sorted absolute values minus weights, made non-increasing and non-negative."""
        size = np.abs(point)
        order = np.argsort(-size, kind="stable")
        levels = size[order] - step * self.weights
        decreasing_fit(levels, np.empty(len(levels)), np.empty(len(levels), dtype=np.int64))
        result = np.empty(len(point))
        result[order] = levels
        return np.copysign(result, point)
