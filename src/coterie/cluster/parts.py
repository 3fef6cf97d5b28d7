"""What happens on a worker: it opens its part of the features, keeps what it has computed about them, and answers.

A task is a pure function of the part (the address of a store and a range of features, or an array), a :class:`Call`, and
shared values. What a call needs of each feature (moments, entropies, scores) is given as a :class:`Recipe`, which says how to
compute it. A worker that has computed it before has it in its memory; any other one computes it again.
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

# Values that a part keeps, at most: moments of many half-samples, views, entropies.
_KEPT = 512
# Parts that a worker has open at most.
_OPEN = 256

# A part of the features as a worker has it open.
PartSource = DenseSource | SparseSource


@dataclass(frozen=True)
class Ref:
    """A shared value: on the client with its handle and the value itself, in a task by its name alone."""

    token: str
    handle: Any = field(default=None, compare=False, repr=False)
    value: Any = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> Any:
        return Ref, (self.token,)


@dataclass(frozen=True)
class Recipe:
    """How a value of a part is made: ``function(source, *arguments)``, where arguments may be recipes, references or lists.

    A value that ``passes`` may be as large as the features: a part keeps no more than the last one of them.
    """

    token: str
    function: Callable[..., Any] = field(compare=False)
    arguments: tuple[Any, ...] = field(compare=False)
    passes: bool = False

    def item(self, place: int) -> Recipe:
        return Recipe(f"{self.token}[{place}]", _item, (self, place))


def recipe_of(function: Callable[..., Any], *arguments: Any) -> Recipe:
    """A recipe whose name tells what it makes: the same arguments, the same name."""
    text = "|".join([f"{function.__module__}.{function.__qualname__}", *(_token(one) for one in arguments)])
    return Recipe(hashlib.sha256(text.encode()).hexdigest()[:24], function, arguments)


def _token(value: Any) -> str:
    if isinstance(value, (Ref, Recipe)):
        return value.token
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_token(one) for one in value) + "]"
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes() + str(value.dtype).encode()).hexdigest()
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


class Call(NamedTuple):
    """What a task computes: ``function(source, *arguments)``; it is not kept."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    version: str


class StorePart(NamedTuple):
    """Some features of a store that all workers can open; ``offset`` is what the store's first feature is in the whole."""

    address: str
    check: str
    first: int
    last: int
    offset: int = 0


class ArrayPart(NamedTuple):
    """Some features that Dask holds as an array; the array itself comes with the task."""

    name: str
    check: str
    first: int
    last: int


class Answer(NamedTuple):
    """What a task returns: the value, and who has computed it."""

    value: Any
    worker: str | None


def answer(part: StorePart | ArrayPart, array: Any, call: Call, shared: dict[str, Any]) -> Answer:
    """Do a call on a part; the whole of a task."""
    if call.version != this_version():
        raise ClusterError(
            f"The workers have coterie {this_version()}, this process has {call.version}. Install the same version on all of "
            "them."
        )
    opened = _opened(part, array)
    try:
        return Answer(call.function(opened.source, *opened.resolved(call.arguments, shared)), _own_address())
    finally:
        opened.source.release()


