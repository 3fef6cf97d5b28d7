"""Tasks on a worker, which opens its part of the features, caches values computed from them, and returns results.

A task is a pure function of the part (the path or URL of a store and a range of features, or an array), a :class:`Call`, and
shared values. Values per feature that a call requires (moments, entropies, scores) are passed as a :class:`Recipe`, which
defines how to compute them. A worker that has computed them before has them in its cache. Any other worker computes them
again.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie._numba import one_blas_thread
from coterie.cluster import ClusterError
from coterie.cluster.dask_engine import this_version
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.source import Exemplar, Moments, StrongPairs, StrongQuery
from coterie.data.store.reading import Store
from coterie.data.validity import BadValues, canonical_csc
from coterie.data.view import FeatureView

# Maximum number of cached values per part: moments of many half-samples, views, entropies.
_MAX_VALUES = 512
# Maximum number of cached values that do not depend on the part: residuals, which have one entry per sample.
_MAX_COMMON_VALUES = 2
# Maximum number of open parts per worker.
_MAX_OPEN_PARTS = 256

# A part of the features, opened by a worker.
PartSource = DenseSource | SparseSource


@dataclass(frozen=True)
class Ref:
    """Reference to a shared value: on the client with its future and the value, in a task only with its token."""

    token: str
    handle: Any = field(default=None, compare=False, repr=False)
    value: Any = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> Any:
        return Ref, (self.token,)


@dataclass(frozen=True)
class Recipe:
    """Deferred call ``function(source, *arguments)`` on a part; arguments may be recipes, references or lists.

    A ``large`` value may be as large as the features, so a part caches only the last one of them. A ``common`` value does not
    depend on the part, so all parts of a process share it.
    """

    token: str
    function: Callable[..., Any] = field(compare=False)
    arguments: tuple[Any, ...] = field(compare=False)
    large: bool = False
    common: bool = False

    def item(self, place: int) -> Recipe:
        return Recipe(f"{self.token}[{place}]", _item, (self, place))


def recipe_of(function: Callable[..., Any], *arguments: Any) -> Recipe:
    """Return a recipe whose token is a digest of the function and its arguments."""
    text = "|".join([f"{function.__module__}.{function.__qualname__}", *(_token(argument) for argument in arguments)])
    return Recipe(hashlib.sha256(text.encode()).hexdigest()[:24], function, arguments)


def _token(value: Any) -> str:
    if isinstance(value, (Ref, Recipe)):
        return value.token
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_token(item) for item in value) + "]"
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes() + str(value.dtype).encode()).hexdigest()
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


class Call(NamedTuple):
    """Call ``function(source, *arguments)`` of a task, whose result is not cached."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    version: str


class StorePart(NamedTuple):
    """Some features of a store that all workers can open. ``offset`` is the index of the store's first feature."""

    address: str
    check: str
    first: int
    last: int
    offset: int = 0


class ArrayPart(NamedTuple):
    """Some features that Dask holds as an array, which is an argument of the task."""

    name: str
    check: str
    first: int
    last: int


class Answer(NamedTuple):
    """Result of a task: the value, and the worker that computed it."""

    value: Any
    worker: str | None


def run_call(part: StorePart | ArrayPart, array: Any, call: Call, shared: dict[str, Any]) -> Answer:
    """Run a call on a part. This is the function of every task."""
    if call.version != this_version():
        raise ClusterError(
            f"The workers have coterie {this_version()}, but this process has {call.version}. Install the same version "
            "everywhere."
        )
    opened = _opened(part, array)
    try:
        return Answer(call.function(opened.source, *opened.resolve(call.arguments, shared)), _worker_address())
    finally:
        opened.source.release()


