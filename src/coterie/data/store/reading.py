"""Stores opened by memory map and used without a copy."""

from __future__ import annotations

import itertools
import mmap
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from coterie._numba import boundaries, read_only, run_evenly
from coterie.data.covariates import Covariates
from coterie.data.encoding import COLUMN, TableEncoding
from coterie.data.errors import DataFileError
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.names import PackedStrings
from coterie.data.scaled import divided
from coterie.data.source import Columns, FeatureSource, Moments, annotated
from coterie.data.store.format import (
    HEADER,
    Address,
    Folder,
    check_entry,
    check_header_bytes,
    checksum,
    damaged,
    map_array,
    place_of,
    read_header,
)
from coterie.data.validity import BadValues, first_invalid_column, is_partition

PathLike = str | os.PathLike[str]
# Bytes of a store after which a pass releases its pages.
_RELEASE_BYTES = 1 << 26
# Maximum number of feature names that are checked and mapped as a whole.
_MAX_NAMES_IN_MEMORY = 1 << 20


class _StoreMixin:
    """Mixin of sources over a store, with stored moments and checks of results.

    A store is never written with NaN, so NaN in its values is damage. Values are not checked before use. Instead products are
    checked, of which there are fewer: one NaN or infinite value makes every product of its feature NaN.
    """

    stored: Moments
    path: Path | str
    first_feature: int
    pages: Pages | None = None

    def moments_and_bad_values(
        self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1
    ) -> tuple[Moments, BadValues]:
        if sample_weight is None:
            return self.stored, BadValues()
        return super().moments_and_bad_values(sample_weight, n_threads=n_threads)  # type: ignore[misc]  # of the other base

    def release(self) -> None:
        if self.pages is not None:
            self.pages.release()

    def products(self, vectors: np.ndarray, *, features: np.ndarray | None = None, **options: Any) -> np.ndarray:
        found = super().products(vectors, features=features, **options)  # type: ignore[misc]
        if not np.isfinite(found).all() and np.isfinite(vectors).all():
            place = int(np.argmin(np.isfinite(found).all(axis=1)))
            raise self._bad_value(self.first_feature + (place if features is None else int(features[place])))
        return found

    def columns(self, features: np.ndarray) -> Columns:
        found: Columns = super().columns(features)  # type: ignore[misc]
        values = found if isinstance(found, np.ndarray) else found.data
        if not np.isfinite(values).all():
            raise self._bad_value(None)
        return found

    def _run_chunks(self, task: Callable[[int, int], object], cost: np.ndarray | int, n_threads: int) -> None:
        pages = self.pages
        if pages is None:
            run_evenly(task, cost, n_threads)
            return
        for start, stop in itertools.pairwise(boundaries(cost, pages.n_pieces()).tolist()):
            inner = stop - start if isinstance(cost, (int, np.integer)) else cost[start : stop + 1] - cost[start]
            run_evenly(_shifted(task, start), inner, n_threads)
            pages.release()

    def _bad_value(self, feature: int | None) -> DataFileError:
        return damaged(self.path, f"{'a feature' if feature is None else f'feature {feature}'} has a NaN or infinite value")


def _shifted(task: Callable[[int, int], object], by: int) -> Callable[[int, int], object]:
    """Return a task whose feature numbers are shifted."""
    return lambda start, stop: task(by + start, by + stop)


class StoredSparseSource(_StoreMixin, SparseSource):
    """Source over CSC arrays of a store, with stored moments."""


class StoredDenseSource(_StoreMixin, DenseSource):
    """Source over a dense array of a store, with stored moments."""


StoredSource = StoredDenseSource | StoredSparseSource


class NamesOnDemand(Sequence[str]):
    """Names of very many features, each read on access."""

    def __init__(self, place: Folder, offsets: Any, letters: Any) -> None:
        self._place, self._offsets, self._letters = place, offsets, letters

    def __len__(self) -> int:
        return int(self._offsets["shape"][0]) - 1

    def __getitem__(self, feature: Any) -> Any:
        if not 0 <= feature < len(self):
            raise IndexError(feature)
        begin, end = (int(n) for n in map_array(self._place, self._offsets, int(feature), int(feature) + 2))
        if not 0 <= begin <= end <= self._letters["shape"][0]:
            raise damaged(self._place.file(self._offsets["file"]), "the string offsets are invalid")
        return map_array(self._place, self._letters, begin, end).tobytes().decode("utf-8")


