"""Opening of stores and Dask arrays on a cluster."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.cluster.dask_engine import DaskEngine, check_workers
from coterie.cluster.parts import ArrayPart, StorePart
from coterie.cluster.source import DistributedSource
from coterie.data.dataset import Dataset
from coterie.data.errors import DataFileError, is_address
from coterie.data.source import FeatureSource, block_size
from coterie.data.store.reading import PathLike, Store, is_store

if TYPE_CHECKING:
    from distributed import Client

# Maximum bytes per part, so that the work of a lost worker can be distributed over the others.
_MAX_PART_BYTES = 1 << 29


def store_source(
    store: PathLike | Store, client: Client, *, n_parts: int | None = None, **options: float
) -> DistributedSource:
    """Open the features of a store on a cluster; see :meth:`DistributedSource.of_store`."""
    store = store if isinstance(store, Store) else Store(store)
    if store.units != 1:
        raise DataFileError(
            "a cluster cannot read dosages in hundredths. Convert the original data again with dtype=float32.", store.path
        )
    engine = DaskEngine(client, **options)
    check_workers(engine)
    n_samples, n_features = store.shape
    size = sum(
        int(np.prod(entry["shape"], dtype=object)) * np.dtype(entry["dtype"]).itemsize
        for name, entry in store.header["arrays"].items()
        if name in ("values", "indices", "indptr")
    )
    n_threads = max(1, engine.n_threads)
    # The same number of parts per thread.
    wanted = n_threads * max(1, -(-size // (_MAX_PART_BYTES * n_threads))) if n_parts is None else n_parts
    starts = part_starts(n_features, max(1, wanted), 1 if store.is_sparse else block_size(n_samples))
    address = store.path if is_address(store.path) else os.path.abspath(store.path)
    check = str(store.header["header_crc32"])
    parts = [StorePart(str(address), check, a, b) for a, b in itertools.pairwise(starts)]
    names = store.name_list()
    source = DistributedSource(engine, parts, [None] * len(parts), store.shape, store.is_sparse, names)
    source.annotations = store.feature_info
    return source


def part_starts(n_features: int, n_parts: int, step: int) -> list[int]:
    """Return the first features of parts of about equal size, in multiples of a step, and the end.

    Blocks of dense features that BLAS processes together (moments for many sample weights) must be the same in parts as in
    the whole matrix, so parts end where such blocks end.

    Examples
    --------
    >>> from coterie.cluster.opening import part_starts
    >>> part_starts(10, 3, 1), part_starts(3000, 2, 1024), part_starts(100, 4, 1024)
    ([0, 3, 7, 10], [0, 2048, 3000], [0, 100])
    """
    n_steps = -(-n_features // step)
    cuts = np.rint(np.linspace(0, n_steps, min(n_parts, n_steps) + 1)).astype(np.int64) * step
    return [int(cut) for cut in np.unique(np.minimum(cuts, n_features))] if n_features else [0, 0]


def dask_source(X: Any, client: Client, **options: float) -> DistributedSource:
    """Open a Dask array whose chunks hold all samples of some features, which remain on the cluster."""
    n_features = X.shape[1]
    if len(X.chunks[0]) > 1:
        raise ValueError(
            f"The Dask array is chunked by samples ({len(X.chunks[0])} chunks of rows), but a chunk must contain all samples "
            "of its features. Write it to a store (coterie.data.convert, or `coterie convert`) and fit the store. If it fits "
            "into the memory of the workers, use X.rechunk({0: -1, 1: 'auto'})."
        )
    if not np.isfinite(n_features) or any(not np.isfinite(size) for size in X.chunks[1]):
        raise ValueError("The Dask array has chunks of unknown size. Call X.compute_chunk_sizes() first.")
    from distributed import futures_of

    engine = DaskEngine(client, **options)
    check_workers(engine)
    kept = client.persist(X)
    by_key = {future.key: future for future in futures_of(kept)}
    (keys,) = kept.__dask_keys__()
    arrays = [by_key[key] for key in keys]
    starts = np.concatenate([[0], np.cumsum(X.chunks[1])]).astype(int).tolist()
    parts = [ArrayPart(str(kept.name), "", a, b) for a, b in itertools.pairwise(starts)]
    nonempty = [k for k, part in enumerate(parts) if part.last > part.first]
    is_sparse = type(X._meta).__module__.startswith("scipy.sparse")
    source = DistributedSource(engine, [parts[k] for k in nonempty], [arrays[k] for k in nonempty], X.shape, is_sparse)
    source.is_sparse = bool(source.run_on_parts(_is_sparse, what="the type of the array", only=[0])[0])
    return source


def _is_sparse(source: FeatureSource) -> bool:
    return source.is_sparse


def open_on_cluster(X: Any, client: Client) -> tuple[DistributedSource, np.ndarray | None] | None:
    """Open a store (or its path) or a Dask array on the cluster of a client; return features and labels, else None."""
    if isinstance(X, (str, os.PathLike)) and (is_address(X) or is_store(X)):
        X = Store(X)
    if isinstance(X, Dataset) and X.format == "store":
        return store_source(X.path, client), X.y
    if isinstance(X, Store):
        return store_source(X, client), X.y
    if type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "chunks") and hasattr(X, "persist"):
        return dask_source(X, client), None
    return None
