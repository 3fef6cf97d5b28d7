"""What is counted of a piece of the pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Counted(NamedTuple):
    """Pairs of a piece that reach each edge, how much of the work that was, and a figure for whoever watches."""

    at_least: np.ndarray
    done: int
    figure: int
