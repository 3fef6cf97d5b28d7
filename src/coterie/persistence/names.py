"""What files call Coterie's classes and functions: names that stay when the code moves.

A file holds a name of this table and nothing about modules, so a class can move to another file by changing its row. From
the first release on, names never change and rows are never removed. Only what is listed here is ever made from a file.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_HOMES: dict[str, str] = {
    # Estimators
    "GroupDiscoveryClassifier": "coterie.estimators.classifier",
    "GroupDiscoveryClassifierCV": "coterie.estimators.classifier_cv",
    "GroupDiscoveryOneClass": "coterie.estimators.one_class",
    "GroupDiscoveryOneClassCV": "coterie.estimators.one_class_cv",
    "GroupDiscoveryRegressor": "coterie.estimators.regressor",
    "GroupDiscoveryRegressorCV": "coterie.estimators.regressor_cv",
    "CorrelationGroups": "coterie.correlation.groups",
    "GlobalRedundancySelector": "coterie.redundancy.estimator",
    "DependencyAwareSelector": "coterie.probing.estimator",
    "FilterSelector": "coterie.filters.selector",
    "BestIndividualSelector": "coterie.baselines.individual",
    "FloatingSelector": "coterie.baselines.floating",
    "FCBFSelector": "coterie.baselines.fcbf",
    "FeatureGroupingSelector": "coterie.baselines.grouping",
    "GraphFusedLassoSelector": "coterie.baselines.fused_lasso",
    "L1SVMSelector": "coterie.baselines.l1_svm",
    "LassoSelector": "coterie.baselines.lasso",
    "MRMRRegressionSelector": "coterie.baselines.mrmr_regression",
    "MRMRSelector": "coterie.baselines.mrmr",
    "OSCARSelector": "coterie.baselines.oscar",
    "RCFSSelector": "coterie.baselines.rcfs",
    "SVMRFESelector": "coterie.baselines.svm_rfe",
    # Criteria
    "CallableCriterion": "coterie.probing.criteria.estimators",
    "EstimatorCriterion": "coterie.probing.criteria.estimators",
    "KNNCriterion": "coterie.probing.criteria.nearest",
    "LinearSVMCriterion": "coterie.probing.criteria.linear_svm",
    "RidgeCriterion": "coterie.probing.criteria.ridge",
    "KNNRegressionCriterion": "coterie.probing.criteria.regression",
    "RidgeRegressionCriterion": "coterie.probing.criteria.regression",
    "ClusteringCriterion": "coterie.probing.criteria.unlabelled",
    "ReconstructionCriterion": "coterie.probing.criteria.unlabelled",
    "SVMCriterion": "coterie.probing.criteria.svm",
    # Records in fitted attributes
    "AdaptivePlan": "coterie.probing.adaptive",
    "AdaptiveSums": "coterie.probing.adaptive",
    "Benefit": "coterie.probing.adaptive",
    "Focus": "coterie.probing.adaptive",
    "FeatureGroup": "coterie.groups.feature_groups",
    "FeatureGroups": "coterie.groups.feature_groups",
    "GroupConfidence": "coterie.confidence.result",
    "KeptNames": "coterie.persistence.slim",
    "FloatingSubset": "coterie.baselines.floating",
    "ProbePlan": "coterie.probing.probes",
    "ProbeSize": "coterie.probing.scores",
    "ProbeSums": "coterie.probing.probes",
    "Purity": "coterie.groups.feature_groups",
    "Round": "coterie.search.loop",
    # Functions that a parameter can hold
    "correlation_score": "coterie.filters.correlation",
    "fisher_score": "coterie.filters.fisher",
    "information_gain_score": "coterie.filters.information_gain",
    "laplacian_score": "coterie.filters.laplacian",
    "lgd_score": "coterie.filters.lgd",
    "mcfs_score": "coterie.filters.mcfs",
    "relieff_score": "coterie.filters.relieff",
    "variance_score": "coterie.filters.variance",
}


def name_of(item: type | Callable[..., object]) -> str | None:
    """Name of a class or function in files; None for those that files cannot hold."""
    return item.__name__ if _HOMES.get(item.__name__, "") == item.__module__ else None


def named(name: str) -> Any:
    """Class or function with this name in files; None if there is none."""
    return getattr(import_module(_HOMES[name]), name) if name in _HOMES else None


def stable_name(kind: type) -> str:
    """Name of a class in digests: its name in files if it has one, so that it survives a move to another module."""
    return name_of(kind) or f"{kind.__module__}.{kind.__qualname__}"
