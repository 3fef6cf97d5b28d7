"""Covariates: columns that a model adjusts for and never selects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coterie.data.errors import DataFileError
from coterie.data.source import LARGEST_NORM

# Maximum number of categories of a text column. Columns with more values are probably names.
_MAX_CATEGORIES = 50


class Covariates(NamedTuple):
    """Covariates: float64 values of shape (n_samples, n_covariates), and their names."""

    values: np.ndarray
    names: tuple[str, ...]


def as_covariates(given: Any, n_samples: int | None = None) -> Covariates:
    """Convert an array, a data frame or a series to covariates.

    Parameters
    ----------
    given : Covariates, array-like or data frame of shape (n_samples,) or (n_samples, n_covariates)
        Numbers or booleans. Covariates, as read by :func:`coterie.data.open_features`, are returned unchanged.
    n_samples : int, optional
        Required number of samples.

    Examples
    --------
    >>> import pandas as pd
    >>> from coterie.data.covariates import as_covariates
    >>> as_covariates(pd.DataFrame({"age": [30, 41], "smokes": [True, False]}))
    Covariates(values=array([[30.,  1.],
           [41.,  0.]]), names=('age', 'smokes'))
    """
    if isinstance(given, Covariates):
        result = given
    elif hasattr(given, "columns"):
        columns = {str(name): np.asarray(given[name]) for name in given.columns}
        result = _stack_columns([_column(name, values) for name, values in columns.items()], len(given))
    else:
        array = np.asarray(given)
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2:
            raise ValueError(f"covariates must have one or two dimensions, but has {array.ndim}.")
        name = getattr(given, "name", None)
        names = [str(name)] if name is not None and array.shape[1] == 1 else [f"covariate_{k}" for k in range(array.shape[1])]
        result = _stack_columns([_column(name, array[:, k]) for k, name in enumerate(names)], len(array))
    if n_samples is not None and len(result.values) != n_samples:
        raise ValueError(f"covariates has {len(result.values)} samples, but X has {n_samples}.")
    if not result.names:
        raise ValueError("covariates has no columns. Omit it.")
    return result


def explains_target(covariates: np.ndarray, targets: np.ndarray) -> bool:
    """Return True if the target (of several, any) is a linear function of the covariates, up to rounding."""
    if targets.ndim == 2:
        return any(explains_target(covariates, target) for target in targets.T)
    scale = covariates.std(axis=0)
    columns = (covariates - covariates.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    centred = targets - targets.mean()
    residual = centred - columns @ np.linalg.lstsq(columns, centred, rcond=None)[0]
    return float(residual @ residual) <= 1e-20 * float(centred @ centred)


def _stack_columns(parts: Sequence[tuple[list[str], np.ndarray]], n_samples: int) -> Covariates:
    names = tuple(name for own, _ in parts for name in own)
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"covariates has two columns named {repeated!r}. Rename or drop one of them.")
    return Covariates(np.hstack([np.empty((n_samples, 0)), *(values for _, values in parts)]), names)


def _column(name: str, values: np.ndarray) -> tuple[list[str], np.ndarray]:
    if values.dtype.kind not in "biufO" or not _is_numeric(values):
        raise ValueError(
            f"The covariate {name!r} is not numeric ({values.dtype}). Encode it, for instance with "
            "pandas.get_dummies(covariates, drop_first=True)."
        )
    numbers = values.astype(np.float64)
    missing = ~np.isfinite(numbers)
    if missing.any():
        raise ValueError(
            f"The covariate {name!r} is missing or infinite for {int(missing.sum())} sample(s). The first is sample "
            f"{int(np.argmax(missing))}. Drop these samples or impute the values."
        )
    if np.abs(numbers).max(initial=0.0) > LARGEST_NORM:
        raise ValueError(f"Values of the covariate {name!r} exceed {LARGEST_NORM:.0e}. Rescale it.")
    return [name], numbers[:, None]


def _is_numeric(values: np.ndarray) -> bool:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return values.dtype.kind != "O" or not any(isinstance(value, (str, bytes)) for value in values)


def _from_text(name: str, texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Parse a column of a file as numbers or, if it is text, as a 0/1 column per category except the first."""
    try:
        return _column(name, np.array([float(text) for text in texts]))
    except ValueError:
        categories = sorted(set(texts))
    if len(categories) > _MAX_CATEGORIES:
        raise ValueError(
            f"the covariate {name!r} is text with {len(categories)} distinct values. The maximum is {_MAX_CATEGORIES} "
            "categories. Omit the covariate or encode it as numbers."
        )
    columns = [np.array([text == category for text in texts], dtype=np.float64) for category in categories[1:]]
    names = [f"{name}={category} (not {categories[0]})" for category in categories[1:]]
    return names, np.column_stack([np.empty((len(texts), 0)), *columns])


