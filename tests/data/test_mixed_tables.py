"""Tables with dates, categories, booleans and missing values: one message with all problems and their remedies."""

import datetime

import numpy as np
import pytest

from coterie import GroupDiscoveryClassifier, imputed
from coterie.data import DataFileError, convert, open_features
from coterie.data.readers.columns import Column, column_positions, listed, suggest_names
from tests.data.files import matrix

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


@pytest.fixture
def messy(rng):
    frame = pd.DataFrame(
        {
            "id": [f"P{i}" for i in range(40)],
            "visit": pd.date_range("2023-01-30", periods=40),
            "city": pd.Categorical(["Graz", "Linz"] * 20),
            "smoker": rng.random(40) < 0.5,
            "treated": np.where(rng.random(40) < 0.5, "true", "False"),
            "age": rng.integers(20, 80, 40).astype(float),
            "lab": rng.standard_normal(40),
            "label": [0, 1] * 20,
        }
    )
    frame.loc[[3, 7, 9], "age"] = np.nan
    return frame


@pytest.fixture(params=["csv", "tsv", "csv.gz", "parquet"])
def file(request, tmp_path, messy):
    path = tmp_path / f"x.{request.param}"
    if request.param == "parquet":
        messy.to_parquet(path)
    else:
        messy.to_csv(path, index=False, sep="\t" if request.param == "tsv" else ",")
    return path


IGNORED = r"1 column is ignored because of keep_numeric=True: 'city' \(Linz = 1, Graz = 0\)\. They can carry information\."


def test_columns_are_encoded_or_left_out(file, messy):
    with pytest.warns(UserWarning, match=r"1 column is left out: 'visit' \(dates\)"):
        data = open_features(file)
    assert data.notes["sample_names"] == "id"
    assert list(data.sample_names) == messy.id.tolist()
    assert data.feature_names == ["city=Linz", "smoker", "treated", "age", "lab"]
    np.testing.assert_array_equal(matrix(data)[:, 0], messy.city == "Linz")
    assert data.notes["columns_ignored"] == "1 (visit)"
    assert data.notes["columns_encoded"] == "1 (city (Linz = 1, Graz = 0))"


def test_dropping_and_imputation(file, messy):
    dropped = open_features(file, drop=["id", "visit, city"])
    with pytest.warns(UserWarning, match=IGNORED):
        kept = open_features(file, keep_numeric=True)
    expected = messy[["smoker", "age", "lab"]].astype(float).assign(treated=(messy.treated == "true").astype(float))
    for data in (dropped, kept):
        assert data.feature_names == ["smoker", "treated", "age", "lab"]
        np.testing.assert_allclose(matrix(data), expected[list(data.feature_names)].to_numpy())
        assert data.y.tolist() == messy.label.tolist()
    assert kept.notes == {"columns_ignored": "3 (id, visit, city)"}
    assert dropped.notes == {}
    filled = open_features(file, drop="id,visit", impute="median")
    age = matrix(filled)[:, 3]
    assert (age[[3, 7, 9]] == np.nanmedian(messy.age)).all()
    assert not np.isnan(matrix(filled)).any()


def test_a_store_of_the_numeric_columns(file):
    store = convert(file, file.parent / "s", drop="id,visit,city,age")
    assert open_features(store).feature_names == ["smoker", "treated", "lab"]
    with pytest.raises(ValueError, match="drop does not apply to a store"):
        open_features(store, drop="lab")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": "cty"}, r"drop='cty': column not found. Did you mean 'city'\?"),
        ({"drop": "label", "label": "label"}, "drop='label' is the column of the labels"),
        ({"drop": 99}, "drop=99 is out of range. There are 8 columns"),
        ({"label": "lable"}, r"label='lable': column not found. Did you mean 'label'"),
        ({"impute": "medain", "keep_numeric": True}, "impute='medain' must be one of median, mean, most_frequent"),
        ({"drop": ["smoker", "treated", "age", "lab"], "keep_numeric": True}, "no column is left for features"),
    ],
)
def test_bad_options(file, options, message):
    with pytest.raises(ValueError, match=message):
        open_features(file, **options)


def test_text_late_in_a_file(tmp_path):
    """Types are inferred from the first megabyte; text after it is reported with its line."""
    rows = [f"{i},{'True' if i % 2 else 'False'},1\n" for i in range(120_000)]
    (tmp_path / "x.csv").write_text("a,b,c\n" + "".join(rows) + "oops,True,2\n7,maybe,3\n")
    with pytest.raises(DataFileError) as caught:
        open_features(tmp_path / "x.csv")
    assert "'a' (numbers and text: 'oops' in line 120002), 'b' (booleans and text" in str(caught.value)
    with pytest.warns(UserWarning, match="'b' \\(one-hot with 3 levels\\)"):
        kept = open_features(tmp_path / "x.csv", keep_numeric=True)
    assert kept.feature_names == ["c"]


