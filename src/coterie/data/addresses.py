"""Addresses of stores that are not on this machine: ``s3://bucket/x.store``."""

from __future__ import annotations

import os
import re
from typing import TypeGuard

# What stands before the path of an address.
_SCHEME = "://"


def is_address(path: object) -> TypeGuard[str]:
    """Whether a path is one that fsspec has to follow."""
    return isinstance(path, str) and _SCHEME in path


def with_scheme(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """A path as it is, but an address whose two strokes have been taken for one by ``Path``.

    Examples
    --------
    >>> from pathlib import PurePosixPath
    >>> from coterie.data.addresses import with_scheme
    >>> with_scheme(PurePosixPath("s3://bucket/x.store")), with_scheme("data.csv")
    ('s3://bucket/x.store', 'data.csv')
    """
    found = re.fullmatch(r"([a-z][a-z0-9+.-]+):/{1,2}([^/].*)", os.fspath(path))
    return path if found is None else f"{found[1]}://{found[2]}"
