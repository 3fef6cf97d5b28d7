"""Scores of many searches on held-out samples: all folds and all settings, in lockstep.

A path is searched once, up to the largest size, and sizes on it are scored: the model of the support features after each
round, from the weights that the rounds have recorded; models on the groups at a few sizes, each of which is fitted anew.
The folds' held-out samples have weight zero, so the features are neither cut nor copied; the few columns of a model are
read once more for the outputs of these samples. Only features with gaps (:class:`~coterie.data.imputation.ImputedSource`) are
copied, once for each fold, which fills them from its own training samples.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from coterie._numba import run_chunks
from coterie.data.imputation import ImputedSource
from coterie.data.source import Columns, FeatureSource
from coterie.inputs.opening import Input
from coterie.interruption import stop_requested
from coterie.progress import RoundProgress
from coterie.search.lockstep import batches, run_searches
from coterie.search.loop import CuttingPlane
from coterie.search.membership import Membership, memberships
from coterie.search.outcome import LinearModel, covariate_coef, fit_members, unscaled
from coterie.search.search import Search, SearchSettings
from coterie.validation.held_out import HeldOutScores
from coterie.validation.score_table import Candidate, ScoredPath

# Models on groups are fitted at sizes of which each is at least so many times the one before.
_STEP = 1.5


class PathSettings(NamedTuple):
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


class SizedModel(NamedTuple):
    """A model of some size on a path: its number of support features, its outputs for held-out samples, and itself."""

    size: int
    outputs: np.ndarray
    model: LinearModel


class FinishedPath(NamedTuple):
    """What is kept of a path: models on support features and on groups (where they are wanted), and where it was stopped."""

    models: dict[str, list[SizedModel]]
    stopped_at: int | None


Job: TypeAlias = "tuple[Fold, PathSettings]"


@dataclass(frozen=True)
class PathSearch:
    """Searches with every setting in every fold, and scores all sizes.

    Attributes
    ----------
    settings : SearchSettings
        Settings that all paths share; those of a path replace some of them.
    data : Input
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

    settings: SearchSettings
    data: Input
    n_features: int
    predict_with: Sequence[str]
    score: HeldOutScores
    n_threads: int
    progress: Callable[[], RoundProgress]
    from_margin: bool = False
    keep_models: bool = False

    def run(self, folds: Sequence[Fold], settings: Sequence[PathSettings]) -> SearchResult:
        """Search with every setting in every fold."""
        # Fold by fold: paths that share the weights share moments and views, too.
        jobs = [(fold, setting) for fold in folds for setting in settings]
        scored: dict[Candidate, list[ScoredPath]] = {
            setting.predicting(model): [] for setting in settings for model in self.predict_with
        }
        models: dict[Candidate, list[dict[int, LinearModel]]] = {candidate: [] for candidate in scored}
        largest: int | None = None
        parts = self._parts(jobs)
        for number, part in enumerate(parts, start=1):
            note = f"{len(part)} paths" + (f", part {number} of {len(parts)}" if len(parts) > 1 else "")
            for (fold, setting), path in zip(part, self._finished(part, note), strict=True):
                for kind, found in path.models.items():
                    candidate = setting.predicting(kind)
                    scored[candidate] += self._scored(fold, found)
                    if self.keep_models and len(fold.parts) == 1:
                        models[candidate].append({one.size: one.model for one in found})
                if path.stopped_at is not None:
                    largest = path.stopped_at if largest is None else min(largest, path.stopped_at)
        return SearchResult(scored, largest, models)

    def _finished(self, part: Sequence[Job], note: str) -> list[FinishedPath]:
        """The paths of some jobs, all over the same source."""
        source = self._source_of(part[0][0])
        searches = []
        weighted: dict[int, Input] = {}
        for fold, setting in part:
            data = weighted.setdefault(id(fold), replace(self.data, source=source, weight=fold.weight))
            settings = replace(self.settings, **setting._asdict())
            searches.append(Search(data, settings, self.n_features, self.n_threads, "groups" in self.predict_with))
        held_out = [np.concatenate(fold.parts) for fold, _ in part]
        finish = partial(
            _finish, held_out, self.data.covariates, tuple(self.predict_with), self.from_margin, n_threads=self.n_threads
        )
        with self.progress() as bar:
            return run_searches(searches, finish, n_threads=self.n_threads, on_round=_Watch(bar, note))

    def _scored(self, fold: Fold, models: Sequence[SizedModel]) -> list[ScoredPath]:
        """The scores of a path's models on each part of what a fold holds out; users' scores run in this thread alone."""
        paths, first = [], 0
        for held_out in fold.parts:
            here = slice(first, first + len(held_out))
            first = here.stop
            paths.append([(one.size, self.score(one.outputs[here], held_out)) for one in models])
        return paths

    def _parts(self, jobs: Sequence[Job]) -> list[Sequence[Job]]:
        """The jobs in parts that go through the data together: that fit into memory, and have the same data."""
        n_samples, n_columns = self.data.source.shape
        n_values = 0 if self.data.source.is_sparse else n_samples * self.n_features
        if not isinstance(self.data.source, ImputedSource):
            return list(batches(jobs, n_columns, n_values))
        folds = [list(own) for _, own in groupby(jobs, key=lambda job: id(job[0]))]
        return [part for own in folds for part in batches(own, n_columns, n_values)]

    def _source_of(self, fold: Fold) -> FeatureSource:
        """The features as a fold may see them: its gaps are filled from what it learns from."""
        source = self.data.source
        return source.refilled(fold.weight > 0.0) if isinstance(source, ImputedSource) else source


