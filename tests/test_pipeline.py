"""Pipelines whose steps from Coterie get the names of the previous steps."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn import pipeline as sklearn_pipeline
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import coterie
from coterie import GlobalRedundancySelector, GroupDiscoveryClassifier

ANIMALS = ["the quick brown fox", "a lazy dog sleeps", "quick brown bears", "the lazy dog", "the fox ran"] * 6
MONEY = ["stock prices fell", "the stock prices", "central bank rates", "the central bank", "rates fell"] * 6
TEXTS, LABELS = ANIMALS + MONEY, ["animals"] * 30 + ["money"] * 30


def words_of(model):
    return {name for group in model.groups_ for name in group.names}


def test_groups_have_words():
    pipe = coterie.make_pipeline(TfidfVectorizer(), GroupDiscoveryClassifier(2, threshold=0.6)).fit(TEXTS, LABELS)
    plain = sklearn_pipeline.make_pipeline(TfidfVectorizer(), GroupDiscoveryClassifier(2, threshold=0.6)).fit(TEXTS, LABELS)
    names = pipe[0].get_feature_names_out()
    for group, other in zip(pipe[-1].groups_, plain[-1].groups_, strict=True):
        assert list(group.names) == [names[j] for j in other.members]
        assert other.names is None
    np.testing.assert_array_equal(pipe.predict(TEXTS), plain.predict(TEXTS))
    assert pipe.score(TEXTS, LABELS) == plain.score(TEXTS, LABELS)


def test_names_are_known_during_the_fit():
    model = GroupDiscoveryClassifier(2, fixed_features=["dog"])
    pipe = coterie.Pipeline([("count", CountVectorizer()), ("model", model)]).fit(TEXTS, LABELS)
    assert pipe["model"].groups_[0].names[0] == "dog"
    given = [f"word {name}" for name in pipe["count"].get_feature_names_out()]
    pipe.set_params(model__fixed_features=None).fit(TEXTS, LABELS, model__feature_names=given)
    assert all(name.startswith("word ") for name in words_of(pipe["model"]))


def test_steps_in_the_middle_get_names():
    selector = GlobalRedundancySelector(n_features_to_select=6)
    pipe = coterie.make_pipeline(CountVectorizer(), SelectKBest(k=10), selector, GroupDiscoveryClassifier(2))
    pipe.fit(TEXTS, LABELS)
    kept = set(pipe[:2].get_feature_names_out())
    assert set(pipe[2].get_feature_names_out()) <= kept
    assert words_of(pipe[-1]) <= set(pipe[2].get_feature_names_out())


def test_it_is_a_pipeline(tmp_path):
    pipe = coterie.make_pipeline(TfidfVectorizer(), GroupDiscoveryClassifier(2, threshold=0.6), memory=str(tmp_path))
    assert isinstance(clone(pipe), coterie.Pipeline)
    search = GridSearchCV(pipe, {"groupdiscoveryclassifier__n_features_to_select": [1, 2]}, cv=3).fit(TEXTS, LABELS)
    assert words_of(search.best_estimator_[-1])
    for _ in range(2):  # the second fit takes the vectorizer from the cache
        assert words_of(clone(pipe).fit(TEXTS, LABELS)[-1]) >= {"brown", "dog"}
    assert len(cross_val_score(pipe, TEXTS, LABELS, cv=3)) == 3
    chosen = coterie.make_pipeline(CountVectorizer(), GroupDiscoveryClassifier(2))
    np.testing.assert_array_equal(
        chosen.fit_transform(TEXTS, LABELS).toarray(), chosen.fit(TEXTS, LABELS).transform(TEXTS).toarray()
    )
    assert words_of(chosen[-1])


def test_names_of_a_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.standard_normal(60), "site": rng.choice(["north", "south"], 60)})
    y = np.where(table["age"] > 0, "old", "young")
    columns = ColumnTransformer([("numbers", StandardScaler(), ["age"]), ("levels", OneHotEncoder(), ["site"])])
    pipe = coterie.make_pipeline(columns, GroupDiscoveryClassifier(1)).fit(table, y)
    assert pipe[-1].groups_[0].names[0] == "numbers__age"


def test_without_names():
    X = CountVectorizer().fit_transform(TEXTS)
    pipe = coterie.make_pipeline(FunctionTransformer(), GroupDiscoveryClassifier(2)).fit(X, LABELS)
    assert pipe[-1].groups_[0].names is None
    alone = coterie.make_pipeline(GroupDiscoveryClassifier(2)).fit(X, LABELS)
    assert alone[-1].groups_[0].names is None
    other = coterie.make_pipeline(CountVectorizer(), StandardScaler(with_mean=False)).fit(TEXTS)
    assert other.transform(TEXTS).shape == X.shape


def test_with_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = coterie.make_pipeline(CountVectorizer(), GroupDiscoveryClassifier(2)).fit(TEXTS, LABELS)
    assert words_of(pipe[-1]) <= set(pipe[0].get_feature_names_out())


@pytest.mark.parametrize("maker", [coterie.make_pipeline, sklearn_pipeline.make_pipeline])
def test_report_of_a_pipeline(maker):
    pipe = maker(TfidfVectorizer(), GroupDiscoveryClassifier(2, threshold=0.6)).fit(TEXTS, LABELS)
    page = coterie.report(pipe, TEXTS, LABELS).html
    assert "brown" in page
    assert "feature 1" not in page
    assert hasattr(pipe[-1], "feature_names_in_") == (maker is coterie.make_pipeline)


def test_names_of_a_transformer():
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(TEXTS)
    model = GroupDiscoveryClassifier(2).fit(X, LABELS, feature_names=vectorizer)
    assert words_of(model) <= set(vectorizer.get_feature_names_out())
    other = coterie.name_features(GroupDiscoveryClassifier(2).fit(X, LABELS), vectorizer)
    assert words_of(other) == words_of(model)
