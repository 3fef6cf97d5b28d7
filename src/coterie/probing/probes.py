"""Probes (random feature subsets, each drawn from its own seed) and the running sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from sklearn.utils import check_random_state

from coterie.inputs.types import RandomStateLike
from coterie.probing.criteria.base import check_value

Key = tuple[int, int]
# Row of the target size (0 for uniform probes), and sorted features of a probe.
Draw = tuple[int, np.ndarray]


class Design(Protocol):
    """Sampling design: draws each probe from its number alone, in any process."""

    def draw(self, number: int) -> np.ndarray:
        """Return the sorted features of a probe."""
        ...

    def draw_with_row(self, number: int) -> Draw:
        """Return the row of a probe's target size, and its sorted features."""
        ...


@dataclass(frozen=True)
class ProbePlan:
    """Settings of uniform probes. The features of a probe depend on the seed (``key``) and the probe's number only.

    Probe i is drawn by a counter-based generator (Philox) with the plan's key and i as the high word of its counter. Any
    process can therefore draw any probe, in any order, and probes are not stored. Sizes are uniform on 1, ..., ``max_size``.
    If ``inclusion_probability`` is given, every feature is drawn with this probability instead, and an empty draw is
    replaced by a probe of one feature.
    """

    n_features: int
    max_size: int
    inclusion_probability: float | None
    key: Key

    def generator(self, number: int) -> np.random.Generator:
        """Return the random generator of a probe."""
        counter = np.array([0, 0, 0, number], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=np.array(self.key, dtype=np.uint64), counter=counter))

    def draw(self, number: int) -> np.ndarray:
        """Return the sorted features of a probe."""
        generator = self.generator(number)
        if self.inclusion_probability is None:
            size = int(generator.integers(1, self.max_size, endpoint=True))
        else:
            size = max(1, int(generator.binomial(self.n_features, self.inclusion_probability)))
        return np.sort(generator.choice(self.n_features, size, replace=False, shuffle=False))

    def draw_with_row(self, number: int) -> Draw:
        """Return 0 and the sorted features of a probe."""
        return 0, self.draw(number)


def read_key(random_state: RandomStateLike) -> Key:
    """Return the seed of the probes for a ``random_state`` as in scikit-learn."""
    if random_state is None:
        entropy: int | list[int] | None = None
    elif isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        entropy = int(random_state)
    else:
        entropy = check_random_state(random_state).randint(0, 2**31 - 1, size=4).tolist()
    first, second = np.random.SeedSequence(entropy).generate_state(2, np.uint64)
    return int(first), int(second)


class Estimate(NamedTuple):
    """Benefit of each feature (DAF0), its standard error, and the standard deviation of the underlying values."""

    benefit: np.ndarray
    error: np.ndarray
    spread: np.ndarray


def _shown(features: np.ndarray) -> str:
    """Return the first few features as text."""
    return ", ".join(map(str, features[:5])) + (", …" if len(features) > 5 else "")


