"""Criteria: how good a subset of the features is."""

from coterie.probing.criteria.base import Criterion
from coterie.probing.criteria.estimators import CallableCriterion, EstimatorCriterion, as_criterion
from coterie.probing.criteria.linear_svm import LinearSVMCriterion
from coterie.probing.criteria.nearest import KNNCriterion
from coterie.probing.criteria.ridge import RidgeCriterion

__all__ = [
    "CallableCriterion",
    "Criterion",
    "EstimatorCriterion",
    "KNNCriterion",
    "LinearSVMCriterion",
    "RidgeCriterion",
    "as_criterion",
]
