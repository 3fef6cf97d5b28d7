"""Coterie: the few features that predict and, around each one, its coterie of correlated features.

Public names are loaded when they are first used, so that ``import coterie`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Association": "coterie.marginal",
    "ChromosomeDistance": "coterie.correlation.compatibility",
    "ClassStatistics": "coterie.metrics.class_statistics",
    "Comparison": "coterie.comparison.result",
    "CorrelationGroups": "coterie.correlation.groups",
    "CorrelationProfile": "coterie.correlation.profile",
    "DependencyAwareSelector": "coterie.probing.estimator",
    "Discovery": "coterie.report.result",
    "EstimatorCriterion": "coterie.probing.criteria",
    "FeatureGroup": "coterie.groups",
    "FeatureGroups": "coterie.groups",
    "GlobalRedundancySelector": "coterie.redundancy.estimator",
    "GroupConfidence": "coterie.confidence.result",
    "GroupDiscoveryClassifier": "coterie.estimators.classifier",
    "GroupDiscoveryClassifierCV": "coterie.estimators.classifier",
    "GroupDiscoveryOneClass": "coterie.estimators.one_class",
    "GroupDiscoveryOneClassCV": "coterie.estimators.one_class_cv",
    "GroupDiscoveryRegressor": "coterie.estimators.regressor",
    "GroupDiscoveryRegressorCV": "coterie.estimators.regressor",
    "GroupDiscoverySurvival": "coterie.estimators.survival",
    "GroupDiscoverySurvivalCV": "coterie.estimators.survival",
    "GroupEffects": "coterie.effects",
    "KNNCriterion": "coterie.probing.criteria",
    "LinearSVMCriterion": "coterie.probing.criteria",
    "Pipeline": "coterie.inputs.pipeline",
    "PixelDistance": "coterie.correlation.compatibility",
    "PolygenicOffset": "coterie.polygenic",
    "Replication": "coterie.replication.result",
    "RidgeCriterion": "coterie.probing.criteria",
    "as_source": "coterie.data.memory",
    "class_statistics": "coterie.metrics.class_statistics",
    "association": "coterie.marginal",
    "compare": "coterie.comparison.run",
    "correlation_profile": "coterie.correlation.profile",
    "discover": "coterie.discovery",
    "group_confidence": "coterie.confidence.estimation",
    "group_effects": "coterie.effects",
    "imputed": "coterie.inputs.imputation",
    "load": "coterie.report.result",
    "make_pipeline": "coterie.inputs.pipeline",
    "name_features": "coterie.inputs.naming",
    "polygenic_offset": "coterie.polygenic",
    "pooled_false_share": "coterie.confidence.result",
    "pooled_groups": "coterie.confidence.result",
    "save": "coterie.persistence.model",
    "substituted": "coterie.inputs.substitution",
}
_MODULES = ("baselines", "correlation", "data", "datasets", "filters", "metrics", "plots", "probing", "replication", "report")

__all__ = [
    "Association",
    "ChromosomeDistance",
    "ClassStatistics",
    "Comparison",
    "CorrelationGroups",
    "CorrelationProfile",
    "DependencyAwareSelector",
    "Discovery",
    "EstimatorCriterion",
    "FeatureGroup",
    "FeatureGroups",
    "GlobalRedundancySelector",
    "GroupConfidence",
    "GroupDiscoveryClassifier",
    "GroupDiscoveryClassifierCV",
    "GroupDiscoveryOneClass",
    "GroupDiscoveryOneClassCV",
    "GroupDiscoveryRegressor",
    "GroupDiscoveryRegressorCV",
    "GroupDiscoverySurvival",
    "GroupDiscoverySurvivalCV",
    "GroupEffects",
    "KNNCriterion",
    "LinearSVMCriterion",
    "Pipeline",
    "PixelDistance",
    "PolygenicOffset",
    "Replication",
    "RidgeCriterion",
    "__version__",
    "as_source",
    "association",
    "baselines",
    "class_statistics",
    "compare",
    "correlation",
    "correlation_profile",
    "data",
    "datasets",
    "discover",
    "filters",
    "group_confidence",
    "group_effects",
    "imputed",
    "load",
    "make_pipeline",
    "metrics",
    "name_features",
    "plots",
    "polygenic_offset",
    "pooled_false_share",
    "pooled_groups",
    "probing",
    "replication",
    "report",
    "save",
    "substituted",
]

if TYPE_CHECKING:
    from coterie import baselines, correlation, data, datasets, filters, metrics, plots, probing, replication, report
    from coterie.comparison.result import Comparison
    from coterie.comparison.run import compare
    from coterie.confidence.estimation import group_confidence
    from coterie.confidence.result import GroupConfidence, pooled_false_share, pooled_groups
    from coterie.correlation.compatibility import ChromosomeDistance, PixelDistance
    from coterie.correlation.groups import CorrelationGroups
    from coterie.correlation.profile import CorrelationProfile, correlation_profile
    from coterie.data.memory import as_source
    from coterie.discovery import discover
    from coterie.effects import GroupEffects, group_effects
    from coterie.estimators.classifier import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV
    from coterie.estimators.one_class import GroupDiscoveryOneClass
    from coterie.estimators.one_class_cv import GroupDiscoveryOneClassCV
    from coterie.estimators.regressor import GroupDiscoveryRegressor, GroupDiscoveryRegressorCV
    from coterie.estimators.survival import GroupDiscoverySurvival, GroupDiscoverySurvivalCV
    from coterie.groups import FeatureGroup, FeatureGroups
    from coterie.inputs.imputation import imputed
    from coterie.inputs.naming import name_features
    from coterie.inputs.pipeline import Pipeline, make_pipeline
    from coterie.inputs.substitution import substituted
    from coterie.marginal import Association, association
    from coterie.metrics.class_statistics import ClassStatistics, class_statistics
    from coterie.persistence.model import save
    from coterie.polygenic import PolygenicOffset, polygenic_offset
    from coterie.probing import DependencyAwareSelector, EstimatorCriterion, KNNCriterion, LinearSVMCriterion, RidgeCriterion
    from coterie.redundancy.estimator import GlobalRedundancySelector
    from coterie.replication.result import Replication
    from coterie.report.result import Discovery, load


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"coterie.{name}")
    else:
        raise AttributeError(f"module 'coterie' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
