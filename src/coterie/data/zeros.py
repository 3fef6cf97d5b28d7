"""Whether features are mostly zero, however they are stored."""

from __future__ import annotations

import numpy as np

from coterie.data.source import FeatureSource

# Features of a block: dense ones are looked at, of sparse ones only the number of entries.
_DENSE, _SPARSE = 256, 1 << 16
# The part of values below which features are counts of rare things: words, clicks.
FEW_VALUES = 0.1


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
    >>> from coterie.data.zeros import mostly_zero
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
