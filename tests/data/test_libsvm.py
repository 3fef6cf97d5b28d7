"""LIBSVM text compared with scikit-learn's reader, and errors with line and column."""

import bz2
import gzip
import io
import lzma
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from coterie.data import DataFileError, open_features
from coterie.data.readers import libsvm as module
from coterie.kernels import text as kernels
from tests.conftest import random_sparse
from tests.data.files import data_or_error, matrix


def read(tmp_path, content, **options):
    path = tmp_path / "data.svm"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_features(path, format="libsvm", **options)


def small_indices(X):
    """X with 32-bit indices: SciPy 1.13 makes 64-bit ones, which dump_svmlight_file of scikit-learn 1.6 does not accept."""
    rows = X.tocsr()
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def assert_as_scikit_learn(path, **options):
    dataset = open_features(path, format="libsvm", **options)
    X, y = load_svmlight_file(str(path), **options)
    ours, theirs = matrix(dataset), X.tocsc()
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(dataset.y, y)


def test_duke(real_data):
    assert_as_scikit_learn(real_data / "duke.svm")


@pytest.mark.parametrize("zero_based", [True, False])
def test_random_files_at_full_precision(tmp_path, rng, zero_based):
    X = random_sparse(rng, (400, 300), density=0.1, data_sampler=lambda size: rng.standard_normal(size) * 1e9)
    X.data **= rng.integers(1, 30, X.nnz)  # of all sizes, 16 digits each
    dump_svmlight_file(small_indices(X), rng.standard_normal(400), str(tmp_path / "x.svm"), zero_based=zero_based)
    assert_as_scikit_learn(tmp_path / "x.svm", zero_based=zero_based, n_features=310)
    assert_as_scikit_learn(tmp_path / "x.svm")


def test_small_blocks_change_nothing(tmp_path, rng, monkeypatch):
    X = random_sparse(rng, (3000, 200), density=0.1)
    dump_svmlight_file(small_indices(X), rng.integers(0, 3, 3000), str(tmp_path / "x.svm"), comment="made up")
    monkeypatch.setattr(module, "_CHUNK_BYTES", 1 << 12)
    assert_as_scikit_learn(tmp_path / "x.svm")
    monkeypatch.setattr(module, "thread_count", lambda: 3)
    assert_as_scikit_learn(tmp_path / "x.svm")


@pytest.mark.parametrize("opener", [gzip.open, bz2.open, lzma.open])
def test_compressed(tmp_path, opener):
    with opener(tmp_path / "x.svm.packed", "wb") as file:
        file.write(b"1 1:2\n-1 2:3\n")
    dataset = open_features(tmp_path / "x.svm.packed")
    assert dataset.format == "libsvm"
    np.testing.assert_array_equal(matrix(dataset).toarray(), [[2, 0], [0, 3]])


def test_everything_a_line_may_have(tmp_path):
    content = b"# a comment\r\n\r\n+1 qid:3 1:.5\t3:1e2 # and more: 5:6\r\n-1.5\r\n   2e0 2:-7.25   \n\n1 1:+0"
    dataset = read(tmp_path, content)
    np.testing.assert_array_equal(matrix(dataset).toarray(), [[0.5, 0, 100], [0, 0, 0], [0, -7.25, 0], [0, 0, 0]])
    np.testing.assert_array_equal(dataset.y, [1, -1.5, 2, 1])
    assert dataset.notes == {"query_ids_ignored": 1}


def test_values_take_the_smallest_exact_type(tmp_path):
    for text, expected in [
        ("1 1:1 2:255", np.uint8), ("1 1:-1", np.int8), ("1 1:256", np.int16), ("1 1:0.5", np.float32),
        ("1 1:0.1", np.float64), ("1 1:1e10", np.float32), ("1 1:1234567891", np.float64), ("1 1:1e39", np.float64),
    ]:  # fmt: skip
        assert matrix(read(tmp_path, text)).dtype == expected, text
    assert matrix(read(tmp_path, "1 1:1", dtype="float32")).dtype == np.float32


def test_labels_that_are_whole_become_integers(tmp_path):
    assert read(tmp_path, "1 1:1\n-1 1:1").y.dtype == np.int64
    assert read(tmp_path, "1 1:1\n0.5 1:1").y.dtype == np.float64


