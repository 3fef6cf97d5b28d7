"""Dependency-aware ranking (DAF): random subsets of the features (probes), evaluated by a criterion."""

from coterie.probing.criteria import EstimatorCriterion, KNNCriterion, LinearSVMCriterion, RidgeCriterion
from coterie.probing.estimator import DependencyAwareSelector

__all__ = [
    "DependencyAwareSelector",
    "EstimatorCriterion",
    "KNNCriterion",
    "LinearSVMCriterion",
    "RidgeCriterion",
]
