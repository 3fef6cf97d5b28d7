"""NumPy .npz and MatrixMarket files, and errors of damaged ones."""

import gzip
import io
import zipfile

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from coterie.data import DataFileError, convert, open_features
from tests.data.conformance import example
from tests.data.files import assert_same, data_or_error, matrix


@pytest.fixture
def X(rng):
    return example(rng).astype(np.int16)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_what_scipy_saves(tmp_path, X, kind):
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(X).asformat(kind))
    np.savetxt(tmp_path / "y.txt", np.arange(41), fmt="%d")
    dataset = open_features(tmp_path / "x.npz", label=tmp_path / "y.txt")
    np.testing.assert_array_equal(matrix(dataset).toarray(), X)
    assert matrix(dataset).dtype == np.int16
    assert dataset.y.tolist() == list(range(41))
    assert open_features(tmp_path / "x.npz").y is None
    assert_same(open_features(convert(tmp_path / "x.npz", tmp_path / "s")), open_features(tmp_path / "x.npz"))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint8, bool, np.float16, ">i4"])
def test_dense_x_and_y(tmp_path, X, dtype):
    np.savez_compressed(tmp_path / "x.npz", X=(X % 2).astype(dtype), y=np.array(["a", "b"] * 20 + ["a"]), other=np.arange(41))
    dataset = open_features(tmp_path / "x.npz")
    np.testing.assert_array_equal(matrix(dataset), X % 2)
    assert dataset.source.array.dtype.itemsize == (4 if dtype == np.float16 else np.dtype(dtype).itemsize)
    assert dataset.y[:3].tolist() == ["a", "b", "a"]
    assert open_features(tmp_path / "x.npz", label="other").y.tolist() == list(range(41))
    assert open_features(tmp_path / "x.npz", label=False).y is None
    with pytest.raises(DataFileError, match=r"label='z': there is no such array for the labels. Available: y, other"):
        open_features(tmp_path / "x.npz", label="z")
    assert_same(open_features(convert(tmp_path / "x.npz", tmp_path / "s")), dataset)


def test_parts_of_csr_with_labels(tmp_path, X):
    S = sparse.csr_array(X)
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape, "y": np.arange(41)}
    np.savez(tmp_path / "x.npz", **parts, feature_names=[f"f{j}" for j in range(67)])
    dataset = open_features(tmp_path / "x.npz")
    np.testing.assert_array_equal(matrix(dataset).toarray(), X)
    assert dataset.feature_names[66] == "f66"
    for change, message in [
        ({"indices": S.indices + 60}, "the arrays are not a valid sparse matrix"),
        ({"indices": S.indices - 5}, "the arrays are not a valid sparse matrix"),
        ({"indptr": S.indptr[::-1].copy()}, "the arrays are not a valid sparse matrix"),
        ({"indptr": S.indptr[:-1]}, "the arrays are not a valid sparse matrix"),
        ({"shape": [41, 10**12]}, "the shape .* is impossible for a file of"),
        ({"shape": [41]}, "the arrays are not a valid sparse matrix"),
        ({"data": S.data.astype(complex)}, "complex128 are not real numbers"),
        ({"y": np.eye(41)}, "the labels 'y' have 2 dimensions"),
        ({"y": np.arange(3)}, "there are 3 labels, but 41 samples"),
    ]:
        np.savez(tmp_path / "x.npz", **{**parts, **change})
        with pytest.raises(ValueError, match=message):
            open_features(tmp_path / "x.npz")


def test_repeated_entries_are_summed(tmp_path):
    np.savez(tmp_path / "x.npz", data=[1.0, 2.0, 4.0], indices=[1, 1, 0], indptr=[0, 2, 3], shape=[2, 2])
    np.testing.assert_array_equal(matrix(open_features(tmp_path / "x.npz")).toarray(), [[0, 3], [4, 0]])


