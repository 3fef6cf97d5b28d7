"""Where the work on features is done: in this process, or by the workers of a cluster.

This is the one place through which other packages reach :mod:`coterie.cluster`. What knows Dask is loaded by its name, and
only where there is a client; afterwards algorithms see a :class:`~coterie.data.FeatureSource` like any other.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from coterie.data.source import FeatureSource
from coterie.methods import load

if TYPE_CHECKING:
    import numpy as np
    from distributed import Client

# What the package of the cluster does before there is a source: open a store or a Dask array there, and compare methods.
_OPEN = "coterie.cluster.opening:open_on_cluster"
_COMPARE = "coterie.cluster.jobs:ClusterSchedule"


def active_client() -> Client | None:
    """The Dask client that is active in this process, or None; Dask is not imported for it."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def on_cluster(X: Any, client: Client | None = None) -> tuple[FeatureSource, np.ndarray | None] | None:
    """Features with the workers of a cluster, and labels, for a store (or its name) or a Dask array; else None.

    Parameters
    ----------
    X : object
        What the user has given.
    client : distributed.Client, default=None
        Client of the cluster; None for the active one. Without any, the answer is None.
    """
    client = active_client() if client is None else client
    found: tuple[FeatureSource, np.ndarray | None] | None = None if client is None else load(_OPEN)(X, client)
    return found


def cluster_schedule(*arguments: Any) -> Any:
    """What runs the units of a comparison on a cluster, an :class:`~coterie.comparison.process.AnySchedule`."""
    return load(_COMPARE)(*arguments)


def has_workers(X: Any) -> bool:
    """Return True if X is a source whose features are with the workers of a cluster."""
    return isinstance(X, FeatureSource) and X.n_workers is not None


def lives_on_cluster(estimator: Any, X: Any = None) -> bool:
    """Whether an estimator can work on features that are with the workers of a cluster.

    One whose tasks need the whole store cannot work on a Dask array, of which each worker has a part.
    """
    there = getattr(estimator, "_on_cluster", "")
    return bool(there) and not (there == "stores" and hasattr(X, "chunks"))


def in_one_process(source: FeatureSource, reader: str) -> FeatureSource:
    """The source, whose features must be in this process, for a ``reader`` that goes through all of them repeatedly."""
    if has_workers(source):
        raise ValueError(
            f"{reader} looks at all features together, which it cannot do while they are with the workers of a cluster; "
            "open the store in this process (without client= or --dask)."
        )
    return source


def placed(X: Any, y: Any, client: Client | None, *, reader: Any, able: bool = True) -> tuple[Any, Any]:
    """Features on the cluster of a client, and labels; without a client as they are (an active one is looked for later)."""
    if not able and (client is not None or has_workers(X)):
        name = " ".join(repr(reader).split())  # with the parameters that make it so
        raise ValueError(
            f"{name} cannot work on features that are with the workers of a cluster; open the store in this process "
            "(without client= or --dask)."
        )
    if client is None or has_workers(X):
        return X, y
    found = on_cluster(X, client)
    if found is None:
        name = reader if isinstance(reader, str) else type(reader).__name__
        raise ValueError(
            f"{name} got a client, but X is a {type(X).__name__}: what workers can read is a store (its name, its address, "
            "or opened) or a Dask array chunked by features. Write X to a store first (coterie.data.write_store or convert)."
        )
    return found[0], found[1] if y is None else y
