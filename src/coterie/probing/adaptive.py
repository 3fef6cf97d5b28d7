"""Adaptive probes: drawn the more of the features whose place among the best is open, with means that stay unbiased."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from coterie.probing.probes import ProbePlan, ProbeRecord

# A feature of level l is drawn with 2**-l of the probability of level 0.
N_LEVELS = 9
# Largest probability of a draw: to be judged, a feature must be left out as often as it is held.
_MAX_PROBABILITY = 0.5
# How often the features of level 0 are drawn in the first round, and what that grows by from round to round.
_FIRST_ROUND, _GROWTH = 60.0, 1.1
# Values are compared with the mean value of earlier probes whose wanted sizes are in the same one of so many ranges, as if
# the mean over all sizes were the value of two more.
_RANGES, _PRIOR = 16, 2.0
# The place in question is at least this one: a feature must be judged in company, however few are wanted.
_COMPANY = 20
# Differences below this share are rounding.
_ROUNDING = 1e-12
# Features of these levels decide when the coverage is enough.
_OPEN_LEVELS = 2


@dataclass(frozen=True)
class AdaptivePlan(ProbePlan):
    """What adaptive probes depend on besides the values: as for uniform ones, and the number of features wanted."""

    n_wanted: int


class Focus:
    """How the probes of one round are drawn: every feature by itself, with a probability that depends on its level.

    A size is wanted, uniformly from 1 to the plan's largest (or the one size that its inclusion probability means). It is
    shared out among the features in proportion to 2**-level, none above one half; so probes get smaller as fewer features
    are left in question. Draws without any feature are repeated.

    Given the size wanted, whether a feature is held says nothing about the others. That is what makes it easy to judge.
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
        self.not_empty = -np.expm1(np.log1p(-self.probability) @ self.counts)

    @property
    def often(self) -> float:
        """Mean probability of a feature of level 0."""
        return float(self.probability[:, 0].mean())

    def draw(self, number: int) -> np.ndarray:
        """Features of a probe, sorted."""
        return self.drawn(number)[1]

    def drawn(self, number: int) -> tuple[int, np.ndarray]:
        """The row of the size that was wanted, and the features of a probe."""
        generator = self.plan.generator(number)
        row = int(generator.integers(len(self.probability)))
        probability = self.probability[row][self.levels]
        while True:
            features = np.flatnonzero(generator.random(len(probability)) < probability)
            if len(features):
                return row, features


class Estimate(NamedTuple):
    """Benefit of each feature, its standard error, and the spread of the values that it was found from."""

    benefit: np.ndarray
    error: np.ndarray
    spread: np.ndarray


class Benefit:
    r"""Running estimate of what each feature adds to the probes.

    A probe S whose wanted size has given feature f the probability :math:`\pi` of being held adds
    :math:`(1[f \in S] - \pi) (J(S) - c)` to the numerator and :math:`\pi (1 - \pi)` to the weight, where c is the mean
    value of earlier probes of about that size. Since f is drawn by itself, the expectation of the first is the second times
    the mean benefit :math:`E[J(R + f) - J(R)]` over the sets R that the others form, for any c and for any
    probabilities that earlier probes have led to: no model of anything is needed. These are importance weights,
    :math:`1 / \pi` for the probes that hold f and :math:`1 / (1 - \pi)` for the others, in the proportion
    :math:`\pi (1 - \pi)` that gives the smallest variance. (Of the empty set, which is never evaluated, the value is taken to
    be c; that draws without features are repeated is allowed for by the probability that there is one.)

    So the quotient of the sums is unbiased over a round. Over several rounds it is their mean by weight, and a feature that
    falls behind by bad luck gets less weight later to make up for it: its quotient stays a little too low on average, as
    always when data decide what data are collected [1]_. None is too high for that reason.

    What depends on the level and the wanted size alone is summed up for each of these, and taken to the
    features when a round ends: to enter a probe costs no more than it has features.

    References
    ----------
    .. [1] X. Nie, X. Tian, J. Taylor, J. Zou, "Why adaptively collected data have negative bias and how to correct for it",
       AISTATS 2018.
    """

    def __init__(self, n_features: int) -> None:
        self.numerator = np.zeros(n_features)
        self.weight = np.zeros(n_features)
        self.square = np.zeros(n_features)
        self.tallies = np.zeros((0, 3))
        self.centres = np.zeros((_RANGES, 2))
        self.reference: float | None = None

    def begin(self, focus: Focus) -> None:
        """A new round: values may be of another height now."""
        if self.centres[:, 1].any():
            self.reference = float(self.centres[:, 0].sum() / self.centres[:, 1].sum())
        self.centres = np.zeros((_RANGES, 2))
        self.tallies = np.zeros((len(focus.probability), 3))

    def enter(self, row: int, features: np.ndarray, value: float) -> None:
        """Enter a probe; the very first one has nothing to be compared with, and is there to compare others with."""
        place = row * _RANGES // len(self.tallies)
        total, count = self.centres.sum(axis=0)
        middle = total / count if count else self.reference
        if middle is not None:
            near, n_near = self.centres[place]
            centre = (near + _PRIOR * middle) / (n_near + _PRIOR)
            difference = value - centre if abs(value - centre) > _ROUNDING * abs(centre) else 0.0
            self.numerator[features] += difference
            self.tallies[row] += (1.0, difference, difference * difference)
        self.centres[place] += (value, 1.0)

    def end(self, focus: Focus) -> None:
        """The round is over: its tallies go to the features."""
        self.numerator, self.weight, self.square = self._totals(focus)
        self.tallies = np.zeros_like(self.tallies)

    def estimate(self, focus: Focus) -> Estimate:
        """What is known so far, in the middle of a round too."""
        numerator, weight, square = self._totals(focus)
        weight = np.maximum(weight, np.finfo(np.float64).tiny)
        return Estimate(numerator / weight, np.sqrt(square) / weight, np.sqrt(square / weight))

    def _totals(self, focus: Focus) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        count, difference, square = self.tallies.T
        both = focus.probability * (1.0 - focus.probability) / focus.not_empty[:, None]
        levels = focus.levels
        return (
            self.numerator - (difference @ focus.probability)[levels],
            self.weight + (count @ both)[levels],
            self.square + (square @ both)[levels],
        )


