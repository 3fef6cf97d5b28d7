"""``discover`` on raw frames: names of columns, categories, and predictions from raw frames and files."""

import numpy as np
import pytest

import coterie
from coterie import GroupDiscoveryClassifier
from coterie.data import open_features

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture
def frame(rng):
    n = 120
    city = rng.choice(["Ulm", "Bonn", "Graz"], n)
    X = rng.standard_normal((n, 5)).round(3)
    signal = 3 * (city == "Ulm") - 3 * (city == "Bonn") + 2 * X[:, 0] + 0.3 * rng.standard_normal(n)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(city=city, age=rng.integers(20, 80, n))
    frame["clinic"] = rng.choice(["A", "B", "C"], n)
    frame["donor"] = [f"D{i // 2}" for i in range(n)]
    frame["w"] = rng.integers(1, 3, n)
    frame["state"] = np.where(signal > 0, "ill", "well")
    return frame


NAMES = {"covariates": ["age", "clinic"], "groups": "donor", "sample_weight": "w"}
FAST = {"fast": True, "n_features_to_select": 3}


def test_names_of_columns_are_like_their_values(frame):
    named = coterie.discover(frame, "state", **NAMES, **FAST)
    values = coterie.discover(
        frame[["a", "b", "c", "d", "e", "city"]],
        frame.state,
        covariates=pd.get_dummies(frame[["age", "clinic"]], drop_first=True, dtype=float),
        groups=frame.donor,
        sample_weight=frame.w,
        **FAST,
    )
    assert named.groups == values.groups
    np.testing.assert_array_equal(named.model.coef_, values.model.coef_)
    np.testing.assert_array_equal(named.model.covariate_coef_, values.model.covariate_coef_)
    assert named.model.covariate_names_.tolist() == ["age", "clinic=B (not A)", "clinic=C (not A)"]
    assert named.target["label"] == "state"
    assert named.data["sample_groups"] == 60
    table = named.to_frame()
    assert set(table.loc[table.column == "city", "group"]) == {table.loc[table.column == "city", "group"].iloc[0]}
    assert table.loc[table.column == "city", "level"].tolist() != []


@pytest.mark.parametrize("how", ["frame", "polars", "csv", "xlsx", "parquet"])
def test_predictions_from_raw_tables(tmp_path, frame, how):
    found = coterie.discover(frame, "state", **NAMES, **FAST)
    found.save(tmp_path / "result")
    model = coterie.load(tmp_path / "result" / "model.coterie")
    new = frame.iloc[:50, ::-1].drop(columns=["state", "w", "donor"]).reset_index(drop=True)
    expected = found.predict(new)
    assert (expected == frame.state[:50]).mean() > 0.9
    path = tmp_path / f"new.{how}"
    if how == "polars":
        path = pytest.importorskip("polars").from_pandas(new)
    elif how == "csv":
        new.to_csv(path, sep=";", decimal=",", index=False)
    elif how == "xlsx":
        pytest.importorskip("openpyxl")
        new.to_excel(path, index=False)
    elif how == "parquet":
        new.to_parquet(path)
    else:
        path = new
    np.testing.assert_array_equal(model.predict(path), expected)
    np.testing.assert_array_equal(model.decision_function(path), found.model.decision_function(new))
    data = open_features(frame, label="state", drop="age,clinic,donor,w")
    by_name = {name: j for j, name in enumerate(data.feature_names)}
    support = [by_name[model.feature_names_in_[j]] for j in np.sort(model.groups_.support)]
    np.testing.assert_array_equal(model.transform(path), data.source.array[:50, support])


def test_covariates_that_are_passed_replace_those_of_the_table(frame):
    frame = frame.drop(columns="donor")
    found = coterie.discover(frame, "state", covariates=["age"], **FAST)
    new = frame.drop(columns=["age", "state"])
    np.testing.assert_array_equal(found.predict(new, covariates=frame[["age"]]), found.predict(frame))
    with pytest.raises(ValueError, match="covariates='age': column not found"):
        found.predict(new)


def test_unknown_levels_count_as_none(frame):
    with pytest.warns(UserWarning, match="1 column is left out: 'donor'"):
        found = coterie.discover(frame, "state", **FAST)
    assert any("donor" in text for text in found.warnings)
    frame = frame.drop(columns="donor")
    new = frame.assign(city="Paris")
    with pytest.warns(UserWarning, match=r"column 'city' has 1 level that the training data do not have: 'Paris' \(120\)"):
        outputs = found.model.decision_function(new)
    data = open_features(frame.drop(columns="state"), label=False)
    zeros = data.source.array.copy()
    zeros[:, [j for j, name in enumerate(data.feature_names) if name.startswith("city=")]] = 0
    np.testing.assert_allclose(outputs, found.model.decision_function(pd.DataFrame(zeros, columns=list(data.feature_names))))


def test_a_plain_estimator_refuses_text_and_names_the_remedy(frame):
    with pytest.raises(ValueError, match=r"'city' \(text\).*coterie\.data\.open_features\(X\)"):
        GroupDiscoveryClassifier(2).fit(frame.drop(columns="state"), frame.state)
    model = GroupDiscoveryClassifier(2).fit(open_features(frame, label="state", drop="donor"))
    assert len(model.predict(frame)) == len(frame)


def test_wrong_names(frame):
    with pytest.raises(ValueError, match=r"label='stat': column not found\. Did you mean 'state'"):
        coterie.discover(frame, "stat", **FAST)
    with pytest.raises(ValueError, match=r"sample_groups='doner': column not found\. Did you mean 'donor'"):
        coterie.discover(frame, "state", groups="doner", **FAST)
    with pytest.raises(ValueError, match="weight='v': column not found"):
        coterie.discover(frame, "state", sample_weight="v", **FAST)
