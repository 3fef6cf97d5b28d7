"""Criteria: how good a subset of the features is."""

from coterie.ranking.criteria.base import Criterion
from coterie.ranking.criteria.estimators import CallableCriterion, EstimatorCriterion, as_criterion
from coterie.ranking.criteria.linear_svm import LinearSVMCriterion
from coterie.ranking.criteria.nearest import KNNCriterion
from coterie.ranking.criteria.ridge import RidgeCriterion

__all__ = [
    "CallableCriterion",
    "Criterion",
    "EstimatorCriterion",
    "KNNCriterion",
    "LinearSVMCriterion",
    "RidgeCriterion",
    "as_criterion",
]