class AdaptiveSums(ProbeRecord):
    """What is known after some adaptive probes, and how the next ones are drawn.

    Probes come in rounds. In the first one all features have level 0. After each round the level of a feature is the
    binary logarithm of the probability that it belongs to the best ``n_wanted`` (or 20, if fewer are wanted), as far as its
    estimate and standard error tell. So the best are drawn at the full rate, those that may be among them nearly so, and
    those that will hardly be seldom, but never never. Where rounds end depends on the levels alone.
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
        """What draws the next probes."""
        return self.focus

    @property
    def design_ends(self) -> int:
        """Where the round ends."""
        return self._ends

    def add(self, value: float) -> None:
        """Enter the value of the next probe; the last one of a round begins the next round."""
        row, features = self.focus.drawn(self.n_probes)
        self._record(features, value)
        self.found.enter(row, features, float(value))
        if self.n_probes == self._ends:
            levels = self._next_levels()
            self.found.end(self.focus)
            self._begin(levels)

    def covers(self, least: int) -> bool:
        """Whether the features that are at or near the top have a coverage of at least ``least``."""
        if self.n_probes < 2 * least:
            return False
        held = self.count[self.focus.open]
        return bool(held.min() >= least and self.n_probes - held.max() >= least)

    @property
    def estimate(self) -> Estimate:
        """Benefit of each feature."""
        return self.found.estimate(self.focus)

    def benefit_of(self, values: np.ndarray) -> np.ndarray:
        """The benefits if the same probes had had these values; they are drawn once more."""
        found = Benefit(self.plan.n_features)
        focus = self.focus
        for start, stop, levels in zip(self.starts, [*self.starts[1:], self.n_probes], self.levels, strict=True):
            focus = Focus(self.plan, levels)
            found.begin(focus)
            for number in range(start, stop):
                found.enter(*focus.drawn(number), float(values[number]))
            found.end(focus)
        return found.estimate(focus).benefit

    def _begin(self, levels: np.ndarray) -> None:
        self.focus = Focus(self.plan, levels)
        self.found.begin(self.focus)
        often = _FIRST_ROUND * _GROWTH ** len(self.starts)
        self._ends = self.n_probes + int(np.ceil(often / self.focus.often))
        self.starts.append(self.n_probes)
        self.levels.append(levels)

    def _next_levels(self) -> np.ndarray:
        """Levels by the probability of a place among the best, as a normal error would have it."""
        benefit, error, _ = self.estimate
        n_wanted = max(self.plan.n_wanted, _COMPANY)
        if n_wanted >= len(benefit):
            return np.zeros(len(benefit), dtype=np.int8)
        places = np.partition(benefit, len(benefit) - n_wanted - 1)
        cut = 0.5 * (places[-n_wanted - 1] + places[-n_wanted:].min())
        gap = np.where(error > 0, (benefit - cut) / np.where(error > 0, error, 1.0), 0.0)
        return np.clip(np.floor(-log_ndtr(gap) / np.log(2.0)), 0, N_LEVELS - 1).astype(np.int8)
