r"""Features that only represent another group: how many are expected to pass the tests by chance.

A feature t without an effect of its own, with a correlation of :math:`\rho` with a feature k that has one, has the statistic
:math:`z_t = \rho z_k + \sqrt{1 - \rho^2}\, e_t`, where :math:`e_t` is its statistic given k and has a standard normal
distribution. It passes the thresholds :math:`z` of the association and :math:`e` of the association given k with the
probability

.. math:: P(|\,|\rho z_k| + \sqrt{1 - \rho^2}\, e_t| \ge z,\; |e_t| \ge e).

The sum over all features is the expected number of such false findings. It depends on how many features are correlated with
those that have an effect. The number of candidates is too small a number of tests, because each candidate is the strongest one
of many features.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import ndtr

from coterie.data.view import FeatureView

# Correlations of fewer standard errors are taken as correlations by chance.
_MIN_STANDARD_ERRORS = 3.0
# Numbers of false findings at which thresholds are compared.
_NUMBERS = np.geomspace(1e-6, 1e4, 101)


class Proxies(NamedTuple):
    """Features that are correlated with a feature with an effect, for one output.

    Attributes
    ----------
    lift : ndarray of shape (n_proxies,)
        The absolute statistic of each feature that is expected by its correlation alone.
    rest : ndarray of shape (n_proxies,)
        The standard deviation of the statistic around it.
    """

    lift: np.ndarray
    rest: np.ndarray

    def expected(self, z: float, e: np.ndarray) -> np.ndarray:
        """Return the expected number of features with statistics of at least z alone, and of at least e given another."""
        needed, opposite = (z - self.lift) / self.rest, (z + self.lift) / self.rest
        # Features that are lifted over the threshold stay above it with moderate errors of the opposite sign: the last terms.
        return _tail_sums(needed, e) + _tail_sums(opposite, e) + len(needed) * ndtr(-e) - _tail_sums(-needed, e)


def _tail_sums(values: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return, for each lower limit, the sum over the values of the normal tail beyond the larger of the two."""
    ordered = np.sort(values)
    sums = np.append(np.cumsum(ndtr(-ordered)[::-1])[::-1], 0.0)
    below = np.searchsorted(ordered, least, side="right")
    return np.asarray(below * ndtr(-least) + sums[below])


def proxies_of(
    view: FeatureView,
    supports: np.ndarray,
    vectors: np.ndarray,
    scale: float,
    z: np.ndarray,
    excluded: np.ndarray,
    n_units: int,
) -> Proxies:
    """Return the features that are correlated with some features with an effect.

    Parameters
    ----------
    view : FeatureView
        The features, with the weights of the null model.
    supports : ndarray of int of shape (n_given,)
        The features with an effect. Each can be a proxy of the others.
    vectors : ndarray of shape (n_samples, n_given)
        Unexplained parts of the features with an effect: products with them, divided by norms and ``scale``, are correlations.
    scale : float
        See ``vectors``.
    z : ndarray of shape (n_given,)
        Statistics of the features with an effect.
    excluded : ndarray of int
        Features that cannot be found: other members of the groups of the given features.
    n_units : int
        Number of independent samples or sample groups.
    """
    if not len(z):
        return Proxies(np.empty(0), np.empty(0))
    least = _MIN_STANDARD_ERRORS / np.sqrt(max(n_units, 1))
    parts = view.map_blocks(_proxies_of_block, supports, vectors, scale, np.abs(z), excluded, least)
    return Proxies(*(np.concatenate([part[k] for part in parts]) for k in range(2)))


