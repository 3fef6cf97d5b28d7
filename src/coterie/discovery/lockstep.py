"""Paths in lockstep: many searches over the same features, with one pass over these a round for all of them.

Values of C, folds, half-samples and permuted labels make paths that differ in the loss, the weights of the samples or the
labels. They advance round by round together: :class:`~coterie.discovery.scores.SharedPass` scores the features for
all, then every path takes its own step, side by side on the threads. What a path finds is what it would have found
alone: the same support features in the same order, with weights that agree to about ten digits (the moments of dense
features are computed for all weights at once, and so rounded differently).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie._numba import one_blas_thread, run_chunks
from coterie.data.many_moments import many_moments
from coterie.data.view import FeatureView
from coterie.discovery.loop import CuttingPlane
from coterie.discovery.scores import SharedPass

# Bytes of a path for each feature (mean, norm, whether it is free) and each value of a column in its design; and what all
# paths at the same time may take.
_PER_FEATURE = 24
_PER_VALUE = 8
_MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class Path:
    """A search: by which estimator, for which targets, on which samples, how far.

    Attributes
    ----------
    estimator : GroupDiscovery
        Its parameters are those of the search.
    data : Samples
        The features with the labels or targets of this path.
    weight : ndarray of shape (n_samples,) or None
        Weights of the samples. Paths that share an array share the moments of the features.
    n_features : int or None
        Support features to find; None for the estimator's own rule.
    """

    estimator: Any
    data: Any
    weight: np.ndarray | None
    n_features: int | None


def run_together(
    paths: Sequence[Path], *, n_threads: int, on_round: Callable[[int, CuttingPlane], bool] | None = None
) -> tuple[list[CuttingPlane], float]:
    """The finished loops of some paths over one source, and how many times the features were read for their scores.

    Parameters
    ----------
    paths : sequence of Path
        All of them have their state in memory at the same time; see :func:`batches`.
    n_threads : int
        Number of threads; never changes a result.
    on_round : callable, optional
        Called with the position and the loop of each path after each of its rounds, by several threads at the same time;
        a true answer ends the path.
    """
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # nobody sees these models; the one that is fitted in the end warns
        loops = _loops(paths, n_threads)
        shared = SharedPass([view for loop in loops for view in loop.oracle.views], n_threads)
        for position, loop in enumerate(loops):
            if on_round is not None:
                loop.on_round = lambda _, position=position, loop=loop: on_round(position, loop)
        for loop in loops:
            loop.begin()
        while going := [loop for loop in loops if not loop.finished]:
            queries = [loop.queries() for loop in going]
            answers = iter(shared.best([query for own in queries for query in own]))
            scores = [[next(answers) for _ in own] for own in queries]

            def steps(start: int, stop: int, going: Any = going, scores: Any = scores) -> None:
                for loop, own in zip(going[start:stop], scores[start:stop], strict=True):
                    loop.step(own)

            run_chunks(steps, range(len(going) + 1), n_threads)
    return loops, shared.n_passes


def _loops(paths: Sequence[Path], n_threads: int) -> list[CuttingPlane]:
    """The loops of some paths, with one view for all that have the same weights and scale."""
    weights = {id(path.weight): path.weight for path in paths}
    source = paths[0].data.source
    given = {key: weight for key, weight in weights.items() if weight is not None}
    moments: dict[int, Any] = (
        dict(zip(given, many_moments(source, list(given.values()), n_threads=n_threads), strict=True)) if given else {}
    )
    views: dict[tuple[int, Any], FeatureView] = {}
    loops = []
    for path in paths:
        key = id(path.weight), path.estimator.standardize
        loop = path.estimator._loop(path.data, path.weight, path.n_features, moments.get(key[0]), views.get(key))
        views[key] = loop.oracle.view
        loops.append(loop)
    return loops


def batches(items: Sequence[Any], n_features: int, n_values: int = 0) -> Iterator[Sequence[Any]]:
    """Items, a path each, in parts that fit into memory together; ``n_values`` are those of the columns a path selects."""
    size = max(1, _MOST_BYTES // (_PER_FEATURE * n_features + _PER_VALUE * n_values))
    for first in range(0, len(items), size):
        yield items[first : first + size]
