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


def similarity_unit(view: FeatureView) -> float:
    r"""Return the unit of 1 / C for one class: n times a typical standard deviation of :math:`x \cdot \bar x`.

    With a small C, all samples have the dual variable 1/n, and the weights are the means of the features. To first order, a
    larger C moves the dual variable of sample i by C times the amount by which :math:`x_i \cdot \bar x` falls short of its
    mean. This matters if it is as large as 1/n. A single feature contributes its mean times its standard deviation. The
    typical contribution is a mean weighted by the squared means of the features, because features with large means are
    selected first. The mean of a feature counts as at least its standard error, so that features with mean zero have a unit,
    too.
    """
    largest, widest = (max(values) for values in zip(*view.map_blocks(_largest), strict=True))
    products, shares = totals(view.map_blocks(_similarity_shares, largest, widest))
    return view.moments.total_weight * (products / shares) * largest * widest


def _mean_and_spread(view: FeatureView) -> tuple[np.ndarray, np.ndarray]:
    """Return means (at least their standard errors) and standard deviations of the non-constant features of a view."""
    moments, total = view.moments, view.moments.total_weight
    varies = moments.norm > 0.0
    spread = moments.norm[varies] / np.sqrt(total)
    mean = np.hypot(moments.mean[varies], spread / np.sqrt(total))
    return (mean, spread) if view.scale is None else (mean / view.scale[varies], spread / view.scale[varies])


def _largest(view: FeatureView) -> tuple[float, float]:
    """Return the largest mean and standard deviation of a block."""
    mean, spread = _mean_and_spread(view)
    return float(mean.max(initial=0.0)), float(spread.max(initial=0.0))


def _similarity_shares(view: FeatureView, largest: float, widest: float) -> list[Total]:
    """Return two sums over the features of a block: of contributions times their shares, and of the shares."""
    mean, spread = _mean_and_spread(view)
    share = (mean / largest) ** 2  # products of large features would overflow
    return [exact_sum(share * ((mean / largest) * (spread / widest))), exact_sum(share)]
