"""Features on many machines: a store or an array in parts, each of which a worker of a cluster holds (docs/do/cluster.md)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "ClusterError": "coterie.cluster.engine",
    "DaskEngine": "coterie.cluster.dask_engine",
    "DistributedSource": "coterie.cluster.source",
    "Engine": "coterie.cluster.engine",
    "FeatureValues": "coterie.cluster.values",
    "convert": "coterie.cluster.conversion",
}

__all__ = ["ClusterError", "DaskEngine", "DistributedSource", "Engine", "FeatureValues", "convert"]

if TYPE_CHECKING:
    from coterie.cluster.conversion import convert
    from coterie.cluster.dask_engine import DaskEngine
    from coterie.cluster.engine import ClusterError, Engine
    from coterie.cluster.source import DistributedSource
    from coterie.cluster.values import FeatureValues


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'coterie.cluster' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
