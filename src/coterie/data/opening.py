"""Opening data files (``open_features``) and converting them to stores (``convert``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from coterie.bounds import check_regular
from coterie.bounds import memory_limit as limited
from coterie.data.covariates import CovariateFile, Covariates, read_covariate_file
from coterie.data.dataset import Dataset
from coterie.data.errors import DataFileError, is_address
from coterie.data.imputation import STRATEGIES, ImputedSource
from coterie.data.memory import DenseSource, as_source
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.collect import Collect, read_into_memory
from coterie.data.readers.columns import column_positions
from coterie.data.readers.formats import FORMATS, describe_tables, detect_format, resolve
from coterie.data.readers.h5ad import from_anndata, is_anndata
from coterie.data.readers.h5mu import from_mudata, is_mudata
from coterie.data.readers.reader import Progress, Reader, group_labels, labels_in_file, sample_groups_in_file
from coterie.data.scaled import divided
from coterie.data.source import FeatureSource
from coterie.data.store.reading import PathLike, Store, is_store, open_store
from coterie.data.store.writing import DEFAULT_MEMORY_LIMIT, write_reader

if TYPE_CHECKING:
    from coterie.inputs.types import AnnDataLike, FrameLike, MuDataLike

# Labels: a column by name or position, a key, or a text file; False for no labels.
LabelLike: TypeAlias = "str | int | os.PathLike[str] | None"
# Columns by name or position. A string may hold several names separated by commas.
ColumnsLike: TypeAlias = "str | int | Sequence[str | int] | None"


def open_features(
    path: PathLike | AnnDataLike | MuDataLike | FrameLike,
    *,
    label: LabelLike = None,
    sample_groups: LabelLike = None,
    format: str | None = None,
    drop: ColumnsLike = None,
    keep_numeric: bool = False,
    impute: str | None = None,
    **options: Any,
) -> Dataset:
    """Open a data file of any supported format, or a data frame.

    The format is detected from the content of the file, then from its name. A store is memory-mapped. Any other file is read
    into memory by feature. Values of text files have the smallest type that holds them exactly; other values keep their type.

    Parameters
    ----------
    path : path-like, data frame, AnnData or MuData
        One of the following:

        - a file in one of the formats of ``coterie.data.FORMATS``; text may be compressed with gzip, bzip2 or xz;
        - the folder of a store, or its URL (``s3://bucket/x.store``), which is read through fsspec;
        - a data frame of pandas or polars, which is read like a table in a file: categories are encoded;
        - an AnnData object, which is not copied and has the options of an .h5ad file;
        - a MuData object, which has the options of an .h5mu file.
    label : str, int or False, optional
        Labels. In a format that holds labels, the name or position of a column, or a key. In any other format, and for a
        store, a text file with one label per line. False: no labels.
    sample_groups : str, int or False, optional
        Sample groups: samples that belong together, such as the cells of a donor. A column of a table (by name or position),
        a column of ``obs``, a key (.npz), ``"FID"`` or a column of the phenotype or covariate file (PLINK). In any other
        format, and for a store, a text file with one group per line. A store has its own by default. False: none.
    format : str, optional
        A name in ``coterie.data.FORMATS``, or ``"store"``. Required if the format cannot be detected.
    drop : str, int or list of them, optional
        Features (columns of a table) to omit, by name or position. A string may hold several names separated by commas.
    keep_numeric : bool, default=False
        Whether to omit all columns of a table that are neither numeric nor boolean. By default, columns of categories are
        encoded as 1 and 0, and columns that cannot be encoded are left out with a warning. ``dataset.notes`` lists both.
    impute : {"median", "mean", "most_frequent"}, optional
        Replacement of missing values of dense features; see :func:`coterie.imputed`. By default they are NaN.
    **options
        Options of the format; see Notes. For tables: ``categories``, ``dates``, ``covariates``, ``weight``, ``delimiter``,
        ``decimal``, ``sheet``.

    Returns
    -------
    dataset : Dataset
        Features, labels, names and notes. ``fit(dataset)`` and ``fit(dataset.source, dataset.y)`` both work.

    See Also
    --------
    convert : Convert a file that is large, or is opened often, to a store.

    Notes
    -----
    The options of a format are the parameters of its reader. ``help(FORMATS["csv"].load())`` describes them and the meaning
    of ``label``. docs/reference/store.md lists all of them in one table. Every format except a store also accepts
    ``feature_names``, a sequence or a text file with one name per line.

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
            raise ValueError(f"format={format!r} does not apply to an AnnData object. Omit it.")
        found = from_anndata(path, label=label, sample_groups=sample_groups, **options)
        return _drop_and_impute(found, drop, impute)
    if is_mudata(path):
        if format not in (None, "h5mu"):
            raise ValueError(f"format={format!r} does not apply to a MuData object. Omit it.")
        return _drop_and_impute(from_mudata(path, label=label, sample_groups=sample_groups, **options), drop, impute)
    if is_table(path):
        reader = _frame_reader(path, format, label, sample_groups, {**options, "drop": drop, "keep_numeric": keep_numeric})
        return _drop_and_impute(_read(reader), None, impute)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            "path must be a file, a data frame, the folder or URL of a store, or an AnnData object, but is of type "
            f"{type(path).__name__}."
        )
    if is_address(path):
        return _open_store(path, label, sample_groups, options)
    path, format = _resolve_format(path, format)
    if format == "store":
        if drop is not None:
            raise ValueError("drop does not apply to a store. Omit features when the store is created (convert with drop=).")
        return _open_store(path, label, sample_groups, options)
    in_table = FORMATS[format].table
    if in_table:
        options = {**options, "drop": drop, "keep_numeric": keep_numeric}
    dataset = _read(_reader(path, format, label, sample_groups, options))
    return _drop_and_impute(dataset, None if in_table else drop, impute)


