"""Weight of the loss relative to the scale of the features."""

from __future__ import annotations

import numpy as np

from coterie._parameters import LARGEST_FACTOR, SMALLEST_FACTOR
from coterie.data.view import FeatureView, Total, exact_sum, totals


def relative_penalty(factor: float, variance: float) -> float:
    """Return C as a multiple of the reciprocal of a variance, which does not depend on the unit of the features."""
    return float(np.clip(factor / variance, SMALLEST_FACTOR, LARGEST_FACTOR))


def mean_variance(view: FeatureView) -> float:
    """Return the geometric mean of the variances of the non-constant features of a view (about zero if it is not centred).

    A few features with large values hardly change it. With a mean dominated by them, the other features would have the
    weight 0. The result is 1 for standardised features.
    """
    if view.centred and view.scale is not None:
        return 1.0  # exactly, without rounding errors
    lowest, highest = view.score_bound_range
    if lowest == highest:
        return highest**2 / view.moments.total_weight
    places, count = totals(view.map_blocks(_places, lowest, highest))
    return float((lowest * (highest / lowest) ** (places / count)) ** 2) / view.moments.total_weight


def _places(view: FeatureView, lowest: float, highest: float) -> list[Total]:
    """Return the sum of the logarithms of the features of a block, from 0 (lowest) to 1 (highest), and their number."""
    bounds = view.score_bounds.values
    share = np.log(bounds[bounds > 0.0] / lowest) / np.log(highest / lowest)
    return [exact_sum(np.clip(share, 0.0, 1.0)), exact_sum(np.ones(len(share)))]


def typical_variance(view: FeatureView) -> float:
    """Return a mean of the variances of the features of a view (about zero if it is not centred).

    The variances are weighted by themselves, because the features that vary most are selected first. The result is 1 for
    standardised features.
    """
    if view.centred and view.scale is not None:
        return 1.0  # exactly, without rounding errors
    highest = view.score_bound_range[1]
    squares, total = totals(view.map_blocks(_shares, highest))
    return squares / total * highest**2 / view.moments.total_weight


def _shares(view: FeatureView, highest: float) -> list[Total]:
    """Return two sums over the features of a block: of their squared shares of the highest variance, and of the shares."""
    share = (view.score_bounds.values / highest) ** 2  # fourth powers of large values would overflow
    return [exact_sum(share * share), exact_sum(share)]
