r"""Searches on dense data in memory by compiled rounds, verified afterwards.

**Working set.** A search selects few of many features, and most of them are among the best few hundred at its beginning.
A round on these features is two calls that release the GIL: the walk (:func:`coterie.kernels.path.walk`) and the master
problem (:func:`coterie.kernels.newton.proximal_newton`). So the searches of cross-validation and confidence run in parallel
on threads, with little Python between their rounds. One call for several rounds would take seconds longer to compile.

**Verification.** The walk of a round visits the features in decreasing order of their scores, down to a lowest score. It is
the walk over all features if no feature outside the working set reaches that score. One matrix product of all features with
the residuals of all rounds decides this. It is computed in single precision, and features within its rounding error are
scored again. If a round fails, it and all later rounds are discarded, the features that it lacked join the working set, and
the search continues from there. The result is therefore that of a search over all features.

Rounds with tied scores and master problems that need another solver are left to :class:`~coterie.search.loop.CuttingPlane`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from coterie._numba import is_compiled, run_chunks
from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import ROUNDING
from coterie.data.memory import DenseSource
from coterie.data.top import NO_FEATURES, SharedTop
from coterie.interruption import stop_requested
from coterie.kernels.path import (
    COMPLETE,
    DIFFICULT,
    EXHAUSTED,
    FIGURES,
    TIED,
    PathRecord,
    PathState,
    WorkingSet,
    features_above,
    walk,
)
from coterie.order import TIE
from coterie.search.loop import CuttingPlane
from coterie.search.oracle import Oracle

# Features of the first working set, and features that join it if a round lacks one.
_FIRST_FEATURES = 512
_MORE_FEATURES = 256
# Rounds of the first stage, smallest and largest number of rounds per call. Signals take effect between calls.
_FIRST_ROUNDS, _MIN_ROUNDS, _MAX_ROUNDS = 8, 4, 64
# Newton steps after which the interior-point method solves a master problem.
_NEWTON_STEPS, _EXTRA_STEPS = 8, 4
# Rounds with ties after which a search is left to the general loop.
_MAX_TIED_ROUNDS = 3


def follow_paths(loops: Sequence[CuttingPlane], shared: SharedTop, n_threads: int) -> None:
    """Advance loops by compiled rounds as far as possible. Loops that do not qualify are left as they are.

    Parameters
    ----------
    loops : sequence of CuttingPlane
        Loops over the same source that have begun.
    shared : SharedTop
        Bounds of the features of all views, and their values in single precision.
    n_threads : int
        Number of threads. The result does not depend on it.
    """
    matrix = shared.rounded
    if matrix is None:
        return
    open_paths = [_CompiledPath(loop, shared, matrix) for loop in loops if _is_suitable(loop)]
    n_rounds = _FIRST_ROUNDS
    if open_paths and not is_compiled(walk):
        open_paths[0].advance(1)  # Two threads would compile the kernels more slowly than one.
    while open_paths and not stop_requested():
        # Paths advance in stages, so that a signal leaves them at similar sizes.
        run_chunks(partial(_advance, open_paths, n_rounds), range(len(open_paths) + 1), n_threads)
        shared.n_multiplied += sum(path.take_count() for path in open_paths)
        open_paths = [path for path in open_paths if path.is_open]
        n_rounds *= 2


def _advance(open_paths: Sequence[_CompiledPath], n_rounds: int, start: int, stop: int) -> None:
    for path in open_paths[start:stop]:
        path.advance(n_rounds)


def _is_suitable(loop: CuttingPlane) -> bool:
    """Return True if the rounds of a loop can be compiled: features in memory, Pearson's correlation, complete groups."""
    oracle, rule = loop.oracle, loop.rule
    if rule.n_features is None or type(oracle) is not Oracle or oracle.reuse or oracle.representative != "score":
        return False
    if not isinstance(oracle.view.source, DenseSource) or not isinstance(oracle.correlation, PearsonCorrelation):
        return False
    return (oracle.complete or not oracle.constrained) and oracle.view.centred and loop.master.has_compiled_loss


