"""Selectors for comparison: published methods of feature selection."""

from coterie.baselines.fused import FeatureGroupingSelector, GraphFusedLassoSelector
from coterie.baselines.linear import L1SVMSelector, LassoSelector, SVMRFESelector
from coterie.baselines.penalized import OSCARSelector
from coterie.baselines.rcfs import RCFSSelector
from coterie.baselines.relevance import FCBFSelector, MRMRRegressionSelector, MRMRSelector
from coterie.baselines.wrappers import BestIndividualSelector, FloatingSelector

__all__ = [
    "BestIndividualSelector",
    "FCBFSelector",
    "FeatureGroupingSelector",
    "FloatingSelector",
    "GraphFusedLassoSelector",
    "L1SVMSelector",
    "LassoSelector",
    "MRMRRegressionSelector",
    "MRMRSelector",
    "OSCARSelector",
    "RCFSSelector",
    "SVMRFESelector",
]
