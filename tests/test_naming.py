"""Feature names in pipelines, in predictions by name, and in small files."""

import os
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import CorrelationGroups, GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryRegressor
from coterie.baselines import MRMRSelector
from coterie.persistence.slim import KeptNames
from tests.conftest import grouped_matrix

TEXTS = [
    "great film and lovely cast", "lovely great story", "a great and moving film", "moving story lovely cast great",
    "dull film and awful cast", "awful dull story", "a dull and boring film", "boring story awful cast dull",
] * 3  # fmt: skip
LABELS = ([1] * 4 + [0] * 4) * 3


@pytest.fixture(scope="module")
def frame():
    X, y = grouped_matrix(np.random.default_rng(0), n_features=10)
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]), y


@pytest.fixture
def pipe():
    return make_pipeline(TfidfVectorizer(), GroupDiscoveryClassifier(3)).fit(TEXTS, LABELS)


def words(groups):
    return {name for group in groups for name in group.labels}


def test_a_pipeline_gets_the_names_of_the_previous_step(pipe):
    before = pipe.predict(TEXTS)
    assert coterie.name_features(pipe) is pipe
    model, names = pipe[-1], pipe[0].get_feature_names_out()
    assert all(group.labels == [names[j] for j in group.members] for group in model.groups_)
    assert {"great", "dull"} <= words(model.groups_)
    assert model.get_feature_names_out().tolist() == pipe.get_feature_names_out().tolist() == names[model._kept()].tolist()
    with warnings.catch_warnings():  # a sparse matrix has no names, which causes no warning
        warnings.simplefilter("error")
        assert np.array_equal(pipe.predict(TEXTS), before)


def test_names_at_fit_from_the_previous_step():
    pipe = make_pipeline(TfidfVectorizer(), GroupDiscoveryClassifier(3, fixed_features=["story"]))
    pipe.fit(TEXTS, LABELS, groupdiscoveryclassifier__feature_names=pipe[0].get_feature_names_out)
    assert pipe[-1].groups_[0].labels[0] == "story"


def test_every_coterie_step_gets_names_and_arrays_need_none(frame):
    X, y = frame
    pipe = make_pipeline(StandardScaler(), CorrelationGroups(0.9), LogisticRegression()).fit(X, y)
    coterie.name_features(pipe)
    assert words(pipe[1].groups_) == set(X.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe.predict(X)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: coterie.as_source(np.asarray(X))])
def test_names_at_fit_and_in_sources(frame, make):
    X, y = frame
    expected = GroupDiscoveryRegressor(3).fit(X, y).groups_.to_json()
    given = GroupDiscoveryRegressor(3).fit(make(X), y, feature_names=X.columns)
    source = GroupDiscoveryRegressor(3).fit(coterie.as_source(make(X), list(X.columns)), y)
    assert [g.names for g in given.groups_] == [g.names for g in source.groups_]
    assert words(given.groups_) <= set(X.columns)
    if make is np.asarray:
        assert given.groups_.to_json() == expected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "feature_names has 2 names, but X has 10 features"),
        (["a"] * 10, "feature_names: columns 0 and 1 have the same name 'a'"),
        (list(range(10)), "feature_names must be strings, but 0 is of type int"),
        ("abcdefghij", r"feature_names must be a list with one name per feature \(10 features\)"),
    ],
)
def test_wrong_names(frame, names, message):
    X, y = frame
    X = X.to_numpy()
    model = GroupDiscoveryClassifier(2).fit(X, y)
    for call in (
        lambda: GroupDiscoveryClassifier(2).fit(X, y, feature_names=names),
        lambda: coterie.as_source(X, names),
        lambda: coterie.name_features(model, names),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_naming_errors(frame, pipe):
    X, y = frame
    model = GroupDiscoveryClassifier(2).fit(X, y)
    with pytest.raises(ValueError, match="fitted to data with other names"):
        coterie.name_features(model, [f"d{j}" for j in range(10)])
    with pytest.raises(ValueError, match="requires the names of all features"):
        coterie.name_features(model)
    with pytest.raises(ValueError, match="The first step of the pipeline is an estimator of Coterie"):
        coterie.name_features(make_pipeline(model))
    with pytest.raises(ValueError, match="no step that is an estimator of Coterie"):
        coterie.name_features(make_pipeline(StandardScaler()))
    with pytest.raises(TypeError, match="but got StandardScaler"):
        coterie.name_features(StandardScaler())
    with pytest.raises(ValueError, match=r"with_names\(\) requires the names of all features"):
        pipe[-1].groups_.with_names(["a"])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), frames=st.sampled_from([pd.DataFrame, pl.DataFrame]))
def test_columns_are_selected_by_name(frame, seed, frames):
    """Outputs do not depend on the order of columns, additional columns, or columns that are not read."""
    X, y = frame
    rng = np.random.default_rng(seed)
    model = GroupDiscoveryClassifier(int(rng.integers(1, 5)), keep="groups", predict_with="groups").fit(X, y)
    model.set_output(transform="polars" if frames is pl.DataFrame else "pandas")
    read = X.columns[model.prediction_features_]
    others = X.columns.difference(read)
    chosen = rng.permutation([*read, *others[rng.random(len(others)) < 0.5], "text", "when"]).tolist()
    table = {name: X[name] if name in X else (["word"] * len(X) if name == "text" else [None] * len(X)) for name in chosen}
    given_X = frames({name: list(values) for name, values in table.items()})
    np.testing.assert_allclose(model.decision_function(given_X), model.decision_function(X), rtol=1e-10, atol=1e-12)
    kept = model.transform(given_X)
    assert isinstance(kept, frames)
    assert list(kept.columns) == model.get_feature_names_out().tolist()
    assert np.array_equal(kept.to_numpy(), model.transform(X).to_numpy())


