"""A store: features on the disk by feature, opened by memory map and used without a copy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from coterie._numba import read_only
from coterie.data.annotations import annotated
from coterie.data.covariates import Covariates
from coterie.data.errors import DataFileError
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.names import PackedStrings
from coterie.data.source import Columns, FeatureSource, Moments
from coterie.data.store.format import HEADER, check_entry, check_header_bytes, checksum, damaged, map_array, read_header
from coterie.data.structure import first_bad, is_partition

PathLike = str | os.PathLike[str]


class _Stored:
    """What sources over a store have in common: the moments that came with it, and a look at what is computed from it.

    Writing refuses NaN, so one in the values is damage. Nobody reads all values before they are used; but one NaN or
    infinite value makes every product of its feature NaN, and those are few enough to be looked at.
    """

    stored: Moments
    path: Path

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        """As those of a source in memory; without weights nothing is read but the stored ones."""
        if sample_weight is None:
            return self.stored
        return super().moments(sample_weight, n_threads=n_threads)  # type: ignore[misc]  # of the source it is mixed with

    def products(self, vectors: np.ndarray, *, features: np.ndarray | None = None, **options: Any) -> np.ndarray:
        """As those of a source in memory."""
        found = super().products(vectors, features=features, **options)  # type: ignore[misc]
        if not np.isfinite(found).all() and np.isfinite(vectors).all():
            place = int(np.argmin(np.isfinite(found).all(axis=1)))
            raise self._bad_value(place if features is None else int(features[place]))
        return found

    def columns(self, features: np.ndarray) -> Columns:
        """As those of a source in memory."""
        found: Columns = super().columns(features)  # type: ignore[misc]
        values = found if isinstance(found, np.ndarray) else found.data
        if not np.isfinite(values).all():
            raise self._bad_value(None)
        return found

    def _bad_value(self, feature: int | None) -> DataFileError:
        return damaged(self.path, f"{'a feature' if feature is None else f'feature {feature}'} has a NaN or infinite value")


class StoredSparseSource(_Stored, SparseSource):
    """CSC arrays of a store, with the moments that came with them."""


class StoredDenseSource(_Stored, DenseSource):
    """A dense array of a store, with the moments that came with it."""


class Store:
    """An opened store; see :func:`open_store`.

    Parameters
    ----------
    path : path-like
        The store's folder.

    Attributes
    ----------
    path : Path
        The folder.
    header : dict
        What ``header.json`` says.
    shape : tuple of int
        Number of samples, number of features.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        self.header = read_header(self.path)
        shape = self.header.get("shape")
        if not isinstance(shape, list) or len(shape) != 2 or not all(type(n) is int and n >= 0 for n in shape):
            raise damaged(self.path / HEADER, f"the shape is {shape!r}")
        self.shape = (shape[0], shape[1])
        if not isinstance(self.header.get("arrays"), dict):
            raise damaged(self.path / HEADER, "it lists no arrays")
        for name, entry in self._entries.items():
            check_entry(self.path, name, entry)
        self._check_shapes()

    @property
    def _entries(self) -> Mapping[str, Any]:
        return self.header["arrays"]

    @property
    def is_sparse(self) -> bool:
        """Whether the features are stored as CSC."""
        return "indptr" in self._entries

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return np.dtype(self._entries["values"]["dtype"])

    @property
    def n_values(self) -> int:
        """Number of stored values: the nonzeros of a sparse store."""
        return int(np.prod(self._entries["values"]["shape"], dtype=object))

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays on the disk."""
        return sum((self.path / entry["file"]).stat().st_size for entry in self._entries.values())

    @property
    def notes(self) -> dict[str, Any]:
        """Counts that the reader of the original data took."""
        notes = self.header.get("notes")
        return dict(notes) if isinstance(notes, dict) else {}

    @property
    def origin(self) -> dict[str, Any]:
        """Name and format of the original data."""
        origin = self.header.get("origin")
        return dict(origin) if isinstance(origin, dict) else {}

    def array(self, name: str) -> np.ndarray:
        """One array of the store as a read-only memory map."""
        if name not in self._entries:
            raise damaged(self.path / HEADER, f"array {name!r} is missing")
        return map_array(self.path, name, self._entries[name])

    def _check_shapes(self) -> None:
        n_samples, n_features = self.shape
        entries = self._entries
        expected: dict[str, list[int]] = {"feature_mean": [n_features], "feature_norm": [n_features]}
        if self.is_sparse:
            expected |= {
                "indptr": [n_features + 1],
                "indices": entries.get("values", {}).get("shape"),
                "values": [entries.get("indices", {}).get("shape", [0])[0]],
            }
        else:
            expected |= {"values": [n_samples, n_features]}
        optional = {"labels": [n_samples], "feature_names_offsets": [n_features + 1], "sample_names_offsets": [n_samples + 1]}
        for name, shape in {**expected, **{k: v for k, v in optional.items() if k in entries}}.items():
            if name not in entries or entries[name]["shape"] != shape:
                raise damaged(self.path / HEADER, f"array {name!r} is missing or has another shape than {shape}")
        if not self.is_sparse and not entries["values"]["fortran_order"]:
            raise damaged(self.path / HEADER, "dense values are not stored by feature")
        kinds = {"indptr": ("<i4", "<i8"), "indices": ("<i4", "<i8"), "feature_mean": ("<f8",), "feature_norm": ("<f8",)}
        for name, types in kinds.items():
            if name in entries and entries[name]["dtype"] not in types:
                raise damaged(self.path / HEADER, f"array {name!r} has the type {entries[name]['dtype']}")

    @cached_property
    def feature_names(self) -> PackedStrings | None:
        """Names of the features, or None."""
        return self._strings("feature_names")

    @cached_property
    def sample_names(self) -> PackedStrings | None:
        """Names of the samples, or None."""
        return self._strings("sample_names")

    @cached_property
    def y(self) -> np.ndarray | None:
        """Labels, or None."""
        if "labels" not in self._entries:
            return None
        labels = np.array(self.array("labels"))
        classes = self._strings("label_classes")
        if classes is None:
            return labels
        if labels.dtype.kind not in "iu" or (len(labels) and not 0 <= labels.min() <= labels.max() < len(classes)):
            raise damaged(self.path / self._entries["labels"]["file"], "a label is not one of the classes")
        return np.asarray(classes, dtype=object)[labels]

    @cached_property
    def feature_info(self) -> dict[str, np.ndarray | PackedStrings]:
        """More about each feature, such as the chromosome and position of a SNP."""
        result: dict[str, np.ndarray | PackedStrings] = {}
        keys = self.header.get("feature_info", [])
        if not isinstance(keys, list):
            raise damaged(self.path / HEADER, f"feature_info is {keys!r}")
        for key in keys:
            packed = self._strings(f"info_{key}")
            column: np.ndarray | PackedStrings = self.array(f"info_{key}") if packed is None else packed
            if len(column) != self.shape[1]:
                raise damaged(self.path / HEADER, f"{key!r} has another length than there are features")
            result[str(key)] = column
        return result

    @cached_property
    def covariates(self) -> Covariates | None:
        """Covariates of the samples, or None."""
        names = self._strings("covariate_names")
        if names is None:
            return None
        values = self.array("covariates")  # flat, sample after sample
        if values.dtype != np.float64 or values.shape != (self.shape[0] * len(names),) or not np.isfinite(values).all():
            raise damaged(self.path / self._entries["covariates"]["file"], "the covariates do not fit the samples")
        return Covariates(np.array(values).reshape(self.shape[0], len(names)), tuple(names))

    def _strings(self, name: str) -> PackedStrings | None:
        if f"{name}_offsets" not in self._entries:
            return None
        offsets, letters = self.array(f"{name}_offsets"), self.array(f"{name}_utf8")
        vectors = letters.ndim == offsets.ndim == 1 and letters.dtype == np.uint8 and offsets.dtype.kind in "iu"
        if not vectors or not is_partition(offsets, len(letters)):
            raise damaged(self.path / self._entries[f"{name}_offsets"]["file"], "the offsets do not fit the letters")
        return PackedStrings(letters, offsets)

    @cached_property
    def source(self) -> FeatureSource:
        """The features as a :class:`FeatureSource` over memory maps.

        The first use of a sparse store reads its row indices once and makes sure that they are rows: kernels
        trust them, and a damaged store must give an error, not a crash.
        """
        moments = self._moments()
        if not self.is_sparse:
            dense = StoredDenseSource(self.array("values"), self.feature_names)
            dense.stored, dense.path = moments, self.path / self._entries["values"]["file"]
            return annotated(dense, self.feature_info)
        indptr, indices, values = self.array("indptr"), self.array("indices"), self.array("values")
        if not is_partition(indptr, len(indices)):
            raise damaged(self.path / self._entries["indptr"]["file"], "the column starts are not in order")
        bad = first_bad(indptr, indices, self.shape[0])
        if bad >= 0:
            raise damaged(self.path / self._entries["indices"]["file"], f"the rows of feature {bad} are out of order or range")
        result = StoredSparseSource.from_arrays(indptr, indices, values, self.shape, self.feature_names)
        result.stored, result.path = moments, self.path / self._entries["values"]["file"]
        return annotated(result, self.feature_info)

    def _moments(self) -> Moments:
        nonnegative = self.header.get("nonnegative")
        mean, norm = read_only(self.array("feature_mean")), read_only(self.array("feature_norm"))
        for name, bad in (("feature_mean", ~np.isfinite(mean)), ("feature_norm", ~(np.isfinite(norm) & (norm >= 0)))):
            if bad.any():
                file, place = self.path / self._entries[name]["file"], int(np.argmax(bad))
                raise damaged(file, f"the number of feature {place} is NaN, infinite or negative")
        return Moments(mean, norm, float(self.shape[0]), nonnegative=nonnegative is True)

    def __repr__(self) -> str:
        n, m = self.shape
        kind = f"sparse, {self.n_values:,} nonzeros" if self.is_sparse else "dense"
        return f"<Store {str(self.path)!r}: {n:,} samples x {m:,} features, {kind}, {self.dtype}>"


def open_store(path: PathLike) -> Store:
    """Open a store; nothing but its header is read.

    Parameters
    ----------
    path : path-like
        The store's folder.

    Returns
    -------
    store : Store
        Its ``source`` goes straight into ``fit``, its ``y`` are the labels.

    See Also
    --------
    coterie.data.convert : Make a store of a file.
    coterie.data.write_store : Make a store of arrays.
    coterie.data.check_store : Find damage anywhere in a store.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from coterie.data import open_store, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_store(Path(folder) / "eye", np.eye(3), y=[1, 2, 2])
    ...     store = open_store(path)
    ...     store.shape, store.y.tolist(), store.is_sparse
    ((3, 3), [1, 2, 2], False)
    """
    return Store(path)


def check_store(path: PathLike) -> Store:
    """Read a whole store and compare it with its checksums.

    Parameters
    ----------
    path : path-like
        The store's folder.

    Returns
    -------
    store : Store
        The opened store, when all is well.

    Raises
    ------
    DataFileError
        Names the first damaged file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from coterie.data import check_store, write_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_store(Path(folder) / "eye", np.eye(3))
    ...     file = path / "values.npy"
    ...     _ = file.write_bytes(file.read_bytes()[:-1] + b"!")
    ...     try:
    ...         check_store(path)
    ...     except ValueError as error:
    ...         print(error)
    /...values.npy: the store is damaged: its checksum is ... instead of ... Convert the original data again.
    """
    store = Store(path)
    check_header_bytes(store.path)
    for entry in store.header["arrays"].values():
        found = checksum(store.path / entry["file"])
        if found != entry["crc32"]:
            raise damaged(store.path / entry["file"], f"its checksum is {found} instead of {entry['crc32']}")
    for part in (store.source, store.y, store.feature_names, store.sample_names, store.feature_info, store.covariates):
        del part  # each is checked when it is made
    return store


def is_store(path: PathLike) -> bool:
    """Whether a path is a folder with a store's header in it."""
    return (Path(path) / HEADER).is_file()
