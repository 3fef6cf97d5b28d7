"""Stability of the selected features: would another run of the same length select them as well?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from coterie.probing.probes import ProbeRecord

# Numbers of probes at which the stability is computed: the first, and the factor from one to the next. They depend on nothing
# else. A run therefore stops at the same probe, whatever its workers and interruptions.
_FIRST_CHECK, _CHECK_FACTOR, _N_CHECKS = 100, 1.1, 250
# Errors of this many standard deviations do not happen.
_FAR = 9.0
_N_HALVINGS = 60
# Largest factor by which the number of probes is extrapolated.
_LARGEST_FACTOR = 1000.0


def _numbers_of_checks() -> frozenset[int]:
    numbers = [_FIRST_CHECK]
    for _ in range(_N_CHECKS):
        numbers.append(math.ceil(numbers[-1] * _CHECK_FACTOR))
    return frozenset(numbers)


CHECKS = _numbers_of_checks()


def next_check(n_probes: int) -> int:
    """Return the smallest number of probes at which the stability is computed, from ``n_probes`` on."""
    return min(number for number in CHECKS if number >= n_probes)


def expected_agreement(scores: np.ndarray, errors: np.ndarray, n_selected: int) -> float:
    r"""Return the expected share of the selected features that a repetition of the run selects as well.

    A repetition is modelled by independent normal errors. Feature f is selected with probability :math:`p_f =
    \Phi((s_f - c) / e_f)`, where s and e are scores and standard errors. The cut c is the one for which the probabilities
    sum to the number k of selected features. The expected number of features that two repetitions share is
    :math:`\sum_f p_f^2`, and the result is this number over k. Features without a standard error (infinite) are unknown, and
    the result is then 0. Of equal scores without errors, all are selected with the same probability.
    """
    n_features = len(scores)
    if n_selected >= n_features:
        return 1.0
    if not np.isfinite(errors).all():
        return 0.0
    # With c at the 2k-th score, 2k features have a probability of at least 1/2. The cut is therefore not below this score.
    place = min(2 * n_selected, n_features)
    low = float(np.nextafter(np.partition(scores, n_features - place)[n_features - place], -np.inf))
    near = scores + _FAR * errors > low
    scores, errors = scores[near], errors[near]
    high = float((scores + _FAR * errors).max())
    for _ in range(_N_HALVINGS):
        middle = 0.5 * (low + high)
        if _probabilities(scores, errors, middle).sum() > n_selected:
            low = middle
        else:
            high = middle
    # The sum jumps where scores have no errors. The probabilities at both sides of the jump are mixed.
    below, above = _probabilities(scores, errors, low), _probabilities(scores, errors, high)
    jump = below.sum() - above.sum()
    share = (n_selected - above.sum()) / jump if jump > 0 else 0.0
    probabilities = above + min(max(share, 0.0), 1.0) * (below - above)
    return float(min((probabilities**2).sum() / n_selected, 1.0))


def _probabilities(scores: np.ndarray, errors: np.ndarray, cut: float) -> np.ndarray:
    """Return the probability of each feature to have a score above the cut."""
    difference = scores - cut
    exact = errors <= 0
    return np.where(exact, difference > 0, ndtr(difference / np.where(exact, 1.0, errors)))


def shared_share(first: np.ndarray, second: np.ndarray, n_selected: int) -> float:
    """Return the share of the best features by one score that are among the best by another. Equal scores count as unknown."""
    best = _best(first, n_selected), _best(second, n_selected)
    return float((best[0] & best[1]).sum()) / n_selected


def _best(scores: np.ndarray, n_selected: int) -> np.ndarray:
    """Return a mask of the best features, without those whose score equals that of a feature that is not among them."""
    if n_selected >= len(scores):
        return np.ones(len(scores), dtype=np.bool_)
    return np.asarray(scores > np.partition(scores, len(scores) - n_selected - 1)[len(scores) - n_selected - 1])


class Stability(NamedTuple):
    """Stability of the selection.

    ``expected`` is the expected share of features that two repetitions have in common, from the standard errors. ``halves``
    is the share of features that are selected by both halves of the probes.
    """

    expected: float
    halves: float

    @property
    def value(self) -> float:
        """The smaller of the two."""
        return min(self)


def stability_of(sums: ProbeRecord, n_selected: int) -> Stability:
    """Return the stability of the best features by DAF0."""
    if sums.n_probes < 2:
        return Stability(0.0, 0.0)
    found = sums.estimate
    errors = np.where(sums.known, found.error, np.inf)
    return Stability(expected_agreement(found.benefit, errors, n_selected), shared_share(*sums.halves, n_selected))


@dataclass
class StabilityGoal:
    """Goal of a run: a stability of at least ``least``, checked at fixed numbers of probes. Keeps the latest result."""

    least: float
    n_selected: int
    latest: Stability | None = None

    def is_met(self, sums: ProbeRecord) -> bool:
        """Return True if the stability is checked at this number of probes, and is sufficient."""
        if sums.n_probes not in CHECKS:
            return False
        self.latest = stability_of(sums, self.n_selected)
        return self.latest.value >= self.least

    def expected_probes(self, sums: ProbeRecord) -> float:
        r"""Return the approximate number of probes at which the goal is met; infinite if it is not met by far more probes.

        After t times the probes, the scores are assumed to be the same with standard errors smaller by :math:`\sqrt t`.
        """
        if self.latest is not None and self.latest.value >= self.least:
            return next_check(sums.n_probes)
        found = sums.estimate
        errors = np.where(sums.known, found.error, np.inf)
        factor = 1.0
        while expected_agreement(found.benefit, errors / math.sqrt(factor), self.n_selected) < self.least:
            factor *= _CHECK_FACTOR
            if factor > _LARGEST_FACTOR:
                return math.inf
        return next_check(math.ceil(factor * sums.n_probes))