def references(value: Any) -> Iterator[Ref]:
    """Yield all references in a value."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, (Recipe, Call)):
        yield from references(value.arguments)
    elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        for item in value:
            yield from references(item)


class _Part:
    """Open part with its cached values."""

    def __init__(self, source: PartSource) -> None:
        self.source = source
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._large: tuple[str, Any] = ("", None)
        self._lock = threading.RLock()

    def resolve(self, value: Any, shared: dict[str, Any]) -> Any:
        """Return a value with recipes evaluated and references resolved."""
        if isinstance(value, Ref):
            return shared[value.token]
        if isinstance(value, Recipe):
            return self._evaluate(value, shared)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self.resolve(item, shared) for item in value)
        return value

    def _evaluate(self, recipe: Recipe, shared: dict[str, Any]) -> Any:
        if recipe.common:
            return _common_value(recipe.token, lambda: recipe.function(self.source, *self.resolve(recipe.arguments, shared)))
        with self._lock:
            if recipe.token in self._kept:
                self._kept.move_to_end(recipe.token)
                return self._kept[recipe.token]
            if recipe.token == self._large[0]:
                return self._large[1]
            if recipe.large:
                self._large = ("", None)  # release the old value before computing the new one
        result = recipe.function(self.source, *self.resolve(recipe.arguments, shared))
        with self._lock:
            if recipe.large:
                self._large = (recipe.token, result)
                return result
            self._kept[recipe.token] = result
            while len(self._kept) > _MAX_VALUES:
                self._kept.popitem(last=False)
        return result


_parts: OrderedDict[tuple[Any, ...], _Part] = OrderedDict()
_lock = threading.Lock()
# Values common to all parts of this process.
_common: OrderedDict[str, Any] = OrderedDict()
_common_lock = threading.Lock()


def _common_value(token: str, compute: Callable[[], Any]) -> Any:
    """Return a value that does not depend on the part. Several threads wait for the first of them to compute it."""
    with _common_lock:
        if token not in _common:
            while len(_common) >= _MAX_COMMON_VALUES:  # before the new value needs its memory
                _common.popitem(last=False)
            _common[token] = compute()
        _common.move_to_end(token)
        return _common[token]


def _opened(part: StorePart | ArrayPart, array: Any) -> _Part:
    key = tuple(part)
    with _lock:
        known = _parts.get(key)
        if known is not None:
            _parts.move_to_end(key)
            return known
    opened = _Part(_store_source(part) if isinstance(part, StorePart) else _array_source(part, array))
    with _lock:
        opened = _parts.setdefault(key, opened)
        while len(_parts) > _MAX_OPEN_PARTS:
            _parts.popitem(last=False)
    return opened


def _store_source(part: StorePart) -> PartSource:
    store = check_same_store(part.address, part.check)
    source = store.part(part.first - part.offset, part.last - part.offset, release=_has_memory_limit())
    source.first_feature = part.first
    return source


def check_same_store(address: str, check: str) -> Store:
    """Open a store, which must have the header checksum of the store that the client opened."""
    remedy = "Move the store to a location that all workers share (a shared folder, or an s3:// URL)."
    try:
        store = Store(address)
    except FileNotFoundError as error:
        raise ClusterError(f"{address}: the worker cannot find this store. {remedy}") from error
    if str(store.header.get("header_crc32")) != check:
        raise ClusterError(f"{address}: the store on the worker differs from that of this process. {remedy}")
    return store


def _array_source(part: ArrayPart, array: object) -> PartSource:
    source: PartSource
    if sparse.issparse(array):
        source = SparseSource(canonical_csc(array))
    elif isinstance(array, np.ndarray):
        source = DenseSource(np.asfortranarray(array))  # kernels sum other layouts in another order
    else:
        raise ValueError(
            f"The Dask array has blocks of type {type(array).__name__}. Only NumPy arrays and SciPy sparse matrices are "
            "supported."
        )
    source.first_feature = part.first
    return source


def _item(_: PartSource, values: Any, place: int) -> Any:
    return values[place]


def _worker() -> Any:
    """Return the Dask worker of this process, or None."""
    try:
        from distributed import get_worker

        return get_worker()
    except (ImportError, ValueError):
        return None


def is_task_needed() -> bool:
    """Return True if the task of this thread is still needed, because Dask does not stop a running task."""
    worker = _worker()
    if worker is None:
        return True
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state not in ("cancelled", "resumed")


def threads_of_worker() -> int:
    """Return the number of concurrent tasks in this process."""
    worker = _worker()
    return 1 if worker is None else max(1, int(worker.state.nthreads))


def _worker_address() -> str | None:
    worker = _worker()
    return None if worker is None else str(worker.address)


def _has_memory_limit() -> bool:
    """Return True if the memory of this worker is limited."""
    worker = _worker()
    manager = getattr(worker, "memory_manager", None)
    return bool(getattr(manager, "memory_limit", None))


def method(source: PartSource, name: str, *arguments: Any) -> Any:
    """Call a method of the part's source."""
    return getattr(source, name)(*arguments)


