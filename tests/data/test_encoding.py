"""Encoding of categories and dates: the same from files, spreadsheets and frames, and in new data."""

import datetime
import re
import warnings

import numpy as np
import pytest

from coterie.data import DataFileError, convert, open_features
from coterie.data.encoding import ColumnEncoding, TableEncoding, date_order
from coterie.data.readers.planning import MAX_LEVELS
from tests.data.files import matrix

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("openpyxl")


@pytest.fixture
def table(rng):
    n = 60
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "city": rng.choice(["Ulm", "Bonn", "Graz"], n),
            "smokes": rng.choice(["ja", "nein"], n),
            "sex": rng.choice(["m", "f"], n),
            "region": rng.integers(1, 4, n),
            "seen": pd.date_range("2024-01-30", periods=n),
            "w": rng.uniform(1, 2, n),
            "label": rng.choice(["x", "y"], n),
        }
    )
    frame.loc[[4, 5], "city"] = None
    return frame


def written(frame, folder, kind):
    pl = pytest.importorskip("polars")
    path = folder / f"x.{kind}"
    if kind == "pandas":
        return frame
    if kind == "categorical":
        return frame.assign(city=frame.city.astype("category"))
    if kind == "polars":
        return pl.from_pandas(frame)
    if kind == "xlsx":
        frame.to_excel(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep=";" if kind == "csv" else "\t", decimal=",")
    return path


KINDS = ["pandas", "categorical", "polars", "xlsx", "parquet", "csv", "tsv"]
OPTIONS = {"label": "label", "weight": "w", "covariates": "sex", "categories": "region", "dates": True}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_features_from_every_kind_of_table(tmp_path, table, kind):
    data = open_features(written(table, tmp_path, kind), **OPTIONS)
    dummies = pd.get_dummies(table[["city", "region"]].astype({"region": str}), prefix_sep="=", dtype=float)
    expected = dummies.assign(age=table.age, seen=(table.seen - pd.Timestamp(0)).dt.days)
    expected["city=(missing)"] = table.city.isna()
    expected["smokes=ja"] = table.smokes == "ja"
    assert set(data.feature_names) == set(expected.columns)
    np.testing.assert_array_equal(matrix(data), expected[list(data.feature_names)].to_numpy(dtype=float))
    assert data.covariates.names == ("sex=m (not f)",)
    np.testing.assert_array_equal(data.covariates.values[:, 0], table.sex == "m")
    np.testing.assert_allclose(data.sample_weight, table.w, rtol=1e-15)
    assert data.y.tolist() == table.label.tolist()
    columns = dict(zip(data.feature_names, data.feature_info["column"], strict=True))
    assert columns["city=Ulm"] == columns["city=(missing)"] == "city"
    assert dict(zip(data.feature_names, data.feature_info["level"], strict=True))["smokes=ja"] == "ja"


@pytest.mark.parametrize("kind", KINDS)
def test_new_tables_are_read_with_the_encoding(tmp_path, table, kind):
    data = open_features(table, **OPTIONS)
    new = table.iloc[::-1, ::-1].reset_index(drop=True)
    new.loc[0, "city"] = "Paris"
    new.loc[1, "smokes"] = None
    new = new.drop(columns="label")
    columns = data.encoding.reading(data.feature_names)
    with pytest.warns(UserWarning, match=r"column 'city' has 1 level that the training data do not have: 'Paris' \(1\)"):
        again = open_features(written(new, tmp_path, kind), columns=columns, label=False)
    by_name = {name: j for j, name in enumerate(again.feature_names)}
    values = matrix(again)[::-1, [by_name[name] for name in data.feature_names]]
    expected = matrix(data).astype(float)
    expected[-1, [j for j, name in enumerate(data.feature_names) if name.startswith("city=")]] = 0
    expected[-2, list(data.feature_names).index("smokes=ja")] = np.nan
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(again.covariates.values[::-1], data.covariates.values)


def test_a_store_keeps_the_encoding(tmp_path, table):
    table.drop(columns="w").to_parquet(tmp_path / "x.parquet")
    options = {"label": "label", "drop": "seen", "covariates": "sex"}
    plain = open_features(tmp_path / "x.parquet", **options)
    stored = open_features(convert(tmp_path / "x.parquet", tmp_path / "s", **options))
    assert stored.encoding == plain.encoding == stored.source.encoding
    assert list(stored.feature_info["column"]) == list(plain.feature_info["column"])
    with pytest.raises(DataFileError, match="a store holds no sample weights"):
        convert(tmp_path / "x.parquet", tmp_path / "t", weight="age")


@pytest.mark.parametrize(
    ("values", "treatment"),
    [
        (["a"] * 40, "constant"),
        ([None, *(f"P{i}" for i in range(39))], "identifier (39 different values)"),
        ([f"P{i // 2}" for i in range(40)], "too many levels (20)"),
        ([f"the patient says number {i}" for i in range(40)], "free text (40 different values)"),
        ([f"2024-01-0{1 + i % 9}" for i in range(40)], "dates"),
        ([None] * 40, "no values"),
    ],
)
def test_columns_that_are_left_out(values, treatment):
    frame = pd.DataFrame({"a": range(40), "b": values})
    with pytest.warns(UserWarning, match=re.escape(f"1 column is left out: 'b' ({treatment}).")):
        data = open_features(frame, label=False)
    assert list(data.feature_names) == ["a"]


