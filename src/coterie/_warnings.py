"""Ignore or record warnings in one thread without affecting other threads.

``warnings.catch_warnings`` replaces the filters of the whole process and restores those it found. If the blocks of two threads
overlap, the block that ends last restores the filters of the other thread permanently. This module therefore never replaces
the filters. While any thread is in a block, ``warnings.filters`` starts with two additional filters, ``"ignore"`` and
``"always"``. The last block removes them.

A filter applies if the category of the warning is a subclass of the category of the filter, and ``issubclass`` calls
``__subclasscheck__`` of the filter's category. The categories of the two filters answer this check from the rules of the
current thread, so the filters have no effect in threads outside a block. They also have no effect if ``catch_warnings`` of
another library restores them after the last block.

Recorded warnings pass the ``"always"`` filter and reach ``warnings.showwarning``, which is replaced in the same way: the
replacement records the warning if a rule of the current thread requires it, and calls the original function otherwise.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, TextIO, cast

ShowWarning = Callable[[Warning | str, type[Warning], str, int, TextIO | None, str | None], None]


class RecordedWarning(NamedTuple):
    """Category and text of a recorded warning."""

    category: type[Warning]
    message: str


class _Rule(NamedTuple):
    """Rule of one block: append warnings of these categories to ``record``, or ignore them if it is None."""

    categories: tuple[type[Warning], ...]
    record: list[RecordedWarning] | None


class _Thread(threading.local):
    """Rules of the blocks that the current thread is in, the innermost last."""

    def __init__(self) -> None:
        self.rules: list[_Rule] = []

    def rule(self, category: type) -> _Rule | None:
        """Return the innermost rule for a category, or None."""
        return next((rule for rule in reversed(self.rules) if issubclass(category, rule.categories)), None)


_thread = _Thread()


class _ThreadCategory(type):
    """Metaclass of the two filter categories, whose subclasses depend on the rules of the current thread."""

    records: bool

    def __subclasscheck__(cls, category: type) -> bool:
        rule = _thread.rule(category)
        return rule is not None and (rule.record is not None) == cls.records


class _Ignored(Warning, metaclass=_ThreadCategory):
    """Superclass of the categories that the current thread ignores."""

    records = False


class _Recorded(Warning, metaclass=_ThreadCategory):
    """Superclass of the categories that the current thread records."""

    records = True


class _Unused(Warning):
    """A category that no warning uses."""


_FILTERS = [("ignore", None, _Ignored, None, 0), ("always", None, _Recorded, None, 0)]
_lock = threading.Lock()
_n_blocks = 0
_modified: list[list] = []  # Filter lists that contain _FILTERS. catch_warnings replaces the list, so there can be several.
_original_show: ShowWarning = warnings.showwarning  # Shows warnings that are not recorded.


@contextmanager
def ignored(*categories: type[Warning]) -> Iterator[None]:
    """Ignore warnings of some categories (all by default) that this thread raises in the block.

    Examples
    --------
    >>> import warnings
    >>> from coterie._warnings import ignored
    >>> with ignored(UserWarning):
    ...     warnings.warn("not shown", UserWarning)
    """
    with _active(_Rule(categories or (Warning,), None)):
        yield


@contextmanager
def recorded(*categories: type[Warning]) -> Iterator[list[RecordedWarning]]:
    """Record warnings of some categories (all by default) that this thread raises in the block instead of showing them.

    Examples
    --------
    >>> import warnings
    >>> from coterie._warnings import recorded
    >>> with recorded() as record:
    ...     warnings.warn("kept", UserWarning)
    >>> record[0].message
    'kept'
    """
    record: list[RecordedWarning] = []
    with _active(_Rule(categories or (Warning,), record)):
        with _lock:
            # Python registers warnings that were shown once and does not repeat them. Changing the filters through
            # the warnings module clears this register.
            warnings.simplefilter("ignore", _Unused, append=True)
            with suppress(ValueError):
                _filters().remove(("ignore", None, _Unused, None, 0))
        yield record


@contextmanager
def _active(rule: _Rule) -> Iterator[None]:
    """Apply a rule in the current thread during the block."""
    _thread.rules.append(rule)
    with _lock:
        _install()
    try:
        yield
    finally:
        _thread.rules = [own for own in _thread.rules if own is not rule]
        with _lock:
            _uninstall()


def _install() -> None:
    """Add the filters and replace ``showwarning`` unless another block has done so. Requires the lock."""
    global _n_blocks, _original_show  # noqa: PLW0603  # one state for all threads, under a lock
    _n_blocks += 1
    filters = _filters()
    if filters[:2] != _FILTERS:
        filters[:0] = _FILTERS
        _modified.append(filters)
    if warnings.showwarning is not _show_or_record:
        _original_show, warnings.showwarning = warnings.showwarning, _show_or_record


def _uninstall() -> None:
    """Restore filters and ``showwarning`` at the end of the last block. Requires the lock."""
    global _n_blocks  # noqa: PLW0603  # one state for all threads, under a lock
    _n_blocks -= 1
    if _n_blocks:
        return
    for filters in (*_modified, _filters()):
        filters[:] = [own for own in filters if own not in _FILTERS]
    _modified.clear()
    if warnings.showwarning is _show_or_record:
        warnings.showwarning = _original_show  # type: ignore[assignment]  # parameter names differ


def _show_or_record(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    rule = _thread.rule(category)
    if rule is None or rule.record is None:
        _original_show(message, category, filename, lineno, file, line)
    else:
        rule.record.append(RecordedWarning(category, str(message)))


def _filters() -> list:
    """Return the filters of the process as a mutable list."""
    return cast("list", warnings.filters)