class CovariateFile(NamedTuple):
    """Columns of a PLINK text file, such as covariates: their names, and their text by (FID, IID).

    In a file without families, FID is empty.
    """

    path: Path
    names: list[str]
    rows: dict[tuple[str, str], list[str]]

    def select(self, samples: Sequence[tuple[str, str]]) -> tuple[list[list[str]], np.ndarray]:
        """Return the text of some samples, and a mask of those that have no row or a missing value."""
        empty = [""] * len(self.names)
        texts = [self.rows.get(sample, empty) for sample in samples]
        absent = np.array([any(is_missing_code(text) for text in row) for row in texts], dtype=bool)
        if absent.all():
            if not any(map(any, texts)):
                raise DataFileError("no pair of FID and IID in this file matches a sample of the data.", self.path)
            raise DataFileError("every sample has at least one missing covariate.", self.path)
        return texts, absent

    def parse(self, texts: Sequence[Sequence[str]]) -> Covariates:
        """Parse text without missing values. Categories become 0/1 columns."""
        columns = list(zip(*texts, strict=True))
        try:
            return _stack_columns(
                [_from_text(name, values) for name, values in zip(self.names, columns, strict=True)], len(texts)
            )
        except ValueError as error:
            raise DataFileError(str(error), self.path) from error


def is_missing_code(text: str) -> bool:
    """Return True if a word denotes a missing value in PLINK files, such as -9."""
    from coterie.data.readers.reader import MISSING_WORDS

    try:
        return text.lower() in MISSING_WORDS or float(text) == -9.0
    except ValueError:
        return False


def read_covariate_file(path: Any, names: Any = None) -> CovariateFile:
    """Read a file with the columns FID, IID and covariates, with or without a header.

    Parameters
    ----------
    path : path-like
        File with columns separated by white space. Without a header, the columns are named COV1, COV2, … as in PLINK.
    names : str or sequence of str, optional
        Columns to read. A string lists names separated by commas, and may contain ranges such as ``PC1-PC10``. All columns
        by default.
    """
    from coterie.data.readers.byte_stream import read_lines

    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(2, "Covariate file not found", str(file))
    table = read_sample_table(file, [line for line in map(str.split, read_lines(file)) if line], "covariate", "COV")
    positions = _column_positions(names, table.names, file)
    rows = {sample: [row[position] for position in positions] for sample, row in table.rows.items()}
    return CovariateFile(file, [table.names[position] for position in positions], rows)


def read_sample_table(path: Path, lines: list[list[str]], what: str, prefix: str = "") -> CovariateFile:
    """Return the words of a file with FID, IID and further columns by sample, with or without a header.

    As in PLINK 2, the header may begin with IID. Such a file has no families.
    """
    head = [word.lstrip("#").upper() for word in lines[0][:2]] if lines else []
    n_keys = 1 if head[:1] == ["IID"] else 2
    has_header = n_keys == 1 or head == ["FID", "IID"]
    if not lines or len(lines[0]) <= n_keys:
        raise DataFileError(
            f"the file must have the columns FID, IID and at least one {what}. With a header, FID may be absent.", path, line=1
        )
    names = lines[0][n_keys:] if has_header else [f"{prefix}{k}" for k in range(1, len(lines[0]) - 1)]
    rows: dict[tuple[str, str], list[str]] = {}
    for number, row in enumerate(lines[1:] if has_header else lines, start=1 + has_header):
        if len(row) != len(names) + n_keys:
            raise DataFileError(f"the line has {len(row)} columns instead of {len(names) + n_keys}.", path, line=number)
        key = ("", row[0]) if n_keys == 1 else (row[0], row[1])
        if key in rows:
            raise DataFileError(f"sample {' '.join(row[:n_keys])} occurs twice.", path, line=number)
        rows[key] = row[n_keys:]
    return CovariateFile(path, names, rows)


def _column_positions(names: Any, known: Sequence[str], file: Path) -> list[int]:
    if names is None:
        return list(range(len(known)))
    requested = [name.strip() for name in names.split(",")] if isinstance(names, str) else [str(name) for name in names]
    positions: list[int] = []
    for name in requested:
        if name in known:
            positions.append(known.index(name))
            continue
        first, dash, last = name.partition("-")
        if dash and first in known and last in known and known.index(first) <= known.index(last):
            positions += range(known.index(first), known.index(last) + 1)
            continue
        raise DataFileError(f"covariate {name!r} not found. The file has {', '.join(known)}.", file, line=1)
    return list(dict.fromkeys(positions))


def match_covariates(estimator: Any, covariates: Any, n_samples: int) -> np.ndarray | None:
    """Return covariate values in the order of a fitted model. Named columns may be given in any order."""
    names = getattr(estimator, "covariate_names_", None)
    if names is None:
        if covariates is not None:
            raise ValueError("The model was fitted without covariates. Omit covariates=.")
        return None
    known = [str(name) for name in names]
    if covariates is None:
        raise ValueError(
            f"The model was fitted with covariates ({', '.join(known)}). Pass those of these samples as covariates=."
        )
    given = as_covariates(covariates, n_samples)
    if isinstance(covariates, Covariates) or hasattr(covariates, "columns"):
        positions = {name: k for k, name in enumerate(given.names)}
        missing = [name for name in known if name not in positions]
        if missing:
            raise ValueError(f"covariates lacks columns that the model was fitted with: {', '.join(missing)}.")
        return given.values[:, [positions[name] for name in known]]
    if len(given.names) != len(known):
        raise ValueError(
            f"covariates has {len(given.names)} columns, but the model was fitted with {len(known)} ({', '.join(known)})."
        )
    return given.values
