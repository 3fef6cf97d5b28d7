"""What is found out about samples, a few at a time: here on threads, or by workers of a cluster that open the store.

The few (*probes*) are always the same ones and see all features in the same order, so that neither threads nor workers can
change a digit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from coterie._numba import one_blas_thread, run_chunks
from coterie.cluster.source import DistributedSource
from coterie.cluster.work import moments_and_bad_values
from coterie.data.source import FeatureSource, Moments

# Samples whose distances to all others are held at a time; fixed, so that threads do not change a sum.
_PROBES = 128

Look = Callable[..., Any]


def by_probes(
    source: FeatureSource, moments: Moments, look: Look, *arguments: Any, probes: np.ndarray, n_threads: int
) -> list[Any]:
    """Answers of ``look(source, moments, some probes, *arguments)``, in order of the probes.

    ``look`` is pure, and one that other processes can import. An argument may be what :func:`once` has returned.
    """
    cuts = [*range(0, len(probes), _PROBES), len(probes)]
    if isinstance(source, DistributedSource):
        own = source.recipe(moments_and_bad_values, None).item(0)
        pieces = [(own, look, probes[a:b], *arguments) for a, b in itertools.pairwise(cuts)]
        return source.ask_anybody(_piece, pieces, what="distances between samples")
    answers: dict[int, Any] = {}

    def piece(start: int, stop: int) -> None:
        answers[start] = look(source, moments, probes[start:stop], *arguments)

    with one_blas_thread():
        run_chunks(piece, cuts, n_threads)
    return [answers[start] for start in sorted(answers)]


def once(source: FeatureSource, moments: Moments, function: Look) -> Any:
    """``function(source, moments)``, which all probes need: the value, or on a cluster how each worker makes it once."""
    if isinstance(source, DistributedSource):
        return source.recipe(function, source.recipe(moments_and_bad_values, None).item(0))
    return function(source, moments)


def _piece(source: Any, moments: Moments, look: Look, probes: np.ndarray, *arguments: Any) -> Any:
    with one_blas_thread():
        return look(source, moments, probes, *arguments)