def test_zero_or_one_based(tmp_path):
    assert read(tmp_path, "1 1:1 3:1").shape == (1, 3)
    assert read(tmp_path, "1 1:1 3:1", zero_based=True).shape == (1, 4)
    assert read(tmp_path, "1 1:1 3:1\n1 0:1").shape == (2, 4)
    assert read(tmp_path, "1 1:1 3:1", n_features=7).shape == (1, 7)
    with pytest.raises(DataFileError, match="index 0 occurs, but zero_based=False"):
        read(tmp_path, "1 0:1", zero_based=False)
    with pytest.raises(DataFileError, match=r"index 3 occurs and indices start at 0, but n_features=3\. Set n_features=4"):
        read(tmp_path, "1 0:1 3:1", n_features=3)


def test_indices_past_32_bits_with_a_stated_number(tmp_path):
    """Feature numbers may exceed 32 bits; nothing is allocated by them before the end."""
    reader = module.LibsvmReader(tmp_path / "x.svm", n_features=2**33)
    (tmp_path / "x.svm").write_text(f"1 1:1 {2**33}:5\n")
    (block,) = reader.blocks(0)
    np.testing.assert_array_equal(block.columns, [1, 2**33])


ERRORS = [
    ("1 1:1\n1,2 1:1", "2:1: '1,2' is more than one label"),
    ("1:1 2:2", "1:1: the line begins with '1:1', so its label is missing"),
    ("spam 1:1", "1:1: the label 'spam' is not a number"),
    ("+ 1:1", "1:1: the label '+' is not a number"),
    ("1x 1:1", "1:1: the label '1x' is not a number"),
    ("nan 1:1", "1:1: 'nan' is not finite"),
    ("1 1:1 2", "1:7: '2' has no ':'"),
    ("1 1:1 b:1", "1:7: 'b:1' is not 'index:value'"),
    ("1 1:1 :1", "1:7: ':1' is not 'index:value'"),
    ("# c\n\n1 1:1  2:x3", "3:10: the value 'x3' is not a number"),
    ("1 1:", "1:5: the value '' is not a number"),
    ("1 1:1e", "1:5: the value '1e' is not a number"),
    ("1 1:1.2.3", "1:5: the value '1.2.3' is not a number"),
    ("1 1:0x10", "1:5: the value '0x10' is not a number"),
    ("1 1:1 2:NaN", "1:9: 'NaN' is not finite"),
    ("1 1:-inf", "1:5: '-inf' is not finite"),
    ("1 1:1e400", "1:5: '1e400' is not finite"),
    ("1 3:1 2:1", "1:7: feature '2:1' follows a larger index"),
    ("1 3:1 3:1", "1:7: feature '3:1' occurs twice"),
    ("1 -3:1", "1:3: '-3:1' has a negative index"),
    ("1 qid:a 3:1", "1:3: 'qid:a' is not 'qid:number'"),
    ("1 3:1 qid:7", "1:7: 'qid:7' is not 'qid:number' directly after the label"),
    ("1 999999999999:1", "1:3: the index of '999999999999:1' requires more features than a file of 16 bytes can hold"),
    ("1 99999999999999999999999999:1", "1:3: the index of"),
    ("1 2147483648:1", "1:3: the index of '2147483648:1' requires more features"),
    ("\x00\x01\x02", "1:1: the file is not text"),
    ("1 1:" + "7" * 400, "1:5: '777777777777777777777777777777…' is not finite"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=[text[:20].strip() for text, _ in ERRORS])
def test_errors_name_line_and_column(tmp_path, text, message):
    with pytest.raises(DataFileError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'data.svm'}:{message}"), caught.value
    assert caught.value.line == text[: text.find(message.split("'")[1][:5]) if "'" in message else 0].count("\n") + 1


def test_the_line_is_right_in_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK_BYTES", 1 << 12)
    lines = ["1 1:1 2:2 3:3 # nothing"] * 5000
    lines[4321] = "1 1:1 2:" + "1" * 500
    with pytest.raises(DataFileError, match=r"data\.svm:4322:9: "):
        read(tmp_path, "\n".join(lines))
    lines[4000] = "1 5:1 2:2"
    with pytest.raises(DataFileError, match=r"data\.svm:4001:7: "):
        read(tmp_path, "\n".join(lines))


def test_a_stated_number_of_features_bounds_the_index(tmp_path):
    with pytest.raises(DataFileError, match="1:3: the index of '4:1' is larger than n_features=3 allows"):
        read(tmp_path, "1 4:1", n_features=3)


@pytest.mark.parametrize(("cut", "message"), [(-9, "the gzip data ends too early"), (0, "the gzip data is damaged")])
def test_truncated_and_damaged_gzip(tmp_path, cut, message):
    packed = bytearray(gzip.compress(b"1 1:1\n" * 1000))
    if cut:
        packed = packed[:cut]
    else:
        packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(DataFileError, match=message):
        read(tmp_path, bytes(packed))


def test_empty_files(tmp_path):
    with pytest.raises(ValueError, match="contains no data"):
        read(tmp_path, "# nothing\n\n")
    with pytest.raises(ValueError, match="contains no data"):
        read(tmp_path, "1\n-1\n")  # samples without any feature


def test_bad_options(tmp_path):
    for options, message in [
        ({"zero_based": "maybe"}, "zero_based='maybe' must be"),
        ({"n_features": 0}, "n_features=0 must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            read(tmp_path, "1 1:1", **options)
    with pytest.raises(TypeError, match=r"Format 'libsvm' has no option 'colour'. Its options are dtype, feature_names"):
        read(tmp_path, "1 1:1", colour=1)


def parse_number(text):
    content = np.frombuffer(text.encode() + b"\n", dtype=np.uint8)
    value, place, how = kernels.read_number(content, np.uint64(0))
    return value, int(place), how


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["r", ".17g", ".16e", ".3f", ".30f", "+.12g"]))
@example(5e-324, "r")
@example(2.2250738585072014e-308, "r")
@example(1.7976931348623157e308, "r")
def test_numbers_are_those_of_python(number, style):
    text = repr(number) if style == "r" else format(number, style)
    value, place, how = parse_number(text)
    assert place == len(text)
    assert how in (0, 1)
    if how == 0:
        assert value == float(text)
        assert np.signbit(value) == np.signbit(float(text))


@given(st.integers(0, 10**18 - 1), st.integers(-330, 310))
@example(9007199254740993, 0)  # exactly half way between two floats
@example(9007199254740993, 22)
@example(9007199254740993, -4)
@example(5**23, -23)
def test_numbers_of_any_exponent(mantissa, exponent):
    text = f"{mantissa}e{exponent}"
    value, place, how = parse_number(text)
    assert place == len(text)
    assert how == 1 or value == float(text)


TOKENS = st.sampled_from(
    ["1", "-1", "0:1", "1:2", "2:0.5", "3:-1e3", "7:1", "#", "qid:4", "\n", "\r\n", " ", "\t", ":", "1:", "x", ",", "e5"]
)


@given(st.one_of(st.lists(TOKENS, max_size=30).map(lambda t: " ".join(t).encode()), st.binary(max_size=60)))
def test_any_bytes_give_data_or_an_error_with_a_place(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.svm"
    path.write_bytes(content)
    ours = data_or_error(path, format="libsvm")
    if ours is None:
        return
    X, y = load_svmlight_file(io.BytesIO(content))
    np.testing.assert_array_equal(matrix(ours).toarray(), X.toarray())
    np.testing.assert_array_equal(ours.y, y)


@pytest.mark.parametrize(
    "content", [b"1 999999999999:1\n", b"1 33554432:1\n", b"1 1:" + b"9" * 10**6, b"#" * 10**6, b"\n" * 10**6]
)
def test_memory_is_bounded_by_the_input(tmp_path, content):
    """A megabyte of text, or an index of 2^25, may only take some arrays of that length."""
    (tmp_path / "x.svm").write_bytes(content)
    open_features_quietly(tmp_path / "x.svm")  # compiles and imports
    tracemalloc.start()
    open_features_quietly(tmp_path / "x.svm")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (1_000 if b"33554432" in content else 100) * 2**20


def open_features_quietly(path):
    with suppress(ValueError):
        open_features(path, format="libsvm")
