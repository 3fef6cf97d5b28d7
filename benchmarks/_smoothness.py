"""Roughness of curves, and comparison of two methods' curves on the same splits (TPAMI Fig. 8)."""

from __future__ import annotations

from typing import Any

import numpy as np


def roughness(curve: Any) -> float:
    """Return the mean absolute second difference at equal steps: 0 for a line, 4 d for a curve that alternates by ±d."""
    return float(np.abs(np.diff(np.asarray(curve, dtype=np.float64), 2)).mean())


def spread(values: Any) -> str:
    """Return mean and standard deviation over the splits."""
    return f"{np.mean(values):.4f} ± {np.std(values):.4f}" if len(values) > 1 else f"{values[0]:.4f}"


def paired(ours: Any, theirs: Any) -> str:
    """Return the mean difference over the splits and its standard error (too small, if anything, because splits overlap)."""
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    if len(difference) == 1:
        return f"{difference[0]:+.4f}"
    return f"{difference.mean():+.4f} ± {difference.std(ddof=1) / np.sqrt(len(difference)):.4f}"
