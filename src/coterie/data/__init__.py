"""Where features live: the :class:`FeatureSource` protocol and its implementations."""

from coterie.data.memory import DenseSource, SparseSource, as_source
from coterie.data.source import FeatureSource, Moments

__all__ = ["DenseSource", "FeatureSource", "Moments", "SparseSource", "as_source"]