def _read(reader: Reader) -> Dataset:
    """Read all data of a reader into memory."""
    try:
        source = divided(read_into_memory(reader), reader.units)
    finally:
        reader.close()
    return Dataset(
        source,
        reader.labels,
        reader.sample_names,
        reader.format,
        reader.path,
        reader.notes,
        reader.feature_info,
        reader.covariates,
        reader.sample_groups,
        reader.other_columns,
        reader.sample_weight,
        reader.encoding,
    )


def is_table(data: Any) -> bool:
    """Return True if this is a data frame of pandas or polars, or a pyarrow table."""
    return type(data).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow") and hasattr(data, "columns")


def _frame_reader(frame: Any, format: str | None, label: Any, sample_groups: Any, options: dict[str, Any]) -> Reader:
    """Return the reader of a data frame."""
    from coterie.data.readers.typed_tables import FrameReader

    if format is not None:
        raise ValueError(f"format={format!r} does not apply to a data frame. Omit it.")
    accepted = [*FORMATS["parquet"].options(), "decimal"]
    unknown = next((name for name in options if name not in accepted), None)
    if unknown is not None:
        raise TypeError(f"A data frame has no option {unknown!r}. Its options are {', '.join(sorted(accepted))}.")
    collected = frame.collect() if type(frame).__name__ == "LazyFrame" else frame
    return FrameReader(collected, label=label, sample_groups=sample_groups, **options)


def _drop_and_impute(dataset: Dataset, drop: ColumnsLike, impute: str | None) -> Dataset:
    if drop is not None:
        dataset = without_features(dataset, drop)
    return dataset if impute is None else imputed_dataset(dataset, impute)


def convert(
    src: PathLike,
    store: PathLike,
    *,
    label: LabelLike = None,
    sample_groups: LabelLike = None,
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
        Data file, as for :func:`open_features`.
    store : path-like
        Folder of the new store. Its parent folder must exist.
    label, sample_groups, format, drop, keep_numeric, **options
        As for :func:`open_features`; ``drop`` and ``keep_numeric`` apply to tables only. A store cannot hold missing values,
        so they must be imputed first.
    overwrite : bool, default=False
        Whether an existing store may be replaced. The old store remains valid until the new one is complete.
    memory_limit : int, optional
        Maximum memory in bytes, in addition to 40 bytes per feature and about 100 MB. Files that require more are rejected.
        By default 1 GiB for data that are read in blocks. For a single line or feature, and for a format that must be read
        as a whole (see docs/reference/store.md), the free memory.
    progress : callable, optional
        Called with (done, total, what): the number of bytes, samples or features done, their total (or None), and a
        description of the current step.

    Returns
    -------
    store : Path
        Path of the store, for :func:`open_features` or :func:`open_store`.

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
        None, src, store, label=label, sample_groups=sample_groups, format=format, drop=drop, keep_numeric=keep_numeric,
        overwrite=overwrite, memory_limit=memory_limit, progress=progress, **options,
    )  # fmt: skip


