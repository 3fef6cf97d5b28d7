"""Selection of the pool and the power by validation."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import f_regression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import load, save
from coterie.data import as_source
from coterie.datasets import make_block_gaussian
from coterie.redundancy.refinement import PoolRule
from coterie.redundancy.validation import RefinementSettings, best_setting, pool_rules, results_of, settings_of
from tests.redundancy import by_weights


@pytest.mark.filterwarnings("ignore:.*better than chance")
@parametrize_with_checks([by_weights(n_features_to_select=1, n_candidates="cv", options={"power": "cv"}, cv=2)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blocks():
    return make_block_gaussian(150, 6, 8, random_state=3)


def test_choice_by_hand(blocks):
    """The table equals that of separate fits on the training samples, and the best row is used."""
    X, y = blocks.X, blocks.y
    model = by_weights(
        "fisher",
        4,
        n_candidates="cv",
        cv=3,
        options={"power": "cv", "estimator": LogisticRegression(), "scoring": "roc_auc"},
    ).fit(X, y)
    results = model.cv_results_
    by_hand = np.empty((len(results["power"]), 3))
    for row, (size, power) in enumerate(zip(results["n_candidates"], results["power"], strict=True)):
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            n_candidates = int(size)
            while True:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    one = by_weights("fisher", 4, n_candidates=n_candidates, options={"power": power}).fit(X[train], y[train])
                if one.n_weighted_ >= 4 or size == 4 or n_candidates >= 48:
                    break
                n_candidates += (n_candidates + 1) // 2
            kept = one._kept()
            fitted = LogisticRegression().fit(X[train][:, kept], y[train])
            by_hand[row, fold] = roc_auc_score(y[test], fitted.decision_function(X[test][:, kept]))
    np.testing.assert_allclose(np.column_stack([results[f"split{k}_test_score"] for k in range(3)]), by_hand)
    np.testing.assert_allclose(results["mean_test_score"], by_hand.mean(axis=1))
    np.testing.assert_allclose(results["std_test_score"], by_hand.std(axis=1))
    best = int(np.argmax(by_hand.mean(axis=1) >= by_hand.mean(axis=1).max() - 1e-12))
    gains = by_hand[best] - by_hand[0]
    chosen = best if gains.mean() > 2 * gains.std(ddof=1) / np.sqrt(3) else 0
    assert model.validation_score_ == pytest.approx(by_hand[chosen].mean())
    assert model.power_ == results["power"][chosen]
    assert model.pool_sizes_[0] == results["n_candidates"][chosen]


@pytest.mark.parametrize(
    ("table", "chosen"),
    [
        ([[0.5, 0.6, 0.7], [0.9, 0.9, 0.9], [0.9, 0.9, 0.9]], 1),  # clearly better; ties: the first
        ([[0.5, 0.6, 0.7], [0.4, 0.9, 0.8], [0.3, 0.2, 0.1]], 0),  # better by chance
        ([[0.8, 0.8], [0.8, 0.8]], 0),
        ([[0.7, 0.8], [0.8, 0.9]], 1),  # the same difference in every fold
        ([[0.7], [0.8]], 1),  # no standard error with one fold
    ],
)
def test_better_than_chance(table, chosen):
    assert best_setting(np.array(table)) == chosen


def test_one_of_the_two(blocks):
    pool = by_weights("fisher", 4, n_candidates="cv", options={"power": 2}, cv=3).fit(blocks.X, blocks.y)
    assert set(pool.cv_results_["power"]) == {2.0}
    assert sorted(pool.cv_results_["n_candidates"]) == [4, 12, 20, 40, 48, 48]  # 20 per feature are all features
    power = by_weights("fisher", 4, n_candidates=24, options={"power": "cv"}, cv=3).fit(blocks.X, blocks.y)
    assert set(power.cv_results_["n_candidates"]) == {24}
    assert list(power.cv_results_["power"]) == [1.0, 2.0, 4.0]
    assert not hasattr(by_weights("fisher", 4).fit(blocks.X, blocks.y), "cv_results_")


def test_matrices_of_all_pairs_stay_small(blocks, monkeypatch):
    monkeypatch.setattr("coterie.redundancy.validation.MAX_PAIRED", 30)
    model = by_weights("fisher", 4, n_candidates="cv", redundancy="mutual_info", cv=3).fit(blocks.X, blocks.y)
    assert sorted(model.cv_results_["n_candidates"]) == [4, 12, 20]
    alone = by_weights("fisher", 4, n_candidates=40, options={"power": "cv"}, redundancy="mutual_info", cv=3)
    assert set(alone.fit(blocks.X, blocks.y).cv_results_["n_candidates"]) == {40}


def test_too_many_features_are_not_all_tried(blocks, monkeypatch):
    monkeypatch.setattr("coterie.redundancy.validation.MAX_VALIDATED", 45)
    model = by_weights("fisher", 4, n_candidates="cv", cv=3).fit(blocks.X, blocks.y)
    assert sorted(model.cv_results_["n_candidates"]) == [4, 12, 20, 40]
    alone = by_weights("fisher", 4, n_candidates=None, options={"power": "cv"}, cv=3).fit(blocks.X, blocks.y)
    assert set(alone.cv_results_["n_candidates"]) == {48}


def test_score_alone_is_selected_if_copies_help():
    """The mean of noisy copies of the signal predicts best, so the pool of the highest scores is selected."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    copies = y[:, None] + 1.2 * rng.standard_normal((120, 5))
    X = np.hstack([copies, rng.standard_normal((120, 60))])
    model = by_weights("fisher", 5, n_candidates="cv", options={"power": "cv"}, cv=5).fit(X, y)
    assert len(np.intersect1d(model._kept(), np.arange(5))) >= 4