def test_npz_without_the_right_arrays(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.eye(3))
    with pytest.raises(DataFileError, match=r"must contain X, or data, indices, indptr and shape. It contains a"):
        open_features(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", X=np.eye(3), y=np.array([{}, None, 1], dtype=object))
    with pytest.raises(DataFileError, match="Python objects, which are not loaded for security reasons"):
        open_features(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", X=np.zeros(3))
    with pytest.raises(DataFileError, match="X has 1 dimension"):
        open_features(tmp_path / "x.npz")
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(DataFileError, match=r"a single NumPy array\. Save it with its labels"):
        open_features(tmp_path / "x.npy")


def test_an_array_larger_than_its_part_is_not_allocated(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)})
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(80))
    with pytest.raises(DataFileError, match=r"'X.npy' is too short for its stated shape \(1000000, 1000000\)"):
        open_features(tmp_path / "x.npz")


@given(place=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.integers(0, 10**6))
def test_a_damaged_npz_gives_data_or_an_error(tmp_path_factory, place, byte, cut):
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    content = io.BytesIO()
    S = sparse.csr_array(example(np.random.default_rng(0))[:8, :9])
    np.savez(content, data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=np.arange(8))
    broken = bytearray(content.getvalue())
    broken[place % len(broken)] = byte
    path.write_bytes(bytes(broken[: cut or None]))
    data_or_error(path, format="npz")


def test_an_npz_with_negative_offsets(tmp_path):
    """Found by the mutation loop: the error of seeking to a negative offset did not name the file."""
    path = tmp_path / "lost.npz"
    np.savez(path, X=np.eye(3), y=[0, 1, 0])
    content = bytearray(path.read_bytes())
    place = content.rfind(b"PK\x05\x06") + 16  # where the directory begins, in the last record
    content[place : place + 4] = (int.from_bytes(content[place : place + 4], "little") + 500).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"lost\.npz.*damaged"):
        open_features(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
def test_matrix_market(tmp_path, X, packed, symmetry):
    X = X[:40, :40].astype(int)
    X = {"general": X, "symmetric": X + X.T, "skew-symmetric": X - X.T}[symmetry]
    for number, kind in enumerate([sparse.coo_array(X), sparse.coo_array(X * 0.1), X.astype(float)]):
        path = tmp_path / f"x{number}.mtx"
        scipy.io.mmwrite(path, kind, symmetry=symmetry, precision=17)
        if packed:
            path = path.with_suffix(".mtx.gz")
            path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
        dataset = open_features(path)
        assert dataset.format == "matrix-market"
        expected = kind.toarray() if sparse.issparse(kind) else kind
        found = matrix(dataset)
        np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, expected)
        transposed = matrix(open_features(path, transpose=True))
        np.testing.assert_array_equal(transposed.toarray() if sparse.issparse(transposed) else transposed, expected.T)
        assert_same(open_features(convert(path, tmp_path / f"s{number}")), dataset)
    assert symmetry == "skew-symmetric" or dataset.source.array.dtype == np.uint8


def test_matrix_market_patterns_and_17_digits(tmp_path, rng):
    (tmp_path / "x.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\r\n2 3 2\r\n1 1\r\n2 3")
    np.testing.assert_array_equal(matrix(open_features(tmp_path / "x.mtx")).toarray(), [[1, 0, 0], [0, 0, 1]])
    X = rng.standard_normal((300, 200)) ** 9
    scipy.io.mmwrite(tmp_path / "x.mtx", sparse.coo_array(X), precision=17)
    np.testing.assert_array_equal(matrix(open_features(tmp_path / "x.mtx")).toarray(), X)


