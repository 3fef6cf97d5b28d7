"""Chance level of the scores: compared with permuted labels and scipy, and its effect on the selection."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_selection import f_classif, f_regression, mutual_info_classif

from coterie import GlobalRedundancySelector
from coterie.data import FeatureView, as_source
from coterie.filters import correlation_score, fisher_score, information_gain_score, mcfs_score
from coterie.redundancy.chance import _LEVELS, RelevanceScale, _reached, chance_level, known_shares, permuted_shares
from coterie.redundancy.validation import default_strength


def noise_case(seed, n_relevant=15, n_samples=120, n_features=120):
    """Four classes, relevant features, and one with 98 % of its variance between the classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % 4
    X = rng.standard_normal((n_samples, n_features))
    for feature in range(n_relevant + 1):
        share = 0.98 if feature == 0 else rng.uniform(0.15, 0.5)
        means = rng.standard_normal(4)
        means -= means.mean()
        X[:, feature] = np.sqrt(share) * (means / means.std())[y] + np.sqrt(1.0 - share) * X[:, feature]
    return X, y


@pytest.fixture(scope="module")
def pure_noise():
    rng = np.random.default_rng(4)
    return rng.standard_normal((60, 80)), np.arange(60) % 3


@pytest.mark.parametrize("score", ["fisher", "information_gain"])
@pytest.mark.parametrize("solution", ["weights", "set"])
def test_no_feature_without_effect_is_selected(score, solution):
    for seed in range(3):
        X, y = noise_case(seed)
        model = GlobalRedundancySelector(score, 6, solution=solution).fit(X, y)
        assert (model.support_features_ <= 15).all()


def test_without_a_chance_level_most_are_without_effect():
    X, y = noise_case(0)
    raw = GlobalRedundancySelector(fisher_score(X, y), 10, solution="weights").fit(X)
    assert np.count_nonzero(raw.support_features_ > 15) >= 6


@pytest.mark.parametrize("score", ["fisher", "correlation"])
def test_known_distribution_by_permutation(score, rng):
    """The shares of permuted labels have the beta distribution that defines the chance level."""
    n = 40
    y = np.arange(n) % 3 if score == "fisher" else rng.standard_normal(n)
    compute = fisher_score if score == "fisher" else correlation_score
    X = np.column_stack([rng.permutation(rng.standard_normal(n)) for _ in range(4000)])
    shares = RelevanceScale.of(score, 1.0).share(compute(X, y))
    expected = known_shares(score, n, y)
    for level in (0.01, 0.05, 0.1, 0.2, 0.3):
        place = int(np.searchsorted(_LEVELS, level))
        error = np.sqrt(expected[place] * (1.0 - expected[place]) / 4000)
        assert abs(np.mean(shares >= _LEVELS[place]) - expected[place]) < 4.0 * error


@pytest.mark.filterwarnings("ignore:.*better than chance")
@pytest.mark.parametrize("fdr", [0.001, 0.01, 0.2])
def test_the_procedure_of_benjamini_and_hochberg(fdr):
    X, y = noise_case(1)
    model = GlobalRedundancySelector("fisher", 3, fdr=fdr).fit(X, y)
    chosen = stats.false_discovery_control(f_classif(X, y)[1]) <= fdr
    np.testing.assert_array_equal(model.relevance_ > 0.0, chosen)
    assert model.scores_[~chosen].max() <= model.chance_score_ <= model.scores_[chosen].min()
    numbers = y + np.random.default_rng(0).standard_normal(len(y))
    model = GlobalRedundancySelector("correlation", 3, fdr=fdr).fit(X, numbers)
    chosen = stats.false_discovery_control(f_regression(X, numbers)[1]) <= fdr
    np.testing.assert_array_equal(model.relevance_ > 0.0, chosen)


def test_relevance_by_its_definition():
    X, y = noise_case(2)
    model = GlobalRedundancySelector("fisher", 3).fit(X, y)
    share, level = (s / (1.0 + s) for s in (model.scores_, model.chance_score_))
    np.testing.assert_allclose(model.relevance_, np.maximum(share - level, 0.0) / (1.0 - level), atol=1e-12)
    numbers = GlobalRedundancySelector("correlation", 3).fit(X, X[:, 1] + X[:, 2])
    excess = numbers.scores_**2 - numbers.chance_score_**2
    np.testing.assert_allclose(numbers.relevance_, np.maximum(excess, 0) / (1 - numbers.chance_score_**2), atol=1e-12)
    plain = GlobalRedundancySelector("fisher", 3, fdr=None).fit(X, y)
    np.testing.assert_allclose(plain.relevance_, share, atol=1e-12)
    assert plain.chance_score_ == 0.0


def test_permuted_labels_by_hand(monkeypatch):
    X, y = noise_case(3, n_features=30)
    monkeypatch.setattr("coterie.redundancy.chance.N_PERMUTATIONS", 4)
    view, rng = FeatureView.of(as_source(X)), np.random.default_rng(20260119)
    scores = [information_gain_score(X, y[rng.permutation(len(y))]) for _ in range(4)]
    scale = RelevanceScale.of("information_gain", 1.5)
    found = permuted_shares(scale, "information_gain", {}, view, y)
    by_hand = [np.count_nonzero(np.array(scores) / 1.5 >= level) / 4 for level in _LEVELS[::500]]
    np.testing.assert_allclose(found[::500], by_hand)


