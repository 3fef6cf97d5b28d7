"""How much a curve shakes, and whether one method's curves shake less than another's on the same splits (TPAMI Fig. 8)."""

from __future__ import annotations

from typing import Any

import numpy as np


def shaking(curve: Any) -> float:
    """Mean absolute second difference of a curve at equal steps: 0 for a straight line, 4 d for one that jumps by ±d."""
    return float(np.abs(np.diff(np.asarray(curve, dtype=np.float64), 2)).mean())


def spread(values: Any) -> str:
    """Mean and standard deviation over the splits."""
    return f"{np.mean(values):.4f} ± {np.std(values):.4f}" if len(values) > 1 else f"{values[0]:.4f}"


def paired(ours: Any, theirs: Any) -> str:
    """Mean of the differences over the splits, with their standard error (splits overlap: it is too small, if anything)."""
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    if len(difference) == 1:
        return f"{difference[0]:+.4f}"
    return f"{difference.mean():+.4f} ± {difference.std(ddof=1) / np.sqrt(len(difference)):.4f}"
