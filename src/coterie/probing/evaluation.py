"""Parallel evaluation of subsets and probes with stopping rules, and the base class of selectors with a criterion."""

from __future__ import annotations

import math
import os
import secrets
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from coterie._numba import one_blas_thread
from coterie._parameters import N_FEATURES, N_JOBS, VERBOSE, AnyValue, Rule
from coterie._warnings import ignored, recorded
from coterie.data.source import FeatureSource
from coterie.inputs.folds import Fold, read_folds
from coterie.inputs.opening import TargetKind, open_input
from coterie.inputs.targets import task_of
from coterie.inputs.types import ClientLike, FeaturesLike, FoldsLike, SampleGroupsLike, TargetsLike
from coterie.probing.criteria.base import Criterion, Evaluator, as_criterion, check_value
from coterie.probing.probes import Design, Draw, ProbeRecord
from coterie.probing.stability import StabilityGoal
from coterie.selection import Selector, n_features_wanted

# Seconds of work per wave: the largest delay of a stop, and the largest loss by an interruption. On a cluster part of the
# time is used for communication.
_WAVE_SECONDS, _REMOTE_WAVE_SECONDS = 0.5, 3.0
# Several pieces per worker and wave balance the load.
_PIECES_PER_WORKER = 4
# Identifies this process together with its PID, because a worker on another host may have the same PID.
_PROCESS_TOKEN = secrets.token_hex(8)
# Different from every process: a worker of a cluster is never the process that sent its task.
_NO_PROCESS = ("", 0)

Process = tuple[str, int]


