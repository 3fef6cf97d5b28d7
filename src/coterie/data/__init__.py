"""Where features live: the :class:`FeatureSource` protocol and its implementations."""

from coterie.data.memory import DenseSource, SparseSource, as_source
from coterie.data.source import Exemplar, FeatureSource, Moments, StrongPairs, StrongQuery

__all__ = [
    "DenseSource",
    "Exemplar",
    "FeatureSource",
    "Moments",
    "SparseSource",
    "StrongPairs",
    "StrongQuery",
    "as_source",
]
