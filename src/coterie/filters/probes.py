"""What is found out about samples, a few at a time: here on threads, or by workers of a cluster that open the store.

The few (*probes*) are always the same ones and see all features in the same order, so that neither threads nor workers can
change a digit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.data.source import FeatureSource, Moments

# Samples whose distances to all others are held at a time; fixed, so that threads do not change a sum.
_PROBES = 128

Look = Callable[..., Any]


def by_probes(
    source: FeatureSource, moments: Moments, look: Look, *arguments: Any, probes: np.ndarray, n_threads: int
) -> list[Any]:
    """Answers of ``look(source, moments, some probes, *arguments)``, in order of the probes.

    ``look`` is pure, and one that other processes can import. An argument may be what ``source.prepare`` has returned.
    """
    cuts = [*range(0, len(probes), _PROBES), len(probes)]
    tasks = [(moments, look, probes[a:b], *arguments) for a, b in itertools.pairwise(cuts) if b > a]
    return source.map_tasks(_look, tasks, what="distances between samples", n_threads=n_threads)


def _look(source: FeatureSource, moments: Moments, look: Look, probes: np.ndarray, *arguments: Any) -> Any:
    return look(source, moments, probes, *arguments)
