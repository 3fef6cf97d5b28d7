"""The filter scores by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from coterie.filters.fisher import fisher_score
from coterie.filters.information_gain import information_gain_score
from coterie.filters.laplacian import laplacian_score
from coterie.filters.lgd import lgd_score
from coterie.filters.mcfs import mcfs_score
from coterie.filters.relieff import relieff_score
from coterie.filters.variance import variance_score


class Score(NamedTuple):
    """A filter score: its function, whether it learns from labels, and whether it can be negative."""

    function: Callable[..., np.ndarray]
    supervised: bool
    signed: bool


SCORES = {
    "fisher": Score(fisher_score, supervised=True, signed=False),
    "information_gain": Score(information_gain_score, supervised=True, signed=False),
    "laplacian": Score(laplacian_score, supervised=False, signed=True),
    "lgd": Score(lgd_score, supervised=False, signed=False),
    "mcfs": Score(mcfs_score, supervised=False, signed=False),
    "relieff": Score(relieff_score, supervised=True, signed=True),
    "variance": Score(variance_score, supervised=False, signed=False),
}
