"""Warnings ignored or recorded in one thread, without an effect on others.

``warnings.catch_warnings`` replaces the filters of the whole process and puts back those it has found: of two threads whose
blocks overlap, the one that ends last puts back the filters of the other, for good. Here two filters stand in
``warnings.filters`` while any thread is in such a block. They match only in these threads, and go with the last one. (If
``catch_warnings`` of another library brings them back, they match nothing.)
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, TextIO, cast

ShowWarning = Callable[[Warning | str, type[Warning], str, int, TextIO | None, str | None], None]


class RecordedWarning(NamedTuple):
    """A warning that was recorded."""

    category: type[Warning]
    message: str


class _Rule(NamedTuple):
    """What becomes of warnings of these categories in a block: they are recorded, or ignored (None)."""

    categories: tuple[type[Warning], ...]
    told: list[RecordedWarning] | None


class _Thread(threading.local):
    """The blocks that a thread is in."""

    def __init__(self) -> None:
        self.rules: list[_Rule] = []

    def rule(self, category: type) -> _Rule | None:
        """The innermost rule for a category."""
        return next((rule for rule in reversed(self.rules) if issubclass(category, rule.categories)), None)


_thread = _Thread()


class _IgnoredType(type):
    def __subclasscheck__(cls, category: type) -> bool:
        rule = _thread.rule(category)
        return rule is not None and rule.told is None


class _RecordedType(type):
    def __subclasscheck__(cls, category: type) -> bool:
        rule = _thread.rule(category)
        return rule is not None and rule.told is not None


class _Ignored(Warning, metaclass=_IgnoredType):
    """Has the categories that this thread ignores now as its subclasses."""


class _Recorded(Warning, metaclass=_RecordedType):
    """Has the categories that this thread records now as its subclasses."""


class _Unused(Warning):
    """A category that no warning has."""


_FILTERS = [("ignore", None, _Ignored, None, 0), ("always", None, _Recorded, None, 0)]
_lock = threading.Lock()
_n_blocks = 0
_changed: list[list] = []  # the lists of filters that have ours
_show: ShowWarning = warnings.showwarning  # what shows the warnings that are not recorded


@contextmanager
def ignored(*categories: type[Warning]) -> Iterator[None]:
    """Ignore warnings of some categories (of all, if there are none) that this thread raises in the block.

    Examples
    --------
    >>> import warnings
    >>> from coterie._warnings import ignored
    >>> with ignored(UserWarning):
    ...     warnings.warn("not shown", UserWarning)
    """
    with _in_force(_Rule(categories or (Warning,), None)):
        yield


@contextmanager
def recorded(*categories: type[Warning]) -> Iterator[list[RecordedWarning]]:
    """Record warnings of some categories (of all, if there are none) that this thread raises, instead of showing them.

    Examples
    --------
    >>> import warnings
    >>> from coterie._warnings import recorded
    >>> with recorded() as told:
    ...     warnings.warn("kept", UserWarning)
    >>> told[0].message
    'kept'
    """
    told: list[RecordedWarning] = []
    with _in_force(_Rule(categories or (Warning,), told)):
        with _lock:
            # Python keeps a list of what was shown once, and forgets it when the filters change.
            warnings.simplefilter("ignore", _Unused, append=True)
            with suppress(ValueError):
                _filters().remove(("ignore", None, _Unused, None, 0))
        yield told


@contextmanager
def _in_force(rule: _Rule) -> Iterator[None]:
    _thread.rules.append(rule)
    with _lock:
        _enter()
    try:
        yield
    finally:
        _thread.rules = [own for own in _thread.rules if own is not rule]
        with _lock:
            _leave()


def _enter() -> None:
    global _n_blocks, _show  # noqa: PLW0603  # one state for all threads, under a lock
    _n_blocks += 1
    filters = _filters()
    if filters[:2] != _FILTERS:
        filters[:0] = _FILTERS
        _changed.append(filters)
    if warnings.showwarning is not _show_or_record:
        _show, warnings.showwarning = warnings.showwarning, _show_or_record


def _leave() -> None:
    global _n_blocks  # noqa: PLW0603  # one state for all threads, under a lock
    _n_blocks -= 1
    if _n_blocks:
        return
    for filters in (*_changed, _filters()):
        filters[:] = [own for own in filters if own not in _FILTERS]
    _changed.clear()
    if warnings.showwarning is _show_or_record:
        warnings.showwarning = _show  # type: ignore[assignment]  # the same, but for names


def _show_or_record(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    rule = _thread.rule(category)
    if rule is None or rule.told is None:
        _show(message, category, filename, lineno, file, line)
    else:
        rule.told.append(RecordedWarning(category, str(message)))


def _filters() -> list:
    """The filters of the process."""
    return cast("list", warnings.filters)
