"""Scores of many searches on held-out samples: all folds and all settings, in lockstep.

A path is searched once, up to the largest size, and the sizes on it are scored. Models of the support features are scored
after each round, with the weights that the rounds recorded. Models on the groups are fitted and scored at a few sizes.

The held-out samples of a fold have weight zero, so the features are neither split nor copied. Only the few columns of a model
are read again for the outputs of these samples, and those of the groups for products between all samples. Features with
missing values (:class:`~coterie.data.imputation.ImputedSource`) are copied once per fold and imputed from its training
samples.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np

from coterie._numba import run_chunks
from coterie.data.imputation import ImputedSource
from coterie.data.source import FeatureSource
from coterie.inputs.offsets import by_output
from coterie.inputs.opening import Input
from coterie.interruption import stop_requested
from coterie.progress import RoundProgress
from coterie.search.lockstep import batches, run_searches
from coterie.search.loop import CuttingPlane
from coterie.search.membership import Membership, memberships
from coterie.search.search import Search, SearchSettings
from coterie.validation.deviance import Deviance
from coterie.validation.group_models import MemberProducts, group_outputs, sample_columns
from coterie.validation.held_out import HeldOutScores
from coterie.validation.score_table import Candidate, ScoredPath
from coterie.validation.threshold import Threshold


class PathSettings(NamedTuple):
    """Settings of one path."""

    C: float
    threshold: float
    standardize: bool

    def candidate(self, model: str) -> Candidate:
        """Return the candidate for a kind of predictive model on this path."""
        return Candidate(self.C, self.threshold, self.standardize, model)


class Fold(NamedTuple):
    """Sample weights of a fit, zero for held-out samples, and the held-out samples, in parts that are scored separately."""

    weight: np.ndarray
    parts: tuple[np.ndarray, ...]


class SearchResult(NamedTuple):
    """Result of a search over all folds and settings.

    Attributes
    ----------
    paths : dict of Candidate to list of ScoredPath
        Sizes and scores of each candidate: one path per part of each fold, in this order.
    largest : int or None
        The size that all paths have reached, if a signal stopped them.
    outputs : dict of Candidate to list of dict of int to SizedOutputs
        Held-out outputs by size for each fold with one part.
    deviances : dict of Candidate to list of ScoredPath
        Sizes and held-out deviances, in the order of ``paths``; empty if they were not requested.
    """

    paths: dict[Candidate, list[ScoredPath]]
    largest: int | None
    outputs: dict[Candidate, list[dict[int, SizedOutputs]]]
    deviances: dict[Candidate, list[ScoredPath]]


class SizedOutputs(NamedTuple):
    """Outputs of a model on a path.

    Attributes
    ----------
    size : int
        Number of support features.
    outputs : ndarray of shape (n_held_out, n_outputs)
        Outputs of the held-out samples.
    margin : ndarray of shape (n_outputs,)
        Margins.
    """

    size: int
    outputs: np.ndarray
    margin: np.ndarray


class FinishedPath(NamedTuple):
    """Outputs of a finished path by kind of model (``"support"`` or ``"groups"``), and the size at which it was stopped."""

    outputs: dict[str, list[SizedOutputs]]
    stopped_at: int | None


Job: TypeAlias = "tuple[Fold, PathSettings]"


@dataclass(frozen=True)
class PathSearch:
    """Searches with all settings in all folds, scored at all sizes.

    Attributes
    ----------
    settings : SearchSettings
        Settings shared by all paths. Those of a path replace some of them.
    data : Input
        All samples.
    n_features : int
        Number of support features at the end of the paths.
    predict_with : sequence of {"support", "groups"}
        Kinds of models to score.
    score : HeldOutScores
        The score.
    deviance : Deviance or None
        The deviance, if the choice uses it.
    n_threads : int
        Number of threads. The result does not depend on it.
    progress : callable
        Returns the progress display.
    threshold : Threshold or None
        Rule for the threshold that is subtracted from the outputs of one-class models.
    """

    settings: SearchSettings
    data: Input
    n_features: int
    predict_with: Sequence[str]
    score: HeldOutScores
    n_threads: int
    progress: Callable[[], RoundProgress]
    threshold: Threshold | None = None
    deviance: Deviance | None = None

    def run(self, folds: Sequence[Fold], settings: Sequence[PathSettings]) -> SearchResult:
        """Search with all settings in all folds."""
        # Ordered by fold, because paths with the same weights share moments and views.
        jobs = [(fold, setting) for fold in folds for setting in settings]
        scored: dict[Candidate, list[ScoredPath]] = {
            setting.candidate(model): [] for setting in settings for model in self.predict_with
        }
        outputs: dict[Candidate, list[dict[int, SizedOutputs]]] = {candidate: [] for candidate in scored}
        deviances: dict[Candidate, list[ScoredPath]] = {} if self.deviance is None else {candidate: [] for candidate in scored}
        largest: int | None = None
        parts = self._parts(jobs)
        for number, part in enumerate(parts, start=1):
            note = f"{len(part)} paths" + (f", part {number} of {len(parts)}" if len(parts) > 1 else "")
            paths = self._finished(part, note)
            for (fold, setting), path in zip(part, paths, strict=True):
                for kind, found in path.outputs.items():
                    candidate = setting.candidate(kind)
                    scored[candidate] += self._scored(fold, found)
                    if len(fold.parts) == 1:
                        outputs[candidate].append({model.size: model for model in found})
                if path.stopped_at is not None:
                    largest = path.stopped_at if largest is None else min(largest, path.stopped_at)
            if self.deviance is not None:
                for candidate, deviance in self._deviances(part, paths):
                    deviances[candidate] += deviance
        return SearchResult(scored, largest, outputs, deviances)

    def _finished(self, part: Sequence[Job], note: str) -> list[FinishedPath]:
        """Return the finished paths of some jobs, all over the same source."""
        source = self._source_of(part[0][0])
        searches = []
        weighted: dict[int, Input] = {}
        for fold, setting in part:
            data = weighted.setdefault(id(fold), replace(self.data, source=source, weight=fold.weight))
            settings = replace(self.settings, **setting._asdict())
            searches.append(Search(data, settings, self.n_features, self.n_threads, "groups" in self.predict_with))
        held_out = [np.concatenate(fold.parts) for fold, _ in part]
        finish = partial(_finish, held_out, self.data, tuple(self.predict_with), self.threshold, n_threads=self.n_threads)
        with self.progress() as bar:
            return run_searches(searches, finish, n_threads=self.n_threads, on_round=_ProgressCallback(bar, note))

    def _scored(self, fold: Fold, models: Sequence[SizedOutputs]) -> list[ScoredPath]:
        """Return the scores of a path's models on each held-out part of a fold.

        User-defined scores are called from this thread only.
        """
        return [
            [(model.size, self.score(model.outputs[here], held_out)) for model in models] for here, held_out in _places(fold)
        ]

    def _deviances(self, part: Sequence[Job], paths: Sequence[FinishedPath]) -> Iterator[tuple[Candidate, list[ScoredPath]]]:
        """Yield the deviances of each path and kind of model on the held-out parts of its fold, in the order of the jobs.

        One call computes those of all models of a fold.
        """
        assert self.deviance is not None
        for _, together in groupby(zip(part, paths, strict=True), key=lambda pair: id(pair[0][0])):
            found = [(job, kind, models) for job, path in together for kind, models in path.outputs.items()]
            fold = found[0][0][0]
            by_part = []
            for here, held_out in _places(fold):
                values = iter(self.deviance([own.outputs[here] for _, _, models in found for own in models], held_out))
                by_part.append([[(own.size, next(values)) for own in models] for _, _, models in found])
            for ((_, setting), kind, _), own in zip(found, zip(*by_part, strict=True), strict=True):
                yield setting.candidate(kind), list(own)

    def _parts(self, jobs: Sequence[Job]) -> list[Sequence[Job]]:
        """Divide the jobs into parts that share passes: each fits into memory and uses one source."""
        n_samples, n_columns = self.data.source.shape
        n_values = 0 if self.data.source.is_sparse else n_samples * self.n_features
        if not isinstance(self.data.source, ImputedSource):
            return list(batches(jobs, n_columns, n_values))
        folds = [list(own) for _, own in groupby(jobs, key=lambda job: id(job[0]))]
        return [part for own in folds for part in batches(own, n_columns, n_values)]

    def _source_of(self, fold: Fold) -> FeatureSource:
        """Return the features for a fold: missing values are imputed from its training samples."""
        source = self.data.source
        return source.refilled(fold.weight > 0.0) if isinstance(source, ImputedSource) else source


def _places(fold: Fold) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the position of each held-out part among the held-out samples of a fold, and its samples."""
    first = 0
    for held_out in fold.parts:
        yield slice(first, first + len(held_out)), held_out
        first += len(held_out)


