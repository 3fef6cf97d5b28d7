"""Delimiter and decimal mark of text tables: detection, statement, and refusal of what is ambiguous."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.data import DataFileError, open_features
from coterie.data.encoding import NumberFormat
from coterie.data.readers.dialect import detect_delimiter
from tests.data.files import matrix

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


@pytest.fixture
def frame(rng):
    values = rng.standard_normal((30, 3)).round(2)
    return pd.DataFrame(values, columns=["Größe", "b", "c"]).assign(n=rng.integers(0, 9, 30), label=["ja", "nein"] * 15)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt"])
def test_every_dialect_gives_the_same_data(tmp_path, frame, delimiter, decimal, encoding, suffix):
    path = tmp_path / f"x.{suffix}"
    frame.to_csv(path, sep=delimiter, decimal=decimal, index=False, encoding=encoding)
    data = open_features(path)
    assert list(data.feature_names) == ["Größe", "b", "c", "n"]
    np.testing.assert_array_equal(matrix(data), frame.drop(columns="label").to_numpy())
    assert data.y.tolist() == frame.label.tolist()
    usual = {"csv": ",", "tsv": "\t"}.get(suffix, "\t" if delimiter == "\t" else ",")
    assert ("delimiter" in data.notes) == (delimiter != usual)
    assert data.notes.get("decimal_mark") == ("comma" if decimal == "," else None)


def test_numeric_labels_with_decimal_commas(tmp_path):
    (tmp_path / "x.csv").write_text("a;y\n1;2,5\n3;4,25\n")
    assert open_features(tmp_path / "x.csv").y.tolist() == [2.5, 4.25]


def test_a_file_without_names(tmp_path):
    (tmp_path / "x.csv").write_text("1,5;2,5\n3,5;4,25\n")
    data = open_features(tmp_path / "x.csv", label=False)
    assert data.feature_names is None
    np.testing.assert_array_equal(matrix(data), [[1.5, 2.5], [3.5, 4.25]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\n1.234,5;1.000\n1.000;7\n", [[1234.5, 1000], [1000, 7]]),  # the comma decides for the whole file
        ("a;b\n1.234.567;1,5\n2;3\n", [[1234567, 1.5], [2, 3]]),
        ("a;b\n1.5;1.234\n2.25;7\n", [[1.5, 1.234], [2.25, 7]]),  # the point decides
        ("a,b\n1.234,7\n2.345,8\n", [[1.234, 7], [2.345, 8]]),  # commas are delimiters, so points are decimal
        ("a\tb\n1.234\t7\n2.345\t8\n", [[1.234, 7], [2.345, 8]]),
        ('a,b\n"1,234",7\n"12,500.5",8\n', [[1234, 7], [12500.5, 8]]),
        ("a;b\n-1,5e3; 2\n+,5;3\n", [[-1500, 2], [0.5, 3]]),
        ("a;b\n0.123;4\n0.456;5\n", [[0.123, 4], [0.456, 5]]),  # thousands do not begin with 0
    ],
)
def test_numbers_that_decide(tmp_path, text, expected):
    (tmp_path / "x.csv").write_text(text)
    np.testing.assert_array_equal(matrix(open_features(tmp_path / "x.csv", label=False)), expected)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a;b\n1.234;2\n5.678;3\n", {}, r"ambiguous: '1\.234' in line 2 of column 'a' can be 1\.234 or 1234"),
        ("a\tb\n1,234\t2\n5,678\t3\n", {}, r"ambiguous: '1,234' in line 2 of column 'a' can be 1234 or 1\.234"),
        ("a;b\n1,5;2.5\n5;3\n", {}, r"'1,5' in line 2 of column 'a', but '2\.5' in line 2 of column 'b'"),
        ("a;b\n1,5;2\n5;3\n", {"decimal": "x"}, r"decimal='x' must be '\.' or ','"),
        ("a;b\n1,5;2\n5;3\n", {"delimiter": "x"}, r"delimiter='x' must be ',', ';', '\|', 'tab' or 'auto'"),
    ],
)
def test_ambiguous_and_wrong(tmp_path, text, options, message):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        open_features(tmp_path / "x.csv", label=False, **options)


@pytest.mark.parametrize(("decimal", "expected"), [(".", [1.234, 5.678]), (",", [1234, 5678])])
def test_a_stated_decimal_mark_decides(tmp_path, decimal, expected):
    (tmp_path / "x.csv").write_text("a;b\n1.234;2\n5.678;3\n")
    data = open_features(tmp_path / "x.csv", label=False, decimal=decimal)
    np.testing.assert_array_equal(matrix(data)[:, 0], expected)
    assert data.notes.get("thousands_separators") == ("in a" if decimal == "," else None)


def test_utf_16_is_refused_by_name(tmp_path):
    (tmp_path / "x.csv").write_text("a;b\n1,5;2\n", encoding="utf-16")
    with pytest.raises(DataFileError, match=r"encoded as UTF-16\. Save it as UTF-8"):
        open_features(tmp_path / "x.csv")


@given(
    st.lists(st.lists(st.sampled_from(["1", "1,5", "a b", 'say "x"', "", "x;y", "2.5"]), min_size=3, max_size=3), min_size=3),
    st.sampled_from([";", "\t", "|", ","]),
)
def test_delimiters_of_quoted_records(rows, delimiter):
    """Whatever is in the cells, quoted text with the same number of cells per record is read with its delimiter."""
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["u", "v", "w"], *rows])
    assert detect_delimiter(file.getvalue().splitlines(keepends=True), ",") == delimiter


def _slow_number(text, decimal):
    other = "," if decimal == "." else "."
    return float(text.replace(other, "").replace(decimal, "."))


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 4)), min_size=1), st.sampled_from([".", ","]), st.booleans())
def test_numbers_with_separators(values, decimal, thousands):
    texts = [f"{value:,.4f}" if thousands else f"{value:.4f}" for value in values]
    texts = [text.translate(str.maketrans(".,", ",.")) if decimal == "," else text for text in texts]
    found = NumberFormat(decimal).numbers(pa.array(texts))
    np.testing.assert_array_equal(found, [_slow_number(text, decimal) for text in texts])
    np.testing.assert_allclose(found, values, atol=1e-9)