class Store:
    """An opened store; see :func:`open_store`.

    Parameters
    ----------
    path : path-like
        Folder of the store, or a URL that fsspec supports (``s3://bucket/x.store``).

    Attributes
    ----------
    path : Path or str
        Folder or URL of the store.
    header : dict
        Content of ``header.json``.
    shape : tuple of int
        Number of samples and number of features.
    """

    def __init__(self, path: PathLike) -> None:
        self.place = place_of(path)
        self.path = self.place.path
        self.header = read_header(self.place)
        shape = self.header.get("shape")
        if not isinstance(shape, list) or len(shape) != 2 or not all(type(n) is int and n >= 0 for n in shape):
            raise damaged(self.place.file(HEADER), f"the shape is {shape!r}")
        self.shape = (shape[0], shape[1])
        if not isinstance(self.header.get("arrays"), dict):
            raise damaged(self.place.file(HEADER), "the header lists no arrays")
        for name, entry in self._entries.items():
            check_entry(self.place, name, entry)
        self._check_shapes()

    @property
    def _entries(self) -> Mapping[str, Any]:
        return self.header["arrays"]

    def _file(self, name: str) -> Path | str:
        """Return the path of an array, for messages."""
        return self.place.file(self._entries[name]["file"])

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
        """Bytes of all arrays on disk."""
        return sum(self.place.start(entry["file"], 0)[1] for entry in self._entries.values())

    @property
    def notes(self) -> dict[str, Any]:
        """Counts made while reading the original data."""
        notes = self.header.get("notes")
        return dict(notes) if isinstance(notes, dict) else {}

    @property
    def origin(self) -> dict[str, Any]:
        """Name and format of the original data."""
        origin = self.header.get("origin")
        return dict(origin) if isinstance(origin, dict) else {}

    def array(self, name: str) -> np.ndarray:
        """Return an array of the store as a read-only memory map."""
        if name not in self._entries:
            raise damaged(self.place.file(HEADER), f"array {name!r} is missing")
        return map_array(self.place, self._entries[name])

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
                raise damaged(self.place.file(HEADER), f"array {name!r} is missing or its shape is not {shape}")
        if not self.is_sparse and not entries["values"]["fortran_order"]:
            raise damaged(self.place.file(HEADER), "dense values are not stored by feature")
        kinds = {"indptr": ("<i4", "<i8"), "indices": ("<i4", "<i8"), "feature_mean": ("<f8",), "feature_norm": ("<f8",)}
        for name, types in kinds.items():
            if name in entries and entries[name]["dtype"] not in types:
                raise damaged(self.place.file(HEADER), f"array {name!r} has the type {entries[name]['dtype']}")

    @cached_property
    def feature_names(self) -> PackedStrings | None:
        """Names of the features, or None."""
        return self._strings("feature_names")

    def name_list(self) -> Sequence[str] | None:
        """Return the names of the features, or None. If there are many, they are read on access."""
        if "feature_names_offsets" not in self._entries or self.shape[1] <= _MAX_NAMES_IN_MEMORY:
            return self.feature_names
        return NamesOnDemand(self.place, self._entries["feature_names_offsets"], self._entries["feature_names_utf8"])

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
            raise damaged(self._file("labels"), "a label is not one of the classes")
        return np.asarray(classes, dtype=object)[labels]

    @cached_property
    def feature_info(self) -> dict[str, np.ndarray | PackedStrings]:
        """Annotations of the features, such as the chromosome and position of a SNP."""
        result: dict[str, np.ndarray | PackedStrings] = {}
        keys = self.header.get("feature_info", [])
        if not isinstance(keys, list):
            raise damaged(self.place.file(HEADER), f"feature_info is {keys!r}")
        for key in keys:
            packed = self._strings(f"info_{key}")
            column: np.ndarray | PackedStrings = self.array(f"info_{key}") if packed is None else packed
            if len(column) != self.shape[1]:
                raise damaged(self.place.file(HEADER), f"the length of {key!r} is not the number of features")
            result[str(key)] = column
        return result

    @cached_property
    def covariates(self) -> Covariates | None:
        """Covariates of the samples, or None."""
        names = self._strings("covariate_names")
        if names is None:
            return None
        values = self.array("covariates")  # flattened in C order
        if values.dtype != np.float64 or values.shape != (self.shape[0] * len(names),) or not np.isfinite(values).all():
            raise damaged(self._file("covariates"), "the type, number or values of the covariates are invalid")
        return Covariates(np.array(values).reshape(self.shape[0], len(names)), tuple(names))

    @cached_property
    def encoding(self) -> TableEncoding | None:
        """Encoding of the columns of the table that the store was made from, unless all were numbers."""
        content = self.header.get("encoding")
        if content is None:
            return None
        found = TableEncoding.from_json(content)
        if found is None:
            raise damaged(self.place.file(HEADER), "the encoding of the columns is invalid")
        return found

    @cached_property
    def sample_groups(self) -> np.ndarray | None:
        """Sample groups, or None."""
        labels = self._strings("sample_groups")
        if labels is None:
            return None
        if len(labels) != self.shape[0]:
            raise damaged(self._file("sample_groups_offsets"), "the number of sample groups is not that of the samples")
        return np.asarray(labels, dtype=object)

    def _strings(self, name: str) -> PackedStrings | None:
        if f"{name}_offsets" not in self._entries:
            return None
        offsets, letters = self.array(f"{name}_offsets"), self.array(f"{name}_utf8")
        vectors = letters.ndim == offsets.ndim == 1 and letters.dtype == np.uint8 and offsets.dtype.kind in "iu"
        if not vectors or not is_partition(offsets, len(letters)):
            raise damaged(self._file(f"{name}_offsets"), "the string offsets are invalid")
        return PackedStrings(letters, offsets)

    @cached_property
    def source(self) -> FeatureSource:
        """Features as a :class:`FeatureSource` over memory maps.

        The first use of a sparse store reads and checks its row indices, because kernels do not check them: a
        damaged store must cause an error, not a crash.
        """
        found = divided(self.part(0, self.shape[1]), self.units)
        if self.encoding is not None:
            info = self.feature_info
            found = annotated(found, {COLUMN: info[COLUMN]} if COLUMN in info else {})
            found.encoding = self.encoding
        return found

    @property
    def units(self) -> int:
        """Divisor of the stored values, such as 100 for dosages in hundredths."""
        units = self.header.get("units", 1)
        if type(units) is not int or units < 1 or (units > 1 and self.is_sparse):
            raise damaged(self.place.file(HEADER), f"the unit {units!r} is invalid")
        return units

    def part(self, first: int, last: int, *, release: bool = False) -> StoredSource:
        """Return a source over the features from ``first`` to before ``last``. Nothing else is mapped, fetched or checked.

        With ``release``, a pass releases mapped pages every 64 MB, so that they do not count as memory of this process. The
        next pass may have to read them from disk again.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from coterie.data import open_store, write_store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = open_store(write_store(Path(folder) / "eye", np.eye(5)))
        ...     store.part(1, 3).columns(np.array([0]))[:, 0]
        array([0., 1., 0., 0., 0.])
        """
        if not 0 <= first <= last <= self.shape[1]:
            raise ValueError(f"Features {first} to {last} are out of range for a store of {self.shape[1]} features.")
        moments, names = self._moments(first, last), None
        if "feature_names_offsets" in self._entries:
            names = self.feature_names if (first, last) == (0, self.shape[1]) else None
        source: StoredSource
        if not self.is_sparse:
            values = map_array(self.place, self._entries["values"], first, last)
            source = StoredDenseSource(values, names)
            source.pages = Pages([values]) if release else None
        else:
            source = self._sparse_part(first, last, names, release)
        source.stored, source.path, source.first_feature = moments, self._file("values"), first
        return annotated(source, self.feature_info) if (first, last) == (0, self.shape[1]) else source

    def _sparse_part(self, first: int, last: int, names: PackedStrings | None, release: bool) -> StoredSparseSource:
        """Return a source over the columns of a sparse store from ``first`` to before ``last``."""
        entries = self._entries
        starts = map_array(self.place, entries["indptr"], first, last + 1)
        n_values = entries["indices"]["shape"][0]
        whole = (first, last) == (0, self.shape[1])
        inside = len(starts) > 0 and 0 <= starts[0] <= starts[-1] <= n_values
        indptr = starts - starts[0] if inside and starts[0] else starts
        if not inside or (whole and starts[-1] != n_values) or not is_partition(indptr, int(indptr[-1])):
            raise damaged(self._file("indptr"), "the column starts are not increasing or out of range")
        begin, end = int(starts[0]), int(starts[-1])
        indices, values = (map_array(self.place, entries[name], begin, end) for name in ("indices", "values"))
        bad = first_invalid_column(indptr, indices, self.shape[0])
        if bad >= 0:
            what = f"the rows of feature {first + bad} are out of order or range"
            raise damaged(self._file("indices"), what)
        result = StoredSparseSource.from_arrays(indptr, indices, values, (self.shape[0], last - first), names)
        result.pages = Pages([indices, values]) if release else None
        if result.pages is not None:
            result.pages.release()
        return result

    def _moments(self, first: int, last: int) -> Moments:
        nonnegative = self.header.get("nonnegative")
        mean, norm = (
            read_only(map_array(self.place, self._entries[name], first, last)) for name in ("feature_mean", "feature_norm")
        )
        for name, bad in (("feature_mean", ~np.isfinite(mean)), ("feature_norm", ~(np.isfinite(norm) & (norm >= 0)))):
            if bad.any():
                place = first + int(np.argmax(bad))
                raise damaged(self._file(name), f"the value of feature {place} is NaN, infinite or negative")
        return Moments(mean, norm, float(self.shape[0]), nonnegative=nonnegative is True)

    def __repr__(self) -> str:
        n, m = self.shape
        kind = f"sparse, {self.n_values:,} nonzeros" if self.is_sparse else "dense"
        return f"<Store {str(self.path)!r}: {n:,} samples x {m:,} features, {kind}, {self.dtype}>"


