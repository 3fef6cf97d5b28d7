"""Dependency-aware ranking (DAF) and wrappers: selectors that evaluate subsets of the features by a criterion."""

from coterie.ranking.criteria import EstimatorCriterion, KNNCriterion, LinearSVMCriterion, RidgeCriterion
from coterie.ranking.estimator import DependencyAwareSelector
from coterie.ranking.floating import FloatingSelector
from coterie.ranking.individual import BestIndividualSelector

__all__ = [
    "BestIndividualSelector",
    "DependencyAwareSelector",
    "EstimatorCriterion",
    "FloatingSelector",
    "KNNCriterion",
    "LinearSVMCriterion",
    "RidgeCriterion",
]