def test_a_column_that_is_missing_twice_or_wrong(frame):
    X, y = frame
    model = GroupDiscoveryClassifier(3, correlation=None).fit(X, y)
    read = [f"c{j}" for j in model.prediction_features_]
    with pytest.raises(ValueError, match=rf"X lacks 2 of the 3 features that GroupDiscoveryClassifier reads: '{read[0]}'"):
        model.predict(X[[read[2]]])
    with pytest.raises(ValueError, match=f"the same name '{read[0]}', which GroupDiscoveryClassifier reads"):
        model.predict(X[[read[0], *X.columns]])
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(X.assign(**{read[1]: np.nan}))
    with pytest.raises(ValueError, match=rf"Features must be numbers, but 1 of 3 columns of X is not: '{read[1]}'"):
        model.predict(X.assign(**{read[1]: pd.Timestamp("2020-01-01")}))


def test_a_matrix_must_have_all_features(frame):
    """Only the columns that the model reads could be in any order, so they are rejected."""
    X, y = frame
    model = GroupDiscoveryClassifier(3).fit(X.to_numpy(), y)
    for small in (
        model.transform(X.to_numpy()),
        sparse.csr_array(X.to_numpy()[:, :3]),
        coterie.as_source(X.to_numpy()[:, :3]),
    ):
        with pytest.raises(
            ValueError, match=r"X has 3 features, but .* is expecting 10 .*must have all features, in the order"
        ):
            model.predict(small)


def test_arrays_after_a_frame_cause_the_usual_warning(frame):
    X, y = frame
    model = GroupDiscoveryClassifier(3).fit(X, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X.to_numpy())
    with pytest.warns(UserWarning, match="X has feature names, but GroupDiscoveryClassifier was fitted without"):
        GroupDiscoveryClassifier(3).fit(X.to_numpy(), y).predict(X)


LONG = [f"chromosome {j}, and a long name" for j in range(10)]


@pytest.mark.parametrize("content", ["auto", "prediction"])
@pytest.mark.parametrize(
    "make", [GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryRegressor, MRMRSelector, CorrelationGroups]
)
def test_small_files(frame, tmp_path, monkeypatch, make, content):
    monkeypatch.setattr("coterie.persistence.slim.MIN_SLIM_BYTES", 100)
    X, y = frame[0].set_axis(LONG, axis=1), frame[1]
    model = make(0.9 if make is CorrelationGroups else 2).fit(X, y)
    coterie.save(model, tmp_path / "all", content="all")
    coterie.save(model, tmp_path / "small", content=content)
    whole, small = coterie.load(tmp_path / "all"), coterie.load(tmp_path / "small")
    assert hasattr(whole, "feature_names_in_")
    assert not hasattr(small, "feature_names_in_")
    assert hasattr(small, "scores_") == (content == "auto" and hasattr(model, "scores_"))
    assert small.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    if hasattr(model, "groups_"):
        assert small.groups_.to_json() == model.groups_.to_json()
        assert small.correlated_feature_dict_ == model.correlated_feature_dict_
    shuffled = X[X.columns[::-1]].assign(other="text")
    assert np.array_equal(small.transform(shuffled), model.transform(X))
    if hasattr(model, "predict"):
        assert np.array_equal(small.predict(shuffled), model.predict(X))
        assert np.array_equal(small.predict(X.to_numpy()), model.predict(X))
    coterie.save(small, tmp_path / "again", content=content)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "small").read_bytes()
    with pytest.raises(ValueError, match="other names"):
        coterie.name_features(small, LONG[::-1])
    assert coterie.name_features(small, LONG).feature_names_in_.tolist() == LONG


def test_a_few_names_are_all_kept_and_many_are_not(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"rs{j:09d} with a name that takes its room" for j in range(30_000)]
    X = coterie.as_source(rng.standard_normal((12, 30_000)), names)
    model = GroupDiscoveryClassifier(3, correlation=None).fit(X, np.arange(12) % 2)
    sizes = {}
    for content in ("all", "auto", "prediction"):
        coterie.save(model, tmp_path / content, content=content)
        sizes[content] = os.path.getsize(tmp_path / content)
    assert sizes["all"] - sizes["auto"] > sum(map(len, names))
    assert sizes["prediction"] < 100_000 < 8 * 30_000 < sizes["auto"]
    assert hasattr(coterie.load(tmp_path / "all"), "feature_names_in_")


def test_content_is_one_of_three(tmp_path):
    with pytest.raises(ValueError, match="content='small' must be one of 'auto', 'all', 'prediction'"):
        coterie.save(GroupDiscoveryClassifier(), tmp_path / "x", content="small")


def test_omitted_names_are_not_generated():
    kept = KeptNames.of(LONG, np.array([2, 5]))
    with pytest.raises(ValueError, match="saved without the name of feature 7"):
        kept.at(np.array([2, 7]))
    assert not KeptNames(kept.features, kept.names[:1], 10, kept.digest).fits(10)
    assert not KeptNames(kept.features, kept.names, 10, kept.digest).fits(4)
