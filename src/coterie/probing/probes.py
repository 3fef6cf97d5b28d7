"""Probes: random subsets of the features, each drawn from a seed of its own, and the running sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from sklearn.utils import check_random_state

from coterie.inputs.types import RandomStateLike
from coterie.probing.criteria.base import check_value

Key = tuple[int, int]


class Design(Protocol):
    """What draws probes, each from its number alone, in any process."""

    def draw(self, number: int) -> np.ndarray:
        """Features of a probe, sorted."""
        ...


@dataclass(frozen=True)
class ProbePlan:
    """Which features each probe holds: a function of the seed (``key``) and of the probe's number alone.

    Probe i is drawn by a counter-based generator (Philox) with the plan's key and i as the high word of its counter. So any
    process can draw any probe, in any order, and none is kept. Sizes are uniform on 1, ..., ``max_size``; or every feature is
    drawn with ``inclusion_probability``, if given, and a draw without any feature is made a probe of one feature.
    """

    n_features: int
    max_size: int
    inclusion_probability: float | None
    key: Key

    def generator(self, number: int) -> np.random.Generator:
        """Random numbers of a probe."""
        counter = np.array([0, 0, 0, number], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=np.array(self.key, dtype=np.uint64), counter=counter))

    def draw(self, number: int) -> np.ndarray:
        """Features of a probe, sorted."""
        generator = self.generator(number)
        if self.inclusion_probability is None:
            size = int(generator.integers(1, self.max_size, endpoint=True))
        else:
            size = max(1, int(generator.binomial(self.n_features, self.inclusion_probability)))
        return np.sort(generator.choice(self.n_features, size, replace=False, shuffle=False))


def read_key(random_state: RandomStateLike) -> Key:
    """A seed for the probes from what scikit-learn accepts as ``random_state``."""
    if random_state is None:
        entropy: int | list[int] | None = None
    elif isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        entropy = int(random_state)
    else:
        entropy = check_random_state(random_state).randint(0, 2**31 - 1, size=4).tolist()
    first, second = np.random.SeedSequence(entropy).generate_state(2, np.uint64)
    return int(first), int(second)


def _shown(features: np.ndarray) -> str:
    """The first few features."""
    return ", ".join(map(str, features[:5])) + (", …" if len(features) > 5 else "")


class ProbeRecord:
    """What is known after some probes, however they were drawn: their values and sizes, and how many hold each feature.

    Values enter in the order of the probes' numbers and nothing is ever taken back, so that what is made of them is the same,
    bit for bit, whichever process evaluated the probes. The values are kept, 8 bytes per probe, because the scale of DAF2 is
    known at the end only; which features a probe holds is drawn again when needed.
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
        """What is known after probes whose values are known."""
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
        """What draws the next probes."""
        return self.plan

    @property
    def design_ends(self) -> int | None:
        """The first probe that :attr:`design` does not draw, where it changes with what is known."""
        return None

    @property
    def coverage(self) -> int:
        """Smallest number of probes, over all features, with or without the feature (equation 16)."""
        return min(int(self.count.min()), self.n_probes - self._most)

    def covers(self, least: int) -> bool:
        """Whether the coverage is at least ``least``; looks at all features only once the last laggard has caught up."""
        if self.n_probes - self._most < least or self.count[self._laggard] < least:
            return False
        self._laggard = int(self.count.argmin())
        return bool(self.count[self._laggard] >= least)

    def add(self, value: float) -> None:
        """Enter the value of the next probe."""
        raise NotImplementedError

    def _record(self, features: np.ndarray, value: float) -> None:
        """Enter a probe: its value, its size, its features."""
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
    """The running sums of uniform probes.

    For each feature there are three numbers: how many probes hold it, and the sums of their values and squared values (less
    the first probe's value, against cancellation).
    """

    def __init__(self, plan: ProbePlan) -> None:
        super().__init__(plan)
        self.sum = np.zeros(plan.n_features)
        self.square = np.zeros(plan.n_features)
        self.total = 0.0
        self.total_square = 0.0

    @property
    def shift(self) -> float:
        """What the sums are taken less of: the value of the first probe."""
        return float(self._values[0]) if self.n_probes else 0.0

    def add(self, value: float) -> None:
        """Enter the value of the next probe."""
        features = self.plan.draw(self.n_probes)
        self._record(features, value)
        difference = float(value) - self.shift
        self.sum[features] += difference
        self.square[features] += difference * difference
        self.total += difference
        self.total_square += difference * difference
