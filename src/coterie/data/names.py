"""Millions of strings as two arrays, so that names cost what their letters cost."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from coterie.inputs.types import NamesLike


def refuse_repeated(names: Sequence[str], columns: Sequence[int] | None = None, *, of: str = "") -> None:
    """Refuse feature names of a table that come twice: results and fixed features go by them.

    ``columns`` are the places of the names in the table, where those are not 0, 1, 2, … The message begins with ``of``.
    """
    places: dict[str, int] = {}
    for j, name in zip(range(len(names)) if columns is None else columns, names, strict=True):
        if name in places:
            raise ValueError(f"{of}columns {places[name]} and {j} are both called {name!r}. Rename one of them, or drop it.")
        places[name] = j


def check_names(names: NamesLike, n_features: int) -> Sequence[str]:
    """Names of features, given by the user or returned by a function: text, one per feature, none of them twice."""
    given: Any = names() if callable(names) else names
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise ValueError(f"feature_names must be a list of names, one for each of the {n_features} features.")
    if len(given) != n_features:
        raise ValueError(f"feature_names has {len(given)} names, but X has {n_features} features.")
    if isinstance(given, PackedStrings):
        return given
    found = list(given)
    wrong = next((name for name in found if not isinstance(name, str)), None)
    if wrong is not None:
        raise ValueError(f"feature_names must be text, but {wrong!r} is of type {type(wrong).__name__}.")
    found = [str(name) for name in found]  # not NumPy's
    if len(set(found)) < len(found):
        refuse_repeated(found, of="feature_names: ")
    return found


class PackedStrings(Sequence[str]):
    """Strings held as UTF-8 bytes and offsets; each becomes a Python string when it is asked for.

    Parameters
    ----------
    letters : ndarray of uint8
        The UTF-8 bytes of all strings, one after the other.
    offsets : ndarray of int64 of shape (n + 1,)
        String ``i`` is ``letters[offsets[i]:offsets[i + 1]]``.

    Examples
    --------
    >>> from coterie.data import PackedStrings
    >>> names = PackedStrings.pack(["rs12", "rs7"])
    >>> names[1], len(names), names.letters.nbytes
    ('rs7', 2, 7)
    """

    def __init__(self, letters: np.ndarray, offsets: np.ndarray) -> None:
        self.letters = letters
        self.offsets = offsets

    @classmethod
    def pack(cls, strings: Iterable[Any]) -> PackedStrings:
        """Pack strings (or what ``str`` makes of other things)."""
        if isinstance(strings, PackedStrings):
            return strings
        encoded = [str(string).encode("utf-8", "surrogateescape") for string in strings]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(one) for one in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    @classmethod
    def join(cls, parts: Sequence[PackedStrings]) -> PackedStrings:
        """The strings of all parts, one after the other."""
        letters = np.concatenate([np.empty(0, dtype=np.uint8), *(part.letters for part in parts)])
        lengths = np.concatenate([np.zeros(1, dtype=np.int64), *(np.diff(part.offsets) for part in parts)])
        return cls(letters, np.cumsum(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = int(index)
        if not -len(self) <= i < len(self):
            raise IndexError(f"string {i} of {len(self)}")
        i %= len(self)
        return self.letters[self.offsets[i] : self.offsets[i + 1]].tobytes().decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        letters, ends = self.letters.tobytes(), self.offsets.tolist()
        return (letters[a:b].decode("utf-8", "surrogateescape") for a, b in itertools.pairwise(ends))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        result = np.empty(len(self), dtype=object)
        result[:] = list(self)
        return result if dtype is None else result.astype(dtype, copy=False)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedStrings):
            return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.letters, other.letters)
        return list(self) == list(other) if isinstance(other, Sequence) and not isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return hash((len(self), self.letters.tobytes()))

    def __repr__(self) -> str:
        shown = ", ".join(repr(name) for name in self[:3])
        return f"<{len(self)} strings: {shown}{', …' if len(self) > 3 else ''}>"