def _finish(
    held_out: Sequence[np.ndarray],
    data: Input,
    predict_with: Sequence[str],
    threshold: Threshold | None,
    positions: Sequence[int],
    loops: Sequence[CuttingPlane],
    *,
    n_threads: int,
) -> list[FinishedPath]:
    """Return the outputs of the models of finished paths for held-out samples. The caller computes the scores."""
    found: list[dict[str, list[SizedOutputs]]] = [{} for _ in loops]
    paths = [_Path(loop, held_out[position], data, threshold) for loop, position in zip(loops, positions, strict=True)]
    for kind in predict_with:
        if kind == "support":
            places, members = [[place] for place in range(len(loops))], None
        else:
            places, members = _places_by_view(loops), memberships(loops)

        def task(
            start: int,
            stop: int,
            kind: str = kind,
            places: Sequence[Sequence[int]] = places,
            members: Sequence[Membership] | None = members,
        ) -> None:
            for together in places[start:stop]:
                if members is None:
                    models = [path.of_support() for path in (paths[place] for place in together)]
                else:
                    shared = MemberProducts(loops[together[0]].oracle.view, [members[place] for place in together])
                    models = [paths[place].of_groups(members[place], shared) for place in together]
                for place, own in zip(together, models, strict=True):
                    found[place][kind] = list(own)

        run_chunks(task, range(len(places) + 1), n_threads)
    stops = [len(loop.oracle.supports) if loop.stopped else None for loop in loops]
    return [FinishedPath(outputs, stop) for outputs, stop in zip(found, stops, strict=True)]