@pytest.mark.parametrize("form", ["sparse", "source", "frame", "text labels"])
def test_any_form_of_data(form, blocks):
    X, y = np.abs(blocks.X).round(), blocks.y
    wanted = by_weights("fisher", 4, n_candidates="cv", fdr=None, cv=3).fit(X, y)
    model = clone(wanted)
    if form == "sparse":
        model.fit(sparse.csr_array(X), y)
    elif form == "source":
        model.fit(as_source(np.asfortranarray(X)), y)
    elif form == "frame":
        pd = pytest.importorskip("pandas")
        model.fit(pd.DataFrame(X, columns=[f"g{j}" for j in range(48)]), y)
    else:
        model.fit(X, np.where(y == 1, "yes", "no"))
    np.testing.assert_array_equal(model.ranking_, wanted.ranking_)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])


def test_order_of_columns(blocks):
    order = np.random.default_rng(1).permutation(48)
    a = by_weights("fisher", 4, n_candidates="cv", options={"power": "cv"}, cv=3).fit(blocks.X, blocks.y)
    b = clone(a).fit(blocks.X[:, order], blocks.y)
    assert set(order[b._kept()]) == set(a._kept())
    assert (a.power_, list(a.pool_sizes_)) == (b.power_, list(b.pool_sizes_))


def test_numbers_to_predict(blocks):
    y = blocks.X[:, 3] + 0.1 * blocks.X[:, 20]
    model = by_weights(f_regression, 3, n_candidates="cv", cv=3).fit(blocks.X, y)
    assert model.validation_score_ > 0.5
    assert 3 in model._kept()


def test_user_scores_get_training_samples_only(blocks):
    seen = []

    def score(X, y):
        seen.append((len(X), len(y)))
        return X.var(axis=0)

    by_weights(score, 3, n_candidates="cv", cv=3).fit(blocks.X, blocks.y)
    assert seen == [(150, 150), (100, 100), (100, 100), (100, 100)]


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"score_func": "variance"}, None, "n_candidates='cv' requires y to be passed, but the target y is None"),
        ({"cv": 1}, "y", "cv=1 must be a number of folds"),
        ({"cv": "five"}, "y", "cv='five'"),
        ({"cv": 200}, "y", r"cv=200 exceeds the number of samples \(150\)"),
        ({"options": {"scoring": "auc"}}, "y", "Did you mean 'roc_auc'"),
        ({"options": {"scoring": ["accuracy"]}}, "y", "must be a single score"),
        ({"options": {"estimator": "svm"}}, "y", "estimator='svm' must be an estimator or None"),
        ({"score_func": "variance"}, "short", "inconsistent numbers of samples"),
    ],
)
def test_wrong_input(options, y, message, blocks):
    labels = {"y": blocks.y, "short": blocks.y[:-1], None: None}[y]
    with pytest.raises(ValueError, match=message):
        by_weights(**{"n_features_to_select": 3, "n_candidates": "cv", **options}).fit(blocks.X, labels)


def test_a_matrix_has_no_samples():
    with pytest.raises(ValueError, match="requires samples"):
        by_weights(np.ones(4), 2, redundancy="precomputed", n_candidates="cv").fit(np.eye(4), [0, 1, 0, 1])


