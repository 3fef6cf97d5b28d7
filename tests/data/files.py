"""Helpers of the reader tests."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from coterie.data import open_features


def matrix(dataset):
    """Return all features, as CSC or in F order."""
    return dataset.source.block(0, dataset.shape[1])


def data_or_error(path, **options):
    """Return the data, or None after an error that names the file. Any other error fails the test."""
    message = None
    try:
        return open_features(path, **options)
    except (ValueError, OSError) as error:
        message = str(error)
    assert str(path) in message, message
    assert "\n" not in message, message
    return None


def assert_same(first, second):
    """Assert that two data sets have the same content and value types."""
    a, b = matrix(first), matrix(second)
    assert a.shape == b.shape
    assert a.dtype == b.dtype or {a.dtype, b.dtype} == {np.dtype(bool), np.dtype(np.uint8)}
    np.testing.assert_array_equal(a.toarray() if sparse.issparse(a) else a, b.toarray() if sparse.issparse(b) else b)
    np.testing.assert_array_equal(first.y, second.y)
    for ours, theirs in [(first.feature_names, second.feature_names), (first.sample_names, second.sample_names)]:
        assert (None if ours is None else list(ours)) == (None if theirs is None else list(theirs))
    assert first.notes == second.notes
