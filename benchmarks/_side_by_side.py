"""Comparison of single fits: times in turn, peak memory, accuracy of the selected features, and the work of our fit.

`coterie.compare` compares methods on given data over folds. Here each fit gets its fastest data layout, and time, memory
and passes of single fits are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from _fresh_process import ChildRun, run_in_child
from _models import Fit, fit_celer, fit_l1_svm, fit_ours, selected_features, tune_celer, tune_l1_svm, warm_up, warnings_counted
from _tables import verdict
from _timing import Timing, measure_in_turn
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from coterie import GroupDiscoveryClassifier

MEGABYTE = 1e6


@dataclass(frozen=True)
class Contender:
    """A name, a picklable fit, and the data in the fastest layout for it (the conversion is not timed)."""

    name: str
    fit: Fit
    X: Any


def usual_contenders(X: Any, by_sample: Any, y: np.ndarray, n_features: int, threads: int) -> list[Contender]:
    """Return Coterie on all threads and on one, and L1 models tuned to as many features, each with its fastest layout."""
    ours = partial(fit_ours, n_features_to_select=n_features, n_features_per_round=10)
    return [
        Contender(f"Coterie, {threads} threads", partial(ours, n_jobs=threads), X),
        Contender("Coterie, 1 thread", partial(ours, n_jobs=1), X),
        Contender("celer L1 logistic", partial(fit_celer, C=tune_celer(X, y, n_features).C), X),
        Contender("L1-SVM", partial(fit_l1_svm, C=tune_l1_svm(by_sample, y, n_features).C), by_sample),
    ]


@dataclass(frozen=True)
class Outcome:
    """A contender's model, times and peak memory."""

    name: str
    model: Any
    timing: Timing
    peak_increase: int | None
    converged: bool

    @property
    def features(self) -> np.ndarray:
        features = selected_features(self.model)
        assert features is not None
        return features


def fit_in_turn(contenders: Sequence[Contender], y: np.ndarray, repeats: int) -> list[Outcome]:
    """Time all contenders in turn, then measure the peak memory of each in a fresh process."""
    for one in contenders:
        warm_up(one.fit, one.X)
    peaks = [_peak_of(one, y) for one in contenders]
    converged = []
    for one in contenders:  # an untimed run fills caches and collects warnings
        with warnings_counted() as unconverged:
            one.fit(one.X, y)
        converged.append(not unconverged)
    with warnings_counted():
        timings = measure_in_turn([partial(one.fit, one.X, y) for one in contenders], repeats)
    return [
        Outcome(one.name, timing.result, timing, peak, good)
        for one, timing, peak, good in zip(contenders, timings, peaks, converged, strict=True)
    ]


def _peak_of(contender: Contender, y: np.ndarray) -> int | None:
    """Return the peak memory of a contender; a failure is printed, because an empty cell would hide it."""
    run = run_in_child(contender.fit, contender.X, y)
    if run.failure is not None:
        print(f"No peak memory of {contender.name}: {run.failure}")
    return run.peak_increase


def comparison_row(outcome: Outcome, ours: Outcome, goal: float | None) -> dict[str, Any]:
    """Return a table row; with a goal, it has the ratio of our time to the contender's. A goal of 1 means faster."""
    row: dict[str, Any] = {
        "method": outcome.name + ("" if outcome.converged else " *"),
        "features": len(outcome.features),
        "best s": outcome.timing.best,
        "median s": outcome.timing.median,
    }
    ratio = ours.timing.best / outcome.timing.best
    row["Coterie / other"] = None if goal is None else ratio
    row["goal"] = None if goal is None else "< 1" if goal == 1.0 else f"<= {goal:g}"
    row["verdict"] = None if goal is None else verdict(ratio < goal if goal == 1.0 else ratio <= goal)
    row["cores of other processes"] = outcome.timing.other_cores
    row["peak MB"] = None if outcome.peak_increase is None else outcome.peak_increase / MEGABYTE
    return row


def judged_rows(
    outcomes: Sequence[Outcome],
    found_by: Callable[[Outcome], dict[str, Any]],
    judge: Callable[[np.ndarray], float | None],
) -> list[dict[str, Any]]:
    """Return rows of all outcomes, ours first: times (the goal is to be faster), features found, accuracy."""
    rows = []
    for one in outcomes:
        row = comparison_row(one, outcomes[0], None if one.name.startswith("Coterie") else 1.0)
        rows.append(row | found_by(one) | {"accuracy": judge(one.features)})
    return rows


def slow_row(name: str, run: ChildRun, ours: Outcome) -> dict[str, Any]:
    """Return the table row of a run in a child process.

    A run that was stopped counts with its time limit, which is in its favour. A failed run has no time, ratio or verdict.
    """
    row: dict[str, Any] = {"method": name, "features": None if run.features is None else len(run.features)}
    if run.failure is not None:
        return row | {"verdict": "failed", "failure": run.failure}
    seconds = run.limit if run.seconds is None else run.seconds
    assert seconds is not None
    return row | {
        "best s": f"> {seconds:g}" if run.seconds is None else seconds,
        "Coterie / other": ours.timing.best / seconds,
        "goal": "< 1",
        "verdict": verdict(ours.timing.best < seconds),
        "peak MB": None if run.peak_increase is None else run.peak_increase / MEGABYTE,
    }


def held_out_accuracy(
    X_train: Any, y_train: np.ndarray, X_test: Any, y_test: np.ndarray, features: np.ndarray | None
) -> float | None:
    """Return the held-out accuracy of a linear SVM on the selected features, with C by cross-validation on the training part.

    The same model is used for all selectors, so that only the selected features matter, not the shrinkage of the weights.
    """
    if features is None or not len(features):
        return None
    search = GridSearchCV(LinearSVC(dual=False), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3)
    with warnings_counted():
        search.fit(X_train[:, features].astype(np.float64), y_train)
    return float(search.score(X_test[:, features].astype(np.float64), y_test))


def work_facts(model: GroupDiscoveryClassifier, outcome: Outcome, bare_pass: Timing, X: Any) -> dict[str, Any]:
    """Return the work of a fit of Coterie, in units that do not depend on the machine."""
    size = data_bytes(X)
    return {
        "rounds": model.n_rounds_,
        "passes": model.n_passes_,
        "passes per round": model.n_passes_ / model.n_rounds_,
        "bare pass s": bare_pass.best,
        "fit in bare passes": outcome.timing.best / bare_pass.best,
        "pairs evaluated": model.n_correlations_evaluated_,
        "pairs possible": model.n_correlations_possible_,
        "share of pairs": model.n_correlations_evaluated_ / model.n_correlations_possible_,
        "features in groups": len(model.groups_.members),
        "largest gap": max(entry.gap for entry in model.history_),
        "data MB": size / MEGABYTE,
        "peak increase / data": None if outcome.peak_increase is None else outcome.peak_increase / size,
    }


def data_bytes(X: Any) -> int:
    """Return the size of the data in bytes."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes
