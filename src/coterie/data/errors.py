"""Addresses of data that are not on this machine (``s3://bucket/x.store``), and errors that name the place of the data."""

from __future__ import annotations

import os
import re
from typing import TypeGuard

from coterie.bounds import DataFileError

__all__ = ["DataFileError", "in_one_line", "is_address", "missing_extra", "with_scheme"]


def missing_extra(what: str, package: str, extra: str) -> ImportError:
    """The error of a reader whose library is not installed."""
    return ImportError(f"{what} needs {package}: pip install 'coterie[{extra}]'.")


def in_one_line(error: BaseException) -> str:
    """What a library says is wrong: the first line of its message that has any text, without its full stop."""
    lines = (line.strip() for line in str(error).splitlines())
    return (next((line for line in lines if line), "") or type(error).__name__).rstrip(".")


def is_address(path: object) -> TypeGuard[str]:
    """Whether a path is one that fsspec has to follow."""
    return isinstance(path, str) and "://" in path


def with_scheme(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """A path as it is, but an address whose two strokes have been taken for one by ``Path``.

    Examples
    --------
    >>> from pathlib import PurePosixPath
    >>> from coterie.data.errors import with_scheme
    >>> with_scheme(PurePosixPath("s3://bucket/x.store")), with_scheme("data.csv")
    ('s3://bucket/x.store', 'data.csv')
    """
    found = re.fullmatch(r"([a-z][a-z0-9+.-]+):/{1,2}([^/].*)", os.fspath(path))
    return path if found is None else f"{found[1]}://{found[2]}"
