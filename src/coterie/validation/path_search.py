"""Scores of many searches on held-out samples: all folds and all settings, in lockstep.

A path is searched once, up to the largest size, and sizes on it are scored: the model of the support features after each
round, from the weights that the rounds have written down; models on the groups at a few sizes, each of which is fitted anew.
The folds' held-out samples have weight zero, so the features are neither cut nor copied; the few columns of a model are
read once more for the outputs of these samples. Only features with gaps (:class:`~coterie.data.imputation.ImputedSource`) are
copied, once for each fold, which fills them from its own training samples.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie._copies import Beat
from coterie._numba import one_blas_thread, run_chunks
from coterie.data.imputation import ImputedSource
from coterie.interruption import stop_requested
from coterie.progress import RoundProgress
from coterie.search.lockstep import Path, among_processes, batches, run_together
from coterie.search.loop import CuttingPlane
from coterie.search.membership import Membership, complete_memberships
from coterie.search.prediction import LinearModel, covariate_coef, fit_members, unscaled
from coterie.search.samples import Samples
from coterie.validation.held_out import HeldOutScores
from coterie.validation.score_table import Candidate, ScoredPath

# Models on groups are fitted at sizes of which each is at least so many times the one before.
_STEP = 1.5
# What is added to a model's outputs, from its intercept and its margin.
Offset = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Setting(NamedTuple):
    """What a path is searched with."""

    C: float
    threshold: float
    standardize: bool

    def predicting(self, model: str) -> Candidate:
        """The candidate in which a model of such a path predicts."""
        return Candidate(self.C, self.threshold, self.standardize, model)


class Fold(NamedTuple):
    """Weights of the samples in the fit, zero for those held out, and which are held out, in parts scored each by itself."""

    weight: np.ndarray
    parts: tuple[np.ndarray, ...]


class SearchResult(NamedTuple):
    """What a search has found.

    Attributes
    ----------
    paths : dict of Candidate to list of ScoredPath
        Sizes and scores of each candidate: a path for each part of each fold, in this order.
    largest : int or None
        The size that all paths have reached, if a signal has ended them.
    models : dict of Candidate to list of dict
        For each fold with one part the models by their size, if they are kept.
    """

    paths: dict[Candidate, list[ScoredPath]]
    largest: int | None
    models: dict[Candidate, list[dict[int, LinearModel]]]


@dataclass(frozen=True)
class PathSearch:
    """Searches with every setting in every fold, and scores all sizes.

    Attributes
    ----------
    make : callable
        Makes the estimator of a setting.
    data : Samples
        All samples.
    n_features : int
        How far the paths go.
    predict_with : sequence of {"support", "groups"}
        The models to score.
    score : HeldOutScores
        The score.
    n_threads : int
        Number of threads; never changes a result.
    progress : callable
        Makes the display of progress.
    from_margin : bool
        Whether outputs are counted from the margin, as those of one class are: negative below it.
    keep_models : bool
        Whether the models of the folds are wanted afterwards.
    """

    make: Callable[[Setting], Any]
    data: Samples
    n_features: int
    predict_with: Sequence[str]
    score: HeldOutScores
    n_threads: int
    progress: Callable[[], RoundProgress]
    from_margin: bool = False
    keep_models: bool = False

    def run(self, folds: Sequence[Fold], settings: Sequence[Setting]) -> SearchResult:
        """Search with every setting in every fold."""
        estimators = {setting: self.make(setting) for setting in settings}
        # Fold by fold: paths that share the weights share moments and views, too.
        jobs = [(fold, setting) for fold in folds for setting in settings]
        scored: dict[Candidate, list[ScoredPath]] = {
            setting.predicting(model): [] for setting in settings for model in self.predict_with
        }
        models: dict[Candidate, list[dict[int, LinearModel]]] = {candidate: [] for candidate in scored}
        largest: int | None = None
        n_samples, n_columns = self.data.source.shape
        n_values = 0 if self.data.source.is_sparse else n_samples * self.n_features
        parts = self._parts(jobs, n_columns, n_values)
        for number, part in enumerate(parts, start=1):
            data = self._data_of(part[0][0])
            grouped = "groups" in self.predict_with
            paths = [Path(estimators[setting], data, fold.weight, self.n_features, grouped) for fold, setting in part]
            note = f"{len(part)} paths" + (f", part {number} of {len(parts)}" if len(parts) > 1 else "")
            with self.progress() as bar:
                loops, _ = run_together(paths, n_threads=self.n_threads, on_round=_Watch(bar, note))
            for model in self.predict_with:
                members = _memberships(loops) if model == "groups" else None
                tested = [np.concatenate(fold.parts) for fold, _ in part]
                outputs = self._outputs(loops, tested, members, paths[0].estimator)
                for (fold, setting), path in zip(part, outputs, strict=True):
                    first = 0
                    for held_out in fold.parts:
                        here = slice(first, first + len(held_out))
                        first = here.stop
                        own = [(size, self.score(values[here], held_out)) for size, values, _ in path]
                        scored[setting.predicting(model)].append(own)
                    if self.keep_models and len(fold.parts) == 1:
                        models[setting.predicting(model)].append({size: kept for size, _, kept in path})
            stopped = [len(loop.oracle.supports) for loop in loops if loop.stopped]
            if stopped:
                largest = min(stopped) if largest is None else min(largest, *stopped)
        return SearchResult(scored, largest, models)

    def _parts(self, jobs: Sequence[tuple[Fold, Setting]], n_columns: int, n_values: int) -> list[Any]:
        """The jobs in parts that go through the data together: that fit into memory, and have the same data."""
        if not isinstance(self.data.source, ImputedSource):
            return list(batches(jobs, n_columns, n_values))
        folds = [list(own) for _, own in groupby(jobs, key=lambda job: id(job[0]))]
        return [part for own in folds for part in batches(own, n_columns, n_values)]

    def _data_of(self, fold: Fold) -> Samples:
        """The samples as a fold may see them: its gaps are filled from what it learns from."""
        source = self.data.source
        if not isinstance(source, ImputedSource):
            return self.data
        return replace(self.data, source=source.refilled(fold.weight > 0.0))

    def _outputs(
        self,
        loops: Sequence[CuttingPlane],
        held_out: Sequence[np.ndarray],
        members: Sequence[Membership] | None,
        estimator: Any,
    ) -> list[list[tuple[int, np.ndarray, LinearModel]]]:
        """The sizes on each path, outputs of held-out samples and models, of the support features or of given members.

        Scores are left to the caller: functions of users' may not be made for several threads.
        """

        def compute(share: Sequence[int], beat: Beat) -> list[list[tuple[int, np.ndarray, LinearModel]]]:
            results: list[list[tuple[int, np.ndarray, LinearModel]]] = [[] for _ in share]

            def task(start: int, stop: int) -> None:
                for place in range(start, stop):
                    k = share[place]
                    covariates = None if self.data.covariates is None else self.data.covariates[held_out[k]]
                    if members is None:
                        found = _support_outputs(loops[k], held_out[k], self._offset, covariates)
                    else:
                        found = _group_outputs(loops[k], held_out[k], members[k], self._offset, covariates)
                    for one in found:
                        results[place].append(one)
                        beat(False)

            run_chunks(task, range(len(share) + 1), self.n_threads)
            return results

        with one_blas_thread():
            return among_processes(compute, loops, estimator, n_threads=self.n_threads)

    def _offset(self, intercept: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """What is added to the outputs of a model."""
        return intercept - margin if self.from_margin else intercept


class _Watch:
    """Looks on while paths advance, and shows how far they are."""

    def __init__(self, bar: RoundProgress, note: str) -> None:
        self._bar = bar
        self._note = note
        self._furthest = 0
        self._lock = threading.Lock()

    def __call__(self, _: int, loop: CuttingPlane) -> bool:
        with self._lock:
            if len(loop.oracle.supports) > self._furthest:
                self._furthest = len(loop.oracle.supports)
                self._bar.update(self._furthest, self._note)
        return stop_requested()


def _memberships(loops: Sequence[CuttingPlane]) -> list[Membership]:
    """The members of the groups along each path."""
    by_weight: dict[int, list[int]] = {}
    found: dict[int, Membership] = {}
    for position, loop in enumerate(loops):
        if loop.met is not None:
            found[position] = loop.met.membership(loop)
        else:
            by_weight.setdefault(id(loop.oracle.view.sample_weight), []).append(position)
    for positions in by_weight.values():
        found |= dict(zip(positions, complete_memberships([loops[k] for k in positions]), strict=True))
    return [found[position] for position in range(len(loops))]


def _support_outputs(loop: CuttingPlane, held_out: np.ndarray, offset: Offset, covariates: np.ndarray | None) -> Any:
    columns = _columns(loop, loop.oracle.supports, held_out)
    size = 0
    for entry in loop.history:
        if entry.n_support == size:  # a block of old features: a search for so many ends before it
            continue
        size = entry.n_support
        model = unscaled(loop.oracle.view, loop.oracle.supports[:size], entry.coef, entry.intercept, entry.margin, entry.gap)
        added = offset(entry.intercept, entry.margin)
        if covariates is not None and entry.covariate_coef is not None:
            model = replace(model, covariate_coef=entry.covariate_coef.T)
            added = added + covariates @ entry.covariate_coef
        yield size, columns[:, :size] @ entry.coef + added, model


def _group_outputs(
    loop: CuttingPlane, held_out: np.ndarray, members: Membership, offset: Offset, covariates: np.ndarray | None
) -> Any:
    for size in coarse([entry.n_support for entry in loop.history]):
        own = members.at(size)
        coef, parts = fit_members(loop, own)
        states = [part.state for part in parts]
        free = [np.concatenate([getattr(state, name) for state in states]) for name in ("intercept", "margin")]
        model = unscaled(loop.oracle.view, own, coef, free[0], free[1], max(part.gap for part in parts))
        added, known = offset(*free), covariate_coef(states)
        if known is not None:
            model = replace(model, covariate_coef=known)
            added = added + covariates @ known.T
        yield size, _columns(loop, own, held_out) @ coef + added, model


def _columns(loop: CuttingPlane, features: np.ndarray, samples: np.ndarray) -> Any:
    """Some features of some samples, as the models have them."""
    columns = loop.oracle.view.model_columns(features)
    return columns[samples] if isinstance(columns, np.ndarray) else sparse.csr_array(columns)[samples]


def coarse(sizes: Sequence[int]) -> list[int]:
    """Some of the rising sizes, each at least half as large again as the one before, and the last.

    Examples
    --------
    >>> from coterie.validation.path_search import coarse
    >>> coarse(range(1, 31))
    [1, 2, 3, 5, 8, 12, 18, 27, 30]
    """
    kept: list[int] = []
    for size in sizes:
        if not kept or size >= _STEP * kept[-1]:
            kept.append(size)
    return kept if kept[-1] == sizes[-1] else [*kept, sizes[-1]]
