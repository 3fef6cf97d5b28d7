"""Data files, stores, and the :class:`FeatureSource` protocol with its implementations.

Names are imported on first use, because ``coterie --help`` imports this package to list the formats.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "dataset": ("Dataset",),
    "errors": ("DataFileError",),
    "imputation": ("ImputedSource",),
    "memory": ("DenseSource", "SparseSource", "as_source"),
    "names": ("PackedStrings",),
    "offset_file": ("read_offset_file",),
    "opening": ("convert", "open_features"),
    "readers.formats": ("FORMATS", "Format"),
    "source": ("Exemplar", "FeatureSource", "Moments", "StrongPairs", "StrongQuery", "annotated"),
    "store.reading": ("Store", "check_store", "open_store"),
    "store.writing": ("write_store",),
    "view": ("FeatureView",),
}
_HOMES = {name: f"coterie.data.{module}" for module, names in _NAMES.items() for name in names}

__all__ = [
    "FORMATS",
    "DataFileError",
    "Dataset",
    "DenseSource",
    "Exemplar",
    "FeatureSource",
    "FeatureView",
    "Format",
    "ImputedSource",
    "Moments",
    "PackedStrings",
    "SparseSource",
    "Store",
    "StrongPairs",
    "StrongQuery",
    "annotated",
    "as_source",
    "check_store",
    "convert",
    "open_features",
    "open_store",
    "read_offset_file",
    "write_store",
]

if TYPE_CHECKING:
    from coterie.data.dataset import Dataset
    from coterie.data.errors import DataFileError
    from coterie.data.imputation import ImputedSource
    from coterie.data.memory import DenseSource, SparseSource, as_source
    from coterie.data.names import PackedStrings
    from coterie.data.offset_file import read_offset_file
    from coterie.data.opening import convert, open_features
    from coterie.data.readers.formats import FORMATS, Format
    from coterie.data.source import Exemplar, FeatureSource, Moments, StrongPairs, StrongQuery, annotated
    from coterie.data.store.reading import Store, check_store, open_store
    from coterie.data.store.writing import write_store
    from coterie.data.view import FeatureView


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'coterie.data' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
