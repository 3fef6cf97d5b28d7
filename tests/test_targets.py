"""Class codes of integer labels, which are counted instead of sorted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.inputs import targets
from coterie.inputs.targets import read_labels


@given(st.lists(st.integers(-128, 127), min_size=2, max_size=30), st.sampled_from(["int8", "int64"]))
def test_codes_are_those_of_numpy(labels, kind):
    y = np.array([*labels, -128, -128, 127, 127], dtype=kind)
    classes, codes = targets._unique(y)
    expected, positions = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, positions)
    assert classes.dtype == expected.dtype
    assert codes.dtype == positions.dtype


@pytest.mark.parametrize("labels", [[0, 1 << 62, 0, 1 << 62], [-(1 << 62), 5, -(1 << 62), 5]])
def test_labels_far_apart(labels):
    classes, codes = read_labels(np.array(labels), None)
    np.testing.assert_array_equal(classes[codes], labels)
