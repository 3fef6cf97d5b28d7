"""Runs the table of bad inputs in separate processes with a time limit: ``python -m tests.bad_inputs.run``.

The outcome of a case is a result, one clear ``ValueError`` ("refused"), or a fault: another exception, a warning of NumPy, a
result that is not finite, a time over 30 s, or a crash.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import multiprocessing
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.exceptions import NotFittedError

import coterie
from coterie import baselines
from coterie.filters.selector import FilterSelector
from coterie.methods import SCORES
from tests.bad_inputs.cases import DATA, OF_TARGETS, Case, Fit, good, good_targets, of_parameters

SECONDS = 30.0
# Estimators of other targets than classes and numbers, with their kinds of targets.
TARGETS = {
    "survival": "survival",
    "survival, validated": "survival",
    "counts": "counts",
    "several targets": "several",
    "several targets, validated": "several",
}
# Selectors for a numeric target, which are not regressors for scikit-learn.
NUMBERS = ("mrmr, numbers", "lasso", "grm, numbers", "daf, numbers", "bif, numbers", "filter, correlation")
# Cases in which the checks of scikit-learn raise a clear TypeError (its check_estimator requires the first two), and callables
# that fail when they are called.
_TYPE_ERRORS = {"X: a dictionary", "X: an object", "X: np.matrix", "later: an object", "y: bytes", "y: sparse"} | {
    "representative: a type",
    "scoring: a type",
    "score_func: a type",
    "redundancy: a type",
}


def _own_measure(columns, others, sample_weight=None):
    """Agreement of signs about the mean, which does not depend on scale."""
    weight = np.ones(len(columns)) if sample_weight is None else sample_weight
    own, other = (np.where(values > np.average(values, axis=0, weights=weight), 1.0, -1.0) for values in (columns, others))
    return (own * (weight / weight.sum())[:, None]).T @ other


# Every estimator with small settings, and its modes that compute something else.
ESTIMATORS: dict[str, BaseEstimator] = {
    "classifier": coterie.GroupDiscoveryClassifier(3),
    "classifier, groups predict": coterie.GroupDiscoveryClassifier(3, predict_with="groups", standardize=True),
    "classifier, uncertainty": coterie.GroupDiscoveryClassifier(3, correlation="su"),
    "classifier, ranks": coterie.GroupDiscoveryClassifier(3, correlation="spearman"),
    "classifier, own measure": coterie.GroupDiscoveryClassifier(3, correlation=_own_measure),
    "classifier, folds": coterie.GroupDiscoveryClassifier(3, cv=3, random_state=0),
    "classifier, validated": coterie.GroupDiscoveryClassifierCV(4, Cs=3, n_features_per_round=2, cv=2, random_state=0),
    "regressor": coterie.GroupDiscoveryRegressor(3),
    "regressor, validated": coterie.GroupDiscoveryRegressorCV(
        4, Cs=3, cv=2, predict_with=["support", "groups"], random_state=0
    ),
    "regressor, groups predict": coterie.GroupDiscoveryRegressor(3, predict_with="groups"),
    "survival": coterie.GroupDiscoverySurvival(3),
    "survival, validated": coterie.GroupDiscoverySurvivalCV(3, Cs=2, cv=2, random_state=0),
    "counts": coterie.GroupDiscoveryRegressor(3, loss="poisson"),
    "several targets": coterie.GroupDiscoveryRegressor(3),
    "several targets, validated": coterie.GroupDiscoveryRegressorCV(3, Cs=2, cv=2, random_state=0),
    "one class": coterie.GroupDiscoveryOneClass(3),
    "one class, validated": coterie.GroupDiscoveryOneClassCV(
        4, Cs=3, cv=2, predict_with=["support", "groups"], standardize=False, random_state=0
    ),
    "groups": coterie.CorrelationGroups(remainder="refuse"),  # otherwise text and dates are not mistakes
    "groups, variance": coterie.CorrelationGroups(0.5, correlation="spearman", representative="variance", remainder="refuse"),
    "grm, fisher": coterie.GlobalRedundancySelector("fisher", 3),
    "grm, variance": coterie.GlobalRedundancySelector("variance", 3),
    "grm, validated": coterie.GlobalRedundancySelector("fisher", 3, n_candidates="cv", options={"power": "cv"}, cv=2),
    "grm, set": coterie.GlobalRedundancySelector("fisher", 3, solution="set"),
    "daf, ridge": coterie.DependencyAwareSelector("ridge", n_features_to_select=3, n_probes=30, random_state=0),
    "daf, knn": coterie.DependencyAwareSelector("knn", n_features_to_select=3, n_probes=30, random_state=0),
    "daf, adaptive": coterie.DependencyAwareSelector(
        "ridge", n_features_to_select=3, n_probes=80, random_state=0, sampling="adaptive"
    ),
    "daf, clustering": coterie.DependencyAwareSelector("clustering", n_features_to_select=3, n_probes=10, random_state=0),
    "daf, reconstruction": coterie.DependencyAwareSelector(
        "reconstruction", n_features_to_select=3, n_probes=30, random_state=0
    ),
    "daf, svm": coterie.DependencyAwareSelector("linear_svm", n_features_to_select=3, n_probes=30, random_state=0),
    **{f"filter, {name}": FilterSelector(name, 3) for name in SCORES},
    "bif": baselines.BestIndividualSelector("ridge", n_features_to_select=3),
    "sffs": baselines.FloatingSelector("ridge", n_features_to_select=2, look_ahead=0),
    "mrmr": baselines.MRMRSelector(3),
    "mrmr, numbers": baselines.MRMRRegressionSelector(3),
    "lasso": baselines.LassoSelector(3),
    "grm, numbers": coterie.GlobalRedundancySelector("correlation", 3),
    "daf, numbers": coterie.DependencyAwareSelector("ridge_regression", n_features_to_select=3, n_probes=30, random_state=0),
    "bif, numbers": baselines.BestIndividualSelector("knn_regression", n_features_to_select=3),
    "fcbf": baselines.FCBFSelector(3),
    "rcfs": baselines.RCFSSelector(3),
    "svm-rfe": baselines.SVMRFESelector(3),
    "l1-svm": baselines.L1SVMSelector(3),
    "oscar": baselines.OSCARSelector(3),
    "gflasso": baselines.GraphFusedLassoSelector(3),
    "ncfgs": baselines.FeatureGroupingSelector(3),
    "nctfgs": baselines.FeatureGroupingSelector(3, truncated=True),
}


def cases_of(name: str) -> dict[str, Case]:
    """Return all cases of an estimator by name."""
    estimator = ESTIMATORS[name]
    weighted = "sample_weight" in inspect.signature(estimator.fit).parameters
    data = [case for case in DATA if weighted or not case.name.startswith("weights:")]
    data += OF_TARGETS.get(TARGETS.get(name, ""), [])
    return {case.name: case for case in [*data, *of_parameters(estimator)]}


def fit_of(name: str) -> Fit:
    """Return a valid fit of an estimator."""
    if name in TARGETS:
        return good_targets(TARGETS[name])
    return good(regression=is_regressor(ESTIMATORS[name]) or name in NUMBERS)


def outcome(name: str, case: Case) -> str:
    """Return the outcome of a case: "result", "refused", or "FAULT" with a description."""
    estimator = clone(ESTIMATORS[name])
    before = fit_of(name)
    fit = case.change(before)
    fate = case.fate if not (case.name.startswith("X: negative")) else "either"
    # In a separate folder, because a string may be the path of a checkpoint.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fault = _fit_and_use(estimator, fit)
        except (ValueError, FileNotFoundError) as error:
            fault = _unclear(error, case.name)
            if fault is None:
                return "refused" if fate != "result" else f"FAULT refused: {error}"
        except Exception as error:
            if isinstance(error, TypeError) and case.name in _TYPE_ERRORS:
                return "refused"
            fault = f"{type(error).__name__}: {error}"
    noise = next((w for w in caught if issubclass(w.category, (RuntimeWarning, DeprecationWarning, FutureWarning))), None)
    if fault is None and noise is not None:
        fault = f"{noise.category.__name__}: {noise.message}"
    if fault is None and fate == "error":
        fault = "not refused"
    return "result" if fault is None else f"FAULT {fault}"


def _fit_and_use(estimator: BaseEstimator, fit: Fit) -> str | None:
    """Fit and use a model; return the fault of the result, or None."""
    estimator.set_params(**fit.parameters)
    weights = {} if fit.sample_weight is None else {"sample_weight": fit.sample_weight}
    offset = {} if fit.offset is None else {"offset": fit.offset}
    estimator.fit(fit.X, fit.y, **weights, **offset)
    later = fit.X if fit.later is Ellipsis else fit.later
    n_features = estimator.n_features_in_
    chosen = np.asarray(estimator.support_features_)
    if not len(chosen) or len(np.unique(chosen)) != len(chosen) or chosen.min() < 0 or chosen.max() >= n_features:
        return f"support_features_ = {chosen}"
    if estimator.transform(later).shape[1] != np.count_nonzero(estimator.get_support()):
        return "transform keeps another number"
    for attribute, value in vars(estimator).items():
        numbers = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        if attribute.endswith("_") and numbers and not np.isfinite(value).all():
            return f"{attribute} is not finite"
    for method in ("predict", "decision_function"):
        if hasattr(estimator, method):
            known = offset if np.shape(later)[:1] == np.shape(fit.offset)[:1] else {}
            given = np.asarray(getattr(estimator, method)(later, **known))
            if given.dtype.kind == "f" and not np.isfinite(given).all():
                return f"{method} is not finite"
    return None


def _unclear(error: Exception, case: str) -> str | None:
    """Return the reason why an error is unclear to users, or None."""
    text = str(error)
    if isinstance(error, (NotFittedError, np.linalg.LinAlgError, UnicodeError)):
        return f"{type(error).__name__}: {text}"
    foreign = (
        "numba",
        "LAPACK",
        "converge",
        "ufunc",
        "could not be broadcast",
        "array is too big",
        "truth value",
        "math domain",
        ":class:",
    )
    if "NumPy" not in case:  # the checks of scikit-learn show the value itself
        foreign += ("np.int64(", "np.float64(", "np.str_(", "np.True_")
    if not text.strip() or any(word in text for word in foreign):
        return f"unclear: {text}"
    return None


def _worker(pipe: Any) -> None:
    while (task := pipe.recv()) is not None:
        name, case = task
        pipe.send(outcome(name, cases_of(name)[case]))


class _Worker:
    """A process that can be killed and restarted."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_worker, args=(other,), daemon=True)
        self._process.start()
        other.close()
        self._pipe.send(("filter, variance", "X: read-only"))  # imports do not count towards the time
        self._pipe.recv()

    def outcome(self, name: str, case: str, seconds: float) -> str:
        """Return the outcome of a case within a time limit."""
        self._pipe.send((name, case))
        try:
            if self._pipe.poll(seconds):
                return str(self._pipe.recv())
            fault = f"FAULT slow: more than {seconds:g} s"
        except EOFError:
            self._process.join()
            fault = f"FAULT crash: exit code {self._process.exitcode}"
        self.stop()
        self._start()
        return fault

    def stop(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()


def run(names: list[str], seconds: float = SECONDS, part: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the outcomes of all cases of some estimators: name, case, outcome."""
    worker = _Worker()
    try:
        for name in names:
            for case in cases_of(name):
                if part in case:
                    yield name, case, worker.outcome(name, case, seconds)
    finally:
        worker.stop()


def main() -> None:
    """Print all faults, and counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help=f"estimators (all): {', '.join(ESTIMATORS)}")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--part", default="", help="only cases whose name has this in it")
    parser.add_argument("--all", action="store_true", help="print results and refusals, too")
    options = parser.parse_args()
    totals: Counter[str] = Counter()
    for name, case, result in run(options.names or list(ESTIMATORS), options.seconds, options.part):
        totals[result.split(":")[0]] += 1
        if options.all or result.startswith("FAULT"):
            print(f"{name} | {case} | {result[:300]!r}", flush=True)
    print(f"{sum(totals.values())} cases: {dict(totals)}")
    sys.exit(any(kind.startswith("FAULT") for kind in totals))


if __name__ == "__main__":
    main()
