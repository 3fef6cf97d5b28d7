"""Dependency-aware feature ranking (DAF): random feature subsets (probes) are evaluated by a criterion."""

from coterie.probing.criteria import (
    ClusteringCriterion,
    EstimatorCriterion,
    KNNCriterion,
    LinearSVMCriterion,
    ReconstructionCriterion,
    RidgeCriterion,
    SVMCriterion,
)
from coterie.probing.estimator import DependencyAwareSelector

__all__ = [
    "ClusteringCriterion",
    "DependencyAwareSelector",
    "EstimatorCriterion",
    "KNNCriterion",
    "LinearSVMCriterion",
    "ReconstructionCriterion",
    "RidgeCriterion",
    "SVMCriterion",
]
