"""Sums over features that do not depend on their order, nor on how they are divided among blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# A sum, in units of 2**-44.
Total = int
_UNIT = 1 << 44
# Numbers whose sum cannot overflow.
_MANY = 1 << 18


def exact_sum(values: np.ndarray) -> Total:
    """The sum of numbers in [0, 1], each rounded to 44 binary places.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data.sums import exact_sum, totals
    >>> numbers = np.random.default_rng(0).random(1000)
    >>> exact_sum(numbers) == exact_sum(numbers[::-1]) == exact_sum(numbers[:300]) + exact_sum(numbers[300:])
    True
    >>> totals([[exact_sum(np.array([0.5, 0.25]))], [exact_sum(np.array([1.0]))]])
    [1.75]
    """
    return sum(int(np.rint(values[i : i + _MANY] * _UNIT).astype(np.int64).sum()) for i in range(0, len(values), _MANY))


def totals(parts: Sequence[Sequence[Total]]) -> list[float]:
    """Sums of several blocks as numbers over 0: one for each of the sums of a block."""
    return [max(sum(values), 1) / _UNIT for values in zip(*parts, strict=True)]
