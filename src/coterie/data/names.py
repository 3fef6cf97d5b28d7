"""Checks of feature names, and strings packed into two arrays to save memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from coterie.inputs.types import NamesLike


def require_unique_names(names: Sequence[str], columns: Sequence[int] | None = None, *, of: str = "") -> None:
    """Raise ``ValueError`` if a feature name occurs twice, because results and fixed features refer to names.

    ``columns`` holds the positions of the names in the table, by default 0, 1, 2, …. The message begins with ``of``.
    """
    positions: dict[str, int] = {}
    for j, name in zip(range(len(names)) if columns is None else columns, names, strict=True):
        if name in positions:
            raise ValueError(f"{of}columns {positions[name]} and {j} have the same name {name!r}. Rename or drop one of them.")
        positions[name] = j


def check_names(names: NamesLike, n_features: int) -> Sequence[str]:
    """Return the given feature names, or those a function returns, after checking type, number and uniqueness."""
    given: Any = names() if callable(names) else names
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise ValueError(f"feature_names must be a list with one name per feature ({n_features} features).")
    if len(given) != n_features:
        raise ValueError(f"feature_names has {len(given)} names, but X has {n_features} features.")
    if isinstance(given, PackedStrings):
        return given
    found = list(given)
    wrong = next((name for name in found if not isinstance(name, str)), None)
    if wrong is not None:
        raise ValueError(f"feature_names must be strings, but {wrong!r} is of type {type(wrong).__name__}.")
    found = [str(name) for name in found]  # converts numpy.str_ to str
    if len(set(found)) < len(found):
        require_unique_names(found, of="feature_names: ")
    return found


class PackedStrings(Sequence[str]):
    """Strings held as UTF-8 bytes and offsets, decoded on access.

    Parameters
    ----------
    letters : ndarray of uint8
        Concatenated UTF-8 bytes of all strings.
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
        """Pack strings. Other objects are converted by ``str``."""
        if isinstance(strings, PackedStrings):
            return strings
        encoded = [str(string).encode("utf-8", "surrogateescape") for string in strings]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(one) for one in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    @classmethod
    def join(cls, parts: Sequence[PackedStrings]) -> PackedStrings:
        """Concatenate the strings of all parts."""
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
            raise IndexError(f"Index {i} is out of range for {len(self)} strings.")
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
