"""Exact results of every method, to check that a change does not alter any bit.

    python -m tests.golden.record write /tmp/before.json     # before the change
    python -m tests.golden.record compare /tmp/before.json   # after the change: lists the differences

The last bits depend on the processor and on the versions of NumPy and numba, so a record is compared on the machine that
wrote it and is not kept in the repository. Only public names are used, so the same script runs before and after the change.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsClassifier

import coterie
from coterie import baselines, datasets, filters, metrics

CASES: dict[str, Callable[[], Any]] = {}


def case(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def register(function: Callable[[], Any]) -> Callable[[], Any]:
        CASES[name] = function
        return function

    return register


def digest(value: Any) -> Any:
    """Return a value as JSON that depends on every bit."""
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False)
        return {name: digest(item) for name, item in sorted(vars(value).items()) if name not in parameters}
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            return [digest(item) for item in value.tolist()]
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return f"{value.dtype}{list(value.shape)} {content}"
    if sparse.issparse(value):
        return [digest(part) for part in (value.indptr, value.indices, value.data)]
    if isinstance(value, (float, np.floating)):
        return float(value).hex()
    if isinstance(value, np.generic):
        return digest(value.item())
    if isinstance(value, coterie.FeatureGroups):
        return [digest(group) for group in value]
    if dataclasses.is_dataclass(value):
        return {field.name: digest(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): digest(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return digest(value._asdict())
    if isinstance(value, (list, tuple)):
        return [digest(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(json.dumps(digest(item)) for item in value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    own = {
        name: item for name, item in vars(value).items() if name not in ("_values", "_sizes")
    }  # buffers with spare capacity
    public = {name: getattr(value, name) for name in ("values", "sizes") if hasattr(value, name)}
    return {name: digest(item) for name, item in sorted({**own, **public}.items())}


# ---------------------------------------------------------------------------------------------------------------- data


def classes(n: int = 300, m: int = 400, k: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return blocks of correlated features, some of which distinguish the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    factors = rng.standard_normal((n, m // 5))
    factors[:, :8] += np.eye(k, 8)[y] * 1.5 + 0.3 * (y[:, None] == np.arange(8) % k)
    X = np.repeat(factors, 5, axis=1) + 0.4 * rng.standard_normal((n, m))
    return X, y


def words(n: int = 400, m: int = 3000, k: int = 2, seed: int = 1) -> tuple[sparse.csc_array, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    rate = 0.4 / (1 + np.arange(m)) ** 0.7
    counts = rng.poisson(rate * (1 + 2.0 * ((np.arange(m) % 17 == 3) & (y[:, None] == np.arange(m) % k))))
    counts[:, 1::10] = counts[:, ::10] * (rng.random((n, len(range(1, m, 10)))) < 0.9)  # a word that occurs with another
    return sparse.csc_array(counts.astype(np.float64)), y


def genotypes(n: int = 250, m: int = 800, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    blocks = rng.binomial(2, rng.uniform(0.1, 0.5, m // 8), (n, m // 8))
    X = np.repeat(blocks, 8, axis=1)
    X = np.where(rng.random((n, m)) < 0.1, rng.binomial(2, 0.3, (n, m)), X).astype(np.int8)
    return X, X[:, [5, 100, 300]] @ np.array([1.0, -0.7, 0.5]) + 0.5 * rng.standard_normal(n)


def shared(name: str) -> Any:
    folder = Path(os.environ.get("COTERIE_DATA", Path(__file__).parents[3] / "shared" / "data"))
    return np.load(folder / name, allow_pickle=False) if (folder / name).exists() else None


# ----------------------------------------------------------------------------------------------------- group discovery

GDC, GDR, GDO = coterie.GroupDiscoveryClassifier, coterie.GroupDiscoveryRegressor, coterie.GroupDiscoveryOneClass
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "one a round": {"n_features_per_round": 1},
    "ranked": {"affiliates": "ranked", "threshold": 0.5},
    "standardised": {"standardize": True, "C": 0.1},
    "no intercept": {"fit_intercept": False},
    "uncertainty": {"correlation": "su", "threshold": 0.3},
    "no constraint": {"correlation": None},
    "medoid": {"representative": "medoid"},
    "a callable representative": {"representative": lambda group: int(group.features[np.argmax(group.scores)])},
    "fixed": {"fixed_features": [7, 3]},
    "groups predict": {"predict_with": "groups"},
    "large C": {"C": 1e6},
    "folds": {"cv": 4, "random_state": 0},
    "automatic": {"n_features_to_select": "auto", "tol": 1e-2, "max_rounds": 8},
    "wide first block": {"n_features_to_select": 80, "n_features_per_round": 80, "threshold": 0.99},
}

for label, options in VARIANTS.items():

    @case(f"classifier, dense, {label}")
    def _(options: Any = options) -> Any:
        X, y = classes()
        return GDC(**{"n_features_to_select": 12, **options}).fit(X, y)

    @case(f"classifier, sparse, {label}")
    def _(options: Any = options) -> Any:
        X, y = words()
        return GDC(**{"n_features_to_select": 12, **options}).fit(X, y)


@case("classifier, F order, float32, int8, C order of bools")
def _() -> Any:
    X, y = classes()
    found = [GDC(8).fit(np.asfortranarray(X), y), GDC(8).fit(X.astype(np.float32), y), GDC(8).fit(X > 0, y)]
    return [*found, GDC(8).fit((4 * X).clip(-100, 100).astype(np.int8), y), GDC(8).fit(X, y).predict(X)]


@case("classifier, weights of samples and classes")
def _() -> Any:
    X, y = classes()
    weight = np.random.default_rng(3).integers(0, 3, len(y)).astype(float)
    S, z = words()
    return [
        GDC(10, class_weight="balanced").fit(X, y, sample_weight=weight),
        GDC(10, standardize=True).fit(S, z, sample_weight=np.arange(len(z)) % 4 + 0.5),
    ]


for label in ("default", "standardised", "groups predict", "folds", "uncertainty", "large C"):

    @case(f"classifier, several classes, {label}")
    def _(options: Any = VARIANTS[label]) -> Any:
        X, y = classes(k=4)
        S, z = words(k=3)
        return [GDC(15, **options).fit(X, y), GDC(9, **options).fit(S, z)]


@case("classifier, cross-validated size")
def _() -> Any:
    X, y = classes()
    kind = coterie.GroupDiscoveryClassifierCV
    first = kind(30, Cs=[1.0], n_features_per_round=5, random_state=0).fit(X, y)
    return [first, kind(12, Cs=[1.0], n_features_per_round=3, predict_with="groups", cv=3, random_state=1).fit(*words())]


for label in ("default", "one a round", "standardised", "groups predict", "folds", "uncertainty", "no intercept", "ranked"):

    @case(f"regressor, {label}")
    def _(options: Any = VARIANTS[label]) -> Any:
        X, y = genotypes()
        return [GDR(10, **options).fit(X, y), GDR(10, **options).fit(sparse.csc_array(X), y)]


ONE_CLASS = {label: VARIANTS[label] for label in ("default", "groups predict", "folds")}
ONE_CLASS["wide first block"] = {"n_features_to_select": 500, "n_features_per_round": 400}
for label, options in ONE_CLASS.items():

    @case(f"one class, {label}")
    def _(options: Any = options) -> Any:
        X, _ = words(m=1500)
        dense = X.toarray()[:, :900].astype(np.uint8)
        return [GDO(**options).fit(X), GDO(**options).fit(dense[:, dense.any(axis=0)]), GDO(**options).fit(X).predict(X)]


def outcomes(n: int = 250, m: int = 300) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Return blocks of correlated features, a linear predictor of two of them, and the generator for the targets."""
    rng = np.random.default_rng(6)
    X = np.repeat(rng.standard_normal((n, m // 5)), 5, axis=1) + 0.4 * rng.standard_normal((n, m))
    return X, 0.5 * X[:, 10] - 0.5 * X[:, 60], rng


def both_losses(X: np.ndarray, y: np.ndarray, **options: Any) -> Any:
    """Return plain and validated regressors, and effects, with a loss for numbers."""
    offset = {"offset": options.pop("offset")} if "offset" in options else {}
    plain = GDR(6, **options).fit(X, y, **offset)
    validated = coterie.GroupDiscoveryRegressorCV(8, Cs=2, cv=3, random_state=0, **options).fit(X, y, **offset)
    sparse_fit = GDR(6, standardize=True, **options).fit(sparse.csc_array(np.where(X > 0.5, X, 0.0)), y, **offset)
    effects = coterie.group_effects(plain, X, y, **offset).attach(plain.groups_)
    return [plain, validated, sparse_fit, effects, plain.predict(X, **offset)]


@case("loss: logistic")
def _() -> Any:
    X, eta, rng = outcomes()
    codes = np.digitize(eta + rng.logistic(size=len(eta)), [0.0, 1.0])
    kind = coterie.GroupDiscoveryClassifierCV
    fits = [GDC(6, loss="logistic").fit(X, codes > 0), GDC(6, loss="logistic").fit(X, codes)]
    return [*fits, kind(8, loss="logistic", Cs=2, cv=3, random_state=0).fit(X, codes > 0), fits[0].predict_proba(X)]


@case("loss: poisson, with an offset")
def _() -> Any:
    X, eta, rng = outcomes()
    offset = np.log(rng.uniform(0.5, 4.0, len(eta)))
    return both_losses(X, rng.poisson(np.exp(eta + offset)).astype(float), loss="poisson", offset=offset)


@case("loss: gamma, with an offset")
def _() -> Any:
    X, eta, rng = outcomes()
    offset = np.log(rng.uniform(0.5, 4.0, len(eta)))
    return both_losses(X, np.exp(5.0 + eta + offset) * rng.gamma(2.0, 0.5, len(eta)), loss="gamma", offset=offset)


@case("loss: poisson and gamma, several targets")
def _() -> Any:
    X, eta, rng = outcomes()
    y = np.column_stack([np.exp(eta) * rng.gamma(2.0, 0.5, len(eta)), np.exp(3.0 - eta) * rng.gamma(4.0, 0.25, len(eta))])
    return [GDR(6, loss="gamma").fit(X, y), GDR(6, loss="poisson").fit(X, np.ceil(y))]


@case("loss: huber")
def _() -> Any:
    X, eta, rng = outcomes()
    return both_losses(X, eta + rng.standard_t(2, len(eta)), loss="huber")


@case("loss: quantile")
def _() -> Any:
    X, eta, rng = outcomes()
    y = eta + rng.standard_t(2, len(eta))
    return [both_losses(X, y, loss="quantile"), both_losses(X, y, loss="quantile", quantile=0.9)]


@case("survival times, with ties, strata and entry times")
def _() -> Any:
    X, eta, rng = outcomes()
    time, end = rng.exponential(np.exp(-2.0 * eta)), rng.exponential(2.0, len(eta))
    stop = np.ceil(10 * np.minimum(time, end))
    y = np.column_stack([stop, time <= end])
    strata = np.column_stack([y, np.arange(len(y)) % 2])
    entry = np.zeros(len(y), dtype=[("event", "?"), ("time", "f8"), ("entry", "f8")])
    entry["event"], entry["time"], entry["entry"] = time <= end, stop, np.floor(0.5 * rng.random(len(y)) * stop)
    kind = coterie.GroupDiscoverySurvival
    fits = [kind(6, ties=ties).fit(X, target) for ties in ("breslow", "efron") for target in (y, strata, entry)]
    chosen = coterie.GroupDiscoverySurvivalCV(8, Cs=2, cv=3, nested=True, random_state=0).fit(X, y)
    return [*fits, chosen, coterie.group_effects(fits[0], X, y).attach(fits[0].groups_), fits[0].predict(X)]


@case("separable classes: the interior-point method")
def _() -> Any:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 2000))
    return [GDC(40, C=1e4).fit(X, X[:, 0] > 0), GDC(40, C=100.0).fit(X, np.arange(60) % 3)]


# ------------------------------------------------------------------------------------- scores, GRM, DAF, baselines, rest

SCORES = ("variance", "lgd", "laplacian", "mcfs", "fisher", "relieff", "information_gain")


@case("filter scores")
def _() -> Any:
    X, y = classes(n=120, m=200, k=3)
    S, z = words(n=150, m=500)
    result = {}
    for name in SCORES:
        function = getattr(filters, f"{name}_score")
        result[name] = [function(X, y), function(X.astype(np.float32), y), function(S, z)]
    return result


for score in SCORES:

    @case(f"GRM over {score}")
    def _(score: str = score) -> Any:
        X, y = classes(n=120, m=200, k=3)
        kind = functools.partial(coterie.GlobalRedundancySelector, solution="weights")
        fits = [kind(score, 15).fit(X, y), kind(score, 15, n_candidates=None).fit(X, y)]
        S, z = words(n=150, m=500)
        return [*fits, kind(score, 10).fit(S, z)]


@case("GRM, other measures, methods and groups")
def _() -> Any:
    X, y = classes(n=120, m=60, k=3)
    kind = functools.partial(coterie.GlobalRedundancySelector, solution="weights")
    groups = [[0, 1, 2], [3, 4], [10, 11, 12, 13]]
    A = np.corrcoef(X.T) ** 2
    return [
        kind("fisher", 10, redundancy="mutual_info").fit(X, y),
        kind("fisher", 10, options={"method": "alm"}, n_candidates=None).fit(X, y),
        kind("fisher", 10, groups=groups, options={"group_strength": 0.5}).fit(X, y),
        kind(np.arange(1.0, 61.0), 10, redundancy="precomputed").fit(A),
        kind(lambda X, y: filters.fisher_score(X, y), 10, redundancy=lambda C: np.corrcoef(C.T) ** 2).fit(X, y),
    ]


for criterion in ("knn", "linear_svm", "ridge"):

    @case(f"DAF by {criterion}")
    def _(criterion: str = criterion) -> Any:
        X, y = classes(n=90, m=60, k=3)
        kind = coterie.DependencyAwareSelector
        return [kind(criterion, n_probes=60, random_state=v, variant=f"daf{v}", n_jobs=1 + v % 2).fit(X, y) for v in range(3)]


@case("DAF by an estimator, sparse, with probabilities")
def _() -> Any:
    S, z = words(n=80, m=90)
    kind = coterie.DependencyAwareSelector
    first = kind(KNeighborsClassifier(3), n_probes=25, random_state=0, inclusion_probability=0.1).fit(S, z)
    return [first, kind("knn", min_coverage=3, random_state=1, max_probe_size=20).fit(S, z)]


@case("BIF and SFFS")
def _() -> Any:
    X, y = classes(n=90, m=40, k=3)
    best = baselines.BestIndividualSelector("ridge", n_features_to_select=6).fit(X, y)
    return [best, baselines.FloatingSelector("ridge", n_features_to_select=4).fit(X, y)]


BASELINES: dict[str, tuple[Any, int]] = {
    "mRMR": (lambda: baselines.MRMRSelector(8), 3),
    "mRMR by quotient": (lambda: baselines.MRMRSelector(8, scheme="miq"), 3),
    "FCBF": (lambda: baselines.FCBFSelector(6), 3),
    "RCFS": (lambda: baselines.RCFSSelector(6), 3),
    "SVM-RFE": (lambda: baselines.SVMRFESelector(6), 3),
    "L1-SVM": (lambda: baselines.L1SVMSelector(6), 3),
    "OSCAR": (lambda: baselines.OSCARSelector(6), 2),
    "GFlasso": (lambda: baselines.GraphFusedLassoSelector(6), 2),
    "ncFGS": (lambda: baselines.FeatureGroupingSelector(6), 2),
    "ncTFGS": (lambda: baselines.FeatureGroupingSelector(6, truncated=True), 2),
}
for label, (maker, n_classes) in BASELINES.items():

    @case(f"baseline {label}")
    def _(maker: Any = maker, n_classes: int = n_classes) -> Any:
        X, y = classes(n=100, m=60, k=n_classes)
        S, z = words(n=120, m=80, k=2)
        return [maker().fit(X, y), maker().fit(S, z)]


@case("profile, metrics, generators")
def _() -> Any:
    X, _ = classes(n=120, m=200)
    S, _ = words(n=150, m=500)
    data = datasets.make_support_affiliated(300, 200, n_support=4, n_true=9, random_state=0)
    icml = datasets.make_feature_groups(300, 500, random_state=0)
    gauss = datasets.make_block_gaussian(random_state=0)
    subsets = [[0, 1, 2], [1, 2, 3], [0, 2, 5]]
    found = GDC(4, n_features_per_round=1).fit(data.X, data.y).groups_
    return {
        "profiles": [
            coterie.correlation_profile(X).to_dict(),
            coterie.correlation_profile(S).to_dict(),
            coterie.correlation_profile(S, n_pairs=500, random_state=0).to_dict(),
        ],
        "metrics": [
            metrics.redundancy_rate(X[:, :20]),
            metrics.squared_redundancy(X[:, :20]),
            metrics.weighted_consistency(subsets, 10),
            metrics.group_recovery(data.groups, found),
        ],
        "data": [data.X, data.y, icml.X, icml.y, gauss.X, gauss.y, list(data.groups)],
    }


@case("validated estimators, nested scores, models on groups, covariates")
def _() -> Any:
    X, y = classes(n=120, m=150)
    S, z = words(n=150, m=400, k=3)
    G, t = genotypes(n=120, m=400)
    covariates = np.random.default_rng(8).standard_normal((120, 2))
    both = {"predict_with": ["support", "groups"], "nested": True, "random_state": 0, "Cs": 3}
    labels = np.where(np.arange(150) % 5 == 0, -1, 1)
    return [
        coterie.GroupDiscoveryClassifierCV(8, rule="one_se", **both).fit(X, y),
        coterie.GroupDiscoveryClassifierCV(6, **both).fit(S, z),
        coterie.GroupDiscoveryClassifierCV(6, scoring="roc_auc", **both).fit(X, y, covariates=covariates),
        coterie.GroupDiscoveryClassifierCV(6, **both).fit(X, y).predict_proba(X),
        coterie.GroupDiscoveryRegressorCV(8, cv=4, **both).fit(G, t, covariates=covariates),
        coterie.GroupDiscoveryRegressorCV(8, affiliates="ranked", embedded_cv=3, **both).fit(G, t),
        coterie.GroupDiscoveryOneClassCV(10, nested=True, random_state=0).fit(S, labels),
        GDR(5).fit(G, t, covariates=covariates),
        GDC(5).fit(X, y, covariates=covariates).predict(X, covariates),
    ]


@case("confidence of groups")
def _() -> Any:
    X, y = classes(n=120, m=150)
    G, t = genotypes(n=120, m=400)
    S, z = words(n=150, m=400, k=3)
    options: dict[str, Any] = {"n_pairs": 6, "n_permutations": 2, "random_state": 0}
    found = []
    for model, A, b in (
        (GDC(6), X, y),
        (GDC(6, affiliates="ranked"), S, z),
        (GDR(6, cv=3, random_state=0), G, t),
        (coterie.GroupDiscoveryRegressorCV(6, Cs=3, random_state=0), G, t),
        (GDO(6), S, None),
    ):
        result = coterie.group_confidence(model.fit(A, b), A, b, **options)
        found.append([result.confidence, result.expected_false, result.false_share, list(result.chosen)])
    return found


@case("the command: discover, groups.csv and result.json")
def _() -> Any:
    import pandas as pd

    found = []
    for task, arguments in {
        "classification": [],
        "regression": ["--n-features-to-select", "4"],
        "fast": ["--fast"],
    }.items():
        X, y = classes(n=100, m=40)
        frame = pd.DataFrame(X.round(6), columns=[f"gene{j}" for j in range(40)])
        frame["outcome"] = (X[:, 3] + y).round(6) if task == "regression" else np.where(y, "ill", "well")
        with tempfile.TemporaryDirectory() as folder:
            frame.to_csv(f"{folder}/data.csv", index=False)
            words_ = ["discover", f"{folder}/data.csv", "--label", "outcome", "-o", f"{folder}/out", "--quiet"]
            subprocess.run([sys.executable, "-m", "coterie", *words_, "--n-pairs", "5", *arguments], check=True)
            result = json.loads(Path(folder, "out", "result.json").read_text())
            kept = ("task", "target", "judgement", "held_out", "validation", "estimator", "groups", "warnings", "rounds")
            found.append([Path(folder, "out", "groups.csv").read_text(), {name: result[name] for name in kept}])
            confidence = result["confidence"] or {}
            found.append({name: confidence.get(name) for name in ("confidence", "expected_false", "false_share")})
    return found


@case("results: JSON, rows, names")
def _() -> Any:
    import pandas as pd

    X, y = classes(n=120, m=60)
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(60)])
    model = GDC(4).fit(frame, np.where(y, "ill", "well"))
    return [model.groups_.to_json(), model.groups_.rows(), repr(model.groups_), model.transform(frame), digest(model)]