def test_bytes_that_crash_another_reader(tmp_path):
    """SciPy 1.17 writes float32 at 17 digits with zero bytes, and its reader crashes on them."""
    (tmp_path / "x.mtx").write_bytes(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 -3.26\0\0\0\0e-1\n")
    with pytest.raises(DataFileError, match=r"x\.mtx:3:5: the value '-3\.26"):
        open_features(tmp_path / "x.mtx")


def test_matrix_market_with_labels_beside(tmp_path):
    (tmp_path / "x.mtx").write_text("%%MatrixMarket matrix coordinate real general\n% c\n2 3 2\n1 1 0.5\n2 3 1\n")
    (tmp_path / "y").write_text("spam\nham\n")
    dataset = open_features(tmp_path / "x.mtx", label=str(tmp_path / "y"), feature_names=["a", "b", "c"])
    assert dataset.y.tolist() == ["spam", "ham"]
    assert dataset.feature_names == ["a", "b", "c"]
    with pytest.raises(FileNotFoundError, match="Label file not found"):
        open_features(tmp_path / "x.mtx", label="colour")
    (tmp_path / "y").write_text("1\n\n")
    with pytest.raises(DataFileError, match="y:2: the label is missing"):
        open_features(tmp_path / "x.mtx", label=tmp_path / "y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "coordinate real general\n2 2 999999999999\n1 1 1\n",
            "truncated: it has 1 entries instead of the 999999999999 stated in line 2",
        ),
        ("coordinate real general\n2 999999999999 1\n1 1 1\n", "the size 999999999999 is impossible"),
        ("array real general\n1000000 1000000\n1\n", "truncated: it has 1 entries instead of the 1000000000000"),
        ("coordinate real general\n% c\n2 2 2\n1 1 1\n", "truncated: it has 1 entries instead of the 2 stated in line 3"),
        ("coordinate real general\n2 2 1\n1 1 1\n2 2 1\n", "too long: it has at least 2 entries instead of the 1"),
        ("coordinate real general\n2 2 1\n3 1 1\n", "x.mtx:3:1: row 3 is out of range. The header states 2 rows"),
        ("coordinate real general\n2 2 1\n1 0 1\n", "x.mtx:3:3: column 0 is out of range. The header states 2 columns"),
        ("coordinate real general\n2 2 1\n1 1 nan\n", "x.mtx:3:5: the value 'nan' is not finite"),
        ("coordinate real general\n2 2 1\n1 1 1e999\n", "x.mtx:3:5: the value '1e999' is not finite"),
        ("coordinate real general\n2 2 1\n\n1 1 x\n", "x.mtx:4:5: the value 'x' is not a number"),
        ("coordinate real general\n2 2 1\n1 1\n", "x.mtx:3:4: the value '' is not a number"),
        ("coordinate real general\n2 2 1\n1 1 1 1\n", "x.mtx:3:7: unexpected '1'. The line has too many values"),
        ("coordinate real general\n2 2 1\n1.5 1 1\n", "x.mtx:3:1: the row '1.5' is not an integer"),
        ("coordinate real general\n2 2 1\n1 b 1\n", "x.mtx:3:3: the column 'b' is not an integer"),
        ("coordinate real general\n2 2 2\n1 2 1\n1 2 1\n", "the entry in row 1, column 2 occurs twice"),
        ("coordinate real symmetric\n2 3 1\n1 1 1\n", r"a symmetric matrix of shape \(2, 3\) is not square"),
        ("coordinate complex general\n2 2 1\n1 1 1 1\n", "'coordinate complex general' are not supported"),
        ("\n2 2 1\n", "1: the first line is not"),
        ("coordinate real general\n% no more\n", "the line with the sizes is missing"),
        ("coordinate real general\n2 2\n", "x.mtx:2: the line with the sizes must contain 3 integers"),
    ],
)
def test_matrix_market_errors(tmp_path, text, message):
    (tmp_path / "x.mtx").write_text(f"%%MatrixMarket matrix {text}")
    with pytest.raises(DataFileError, match=message):
        open_features(tmp_path / "x.mtx")


@given(st.lists(st.sampled_from(["1", "2", "9", "-1", "0.5", "nan", "1e9", "\n", "x", "%", "99999999999"]), max_size=20))
def test_any_matrix_market_gives_data_or_an_error(tmp_path_factory, tokens):
    path = tmp_path_factory.getbasetemp() / "any.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n" + " ".join(tokens))
    data_or_error(path, format="matrix-market")