def _proxies_of_block(
    view: FeatureView,
    supports: np.ndarray,
    vectors: np.ndarray,
    scale: float,
    z: np.ndarray,
    excluded: np.ndarray,
    least: float,
) -> Proxies:
    """Return the proxies in a block of features: for each feature, by the given feature that lifts its statistic most."""
    first, norm = view.source.first_feature, view.moments.norm
    correlation = np.abs(view.products(vectors)) / np.where(norm > 0.0, norm * scale, np.inf)[:, None]
    correlation[correlation < least] = 0.0
    here = np.flatnonzero((supports >= first) & (supports < first + len(correlation)))
    correlation[supports[here] - first, here] = 0.0
    best = np.argmax(correlation * z, axis=1)
    own = np.minimum(np.take_along_axis(correlation, best[:, None], axis=1)[:, 0], 1.0 - 1e-9)
    inside = excluded[(excluded >= first) & (excluded < first + len(own))] - first
    own[inside] = 0.0
    kept = np.flatnonzero(own)
    return Proxies(own[kept] * z[best[kept]], np.sqrt(1.0 - own[kept] ** 2))


def rivals_of(
    view: FeatureView, vectors: np.ndarray, scale: float, z: np.ndarray, near: Sequence[np.ndarray], least: float
) -> np.ndarray:
    r"""Return the odds that a feature outside of a group carries its signal, from approximate Bayes factors.

    The odds of feature t against support feature j are :math:`\exp\{-\frac{1}{2}(1 - z_j^{-2})(z_j^2 - z_t^2)\}` (Wakefield
    2009, with the prior variance that maximises the Bayes factor of j). They are added up over the features that are
    correlated with j and belong neither to its group nor to a group with an effect.

    Parameters
    ----------
    view, scale
        As in :func:`proxies_of`.
    vectors : ndarray of shape (n_samples, n_groups + 1)
        Unexplained parts of the support features, and the vector whose products with the features are their statistics.
    z : ndarray of shape (n_groups,)
        Statistics of the support features.
    near : sequence of ndarray of int
        For each group, the features that do not compete with it.
    least : float
        Smallest correlation of features that compete.
    """
    if not len(z):
        return np.empty(0)
    parts = view.map_blocks(_rivals_of_block, vectors, scale, np.abs(z), list(near), least)
    return np.asarray(np.sum(parts, axis=0))


def _rivals_of_block(
    view: FeatureView, vectors: np.ndarray, scale: float, z: np.ndarray, near: Sequence[np.ndarray], least: float
) -> np.ndarray:
    """Return the odds of the features of a block, added up for each group."""
    first, norm = view.source.first_feature, view.moments.norm
    found = np.abs(view.products(vectors)) / np.where(norm > 0.0, norm * scale, np.inf)[:, None]
    correlation, other = found[:, :-1], found[:, -1]
    odds = np.zeros(len(z))
    for k, own in enumerate(near):
        competing = correlation[:, k] >= least
        competing[own[(own >= first) & (own < first + len(competing))] - first] = False
        shrinkage = 1.0 - 1.0 / max(z[k] ** 2, 1.0)
        odds[k] = np.exp(0.5 * shrinkage * np.minimum(other[competing] ** 2 - z[k] ** 2, 0.0)).sum()
    return odds


def false_by_proxy(proxies: Sequence[Proxies], n_features: int, given: np.ndarray) -> np.ndarray:
    """Return, for p-values given other features, the number of false findings at which both thresholds admit them.

    At the number t, the threshold of the association is that at which t of ``n_features`` without any association are
    expected. The threshold given other features is then the smallest one at which t proxies are expected.

    Parameters
    ----------
    proxies : sequence of Proxies
        The proxies of each output.
    n_features : int
        Number of features.
    given : ndarray
        P-values of candidates given other features.
    """
    e = stats.norm.isf(np.maximum(given, np.finfo(float).tiny) / 2.0)
    result = np.zeros(len(given))
    for number, following in pairwise(_NUMBERS):
        z = float(stats.norm.isf(min(number / (n_features * len(proxies)), 1.0) / 2.0))
        rejected = sum(own.expected(z, e) for own in proxies) > number
        result[rejected] = following
    return result
