"""Amounts of memory as people write them."""

from __future__ import annotations


def read_size(text: str) -> int:
    """Bytes from text such as ``500M``.

    Examples
    --------
    >>> from coterie.amounts import read_size
    >>> read_size("4G"), read_size("1.5k"), read_size("100")
    (4294967296, 1536, 100)
    """
    units = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    number = text.strip().lower().removesuffix("b").rstrip("kmgt")
    unit = text.strip().lower().removesuffix("b")[len(number) :]
    try:
        size = int(float(number) * units[unit])
    except (KeyError, ValueError, OverflowError):
        raise ValueError(f"{text!r} is no size; write 500M or 4G.") from None
    if size < 1:
        raise ValueError(f"{text!r} is too little memory; write 500M or 4G.")
    return size