def _finish(
    held_out: Sequence[np.ndarray],
    covariates: np.ndarray | None,
    predict_with: Sequence[str],
    from_margin: bool,
    positions: Sequence[int],
    loops: Sequence[CuttingPlane],
    *,
    n_threads: int,
) -> list[FinishedPath]:
    """The models of finished paths with their outputs for held-out samples; scores are left to the caller."""
    found: list[dict[str, list[SizedModel]]] = [{} for _ in loops]
    for kind in predict_with:
        members = memberships(loops) if kind == "groups" else None

        def task(start: int, stop: int, kind: str = kind, members: Sequence[Membership] | None = members) -> None:
            for place in range(start, stop):
                samples = held_out[positions[place]]
                known = None if covariates is None else covariates[samples]
                outputs = _HeldOutOutputs(loops[place], samples, known, from_margin)
                models = outputs.of_support() if members is None else outputs.of_groups(members[place])
                found[place][kind] = list(models)

        run_chunks(task, range(len(loops) + 1), n_threads)
    stops = [len(loop.oracle.supports) if loop.stopped else None for loop in loops]
    return [FinishedPath(models, stop) for models, stop in zip(found, stops, strict=True)]


class _Watch:
    """Shows how far the paths have advanced."""

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


@dataclass(frozen=True)
class _HeldOutOutputs:
    """Outputs of the models on a path for held-out samples.

    Attributes
    ----------
    loop : CuttingPlane
        The finished path.
    samples : ndarray of int
        The held-out samples.
    covariates : ndarray or None
        Their covariates.
    from_margin : bool
        Whether outputs are counted from the margin.
    """

    loop: CuttingPlane
    samples: np.ndarray
    covariates: np.ndarray | None
    from_margin: bool

    def of_support(self) -> Iterator[SizedModel]:
        """The model of the support features after each round."""
        view, supports = self.loop.oracle.view, self.loop.oracle.supports
        columns = self._columns(supports)
        size = 0
        for entry in self.loop.history:
            if entry.n_support == size:  # a block of old features: a search for so many ends before it
                continue
            size = entry.n_support
            model = unscaled(view, supports[:size], entry.coef, entry.intercept, entry.margin, entry.gap)
            added = self._offset(entry.intercept, entry.margin)
            if self.covariates is not None and entry.covariate_coef is not None:
                model = replace(model, covariate_coef=entry.covariate_coef.T)
                added = added + self.covariates @ entry.covariate_coef
            yield SizedModel(size, columns[:, :size] @ entry.coef + added, model)

    def of_groups(self, members: Membership) -> Iterator[SizedModel]:
        """Models on whole groups at some sizes."""
        for size in coarse([entry.n_support for entry in self.loop.history]):
            own = members.at(size)
            coef, parts = fit_members(self.loop, own)
            states = [part.state for part in parts]
            intercept = np.concatenate([state.intercept for state in states])
            margin = np.concatenate([state.margin for state in states])
            model = unscaled(self.loop.oracle.view, own, coef, intercept, margin, max(part.gap for part in parts))
            added, known = self._offset(intercept, margin), covariate_coef(states)
            if known is not None:
                model = replace(model, covariate_coef=known)
                added = added + self.covariates @ known.T
            yield SizedModel(size, self._columns(own) @ coef + added, model)

    def _columns(self, features: np.ndarray) -> Columns:
        """Some features of the held-out samples, as the models have them."""
        columns = self.loop.oracle.view.model_columns(features)
        return columns[self.samples] if isinstance(columns, np.ndarray) else sparse.csr_array(columns)[self.samples]

    def _offset(self, intercept: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """What is added to the outputs of a model."""
        return intercept - margin if self.from_margin else intercept


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