class _CompiledPath:
    """One search by compiled rounds."""

    def __init__(self, loop: CuttingPlane, shared: SharedTop, matrix: np.ndarray) -> None:
        self.loop = loop
        self.oracle = loop.oracle
        self.view = loop.oracle.view
        self.master = loop.master
        self.shared = shared
        self.matrix = matrix
        self.scale = np.ones(self.view.n_features) if self.view.scale is None else self.view.scale
        self.max_rounds = _FIRST_ROUNDS
        self.working = NO_FEATURES
        self._columns_read: tuple[np.ndarray, np.ndarray] = NO_FEATURES, np.empty((0, 0))
        self.is_open = True
        self._n_tied = 0
        self._n_multiplied = 0
        self.master.prepare_compiled(self.oracle.supports)
        weight = self.view.sample_weight
        self._weight = np.ones(len(self.master.used_samples)) if weight is None else weight[self.master.used_samples]

    def take_count(self) -> int:
        """Return the number of features multiplied since the last call."""
        count, self._n_multiplied = self._n_multiplied, 0
        return count

    def advance(self, n_rounds: int) -> None:
        """Make up to ``n_rounds`` rounds. Closes the path if it is finished or must be continued otherwise."""
        last = len(self.loop.history) + n_rounds
        while self.is_open and len(self.loop.history) < last and not stop_requested():
            sizes = self._sizes(last - len(self.loop.history))
            if self.loop.finished or not len(sizes):
                self.is_open = False
                return
            if not len(self.working):
                self.working = self._best(self._rounded_scores(self.loop.solution.residual.T), _FIRST_FEATURES)
            status = self._rounds(sizes)
            if status == EXHAUSTED:
                self._extend()
            if status == TIED:
                self._n_tied += 1
                self.loop.step()
                self.working = NO_FEATURES
            self.is_open = status != DIFFICULT and self._n_tied <= _MAX_TIED_ROUNDS

    def _sizes(self, most: int) -> np.ndarray:
        """Return the numbers of new features of up to ``most`` rounds, as far as compiled rounds are suitable."""
        sizes: list[int] = []
        for size in self.loop.next_sizes(min(most, self.max_rounds)):
            if not self.master.is_small(self.master.design.n_features + sum(sizes) + size):
                break
            sizes.append(size)
        return np.array(sizes, dtype=np.int64)

    def _rounds(self, sizes: np.ndarray) -> int:
        """Make rounds, verify them, and add those that are verified to the loop. Returns why the rounds ended."""
        features = self.working
        record, state = self._record(sizes), self.master.path_state()
        record.residuals[0] = state.residual
        n_rounds, status = self._follow(sizes, state, record)
        n_verified, lacking = self._verify(record, n_rounds)
        if n_verified:
            self.loop.adopt(record, features, n_verified)
        # Few rounds are wasted if the working set often lacks a feature.
        n_next = 2 * self.max_rounds if lacking is None else 2 * n_verified
        self.max_rounds = min(max(n_next, _MIN_ROUNDS), _MAX_ROUNDS)
        if lacking is None:
            return status
        self.working = np.union1d(features, lacking)
        return COMPLETE

    def _follow(self, sizes: np.ndarray, state: PathState, record: PathRecord) -> tuple[int, int]:
        """Make rounds on the working set and write them to ``record``. Returns the complete rounds and why they ended."""
        features, supports = self.working, self.oracle.supports
        working = WorkingSet(self._columns(), self._norms(features), self._weight, self.oracle.candidates[features])
        known = np.ascontiguousarray(state.design.T) / self._norms(supports)[:, None]
        limit = self.oracle.threshold - ROUNDING if self.oracle.constrained else np.inf
        limits = self.master.newton_limits._replace(max_steps=_NEWTON_STEPS, extra_steps=_EXTRA_STEPS)
        visited, n_found = np.empty(len(features), dtype=np.int64), 0
        design, blocks, coef, offsets, residual = state
        separable = self.master.is_separable
        for number, size in enumerate(sizes.tolist()):
            status, n_visited, n_correlations, low, best = walk(
                working, known, limit, TIE, residual, record, n_found, size, visited
            )
            if status != COMPLETE:
                return number, status
            design = np.concatenate([design, working.columns[record.features[n_found : n_found + size]].T], axis=1)
            blocks = np.append(blocks, design.shape[1])
            start = np.zeros((design.shape[1], coef.shape[1]))
            start[: len(coef)] = coef
            found, separable = self.master.compiled_solve(design, blocks, start, offsets, limits, separable)
            if not found.gap <= limits.rounding_gap:
                return number, DIFFICULT
            coef, offsets, residual = found.coef, found.offsets, found.residual
            n_found += size
            record.ends[number] = n_found
            record.coef[number, : len(coef)] = coef
            record.offsets[number] = offsets
            record.residuals[number + 1] = residual
            record.figures[number] = (
                low, best, found.dual, found.primal, found.value, found.conjugate, found.n_iter, n_correlations, separable
            )  # fmt: skip
            closed = visited[:n_visited]
            working.is_open[closed] = False
            record.closed_in[closed] = number
        return len(sizes), COMPLETE

    def _columns(self) -> np.ndarray:
        """Return the working set in the samples with nonzero weight, as the model uses it, by feature."""
        if self._columns_read[0] is not self.working:
            columns, rows = np.asarray(self.view.model_columns(self.working)).T, self.master.used_samples
            used = columns if len(rows) == columns.shape[1] else columns.take(rows, axis=1)
            self._columns_read = self.working, np.ascontiguousarray(used)
        return self._columns_read[1]

    def _norms(self, features: np.ndarray) -> np.ndarray:
        """Return the weighted norms of the columns; infinity for constant features, whose correlations are 0."""
        norms = self.view.moments.norm[features]
        return np.where(norms > 0.0, norms / self.view.scales(features), np.inf)

    def _extend(self) -> None:
        """Extend a working set without candidates. If there are no other candidates, let the general loop end the search."""
        best = self._best(self._rounded_scores(self.loop.solution.residual.T), max(_FIRST_FEATURES, 2 * len(self.working)))
        if not len(np.setdiff1d(best, self.working)):
            self.loop.step()
        self.working = best

    def _record(self, sizes: np.ndarray) -> PathRecord:
        """Return arrays for the results of some rounds."""
        n_new, n_rounds = int(sizes.sum()), len(sizes)
        n_support, (n_outputs, n_strata) = self.master.design.n_features + n_new, self.master.arrays.mass.shape
        return PathRecord(
            features=np.empty(n_new, dtype=np.int64),
            scores=np.empty(n_new),
            ends=np.empty(n_rounds, dtype=np.int64),
            coef=np.zeros((n_rounds, n_support, n_outputs)),
            offsets=np.empty((n_rounds, n_outputs, n_strata)),
            residuals=np.empty((n_rounds + 1, n_outputs, len(self.master.used_samples))),
            figures=np.empty((n_rounds, len(FIGURES))),
            closed_in=np.full(len(self.working), -1),
        )

    def _verify(self, record: PathRecord, n_rounds: int) -> tuple[int, np.ndarray | None]:
        """Return the number of rounds that no other feature changes, and the best other features of the next round, if any."""
        outside = self.oracle.candidates.mask.copy()
        outside[self.working] = False
        if not n_rounds or not outside.any():
            return n_rounds, None
        n_outputs = record.residuals.shape[1]
        residuals = self._all_samples(record.residuals[:n_rounds])
        low, best = record.figures[:n_rounds, 0], record.figures[:n_rounds, 1]
        floors = low - 4.0 * TIE * best
        squares = record.residuals[:n_rounds] ** 2
        lengths, norms = np.sqrt(squares.sum(axis=(1, 2))), np.sqrt((squares / self._weight).sum(axis=(1, 2)))
        # All are divided by the lengths of the residuals, whose products are computed in single precision.
        lengths[lengths == 0.0] = 1.0
        products = self._rounded_products(residuals / lengths[:, None, None])
        errors = self.shared.rounding * norms / lengths
        found, number = np.empty(self.view.n_features, dtype=np.int64), 0
        while True:
            number, count = features_above(
                products, self.scale, self.shared.lengths, outside, n_outputs, errors, floors / lengths, number, found
            )
            if not count:
                return n_rounds, None
            if self.view.scores(residuals[number].T, found[:count]).max() >= floors[number]:
                own = products[number * n_outputs : (number + 1) * n_outputs]
                return number, self._best(self._norm_over_outputs(own), _MORE_FEATURES, outside)
            number += 1

    def _all_samples(self, residuals: np.ndarray) -> np.ndarray:
        """Return residuals of all samples, given those of the samples with nonzero weight in the last axis."""
        result = np.zeros((*residuals.shape[:-1], self.view.n_samples))
        result[..., self.master.used_samples] = residuals
        return result

    def _rounded_products(self, residuals: np.ndarray) -> np.ndarray:
        """Return products of residuals of shape (..., n_samples) with all features, in single precision, one row each."""
        self._n_multiplied += self.view.n_features
        return residuals.reshape(-1, self.view.n_samples).astype(np.float32) @ self.matrix

    def _rounded_scores(self, residual: np.ndarray) -> np.ndarray:
        """Return scores of all features for a residual of shape (n_outputs, n_samples), up to rounding and a factor."""
        length = float(np.sqrt((residual**2).sum()))
        return self._norm_over_outputs(self._rounded_products(residual / length if length > 0.0 else residual))

    def _norm_over_outputs(self, products: np.ndarray) -> np.ndarray:
        scores = np.abs(products[0]) if len(products) == 1 else np.sqrt((products * products).sum(axis=0))
        return np.divide(scores, self.scale, out=np.zeros(len(scores)), where=self.scale > 0.0)

    def _best(self, scores: np.ndarray, size: int, among: np.ndarray | None = None) -> np.ndarray:
        """Return the candidates (of those in the mask ``among``) with the best scores, in increasing order."""
        scores = np.where(self.oracle.candidates.mask if among is None else among, scores, -1.0)
        best = np.sort(np.argpartition(scores, -size)[-size:]) if size < len(scores) else np.arange(len(scores))
        return best[scores[best] >= 0.0]