@dataclass(frozen=True)
class Workers:
    """Evaluation by joblib: its number of jobs and its preferred backend (``parallel_config`` overrides it)."""

    n_jobs: int | None
    prefer: str

    @property
    def wave_seconds(self) -> float:
        """Seconds of work per wave."""
        return _WAVE_SECONDS

    @property
    def count(self) -> int:
        """Number of parallel evaluations."""
        return int(effective_n_jobs(self.n_jobs))

    @property
    def sequential(self) -> bool:
        """Whether all evaluations are made by the current thread."""
        return self.count == 1

    def parallel(self) -> Parallel:
        """Return joblib's pool, a context manager."""
        return Parallel(n_jobs=self.n_jobs, prefer=self.prefer, batch_size=1)

    def run(
        self, pool: Any, function: Callable[..., Any], evaluate: Evaluator, pieces: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Return the results of ``function(evaluate, *piece, parent)`` for all pieces, in order."""
        return list(pool(delayed(function)(evaluate, *piece, _this_process()) for piece in pieces))


class RemoteEvaluator:
    """Criterion that workers bind to the features: a handle of the bound criterion, and the folds used by all workers."""

    def __init__(self, prepared: Any, folds: list[Fold] | None) -> None:
        self.prepared = prepared
        self.folds = folds

    def __call__(self, features: np.ndarray) -> float:
        """Raise an error, because only workers can evaluate subsets."""
        raise NotImplementedError("Subsets are evaluated by the workers of the cluster.")


class TaskWorkers:
    """Evaluation by tasks of a source, whose workers bind the criterion to the whole store.

    A task is a pure function of the store, the criterion, the labels, the folds and the subsets. Every worker computes the
    same value, and the values of a lost worker are computed again.
    """

    sequential = False
    wave_seconds = _REMOTE_WAVE_SECONDS

    def __init__(self, source: FeatureSource) -> None:
        self.source = source
        self.count = source.concurrency(1)

    def parallel(self) -> AbstractContextManager[None]:
        """Return an empty context, because tasks need no pool."""
        return nullcontext()

    def bind(self, criterion: Criterion, y: np.ndarray | None, cv: FoldsLike) -> RemoteEvaluator:
        """Bind the criterion on the workers. One of them draws the folds for all."""
        ((folds, caught),) = self.source.map_tasks(_folds, [(criterion, y, cv)], what="the folds")
        for category, message in caught:
            warnings.warn(message, category, stacklevel=5)
        drawn = cv if folds is None else folds
        return RemoteEvaluator(self.source.prepare(_bound, criterion, y, drawn, large=True), folds)

    def run(
        self, _: Any, function: Callable[..., Any], evaluate: RemoteEvaluator, pieces: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Return the results of ``function(evaluate, *piece, parent)`` for all pieces, in order."""
        tasks = [(evaluate.prepared, function, *piece) for piece in pieces]
        return self.source.map_tasks(_piece, tasks, what="values of subsets of the features")


def _folds(
    source: FeatureSource, criterion: Criterion, y: np.ndarray | None, cv: FoldsLike
) -> tuple[list[Fold] | None, list[tuple[type[Warning], str]]]:
    """Return the folds of a criterion, and the warnings issued when it is bound."""
    with recorded() as caught:
        folds = criterion.bind(source, y, cv).folds
    return folds, [(one.category, one.message) for one in caught]


def _bound(source: FeatureSource, criterion: Criterion, y: np.ndarray | None, cv: FoldsLike) -> Evaluator:
    with ignored():  # TaskWorkers.bind has issued the warnings already
        return criterion.bind(source, y, cv)


def _piece(_: FeatureSource, evaluate: Evaluator, function: Callable[..., Any], *piece: Any) -> Any:
    return function(evaluate, *piece, _NO_PROCESS)


AnyWorkers = Workers | TaskWorkers


def evaluate_subsets(evaluate: Any, subsets: Sequence[np.ndarray], workers: AnyWorkers, pool: Any) -> np.ndarray:
    """Return the values of subsets, in order."""
    pieces = np.array_split(np.arange(len(subsets)), min(len(subsets), _PIECES_PER_WORKER * workers.count))
    with one_blas_thread():
        if workers.sequential:
            values = _values_of(evaluate, subsets, _this_process())
        else:
            own = [([subsets[i] for i in piece],) for piece in pieces]
            values = np.concatenate(workers.run(pool, _values_of, evaluate, own))
    for subset, value in zip(subsets, values, strict=True):
        check_value(float(value), lambda: f"the features {subset.tolist()}")  # noqa: B023 (called immediately)
    return values


def _this_process() -> Process:
    return _PROCESS_TOKEN, os.getpid()


def _values_of(evaluate: Evaluator, subsets: Sequence[np.ndarray], parent: Process) -> np.ndarray:
    """Return the values of the subsets of one task."""
    if _this_process() == parent:  # The caller has set the limit for all threads; a thread must not reset it.
        return np.array([evaluate(subset) for subset in subsets])
    with one_blas_thread():
        return np.array([evaluate(subset) for subset in subsets])


class _Values(NamedTuple):
    """Values of the probes of a task, and the probes, unless the task was evaluated in another process."""

    values: np.ndarray
    drawn: Sequence[Draw | None]


def _probe_values(evaluate: Evaluator, design: Design, start: int, stop: int, parent: Process) -> _Values:
    """Draw the probes of one task and return their values."""
    drawn = [design.draw_with_row(number) for number in range(start, stop)]
    values = _values_of(evaluate, [features for _, features in drawn], parent)
    # Drawing a probe again takes less time than sending it.
    return _Values(values, drawn if _this_process() == parent else [None] * len(drawn))


class ProbeBudget(NamedTuple):
    """Stopping rule: stop as soon as one of the limits is reached or all goals are met. None means no such limit or goal.

    ``n_probes`` and ``max_seconds`` are limits, ``min_coverage`` and ``stability`` are goals.
    """

    n_probes: int | None
    max_seconds: float | None
    min_coverage: int | None
    stability: StabilityGoal | None = None

    def is_reached(self, sums: ProbeRecord, seconds: float) -> str | None:
        """Return the name of the limit or goal that ends the run, or None."""
        if self.n_probes is not None and sums.n_probes >= self.n_probes:
            return "n_probes"
        if (self.min_coverage is not None or self.stability is not None) and self._meets_goals(sums):
            return "min_coverage" if self.stability is None else "min_stability"
        if self.max_seconds is not None and seconds >= self.max_seconds and sums.n_probes > 0:
            return "max_seconds"
        return None

    def _meets_goals(self, sums: ProbeRecord) -> bool:
        stable = self.stability is None or self.stability.is_met(sums)
        return stable and (self.min_coverage is None or sums.covers(self.min_coverage))


def expected_probes(sums: ProbeRecord, rule: ProbeBudget) -> int | None:
    """Return the approximate number of probes at which the rule ends the run.

    None means that it depends on time, or that the stability is not yet known.
    """
    if rule.max_seconds is not None:
        return None
    expected = []
    if rule.min_coverage is not None:
        expected.append(sums.n_probes + sums.missing_probes(rule.min_coverage))
    if rule.stability is not None:
        if rule.stability.latest is None:
            return None
        expected.append(rule.stability.expected_probes(sums))
    limit = math.inf if rule.n_probes is None else rule.n_probes
    number = min(limit, max(expected, default=math.inf))
    return math.ceil(number) if math.isfinite(number) else None


def run_probes(
    evaluate: Any,
    sums: ProbeRecord,
    rule: ProbeBudget,
    workers: AnyWorkers,
    on_wave: Callable[[ProbeRecord, float], None],
) -> tuple[ProbeRecord, str]:
    """Evaluate probes until the rule is met or the user interrupts. Return the sums and the reason for stopping.

    Probes are evaluated in waves of about half a second (three seconds on a cluster, where communication takes part of the
    time). The values of a wave are added to the sums in the order of the probes, and the rule is checked after each probe.
    The result therefore does not depend on workers or waves, except that a time limit determines the number of waves. A
    wave never extends beyond the probes of the current design. An interruption (Ctrl-C) discards the current wave.
    ``on_wave`` is called with the sums so far and the probes per second.
    """
    began = time.perf_counter()
    size, finished = workers.count, sums.n_probes
    reason = rule.is_reached(sums, 0.0)
    try:
        with workers.parallel() as pool:
            while reason is None:
                size = min([size, *(end - sums.n_probes for end in (rule.n_probes, sums.design_ends) if end is not None)])
                start = time.perf_counter()
                values = _wave(evaluate, sums, size, workers, pool)
                rate = size / max(time.perf_counter() - start, 1e-9)
                reason = _add_values(values, sums, rule, time.perf_counter() - began)
                finished = sums.n_probes
                on_wave(sums, rate)
                size = _next_size(rate, size, rule, time.perf_counter() - began, workers)
    except KeyboardInterrupt:
        if not finished:
            raise
        # The interruption may have left the sums of a probe incomplete.
        return type(sums).replay(sums.plan, sums.values[:finished]), "interrupt"
    return sums, reason


def _wave(evaluate: Any, sums: ProbeRecord, size: int, workers: AnyWorkers, pool: Any) -> list[_Values]:
    """Return the values of the next probes, by task."""
    first, design = sums.n_probes, sums.design
    with one_blas_thread():
        if workers.sequential:
            return [_probe_values(evaluate, design, first, first + size, _this_process())]
        cuts = np.linspace(first, first + size, min(size, _PIECES_PER_WORKER * workers.count) + 1).astype(np.int64)
        pieces = [(design, int(start), int(stop)) for start, stop in pairwise(cuts)]
        return workers.run(pool, _probe_values, evaluate, pieces)


def _add_values(tasks: list[_Values], sums: ProbeRecord, rule: ProbeBudget, seconds: float) -> str | None:
    """Add values until the rule is met. The time limit is checked once per wave."""
    for task in tasks:
        for value, drawn in zip(task.values, task.drawn, strict=True):
            sums.add(float(value), drawn)
            reason = rule.is_reached(sums, 0.0)
            if reason is not None:
                return reason
    return rule.is_reached(sums, seconds)


def _next_size(rate: float, size: int, rule: ProbeBudget, seconds: float, workers: AnyWorkers) -> int:
    """Return the number of probes of the next wave, from its duration, the remaining time and a limited growth."""
    n_workers, wave = workers.count, workers.wave_seconds
    left = wave if rule.max_seconds is None else min(wave, rule.max_seconds - seconds)
    wanted = int(min(rate * max(left, 0.0), 8 * size))
    return max(n_workers, wanted // n_workers * n_workers)


@dataclass(frozen=True)
class Problem:
    """Input of a fit: data, bound criterion, number of features to select."""

    attributes: dict[str, Any]
    source: FeatureSource
    y: np.ndarray | None
    criterion: Criterion
    evaluate: Evaluator
    workers: AnyWorkers
    n_wanted: int


class CriterionSelector(Selector):
    """Base class of selectors that evaluate feature subsets by a criterion."""

    _allowed: ClassVar[dict[str, Rule]] = {
        "criterion": AnyValue(),
        "n_features_to_select": N_FEATURES,
        "cv": AnyValue(),
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    _on_cluster: ClassVar[str] = "stores"

    def fit(
        self, X: FeaturesLike, y: TargetsLike = None, *, groups: SampleGroupsLike = None, client: ClientLike = None
    ) -> Self:
        """Evaluate feature subsets and select features.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Labels, or numbers if the criterion requires them. None for criteria without labels.
        groups : array-like of shape (n_samples,) or str, default=None
            Sample groups, which the folds of the criterion keep together. None means those of a data set or store.
        client : distributed.Client, default=None
            Client of a Dask cluster whose workers evaluate the subsets, instead of ``n_jobs``. X must be a store (name,
            address or open store), which every worker opens. None means the active client, if any.

        Returns
        -------
        self : object
            The fitted selector.
        """
        return self._fit(lambda: self._read(X, y, groups, client))

    def _read(self, X: FeaturesLike, y: TargetsLike, groups: SampleGroupsLike = None, client: ClientLike = None) -> Problem:
        criterion = as_criterion(self.criterion)
        target: TargetKind = "labels" if criterion.supervised else "optional"
        data = open_input(X, y, reader=self, target=target, groups=groups, client=client)
        source, labels, cv = data.source, data.y, self.cv
        if data.groups is not None:  # Criteria need not know sample groups: their folds are divided here.
            classes = labels is not None and task_of(labels) == "classification"
            cv = read_folds(cv, data.labels, classifier=classes, groups=data.groups)
        source.moments().require_variation()
        n_wanted = n_features_wanted(self.n_features_to_select, source.shape[1])
        workers: AnyWorkers
        evaluate: Evaluator
        if source.n_workers is None:
            workers = Workers(self.n_jobs, criterion.prefer)
            evaluate = criterion.bind(source, labels, cv)
        else:
            workers = TaskWorkers(source)
            evaluate = workers.bind(criterion, labels, cv)
        return Problem(data.attributes, source, labels, criterion, evaluate, workers, n_wanted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ValueError):  # fit raises the error for an invalid criterion
            tags.target_tags.required = as_criterion(self.criterion).supervised
        return tags
