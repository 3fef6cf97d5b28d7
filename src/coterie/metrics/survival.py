"""Concordance of risks with survival times."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from coterie.inputs.survival import read_survival
from coterie.inputs.targets import read_sample_weight
from coterie.inputs.types import SamplesLike, TargetsLike
from coterie.validation.survival import censoring_weights, linearised_concordance, refuse_entries


def concordance_index(
    y: TargetsLike,
    risk: ArrayLike,
    *,
    sample_weight: SamplesLike = None,
    censoring: TargetsLike = None,
    tau: float | None = None,
) -> float:
    """Return the share of comparable pairs of samples in which the earlier event has the larger risk.

    A pair is comparable if the earlier time is that of an event. An event is earlier than a censored sample of the same time.
    Two events of the same time are not compared. Equal risks count one half. With strata in ``y``, only samples of the same
    stratum are compared. With entry times, a sample is compared with events after its entry only, because it was not at risk
    before (as in R's survival package). The time is O(n log n).

    Parameters
    ----------
    y : structured array, data frame or array-like of shape (n_samples, 2) or (n_samples, 3)
        Times and events, as for :meth:`coterie.GroupDiscoverySurvival.fit`.

    risk : array-like of shape (n_samples,)
        Risks, larger for earlier events.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples. The weight of a pair is the product.

    censoring : as y, default=None
        Samples from which the distribution of the censoring times is estimated, such as the training samples. The result is
        then Uno's index, in which a pair has the inverse squared probability that its earlier sample was not censored before.
        Harrell's index (None) depends on the censoring.

    tau : float, default=None
        Only events before this time count; None for all.

    Returns
    -------
    index : float
        1 for the right order, 0.5 for chance. NaN if no pair is comparable.

    References
    ----------
    Harrell, Lee and Mark (1996); Uno, Cai, Pencina, D'Agostino and Wei (2011).

    Examples
    --------
    >>> from coterie.metrics import concordance_index
    >>> y = [[1.0, 1], [2.0, 0], [3.0, 1], [4.0, 1]]
    >>> concordance_index(y, [0.9, 0.1, 0.2, 0.4])
    0.75
    >>> round(concordance_index(y, [0.9, 0.1, 0.2, 0.4], censoring=y), 3)
    0.571
    """
    values = np.asarray(risk, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"risk must be one finite number per sample, but has the shape {values.shape} or missing entries.")
    targets, _ = read_survival(y, len(values), "concordance_index")
    given = read_sample_weight(sample_weight, targets["time"])
    weight = np.ones(len(values)) if given is None else given
    first = weight
    if censoring is not None:
        known, _ = read_survival(censoring, len(censoring), "concordance_index")  # type: ignore[arg-type]
        for own in (targets, known):
            refuse_entries(own, "concordance_index with censoring", "Omit censoring.")
        first = weight * censoring_weights(targets, weight, known)
    if tau is not None:
        first = np.where(targets["time"] < tau, first, 0.0)
    return linearised_concordance(targets, values, weight, event_weight=first).value
