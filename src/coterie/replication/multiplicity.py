"""Adjusted p-values: Holm's for the family-wise error rate, Benjamini and Hochberg's for the false discovery rate."""

from __future__ import annotations

import numpy as np


def holm(p_values: np.ndarray) -> np.ndarray:
    """Return Holm's adjusted p-values: a group is significant at a family-wise error rate of at least this value.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.replication.multiplicity import holm
    >>> holm(np.array([0.01, 0.04, 0.03])).round(3)
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p_values, kind="stable")
    n = len(p_values)
    adjusted = np.empty(n)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, p_values[order] * np.arange(n, 0, -1)))
    return adjusted


def benjamini_hochberg(p_values: np.ndarray) -> np.ndarray:
    """Return Benjamini and Hochberg's adjusted p-values: the smallest false discovery rate at which each is significant.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.replication.multiplicity import benjamini_hochberg
    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3)
    array([0.03, 0.04, 0.04])
    """
    order = np.argsort(p_values, kind="stable")[::-1]
    n = len(p_values)
    adjusted = np.empty(n)
    adjusted[order] = np.minimum.accumulate(np.minimum(1.0, p_values[order] * n / np.arange(n, 0, -1)))
    return adjusted
