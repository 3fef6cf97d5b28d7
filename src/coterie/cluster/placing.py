"""Who can work on features that are with the workers of a cluster, and how they get there from ``fit(client=)``."""

from __future__ import annotations

from typing import Any

from coterie.cluster.opening import on_cluster
from coterie.cluster.source import DistributedSource
from coterie.data.source import FeatureSource


def lives_on_cluster(estimator: Any, X: Any = None) -> bool:
    """Whether an estimator can work on features that are with the workers of a cluster.

    One that sends workers to the whole store cannot work on a Dask array, of which each of them has a part.
    """
    there = getattr(estimator, "_on_cluster", "")
    return bool(there) and not (there == "stores" and hasattr(X, "chunks"))


def in_one_process(source: FeatureSource, reader: str) -> FeatureSource:
    """A source whose features are here, for a ``reader`` that must go through all of them again and again."""
    if isinstance(source, DistributedSource):
        raise ValueError(
            f"{reader} looks at all features together, which it cannot do while they are with the workers of a cluster; "
            "open the store in this process (without client= or --dask)."
        )
    return source


def placed(X: Any, y: Any, client: Any, *, reader: Any, able: bool = True) -> tuple[Any, Any]:
    """Features on the cluster of a client, and labels; without a client as they are (an active one is looked for later)."""
    if not able and (client is not None or isinstance(X, DistributedSource)):
        name = " ".join(repr(reader).split())  # with the parameters that make it so
        raise ValueError(
            f"{name} cannot work on features that are with the workers of a cluster; open the store in this process "
            "(without client= or --dask)."
        )
    if client is None or isinstance(X, DistributedSource):
        return X, y
    found = on_cluster(X, client)
    if found is None:
        name = reader if isinstance(reader, str) else type(reader).__name__
        raise ValueError(
            f"{name} got a client, but X is a {type(X).__name__}: what workers can read is a store (its name, its address, "
            "or opened) or a Dask array chunked by features. Write X to a store first (coterie.data.write_store or convert)."
        )
    return found[0], found[1] if y is None else y