def convert_with(
    collect: Collect | None,
    src: PathLike,
    store: PathLike,
    *,
    label: LabelLike = None,
    sample_groups: LabelLike = None,
    format: str | None = None,
    drop: ColumnsLike = None,
    keep_numeric: bool = False,
    overwrite: bool = False,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Path:
    """Convert a file as :func:`convert` does, with a function that collects the samples (None: in this process)."""
    path, format = _resolve_format(src, format)
    if format == "store":
        raise DataFileError("this is a store already.", path)
    if FORMATS[format].table:
        options = {**options, "drop": drop, "keep_numeric": keep_numeric}
    elif drop is not None:
        raise DataFileError(f"drop applies only to tables ({describe_tables()}) when converting to a store.", path)
    blocks = DEFAULT_MEMORY_LIMIT if memory_limit is None else memory_limit
    with limited(memory_limit):
        if options.get("weight") is not None:
            raise DataFileError("a store holds no sample weights. Omit weight, or open the table itself.", path)
        reader = _reader(path, format, label, sample_groups, options)
        try:
            return write_reader(reader, store, overwrite=overwrite, memory_limit=blocks, progress=progress, collect=collect)
        finally:
            reader.close()


def without_features(dataset: Dataset, drop: ColumnsLike) -> Dataset:
    """Return the data without some features, given by name or position."""
    source = dataset.source
    names = None if source.feature_names is None else list(source.feature_names)
    try:
        dropped = column_positions(drop, names, source.shape[1], "drop")
    except ValueError as error:
        raise DataFileError(str(error), dataset.path) from error
    kept = np.setdiff1d(np.arange(source.shape[1]), dropped)
    if not len(kept):
        raise DataFileError("drop removes all features. Keep at least one.", dataset.path)
    return with_features(dataset, kept)


def with_features(dataset: Dataset, kept: np.ndarray) -> Dataset:
    """Return the data with some features only, which are read into memory."""
    source, names = dataset.source, dataset.source.feature_names
    remaining = as_source(source.columns(kept), None if names is None else PackedStrings.pack(names[int(j)] for j in kept))
    info = {
        key: PackedStrings.pack(values[int(j)] for j in kept) if isinstance(values, PackedStrings) else values[kept]
        for key, values in dataset.feature_info.items()
    }
    return replace(dataset, source=remaining, feature_info=info)


def imputed_dataset(dataset: Dataset, strategy: str) -> Dataset:
    """Return the data with imputed missing values."""
    source = dataset.source
    if not isinstance(source, DenseSource):
        if source.is_sparse:
            message = "impute applies only to dense features. In sparse data, entries that are not stored are zero."
            raise DataFileError(message, dataset.path)
        return dataset  # a store, which holds no missing values
    try:
        return replace(dataset, source=ImputedSource(source.array, strategy, source.feature_names))
    except ValueError as error:
        raise DataFileError(str(error), dataset.path) from error


def _resolve_format(path: PathLike, format: str | None) -> tuple[Path, str]:
    if format is not None and format != "store" and format not in FORMATS:
        raise ValueError(f"format={format!r} must be one of store, {', '.join(FORMATS)}.")
    file = resolve(Path(path))
    if not file.exists():
        raise FileNotFoundError(2, "File not found", os.fspath(path))
    if format != "store" and not file.is_dir():
        check_regular(file)
    if format is not None:
        return file, format
    if not file.is_dir():
        return file, detect_format(file)
    if not is_store(file):
        message = "this folder has no header.json, so it is not a Coterie store. Pass a data file or a store."
        raise DataFileError(message, path)
    return file, "store"


def open_store_with(
    path: PathLike,
    place: Callable[[Store], FeatureSource],
    *,
    label: LabelLike = None,
    sample_groups: LabelLike = None,
    format: str | None = None,
    **options: Any,
) -> Dataset:
    """Open a store as :func:`open_features` does, with the source that ``place(store)`` returns instead of its own."""
    check_store(path, format)
    return _open_store(path, label, sample_groups, options, place)


def check_store(path: PathLike, format: str | None = None) -> None:
    """Raise ``DataFileError`` if a path is not a store, which Dask workers require."""
    if format not in (None, "store") or not (is_address(path) or is_store(path)):
        message = f"a cluster requires a store. Create one with: coterie convert {path} x.store"
        raise DataFileError(message, path)


def _open_store(
    path: PathLike,
    label: LabelLike,
    sample_groups: LabelLike,
    options: dict[str, Any],
    place: Callable[[Store], FeatureSource] | None = None,
) -> Dataset:
    file, names = options.pop("covariates", None), options.pop("covariate_names", None)
    if options:
        raise TypeError(f"{next(iter(options))!r} does not apply to a store. Pass it to convert instead.")
    store = open_store(path)
    y = None if label is False else store.y
    if label is not None and label is not False:
        y = labels_in_file(label, Path(path))
        if len(y) != store.shape[0]:
            raise DataFileError(f"the file has {len(y)} labels, but {path} has {store.shape[0]} samples.", str(label))
    groups = None if sample_groups is False else store.sample_groups
    if sample_groups is not None and sample_groups is not False:
        columns = [] if file is None else read_covariate_file(file).names
        if sample_groups in columns:
            groups = _column_by_name(file, str(sample_groups), store, path)
            names = [name for name in columns if name != sample_groups] if names is None else names
        else:
            groups = sample_groups_in_file(sample_groups, Path(path))
        if len(groups) != store.shape[0]:
            message = f"the file has {len(groups)} sample groups, but {path} has {store.shape[0]} samples."
            raise DataFileError(message, str(sample_groups))
    covariates = store.covariates
    if file is not None and names != []:
        covariates = _covariates_by_name(file, names, store, path)
    source = store.source if place is None else place(store)
    about = (store.sample_names, "store", store.path, store.notes, store.feature_info)
    return Dataset(source, y, *about, covariates, groups, encoding=store.encoding)


def _covariates_by_name(file: Any, names: Any, store: Store, path: PathLike) -> Covariates:
    """Read the covariates of the samples of a store, whose names are IID or FID:IID."""
    known, texts = _texts_by_name(file, names, store, path)
    return known.parse(texts)


def _column_by_name(file: Any, column: str, store: Store, path: PathLike) -> np.ndarray:
    """Read the sample groups of the samples of a store from a column of the covariate file."""
    known, texts = _texts_by_name(file, [column], store, path)
    return group_labels([text for (text,) in texts], known.path, f"column {column!r}")


def _texts_by_name(file: Any, names: Any, store: Store, path: PathLike) -> tuple[CovariateFile, list[list[str]]]:
    """Return a covariate file and its text for the samples of a store."""
    if store.sample_names is None:
        raise DataFileError("covariates cannot be matched, because the samples of the store have no names.", path)
    known = read_covariate_file(file, names)
    samples = {**{iid: (fid, iid) for fid, iid in known.rows}, **{f"{fid}:{iid}": (fid, iid) for fid, iid in known.rows}}
    texts, absent = known.select([samples.get(name, ("", name)) for name in store.sample_names])
    if absent.any():
        without = [store.sample_names[i] for i in np.flatnonzero(absent)[:5].tolist()]
        raise DataFileError(
            f"covariates are missing for {int(absent.sum())} of the {len(absent)} samples of {path}: "
            f"{', '.join(without)}{', …' if absent.sum() > 5 else ''}. Complete them, or convert the original data with this "
            "file, which drops those samples.",
            known.path,
        )
    return known, texts


def _reader(path: Path, format: str, label: LabelLike, sample_groups: LabelLike, options: dict[str, Any]) -> Reader:
    """Return the reader of a file, with labels and names from other files."""
    kind, accepted = FORMATS[format].load(), FORMATS[format].options()
    feature_names = options.pop("feature_names", None)
    unknown = [key for key in options if key not in accepted]
    if unknown:
        if unknown[0] in ("covariates", "covariate_names"):
            raise TypeError(
                f"{unknown[0]} is not supported for format {format!r}. Covariates come from columns of tables (CSV, TSV, "
                "Parquet, .xlsx) and of obs (.h5ad), and from files for PLINK data (.bed) and stores made from them. In "
                "Python, pass covariates=... to fit."
            )
        known = sorted({*accepted, "feature_names"} - {"label", "sample_groups"})
        raise TypeError(f"Format {format!r} has no option {unknown[0]!r}. Its options are {', '.join(known)}.")
    if "sample_groups" in accepted and sample_groups is not None:
        options = {**options, "sample_groups": sample_groups}
    if "label" in accepted:
        reader = kind(path, label=label, **options)
    else:
        reader = kind(path, **options)
        if label is not None:
            reader.labels_replaced = True
            reader.other_labels = None if label is False else labels_in_file(label, path)
    if "sample_groups" not in accepted and sample_groups is not None and sample_groups is not False:
        reader.sample_groups = sample_groups_in_file(sample_groups, path)
    if feature_names is not None:
        reader.feature_names = _names(feature_names)
    return reader


def _names(names: Any) -> PackedStrings:
    """Return names given as a sequence, or as a file with one name per line."""
    if isinstance(names, (str, os.PathLike)):
        return PackedStrings.pack(read_lines(Path(names)))
    return PackedStrings.pack(names)