def open_store(path: PathLike) -> Store:
    """Open a store. Only its header is read.

    Parameters
    ----------
    path : path-like
        Folder of the store.

    Returns
    -------
    store : Store
        Store, whose ``source`` and ``y`` (the labels) can be passed to ``fit``.

    See Also
    --------
    coterie.data.convert : Convert a file to a store.
    coterie.data.write_store : Write arrays to a store.
    coterie.data.check_store : Check a whole store for damage.

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
        Folder of the store.

    Returns
    -------
    store : Store
        The opened store, if it is not damaged.

    Raises
    ------
    DataFileError
        If a file is damaged. Names the first such file.

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
    if isinstance(store.place, Address):
        raise DataFileError("only a store in a folder can be checked. Copy it to this machine first.", store.path)
    check_header_bytes(store.place)
    for entry in store.header["arrays"].values():
        found = checksum(Path(store.place.file(entry["file"])))
        if found != entry["crc32"]:
            raise damaged(store.place.file(entry["file"]), f"its checksum is {found} instead of {entry['crc32']}")
    labels = (store.y, store.sample_groups, store.feature_names, store.sample_names)
    for part in (store.source, *labels, store.feature_info, store.covariates):
        del part  # each is checked when it is created
    return store


def is_store(path: PathLike) -> bool:
    """Return True if a path is a folder with the header of a store."""
    return (Path(path) / HEADER).is_file()


class Pages:
    """Memory-mapped pages of arrays of a store. Arrays that are not mapped have none."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._maps = [found for array in arrays if (found := _map_of(array)) is not None]
        self.n_bytes = sum(array.nbytes for array in arrays)

    def n_pieces(self) -> int:
        """Return the number of pieces of a pass after each of which pages are released."""
        return max(1, -(-self.n_bytes // _RELEASE_BYTES)) if self._maps else 1

    def release(self) -> None:
        """Release all mapped pages; later reads load them from disk (or the page cache) again."""
        for mapped in self._maps:
            with suppress(AttributeError, OSError, ValueError):  # madvise is not supported, or the map is closed
                mapped.madvise(mmap.MADV_DONTNEED)


def _map_of(array: np.ndarray) -> mmap.mmap | None:
    base: object = array
    while isinstance(base, np.ndarray):
        found = getattr(base, "_mmap", None)
        if isinstance(found, mmap.mmap):
            return found
        base = base.base
    return base if isinstance(base, mmap.mmap) else None