def references(value: Any) -> Iterator[Ref]:
    """All shared values that something needs."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, (Recipe, Call)):
        yield from references(value.arguments)
    elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        for one in value:
            yield from references(one)


class _Part:
    """An opened part and what is kept about it."""

    def __init__(self, source: PartSource) -> None:
        self.source = source
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._passing: tuple[str, Any] = ("", None)
        self._lock = threading.RLock()

    def resolved(self, value: Any, shared: dict[str, Any]) -> Any:
        """A value, with recipes made and references followed."""
        if isinstance(value, Ref):
            return shared[value.token]
        if isinstance(value, Recipe):
            return self._made(value, shared)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self.resolved(one, shared) for one in value)
        return value

    def _made(self, recipe: Recipe, shared: dict[str, Any]) -> Any:
        with self._lock:
            if recipe.token in self._kept:
                self._kept.move_to_end(recipe.token)
                return self._kept[recipe.token]
            if recipe.token == self._passing[0]:
                return self._passing[1]
            if recipe.passes:
                self._passing = ("", None)  # before there are two
        made = recipe.function(self.source, *self.resolved(recipe.arguments, shared))
        with self._lock:
            if recipe.passes:
                self._passing = (recipe.token, made)
                return made
            self._kept[recipe.token] = made
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made


_parts: OrderedDict[tuple[Any, ...], _Part] = OrderedDict()
_lock = threading.Lock()


def _opened(part: StorePart | ArrayPart, array: Any) -> _Part:
    key = tuple(part)
    with _lock:
        known = _parts.get(key)
        if known is not None:
            _parts.move_to_end(key)
            return known
    fresh = _Part(_store_source(part) if isinstance(part, StorePart) else _array_source(part, array))
    with _lock:
        fresh = _parts.setdefault(key, fresh)
        while len(_parts) > _OPEN:
            _parts.popitem(last=False)
    return fresh


def _store_source(part: StorePart) -> PartSource:
    store = check_same_store(part.address, part.check)
    source = store.part(part.first - part.offset, part.last - part.offset, release=_has_limit())
    source.first_feature = part.first
    return source


def check_same_store(address: str, check: str) -> Store:
    """The store of an address, which must be the one that the client has seen."""
    where = "Put the store where all workers see the same one (a shared folder, or an s3:// address)."
    try:
        store = Store(address)
    except FileNotFoundError as error:
        raise ClusterError(f"{address}: the worker does not see this store. {where}") from error
    if str(store.header.get("header_crc32")) != check:
        raise ClusterError(f"{address}: the worker sees another store under this name than this process. {where}")
    return store


def _array_source(part: ArrayPart, array: object) -> PartSource:
    source: PartSource
    if sparse.issparse(array):
        source = SparseSource(canonical_csc(array))
    elif isinstance(array, np.ndarray):
        source = DenseSource(np.asfortranarray(array))  # as columns are everywhere: other layouts are summed in another order
    else:
        raise ValueError(f"The Dask array has blocks of type {type(array).__name__}; NumPy and SciPy's sparse are known.")
    source.first_feature = part.first
    return source


def _item(_: PartSource, values: Any, place: int) -> Any:
    return values[place]


def _worker() -> Any:
    """Dask's worker, if this process is one."""
    try:
        from distributed import get_worker

        return get_worker()
    except (ImportError, ValueError):
        return None


def is_wanted() -> bool:
    """Whether the task of this thread is still needed: Dask does not end a running task."""
    worker = _worker()
    if worker is None:
        return True
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state not in ("cancelled", "resumed")


def threads_of_worker() -> int:
    """Tasks that run at the same time in this process."""
    worker = _worker()
    return 1 if worker is None else max(1, int(worker.state.nthreads))


def _own_address() -> str | None:
    worker = _worker()
    return None if worker is None else str(worker.address)


def _has_limit() -> bool:
    """Whether the memory of this worker is limited."""
    worker = _worker()
    manager = getattr(worker, "memory_manager", None)
    return bool(getattr(manager, "memory_limit", None))


def method(source: PartSource, name: str, *arguments: Any) -> Any:
    """The answer of a method of the part's source."""
    return getattr(source, name)(*arguments)


def summary_of(source: PartSource, both: tuple[Moments, BadValues]) -> tuple[int, bool, BadValues]:
    """What the client is told about the moments."""
    return int(np.count_nonzero(both[0].norm)), both[0].nonnegative, both[1]


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


def strong_of(
    source: PartSource, query: StrongQuery, moments: Moments, scores: np.ndarray | None, shift: float, norm: float
) -> tuple[StrongPairs, np.ndarray, np.ndarray]:
    """Strong pairs of a part, and the means and norms of their features."""
    exemplar = None if scores is None else Exemplar(scores, shift, norm)
    found = source.strong_products(replace(query, exemplar=exemplar), moments)
    own = found.feature
    return found._replace(feature=own + source.first_feature), moments.mean[own], moments.norm[own]


def types_of(source: PartSource) -> tuple[np.dtype, tuple[np.dtype, np.dtype]]:
    """Types of the values and of the indices."""
    if isinstance(source, SparseSource):
        indptr, indices, values = source.arrays
        return values.dtype, (indptr.dtype, indices.dtype)
    return source.array.dtype, (np.dtype(np.int64), np.dtype(np.int64))


def slice_of(moments: Moments, first: int, last: int) -> Moments:
    """The moments of a part."""
    return replace(moments, mean=moments.mean[first:last], norm=moments.norm[first:last])
