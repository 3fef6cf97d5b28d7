"""The former name of :mod:`coterie.probing`, with the two wrappers that now live in :mod:`coterie.baselines`."""

from coterie.baselines.floating import FloatingSelector
from coterie.baselines.individual import BestIndividualSelector
from coterie.probing import (
    DependencyAwareSelector,
    EstimatorCriterion,
    KNNCriterion,
    LinearSVMCriterion,
    RidgeCriterion,
)

__all__ = [
    "BestIndividualSelector",
    "DependencyAwareSelector",
    "EstimatorCriterion",
    "FloatingSelector",
    "KNNCriterion",
    "LinearSVMCriterion",
    "RidgeCriterion",
]
