"""Dense and CSC sources in memory and in memory maps."""

import numpy as np
import pytest
from scipy import sparse

from coterie.data import DenseSource, SparseSource, as_source
from tests.data.conformance import SourceConformance, example


class TestDenseC(SourceConformance):
    def make(self, X):
        return as_source(np.ascontiguousarray(X, dtype=np.float64))


class TestDenseF(SourceConformance):
    def make(self, X):
        return as_source(np.asfortranarray(X, dtype=np.float32))


class TestDenseInt8(SourceConformance):
    def make(self, X):
        return as_source(np.asfortranarray(X, dtype=np.int8))


class TestDenseStrided(SourceConformance):
    """Every second row and column of a larger array, reversed: neither C nor F order."""

    def make(self, X):
        large = np.full((2 * X.shape[0], 3 * X.shape[1]), 99, dtype=np.int16)
        large[::2, ::3] = X[:, ::-1]
        return as_source(large[::2, ::3][:, ::-1])


class TestMemoryMap(SourceConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def make(self, X):
        np.save(self.folder / "x.npy", np.asfortranarray(X, dtype=np.uint8))
        array = np.load(self.folder / "x.npy", mmap_mode="r")
        assert isinstance(array, np.memmap)
        return as_source(array)


class TestCSC(SourceConformance):
    def make(self, X):
        return as_source(sparse.csc_array(X.astype(np.float64)))


class TestCSCMemoryMapInt64(SourceConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def make(self, X):
        S = sparse.csc_array(X.astype(np.uint8))
        parts = {"data": S.data, "indices": S.indices.astype(np.int64), "indptr": S.indptr.astype(np.int64)}
        for name, part in parts.items():
            np.save(self.folder / f"{name}.npy", part)
            parts[name] = np.load(self.folder / f"{name}.npy", mmap_mode="r")
        matrix = sparse.csc_array((parts["data"], parts["indices"], parts["indptr"]), shape=X.shape)
        assert matrix.indices.dtype == np.int64
        return as_source(matrix)


class TestFromCSRMatrix(SourceConformance):
    def make(self, X):
        return as_source(sparse.csr_matrix(X.astype(np.float32)))


class TestUnsortedDuplicatesAndZeros(SourceConformance):
    """Entries that are split, unsorted and mixed with explicit zeros."""

    def make(self, X):
        rows, cols, values = [], [], []
        for i, j in zip(*np.nonzero(X), strict=True):
            rows += [i, i]
            cols += [j, j]
            values += [X[i, j] + 2, -2]
        rows += [0, 1]
        cols += [5, 5]
        values += [0, 0]
        order = np.lexsort((-np.array(rows), np.array(cols)))
        rows, cols, values = (np.array(a)[order] for a in (rows, cols, values))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(cols, minlength=X.shape[1]))])
        matrix = sparse.csc_array((values.astype(float), rows, indptr), shape=X.shape)
        before = matrix.data.copy()
        source = as_source(matrix)
        np.testing.assert_array_equal(matrix.data, before)
        return source


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8, np.bool_])
def test_arrays_are_not_copied(rng, dtype, order):
    X = np.asarray(rng.integers(0, 2, (5, 4)), dtype=dtype, order=order)
    assert np.shares_memory(as_source(X)._array, X)


def test_csc_is_not_copied(rng):
    S = sparse.csc_array(example(rng).astype(np.float32))
    assert np.shares_memory(as_source(S)._values, S.data)
    assert np.shares_memory(as_source(S)._indices, S.indices)


def test_a_source_is_its_own_source(rng):
    source = DenseSource(example(rng))
    assert as_source(source) is source


def test_feature_names_are_kept(rng):
    X = example(rng)[:, :3]
    assert as_source(X, ["a", "b", "c"]).feature_names == ["a", "b", "c"]
    assert SparseSource(sparse.csc_array(X), ["a", "b", "c"]).feature_names == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_bad_values_are_counted_and_placed(kind):
    X = np.ones((6, 4))
    X[:, 1] = range(6)
    X[2, 1], X[5, 1], X[3, 3] = np.nan, np.inf, -np.inf
    make = DenseSource if kind == "dense" else (lambda A, names=None: SparseSource(sparse.csc_array(A), names))
    with pytest.raises(
        ValueError, match=r"3 NaN or infinite value\(s\) in 2 feature\(s\)\. The first is in sample 2 of feature 1\."
    ):
        make(X).moments()
    with pytest.raises(ValueError, match=r"feature 1 \('b'\)"):
        make(X, ["a", "b", "c", "d"]).moments()


@pytest.mark.parametrize("values", [[1e200, -1e200, 0.0], [0.0, 1e200, -1e200], [2.0, 1e200, 2.0], [1e200, 1e200, 0.0]])
@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sparse.csc_array])
def test_values_that_overflow_are_refused(make, values):
    """In any layout, such values must not be treated as a constant feature."""
    X = np.column_stack([values, [1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="feature 0 are too large"):
        as_source(make(X)).moments()


def test_unusable_arrays_are_refused():
    with pytest.raises(ValueError, match="2D"):
        DenseSource(np.zeros(3))
    with pytest.raises(ValueError, match="complex128"):
        DenseSource(np.zeros((2, 2), dtype=complex))
    with pytest.raises(ValueError, match="float16"):
        DenseSource(np.zeros((2, 2), dtype=np.float16))


def test_features_with_enough_entries_are_counted_in_blocks(rng, monkeypatch):
    monkeypatch.setattr("coterie.data.memory._COUNTED_FEATURES", 7)
    X = rng.random((20, 50)) < 0.1
    source = SparseSource(sparse.csc_array(X.astype(float)))
    for fewest in range(5):
        assert source._count_with_entries(fewest) == np.count_nonzero(X.sum(axis=0) >= fewest)
