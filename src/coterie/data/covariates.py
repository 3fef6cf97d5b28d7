"""Covariates: what is known of the samples beside the features, and is to be accounted for, not discovered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coterie.data.errors import DataFileError
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.reader import MISSING_WORDS
from coterie.data.source import LARGEST_NORM

# A column of text has at most so many different values; more of them are names, not categories.
_MAX_CATEGORIES = 50


class Covariates(NamedTuple):
    """Covariates of some samples: float64 values of shape (n_samples, n_covariates), and their names."""

    values: np.ndarray
    names: tuple[str, ...]


def as_covariates(given: Any, n_samples: int | None = None) -> Covariates:
    """Covariates from an array, a frame, a series or what :func:`coterie.data.open_features` has read.

    Parameters
    ----------
    given : Covariates, array-like or data frame of shape (n_samples,) or (n_samples, n_covariates)
        Numbers or booleans.
    n_samples : int, optional
        How many samples there must be.

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
        result = _joined([_column(name, values) for name, values in columns.items()], len(given))
    else:
        array = np.asarray(given)
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2:
            raise ValueError(f"covariates must have one or two dimensions, not {array.ndim}.")
        name = getattr(given, "name", None)
        names = [str(name)] if name is not None and array.shape[1] == 1 else [f"covariate_{k}" for k in range(array.shape[1])]
        result = _joined([_column(name, array[:, k]) for k, name in enumerate(names)], len(array))
    if n_samples is not None and len(result.values) != n_samples:
        raise ValueError(f"covariates has {len(result.values)} samples, but X has {n_samples}.")
    if not result.names:
        raise ValueError("covariates has no columns; leave it out.")
    return result


def explains(covariates: np.ndarray, targets: np.ndarray) -> bool:
    """Whether a linear function of the covariates is the target itself, up to rounding."""
    scale = covariates.std(axis=0)
    columns = (covariates - covariates.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    centred = targets - targets.mean()
    left = centred - columns @ np.linalg.lstsq(columns, centred, rcond=None)[0]
    return float(left @ left) <= 1e-20 * float(centred @ centred)


def _joined(parts: Sequence[tuple[list[str], np.ndarray]], n_samples: int) -> Covariates:
    names = tuple(name for own, _ in parts for name in own)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"covariates has two columns called {twice!r}. Rename one of them, or drop it.")
    return Covariates(np.hstack([np.empty((n_samples, 0)), *(values for _, values in parts)]), names)


def _column(name: str, values: np.ndarray) -> tuple[list[str], np.ndarray]:
    if values.dtype.kind not in "biufO" or not _are_numbers(values):
        raise ValueError(
            f"The covariate {name!r} is not made of numbers ({values.dtype}); encode it first, for instance with "
            "pandas.get_dummies(covariates, drop_first=True)."
        )
    numbers = values.astype(np.float64)
    missing = ~np.isfinite(numbers)
    if missing.any():
        raise ValueError(
            f"The covariate {name!r} is missing (or infinite) for {int(missing.sum())} sample(s), first for sample "
            f"{int(np.argmax(missing))}. Drop those samples, or impute them."
        )
    if np.abs(numbers).max(initial=0.0) > LARGEST_NORM:
        raise ValueError(f"The values of the covariate {name!r} are too large to compute with. Rescale it.")
    return [name], numbers[:, None]


def _are_numbers(values: np.ndarray) -> bool:
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return values.dtype.kind != "O" or not any(isinstance(value, (str, bytes)) for value in values)


