"""Registry of methods by name: scores of single features, and selectors that consider features jointly.

A method is imported when it is used, so that the command line can list the methods quickly.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

_NO_SETTINGS: Mapping[str, Any] = {}


def load(place: str) -> Any:
    """Return the object at a place given as ``module:name``."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


class Method(NamedTuple):
    """A method of the package.

    Attributes
    ----------
    place : str
        Function (of a score) or class (of a selector), as ``module:name``.

    description : str
        Short description.

    supervised : bool
        Whether the method requires labels.

    signed : bool
        Whether a score can be negative, for features that are worse than noise.

    settings : mapping
        Parameters of the class that define the method.

    ranks : bool
        Whether the method ranks all features.

    nested : {"", "support", "ranking"}
        Whether one fit gives the selections for all numbers of features. With ``"support"``, the first k entries of
        ``support_features_`` of the largest fit are those of a fit for k. With ``"ranking"``, the first k by ``ranking_`` of
        the smallest fit are.

    nested_if : mapping
        Values of parameters that ``nested`` requires.

    on_cluster : {"", "parts", "stores"}
        Whether the method can run on a cluster: on the part of the features that each worker holds, or by workers that open
        the whole store.
    """

    place: str
    description: str
    supervised: bool
    signed: bool = False
    settings: Mapping[str, Any] = _NO_SETTINGS
    ranks: bool = True
    nested: str = ""
    nested_if: Mapping[str, Any] = _NO_SETTINGS
    on_cluster: str = ""

    def load(self) -> Any:
        """Return the function or class."""
        return load(self.place)


def _score(place: str, description: str, supervised: bool, *, signed: bool = False, on_cluster: str = "parts") -> Method:
    return Method(f"coterie.filters.{place}_score", description, supervised, signed, nested="ranking", on_cluster=on_cluster)


def _selector(
    place: str,
    description: str,
    settings: Mapping[str, Any] = _NO_SETTINGS,
    nested: str = "",
    nested_if: Mapping[str, Any] = _NO_SETTINGS,
) -> Method:
    return Method(
        f"coterie.{place}",
        description,
        True,
        settings=settings,
        ranks=False,
        nested=nested,
        nested_if=nested_if,
    )


# Estimators of group discovery by task, with a given number of features and C, or with values chosen by cross-validation.
DISCOVERY = {
    "classification": "coterie.estimators.classifier:GroupDiscoveryClassifier",
    "regression": "coterie.estimators.regressor:GroupDiscoveryRegressor",
    "survival": "coterie.estimators.survival:GroupDiscoverySurvival",
    "counts": "coterie.estimators.regressor:GroupDiscoveryRegressor",
    "one-class": "coterie.estimators.one_class:GroupDiscoveryOneClass",
}
DISCOVERY_CV = {
    "classification": "coterie.estimators.classifier:GroupDiscoveryClassifierCV",
    "regression": "coterie.estimators.regressor:GroupDiscoveryRegressorCV",
    "survival": "coterie.estimators.survival:GroupDiscoverySurvivalCV",
    "counts": "coterie.estimators.regressor:GroupDiscoveryRegressorCV",
    "one-class": "coterie.estimators.one_class_cv:GroupDiscoveryOneClassCV",
}
# Parameters that a task fixes.
TASK_SETTINGS: Mapping[str, Mapping[str, Any]] = {"counts": {"loss": "poisson"}}
# Parameters of the validated estimators for which coterie.discover has another default.
DISCOVERY_DEFAULTS: Mapping[str, Any] = {"rule": "one_se"}
_GDM = DISCOVERY["classification"].removeprefix("coterie.")
_NESTED_IF_GREEDY: dict[str, Mapping[str, Any]] = {
    "nested_if": {"cv": None, "representative": "score", "fixed_features": None, "keep": "support"},
}

