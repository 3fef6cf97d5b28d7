"""Errors of data files: one line that names the place and says what to do."""

from __future__ import annotations

from coterie.bounds import DataFileError

__all__ = ["DataFileError", "in_one_line", "missing_extra"]


def missing_extra(what: str, package: str, extra: str) -> ImportError:
    """The error of a reader whose library is not installed."""
    return ImportError(f"{what} needs {package}: pip install 'coterie[{extra}]'.")


def in_one_line(error: BaseException) -> str:
    """What a library says is wrong: the first line of its message that has any text, without its full stop."""
    lines = (line.strip() for line in str(error).splitlines())
    return (next((line for line in lines if line), "") or type(error).__name__).rstrip(".")