@case("real: duke, basehock, dorothea, coil20")
def _() -> Any:
    found = []
    if (file := shared("basehock.npz")) is not None:
        X = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=file["shape"]).tocsc()
        found += [GDC(30).fit(X, file["y"]), coterie.GlobalRedundancySelector("fisher", 20).fit(X, file["y"])]
        found += [GDC(10, correlation="su", threshold=0.6).fit(X, file["y"])]
    if (file := shared("dorothea.npz")) is not None:
        X = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=file["shape"]).tocsc()
        found += [GDC(30, class_weight="balanced").fit(X, file["y"])]
    if (file := shared("coil20.npz")) is not None:
        found += [GDC(20).fit(file["X"], file["y"])]
    if (file := shared("gordon.npz")) is not None:
        found += [GDC(20, standardize=True, C=0.01).fit(file["X"], file["y"])]
    return found


# --------------------------------------------------------------------------------------------------------------- running


def run(only: str) -> dict[str, Any]:
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in CASES.items():
            if only in name:
                results[name] = digest(function())
                print(".", end="", flush=True, file=sys.stderr)
    print(file=sys.stderr)
    return json.loads(json.dumps(results))


def differences(before: Any, after: Any, place: str = "") -> list[str]:
    """Return the differences of two records, including parts that only one of them has."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted({*before, *after})
        return [line for key in keys for line in differences(before.get(key), after.get(key), f"{place}/{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{place}[{i}]")]
    return [] if before == after else [f"{place}: {json.dumps(before)[:80]} -> {json.dumps(after)[:80]}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="run only cases whose names contain this text")
    options = parser.parse_args()
    results = run(options.only)
    if options.action == "write":
        options.file.write_text(json.dumps(results, indent=1))
        print(f"{len(results)} cases written to {options.file}")
        return
    before = {name: value for name, value in json.loads(options.file.read_text()).items() if options.only in name}
    lines = differences(before, results)
    print("\n".join(lines) or f"{len(results)} cases: no bit differs")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
