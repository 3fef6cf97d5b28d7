"""Comparisons with a quantitative trait, and with missing values that are imputed per fold."""

import math

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coterie
from coterie import imputed
from coterie.filters import correlation_score


@pytest.fixture
def trait(rng):
    X = rng.standard_normal((60, 8))
    y = X[:, 1] - 2 * X[:, 4] + 0.5 * rng.standard_normal(60)
    return np.where(rng.random(X.shape) < 0.15, np.nan, X), y


def test_equals_naive_code(trait, tmp_path):
    X, y = trait
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    found = coterie.compare(["correlation"], imputed(X, "mean"), y, n_features=3, cv=folds, results=tmp_path / "r")
    assert (found.task, found.scoring) == ("regression", "r2")
    for row, (train, test) in zip(found.rows, folds, strict=True):
        filled = SimpleImputer(strategy="mean").fit(X[train]).transform(X)
        chosen = np.sort(np.argsort(-correlation_score(filled[train], y[train]))[:3])
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17))).fit(filled[train][:, chosen], y[train])
        assert row.status == "ok"
        assert row.accuracy == pytest.approx(model.score(filled[test][:, chosen], y[test]), rel=1e-6)
        error = y[test] - model.predict(filled[test][:, chosen])
        assert row.rmse == pytest.approx(math.sqrt((error**2).mean()), rel=1e-6)
        assert set(found.selections["correlation", 3, row.fold].tolist()) == set(chosen.tolist())
    assert list(found.table.columns)[3:5] == ["n_selected", "r2"]
    assert {"r2", "r2_std", "rmse", "rmse_std"} <= set(found.summary().columns)
    assert "r2" in repr(found)
    again = coterie.compare(["correlation"], imputed(X, "mean"), y, n_features=3, cv=folds, results=tmp_path / "r")
    assert again.rows == found.rows  # from the journal
    with pytest.raises(ValueError, match="contains a comparison with different"):
        coterie.compare(["correlation"], imputed(X, "median"), y, n_features=3, cv=folds, results=tmp_path / "r")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "ranking"}, "task='ranking' must be"),
        ({"classifier": "linear_svm"}, "must be one of ridge, knn for regression"),
        ({"classifier": LogisticRegression()}, "predicts classes, but y is numeric"),
        ({"methods": ["l1-svm"]}, "'l1-svm' requires classes, but the labels are numbers"),
        ({"methods": ["no"], "task": "auto"}, "Unknown method 'no'"),
        ({"methods": ["lasso"], "task": "classification"}, "'lasso' requires a numeric target"),
    ],
)
def test_bad_input(trait, options, message):
    X, y = trait
    with pytest.raises(ValueError, match=message):
        coterie.compare(**{"methods": ["gdm"], "X": np.nan_to_num(X), "y": y, **options})
