"""Where features live: files and stores, and the :class:`FeatureSource` protocol with its implementations."""

from coterie.data.dataset import Dataset
from coterie.data.errors import DataFileError
from coterie.data.memory import DenseSource, SparseSource, as_source
from coterie.data.names import PackedStrings
from coterie.data.opening import convert, open_features
from coterie.data.source import Exemplar, FeatureSource, Moments, StrongPairs, StrongQuery
from coterie.data.store.reading import Store, check_store, open_store
from coterie.data.store.writing import write_store
from coterie.data.view import FeatureView

__all__ = [
    "DataFileError",
    "Dataset",
    "DenseSource",
    "Exemplar",
    "FeatureSource",
    "FeatureView",
    "Moments",
    "PackedStrings",
    "SparseSource",
    "Store",
    "StrongPairs",
    "StrongQuery",
    "as_source",
    "check_store",
    "convert",
    "open_features",
    "open_store",
    "write_store",
]
