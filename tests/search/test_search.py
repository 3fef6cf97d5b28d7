"""A search as a value: its settings become a view, a loss, a rule and an oracle."""

from dataclasses import replace

import numpy as np
import pytest

from coterie import GroupDiscoveryClassifier, GroupDiscoveryRegressor
from coterie.correlation.pearson import PearsonCorrelation
from coterie.estimators.base import input_of
from coterie.search import search as search_module
from coterie.search.oracle import Oracle
from coterie.search.search import Search, SearchSettings, run_with_progress
from coterie.search.voting import VotingOracle
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.losses import SquaredHinge
from tests.conftest import grouped_matrix, sparse_counts


def test_defaults_of_the_settings_are_those_of_the_estimator():
    settings, given = SearchSettings(SquaredHinge), GroupDiscoveryClassifier()._settings()
    for name in ("C", "fit_intercept", "class_weight", "n_features_per_round", "reuse_features", "correlation", "threshold",
                 "n_bins", "affiliates", "representative", "fixed_features", "predict_with", "cv", "cv_part", "max_rounds",
                 "tol"):  # fmt: skip
        assert getattr(settings, name) == getattr(given, name)


@pytest.mark.parametrize("standardize", [None, True, False])
@pytest.mark.parametrize("mostly_zero", [True, False])
def test_sparse_data_are_not_scaled_by_default(rng, standardize, mostly_zero):
    X, y = sparse_counts(rng) if mostly_zero else grouped_matrix(rng)
    data = input_of(GroupDiscoveryClassifier(2), X, y)
    assert data.mostly_zero == mostly_zero
    search = Search(data, SearchSettings(SquaredHinge, standardize=standardize), 2)
    expected = not mostly_zero if standardize is None else standardize
    assert search.standardizes == expected
    assert (search.loop().oracle.view.scale is not None) == expected


def test_weights_of_the_loss(rng):
    """Sample weights times class weights, which only classes have."""
    X, y = grouped_matrix(rng)
    weight = rng.random(60) + 0.5
    settings = SearchSettings(SquaredHinge, class_weight={-1: 1.0, 1: 3.0}, C=0.3)
    data = input_of(GroupDiscoveryClassifier(2), X, y)
    np.testing.assert_allclose(settings.loss_of(data).weight, np.where(y > 0, 3.0, 1.0))
    np.testing.assert_allclose(settings.loss_of(replace(data, weight=weight)).weight, weight * np.where(y > 0, 3.0, 1.0))
    assert settings.loss_of(data).C == 0.3
    adjusted = settings.loss_of(replace(data, covariates=rng.standard_normal((60, 2))))
    assert isinstance(adjusted, AdjustedLoss)
    numbers = input_of(GroupDiscoveryRegressor(2), X, y * 1.5)
    loss = replace(GroupDiscoveryRegressor(2)._settings(), class_weight="balanced").loss_of(replace(numbers, weight=weight))
    np.testing.assert_array_equal(loss.weight, weight)


@pytest.mark.parametrize(("n_features", "fixed", "wanted"), [(5, None, 5), (5, [1, 4], 3), (2, [1, 4], 0), (99, [1], 39),
                                                           (None, [1], None)])  # fmt: skip
def test_number_of_features_includes_fixed_features(rng, n_features, fixed, wanted):
    X, y = grouped_matrix(rng)
    data = input_of(GroupDiscoveryClassifier(2), X, y)
    settings = SearchSettings(SquaredHinge, fixed_features=fixed, n_features_per_round=2, max_rounds=3, tol=0.01)
    loop = Search(data, settings, n_features).loop()
    assert (loop.rule.n_features, loop.rule.n_features_per_round) == (wanted, 2)
    assert (loop.rule.max_rounds, loop.rule.tol) == (3, 0.01)
    assert loop.fixed.tolist() == (fixed or [])


def test_too_many_fixed_features(rng):
    X, y = grouped_matrix(rng)
    search = Search(input_of(GroupDiscoveryClassifier(2), X, y), SearchSettings(SquaredHinge, fixed_features=[1, 2, 3]), 2)
    with pytest.raises(ValueError, match=r"^fixed_features has 3 features, more than n_features_to_select=2, which includes"):
        search.loop()


def test_oracle_has_the_options_of_the_settings(rng):
    X, y = grouped_matrix(rng)
    data = input_of(GroupDiscoveryClassifier(2), X, y)
    options = {"threshold": 0.6, "affiliates": "ranked", "representative": "medoid", "reuse_features": True}
    oracle = Search(data, SearchSettings(SquaredHinge, **options), 2).loop().oracle
    assert type(oracle) is Oracle
    assert (oracle.threshold, oracle.complete, oracle.representative, oracle.reuse) == (0.6, False, "medoid", True)
    free = Search(data, SearchSettings(SquaredHinge, correlation=None), 2).loop().oracle
    assert free.threshold == np.inf
    assert not free.constrained
    assert not free.complete
    assert isinstance(free.correlation, PearsonCorrelation)
    measure = Search(data, SearchSettings(SquaredHinge, correlation="su", n_bins=4), 2).loop().oracle.correlation
    assert not isinstance(measure, PearsonCorrelation)
    voting = Search(data, SearchSettings(SquaredHinge, cv=3, cv_part="fold", random_state=0), 2).loop().oracle
    assert isinstance(voting, VotingOracle)
    assert [int(fold.view.sample_weight.sum()) for fold in voting.folds] == [20, 20, 20]
    assert voting.complete


@pytest.mark.parametrize(("n_features", "total"), [(5, 5), (None, None)])
@pytest.mark.parametrize("n_workers", [None, 3])
def test_progress_of_a_search(rng, monkeypatch, n_features, total, n_workers):
    X, y = grouped_matrix(rng)
    search = Search(
        input_of(GroupDiscoveryClassifier(2), X, y), SearchSettings(SquaredHinge, fixed_features=[0, 9]), n_features
    )
    shown, updates, entries = [], [], []

    class Progress:
        def __init__(self, *arguments):
            shown.append(arguments)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def update(self, *arguments):
            updates.append(arguments)

    monkeypatch.setattr(search_module, "RoundProgress", Progress)
    loop = search.loop()
    monkeypatch.setattr(type(loop.oracle.view.source), "n_workers", n_workers)
    run_with_progress(loop, "title", 2, lambda entry: entries.append(entry) or len(entries) == 3)
    assert shown == [(total, 2, "title")]
    assert loop.stopped
    assert entries == loop.history
    workers = "" if n_workers is None else ", 3 workers"
    assert updates == [
        (entry.n_support, f"objective {entry.objective:.6g}, gap {entry.gap:.1e}{workers}") for entry in entries
    ]