def test_features_at_a_level_reach_it():
    scores = _LEVELS[[10, 500, 500, 12_000]]
    reached = _reached(FeatureView.of(as_source(np.eye(4))), scores, RelevanceScale.of("relieff", 1.0))
    assert reached[[0, 10, 11, 500, 501, 12_000]].tolist() == [4, 4, 3, 3, 1, 1]


def test_lowest_sufficient_level():
    """Levels below the lowest sufficient one do not matter, and one expected feature without effect is never enough."""
    n = len(_LEVELS)
    observed, expected = np.linspace(100.0, 0.0, n), np.linspace(50.0, 0.0, n) ** 2
    level = chance_level(observed, expected, 0.1)
    brute = min(t for t, o, e in zip(_LEVELS, observed, expected, strict=True) if e <= 0.1 * max(o, 1.0))
    assert level == brute
    assert chance_level(observed, np.full(n, 200.0), 0.1) == 1.0


@pytest.mark.parametrize("score", ["fisher", "information_gain", "relieff"])
def test_noise_alone_warns(score, pure_noise):
    with pytest.warns(UserWarning, match="No selected feature is better than chance, .* Check y") as caught:
        model = GlobalRedundancySelector(score, 5).fit(*pure_noise)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.support_features_, np.argsort(-model.scores_)[:5])
    assert not model.refined_scores_.any()
    assert np.isnan(model.objective_)
    assert len(model.candidates_) == 0


@pytest.mark.parametrize("solution", ["weights", "set"])
def test_more_features_than_are_better_than_chance(solution):
    X, y = noise_case(0, n_relevant=3)
    with pytest.warns(UserWarning, match=r"6 of the 10 selected features are not better than chance, .*Select fewer"):
        model = GlobalRedundancySelector("fisher", 10, solution=solution).fit(X, y)
    assert set(model.support_features_[:4]) == {0, 1, 2, 3}
    assert set(model.support_features_) == set(np.argsort(-model.scores_)[:10])


def test_scores_of_zero_warn(rng):
    X = rng.standard_normal((40, 60))
    n_scored = np.count_nonzero(mcfs_score(X, n_nonzero=3))
    with pytest.warns(
        UserWarning, match=f"{50 - n_scored} of the 50 selected features have a score of 0.*at most {n_scored} "
    ):
        GlobalRedundancySelector("mcfs", 50, score_parameters={"n_nonzero": 3}).fit(X)


def test_p_values_of_a_function():
    X, y = noise_case(1)
    model = GlobalRedundancySelector(f_classif, 5).fit(X, y)
    chosen = stats.false_discovery_control(f_classif(X, y)[1]) <= 0.01
    np.testing.assert_array_equal(model.relevance_ > 0.0, chosen)
    without = GlobalRedundancySelector(lambda X, y: mutual_info_classif(X, y, random_state=0), 5).fit(X, y)
    assert without.chance_score_ == 0.0
    with pytest.raises(ValueError, match=r"p-values of score_func have shape \(3,\), but X has 120 features"):
        GlobalRedundancySelector(lambda X, y: (np.ones(120), np.ones(3)), 5).fit(X, y)


def test_as_many_classes_as_samples(rng):
    """Every feature separates such classes."""
    X, y = rng.standard_normal((6, 10)), np.arange(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GlobalRedundancySelector("fisher", 2).fit(X, y)
    assert not model.relevance_.any()


def test_strength_by_the_number_of_classes():
    assert [default_strength(n) for n in (2, 3, 4, 6, 36)] == [1.0, 1.5, 2.0, 3.0, 3.0]
    assert (default_strength(None), default_strength(None, numeric=True)) == (2.0, 1.0)


def test_sets_for_two_classes_do_not_prefer_weak_features(rng):
    """Features that are independent given the class: a strength of 2 prefers shares of 1/4, the default of 1/2."""
    n = 4000
    y = np.arange(n) % 2
    share = np.linspace(0.05, 0.6, 40)
    X = np.sqrt(share) * (2.0 * y - 1.0)[:, None] + np.sqrt(1.0 - share) * rng.standard_normal((n, 40))
    found = {
        strength: GlobalRedundancySelector("fisher", 5, solution="set", redundancy_strength=strength).fit(X, y)
        for strength in ("auto", 1.0, 2.0)
    }
    np.testing.assert_array_equal(found["auto"].support_features_, found[1.0].support_features_)
    averages = [share[found[strength].support_features_].mean() for strength in (1.0, 2.0)]
    np.testing.assert_allclose(averages, [0.5, 0.25], atol=0.06)
    numbers = GlobalRedundancySelector("correlation", 5, solution="set").fit(X, y + 0.01 * rng.standard_normal(n))
    assert numbers.redundancy_strength_ == 1.0
    assert GlobalRedundancySelector("variance", 5, solution="set").fit(X, y).redundancy_strength_ == 2.0
