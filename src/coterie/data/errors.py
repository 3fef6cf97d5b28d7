"""Errors of data files: one line that names the place and says what to do."""

from __future__ import annotations

import os
from pathlib import Path


class DataFileError(ValueError):
    """A data file that cannot be read: damaged, or not what it claims to be.

    Parameters
    ----------
    message : str
        What is wrong and what to do.
    path : path-like
        The file.
    line, column : int, optional
        The place in a text file, both counted from 1.

    Attributes
    ----------
    path, line, column
        As given.

    Examples
    --------
    >>> from coterie.data import DataFileError
    >>> str(DataFileError("a label is missing.", "train.svm", line=3, column=1))
    'train.svm:3:1: a label is missing.'
    """

    def __init__(
        self, message: str, path: str | os.PathLike[str], *, line: int | None = None, column: int | None = None
    ) -> None:
        self.path = Path(path)
        self.line = line
        self.column = column
        place = "".join(f":{number}" for number in (line, column) if number is not None)
        super().__init__(f"{path}{place}: {message}")


def missing_extra(what: str, package: str, extra: str) -> ImportError:
    """The error of a reader whose library is not installed."""
    return ImportError(f"{what} needs {package}: pip install 'coterie[{extra}]'.")
