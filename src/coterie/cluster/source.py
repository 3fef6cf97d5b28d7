"""Feature source whose columns are held by the workers of a cluster."""

from __future__ import annotations

import itertools
import threading
import uuid
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from coterie.cluster.dask_engine import DaskEngine, this_version
from coterie.cluster.parts import (
    Answer,
    ArrayPart,
    Call,
    Recipe,
    Ref,
    StorePart,
    arrays_of,
    length_of,
    method,
    moment_arrays,
    on_block,
    on_whole,
    part_view,
    products_of,
    recipe_of,
    references,
    run_call,
    slice_of,
    strong_of,
    summaries_of,
    summary_of,
    types_of,
)
from coterie.cluster.residuals import ResidualTables
from coterie.cluster.values import ClusterMoments, ClusterSharedTop, ClusterTop, FeatureValues, SparseValues, Table, rows_of
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.source import Columns, FeatureSource, Moments, StrongPairs, StrongQuery
from coterie.data.store.reading import PathLike, Store
from coterie.data.top import TopQuery
from coterie.data.validity import BadValues
from coterie.data.view import FeatureView

if TYPE_CHECKING:
    from distributed import Client, Future

# Size of the column cache of the client, and maximum number of columns that are fetched to compute products in this process.
_CACHE_BYTES = 1 << 28
_MAX_FETCHED_COLUMNS = 4096
# Number of shared values that are kept although they may not be needed again, such as the residual of a round.
_N_RECENT = 4
# Maximum size of arguments that are sent with every task. Larger arguments are shared.
_MAX_INLINE_BYTES = 1 << 10
# A column in the cache: its values, or the rows and values of its entries.
Column: TypeAlias = "np.ndarray | tuple[np.ndarray, np.ndarray]"