def test_saved_models_keep_the_table(blocks, tmp_path):
    model = by_weights("lgd", 4, n_candidates="cv", cv=2, score_parameters={"n_neighbors": 4}).fit(blocks.X, blocks.y)
    save(model, tmp_path / "model.coterie")
    again = load(tmp_path / "model.coterie")
    assert again.get_params() == model.get_params()
    for name, values in model.cv_results_.items():
        np.testing.assert_array_equal(again.cv_results_[name], values)
    np.testing.assert_array_equal(again.pool_sizes_, model.pool_sizes_)
    assert (again.power_, again.n_weighted_, again.validation_score_) == (
        model.power_,
        model.n_weighted_,
        model.validation_score_,
    )


@pytest.mark.parametrize(
    ("n_candidates", "is_set", "sizes", "growing"),
    [
        (30, False, [30], 0),
        (None, True, [None], 0),
        ("auto", False, [50], 1),
        ("auto", True, [200], 0),
        ("cv", False, [50, 30, 100, 200, None, 10], 4),
        ("cv", True, [200, 50, 500, None, 10], 0),
    ],
)
@pytest.mark.parametrize("paired", [False, True])
def test_numbers_of_candidates_that_are_tried(n_candidates, is_set, sizes, growing, paired):
    rules = pool_rules(n_candidates, 10, is_set=is_set, paired=paired)
    assert [rule.size for rule in rules] == sizes
    assert [rule.grows for rule in rules] == [True] * growing + [False] * (len(sizes) - growing)


@pytest.mark.parametrize(("n_selected", "size"), [(99, 1980), (100, 2000), (150, 2000), (2000, 2000), (2500, 2500)])
@pytest.mark.parametrize("n_candidates", ["auto", "cv"])
def test_the_first_pool_of_a_set_with_a_matrix_of_pairs_has_a_limit(n_selected, size, n_candidates):
    assert pool_rules(n_candidates, n_selected, is_set=True, paired=True)[0].size == size
    assert pool_rules(n_candidates, n_selected, is_set=True, paired=False)[0].size == 20 * n_selected
    assert pool_rules(n_candidates, n_selected, is_set=False, paired=True)[0].size == 5 * n_selected


def test_settings_that_amount_to_the_same_or_are_too_large_are_left_out(monkeypatch):
    rules = [PoolRule(size) for size in (50, 30, 100, None, 10)]
    both = settings_of(rules, (1.0, 2.0), 40, False, (None, 3.0))
    # 50 and 100 are all 40 features with a score; None stays, because it is a rule of its own.
    assert [one.rule.size for one in both[::4]] == [50, 30, None, 10]
    assert [(one.power, one.strength) for one in both[:4]] == [(1.0, None), (1.0, 3.0), (2.0, None), (2.0, 3.0)]
    for paired, limit in ((True, "MAX_PAIRED"), (False, "MAX_VALIDATED")):
        with monkeypatch.context() as patch:
            patch.setattr(f"coterie.redundancy.validation.{limit}", 30)
            assert [one.rule.size for one in settings_of(rules, (1.0,), 40, paired)] == [30, 10]
            assert [one.rule.size for one in settings_of(rules[:1], (1.0,), 40, paired)] == [50]


def test_the_table_of_settings():
    settings = [
        RefinementSettings(PoolRule(5), 1.0, 2.0),
        RefinementSettings(PoolRule(None), 1.0, 4.0),
        RefinementSettings(PoolRule(90), 2.0, 2.0),
    ]
    table = np.array([[0.5, 0.7], [0.2, 0.4], [1.0, 0.0]])
    results = results_of(settings, table, 40)
    assert results["n_candidates"].tolist() == [5, 40, 40]
    assert results["power"].tolist() == [1.0, 1.0, 2.0]
    assert results["redundancy_strength"].tolist() == [2.0, 4.0, 2.0]
    np.testing.assert_allclose(results["mean_test_score"], [0.6, 0.3, 0.5])
    np.testing.assert_allclose(results["std_test_score"], [0.1, 0.1, 0.5])
    assert results["split1_test_score"].tolist() == [0.7, 0.4, 0.0]
    assert "redundancy_strength" not in results_of([RefinementSettings(PoolRule(5), 1.0)], table[:1], 40)


def test_a_set_with_a_matrix_of_pairs(blocks, monkeypatch):
    model = by_weights("fisher", 2, solution="set", redundancy="mutual_info").fit(blocks.X, blocks.y)
    assert len(model.candidates_) == 40
    monkeypatch.setattr("coterie.redundancy.validation.MAX_PAIRED", 15)
    assert len(clone(model).fit(blocks.X, blocks.y).candidates_) == 15
