"""Names of classes and functions in files, which do not change when the code is moved.

A file contains a name of this table and no module, so a class can move to another module by changing its row. From the first
release on, names never change and rows are never removed. Files can only create what is listed here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_HOMES: dict[str, str] = {
    # Estimators
    "GroupDiscoveryClassifier": "coterie.estimators.classifier",
    "GroupDiscoveryClassifierCV": "coterie.estimators.classifier",
    "GroupDiscoveryOneClass": "coterie.estimators.one_class",
    "GroupDiscoveryOneClassCV": "coterie.estimators.one_class_cv",
    "GroupDiscoveryRegressor": "coterie.estimators.regressor",
    "GroupDiscoveryRegressorCV": "coterie.estimators.regressor",
    "GroupDiscoverySurvival": "coterie.estimators.survival",
    "GroupDiscoverySurvivalCV": "coterie.estimators.survival",
    "CorrelationGroups": "coterie.correlation.groups",
    "GlobalRedundancySelector": "coterie.redundancy.estimator",
    "DependencyAwareSelector": "coterie.probing.estimator",
    "FilterSelector": "coterie.filters.selector",
    "BestIndividualSelector": "coterie.baselines.wrappers",
    "FloatingSelector": "coterie.baselines.wrappers",
    "FCBFSelector": "coterie.baselines.relevance",
    "FeatureGroupingSelector": "coterie.baselines.fused",
    "GraphFusedLassoSelector": "coterie.baselines.fused",
    "L1SVMSelector": "coterie.baselines.linear",
    "LassoSelector": "coterie.baselines.linear",
    "MRMRRegressionSelector": "coterie.baselines.relevance",
    "MRMRSelector": "coterie.baselines.relevance",
    "OSCARSelector": "coterie.baselines.penalized",
    "RCFSSelector": "coterie.baselines.rcfs",
    "SVMRFESelector": "coterie.baselines.linear",
    # Criteria
    "CallableCriterion": "coterie.probing.criteria.base",
    "EstimatorCriterion": "coterie.probing.criteria.base",
    "KNNCriterion": "coterie.probing.criteria.nearest",
    "LinearSVMCriterion": "coterie.probing.criteria.svm",
    "RidgeCriterion": "coterie.probing.criteria.ridge",
    "KNNRegressionCriterion": "coterie.probing.criteria.nearest",
    "RidgeRegressionCriterion": "coterie.probing.criteria.ridge",
    "ClusteringCriterion": "coterie.probing.criteria.unlabelled",
    "ReconstructionCriterion": "coterie.probing.criteria.unlabelled",
    "SVMCriterion": "coterie.probing.criteria.svm",
    # Records in fitted attributes
    "AdaptivePlan": "coterie.probing.adaptive",
    "AdaptiveSums": "coterie.probing.adaptive",
    "Benefit": "coterie.probing.adaptive",
    "ColumnEncoding": "coterie.data.encoding",
    "ChromosomeDistance": "coterie.correlation.compatibility",
    "Focus": "coterie.probing.adaptive",
    "FeatureGroup": "coterie.groups.feature_groups",
    "FeatureGroups": "coterie.groups.feature_groups",
    "GroupConfidence": "coterie.confidence.result",
    "Huber": "coterie.solver.smooth_losses",
    "KeptNames": "coterie.persistence.slim",
    "FloatingSubset": "coterie.baselines.wrappers",
    "MemberMoments": "coterie.groups.moments",
    "PixelDistance": "coterie.correlation.compatibility",
    "TableEncoding": "coterie.data.encoding",
    "ProbePlan": "coterie.probing.probes",
    "ProbeSize": "coterie.probing.scores",
    "ProbeSums": "coterie.probing.probes",
    "Quantile": "coterie.solver.quantile",
    "Purity": "coterie.groups.feature_groups",
    "Round": "coterie.search.loop",
    "Stability": "coterie.probing.stability",
    # Functions that a parameter can hold
    "correlation_score": "coterie.filters.univariate",
    "fisher_score": "coterie.filters.univariate",
    "information_gain_score": "coterie.filters.univariate",
    "laplacian_score": "coterie.filters.graph",
    "lgd_score": "coterie.filters.neighbours",
    "mcfs_score": "coterie.filters.graph",
    "relieff_score": "coterie.filters.neighbours",
    "variance_score": "coterie.filters.univariate",
}


def name_of(item: type | Callable[..., object]) -> str | None:
    """Return the name of a class or function in files; None if files cannot contain it."""
    return item.__name__ if _HOMES.get(item.__name__, "") == item.__module__ else None


def named(name: str) -> Any:
    """Return the class or function with this name in files; None if there is none."""
    return getattr(import_module(_HOMES[name]), name) if name in _HOMES else None


def stable_name(kind: type) -> str:
    """Return the name of a class in digests: its name in files, if any, which does not depend on its module."""
    return name_of(kind) or f"{kind.__module__}.{kind.__qualname__}"
