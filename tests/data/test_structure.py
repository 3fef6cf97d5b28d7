"""Sparse matrices with indices out of range are rejected before compiled code uses them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie.data import as_source
from coterie.data.validity import canonical_csc, check_structure, is_partition

FORMATS = ["csc", "csr", "bsr", "coo", "lil", "dok", "dia"]


def matrix(seed=0, shape=(9, 7)):
    rng = np.random.default_rng(seed)
    return sparse.csc_array(rng.integers(0, 3, shape) * (rng.random(shape) < 0.6).astype(float))


def test_the_segfault_of_the_audit():
    broken = sparse.csc_array((np.arange(1.0, 5), [0, 1, 2, 4], [0, 2, 4]), shape=(4, 2))
    with pytest.raises(ValueError, match=r"X is invalid: entry 3 has row index 4, but there are 4 rows\. Rebuild it"):
        GroupDiscoveryClassifier(1).fit(broken, [0, 1, 0, 1])
    model = GroupDiscoveryClassifier(1).fit(np.arange(8.0).reshape(4, 2), [0, 0, 1, 1])
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match="entry 3 has row index 4"):
            method(broken)


@pytest.mark.parametrize("format", FORMATS)
def test_valid_matrices_pass(format):
    S = matrix().asformat(format)
    check_structure(S)
    result = canonical_csc(S)
    assert result.format == "csc"
    assert result.has_canonical_format
    np.testing.assert_array_equal(result.toarray(), S.toarray())


def test_canonical_csc_is_not_copied_and_its_flags_are_not_trusted():
    S = matrix()
    assert canonical_csc(S) is S
    S.has_canonical_format = True  # true until the matrix is changed
    S.indices[S.indptr[0] : S.indptr[1]] = S.indices[S.indptr[0] : S.indptr[1]][::-1].copy()
    before = S.indices.copy()
    result = canonical_csc(S)
    assert (np.diff(result.indices[: result.indptr[1]]) > 0).all()
    np.testing.assert_array_equal(S.indices, before)
    np.testing.assert_array_equal(result.toarray(), S.toarray())


@given(st.sampled_from(["csc", "csr", "bsr"]), st.sampled_from(["indices", "indptr"]), st.data())
def test_any_number_changed(format, part, data):
    """A change is rejected, or SciPy's full check accepts the matrix."""
    S = matrix(1).asformat(format)
    array = getattr(S, part)
    place = data.draw(st.integers(0, len(array) - 1))
    array[place] = data.draw(st.sampled_from([-(2**31), -1, 0, 1, 3, 6, 7, 8, 9, 10, 1000, 2**31 - 1]))
    try:
        source = as_source(S)
    except ValueError as error:
        if not str(error).startswith("The sparse matrix X is invalid"):
            raise
        return
    S.check_format(full_check=True)
    np.testing.assert_array_equal(source.block(0, S.shape[1]).toarray(), S.toarray())


@pytest.mark.parametrize("row", [-1, 9, 10**6])
def test_coordinates(row):
    S = matrix().tocoo()
    S.coords[0][2] = row
    with pytest.raises(ValueError, match=f"entry 2 has row index {row}"):
        as_source(S)
    wide = matrix().tolil()
    wide.rows[0] = [99]
    wide.data[0] = [1.0]
    with pytest.raises(ValueError, match="column index 99, but there are 7 columns"):
        as_source(wide)


def test_lengths_and_types():
    S = matrix()
    S.data = S.data[:-1]
    with pytest.raises(ValueError, match=r"ends at \d+, but there are \d+ entries"):
        as_source(S)
    S = matrix()
    S.indices = S.indices.astype(np.float64)
    with pytest.raises(ValueError, match="not integers"):
        as_source(S)


def test_partitions():
    assert is_partition(np.array([0, 0, 3, 5]), 5)
    for starts, length in (([0, 3, 2, 5], 5), ([1, 5], 5), ([0, 4], 5), ([], 0)):
        assert not is_partition(np.array(starts, dtype=np.int64), length)
