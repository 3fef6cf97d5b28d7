"""Placement of features in this process or with the workers of a Dask cluster.

Other packages access :mod:`coterie.cluster` through this module only. Code that requires Dask is imported by name, and only
if there is a client. Algorithms use a :class:`~coterie.data.FeatureSource` in either case.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from coterie.data.source import FeatureSource
from coterie.methods import load

if TYPE_CHECKING:
    import numpy as np
    from distributed import Client

# Import paths of the parts of coterie.cluster used here: opening a store or a Dask array, and comparing methods.
_OPEN_ON_CLUSTER = "coterie.cluster.opening:open_on_cluster"
_CLUSTER_SCHEDULE = "coterie.cluster.jobs:ClusterSchedule"


def active_client() -> Client | None:
    """Return the active Dask client of this process, or None, without importing Dask."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def on_cluster(X: Any, client: Client | None = None) -> tuple[FeatureSource, np.ndarray | None] | None:
    """Return features held by the workers of a cluster, and labels, for a store (or its path) or a Dask array.

    Parameters
    ----------
    X : object
        Data as passed by the user. For other data than stores and Dask arrays, the result is None.
    client : distributed.Client, default=None
        Client of the cluster; None for the active client. Without a client, the result is None.
    """
    client = active_client() if client is None else client
    found: tuple[FeatureSource, np.ndarray | None] | None = None if client is None else load(_OPEN_ON_CLUSTER)(X, client)
    return found


def cluster_schedule(*arguments: Any) -> Any:
    """Return a :class:`~coterie.comparison.process.AnySchedule` that runs the units of a comparison on a cluster."""
    return load(_CLUSTER_SCHEDULE)(*arguments)


def has_workers(X: Any) -> bool:
    """Return True if X is a source whose features are held by the workers of a cluster."""
    return isinstance(X, FeatureSource) and X.n_workers is not None


def supports_cluster(estimator: Any, X: Any = None) -> bool:
    """Return True if an estimator supports features held by the workers of a cluster.

    An estimator whose tasks require the whole store does not support a Dask array, of which each worker has a part.
    """
    support = getattr(estimator, "_on_cluster", "")
    return bool(support) and not (support == "stores" and hasattr(X, "chunks"))


def in_one_process(source: FeatureSource, reader: str) -> FeatureSource:
    """Return the source; raise ``ValueError`` unless its features are in this process, as ``reader`` requires."""
    if has_workers(source):
        raise ValueError(
            f"{reader} requires all features in one process, but they are held by the workers of a cluster. "
            "Open the store in this process (without client= or --dask)."
        )
    return source


def move_to_cluster(X: Any, y: Any, client: Client | None, *, reader: Any, able: bool = True) -> tuple[Any, Any]:
    """Move features to the cluster of a client and return them with the labels.

    Without a client, return both unchanged. An active client is used later.
    """
    if not able and (client is not None or has_workers(X)):
        name = " ".join(repr(reader).split())  # includes the parameters, on which support may depend
        raise ValueError(
            f"{name} does not support features held by the workers of a cluster. Open the store in this process "
            "(without client= or --dask)."
        )
    if client is None or has_workers(X):
        return X, y
    found = on_cluster(X, client)
    if found is None:
        name = reader if isinstance(reader, str) else type(reader).__name__
        raise ValueError(
            f"{name} was called with a client, but X is of type {type(X).__name__}. With a client, X must be a store (path, "
            "URL or Store) or a Dask array chunked by features. Write X to a store (coterie.data.write_store or convert)."
        )
    return found[0], found[1] if y is None else y
