"""Numbers of all features that depend neither on their order nor on how they are divided among blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.data.source import FeatureSource

# A sum, in units of 2**-44.
Total = int
_UNIT = 1 << 44
# Numbers whose sum cannot overflow.
_MANY = 1 << 18
# Features of a block: dense ones are looked at, of sparse ones only the number of entries.
_DENSE, _SPARSE = 256, 1 << 16
# The part of values below which features are counts of rare things: words, clicks.
FEW_VALUES = 0.1


def exact_sum(values: np.ndarray) -> Total:
    """The sum of numbers in [0, 1], each rounded to 44 binary places.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data.totals import exact_sum, totals
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


def mostly_zero(source: FeatureSource, most: float = FEW_VALUES) -> bool:
    """Whether no more than this part of all values is other than zero.

    It is the same for the same data in any format. Features are read until the answer is certain: with few zeros that is soon.

    Parameters
    ----------
    source : FeatureSource
        The features.
    most : float, default=0.1
        The part, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from coterie.data import as_source
    >>> from coterie.data.totals import mostly_zero
    >>> X = np.eye(20)
    >>> mostly_zero(as_source(X)), mostly_zero(as_source(sparse.csc_array(X))), mostly_zero(as_source(X), 0.01)
    (True, True, False)
    """
    n_samples, n_features = source.shape
    limit = most * n_samples * n_features
    return sum(source.map_blocks(_count, None, limit)) <= limit


def _count(source: FeatureSource, limit: float) -> int:
    """Number of values other than zero, or one over the limit."""
    count = 0
    for _, block in source.blocks(_SPARSE if source.is_sparse else _DENSE):
        count += int(np.count_nonzero(block if isinstance(block, np.ndarray) else block.data))
        if count > limit:
            break
    return count
