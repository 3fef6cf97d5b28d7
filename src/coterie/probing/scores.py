"""The three dependency-aware scores, computed from the running sums over the probes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.probing.adaptive import AdaptiveSums
from coterie.probing.probes import ProbeRecord, ProbeSums

# Smallest number of probes used for a scale of DAF2.
MIN_PROBES = 10
# Deviations below this share of the largest value are rounding errors.
_ROUNDING = 1e-12


class ProbeSize(NamedTuple):
    """Summary of the criterion's values over the probes of one size; a row of ``probe_summary_``.

    ``scale`` is the divisor used by DAF2: the standard deviation, pooled over sizes that differ by at most ``reach``.
    """

    size: int
    n_probes: int
    mean: float
    std: float
    scale: float
    reach: int


class Scores(NamedTuple):
    """Scores by name, and their standard errors."""

    scores: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]


def daf_scores(sums: ProbeRecord, summary: list[ProbeSize]) -> Scores:
    """Return DAF0, DAF1 and DAF2 of all features with standard errors, from uniform or adaptive probes.

    The standard errors take the divisors of DAF1 and DAF2 as given. Features that are in all probes or in none have scores
    of 0 with infinite errors.
    """
    return _adaptive_scores(sums, summary) if isinstance(sums, AdaptiveSums) else _uniform_scores(sums, summary)


def _adaptive_scores(sums: AdaptiveSums, summary: list[ProbeSize]) -> Scores:
    """Return the scores from adaptive probes: benefit, benefit over standard deviation, and benefit of scaled values."""
    found = sums.estimate
    scaled = sums.benefit_of(sums.values / _scales(sums, summary))
    spread = np.maximum(found.spread, _least_spread(sums))
    scores = {"daf0": found.benefit, "daf1": found.benefit / spread, "daf2": scaled.benefit}
    errors = {"daf0": found.error, "daf1": found.error / spread, "daf2": scaled.error}
    return _of_known(sums, scores, errors)


def _of_known(sums: ProbeRecord, scores: dict[str, np.ndarray], errors: dict[str, np.ndarray]) -> Scores:
    known = sums.known
    return Scores(
        {name: np.where(known, values, 0.0) for name, values in scores.items()},
        {name: np.where(known, values, np.inf) for name, values in errors.items()},
    )


def _uniform_scores(sums: ProbeRecord, summary: list[ProbeSize]) -> Scores:
    r"""Return DAF0, DAF1 and DAF2 of all features (equations 7, 10 and 15 of the paper).

    .. math::
        DAF_0(f) &= \mu_f - \bar\mu_f \\
        DAF_1(f) &= (\mu_f - \bar\mu_f) \, K / (|S_f| \sigma_f + |\bar S_f| \bar\sigma_f) \\
        DAF_2(f) &= \theta_f - \bar\theta_f

    with the means and standard deviations of the values over the probes with f and over those without f (barred), and the
    means :math:`\theta` of the values divided by the standard deviation over probes of the same size.
    A feature that is in all probes or in none cannot be compared: all its scores are 0, which means no known benefit or
    harm. If a feature determines the value of all probes, DAF1 would divide by 0. The divisor is then 1e-12 of the largest
    value.
    """
    assert isinstance(sums, ProbeSums)
    n_probes = sums.n_probes
    inside, outside = sums.count, n_probes - sums.count
    known = sums.known
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, other_mean = sums.sum / inside, (sums.total - sums.sum) / outside
        std = np.sqrt(np.maximum(sums.square / inside - mean**2, 0.0))
        other_std = np.sqrt(np.maximum((sums.total_square - sums.square) / outside - other_mean**2, 0.0))
        benefit = np.where(known, mean - other_mean, 0.0)
        spread = np.where(known, inside * std + outside * other_std, 0.0)
        scaled, scaled_error = _scaled_difference(sums, summary)
    divisor = np.maximum(spread, _least_spread(sums) * max(n_probes, 1)) / max(n_probes, 1)
    error = sums.estimate.error
    return _of_known(
        sums,
        {"daf0": benefit, "daf1": benefit / divisor, "daf2": scaled},
        {"daf0": error, "daf1": error / divisor, "daf2": scaled_error},
    )


def _least_spread(sums: ProbeRecord) -> float:
    return max(_ROUNDING * float(np.abs(sums.values).max(initial=0.0)), float(np.finfo(np.float64).tiny))


def _scales(sums: ProbeRecord, summary: list[ProbeSize]) -> np.ndarray:
    """Return the divisor used by DAF2 for the value of each probe."""
    scale = np.ones(sums.plan.n_features + 1)
    for entry in summary:
        scale[entry.size] = entry.scale
    return np.asarray(scale[sums.sizes])


def _scaled_difference(sums: ProbeSums, summary: list[ProbeSize]) -> tuple[np.ndarray, np.ndarray]:
    """Return the difference of the mean scaled values with and without each feature, and its standard error.

    The probes are drawn again.
    """
    again = ProbeSums.replay(sums.plan, sums.values / _scales(sums, summary))
    return again.estimate.benefit, again.estimate.error


def summarise(sums: ProbeRecord) -> list[ProbeSize]:
    """Return mean and standard deviation of the values per size of probe (equations 11 and 12), and the scale of DAF2.

    The scale of size d is the standard deviation over the probes of sizes d - r, ..., d + r, with the smallest reach r for
    which there are at least 10 probes with different values. (With fewer than 10 probes all are used. If all values are
    equal, the scale is 1.)
    """
    values, sizes = sums.values, sums.sizes
    n = np.bincount(sizes)
    mean = np.bincount(sizes, weights=values) / np.maximum(n, 1)
    squares = np.bincount(sizes, weights=(values - mean[sizes]) ** 2)
    least = _ROUNDING * np.abs(values).max(initial=0.0)
    entries = []
    for size in np.flatnonzero(n):
        scale, reach = _pooled(int(size), n, mean, squares, least)
        entries.append(
            ProbeSize(int(size), int(n[size]), float(mean[size]), float(np.sqrt(squares[size] / n[size])), scale, reach)
        )
    return entries


def _pooled(size: int, n: np.ndarray, mean: np.ndarray, squares: np.ndarray, least: float) -> tuple[float, int]:
    """Return the standard deviation of the values over sufficiently many neighbouring sizes, and the reach."""
    for reach in range(len(n)):
        window = slice(max(size - reach, 0), size + reach + 1)
        count = n[window].sum()
        everything = window.start == 0 and window.stop >= len(n)
        if count < MIN_PROBES and not everything:
            continue
        middle = (n[window] * mean[window]).sum() / count
        std = np.sqrt((squares[window] + n[window] * (mean[window] - middle) ** 2).sum() / count)
        if std > least:
            return float(std), reach
        if everything:
            break
    return 1.0, reach
