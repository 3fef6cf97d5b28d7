"""Selectors to compare with."""

from coterie.baselines.fcbf import FCBFSelector
from coterie.baselines.floating import FloatingSelector
from coterie.baselines.fused_lasso import GraphFusedLassoSelector
from coterie.baselines.grouping import FeatureGroupingSelector
from coterie.baselines.individual import BestIndividualSelector
from coterie.baselines.l1_svm import L1SVMSelector
from coterie.baselines.lasso import LassoSelector
from coterie.baselines.mrmr import MRMRSelector
from coterie.baselines.mrmr_regression import MRMRRegressionSelector
from coterie.baselines.oscar import OSCARSelector
from coterie.baselines.rcfs import RCFSSelector
from coterie.baselines.svm_rfe import SVMRFESelector

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
