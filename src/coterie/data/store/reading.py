"""A store: features on the disk by feature, opened by memory map and used without a copy."""

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
from coterie.data.errors import DataFileError
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.names import PackedStrings
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
from coterie.data.validity import BadValues, first_bad, is_partition

PathLike = str | os.PathLike[str]
# Bytes of a store after which a pass releases its pages.
_RELEASE_EVERY = 1 << 26
# Names that are checked and held together.
_MANY_NAMES = 1 << 20


class _Stored:
    """A source over a store: it has the stored moments, and checks what is computed from its values.

    Writing refuses NaN, so one in the values is damage. Values are not checked before they are used; but one NaN or infinite
    value makes every product of its feature NaN, and products are few enough to be checked.
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

    def _each(self, task: Callable[[int, int], object], cost: np.ndarray | int, n_threads: int) -> None:
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
    """A task for features that are counted from another one on."""
    return lambda start, stop: task(by + start, by + stop)


class StoredSparseSource(_Stored, SparseSource):
    """CSC arrays of a store, with the moments that came with them."""


class StoredDenseSource(_Stored, DenseSource):
    """A dense array of a store, with the moments that came with it."""


StoredSource = StoredDenseSource | StoredSparseSource


class NamesOnDemand(Sequence[str]):
    """Names of very many features, each of which is read when it is requested."""

    def __init__(self, place: Folder, offsets: Any, letters: Any) -> None:
        self._place, self._offsets, self._letters = place, offsets, letters

    def __len__(self) -> int:
        return int(self._offsets["shape"][0]) - 1

    def __getitem__(self, feature: Any) -> Any:
        if not 0 <= feature < len(self):
            raise IndexError(feature)
        begin, end = (int(n) for n in map_array(self._place, self._offsets, int(feature), int(feature) + 2))
        if not 0 <= begin <= end <= self._letters["shape"][0]:
            raise damaged(self._place.file(self._offsets["file"]), "the offsets do not fit the letters")
        return map_array(self._place, self._letters, begin, end).tobytes().decode("utf-8")


class Store:
    """An opened store; see :func:`open_store`.

    Parameters
    ----------
    path : path-like
        The store's folder, or an address that fsspec knows (``s3://bucket/x.store``).

    Attributes
    ----------
    path : Path or str
        The folder, or its address.
    header : dict
        What ``header.json`` says.
    shape : tuple of int
        Number of samples, number of features.
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
            raise damaged(self.place.file(HEADER), "it lists no arrays")
        for name, entry in self._entries.items():
            check_entry(self.place, name, entry)
        self._check_shapes()

    @property
    def _entries(self) -> Mapping[str, Any]:
        return self.header["arrays"]

    def _file(self, name: str) -> Path | str:
        """Where an array is, for messages."""
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
        """Bytes of all arrays on the disk."""
        return sum(self.place.start(entry["file"], 0)[1] for entry in self._entries.values())

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
                raise damaged(self.place.file(HEADER), f"array {name!r} is missing or has another shape than {shape}")
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
        """Names of the features, read one by one where they are many; None where there are none."""
        if "feature_names_offsets" not in self._entries or self.shape[1] <= _MANY_NAMES:
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
        """More about each feature, such as the chromosome and position of a SNP."""
        result: dict[str, np.ndarray | PackedStrings] = {}
        keys = self.header.get("feature_info", [])
        if not isinstance(keys, list):
            raise damaged(self.place.file(HEADER), f"feature_info is {keys!r}")
        for key in keys:
            packed = self._strings(f"info_{key}")
            column: np.ndarray | PackedStrings = self.array(f"info_{key}") if packed is None else packed
            if len(column) != self.shape[1]:
                raise damaged(self.place.file(HEADER), f"{key!r} has another length than there are features")
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
            raise damaged(self._file("covariates"), "the covariates do not fit the samples")
        return Covariates(np.array(values).reshape(self.shape[0], len(names)), tuple(names))

    def _strings(self, name: str) -> PackedStrings | None:
        if f"{name}_offsets" not in self._entries:
            return None
        offsets, letters = self.array(f"{name}_offsets"), self.array(f"{name}_utf8")
        vectors = letters.ndim == offsets.ndim == 1 and letters.dtype == np.uint8 and offsets.dtype.kind in "iu"
        if not vectors or not is_partition(offsets, len(letters)):
            raise damaged(self._file(f"{name}_offsets"), "the offsets do not fit the letters")
        return PackedStrings(letters, offsets)

    @cached_property
    def source(self) -> FeatureSource:
        """The features as a :class:`FeatureSource` over memory maps.

        The first use of a sparse store reads its row indices once and makes sure that they are rows: kernels
        trust them, and a damaged store must give an error, not a crash.
        """
        return self.part(0, self.shape[1])

    def part(self, first: int, last: int, *, release: bool = False) -> StoredSource:
        """The features from ``first`` to before ``last``: nothing else of the store is mapped (or fetched), or checked.

        With ``release``, a pass releases mapped pages every 64 MB, so that they do not count as memory of this process; the
        next pass may have to read them from the disk again.

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
            raise ValueError(f"There are no features {first} to {last} in a store of {self.shape[1]}.")
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
        """The columns of a sparse store from ``first`` to before ``last``: three ranges of bytes."""
        entries = self._entries
        starts = map_array(self.place, entries["indptr"], first, last + 1)
        n_values = entries["indices"]["shape"][0]
        whole = (first, last) == (0, self.shape[1])
        inside = len(starts) > 0 and 0 <= starts[0] <= starts[-1] <= n_values
        indptr = starts - starts[0] if inside and starts[0] else starts
        if not inside or (whole and starts[-1] != n_values) or not is_partition(indptr, int(indptr[-1])):
            raise damaged(self._file("indptr"), "the column starts are not in order")
        begin, end = int(starts[0]), int(starts[-1])
        indices, values = (map_array(self.place, entries[name], begin, end) for name in ("indices", "values"))
        bad = first_bad(indptr, indices, self.shape[0])
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
                raise damaged(self._file(name), f"the number of feature {place} is NaN, infinite or negative")
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
    if isinstance(store.place, Address):
        raise DataFileError("only a store in a folder can be checked; copy it to this machine first.", store.path)
    check_header_bytes(store.place)
    for entry in store.header["arrays"].values():
        found = checksum(Path(store.place.file(entry["file"])))
        if found != entry["crc32"]:
            raise damaged(store.place.file(entry["file"]), f"its checksum is {found} instead of {entry['crc32']}")
    for part in (store.source, store.y, store.feature_names, store.sample_names, store.feature_info, store.covariates):
        del part  # each is checked when it is made
    return store


def is_store(path: PathLike) -> bool:
    """Whether a path is a folder with a store's header in it."""
    return (Path(path) / HEADER).is_file()


class Pages:
    """The pages that arrays of a store map; of arrays that are not mapped there are none."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._maps = [found for array in arrays if (found := _map_of(array)) is not None]
        self.n_bytes = sum(array.nbytes for array in arrays)

    def n_pieces(self) -> int:
        """Pieces of a pass after which pages are released."""
        return max(1, -(-self.n_bytes // _RELEASE_EVERY)) if self._maps else 1

    def release(self) -> None:
        """Release all mapped pages; later reads load them from disk (or the page cache) again."""
        for mapped in self._maps:
            with suppress(AttributeError, OSError, ValueError):  # where there is no such advice, or nothing is mapped any more
                mapped.madvise(mmap.MADV_DONTNEED)


def _map_of(array: np.ndarray) -> mmap.mmap | None:
    base: object = array
    while isinstance(base, np.ndarray):
        found = getattr(base, "_mmap", None)
        if isinstance(found, mmap.mmap):
            return found
        base = base.base
    return base if isinstance(base, mmap.mmap) else None