class _ProgressCallback:
    """Callback of lockstep searches that displays the largest size reached so far."""

    def __init__(self, bar: RoundProgress, note: str) -> None:
        self._bar = bar
        self._note = note
        self._max_size = 0
        self._lock = threading.Lock()

    def __call__(self, _: int, loop: CuttingPlane) -> bool:
        with self._lock:
            if len(loop.oracle.supports) > self._max_size:
                self._max_size = len(loop.oracle.supports)
                self._bar.update(self._max_size, self._note)
        return stop_requested()


@dataclass(frozen=True)
class _Path:
    """A finished path, and the samples for which its models' outputs are computed.

    Attributes
    ----------
    loop : CuttingPlane
        The finished path.
    samples : ndarray of int
        The held-out samples.
    data : Input
        Covariates and offset of all samples.
    threshold : Threshold or None
        Rule for the threshold that is subtracted from outputs.
    """

    loop: CuttingPlane
    samples: np.ndarray
    data: Input
    threshold: Threshold | None

    def of_support(self) -> Iterator[SizedOutputs]:
        """Yield the outputs of the model of the support features after each round."""
        columns = sample_columns(self.loop.oracle.view, self.loop.oracle.supports, self._read)
        known = self._known()
        size = 0
        for entry in self.loop.history:
            if entry.n_support == size:  # A block of earlier features: a search for this size ends before it.
                continue
            size = entry.n_support
            outputs = self._decision(columns[:, :size] @ entry.coef + entry.intercept, entry.margin)
            if known is not None and entry.covariate_coef is not None:
                outputs = outputs + known @ entry.covariate_coef
            yield SizedOutputs(size, self._with_offset(outputs), entry.margin)

    def of_groups(self, members: Membership, shared: MemberProducts) -> Iterator[SizedOutputs]:
        """Yield the outputs of models on whole groups at some sizes."""
        for model in group_outputs(self.loop, members, shared, self._read, self._known()):
            outputs = self._with_offset(self._decision(model.outputs, model.margin))
            yield SizedOutputs(model.size, outputs, model.margin)

    def _known(self) -> np.ndarray | None:
        """Return the covariates of the held-out samples."""
        return None if self.data.covariates is None else self.data.covariates[self.samples]

    def _with_offset(self, outputs: np.ndarray) -> np.ndarray:
        """Return the outputs plus the offset of the held-out samples."""
        return outputs if self.data.offset is None else outputs + by_output(self.data.offset[self.samples])

    @cached_property
    def _training(self) -> np.ndarray:
        """Training samples, if their outputs define the threshold."""
        if self.threshold is None or not self.threshold.uses_outputs:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self._weight > 0.0)

    @property
    def _weight(self) -> np.ndarray:
        """Sample weights of the fold, which are zero for held-out samples."""
        weight = self.loop.oracle.view.sample_weight
        assert weight is not None
        return weight

    @cached_property
    def _read(self) -> np.ndarray:
        """Samples whose outputs are computed: the held-out samples, then the training samples."""
        return np.concatenate([self.samples, self._training])

    def _decision(self, outputs: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """Return the held-out outputs, from which the threshold is subtracted for one class."""
        held_out = outputs[: len(self.samples)]
        if self.threshold is None:
            return held_out
        training = outputs[len(self.samples) :, 0]
        return held_out - self.threshold.offset(training, self._weight[self._training], float(margin[0]))


def _places_by_view(loops: Sequence[CuttingPlane]) -> list[list[int]]:
    """Return the positions of the loops that share a view, together."""
    places: dict[int, list[int]] = {}
    for place, loop in enumerate(loops):
        places.setdefault(id(loop.oracle.view), []).append(place)
    return list(places.values())
