"""What the selectors by penalised least squares share: the path, the features kept, groups of equal coefficients."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coterie._parameters import N_FEATURES_OR_AUTO, Number, OneOf, Rule, Whole
from coterie.baselines.base import LabelledData, LabelSelector
from coterie.baselines.graph import components
from coterie.baselines.least_squares import PenalizedFit, ProximalGradient, StandardizedDesign, warn_unless_converged
from coterie.baselines.penalty_path import search_path
from coterie.correlation.pearson import PearsonCorrelation
from coterie.data.source import FeatureSource
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.order import in_order
from coterie.selection import names_of


class PenalizedModel(NamedTuple):
    """A solution for one strength of the penalty, and what its selector wants to say about it."""

    solution: PenalizedFit
    report: dict[str, Any]


class PenalizedSelector(LabelSelector):
    """Base class: features by the coefficients of a penalised least-squares fit to labels -1 and 1.

    The features are standardised. A subclass has the parameters ``n_features_to_select``, ``alpha``, ``tol`` and ``max_iter``.
    """

    _two_classes_only = True
    _limits: ClassVar[tuple[str, ...]] = ("max_iter",)  # what may stop the solver
    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES_OR_AUTO,
        "alpha": Number() | OneOf(None),
        "tol": Number(),
        "max_iter": Whole(1),
    }
    groups_: FeatureGroups
    path_: list[tuple[float, int]]

    @abstractmethod
    def _prepare(self, data: LabelledData, design: StandardizedDesign) -> Any:
        """Check the subclass's own parameters; what its models share (the graph)."""

    @abstractmethod
    def _strongest(self, design: StandardizedDesign, shared: Any) -> float:
        """A strength (times the number of samples) at which all coefficients are zero."""

    @abstractmethod
    def _model(self, solver: ProximalGradient, strength: float, shared: Any, start: np.ndarray | None) -> PenalizedModel:
        """The solution for a strength (``alpha`` times the number of samples)."""

    @abstractmethod
    def _equal_pairs(self, coef: np.ndarray, shared: Any) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of features, with coefficients, that belong to one group."""

    def _compute(self, data: LabelledData) -> dict[str, Any]:
        if self.alpha is None and data.n_wanted is None:
            raise ValueError(
                "n_features_to_select='auto' needs alpha, which then decides; give alpha or a number of features."
            )
        design = StandardizedDesign(data)
        shared = self._prepare(data, design)
        if not design.relevance.any():
            raise ValueError("No feature is correlated with y (all are constant, perhaps): there is nothing to select.")
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

    def _groups(self, data: LabelledData, coef: np.ndarray, order: np.ndarray, labels: np.ndarray) -> FeatureGroups:
        """Groups of the features with coefficients, the largest coefficient first."""
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
    """Features by falling coefficient; in a group the most relevant first; those without one by the slope of the loss.

    Coefficients of a group are equal up to the solver's tolerance, so their mean counts, not which one rounding made larger.
    """
    size = np.abs(solution.coef)
    level = (np.bincount(labels, size) / np.bincount(labels))[labels]
    slope = np.abs(np.where(solution.coef == 0.0, design.adjoint(solution.residual), design.relevance))
    return in_order(source, np.arange(len(size)), slope, votes=np.where(size > 0.0, level, 0.0))
