"""Criteria that rate feature subsets."""

from coterie.probing.criteria.base import CallableCriterion, Criterion, EstimatorCriterion, as_criterion, criterion_named
from coterie.probing.criteria.nearest import KNNCriterion, KNNRegressionCriterion
from coterie.probing.criteria.ridge import RidgeCriterion, RidgeRegressionCriterion
from coterie.probing.criteria.svm import LinearSVMCriterion, SVMCriterion
from coterie.probing.criteria.unlabelled import ClusteringCriterion, ReconstructionCriterion

__all__ = [
    "CallableCriterion",
    "ClusteringCriterion",
    "Criterion",
    "EstimatorCriterion",
    "KNNCriterion",
    "KNNRegressionCriterion",
    "LinearSVMCriterion",
    "ReconstructionCriterion",
    "RidgeCriterion",
    "RidgeRegressionCriterion",
    "SVMCriterion",
    "as_criterion",
    "criterion_named",
]
