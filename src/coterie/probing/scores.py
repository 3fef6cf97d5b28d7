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


def daf_scores(sums: ProbeRecord, summary: list[ProbeSize]) -> dict[str, np.ndarray]:
    """Return DAF0, DAF1 and DAF2 of all features, from uniform or adaptive probes."""
    return _adaptive_scores(sums, summary) if isinstance(sums, AdaptiveSums) else _uniform_scores(sums, summary)


def _adaptive_scores(sums: AdaptiveSums, summary: list[ProbeSize]) -> dict[str, np.ndarray]:
    """Return the scores from adaptive probes: benefit, benefit over standard deviation, and benefit of scaled values."""
    known = (sums.count > 0) & (sums.count < sums.n_probes)
    found = sums.estimate
    scaled = sums.benefit_of(sums.values / _scales(sums, summary))
    spread = np.maximum(found.spread, _least_spread(sums))
    scores = {"daf0": found.benefit, "daf1": found.benefit / spread, "daf2": scaled}
    return {name: np.where(known, values, 0.0) for name, values in scores.items()}


def _uniform_scores(sums: ProbeRecord, summary: list[ProbeSize]) -> dict[str, np.ndarray]:
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
    known = (inside > 0) & (outside > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, other_mean = sums.sum / inside, (sums.total - sums.sum) / outside
        std = np.sqrt(np.maximum(sums.square / inside - mean**2, 0.0))
        other_std = np.sqrt(np.maximum((sums.total_square - sums.square) / outside - other_mean**2, 0.0))
        benefit = np.where(known, mean - other_mean, 0.0)
        spread = np.where(known, inside * std + outside * other_std, 0.0)
        theta = _scaled_sums(sums, summary)
        scaled = np.where(known, theta.inside / inside - (theta.total - theta.inside) / outside, 0.0)
    least = _least_spread(sums) * max(n_probes, 1)
    return {"daf0": benefit, "daf1": benefit * n_probes / np.maximum(spread, least), "daf2": scaled}


def _least_spread(sums: ProbeRecord) -> float:
    return max(_ROUNDING * float(np.abs(sums.values).max(initial=0.0)), float(np.finfo(np.float64).tiny))


def _scales(sums: ProbeRecord, summary: list[ProbeSize]) -> np.ndarray:
    """Return the divisor used by DAF2 for the value of each probe."""
    scale = np.ones(sums.plan.n_features + 1)
    for entry in summary:
        scale[entry.size] = entry.scale
    return np.asarray(scale[sums.sizes])


class _Scaled(NamedTuple):
    inside: np.ndarray
    total: float


def _scaled_sums(sums: ProbeSums, summary: list[ProbeSize]) -> _Scaled:
    """Return the sums of value over scale, per feature and over all probes. The probes are drawn again."""
    scaled = sums.values / _scales(sums, summary)
    inside = np.zeros(sums.plan.n_features)
    for number, value in enumerate(scaled):
        inside[sums.plan.draw(number)] += value
    return _Scaled(inside, float(np.cumsum(scaled)[-1]) if len(scaled) else 0.0)


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
