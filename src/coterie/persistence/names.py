"""What files call Coterie's classes and functions: names that stay when the code moves.

A file holds a name of this table and nothing about modules, so a class can move to another file by changing its row. Names
never change, and a row is never removed while files may have it. (Files of version 1 of the model format hold a dotted
path, whose last part is the name.) Only what is listed here is ever made from a file.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Home(NamedTuple):
    """Where something lives.

    Attributes
    ----------
    module : str
        Its module today.
    digested : str
        The module that digests know it by (of checkpoints and comparisons), where it has moved since they were first made.
    """

    module: str
    digested: str = ""


_HOMES: dict[str, Home] = {
    # Estimators
    "GroupDiscoveryClassifier": Home("coterie.estimators.classifier"),
    "GroupDiscoveryClassifierCV": Home("coterie.estimators.classifier"),
    "GroupDiscoveryOneClass": Home("coterie.estimators.one_class"),
    "GroupDiscoveryOneClassCV": Home("coterie.estimators.one_class"),
    "GroupDiscoveryRegressor": Home("coterie.estimators.regressor"),
    "GroupDiscoveryRegressorCV": Home("coterie.estimators.regressor"),
    "CorrelationGroups": Home("coterie.correlation.groups"),
    "GlobalRedundancySelector": Home("coterie.redundancy.estimator"),
    "DependencyAwareSelector": Home("coterie.probing.estimator", "coterie.ranking.estimator"),
    "FilterSelector": Home("coterie.filters.selector", "coterie.comparison.filter_selector"),
    "BestIndividualSelector": Home("coterie.baselines.wrappers", "coterie.ranking.individual"),
    "FloatingSelector": Home("coterie.baselines.wrappers", "coterie.ranking.floating"),
    "FCBFSelector": Home("coterie.baselines.relevance"),
    "FeatureGroupingSelector": Home("coterie.baselines.fused"),
    "GraphFusedLassoSelector": Home("coterie.baselines.fused"),
    "L1SVMSelector": Home("coterie.baselines.linear"),
    "LassoSelector": Home("coterie.baselines.linear"),
    "MRMRRegressionSelector": Home("coterie.baselines.relevance"),
    "MRMRSelector": Home("coterie.baselines.relevance"),
    "OSCARSelector": Home("coterie.baselines.penalized"),
    "RCFSSelector": Home("coterie.baselines.rcfs"),
    "SVMRFESelector": Home("coterie.baselines.linear"),
    # Criteria
    "CallableCriterion": Home("coterie.probing.criteria.base", "coterie.ranking.criteria.estimators"),
    "EstimatorCriterion": Home("coterie.probing.criteria.base", "coterie.ranking.criteria.estimators"),
    "KNNCriterion": Home("coterie.probing.criteria.nearest", "coterie.ranking.criteria.nearest"),
    "LinearSVMCriterion": Home("coterie.probing.criteria.svm", "coterie.ranking.criteria.linear_svm"),
    "RidgeCriterion": Home("coterie.probing.criteria.ridge", "coterie.ranking.criteria.ridge"),
    "KNNRegressionCriterion": Home("coterie.probing.criteria.nearest"),
    "RidgeRegressionCriterion": Home("coterie.probing.criteria.ridge"),
    "ClusteringCriterion": Home("coterie.probing.criteria.unlabelled"),
    "ReconstructionCriterion": Home("coterie.probing.criteria.unlabelled"),
    "SVMCriterion": Home("coterie.probing.criteria.svm"),
    # Records in fitted attributes
    "AdaptivePlan": Home("coterie.probing.adaptive"),
    "AdaptiveSums": Home("coterie.probing.adaptive"),
    "Benefit": Home("coterie.probing.adaptive"),
    "Focus": Home("coterie.probing.adaptive"),
    "FeatureGroup": Home("coterie.groups.feature_groups"),
    "FeatureGroups": Home("coterie.groups.feature_groups"),
    "GroupConfidence": Home("coterie.confidence.result"),
    "KeptNames": Home("coterie.persistence.slim"),
    "FloatingSubset": Home("coterie.baselines.wrappers"),
    "ProbePlan": Home("coterie.probing.probes"),
    "ProbeSize": Home("coterie.probing.scores"),
    "ProbeSums": Home("coterie.probing.probes"),
    "Purity": Home("coterie.groups.feature_groups"),
    "Round": Home("coterie.search.loop"),
    # Functions that a parameter can hold
    "correlation_score": Home("coterie.filters.univariate"),
    "fisher_score": Home("coterie.filters.univariate"),
    "information_gain_score": Home("coterie.filters.univariate"),
    "laplacian_score": Home("coterie.filters.graph"),
    "lgd_score": Home("coterie.filters.neighbours"),
    "mcfs_score": Home("coterie.filters.graph"),
    "relieff_score": Home("coterie.filters.neighbours"),
    "variance_score": Home("coterie.filters.univariate"),
}


def name_of(item: type | Callable[..., Any]) -> str | None:
    """The name that files have for a class or function; None for what they cannot hold."""
    home = _HOMES.get(item.__name__)
    return item.__name__ if home is not None and home.module == item.__module__ else None


def named(name: str) -> Any:
    """The class or function of a name (the last part of a dotted one); None where there is none."""
    prefix, _, last = name.rpartition(".")
    if last not in _HOMES or prefix.split(".")[0] not in ("", "coterie"):
        return None
    return getattr(import_module(_HOMES[last].module), last)


def digested_name(kind: type) -> str:
    """What digests call a class: the same for ever, so that what was begun with an older Coterie can go on."""
    home = _HOMES.get(kind.__name__) if name_of(kind) is not None else None
    module = home.digested if home is not None and home.digested else kind.__module__
    return f"{module}.{kind.__qualname__}"
