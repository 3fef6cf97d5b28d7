"""CSV, TSV and Parquet."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.data import DataFileError, convert, open_features
from tests.data.files import assert_same, data_or_error, matrix

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture
def frame(rng):
    return pd.DataFrame({"a": rng.standard_normal(30), "b c": rng.integers(0, 9, 30), "label": ["x", "y,z"] * 15, "d": 0.1})


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "csv.xz", "parquet"])
def test_a_frame_in_every_format(tmp_path, frame, ending):
    path = tmp_path / f"x.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    dataset = open_features(path)
    assert dataset.format == ending.split(".")[0]
    np.testing.assert_array_equal(matrix(dataset), frame[["a", "b c", "d"]].to_numpy())
    assert matrix(dataset).flags.f_contiguous
    assert dataset.y.tolist() == frame["label"].tolist()
    assert dataset.feature_names == ["a", "b c", "d"]
    assert dataset.sample_names is None
    assert_same(open_features(convert(path, tmp_path / "s")), dataset)
    other = open_features(path, label="b c") if ending == "" else open_features(path, label=False, sample_names="label")
    assert other.y is None
    assert list(other.sample_names) == frame["label"].tolist()


@pytest.mark.parametrize("label", ["label", 2, -2])
def test_the_label_by_name_and_position(tmp_path, frame, label):
    frame.to_csv(tmp_path / "x.csv", index=False)
    assert open_features(tmp_path / "x.csv", label=label).y.tolist() == frame["label"].tolist()


def test_numbers_as_labels_and_small_types(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,Y\n1,0,1\n0,255,-1\n")
    dataset = open_features(tmp_path / "x.csv")
    assert matrix(dataset).dtype == np.uint8
    assert dataset.y.dtype == np.int64
    assert dataset.y.tolist() == [1, -1]


def test_an_index_becomes_sample_names(tmp_path, frame):
    frame.index = [f"s{i}" for i in range(30)]
    frame.to_csv(tmp_path / "x.csv")
    frame.to_parquet(tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        dataset = open_features(tmp_path / name)
        assert list(dataset.sample_names)[:2] == ["s0", "s1"]
        assert dataset.shape == (30, 3)


def test_without_a_header(tmp_path):
    (tmp_path / "x.csv").write_text("1,2,0\n3,4.5,1")
    dataset = open_features(tmp_path / "x.csv", label=-1)
    np.testing.assert_array_equal(matrix(dataset), [[1, 2], [3, 4.5]])
    assert dataset.feature_names is None
    assert dataset.y.tolist() == [0, 1]
    assert open_features(tmp_path / "x.csv", header=True).feature_names == ["1", "2", "0"]
    with pytest.raises(DataFileError, match=r"the columns have no names. Pass a position"):
        open_features(tmp_path / "x.csv", label="y")


def test_many_small_batches(tmp_path, rng):
    X = rng.standard_normal((5000, 37))
    pd.DataFrame(X, columns=[f"c{j}" for j in range(37)]).assign(y=np.arange(5000) % 3).to_csv(tmp_path / "x.csv", index=False)
    store = convert(tmp_path / "x.csv", tmp_path / "s", memory_limit=1 << 24)
    assert_same(open_features(store), open_features(tmp_path / "x.csv"))
    np.testing.assert_array_equal(matrix(open_features(store)), X)
    assert open_features(store).y.tolist() == (np.arange(5000) % 3).tolist()


def test_missing_labels(tmp_path):
    (tmp_path / "x.csv").write_text("a,y\n1,x\n2,\n3,NA\n4,z\n")
    with pytest.raises(DataFileError, match=r"the label of sample 1 is missing. Drop samples without a label"):
        open_features(tmp_path / "x.csv")
    dataset = open_features(tmp_path / "x.csv", missing_labels="drop")
    assert dataset.y.tolist() == ["x", "z"]
    assert matrix(dataset).ravel().tolist() == [1, 4]
    assert dataset.notes == {"samples_without_label_dropped": 2}
    with pytest.raises(ValueError, match="missing_labels='maybe' must be 'error' or 'drop'"):
        open_features(tmp_path / "x.csv", missing_labels="maybe")
    (tmp_path / "x.csv").write_text("a,y\n1,\n2,\n")
    with pytest.raises(DataFileError, match="no sample has a label"):
        open_features(tmp_path / "x.csv", missing_labels="drop")


def test_missing_values_are_found_by_convert_and_fit(tmp_path):
    from coterie import GroupDiscoveryClassifier

    (tmp_path / "x.csv").write_text("a,b,y\n1,2,0\n2,,0\n3,NA,1\n4,5,1\n")
    with pytest.raises(
        ValueError, match=r"2 NaN or infinite value\(s\) in 1 feature\(s\)\. The first is in sample 1 of feature 1 \('b'\)"
    ):
        convert(tmp_path / "x.csv", tmp_path / "s")
    with pytest.raises(ValueError, match=r"2 NaN .* sample 1 of feature 1 \('b'\)"):
        GroupDiscoveryClassifier(1).fit(tmp_path / "x.csv")
    pd.DataFrame({"a": [1, 2], "b": pd.array([1, None], dtype="Int64")}).to_parquet(tmp_path / "x.parquet")
    np.testing.assert_array_equal(matrix(open_features(tmp_path / "x.parquet")), [[1, 1], [2, np.nan]])
    with pytest.raises(ValueError, match=r"1 NaN .* sample 1 of feature 1 \('b'\)"):
        convert(tmp_path / "x.parquet", tmp_path / "s")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,2\n3\n", {}, r"x\.csv:3: this line has 1 column, but the first line has 2\."),
        (
            "a,b\n1,two\n2,3\n",
            {},
            r"x\.csv: 1 of 2 columns is not numeric: 'b' \(numbers and text: 'two' in line 2\)\. Correct the values, read "
            r"columns as categories \(categories='b'\), remove them \(drop='b'\)",
        ),
        ("a,y\n1,2\n", {"label": "z"}, "1: label='z': column not found. Available: a, y."),
        ("a,y\n1,2\n", {"label": 7}, "1: label=7 is out of range. There are 2 columns"),
        ("a,y,Label\n1,2,3\n", {}, "1: the columns 'y', 'Label' could all be the labels. Set label="),
        ("a,a\n1,2\n", {"label": "a"}, "two columns have this name"),
        ("y\n1\n", {}, "no column is left for features"),
        (
            "a;b;y\n1;2;0\n",
            {"label": "y", "delimiter": ","},
            "1: label='y': column not found. The file has one column named 'a;b;y'. Is the delimiter a semicolon",
        ),
        (
            "a;b;y\n1;2;0\n",
            {"delimiter": ","},
            r"x\.csv: the only column is not numeric\. The file .* Is the delimiter a semicolon\? Set delimiter=';'\.",
        ),
        ("a,b\n", {}, "the file contains no data"),
        ("\n\n", {}, "the first line is empty"),
    ],
)
def test_csv_errors(tmp_path, text, options, message):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        open_features(tmp_path / "x.csv", **options)


def test_text_in_a_parquet_file(tmp_path, frame):
    frame.assign(kind=["1", "x"] * 15).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataFileError, match=r"1 of 4 columns is not numeric: 'kind' \(numbers and text: 'x' in sample 1\)"):
        open_features(tmp_path / "x.parquet")


def test_truncated_files(tmp_path, frame):
    frame.to_parquet(tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(content[:-20])
    with pytest.raises(DataFileError, match="damaged or not a Parquet file"):
        open_features(tmp_path / "x.parquet")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 9000)[:-20])
    with pytest.raises(DataFileError, match=r"ends too early|end-of-stream"):
        open_features(tmp_path / "x.csv.gz")


@given(
    st.lists(st.sampled_from(["1", "2.5", ",", ",", "\n", "\n", '"', "a", "y", "é", "\0", "nan", "\r", "1e999"]), max_size=40)
)
@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_any_csv_gives_data_or_an_error(tmp_path_factory, tokens):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes("".join(tokens).encode())
    data_or_error(path, format="csv")


@given(place=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_damaged_parquet_file_gives_data_or_an_error(tmp_path_factory, place, byte):
    path = tmp_path_factory.getbasetemp() / "damaged.parquet"
    pd.DataFrame({"a": [1.0, 2.0], "y": ["u", "v"]}).to_parquet(path)
    content = bytearray(path.read_bytes())
    content[place % len(content)] = byte
    path.write_bytes(bytes(content))
    data_or_error(path, format="parquet")


def test_a_header_over_several_lines(tmp_path):
    path = tmp_path / "x.csv"
    for inside in ("\n", "\r\n", "\r", '""'):
        path.write_bytes(f'"a{inside}b",y,c\n1,u,2\n3,v,4\n'.encode())
        data = open_features(path)
        assert data.shape == (2, 2)
        assert data.feature_names[0] == f"a{inside}b".replace('""', '"')
        assert data.y.tolist() == ["u", "v"]
    long = "x" * 50_000
    path.write_text(f'"{long}\n{long}",b\n1,2\n3,4\n')
    assert open_features(path).feature_names[0] == f"{long}\n{long}"
    path.write_text('"a\nb",c\n1,2\n3\n')
    with pytest.raises(DataFileError, match=r"x\.csv:4: this line has 1 column, but"):
        open_features(path)
    path.write_text('"a\n1,2\n3,4\n')
    with pytest.raises(DataFileError, match=r"x\.csv:1: the first line cannot be read \(unexpected end of data\)"):
        open_features(path)


def test_names_that_come_twice_are_refused(tmp_path):
    """As for a data frame; columns of sample names and labels are ignored."""
    (tmp_path / "x.csv").write_text("label,a,b,a\n0,1,2,3\n1,2,3,4\n")
    with pytest.raises(DataFileError, match=r"x\.csv: columns 1 and 3 have the same name 'a'\. Rename or drop one of them\."):
        open_features(tmp_path / "x.csv")
    import pyarrow as pa
    import pyarrow.parquet

    pa.parquet.write_table(pa.table([[1.0, 2.0]] * 2, names=["a", "a"]), tmp_path / "x.parquet")
    with pytest.raises(DataFileError, match="columns 0 and 1 have the same name 'a'"):
        open_features(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("a,a,b\n0,1,2\n1,2,3\n")  # one of them is the label
    assert open_features(tmp_path / "x.csv", label=0).feature_names == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.array([1, 2, None], dtype="Int8"), np.int64),
        (pd.array([True, False, None], dtype="boolean"), np.bool_),
        (np.array([1.5, 2.0, np.nan], dtype=np.float32), np.float64),
        (np.array([1.0, 2.0, np.nan]), np.int64),
        (pd.array(["u", "v", None]), np.object_),
    ],
)
def test_labels_of_every_type_in_parquet(tmp_path, values, kind):
    pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": values}).to_parquet(tmp_path / "x.parquet")
    data = open_features(tmp_path / "x.parquet", missing_labels="drop")
    assert data.shape == (2, 1)
    assert data.y.dtype == kind
    assert data.y.tolist() == [values[0], values[1]]
    assert data.notes == {"samples_without_label_dropped": 1}


def test_unsigned_labels_beyond_int64(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "y": np.array([1, 2**64 - 1], dtype=np.uint64)}).to_parquet(tmp_path / "x.parquet")
    assert open_features(tmp_path / "x.parquet").y.tolist() == [1, 2**64 - 1]
