"""The two doors for files: ``open_features`` into memory (or a map), ``convert`` into a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from coterie.bounds import check_regular
from coterie.bounds import memory_limit as limited
from coterie.data.dataset import Dataset
from coterie.data.errors import DataFileError
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.detection import detect_format, resolve
from coterie.data.readers.features import read_into_memory
from coterie.data.readers.formats import FORMATS
from coterie.data.readers.labels import labels_in_file
from coterie.data.readers.reader import Progress, Reader
from coterie.data.store.reading import PathLike, is_store, open_store
from coterie.data.store.writing import DEFAULT_MEMORY_LIMIT, write_reader


def open_features(path: PathLike, *, label: Any = None, format: str | None = None, **options: Any) -> Dataset:
    """Open a data file of any format that Coterie knows.

    The format is found by the content of the file, then by its name. A store is opened by memory map; any other file
    is read into memory, by feature, in the smallest type that holds its values exactly (text) or in its own type.

    Parameters
    ----------
    path : path-like
        A file in one of the formats of ``coterie.data.FORMATS`` (text may be compressed with gzip, bzip2 or xz), or the
        folder of a store.
    label : str, int or False, optional
        Where the labels are: in a format with a place for them the name or position of a column, or a key; in any other, and
        for a store, a text file with one label a line. False: no labels.
    format : str, optional
        A name in ``coterie.data.FORMATS``, or ``"store"``, where the content leaves a doubt.
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
    The options of a format are the parameters of its reader: ``help(FORMATS["csv"].load())`` describes them, and what
    ``label`` stands for. docs/reference/store.md has all of them in one table. Every format but a store also takes
    ``feature_names``, a sequence or a text file with one name a line.

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
    memory_limit: int | None = None,
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
    memory_limit : int, optional
        Bytes to use at most, besides 40 for each feature and some 100 MB; a file that needs more is refused. By default 1 GiB
        for what is read in blocks, and the memory that is free for a file whose format must be read whole
        (docs/reference/store.md says which) and for a single line or feature.
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
    blocks = DEFAULT_MEMORY_LIMIT if memory_limit is None else memory_limit
    with limited(memory_limit):
        reader = _reader(path, format, label, options)
        try:
            return write_reader(reader, store, overwrite=overwrite, memory_limit=blocks, progress=progress)
        finally:
            reader.close()


def _settled(path: PathLike, format: str | None) -> tuple[Path, str]:
    """The file to read, and its format."""
    if format is not None and format != "store" and format not in FORMATS:
        raise ValueError(f"format={format!r} must be one of store, {', '.join(FORMATS)}.")
    settled = resolve(Path(path))
    if not settled.exists():
        raise FileNotFoundError(2, "there is no such file", os.fspath(path))
    if format != "store" and not settled.is_dir():
        check_regular(settled)
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
    kind, takes = FORMATS[format].load(), FORMATS[format].options()
    feature_names = options.pop("feature_names", None)
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