def _from_text(name: str, texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """What a column of a file becomes: numbers, or a column of 0 and 1 for each category but the first."""
    try:
        return _column(name, np.array([float(text) for text in texts]))
    except ValueError:
        categories = sorted(set(texts))
    if len(categories) > _MAX_CATEGORIES:
        raise ValueError(
            f"the covariate {name!r} is text with {len(categories)} different values, too many for categories (at most "
            f"{_MAX_CATEGORIES}). Leave it out, or make numbers of it."
        )
    columns = [np.array([text == category for text in texts], dtype=np.float64) for category in categories[1:]]
    names = [f"{name}={category} (not {categories[0]})" for category in categories[1:]]
    return names, np.column_stack([np.empty((len(texts), 0)), *columns])


class CovariateFile(NamedTuple):
    """Columns of a file of PLINK's, such as covariates: their names, and their texts by FID and IID."""

    path: Path
    names: list[str]
    rows: dict[tuple[str, str], list[str]]

    def of(self, samples: Sequence[tuple[str, str]]) -> tuple[list[list[str]], np.ndarray]:
        """The texts of some samples, and which of them have no row or a missing value."""
        empty = [""] * len(self.names)
        texts = [self.rows.get(sample, empty) for sample in samples]
        absent = np.array([any(is_absent(text) for text in row) for row in texts], dtype=bool)
        if absent.all():
            reason = "none of its FID and IID is in the data" if not any(map(any, texts)) else "no sample has all of them"
            raise DataFileError(f"{reason}, so there are no covariates.", self.path)
        return texts, absent

    def parsed(self, texts: Sequence[Sequence[str]]) -> Covariates:
        """Texts without gaps as numbers; categories as columns of 0 and 1."""
        columns = list(zip(*texts, strict=True))
        try:
            return _joined([_from_text(name, values) for name, values in zip(self.names, columns, strict=True)], len(texts))
        except ValueError as error:
            raise DataFileError(str(error), self.path) from error


def is_absent(text: str) -> bool:
    """Whether a word stands for a missing value in PLINK's files, as -9 does."""
    try:
        return text.lower() in MISSING_WORDS or float(text) == -9.0
    except ValueError:
        return False


def read_covariate_file(path: Any, names: Any = None) -> CovariateFile:
    """Read a file with FID, IID and covariates, with or without a header.

    Parameters
    ----------
    path : path-like
        The file, separated by white space. Without a header the columns are called COV1, COV2, … as in PLINK.
    names : str or sequence of str, optional
        The columns to take; text has them separated by commas, with ranges such as ``PC1-PC10``. All by default.
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(2, "there is no such file of covariates", str(file))
    table = read_sample_table(file, [line for line in map(str.split, read_lines(file)) if line], "covariate", "COV")
    places = _places(names, table.names, file)
    rows = {sample: [row[place] for place in places] for sample, row in table.rows.items()}
    return CovariateFile(file, [table.names[place] for place in places], rows)


def read_sample_table(path: Path, lines: list[list[str]], what: str, prefix: str = "") -> CovariateFile:
    """The words of the lines of a file with FID, IID and columns, with or without a header, by sample."""
    if not lines or len(lines[0]) < 3:
        raise DataFileError(f"it must have the columns FID, IID and at least one {what}.", path, line=1)
    has_header = lines[0][0].lstrip("#").upper() == "FID" and lines[0][1].upper() == "IID"
    names = lines[0][2:] if has_header else [f"{prefix}{k}" for k in range(1, len(lines[0]) - 1)]
    rows: dict[tuple[str, str], list[str]] = {}
    for number, row in enumerate(lines[1:] if has_header else lines, start=1 + has_header):
        if len(row) != len(names) + 2:
            raise DataFileError(f"the line has {len(row)} columns instead of {len(names) + 2}.", path, line=number)
        if (row[0], row[1]) in rows:
            raise DataFileError(f"sample {row[0]} {row[1]} comes twice.", path, line=number)
        rows[row[0], row[1]] = row[2:]
    return CovariateFile(path, names, rows)


def _places(names: Any, known: Sequence[str], file: Path) -> list[int]:
    if names is None:
        return list(range(len(known)))
    asked = [name.strip() for name in names.split(",")] if isinstance(names, str) else [str(name) for name in names]
    places: list[int] = []
    for name in asked:
        if name in known:
            places.append(known.index(name))
            continue
        first, dash, last = name.partition("-")
        if dash and first in known and last in known and known.index(first) <= known.index(last):
            places += range(known.index(first), known.index(last) + 1)
            continue
        raise DataFileError(f"there is no covariate {name!r}; there are {', '.join(known)}.", file, line=1)
    return list(dict.fromkeys(places))


def known_covariates(estimator: Any, covariates: Any, n_samples: int) -> np.ndarray | None:
    """Values of the covariates that a fitted model needs for some samples; those with names may come in any order."""
    names = getattr(estimator, "covariate_names_", None)
    if names is None:
        if covariates is not None:
            raise ValueError("The model was fitted without covariates; leave them out.")
        return None
    known = [str(name) for name in names]
    if covariates is None:
        raise ValueError(
            f"The model was fitted with covariates ({', '.join(known)}) and needs those of these samples: pass covariates=."
        )
    given = as_covariates(covariates, n_samples)
    if isinstance(covariates, Covariates) or hasattr(covariates, "columns"):
        places = {name: k for k, name in enumerate(given.names)}
        missing = [name for name in known if name not in places]
        if missing:
            raise ValueError(f"covariates lacks {', '.join(missing)}, with which the model was fitted.")
        return given.values[:, [places[name] for name in known]]
    if len(given.names) != len(known):
        raise ValueError(
            f"covariates has {len(given.names)} columns, but the model was fitted with {len(known)} ({', '.join(known)})."
        )
    return given.values