def summary_of(source: PartSource, both: tuple[Moments, BadValues]) -> tuple[int, bool, BadValues]:
    """Return the summary of the moments that is sent to the client."""
    return int(np.count_nonzero(both[0].norm)), both[0].nonnegative, both[1]


def summaries_of(source: PartSource, moments: list[Moments]) -> list[tuple[int, bool]]:
    """Return the summaries of several moments that are sent to the client."""
    return [(int(np.count_nonzero(each.norm)), each.nonnegative) for each in moments]


def moment_arrays(source: PartSource, moments: Moments) -> list[np.ndarray]:
    """Return means and norms."""
    return [moments.mean, moments.norm]


def part_view(
    source: PartSource, moments: Moments, weight: np.ndarray | None, scale: np.ndarray | None, centred: bool
) -> FeatureView:
    """Return the view of a part."""
    return FeatureView(source, moments, weight, scale, centred)


def on_block(source: PartSource, function: Callable[..., Any], view: FeatureView | None, *arguments: Any) -> Any:
    """Call a function on a part, or on its view."""
    return function(source if view is None else view, *arguments)


def on_whole(source: PartSource, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on all features, with one BLAS thread because a worker runs one task per thread."""
    with one_blas_thread():
        return function(source, *arguments)


def arrays_of(source: PartSource, function: Callable[..., Any], view: FeatureView, *arguments: Any) -> Any:
    """Return arrays with one entry per feature."""
    found = function(view, *arguments)
    return found if isinstance(found, tuple) else [found]


def length_of(source: PartSource, arrays: Sequence[np.ndarray]) -> int:
    """Return the number of arrays; negative if the function returned a single array instead of a tuple."""
    return len(arrays) if isinstance(arrays, tuple) else -len(arrays)


def products_of(source: PartSource, vectors: np.ndarray, centre: np.ndarray | None, features: np.ndarray | None) -> np.ndarray:
    """Return products of the part's features with vectors."""
    return source.products(vectors, centre=centre, features=features)


def strong_of(
    source: PartSource, query: StrongQuery, moments: Moments, scores: np.ndarray | None, shift: float, norm: float
) -> tuple[StrongPairs, np.ndarray, np.ndarray]:
    """Return the strong pairs of a part, and the means and norms of their features."""
    exemplar = None if scores is None else Exemplar(scores, shift, norm)
    found = source.strong_products(query.with_exemplar(exemplar), moments)  # all parts share the columns by sample
    features = found.feature
    return found._replace(feature=features + source.first_feature), moments.mean[features], moments.norm[features]


def types_of(source: PartSource) -> tuple[np.dtype, tuple[np.dtype, np.dtype]]:
    """Return the types of the values and of the indices."""
    if isinstance(source, SparseSource):
        indptr, indices, values = source.arrays
        return values.dtype, (indptr.dtype, indices.dtype)
    return source.array.dtype, (np.dtype(np.int64), np.dtype(np.int64))


def slice_of(moments: Moments, first: int, last: int) -> Moments:
    """Return the moments of a part."""
    return replace(moments, mean=moments.mean[first:last], norm=moments.norm[first:last])
