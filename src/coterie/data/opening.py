"""The two doors for files: ``open_features`` into memory (or a map), ``convert`` into a store."""

from __future__ import annotations

import inspect
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from coterie.data.dataset import Dataset
from coterie.data.errors import DataFileError
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.detection import FORMATS, detect_format, resolve
from coterie.data.readers.features import read_into_memory
from coterie.data.readers.labels import labels_in_file
from coterie.data.readers.reader import Progress, Reader
from coterie.data.store.reading import PathLike, is_store, open_store
from coterie.data.store.writing import DEFAULT_MEMORY_LIMIT, write_reader

# Where the reader of each format lives; loaded when it is needed.
_READERS = {
    "libsvm": ("coterie.data.readers.libsvm", "LibsvmReader"),
    "npz": ("coterie.data.readers.npz", "NpzReader"),
    "matrix-market": ("coterie.data.readers.matrix_market", "MatrixMarketReader"),
    "csv": ("coterie.data.readers.tabular", "CsvReader"),
    "tsv": ("coterie.data.readers.tabular", "TsvReader"),
    "parquet": ("coterie.data.readers.tabular", "ParquetReader"),
    "h5ad": ("coterie.data.readers.h5ad", "H5adReader"),
    "plink": ("coterie.data.readers.plink", "PlinkReader"),
}


def open_features(path: PathLike, *, label: Any = None, format: str | None = None, **options: Any) -> Dataset:
    """Open a data file of any format that Coterie knows.

    The format is found by the content of the file, then by its name. A store is opened by memory map; any other file
    is read into memory, by feature, in the smallest type that holds its values exactly (text) or in its own type.

    Parameters
    ----------
    path : path-like
        A file in LIBSVM, .npz, MatrixMarket, CSV, TSV, Parquet, .h5ad or PLINK .bed format (text may be compressed with gzip,
        bzip2 or xz), or the folder of a store.
    label : str, int or False, optional
        Where the labels are: the name or position of a column (CSV, TSV, Parquet), a key (.npz), a column of ``obs``
        (.h5ad), a column of the phenotype file (PLINK), or a text file with one label a line (LIBSVM, MatrixMarket, a
        store). False: no labels.
    format : str, optional
        ``"store"``, ``"libsvm"``, ``"npz"``, ``"matrix-market"``, ``"csv"``, ``"tsv"``, ``"parquet"``, ``"h5ad"`` or
        ``"plink"``, where the content leaves a doubt.
    **options
        Options of the format, see Notes.

    Returns
    -------
    dataset : Dataset
        Features, labels, names and notes. ``fit(dataset)`` and ``fit(dataset.source, dataset.y)`` both work.

    See Also
    --------
    convert : Make a store of a file that is large, or will be opened often.

    Notes
    -----
    Options of all formats but stores: ``feature_names``, a sequence or a text file with one name a line.

    - LIBSVM: ``zero_based`` (True, False or ``"auto"``), ``n_features``, ``dtype``.
    - .npz: ``label`` defaults to ``"y"``. MatrixMarket: ``transpose`` (one feature a row).
    - CSV, TSV, Parquet: ``sample_names`` (a column), ``header`` (CSV and TSV), ``missing_labels`` (``"error"`` or
      ``"drop"``). Without ``label``, a column called label, y, target or class holds the labels.
    - .h5ad: ``layer`` (a layer, or ``"raw"``), ``missing_labels``.
    - PLINK: ``phenotype`` (a file with FID, IID and phenotypes; by default the .fam file), ``missing`` (genotypes: ``"mean"``
      or ``"error"``), ``dtype`` (``"int8"`` or ``"float32"``), ``missing_labels`` (``"drop"`` or ``"error"``).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from coterie.data import open_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.svm"
    ...     _ = path.write_text("+1 1:0.5 3:2\\n-1 2:1\\n")
    ...     X, y = open_features(path)
    >>> X.shape, y
    ((2, 3), array([ 1, -1]))
    """
    path, format = _settled(path, format)
    if format == "store":
        return _open_store(path, label, options)
    reader = _reader(path, format, label, options)
    try:
        source = read_into_memory(reader)
    finally:
        reader.close()
    return Dataset(source, reader.labels, reader.sample_names, reader.format, path, reader.notes, reader.feature_info)