class DistributedSource(FeatureSource):
    """Features of a store or a Dask array, held in parts by the workers of a cluster.

    This is a :class:`~coterie.data.FeatureSource`. Every estimator of group discovery gives bit-identical results on it and
    on the same features in memory. Only the best features of each part, the columns that are examined, and residuals are
    transferred.

    Parameters
    ----------
    engine : DaskEngine
        Engine of the cluster.
    parts : sequence of StorePart or ArrayPart
        Parts, in feature order.
    arrays : sequence
        Future of the array of each part; None for a part of a store.
    shape : tuple of int
        Number of samples and number of features.
    is_sparse : bool
        Whether columns are returned as CSC.
    feature_names : sequence of str, optional
        One name per feature.

    See Also
    --------
    DistributedSource.of_store : Open a store on a cluster.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> import numpy as np, tempfile
    >>> from coterie.cluster import DistributedSource
    >>> from coterie.data import write_store
    >>> with Client(processes=False, dashboard_address=None) as client, tempfile.TemporaryDirectory() as folder:
    ...     source = DistributedSource.of_store(write_store(f"{folder}/x.store", np.eye(4)), client)
    ...     source.shape, source.moments().mean[[0, 3]]
    ((4, 4), array([0.25, 0.25]))
    """

    shape = (0, 0)
    is_sparse = False
    feature_names: Sequence[str] | None = None

    def __init__(
        self,
        engine: DaskEngine,
        parts: Sequence[StorePart | ArrayPart],
        arrays: Sequence[Future | None],
        shape: tuple[int, int],
        is_sparse: bool,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.engine = engine
        self.parts = list(parts)
        self.shape = shape
        self.is_sparse = is_sparse
        self.feature_names = feature_names
        self._arrays = list(arrays)
        self._starts = np.array([part.first for part in parts] + [shape[1]], dtype=np.int64)
        workers = engine.workers
        # Preferred workers. Dask places arrays; a part of a store should run on the worker that opened it.
        self._homes: list[str | None] = [
            workers[k % len(workers)] if workers and array is None else None for k, array in enumerate(arrays)
        ]
        self._columns: OrderedDict[int, Column] = OrderedDict()
        self._columns_bytes = 0
        self._shared: dict[int, tuple[Any, Any]] = {}
        self._recent: deque[Ref] = deque(maxlen=_N_RECENT)
        self._residuals = ResidualTables(shape[0], self.share)
        self._lock = threading.RLock()
        self.round_trips = 0

    @classmethod
    def of_store(
        cls, store: PathLike | Store, client: Client, *, n_parts: int | None = None, **options: float
    ) -> DistributedSource:
        """Open the features of a store that all workers of a Dask cluster can open.

        Parameters
        ----------
        store : path-like, str or Store
            Store: a folder with the same path on all workers, or a URL (``s3://bucket/x.store``).
        client : distributed.Client
            Client of the cluster.
        n_parts : int, default=None
            Number of parts. By default the number of threads of all workers, or more if parts would exceed 512 MB.
            Results do not depend on it.
        **options
            Options of :class:`DaskEngine`: ``limit``, ``patience`` and ``wait``.
        """
        from coterie.cluster.opening import store_source

        return store_source(store, client, n_parts=n_parts, **options)

    @property
    def n_workers(self) -> int:
        """Number of workers that hold parts; for an array, whose placement only Dask controls, of all workers."""
        return len({home for home in self._homes if home is not None}) or len(self.engine.workers)

    # ------------------------------------------------------------------------------------------------ tasks of the workers

    def run_on_parts(
        self, function: Callable[..., Any], *arguments: Any, what: str, only: Sequence[int] | None = None
    ) -> list[Any]:
        """Return ``function(source, *arguments)`` of all parts (or some), in order; see :mod:`coterie.cluster.parts`."""
        chosen = list(range(len(self.parts))) if only is None else list(only)
        return self.run_on_each_part(function, [arguments] * len(chosen), what=what, only=chosen)

    def run_on_each_part(
        self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], *, what: str, only: Sequence[int]
    ) -> list[Any]:
        """Return ``function(source, *arguments)`` of some parts, with different arguments per part."""
        places = [(self.parts[k], self._arrays[k]) for k in only]
        answers = self._run_tasks(function, arguments, places, [self._homes[k] for k in only], what)
        for k, found in zip(only, answers, strict=True):
            if found.worker is not None and self._arrays[k] is None:
                self._homes[k] = found.worker  # the worker that has opened the part
        return [found.value for found in answers]

    def map_tasks(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        *,
        what: str,
        n_threads: int = 1,
        on_answer: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """Return ``function(source, *task)`` for all tasks. Any worker may run a task; it opens *all* features."""
        first = self.parts[0]
        if not isinstance(first, StorePart):
            raise ValueError(
                "This requires all features on one worker, but the parts of a Dask array are on different workers. "
                "Write the array to a store (coterie.data.write_store or convert)."
            )
        whole = first._replace(first=0, last=self.shape[1])
        count, places = len(tasks), [(whole, None)] * len(tasks)
        report = None if on_answer is None else lambda place, found: on_answer(place, found.value)
        calls = [(function, *task) for task in tasks]
        return [found.value for found in self._run_tasks(on_whole, calls, places, [None] * count, what, report)]

    def prepare(self, function: Callable[..., Any], *arguments: Any, large: bool = False) -> Recipe:
        """Return a recipe of ``function(source, *arguments)`` on all features, for tasks of :meth:`map_tasks`."""
        recipe = recipe_of(function, *(self.as_argument(argument) for argument in arguments))
        return replace(recipe, large=large)

    def concurrency(self, n_threads: int) -> int:
        return max(1, self.engine.n_threads)

    def _run_tasks(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        places: Sequence[tuple[StorePart | ArrayPart, Future | None]],
        homes: Sequence[str | None],
        what: str,
        on_answer: Callable[[int, Answer], None] | None = None,
    ) -> list[Answer]:
        known: dict[int, Any] = {}  # an argument common to all parts is sent once
        for argument in (argument for call_arguments in arguments for argument in call_arguments):
            if id(argument) not in known:
                known[id(argument)] = self.as_argument(argument)
        calls = [
            Call(function, tuple(known[id(argument)] for argument in call_arguments), this_version())
            for call_arguments in arguments
        ]
        refs = {ref.token: ref for call in calls for ref in references(call)}
        shared = {token: ref.handle for token, ref in refs.items()}
        tasks = [(*place, call) for place, call in zip(places, calls, strict=True)]

        def again(position: int) -> Future:
            # Shared values may be held by the worker that does not respond, so they are shared again.
            workers = self.engine.responsive_workers()
            other = workers[position % len(workers)] if workers else None
            new_shared = {token: self.engine.share(ref.value, other) for token, ref in refs.items()}
            return self.engine.map(run_call, [tasks[position]], new_shared, [other])[0]

        handles = self.engine.map(run_call, tasks, shared, homes)
        answers: list[Answer] = self.engine.gather(handles, what, again, on_answer)
        self.round_trips += 1
        return answers

    def _some_home(self) -> str | None:
        """Return a worker that has responded recently, to hold a shared value."""
        homes = [home for home in self._homes if home is not None]
        return homes[self.round_trips % len(homes)] if homes else None

    def as_argument(self, value: Any) -> Any:
        """Convert a value to an argument of a task: values held by workers to recipes, large values to references.

        Residuals of few distinct values become recipes as well (:mod:`coterie.cluster.residuals`).
        """
        if isinstance(value, (FeatureValues, ClusterMoments)):
            return value.recipe
        if isinstance(value, FeatureView):
            return self.view_recipe(value)
        if isinstance(value, (Recipe, Ref, int, float, str, bool, np.generic)) or value is None:
            return value
        if callable(value) and hasattr(value, "__qualname__"):
            return value
        if isinstance(value, np.ndarray) and value.nbytes <= _MAX_INLINE_BYTES:
            return value
        if isinstance(value, np.ndarray) and (recipe := self._residuals.recipe(value)) is not None:
            return recipe
        if type(value) in (list, tuple) and any(isinstance(item, (Recipe, Ref, FeatureView, FeatureValues)) for item in value):
            return type(value)(self.as_argument(item) for item in value)
        return self.share(value)

    def share(self, value: Any) -> Ref:
        """Share a value and return a reference. An array in use here is shared only once; others are kept for a while."""
        with self._lock:
            known = self._shared.get(id(value))
            ref = None if known is None or known[0]() is not value else known[1]()
            if ref is not None:
                return ref
        ref = Ref(uuid.uuid4().hex, self.engine.share(value, self._some_home()), value)
        with self._lock:
            self._recent.append(ref)
            if isinstance(value, np.ndarray):
                # Weak references, so that this table does not keep the array alive.
                self._shared[id(value)] = weakref.ref(value, partial(self._release_shared, id(value))), weakref.ref(ref)
        return ref

    def _release_shared(self, key: int, _: object) -> None:
        """Release a shared array that is no longer in use."""
        self._shared.pop(key, None)

    def view_recipe(self, view: FeatureView) -> Recipe:
        """Return the recipe by which a worker creates its part of a view."""
        known = view.__dict__.get("_cluster_recipe")
        if known is None:
            moments = view.moments
            assert isinstance(moments, ClusterMoments)
            assert moments.recipe is not None
            weight = None if view.sample_weight is None else self.share(view.sample_weight)
            scale = None if view.scale is None else view.scale.recipe  # type: ignore[attr-defined]
            known = recipe_of(part_view, moments.recipe, weight, scale, view.centred)
            view.__dict__["_cluster_recipe"] = known
        return known

    # ------------------------------------------------------------------------------------------------------ the protocol

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        """Compute mean and norm of all features, which remain with the workers. Raises if values are NaN or infinite."""
        weight = None if sample_weight is None else self.share(sample_weight)
        both = recipe_of(method, "moments_and_bad_values", weight)
        total = float(self.shape[0] if sample_weight is None else np.asarray(sample_weight, dtype=np.float64).sum())
        parts = self.run_on_parts(summary_of, both, what="means and norms of the features")
        bad = BadValues()
        for part in parts:
            bad = bad.joined(part[2])
        bad.raise_if_any(self.feature_names)
        return self._moments_of(both.item(0), total, parts)

    def many_moments(self, weights: Sequence[np.ndarray], *, n_threads: int = 1) -> list[Moments]:
        recipe = recipe_of(method, "many_moments", [self.share(weight) for weight in weights])
        what = f"means and norms of the features for {len(weights)} sets of sample weights"
        parts = self.run_on_parts(summaries_of, recipe, what=what)
        totals = [float(np.asarray(weight, dtype=np.float64).sum()) for weight in weights]
        if not self.is_sparse and len(weights) > 1:  # summed in the same order as in DenseSource.many_moments
            totals = [float(total) for total in np.column_stack(weights).sum(axis=0)]
        return [self._moments_of(recipe.item(k), total, [part[k] for part in parts]) for k, total in enumerate(totals)]

    def _moments_of(self, recipe: Recipe, total: float, parts: Sequence[tuple[Any, ...]]) -> ClusterMoments:
        table = Table(self, recipe_of(moment_arrays, recipe))
        mean, norm = FeatureValues(table, 0), FeatureValues(table, 1)
        return ClusterMoments(
            mean,  # type: ignore[arg-type]  # behaves like an array
            norm,  # type: ignore[arg-type]
            total,
            nonnegative=all(part[1] for part in parts),
            recipe=recipe,
            varying=sum(part[0] for part in parts),
        )

    def products(
        self,
        vectors: np.ndarray,
        *,
        centre: np.ndarray | FeatureValues | None = None,
        features: np.ndarray | None = None,
        out: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        """Return ``(X - 1 centre')' vectors``. Few columns are fetched and multiplied here, many by the workers."""
        if features is not None and len(features) <= _MAX_FETCHED_COLUMNS:
            features = np.asarray(features, dtype=np.int64)
            centres = None if centre is None else np.asarray(centre[features])
            found = self.local_source(features).products(vectors, centre=centres)
        else:
            found = self._remote_products(vectors, centre, features)
        if out is None:
            return found
        out[:] = found
        return out

    def _remote_products(
        self, vectors: np.ndarray, centre: np.ndarray | FeatureValues | None, features: np.ndarray | None
    ) -> np.ndarray:
        many = np.arange(self.shape[1]) if features is None else np.asarray(features, dtype=np.int64)
        part = self._part_of(many)
        only = np.unique(part).tolist()
        arguments = []
        for k in only:
            part_features = many[part == k] - self._starts[k] if features is not None else None
            part_centre = centre
            if centre is not None and not isinstance(centre, FeatureValues):
                part_centre = np.ascontiguousarray(centre[self._starts[k] : self._starts[k + 1]])
            arguments.append((vectors, part_centre, part_features))
        result = np.empty((len(many), vectors.shape[1]))
        for k, found in zip(only, self.run_on_each_part(products_of, arguments, what="products", only=only), strict=True):
            result[part == k] = found
        return result

    def strong_products(self, query: StrongQuery, moments: Moments, *, n_threads: int = 1) -> StrongPairs:
        exemplar = query.exemplar
        plain = replace(query, exemplar=None)
        rest = (None, 0.0, 0.0) if exemplar is None else (exemplar.scores, exemplar.shift, exemplar.norm)
        part_moments = [moments] * len(self.parts)
        if not isinstance(moments, ClusterMoments):
            part_moments = [slice_of(moments, a, b) for a, b in itertools.pairwise(self._starts.tolist())]
        shared = self.share(plain)
        arguments = [(shared, each, *rest) for each in part_moments]
        parts = self.run_on_each_part(strong_of, arguments, what="correlated features", only=range(len(self.parts)))
        if isinstance(moments, ClusterMoments):
            for pairs, mean, norm in parts:
                moments.mean._table.cache(pairs.feature, mean, norm)  # type: ignore[attr-defined]
        feature, position, product = (np.concatenate([pairs[i] for pairs, _, _ in parts]) for i in range(3))
        return StrongPairs(feature, position, product, *(sum(pairs[i] for pairs, _, _ in parts) for i in (3, 4)))

    def top(self, query: TopQuery) -> ClusterTop:
        return ClusterTop(self, query)

    def shared_top(self, views: Sequence[FeatureView], *, n_threads: int = 1) -> ClusterSharedTop:
        return ClusterSharedTop(self, views)

    def map_blocks(self, function: Callable[..., Any], view: FeatureView | None, *arguments: Any) -> list[Any]:
        what = f"results of {getattr(function, '__name__', 'a function').strip('_').replace('_', ' ')}"
        return self.run_on_parts(on_block, function, view, *arguments, what=what)

    def map_features(self, function: Callable[..., Any], view: FeatureView, *arguments: Any) -> Any:
        recipe = recipe_of(
            arrays_of, function, self.as_argument(view), *(self.as_argument(argument) for argument in arguments)
        )
        count = self.run_on_parts(length_of, recipe, what="values per feature")[0]
        table = Table(self, recipe)
        found = tuple(FeatureValues(table, place) for place in range(abs(count)))
        return found if count > 0 else found[0]

    def spread(self, features: np.ndarray, values: np.ndarray) -> SparseValues:
        return SparseValues(features, values, self.shape[1])

    def rows(self, recipe: Recipe, features: np.ndarray) -> list[np.ndarray]:
        """Return entries of some features (in ascending order) of the arrays that a recipe computes."""
        part = self._part_of(features)
        only = np.unique(part).tolist()
        arguments = [(recipe, features[part == k] - self._starts[k]) for k in only]
        found = self.run_on_each_part(rows_of, arguments, what="values of some features", only=only)
        return [np.concatenate([arrays[i] for arrays in found]) for i in range(len(found[0]))]

    # ------------------------------------------------------------------------------------------------------------ columns

    def columns(self, features: np.ndarray) -> Columns:
        """Return some columns. Those that are not in the cache are fetched in one request."""
        features = np.asarray(features, dtype=np.int64)
        found = self._cached_columns(features)
        if not self.is_sparse:
            result = np.empty((self.shape[0], len(features)), dtype=self._dtype, order="F")
            for place, column in enumerate(found):
                result[:, place] = column
            return result
        starts = np.zeros(len(found) + 1, dtype=self._index_types[0])
        np.cumsum([len(rows) for rows, _ in found], out=starts[1:])
        empty = np.empty(0, dtype=self._index_types[1]), np.empty(0, dtype=self._dtype)
        rows, values = (np.concatenate([empty[i], *(column[i] for column in found)]) for i in range(2))
        return sparse.csc_array((values, rows, starts), shape=(self.shape[0], len(features)))

    def block(self, start: int, stop: int) -> Columns:
        return self._uncached_columns(np.arange(start, stop))

    def prefetch(self, features: np.ndarray) -> None:
        wanted = np.unique(np.asarray(features, dtype=np.int64))
        capacity = _MAX_FETCHED_COLUMNS
        if not self.is_sparse:
            capacity = max(1, _CACHE_BYTES // 2 // max(1, self.shape[0] * self._dtype.itemsize))
        with self._lock:
            missing = np.array([j for j in wanted.tolist() if j not in self._columns][:capacity], dtype=np.int64)
        if len(missing):
            self._cache_columns(missing, self._fetch_columns(missing))

    def _cached_columns(self, features: np.ndarray) -> list[Column]:
        """Return a list of columns, from the cache or fetched in one request."""
        with self._lock:
            known = {j: self._columns[j] for j in features.tolist() if j in self._columns}
            for j in known:
                self._columns.move_to_end(j)
        missing = np.array(sorted({j for j in features.tolist() if j not in known}), dtype=np.int64)
        if len(missing):
            fetched = self._fetch_columns(missing)
            self._cache_columns(missing, fetched)
            known |= dict(zip(missing.tolist(), fetched, strict=True))
        return [known[j] for j in features.tolist()]

    def _fetch_columns(self, features: np.ndarray) -> list[Column]:
        columns: list[Column] = []
        for found in self._request_columns(features):
            if isinstance(found, np.ndarray):
                columns += [np.ascontiguousarray(found[:, k]) for k in range(found.shape[1])]
            else:
                ends = itertools.pairwise(found.indptr.tolist())
                columns += [(found.indices[a:b].copy(), found.data[a:b].copy()) for a, b in ends]
        return columns

    def _request_columns(self, features: np.ndarray) -> list[Columns]:
        part = self._part_of(features)
        only = np.unique(part).tolist()
        return self.run_on_each_part(
            method,
            [("columns", features[part == k] - self._starts[k]) for k in only],
            what=f"the columns of {len(features)} feature(s)",
            only=only,
        )

    def _uncached_columns(self, features: np.ndarray) -> Columns:
        """Return many columns (in ascending order) without the cache."""
        parts = self._request_columns(features)
        if self.is_sparse:
            return sparse.csc_array(sparse.hstack([*parts], format="csc")) if parts else self.columns(features)
        return np.asfortranarray(np.hstack([np.empty((self.shape[0], 0), dtype=self._dtype), *parts]).astype(self._dtype))

    def _cache_columns(self, features: np.ndarray, columns: list[Column]) -> None:
        with self._lock:
            for j, column in zip(features.tolist(), columns, strict=True):
                if j not in self._columns:
                    self._columns_bytes += _bytes_of(column)
                self._columns[j] = column
            while self._columns_bytes > _CACHE_BYTES and len(self._columns) > 1:
                self._columns_bytes -= _bytes_of(self._columns.popitem(last=False)[1])

    def local_source(self, features: np.ndarray) -> DenseSource | SparseSource:
        """Return a source over some features in this process. The same kernels give bit-identical results."""
        columns = self.columns(features)
        if isinstance(columns, np.ndarray):
            return DenseSource(columns)
        return SparseSource.from_arrays(columns.indptr, columns.indices, columns.data, (self.shape[0], len(features)))

    def _part_of(self, features: np.ndarray) -> np.ndarray:
        if len(features) and not 0 <= features.min() <= features.max() < self.shape[1]:
            raise IndexError(f"Feature {int(features.max())} is out of range for {self.shape[1]} features.")
        return np.searchsorted(self._starts, features, side="right") - 1

    @cached_property
    def _types(self) -> tuple[np.dtype, tuple[np.dtype, np.dtype]]:
        return self.run_on_parts(types_of, what="the type of the values", only=[0])[0]

    @property
    def _dtype(self) -> np.dtype:
        return self._types[0]

    @property
    def _index_types(self) -> tuple[np.dtype, np.dtype]:
        return self._types[1]

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<DistributedSource: {n:,} samples x {m:,} features in {len(self.parts)} parts>"


def _bytes_of(column: Column) -> int:
    return int(column.nbytes) if isinstance(column, np.ndarray) else int(column[0].nbytes + column[1].nbytes)
