"""The store: a folder on disk that holds the data by feature."""

from coterie.data.store.reading import PathLike, Store, check_store, is_store, open_store

__all__ = ["PathLike", "Store", "check_store", "is_store", "open_store"]
