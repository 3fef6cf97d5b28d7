"""Addresses of remote data (``s3://bucket/x.store``) and helpers for error messages about data files."""

from __future__ import annotations

import os
import re
from typing import TypeGuard

from coterie.bounds import DataFileError

__all__ = ["DataFileError", "error_summary", "is_address", "missing_extra", "with_scheme"]


def missing_extra(what: str, package: str, extra: str) -> ImportError:
    """Return the error for an optional library that is not installed."""
    return ImportError(f"{what} requires {package}. Install it with: pip install 'coterie[{extra}]'.")


def error_summary(error: BaseException) -> str:
    """Return the first non-empty line of an error's message, without its full stop."""
    lines = (line.strip() for line in str(error).splitlines())
    return (next((line for line in lines if line), "") or type(error).__name__).rstrip(".")


def is_address(path: object) -> TypeGuard[str]:
    """Return True if a path is a URL, which is opened by fsspec."""
    return isinstance(path, str) and "://" in path


def with_scheme(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Restore the ``//`` of a URL that ``Path`` has reduced to ``/``; return any other path unchanged.

    Examples
    --------
    >>> from pathlib import PurePosixPath
    >>> from coterie.data.errors import with_scheme
    >>> with_scheme(PurePosixPath("s3://bucket/x.store")), with_scheme("data.csv")
    ('s3://bucket/x.store', 'data.csv')
    """
    found = re.fullmatch(r"([a-z][a-z0-9+.-]+):/{1,2}([^/].*)", os.fspath(path))
    return path if found is None else f"{found[1]}://{found[2]}"
