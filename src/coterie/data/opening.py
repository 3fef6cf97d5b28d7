"""The two doors for files: ``open_features`` into memory (or a map), ``convert`` into a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from coterie.bounds import check_regular
from coterie.bounds import memory_limit as limited
from coterie.data.covariates import Covariates, read_covariate_file
from coterie.data.dataset import Dataset
from coterie.data.errors import DataFileError, is_address
from coterie.data.imputation import STRATEGIES, ImputedSource
from coterie.data.memory import DenseSource, as_source
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.collect import Collect, read_into_memory
from coterie.data.readers.columns import places_of
from coterie.data.readers.formats import FORMATS, describe_tables, detect_format, resolve
from coterie.data.readers.h5ad import from_anndata, is_anndata
from coterie.data.readers.reader import Progress, Reader, labels_in_file
from coterie.data.source import FeatureSource
from coterie.data.store.reading import PathLike, Store, is_store, open_store
from coterie.data.store.writing import DEFAULT_MEMORY_LIMIT, write_reader

if TYPE_CHECKING:
    from coterie.inputs.types import AnnDataLike

# Labels: a column by name or position, a key, or a text file; False for none.
LabelLike: TypeAlias = "str | int | os.PathLike[str] | None"
# Columns by name or position; text may have several names with commas between.
ColumnsLike: TypeAlias = "str | int | Sequence[str | int] | None"


def open_features(
    path: PathLike | AnnDataLike,
    *,
    label: LabelLike = None,
    format: str | None = None,
    drop: ColumnsLike = None,
    keep_numeric: bool = False,
    impute: str | None = None,
    **options: Any,
) -> Dataset:
    """Open a data file of any format that Coterie knows.

    The format is found by the content of the file, then by its name. A store is opened by memory map; any other file
    is read into memory, by feature, in the smallest type that holds its values exactly (text) or in its own type.

    Parameters
    ----------
    path : path-like or AnnData
        A file in one of the formats of ``coterie.data.FORMATS`` (text may be compressed with gzip, bzip2 or xz), the
        folder of a store, the address of one that fsspec knows (``s3://bucket/x.store``), whose bytes are fetched, or an
        AnnData object, which has the options of an .h5ad file and is not copied.
    label : str, int or False, optional
        Where the labels are: in a format with a place for them the name or position of a column, or a key; in any other, and
        for a store, a text file with one label a line. False: no labels.
    format : str, optional
        A name in ``coterie.data.FORMATS``, or ``"store"``, where the content leaves a doubt.
    drop : str, int or list of them, optional
        Features (columns of a table) to leave out, by name or position. Text may have several names with commas between.
    keep_numeric : bool, default=False
        Whether to leave out the columns of a table that hold something other than numbers, or True and False (which are read
        as 1 and 0), instead of refusing them. ``dataset.notes`` says which.
    impute : {"median", "mean", "most_frequent"}, optional
        What to fill missing values of dense features with; see :func:`coterie.imputed`. By default they are NaN.
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
    if impute is not None and impute not in STRATEGIES:
        raise ValueError(f"impute={impute!r} must be one of {', '.join(STRATEGIES)}.")
    if is_anndata(path):
        if format not in (None, "h5ad"):
            raise ValueError(f"format={format!r} does not go with an AnnData object; leave it out.")
        return _changed(from_anndata(path, label=label, **options), drop, impute)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path is a {type(path).__name__}; a file, the folder or address of a store, or AnnData is needed.")
    if is_address(path):
        return _open_store(path, label, options)
    path, format = _settled(path, format)
    if format == "store":
        if drop is not None:
            raise ValueError("drop: a store is opened as it is; leave features out when it is made (convert with drop=).")
        return _open_store(path, label, options)
    in_table = FORMATS[format].table
    if in_table:
        options = {**options, "drop": drop, "keep_numeric": keep_numeric}
    reader = _reader(path, format, label, options)
    try:
        source: FeatureSource = read_into_memory(reader)
    finally:
        reader.close()
    dataset = Dataset(
        source, reader.labels, reader.sample_names, reader.format, path, reader.notes, reader.feature_info, reader.covariates
    )
    return _changed(dataset, None if in_table else drop, impute)


def _changed(dataset: Dataset, drop: ColumnsLike, impute: str | None) -> Dataset:
    if drop is not None:
        dataset = without_features(dataset, drop)
    return dataset if impute is None else imputed_dataset(dataset, impute)


def convert(
    src: PathLike,
    store: PathLike,
    *,
    label: LabelLike = None,
    format: str | None = None,
    drop: ColumnsLike = None,
    keep_numeric: bool = False,
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
    label, format, drop, keep_numeric, **options
        As for :func:`open_features`; ``drop`` and ``keep_numeric`` for tables. A store has no gaps: fill them beforehand.
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
    return convert_with(
        None, src, store, label=label, format=format, drop=drop, keep_numeric=keep_numeric, overwrite=overwrite,
        memory_limit=memory_limit, progress=progress, **options,
    )  # fmt: skip


def convert_with(
    collect: Collect | None,
    src: PathLike,
    store: PathLike,
    *,
    label: LabelLike = None,
    format: str | None = None,
    drop: ColumnsLike = None,
    keep_numeric: bool = False,
    overwrite: bool = False,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Path:
    """A store as :func:`convert` makes it, of samples that somebody else may ``collect``."""
    path, format = _settled(src, format)
    if format == "store":
        raise DataFileError("it is a store already.", path)
    if FORMATS[format].table:
        options = {**options, "drop": drop, "keep_numeric": keep_numeric}
    elif drop is not None:
        raise DataFileError(f"drop leaves out columns of tables ({describe_tables()}) when a store is made.", path)
    blocks = DEFAULT_MEMORY_LIMIT if memory_limit is None else memory_limit
    with limited(memory_limit):
        reader = _reader(path, format, label, options)
        try:
            return write_reader(reader, store, overwrite=overwrite, memory_limit=blocks, progress=progress, collect=collect)
        finally:
            reader.close()


def without_features(dataset: Dataset, drop: ColumnsLike) -> Dataset:
    """The data without some features, given by name or position."""
    source = dataset.source
    names = None if source.feature_names is None else list(source.feature_names)
    try:
        dropped = places_of(drop, names, source.shape[1], "drop")
    except ValueError as error:
        raise DataFileError(str(error), dataset.path) from error
    kept = np.setdiff1d(np.arange(source.shape[1]), dropped)
    if not len(kept):
        raise DataFileError("no feature is left.", dataset.path)
    left = as_source(source.columns(kept), None if names is None else PackedStrings.pack(names[j] for j in kept))
    info = {
        key: PackedStrings.pack(values[int(j)] for j in kept) if isinstance(values, PackedStrings) else values[kept]
        for key, values in dataset.feature_info.items()
    }
    return replace(dataset, source=left, feature_info=info)


def imputed_dataset(dataset: Dataset, strategy: str) -> Dataset:
    """The data with missing values filled."""
    source = dataset.source
    if not isinstance(source, DenseSource):
        if source.is_sparse:
            raise DataFileError("impute fills dense features; in sparse data what is not there is zero.", dataset.path)
        return dataset  # a store, which has no gaps
    try:
        return replace(dataset, source=ImputedSource(source.array, strategy, source.feature_names))
    except ValueError as error:
        raise DataFileError(str(error), dataset.path) from error


def _settled(path: PathLike, format: str | None) -> tuple[Path, str]:
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


def open_store_with(
    path: PathLike,
    place: Callable[[Store], FeatureSource],
    *,
    label: LabelLike = None,
    format: str | None = None,
    **options: Any,
) -> Dataset:
    """A store as :func:`open_features` opens it, with features by ``place(store)``: only the header is read for them."""
    check_store(path, format)
    return _open_store(path, label, options, place)


def check_store(path: PathLike, format: str | None = None) -> None:
    """Refuse what is no store where workers are to read it in parts."""
    if format not in (None, "store") or not (is_address(path) or is_store(path)):
        raise DataFileError(f"it is no store, which workers can read in parts: coterie convert {path} x.store", path)


def _open_store(
    path: PathLike, label: LabelLike, options: dict[str, Any], place: Callable[[Store], FeatureSource] | None = None
) -> Dataset:
    file, names = options.pop("covariates", None), options.pop("covariate_names", None)
    if options:
        raise TypeError(f"A store is opened without options, but there is {next(iter(options))!r}; they belong to convert.")
    store = open_store(path)
    y = None if label is False else store.y
    if label is not None and label is not False:
        y = labels_in_file(label, Path(path))
        if len(y) != store.shape[0]:
            raise DataFileError(f"there are {len(y)} labels, but {store.shape[0]} samples in {path}.", str(label))
    covariates = store.covariates if file is None else _covariates_by_name(file, names, store, path)
    source = store.source if place is None else place(store)
    return Dataset(source, y, store.sample_names, "store", store.path, store.notes, store.feature_info, covariates)


def _covariates_by_name(file: Any, names: Any, store: Store, path: PathLike) -> Covariates:
    """Covariates from a file for the samples of a store, whose names are IID or FID:IID."""
    if store.sample_names is None:
        raise DataFileError("its samples have no names, so covariates cannot be matched with them.", path)
    known = read_covariate_file(file, names)
    samples = {**{iid: (fid, iid) for fid, iid in known.rows}, **{f"{fid}:{iid}": (fid, iid) for fid, iid in known.rows}}
    texts, absent = known.of([samples.get(name, ("", name)) for name in store.sample_names])
    if absent.any():
        without = [store.sample_names[i] for i in np.flatnonzero(absent)[:5].tolist()]
        raise DataFileError(
            f"{int(absent.sum())} of the {len(absent)} samples of {path} have no covariates, or not all of them: "
            f"{', '.join(without)}{', …' if absent.sum() > 5 else ''}. Complete them, or convert the original data with this "
            "file, which leaves those samples out.",
            known.path,
        )
    return known.parsed(texts)


def _reader(path: Path, format: str, label: LabelLike, options: dict[str, Any]) -> Reader:
    """The reader of a file, with labels and names of other files attached."""
    kind, takes = FORMATS[format].load(), FORMATS[format].options()
    feature_names = options.pop("feature_names", None)
    unknown = [key for key in options if key not in takes]
    if unknown:
        if unknown[0] in ("covariates", "covariate_names"):
            raise TypeError(
                f"Files of covariates go with PLINK data (.bed), or a store of them, not with the format {format!r}. In "
                "Python, fit(X, y, covariates=...) takes them for any data."
            )
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