def convert(
    src: PathLike,
    store: PathLike,
    *,
    label: Any = None,
    format: str | None = None,
    overwrite: bool = False,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    progress: Progress | None = None,
    **options: Any,
) -> Path:
    """Convert a data file to a store, in bounded memory.

    Parameters
    ----------
    src : path-like
        The file, as for :func:`open_features`.
    store : path-like
        The folder to make, in a folder that exists.
    label, format, **options
        As for :func:`open_features`.
    overwrite : bool, default=False
        Whether a store of that name may be replaced; it stays whole until the new one is.
    memory_limit : int, default=1 GiB
        Bytes to use at most, besides 40 for each feature. LIBSVM, CSV, Parquet, .h5ad and PLINK files are read in blocks;
        .npz and MatrixMarket files are read whole.
    progress : callable, optional
        Called with (done, total, what): bytes, samples or features done, all of them (or None), and what is going on.

    Returns
    -------
    store : Path
        The store, for :func:`open_features` or :func:`open_store`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from coterie.data import convert, open_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.svm"
    ...     _ = path.write_text("+1 1:0.5 3:2\\n-1 2:1\\n")
    ...     open_features(convert(path, Path(folder) / "small.store")).shape
    (2, 3)
    """
    path, format = _settled(src, format)
    if format == "store":
        raise DataFileError("it is a store already.", path)
    reader = _reader(path, format, label, options)
    try:
        return write_reader(reader, store, overwrite=overwrite, memory_limit=memory_limit, progress=progress)
    finally:
        reader.close()


def _settled(path: PathLike, format: str | None) -> tuple[Path, str]:
    """The file to read, and its format."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r} must be one of {', '.join(FORMATS)}.")
    settled = resolve(Path(path))
    if not settled.exists():
        raise FileNotFoundError(2, "there is no such file", os.fspath(path))
    if format is not None:
        return settled, format
    if not settled.is_dir():
        return settled, detect_format(settled)
    if not is_store(settled):
        raise DataFileError("it is a folder without header.json, so not a Coterie store. Give a data file or a store.", path)
    return settled, "store"


def _open_store(path: Path, label: Any, options: dict[str, Any]) -> Dataset:
    if options:
        raise TypeError(f"A store is opened without options, but there is {next(iter(options))!r}; they belong to convert.")
    store = open_store(path)
    y = None if label is False else store.y
    if label is not None and label is not False:
        y = labels_in_file(label, path)
        if len(y) != store.shape[0]:
            raise DataFileError(f"there are {len(y)} labels, but {store.shape[0]} samples in {path}.", label)
    return Dataset(store.source, y, store.sample_names, "store", path, store.notes, store.feature_info)


def _reader(path: Path, format: str, label: Any, options: dict[str, Any]) -> Reader:
    """The reader of a file, with labels and names of other files attached."""
    module, name = _READERS[format]
    kind = getattr(import_module(module), name)
    feature_names = options.pop("feature_names", None)
    takes = [p.name for p in inspect.signature(kind.__init__).parameters.values() if p.kind == p.KEYWORD_ONLY]
    unknown = [key for key in options if key not in takes]
    if unknown:
        known = sorted({*takes, "feature_names"} - {"label"})
        raise TypeError(f"{unknown[0]!r} is not an option of the format {format!r}; its options are {', '.join(known)}.")
    if "label" in takes:
        reader = kind(path, label=label, **options)
    else:
        reader = kind(path, **options)
        if label is not None:
            reader.labels_replaced = True
            reader.other_labels = None if label is False else labels_in_file(label, path)
    if feature_names is not None:
        reader.feature_names = _names(feature_names)
    return reader


def _names(names: Any) -> PackedStrings:
    """Names given as a sequence, or as a file with one a line."""
    if isinstance(names, (str, os.PathLike)):
        return PackedStrings.pack(read_lines(Path(names)))
    return PackedStrings.pack(names)
