"""What the tests of readers share."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from coterie.data import open_features


def matrix(dataset):
    """All features, as CSC or in F order."""
    return dataset.source.block(0, dataset.shape[1])


def data_or_error(path, **options):
    """Data, or None after an error that names the file; anything else (another error, a crash) fails the test."""
    message = None
    try:
        return open_features(path, **options)
    except (ValueError, OSError) as error:
        message = str(error)
    assert str(path) in message, message
    assert "\n" not in message, message
    return None


def assert_same(first, second):
    """Two data sets with the same content and type of values."""
    a, b = matrix(first), matrix(second)
    assert a.shape == b.shape
    assert a.dtype == b.dtype or {a.dtype, b.dtype} == {np.dtype(bool), np.dtype(np.uint8)}
    np.testing.assert_array_equal(a.toarray() if sparse.issparse(a) else a, b.toarray() if sparse.issparse(b) else b)
    np.testing.assert_array_equal(first.y, second.y)
    for ours, theirs in [(first.feature_names, second.feature_names), (first.sample_names, second.sample_names)]:
        assert (None if ours is None else list(ours)) == (None if theirs is None else list(theirs))
    assert first.notes == second.notes