@pytest.mark.parametrize("n_repeated", [0, 1])
def test_long_identifiers_name_the_samples_if_no_value_repeats(tmp_path, n_repeated):
    """Batches of a file are compared with each other."""
    names = [f"P{i % (3000 - n_repeated)}" for i in range(3000)]
    pd.DataFrame({"a": range(3000), "b": names}).to_csv(tmp_path / "x.csv", index=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = open_features(tmp_path / "x.csv", label=False)
    assert (data.sample_names is not None) == (not n_repeated)
    if n_repeated:
        assert "'b' (too many levels (more than 1,000))" in str(caught[0].message)
    else:
        assert list(data.sample_names) == names


def test_an_identifier_names_the_samples():
    names = [f"P{i}" for i in range(40)]
    frame = pd.DataFrame({"a": range(40), "b": names, "c": names[::-1]})
    data = open_features(frame, label=False, drop="c")
    assert list(data.sample_names) == names
    assert data.notes == {"sample_names": "b"}
    assert list(data.feature_names) == ["a"]
    with pytest.warns(UserWarning, match="1 column is left out: 'c'"):  # the first one names them
        data = open_features(frame, label=False)
    assert list(data.sample_names) == names


def test_limits_of_the_number_of_levels(rng):
    for n_levels, n, is_encoded in ((MAX_LEVELS, 400, True), (MAX_LEVELS + 1, 400, False), (8, 40, True), (9, 40, False)):
        frame = pd.DataFrame({"a": range(n), "b": [f"l{i % n_levels}" for i in range(n)]})
        if is_encoded:
            assert open_features(frame, label=False).shape[1] == n_levels + 1
        else:
            with pytest.warns(UserWarning, match="too many levels"):
                open_features(frame, label=False)
        assert open_features(frame, label=False, categories="b").shape[1] == n_levels + 1  # on request


@pytest.mark.parametrize(
    ("pair", "one"),
    [(["no", "yes"], "yes"), (["Ja", "Nein"], "Ja"), (["b", "a"], "b"), (["oui", "non"], "oui"), (["+", "-"], "+")],
)
def test_the_value_that_is_1(pair, one):
    data = open_features(pd.DataFrame({"a": range(20), "b": pair * 10}), label=False)
    assert list(data.feature_names) == ["a", f"b={one}"]
    np.testing.assert_array_equal(matrix(data)[:, 1], [value == one for value in pair * 10])


DATES = ["29.2.2024", "1/3/24", "2024-02-29", "2024-03-01 06:00", "01.12.99 18:30", "31/1/1968"]
MOMENTS = [(2024, 2, 29), (2024, 3, 1), (2024, 2, 29), (2024, 3, 1, 6), (1999, 12, 1, 18, 30), (1968, 1, 31)]


def test_days():
    data = open_features(pd.DataFrame({"a": range(6), "b": DATES}), label=False, dates=True)
    expected = [(datetime.datetime(*m) - datetime.datetime(1970, 1, 1)).total_seconds() / 86400 for m in MOMENTS]
    np.testing.assert_allclose(matrix(data)[:, 1], expected, rtol=0, atol=1e-9)


def test_the_order_of_day_and_month():
    assert date_order(["3/4/2024", "4/13/2024"]) == "month-first"
    unclear = pd.DataFrame({"a": range(4), "b": ["3/4/2024", "1/2/2024", "5/6/2024", None]})
    with pytest.raises(DataFileError, match=r"unclear, such as '3/4/2024'. State it \(dates='day-first' or"):
        open_features(unclear, label=False, dates=True)
    for order, day in (("day-first", "2024-04-03"), ("month-first", "2024-03-04")):
        data = open_features(unclear, label=False, dates=order)
        assert matrix(data)[0, 1] == (pd.Timestamp(day) - pd.Timestamp(0)).days
        assert np.isnan(matrix(data)[3, 1])
    with pytest.raises(ValueError, match="dates='mdy' must be True, False, 'auto', 'day-first' or 'month-first'"):
        open_features(unclear, label=False, dates="mdy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariates": "agee"}, "covariates='agee': column not found. Did you mean 'age'"),
        ({"covariates": "city,label"}, "covariates='label' is the column of the labels"),
        ({"covariates": "age", "drop": "age"}, "drop='age' is a covariate"),
        ({"covariates": "seen"}, r"the covariate 'seen' has dates. Read them as days \(dates=True\)"),
        ({"weight": "label"}, "weight='label' is the column of the labels"),
        (
            {"weight": "gap"},
            "the weight in column 'gap' is missing, negative or infinite for 1 of 60 samples. The first is sample 7",
        ),
        ({"covariates": "gap"}, "the covariate 'gap' is missing or infinite for 1 of 60 samples. The first is sample 7"),
        ({"categories": "note"}, r"column 'note' cannot be read as categories: identifier \(1,200 different values\)"),
        ({"format": "csv"}, "format='csv' does not apply to a data frame"),
        ({"mixed": True}, "A data frame has no option 'mixed'"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_wrong_columns(table, options, message):
    gap = np.where(np.arange(60) == 7, np.nan, 1.0)
    frame = table.drop(columns="w").assign(gap=gap, note=[f"note {i}" * 400 for i in range(60)])
    if "categories" in options:
        frame = pd.concat([frame] * 20, ignore_index=True).assign(note=[f"n{i}" for i in range(1200)])
    with pytest.raises((ValueError, TypeError), match=message):
        open_features(frame, label="label", **options)


def test_an_encoding_as_plain_values():
    encoding = TableEncoding((ColumnEncoding("c", "levels", ("a", "b")), ColumnEncoding("d", "date", order="day-first")))
    assert TableEncoding.from_json(encoding.to_json()) == encoding
    good = encoding.to_json()[0]
    for wrong in ({"kind": "code"}, {"levels": ["a", 1]}, {"levels": None}, {"role": "label"}, {"other": 1}, {"column": 3}):
        assert TableEncoding.from_json([good | wrong]) is None
    assert TableEncoding.from_json(3) is None