class ProbeRecord:
    """Results of probes for any design: values, sizes, and the number of probes per feature.

    Values are added in the order of the probes' numbers and never removed. Results are therefore bit-identical, whichever
    process evaluated the probes. The values are stored, 8 bytes per probe, because the scale of DAF2 is known only at the
    end. The features of a probe are drawn again when needed.
    """

    def __init__(self, plan: ProbePlan) -> None:
        self.plan = plan
        self.n_probes = 0
        self.count = np.zeros(plan.n_features, dtype=np.int64)
        self._values = np.zeros(1024)  # not np.empty: equal models are saved as equal files
        self._sizes = np.zeros(1024, dtype=np.int64)
        self._most = 0
        self._laggard = 0

    @classmethod
    def replay(cls, plan: Any, values: np.ndarray) -> Self:
        """Return the record of probes with these values."""
        sums = cls(plan)
        for value in values:
            sums.add(float(value))
        return sums

    @property
    def values(self) -> np.ndarray:
        """Value of each probe, in order."""
        return self._values[: self.n_probes]

    @property
    def sizes(self) -> np.ndarray:
        """Number of features of each probe, in order."""
        return self._sizes[: self.n_probes]

    @property
    def design(self) -> Design:
        """Design that draws the next probes."""
        return self.plan

    @property
    def design_ends(self) -> int | None:
        """Number of the first probe that :attr:`design` does not draw, or None if the design never changes."""
        return None

    @property
    def coverage(self) -> int:
        """Smallest number, over all features, of probes with or without the feature (equation 16)."""
        return min(int(self.count.min()), self.n_probes - self._most)

    @property
    def known(self) -> np.ndarray:
        """Mask of the features that are in some probes and missing from others."""
        return (self.count > 0) & (self.count < self.n_probes)

    @property
    def estimate(self) -> Estimate:
        """Benefit of each feature."""
        raise NotImplementedError

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Benefit of each feature, from the probes with even numbers and from those with odd numbers."""
        raise NotImplementedError

    def missing_probes(self, coverage: int) -> float:
        """Return the expected number of probes until the coverage is reached."""
        raise NotImplementedError

    def covers(self, least: int) -> bool:
        """Return True if the coverage is at least ``least``."""
        # All features are checked only after the feature that had the lowest count has reached the limit.
        if self.n_probes - self._most < least or self.count[self._laggard] < least:
            return False
        self._laggard = int(self.count.argmin())
        return bool(self.count[self._laggard] >= least)

    def add(self, value: float, drawn: Draw | None = None) -> None:
        """Add the value of the next probe, which is drawn again unless it is given."""
        raise NotImplementedError

    def _record(self, features: np.ndarray, value: float) -> None:
        """Add a probe: its value, its size, its features."""
        number = self.n_probes
        check_value(value, lambda: f"probe {number} ({len(features)} feature(s): {_shown(features)})")
        if number == len(self._values):
            self._values = np.resize(self._values, 2 * number)
            self._sizes = np.resize(self._sizes, 2 * number)
        self._values[number], self._sizes[number] = value, len(features)
        self.n_probes += 1
        held = self.count[features] + 1
        self.count[features] = held
        self._most = max(self._most, int(held.max()))


class ProbeSums(ProbeRecord):
    """Running sums over uniform probes.

    There are three numbers per feature: the number of probes with it, and the sums of their values and squared values. The
    first probe's value is subtracted from all values to avoid cancellation.
    """

    def __init__(self, plan: ProbePlan) -> None:
        super().__init__(plan)
        self.sum = np.zeros(plan.n_features)
        self.square = np.zeros(plan.n_features)
        self.total = 0.0
        self.total_square = 0.0
        self.odd_count = np.zeros(plan.n_features, dtype=np.int64)
        self.odd_sum = np.zeros(plan.n_features)
        self.odd_total = 0.0

    @property
    def shift(self) -> float:
        """Value of the first probe, which is subtracted from all values."""
        return float(self._values[0]) if self.n_probes else 0.0

    def add(self, value: float, drawn: Draw | None = None) -> None:
        """Add the value of the next probe, which is drawn again unless it is given."""
        odd = self.n_probes % 2 == 1
        _, features = self.plan.draw_with_row(self.n_probes) if drawn is None else drawn
        self._record(features, value)
        difference = float(value) - self.shift
        if odd:
            self.odd_count[features] += 1
            self.odd_sum[features] += difference
            self.odd_total += difference
        self.sum[features] += difference
        self.square[features] += difference * difference
        self.total += difference
        self.total_square += difference * difference

    @property
    def estimate(self) -> Estimate:
        """Benefit of each feature, with the standard error of a difference of two means (pooled variance)."""
        inside, outside = self.count, self.n_probes - self.count
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, other_mean = self.sum / inside, (self.total - self.sum) / outside
            squares = self.total_square - inside * mean**2 - outside * other_mean**2
            spread = np.sqrt(np.maximum(squares, 0.0) / self.n_probes)
            error = spread * np.sqrt(1.0 / inside + 1.0 / outside)
            return Estimate(mean - other_mean, error, spread)

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Benefit of each feature, from the probes with even numbers and from those with odd numbers."""
        n_odd = self.n_probes // 2
        even = self.count - self.odd_count, self.sum - self.odd_sum, self.total - self.odd_total
        return (
            _difference(*even, self.n_probes - n_odd),
            _difference(self.odd_count, self.odd_sum, self.odd_total, n_odd),
        )

    def missing_probes(self, coverage: int) -> float:
        """Return the expected number of probes until the coverage is reached."""
        plan = self.plan
        share = plan.inclusion_probability
        if share is None:
            share = (plan.max_size + 1) / (2.0 * plan.n_features)
        return probes_until(coverage, self.count, self.n_probes, np.full(plan.n_features, share))


def _difference(count: np.ndarray, sums: np.ndarray, total: float, n_probes: int) -> np.ndarray:
    """Return the difference of the mean values with and without each feature; 0 if one of them is unknown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(sums / count - (total - sums) / (n_probes - count), nan=0.0, posinf=0.0, neginf=0.0))


def probes_until(coverage: int, count: np.ndarray, n_probes: int, share: np.ndarray) -> float:
    r"""Return the expected number of further probes until all features have a coverage.

    A feature is in a share q of the probes, and c more probes must contain it. Among K probes the number that contain it is
    approximately normal with mean and variance K q. The smallest of m such numbers is about :math:`K q - \sqrt{2 K q \ln m}`,
    which determines K for the features that lack most. The same holds for the probes without it.
    """
    least = 1e-12
    needed = 0.0
    for missing, rate in (
        (coverage - count, np.maximum(share, least)),
        (coverage - (n_probes - count), np.maximum(1.0 - share, least)),
    ):
        lacking = np.maximum(missing, 0)
        if lacking.any():
            spread = np.sqrt(2.0 * np.log(np.maximum((lacking >= 0.5 * lacking.max()).sum(), 1)))
            held = ((spread + np.sqrt(spread**2 + 4.0 * lacking)) / 2.0) ** 2
            needed = max(needed, float(np.where(lacking > 0, held / rate, 0.0).max()))
    return needed
