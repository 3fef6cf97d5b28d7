"""What the workers do for :class:`~coterie.cluster.DistributedSource`: functions of a part's source and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie._numba import one_blas_thread
from coterie.cluster.parts import PartSource
from coterie.data.bad_values import BadValues
from coterie.data.memory import SparseSource
from coterie.data.source import Columns, Exemplar, Moments, StrongQuery
from coterie.data.view import FeatureView


def moments_and_bad_values(source: PartSource, weight: np.ndarray | None) -> tuple[Moments, BadValues]:
    """Moments of a part, and where its values are not finite."""
    return source.moments_and_bad_values(weight)


def summary_of(source: PartSource, both: tuple[Moments, BadValues]) -> tuple[int, bool, BadValues]:
    """What the client is told about the moments."""
    return int(np.count_nonzero(both[0].norm)), both[0].nonnegative, both[1]


def many_moments_of(source: PartSource, weights: list[np.ndarray]) -> list[Moments]:
    """Moments for many sample weights."""
    return source.many_moments(weights)


def summaries_of(source: PartSource, moments: list[Moments]) -> list[tuple[int, bool]]:
    """What the client is told about them."""
    return [(int(np.count_nonzero(one.norm)), one.nonnegative) for one in moments]


def moment_arrays(source: PartSource, moments: Moments) -> list[np.ndarray]:
    """Means and norms."""
    return [moments.mean, moments.norm]


def part_view(
    source: PartSource, moments: Moments, weight: np.ndarray | None, scale: np.ndarray | None, centred: bool
) -> FeatureView:
    """A part of a view."""
    return FeatureView(source, moments, weight, scale, centred)


def on_block(source: PartSource, function: Callable[..., Any], view: FeatureView | None, *arguments: Any) -> Any:
    """A call on a part, or on its view."""
    return function(source if view is None else view, *arguments)


def on_whole(source: PartSource, function: Callable[..., Any], *arguments: Any) -> Any:
    """A call on all features; with one thread of BLAS, since a worker runs one task per thread."""
    with one_blas_thread():
        return function(source, *arguments)


def arrays_of(source: PartSource, function: Callable[..., Any], view: FeatureView, *arguments: Any) -> Any:
    """Arrays with one entry per feature."""
    found = function(view, *arguments)
    return found if isinstance(found, tuple) else [found]


def length_of(source: PartSource, arrays: Sequence[np.ndarray]) -> int:
    """Number of arrays; negative where the function returns one that is not in a tuple."""
    return len(arrays) if isinstance(arrays, tuple) else -len(arrays)


def products_of(source: PartSource, vectors: np.ndarray, centre: np.ndarray | None, features: np.ndarray | None) -> np.ndarray:
    """Products with vectors."""
    return source.products(vectors, centre=centre, features=features)


class PartPairs(NamedTuple):
    """Strong pairs of a part, with the moments of their features."""

    feature: np.ndarray
    position: np.ndarray
    product: np.ndarray
    n_evaluated: int
    n_read: int
    mean: np.ndarray
    norm: np.ndarray


def strong_of(
    source: PartSource, query: StrongQuery, moments: Moments, scores: np.ndarray | None, shift: float, norm: float
) -> PartPairs:
    """Large products with a few columns."""
    exemplar = None if scores is None else Exemplar(scores, shift, norm)
    found = source.strong_products(replace(query, exemplar=exemplar), moments)
    own = found.feature
    rest = found.position, found.product, found.n_evaluated, found.n_read
    return PartPairs(own + source.first_feature, *rest, moments.mean[own], moments.norm[own])


def columns_of(source: PartSource, features: np.ndarray) -> Columns:
    """Some columns."""
    return source.columns(features)


def types_of(source: PartSource) -> tuple[np.dtype, tuple[np.dtype, np.dtype]]:
    """Types of the values and of the indices."""
    if isinstance(source, SparseSource):
        indptr, indices, values = source.arrays
        return values.dtype, (indptr.dtype, indices.dtype)
    return source.array.dtype, (np.dtype(np.int64), np.dtype(np.int64))


def slice_of(moments: Moments, first: int, last: int) -> Moments:
    """The moments of a part."""
    return replace(moments, mean=moments.mean[first:last], norm=moments.norm[first:last])
