r"""Rounds on a working set, verified in batches: fewer passes over dense features, with the same result.

A round reads all features to find the few with the best scores. In dense data the read limits the speed. After a pass, the
next best features are most likely among the best few hundred of that pass, the *working set*. So several rounds are made that
score the working set only. One pass then verifies all of them: it computes the products of all features with all their
residuals, in single precision (:mod:`coterie.kernels.rounded`), which takes about as long as two rounds.

A round is verified if every feature outside the working set scores below all features that its walk visited, with a margin for
rounding. Then the walk over all features would have visited the same features, with the same scores: these are computed by the
kernel of the plain loop. The products in single precision only decide which features are examined. The first round that is
not verified is discarded with all later ones, and repeated with the bounds on the scores that the pass has computed. So each
pass completes at least one round, and all published results are identical to those of the plain loop, bit for bit.

**Passes.** A verification counts as one pass (or less, if the norm bound excludes features) in the last round that it
verifies. Features read in discarded rounds count, too. Correlations computed in discarded rounds do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.data.memory import DenseSource
from coterie.data.source import Moments
from coterie.data.top import CandidateMask, KnownTop, LayeredTop, Scored, TopQuery, _require_finite
from coterie.data.view import FeatureView
from coterie.interruption import stop_requested
from coterie.kernels.columns import kth_largest
from coterie.kernels.rounded import ERROR
from coterie.order import TIE
from coterie.search.loop import CuttingPlane
from coterie.search.oracle import Oracle
from coterie.search.scores import LazyScores

# Number of values from which a pass takes longer than the overhead of a verification, and smallest number of rounds.
_MIN_VALUES, _MIN_ROUNDS = 1 << 22, 3
# Smallest number of candidates of a working set, and how many times as many features there must be.
_MIN_CANDIDATES, _MIN_SHARE = 256, 8
# Number of rounds to try first, and the maximum number of vectors of a verification.
_FIRST_ROUNDS, _MAX_VECTORS = 32, 64
# Rounds are made on a working set while the scores that a walk visits exceed those of the other features by this factor. In
# data with a lower ratio, one or two rounds are verified, which saves no time. A failure raises the limit.
_MIN_RATIO, _RAISE = 3.0, 1.5
# Consecutive rounds without a suitable working set after which the other rounds are those of the plain loop.
_MAX_ATTEMPTS = 3
# Range of positive sample weights, and of their ratio, in which single precision neither over- nor underflows.
_WEIGHTS, _MAX_WEIGHT_RATIO = (1e-12, 1e12), 1e6
_ROUNDING = 1.0 + 1e-9


def run_loop(loop: CuttingPlane) -> None:
    """Run a loop to its end, with speculative rounds if they save time. The result is the same."""
    if speculates(loop):
        Speculation(loop).run()
    else:
        loop.run()


def speculates(loop: CuttingPlane) -> bool:
    """Return True if speculative rounds are possible and save time."""
    oracle, view = loop.oracle, loop.oracle.view
    if type(oracle) is not Oracle or oracle.representative != "score" or oracle.reuse:
        return False  # their rounds depend on more than the best scores
    if not isinstance(view.source, DenseSource) or view.n_samples * view.n_features < _MIN_VALUES:
        return False
    most_rounds = loop.rule.most_rounds()
    if most_rounds is not None and most_rounds < _MIN_ROUNDS:
        return False
    if view.n_features < _MIN_SHARE * _working_size(loop):
        return False
    weight = view.sample_weight
    if weight is None:
        return True
    lowest, highest = float(weight.min(initial=np.inf, where=weight > 0.0)), float(weight.max())
    return _WEIGHTS[0] <= lowest and highest <= min(_WEIGHTS[1], _MAX_WEIGHT_RATIO * lowest)


def _working_size(loop: CuttingPlane) -> int:
    """Return the number of candidates in a working set for the next rounds."""
    return max(_MIN_CANDIDATES, loop.queries()[0].size)


class _TooFewError(Exception):
    """A walk needs more features than the working set contains."""


class WorkingSet:
    """The candidates that are most likely to be among the best of the next rounds, and all excluded features.

    Parameters
    ----------
    view : FeatureView
        All features.
    candidates : CandidateMask
        Candidates of the next round.
    upper : ndarray of shape (n_features,)
        Upper bounds on the scores of the candidates for a residual.
    size : int
        Number of candidates.
    length : float
        Norm of the residual.

    Attributes
    ----------
    features : ndarray of int
        Candidates and excluded features, in increasing order.
    outside : float
        Upper bound on the scores of all other candidates for the residual.
    """

    def __init__(self, view: FeatureView, candidates: CandidateMask, upper: np.ndarray, size: int, length: float) -> None:
        upper[candidates.taken] = -1.0
        place = max(len(upper) - size, 0)
        order = np.argpartition(upper, place)  # NaN counts as largest
        best = order[place:]
        self.features = np.union1d(best[candidates[best]], candidates.excluded)
        self.outside = float(upper[order[:place]].max(initial=0.0))
        self.length = length
        source: Any = view.source
        copies = source.gathered(self.features)
        self._view = view
        self._chosen: np.ndarray | None = self.features
        if copies is not None:
            moments = view.moments
            own = Moments(moments.mean[self.features], moments.norm[self.features], moments.total_weight)
            scale = None if view.scale is None else view.scale[self.features]
            self._view, self._chosen = FeatureView(copies, own, view.sample_weight, scale, view.centred), None

    def scores(self, residual: np.ndarray) -> np.ndarray:
        """Return the scores of the features, with the bits of a pass over all features."""
        return _require_finite(self._view.scores(residual, self._chosen))


class WorkingTop(KnownTop):
    """Best scores of a working set; implements :class:`~coterie.data.top.Top`.

    Parameters
    ----------
    query : TopQuery
        Request for the best features.
    working : WorkingSet
        The features to score.
    is_bounded : bool
        Whether the bound on the other features holds for the residual of the query. Then all features are scored if the
        working set does not suffice. Otherwise, :class:`_TooFewError` is raised if it is too small.

    Attributes
    ----------
    visited_down_to : float
        The working set contained all features requested if no other candidate has a score of this or more.
    is_extended : bool
        Whether all features were scored.
    """

    def __init__(self, query: TopQuery, working: WorkingSet, *, is_bounded: bool) -> None:
        super().__init__(query, working.features, working.outside if is_bounded else -np.inf)
        self.visited_down_to = np.inf
        self.is_extended = False
        self._working = working
        self._is_bounded = is_bounded
        self._known_excluded: Scored = working.features[:0], np.empty(0)

    def kth(self, below: float, size: int) -> float:
        """Return the ``size``-th highest score below ``below``, after all features are scored if necessary."""
        self._start()
        while True:
            low = float(kth_largest(self._scores, below, size))
            if self.is_extended:
                return low
            needed = max(low - TIE * self.best, 0.0)
            if np.count_nonzero((self._scores >= 0.0) & (self._scores < below)) >= size and needed > self._unscored_bound:
                return low
            self._extend()

    def between(self, low: float, below: float) -> Scored:
        """Return all features with scores in [low, below)."""
        self.visited_down_to = min(self.visited_down_to, low)
        return super().between(low, below)

    def _first_scores(self) -> tuple[np.ndarray | None, np.ndarray]:
        self.n_scored += len(self.known)
        scores = self._working.scores(self.residual)
        taken = ~self.candidates[self.known]
        self._known_excluded = self.known[taken], scores[taken]
        scores[taken] = -1.0
        return self.known, scores

    def _extend(self) -> None:
        if not self._is_bounded:
            raise _TooFewError
        super()._extend()
        self.is_extended = True

    def excluded(self) -> Scored:
        """Return the excluded features."""
        return self._known_excluded


class ObservedTop(LayeredTop):
    """Best scores of all features, which records the lowest score requested as :class:`WorkingTop` does."""

    def __init__(self, query: TopQuery) -> None:
        super().__init__(query)
        self.visited_down_to = np.inf

    def between(self, low: float, below: float) -> Scored:
        """Return all features with scores in [low, below)."""
        self.visited_down_to = min(self.visited_down_to, low)
        return super().between(low, below)

    def outside(self, size: int) -> float:
        """Return the score that all but the best ``size`` features do not exceed."""
        known = float(kth_largest(self._scores, np.inf, size)) if len(self._scores) > size else 0.0
        return max(known, 0.0 if self._floor == 0.0 else self._unscored_bound)


class RelativeScores:
    """Upper bounds on the scores of all features for several residuals, from one pass in single precision.

    Parameters
    ----------
    view : FeatureView
        All features.
    residuals : list of ndarray of shape (n_samples, n_outputs)
        The residuals.
    lowest : float
        Score bound below which features are not multiplied. Their bounds are those of their norms.
    """

    def __init__(self, view: FeatureView, residuals: list[np.ndarray], lowest: float) -> None:
        self._bounds = view.score_bounds.values
        self._lengths = [view.norm_of(residual) for residual in residuals]
        n_outputs = residuals[0].shape[1]
        vectors = np.zeros((-(-len(residuals) * n_outputs // 4) * 4, view.n_samples), dtype=np.float32)
        for k, (residual, length) in enumerate(zip(residuals, self._lengths, strict=True)):
            if length > 0.0:
                vectors[k * n_outputs : (k + 1) * n_outputs] = residual.T / length
        norms = self._bounds if view.scale is None else self._bounds * view.scale
        with np.errstate(divide="ignore", over="ignore"):
            factor = np.where(norms > 0.0, 1.0 / norms, 0.0)
        centre = view.moments.mean if view.centred else np.zeros(view.n_features)
        features = np.flatnonzero(self._bounds >= lowest)
        self._values = np.ones((len(residuals), view.n_features), dtype=np.float32)
        source: Any = view.source
        source.rounded_norms(
            vectors, n_outputs, centre=centre, factor=factor, features=features, out=self._values, n_threads=view.n_threads
        )
        self.n_multiplied = len(features)

    def upper(self, position: int) -> np.ndarray:
        """Return upper bounds on the scores for a residual."""
        values = self._values[position].astype(np.float64)
        values += ERROR
        values *= self._bounds
        values *= self._lengths[position] * _ROUNDING
        return values


class Speculation:
    """A loop that is run with speculative rounds.

    Parameters
    ----------
    loop : CuttingPlane
        The loop, not started, for which :func:`speculates` is true.

    Attributes
    ----------
    n_verified, n_discarded : int
        Number of speculative rounds that were verified and discarded.
    n_verifications : int
        Number of passes that verified rounds.
    """

    def __init__(self, loop: CuttingPlane) -> None:
        self.loop = loop
        self.view = loop.oracle.view
        self.n_verified = self.n_discarded = self.n_verifications = 0
        self._n_rounds = _FIRST_ROUNDS
        self._min_ratio = _MIN_RATIO
        self._max_rounds = max(2, _MAX_VECTORS // loop.master.loss.n_outputs - 1)
        self._size_factor = 1

    def run(self) -> None:
        """Run the loop to its end."""
        loop = self.loop
        loop.begin()
        upper: np.ndarray | None = None
        n_attempts = 0
        while not loop.finished and n_attempts < _MAX_ATTEMPTS:
            working = self._full_round() if upper is None else self._bounded_round(upper)
            n_attempts = n_attempts + 1 if working is None else 0
            upper = None if working is None or loop.finished else self._speculate(working)
        while not loop.finished:
            loop.step()

    def _full_round(self) -> WorkingSet | None:
        """Make a round of the plain loop. Return the working set of the next rounds if it is likely to suffice."""
        top = ObservedTop(self.loop.queries()[0])
        self._step(top)
        return self._working_set(top) if top.visited_down_to > self._min_ratio * top.outside(self._size) else None

    def _bounded_round(self, upper: np.ndarray) -> WorkingSet | None:
        """Make a round with known bounds on all scores. Return the working set of the next rounds as above."""
        query = self.loop.queries()[0]
        working = WorkingSet(self.view, query.candidates, upper, self._size, self.view.norm_of(query.residual))
        top = WorkingTop(query, working, is_bounded=True)
        self._step(top)
        if top.is_extended:  # features outside the working set may have been encountered
            working = self._working_set(top)
        return working if top.visited_down_to > self._min_ratio * working.outside else None

    @property
    def _size(self) -> int:
        return self._size_factor * _working_size(self.loop)

    def _working_set(self, top: LayeredTop) -> WorkingSet:
        candidates = self.loop.queries()[0].candidates
        return WorkingSet(self.view, candidates, top.upper_bounds(), self._size, self.view.norm_of(top.residual))

    def _step(self, top: LayeredTop) -> None:
        self.loop.step([LazyScores(self.view, top.residual, known=top)], bounded=True)

    def _speculate(self, working: WorkingSet) -> np.ndarray | None:
        """Make rounds on the working set, verify them, and return bounds on the scores for the next round, if known."""
        loop = self.loop
        loop.publishes = False
        states = [loop.save()]
        tops: list[WorkingTop] = []
        try:
            while len(tops) < min(self._n_rounds, self._max_rounds) and not loop.finished and not stop_requested():
                top = WorkingTop(loop.queries()[0], working, is_bounded=False)
                try:
                    self._step(top)
                except _TooFewError:
                    self._size_factor *= 2
                    loop.restore(states[-1])
                    break
                except Exception:  # raised again by the same round of the plain loop, if it is made
                    loop.restore(states[-1])
                    break
                tops.append(top)
                states.append(loop.save())
                if top.visited_down_to * working.length <= self._min_ratio * working.outside * self.view.norm_of(top.residual):
                    break  # this round is not likely to be verified
        finally:
            loop.publishes = True
        return self._verify(working, tops, states) if tops else None

    def _verify(self, working: WorkingSet, tops: list[WorkingTop], states: list[dict[str, Any]]) -> np.ndarray | None:
        """Verify rounds, return to the state after the last verified one, and publish them."""
        loop = self.loop
        residuals = [top.residual for top in tops]
        lowest = min(top.visited_down_to / max(self.view.norm_of(top.residual), np.finfo(float).tiny) for top in tops)
        if not loop.finished:
            residuals.append(loop.solution.residual)
            lowest *= 0.7  # the next walk is expected to need features of a similar norm
        scores = RelativeScores(self.view, residuals, lowest / _ROUNDING)
        loop.oracle.count_scored(scores.n_multiplied)
        n_good = 0
        while n_good < len(tops) and _is_verified(scores.upper(n_good), working, tops[n_good].visited_down_to):
            n_good += 1
        self.n_verifications += 1
        self.n_verified += n_good
        self.n_discarded += len(tops) - n_good
        if n_good < len(tops):
            self._n_rounds, self._min_ratio = 2 * max(n_good, 1), self._min_ratio * (_RAISE if n_good < 2 else 1.0)
        else:
            self._n_rounds *= 2
        self._publish(states[: n_good + 1], is_current=n_good == len(tops))
        return None if loop.finished else scores.upper(n_good)

    def _publish(self, states: list[dict[str, Any]], *, is_current: bool) -> None:
        """Publish the rounds between the given states. The loop is in the last of them if ``is_current``."""
        loop = self.loop
        lengths = [len(state["own"]["history"]) for state in states]
        last_round = max((k for k in range(1, len(states)) if lengths[k] > lengths[k - 1]), default=0)
        current = len(states) - 1 if is_current else -1
        if len(states) == 1:
            loop.restore(states[0])
        for k in range(1, len(states)):
            if k != current:
                loop.restore(states[k])
                current = k
            if k >= last_round > 0:  # the verification and the discarded rounds count in the last verified round
                loop.count_passes()
            if lengths[k] > lengths[k - 1]:
                loop.publish(loop.history[-1])
                if loop.stopped:
                    return


def _is_verified(upper: np.ndarray, working: WorkingSet, floor: float) -> bool:
    """Return True if no feature outside the working set has a score of ``floor`` or more. Overwrites the bounds."""
    upper[working.features] = -1.0
    return bool(upper.max() < floor)  # False if there is a NaN