def test_many_wrong_columns_are_not_all_listed(tmp_path):
    names = [f"c{j}" for j in range(3000)]
    (tmp_path / "x.csv").write_text(
        ",".join(names) + "\n" + ",".join("w" for _ in names) + "\n" + ",".join("1" for _ in names)
    )
    with pytest.raises(DataFileError) as caught:
        open_features(tmp_path / "x.csv")
    assert "3000 of 3000 columns are not numeric" in str(caught.value)
    assert "and 2,992 more" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_requested_columns_only(file):
    data = open_features(file, columns=["lab", "treated", "unknown"])
    assert data.feature_names == ["treated", "lab"]
    assert data.y is not None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", " 2.5", "-3e4", None], "numbers"),
        (["true", "FALSE", None], "booleans"),
        (["2024-02-29", "2024-03-01 10:30", None], "dates"),
        (["29.2.2024", "1/3/24"], "dates"),
        (["a", "b"], "text"),
        (["1", "2", "x"], "numbers and text"),
        (["1", "true"], "booleans and numbers"),
        ([None, None], "empty"),
        ([1.5, None], "numbers"),
        ([True, None], "booleans"),
        ([datetime.date(2024, 1, 1)], "dates"),
    ],
)
def test_kinds_of_columns(values, kind):
    column = Column("x")
    for half in (values[:1], values[1:]):
        column.update(pa.array(half, pa.array(values).type), values=True)
    assert column.kind == kind
    assert column.n_missing == sum(value is None for value in values)
    assert column.usable == (kind in ("numbers", "booleans", "empty"))
    assert column.n_distinct == len(set(values) - {None})


def test_suggested_names():
    assert suggest_names("Diagnosis", ["age", "diagnosis"]) == "Did you mean 'diagnosis'?"
    assert suggest_names("zz", [f"c{j}" for j in range(12)]) == "Available: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more."
    assert column_positions("a,b", ["a,b", "a"], 2, "drop") == [0]  # a name with a comma
    assert column_positions(["-1", 0], ["u", "v"], 2, "drop") == [1, 0]
    assert listed([]) == ""


def test_message_for_a_mixed_frame(messy):
    X, y = messy.drop(columns="label"), messy.label
    with pytest.raises(ValueError, match="Features must be numbers") as caught:
        GroupDiscoveryClassifier(2).fit(X, y)
    message = str(caught.value)
    assert "4 of 7 columns of X are not: 'id' (text), 'visit' (dates), 'city' (categories), 'treated' (text)" in message
    assert "'age' (3)" in message
    columns, model = (line.strip() for line in message.splitlines()[1:])
    # The two lines of the message work.
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    space = {
        "make_column_transformer": make_column_transformer,
        "OneHotEncoder": OneHotEncoder,
        "make_pipeline": make_pipeline,
        "estimator": GroupDiscoveryClassifier(2),
    }
    exec(f"{columns}\n{model}", space)
    fitted = space["model"].fit(X.fillna({"age": 0}), y)
    assert len(fitted[-1].support_features_) == 2
    with pytest.raises(ValueError, match="1 of 2 columns of X is not: 'visit'"):
        imputed(X[["age", "visit"]])


def test_polars_frames(messy):
    pl = pytest.importorskip("polars")
    X, y = pl.from_pandas(messy.drop(columns="label")), messy.label
    with pytest.raises(ValueError, match=r"'visit' \(dates\), 'city' \(categories\), 'treated' \(text\)"):
        GroupDiscoveryClassifier(2).fit(X, y)
    numbers = X.select(["smoker", "lab"])
    eager = GroupDiscoveryClassifier(2).fit(numbers, y)
    lazy = GroupDiscoveryClassifier(2).fit(numbers.lazy(), y)
    assert lazy.groups_ == eager.groups_
    np.testing.assert_array_equal(lazy.predict(numbers.lazy()), eager.predict(numbers))
    np.testing.assert_array_equal(lazy.transform(numbers.lazy()), eager.transform(numbers))


def test_objects_and_booleans_in_frames(rng):
    y = np.arange(20) % 2
    good = pd.DataFrame({"a": rng.standard_normal(20), "b": y == 1, "c": pd.array(list(range(20)), dtype="Int64")})
    assert len(GroupDiscoveryClassifier(2).fit(good, y).groups_) == 2
    assert len(GroupDiscoveryClassifier(2).fit(good.astype(object), y).groups_) == 2
    with pytest.raises(ValueError, match=r"'d' \(dates\)"):
        GroupDiscoveryClassifier(2).fit(good.assign(d=[datetime.date(2024, 1, 1)] * 20), y)


def test_drop_in_files_that_are_no_tables(tmp_path, rng):
    np.savez(tmp_path / "x.npz", X=rng.standard_normal((9, 3)), y=np.arange(9) % 3, feature_names=np.array(["u", "v", "w"]))
    whole = open_features(tmp_path / "x.npz")
    left = open_features(tmp_path / "x.npz", drop="v")
    assert list(left.feature_names) == ["u", "w"]
    np.testing.assert_array_equal(matrix(left), matrix(whole)[:, [0, 2]])
    with pytest.raises(DataFileError, match=r"column not found. Available: u, v, w"):
        open_features(tmp_path / "x.npz", drop="zzz")
    with pytest.raises(DataFileError, match="drop applies only to tables"):
        convert(tmp_path / "x.npz", tmp_path / "s", drop="v")
