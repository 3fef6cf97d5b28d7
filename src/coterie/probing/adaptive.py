"""Adaptive probes: features that may be among the best are drawn more often; the estimates stay unbiased."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from coterie.probing.probes import Draw, Estimate, ProbePlan, ProbeRecord, probes_until

# A feature of level l is drawn with 2**-l of the probability of level 0.
N_LEVELS = 9
# Largest probability of a draw. An estimate needs probes without the feature as well as probes with it.
_MAX_PROBABILITY = 0.5
# Expected number of draws of a level-0 feature in the first round, and its growth factor per round.
_FIRST_ROUND, _GROWTH = 60.0, 1.1
# Values are compared with the mean value of earlier probes whose target size is in the same range. The mean over all sizes
# counts as two additional probes.
_N_SIZE_RANGES, _N_PRIOR_PROBES = 16, 2.0
# Factor on the weight of earlier rounds at the end of each round. The probes contain better features from round to round, and
# a feature that was useless in the first rounds can be useful among them.
_KEPT = 0.9
# Smallest rank of the cut. Even if few features are requested, each must be evaluated together with others.
_MIN_CUT = 20
# Relative differences below this value are rounding errors.
_ROUNDING = 1e-12
# Features of levels below this one decide whether the coverage is sufficient.
_OPEN_LEVELS = 2


@dataclass(frozen=True)
class AdaptivePlan(ProbePlan):
    """Settings of adaptive probes: those of uniform probes and the number of features to select."""

    n_wanted: int


class Focus:
    """Sampling design of one round: features are drawn independently, with probabilities that depend on their levels.

    A target size is drawn uniformly from 1 to the plan's largest size (or is the one size that corresponds to its inclusion
    probability). It is distributed over the features in proportion to 2**-level, with probabilities of at most one half.
    Probes therefore get smaller as fewer features remain undecided. Draws without any feature are repeated.

    Given the target size, the draws of different features are independent. :class:`Benefit` relies on this.
    """

    def __init__(self, plan: AdaptivePlan, levels: np.ndarray) -> None:
        self.plan = plan
        self.levels = levels
        self.open = np.flatnonzero(levels < _OPEN_LEVELS)
        self.counts = np.bincount(levels, minlength=N_LEVELS)
        share = 2.0 ** -np.arange(N_LEVELS)
        if plan.inclusion_probability is None:
            wanted, most = np.arange(1.0, plan.max_size + 1.0), _MAX_PROBABILITY
        else:
            wanted = np.array([max(1.0, plan.inclusion_probability * plan.n_features)])
            most = max(_MAX_PROBABILITY, plan.inclusion_probability)
        self.probability = np.minimum(most, np.outer(wanted / (self.counts @ share), share))
        hazard = -np.log1p(-self.probability)
        self.not_empty = -np.expm1(-hazard @ self.counts)
        # Features sorted by level. Each has an interval as long as its hazard; ``ends`` are the ends of the levels.
        self._by_level = np.argsort(levels, kind="stable").astype(np.int32)
        self._hazard = hazard
        self._ends = np.cumsum(hazard * self.counts, axis=1)
        self._first = np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def mean_probability(self) -> float:
        """Mean probability of a feature of level 0."""
        return float(self.probability[:, 0].mean())

    def draw(self, number: int) -> np.ndarray:
        """Return the sorted features of a probe."""
        return self.draw_with_row(number)[1]

    def draw_with_row(self, number: int) -> Draw:
        r"""Return the row of a probe's target size, and its sorted features.

        Points of a Poisson process with rate 1 are drawn on the intervals of all features. A feature whose interval has a
        length of :math:`-\ln(1 - \pi)` contains a point with probability :math:`\pi`, independently of the others. The cost
        is proportional to the number of drawn features, not to the number of all features.
        """
        generator = self.plan.generator(number)
        row = int(generator.integers(len(self.probability)))
        ends = self._ends[row]
        while True:
            points = (1.0 - generator.random(generator.poisson(ends[-1]))) * ends[-1]  # above 0 and at most the last end
            if len(points):
                break
        level = np.searchsorted(ends, points)
        offset = ((ends[level] - points) / self._hazard[row][level]).astype(np.int64)
        place = self._first[level + 1] - 1 - np.minimum(offset, self.counts[level] - 1)
        held = np.zeros(len(self.levels), dtype=np.bool_)
        held[self._by_level[place]] = True
        return row, np.flatnonzero(held)


class Benefit:
    r"""Running estimate of the mean benefit of each feature to the probes.

    Let S be a probe whose target size gives feature f the inclusion probability :math:`\pi`. The probe adds
    :math:`(1[f \in S] - \pi) (J(S) - c)` to the numerator and :math:`\pi (1 - \pi)` to the weight, where c is the mean
    value of earlier probes of about that size. Because f is drawn independently of the other features, the expectation of
    the former is the latter times the mean benefit :math:`E[J(R + f) - J(R)]` over the sets R of the other features. This
    holds for any c and for any probabilities derived from earlier probes, without a model. These are importance weights,
    :math:`1 / \pi` for the probes with f and :math:`1 / (1 - \pi)` for the probes without, combined in the proportion
    :math:`\pi (1 - \pi)`, which gives the smallest variance. (The empty set is never evaluated; its value is taken to be c.
    The repetition of empty draws is accounted for by the probability that a draw is not empty.)

    The quotient of the sums is therefore unbiased within a round. Over several rounds it is the weighted mean of the rounds.
    At the end of a round, all sums are multiplied by 0.9, so that the estimate follows the change of the probes. The weight
    of a feature that is drawn rarely decreases, its error increases, and it is drawn more often until it is known again.
    A feature with a low estimate by chance gets less weight in later rounds, which could correct it. Its quotient is
    therefore slightly too low on average, as usual in adaptive data collection [1]_. No quotient is too high for this reason.

    Terms that depend only on the level and the target size are summed per level and size and added to the features at the
    end of a round. The cost of adding a probe is therefore proportional to its number of features.

    References
    ----------
    .. [1] X. Nie, X. Tian, J. Taylor, J. Zou, "Why adaptively collected data have negative bias and how to correct for it",
       AISTATS 2018.
    """

    def __init__(self, n_features: int) -> None:
        self.numerator = np.zeros(n_features)
        self.weight = np.zeros(n_features)
        self.square = np.zeros(n_features)
        self.variance = np.zeros(n_features)
        self.tallies = np.zeros((0, 3))
        self.odd = False
        self.odd_numerator = np.zeros(n_features)
        self.odd_weight = np.zeros(n_features)
        self.odd_tallies = np.zeros((0, 2))
        self.centres = np.zeros((_N_SIZE_RANGES, 2))
        self.reference: float | None = None

    def begin(self, focus: Focus) -> None:
        """Start a new round with new centres, because the mean of the values may have changed."""
        if self.centres[:, 1].any():
            self.reference = float(self.centres[:, 0].sum() / self.centres[:, 1].sum())
        self.centres = np.zeros((_N_SIZE_RANGES, 2))
        self.tallies = np.zeros((len(focus.probability), 3))
        self.odd_tallies = np.zeros((len(focus.probability), 2))

    def add(self, row: int, features: np.ndarray, value: float) -> None:
        """Add a probe. The first probe of all only serves as a reference for later ones."""
        place = row * _N_SIZE_RANGES // len(self.tallies)
        total, count = self.centres.sum(axis=0)
        middle = total / count if count else self.reference
        if middle is not None:
            near, n_near = self.centres[place]
            centre = (near + _N_PRIOR_PROBES * middle) / (n_near + _N_PRIOR_PROBES)
            difference = value - centre if abs(value - centre) > _ROUNDING * abs(centre) else 0.0
            self.numerator[features] += difference
            self.tallies[row] += (1.0, difference, difference * difference)
            if self.odd:
                self.odd_numerator[features] += difference
                self.odd_tallies[row] += (1.0, difference)
        self.centres[place] += (value, 1.0)
        self.odd = not self.odd

    def end(self, focus: Focus) -> None:
        """End a round: add its sums to those of the features."""
        numerator, weight, square, variance = self._totals(focus)
        odd_numerator, odd_weight = self._odd_totals(focus)
        self.numerator, self.weight, self.square = _KEPT * numerator, _KEPT * weight, _KEPT * square
        self.variance = _KEPT**2 * variance
        self.odd_numerator, self.odd_weight = _KEPT * odd_numerator, _KEPT * odd_weight
        self.tallies, self.odd_tallies = np.zeros_like(self.tallies), np.zeros_like(self.odd_tallies)

    def estimate(self, focus: Focus) -> Estimate:
        """Return the current estimate; also valid within a round."""
        numerator, weight, square, variance = self._totals(focus)
        weight = np.maximum(weight, np.finfo(np.float64).tiny)
        return Estimate(numerator / weight, np.sqrt(variance) / weight, np.sqrt(square / weight))

    def halves(self, focus: Focus) -> tuple[np.ndarray, np.ndarray]:
        """Return the benefit from the probes with even numbers, and from those with odd numbers."""
        tiny = np.finfo(np.float64).tiny
        numerator, weight, _, _ = self._totals(focus)
        odd_numerator, odd_weight = self._odd_totals(focus)
        return (
            (numerator - odd_numerator) / np.maximum(weight - odd_weight, tiny),
            odd_numerator / np.maximum(odd_weight, tiny),
        )

    def _odd_totals(self, focus: Focus) -> tuple[np.ndarray, np.ndarray]:
        count, difference = self.odd_tallies.T
        both = focus.probability * (1.0 - focus.probability) / focus.not_empty[:, None]
        return (
            self.odd_numerator - (difference @ focus.probability)[focus.levels],
            self.odd_weight + (count @ both)[focus.levels],
        )

    def _totals(self, focus: Focus) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        count, difference, square = self.tallies.T
        both = focus.probability * (1.0 - focus.probability) / focus.not_empty[:, None]
        levels = focus.levels
        return (
            self.numerator - (difference @ focus.probability)[levels],
            self.weight + (count @ both)[levels],
            self.square + (square @ both)[levels],
            self.variance + (square @ both)[levels],
        )


class AdaptiveSums(ProbeRecord):
    """Results of adaptive probes, and the design of the next ones.

    Probes are drawn in rounds. In the first round all features have level 0. After each round the level of a feature is
    the negative binary logarithm of the probability that it belongs to the best ``n_wanted`` (at least 20), computed from
    its estimate and standard error. The best features are drawn at the full rate, features that may be among them at nearly
    the full rate, and unlikely ones rarely, but with a positive probability. The end of a round depends on the levels only.
    """

    plan: AdaptivePlan

    def __init__(self, plan: AdaptivePlan) -> None:
        super().__init__(plan)
        self.starts: list[int] = []
        self.levels: list[np.ndarray] = []
        self.found = Benefit(plan.n_features)
        self._begin(np.zeros(plan.n_features, dtype=np.int8))

    @property
    def design(self) -> Focus:
        """Design that draws the next probes."""
        return self.focus

    @property
    def design_ends(self) -> int:
        """Number of the first probe after the current round."""
        return self._ends

    def add(self, value: float, drawn: Draw | None = None) -> None:
        """Add the value of the next probe. The last probe of a round starts the next round."""
        row, features = self.focus.draw_with_row(self.n_probes) if drawn is None else drawn
        self._record(features, value)
        self.found.add(row, features, float(value))
        if self.n_probes == self._ends:
            levels = self._next_levels()
            self.found.end(self.focus)
            self._begin(levels)

    def covers(self, least: int) -> bool:
        """Return True if the features at or near the top have a coverage of at least ``least``."""
        if self.n_probes < 2 * least:
            return False
        held = self.count[self.focus.open]
        return bool(held.min() >= least and self.n_probes - held.max() >= least)

    @property
    def coverage(self) -> int:
        """Smallest coverage of a feature at or near the top."""
        held = self.count[self.focus.open]
        return int(min(held.min(), self.n_probes - held.max()))

    def missing_probes(self, coverage: int) -> float:
        """Return the expected number of probes until the coverage is reached, if the current design remains."""
        near = self.focus.open
        share = (self.focus.probability / self.focus.not_empty[:, None]).mean(axis=0)[self.focus.levels[near]]
        return probes_until(coverage, self.count[near], self.n_probes, share)

    @property
    def estimate(self) -> Estimate:
        """Benefit of each feature."""
        return self.found.estimate(self.focus)

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Benefit of each feature, from the probes with even numbers and from those with odd numbers."""
        return self.found.halves(self.focus)

    def benefit_of(self, values: np.ndarray) -> Estimate:
        """Return the benefits for other values of the same probes, which are drawn again."""
        found = Benefit(self.plan.n_features)
        focus = self.focus
        for start, stop, levels in zip(self.starts, [*self.starts[1:], self.n_probes], self.levels, strict=True):
            if start:
                found.end(focus)
            focus = Focus(self.plan, levels)
            found.begin(focus)
            for number in range(start, stop):
                found.add(*focus.draw_with_row(number), float(values[number]))
        return found.estimate(focus)

    def _begin(self, levels: np.ndarray) -> None:
        self.focus = Focus(self.plan, levels)
        self.found.begin(self.focus)
        n_draws = _FIRST_ROUND * _GROWTH ** len(self.starts)
        self._ends = self.n_probes + int(np.ceil(n_draws / self.focus.mean_probability))
        self.starts.append(self.n_probes)
        self.levels.append(levels)

    def _next_levels(self) -> np.ndarray:
        """Return levels from the probability of being among the best, assuming normal errors."""
        benefit, error, _ = self.estimate
        n_wanted = max(self.plan.n_wanted, _MIN_CUT)
        if n_wanted >= len(benefit):
            return np.zeros(len(benefit), dtype=np.int8)
        places = np.partition(benefit, len(benefit) - n_wanted - 1)
        cut = 0.5 * (places[-n_wanted - 1] + places[-n_wanted:].min())
        gap = np.where(error > 0, (benefit - cut) / np.where(error > 0, error, 1.0), 0.0)
        return np.clip(np.floor(-log_ndtr(gap) / np.log(2.0)), 0, N_LEVELS - 1).astype(np.int8)
