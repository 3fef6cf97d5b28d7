"""Features on many machines: parts of a store or an array, each held by a worker of a cluster (docs/do/cluster.md).

Only this package uses Dask. Algorithms use a :class:`~coterie.data.FeatureSource`. The functions that open one on a cluster
are imported by name in :mod:`coterie.inputs.placement`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "DaskEngine": "coterie.cluster.dask_engine",
    "DistributedSource": "coterie.cluster.source",
    "FeatureValues": "coterie.cluster.values",
    "convert": "coterie.cluster.jobs",
}

__all__ = ["ClusterError", "DaskEngine", "DistributedSource", "FeatureValues", "convert"]

if TYPE_CHECKING:
    from coterie.cluster.dask_engine import DaskEngine
    from coterie.cluster.jobs import convert
    from coterie.cluster.source import DistributedSource
    from coterie.cluster.values import FeatureValues


class ClusterError(RuntimeError):
    """Error of a cluster that is lost, does not respond, or differs from this process.

    Examples
    --------
    >>> from coterie.cluster import ClusterError
    >>> str(ClusterError("The scheduler is gone."))
    'The scheduler is gone.'
    """


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'coterie.cluster' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