METHODS: dict[str, Method] = {
    "gdm": _selector(_GDM, "group discovery machine", nested="support", **_NESTED_IF_GREEDY),
    "fgm": _selector(
        _GDM, "feature generating machine: no groups", {"correlation": None}, nested="support", **_NESTED_IF_GREEDY
    ),
    "variance": _score("univariate:variance", "variance", False),
    "lgd": _score("neighbours:lgd", "local and global discriminative score", False),
    "laplacian": _score("graph:laplacian", "smoothness on a graph of the samples", False, signed=True, on_cluster="stores"),
    "mcfs": _score("graph:mcfs", "multi-cluster feature selection", False, on_cluster=""),
    "fisher": _score("univariate:fisher", "Fisher's ratio of variances", True),
    "relieff": _score("neighbours:relieff", "ReliefF", True, signed=True, on_cluster="stores"),
    "information_gain": _score("univariate:information_gain", "information gain", True),
    "grm": Method(
        "coterie.redundancy.estimator:GlobalRedundancySelector",
        "global redundancy minimisation over any of the scores",
        True,
        nested="ranking",
        nested_if={
            "n_candidates": None,
            "solution": "weights",
            "options": None,
        },  # other values can depend on the number of features
        on_cluster="parts",
    ),
    "daf": Method(
        "coterie.probing.estimator:DependencyAwareSelector",
        "dependency-aware ranking by random probes",
        True,
        nested="ranking",
        nested_if={"max_seconds": None, "checkpoint": None, "sampling": "uniform"},
        on_cluster="stores",
    ),
    "mrmr": _selector("baselines.relevance:MRMRSelector", "minimum redundancy, maximum relevance (MID)", nested="support"),
    "mrmr-miq": _selector(
        "baselines.relevance:MRMRSelector", "mRMR by the quotient (MIQ)", {"scheme": "miq"}, nested="support"
    ),
    "fcbf": _selector("baselines.relevance:FCBFSelector", "fast correlation-based filter", nested="support"),
    "rcfs": _selector("baselines.rcfs:RCFSSelector", "redundancy-constrained feature selection"),
    "svm-rfe": _selector(
        "baselines.linear:SVMRFESelector",
        "recursive elimination by a linear SVM, half of the features at a time",
        {"step": "half"},
        nested="ranking",
        nested_if={"step": 1},
    ),
    "l1-svm": _selector("baselines.linear:L1SVMSelector", "linear SVM with an L1 penalty"),
    "oscar": _selector("baselines.penalized:OSCARSelector", "octagonal shrinkage (sorted L1), two classes"),
    "gflasso": _selector("baselines.fused:GraphFusedLassoSelector", "graph-guided fused lasso, two classes"),
    "ncfgs": _selector("baselines.fused:FeatureGroupingSelector", "non-convex feature grouping, two classes"),
    "nctfgs": _selector(
        "baselines.fused:FeatureGroupingSelector", "truncated non-convex grouping, two classes", {"truncated": True}
    ),
    "sffs": Method(
        "coterie.baselines.wrappers:FloatingSelector", "sequential floating forward selection", True, on_cluster="stores"
    ),
    "bif": Method(
        "coterie.baselines.wrappers:BestIndividualSelector",
        "best individual features",
        True,
        nested="ranking",
        on_cluster="stores",
    ),
}

# Methods for numeric targets. Methods that use no labels are the same as for classes.
_GDR = DISCOVERY["regression"].removeprefix("coterie.")
_MRMR = "baselines.relevance:MRMRRegressionSelector"
_BY_RIDGE = {"criterion": "ridge_regression"}
REGRESSION: dict[str, Method] = {
    "gdm": _selector(_GDR, "group discovery machine", nested="support", **_NESTED_IF_GREEDY),
    "fgm": _selector(
        _GDR, "feature generating machine: no groups", {"correlation": None}, nested="support", **_NESTED_IF_GREEDY
    ),
    **{name: method for name, method in METHODS.items() if not method.supervised},
    "correlation": _score("univariate:correlation", "absolute correlation with the target (as the F test)", True),
    "grm": METHODS["grm"]._replace(settings={"score_func": "correlation"}),
    "daf": METHODS["daf"]._replace(settings=_BY_RIDGE),
    "mrmr": _selector(_MRMR, "minimum redundancy, maximum relevance by correlations (difference)", nested="support"),
    "mrmr-miq": _selector(_MRMR, "mRMR by the quotient of correlations", {"scheme": "miq"}, nested="support"),
    "lasso": _selector("baselines.linear:LassoSelector", "least squares with an L1 penalty"),
    "sffs": METHODS["sffs"]._replace(settings=_BY_RIDGE),
    "bif": METHODS["bif"]._replace(settings=_BY_RIDGE),
}

# Criteria that evaluate feature subsets in daf, sffs and bif, by name.
CRITERIA = {
    "knn": "coterie.probing.criteria.nearest:KNNCriterion",
    "linear_svm": "coterie.probing.criteria.svm:LinearSVMCriterion",
    "svm": "coterie.probing.criteria.svm:SVMCriterion",
    "ridge": "coterie.probing.criteria.ridge:RidgeCriterion",
    "knn_regression": "coterie.probing.criteria.nearest:KNNRegressionCriterion",
    "ridge_regression": "coterie.probing.criteria.ridge:RidgeRegressionCriterion",
    "clustering": "coterie.probing.criteria.unlabelled:ClusteringCriterion",
    "reconstruction": "coterie.probing.criteria.unlabelled:ReconstructionCriterion",
}

# Methods that are scores of single features.
SCORES = {name: method for name, method in (METHODS | REGRESSION).items() if method.place.startswith("coterie.filters.")}


def methods_for(task: str) -> dict[str, Method]:
    """Return the methods for classes (``"classification"``) or numeric targets (``"regression"``), by name."""
    return REGRESSION if task == "regression" else METHODS


def method_named(name: str, task: str = "classification") -> Method:
    """Return the method with a name for a task; ``-`` and ``_`` are equivalent in names."""
    key = name.strip().lower().replace("-", "_")
    known = methods_for(task)
    for one, method in known.items():
        if one.replace("-", "_") == key:
            return method
    other = METHODS if task == "regression" else REGRESSION
    if key in {one.replace("-", "_") for one in other}:
        required, given = ("classes", "numbers") if task == "regression" else ("a numeric target", "classes")
        raise ValueError(
            f"The method {name!r} requires {required}, but the labels are {given} (task {task}). Methods for {given}: "
            f"{', '.join(known)}."
        )
    raise ValueError(f"Unknown method {name!r}. The methods are {', '.join(known)}.")


def score_on_cluster(name: str, parameters: Mapping[str, Any] | None) -> str:
    """Return :attr:`Method.on_cluster` of a score with given parameters."""
    place = SCORES[name].on_cluster if name in SCORES else ""
    return "stores" if place and (parameters or {}).get("neighborhood") == "samples" else place
