"""Thresholds of one-class models: the share of normal samples that is rejected."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score

from coterie import GroupDiscoveryOneClass, GroupDiscoveryOneClassCV, imputed, load, save
from coterie.validation.threshold import quantile_offset

RULES = ["quantile", "held_out", "margin"]


def samples(rng, n, *, n_features=20):
    """Counts without ties in the outputs: the first three features are typical."""
    X = rng.gamma(1.0, size=(n, n_features))
    X[:, :3] += 2.0
    return X


def rejected(model, X, weight=None):
    return float(np.average(model.predict(X) == -1, weights=weight))


# The quantile


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=12).filter(
        lambda rows: any(w for _, w in rows)
    ),
    st.floats(0.01, 0.5),
)
@example([(0, 1), (0, 2)], 0.5)
def test_the_threshold_rejects_as_many_as_it_may(rows, share):
    """Compared with a trial of all thresholds, in whole numbers."""
    outputs, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    offset = quantile_offset(outputs, weight, share)
    lost = [weight[outputs < value].sum() for value in outputs[weight > 0]]
    assert weight[outputs < offset].sum() == max(mass for mass in lost if mass <= share * weight.sum() * (1 + 1e-9))
    used = outputs[weight > 0]
    assert np.abs(used - offset).min() >= (1e-12 if used.any() else 0.0)  # no sample is on the threshold


def test_rounding_errors_do_not_divide_tied_outputs():
    outputs = np.r_[np.ones(50) + 1e-14 * np.arange(50), 2.0 * np.ones(50)]
    assert quantile_offset(outputs, None, 0.3) < 1.0
    assert quantile_offset(outputs, None, 0.5) == pytest.approx(1.5)
    assert quantile_offset(np.arange(100.0), None, 0.29) == 28.5  # 0.29 * 100 is below 29 in floating point
    assert quantile_offset(np.zeros(4), None, 0.5) == 0.0


# The share of samples that is rejected


@pytest.mark.parametrize("options", [{}, {"predict_with": "groups"}, {"standardize": True, "C": 100.0}])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
def test_the_share_of_training_samples_is_exact(rng, share, options):
    X = samples(rng, 200)
    model = GroupDiscoveryOneClass(5, contamination=share, **options).fit(X)
    assert rejected(model, X) == share
    assert model.decision_function(X) == pytest.approx(model.score_samples(X) - model.offset_)
    np.testing.assert_array_equal(model.fit_predict(X), model.predict(X))


@pytest.mark.parametrize("rule", ["quantile", "held_out"])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_the_share_of_new_samples_is_close(rng, rule, share):
    model = GroupDiscoveryOneClass(5, contamination=share, threshold_rule=rule).fit(samples(rng, 1000))
    # Three standard errors of the quantile of 1,000 samples.
    assert abs(rejected(model, samples(rng, 20000)) - share) < 3 * np.sqrt(share * (1 - share) / 1000)


@pytest.mark.parametrize("C", [1.0, 0.01])
def test_held_out_samples_correct_the_optimism_of_many_features(rng, C):
    """With C = 1 nearly all training samples are just below the margin, and the threshold is below all of them."""
    options = {"n_features_per_round": 100, "standardize": True, "C": C, "correlation": None, "contamination": 0.1}
    shares = []
    for _ in range(5):
        X, new = rng.gamma(1.0, size=(80, 300)), rng.gamma(1.0, size=(2000, 300))
        models = [GroupDiscoveryOneClass(100, threshold_rule=rule, **options).fit(X) for rule in ("quantile", "held_out")]
        shares.append([rejected(model, new) for model in models])
        assert C < 1.0 or models[1].offset_ < models[0].score_samples(X).min()
    training, held_out = np.mean(shares, axis=0)
    assert training > 0.16
    assert abs(held_out - 0.1) < 0.04


def level_by_separate_fits(X, weight, share, options):
    """The level of the held-out rule by its definition, from estimators fitted to nine tenths of the samples."""
    levels, mass = [], []
    for first in range(10):
        held_out = np.arange(len(X))[first::10]
        kept = np.setdiff1d(np.arange(len(X)), held_out)
        own = weight[kept] * weight.sum() / weight[kept].sum()
        model = GroupDiscoveryOneClass(threshold_rule="margin", **options).fit(X[kept], sample_weight=own)
        training, others = model.score_samples(X[kept]), model.score_samples(X[held_out])
        for value in others:
            below, tied = own[training < value - 1e-8].sum(), own[np.abs(training - value) <= 1e-8].sum()
            lowest = (value - training.min()) / model.margin_[0]
            levels.append((below + tied / 2) / own.sum() if below + tied else lowest)
        mass.append(weight[held_out])
    return quantile_offset(np.array(levels), np.concatenate(mass), share)


@pytest.mark.parametrize("share", [0.005, 0.3])
@pytest.mark.parametrize("options", [{"n_features_per_round": 1}, {"predict_with": "groups", "threshold": 0.2}])
@pytest.mark.parametrize("are_tied", [False, True])
def test_the_held_out_rule_by_its_definition(rng, share, options, are_tied):
    X, weight = samples(rng, 60), rng.gamma(1.0, size=60)
    X = np.repeat(X[:20], 3, axis=0) if are_tied else X
    options = {"n_features_to_select": 3, "C": 0.05, **options}
    model = GroupDiscoveryOneClass(threshold_rule="held_out", contamination=share, **options).fit(X, sample_weight=weight)
    level = level_by_separate_fits(X, weight, share, options)
    outputs = model.score_samples(X)
    if level >= 0:
        assert model.offset_ == pytest.approx(quantile_offset(outputs, weight, level), rel=1e-6)
    else:
        assert model.offset_ == pytest.approx(outputs.min() + level * model.margin_[0], rel=1e-6)
    assert are_tied or (level < 0) == (share == 0.005)


# The rule of the papers


@pytest.mark.parametrize("options", [{}, {"predict_with": "groups"}, {"standardize": True}])
def test_the_rule_of_the_papers(rng, options):
    """It rejects the samples with positive dual variables. The rule changes nothing but the threshold."""
    X = samples(rng, 150)
    models = {rule: GroupDiscoveryOneClass(5, C=0.1, threshold_rule=rule, **options).fit(X) for rule in RULES}
    paper = models["margin"]
    assert paper.offset_ == paper.margin_[0]
    if not options:
        np.testing.assert_array_equal(paper.predict(X) == -1, paper.dual_coef_[0] > 0)
    for model in models.values():
        np.testing.assert_array_equal(model.score_samples(X), paper.score_samples(X))
        np.testing.assert_array_equal(model.margin_, paper.margin_)
    assert len({model.offset_ for model in models.values()}) == 3


def test_the_papers_reject_every_support_vector(rng):
    """The reason for the default: a large C makes the margin hard, and still many samples lie just below it."""
    X = np.round(samples(rng, 60, n_features=200))
    model = GroupDiscoveryOneClass(50, C=1e4, threshold_rule="margin").fit(X)
    values = model.decision_function(X)
    assert (values < 0).mean() > 0.2
    assert values.min() > -1e-3 * model.margin_[0]
    assert rejected(clone(model).set_params(threshold_rule="quantile").fit(X), X) <= 0.1


# Invariances


@pytest.mark.parametrize("rule", ["quantile", "margin"])
def test_weights_are_repetitions_and_the_order_does_not_matter(rng, rule):
    X, new = samples(rng, 80), samples(rng, 50)
    weight = rng.integers(0, 4, 80)
    model = GroupDiscoveryOneClass(5, threshold_rule=rule)
    weighted = clone(model).fit(X, sample_weight=weight).decision_function(new)
    repeated = np.repeat(X, weight, axis=0)
    np.testing.assert_allclose(clone(model).fit(repeated).decision_function(new), weighted, atol=1e-9)
    shuffled = rng.permutation(repeated)
    np.testing.assert_allclose(clone(model).fit(shuffled).decision_function(new), weighted, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_layout_and_unit_do_not_matter(rng, rule):
    X = np.round(samples(rng, 90))
    model = GroupDiscoveryOneClass(5, threshold_rule=rule, C=0.2).fit(X)
    for other in (sparse.csc_array(X), np.asfortranarray(X), X.astype(np.float32), X.astype(np.uint8)):
        again = clone(model).fit(other)
        assert again.offset_ == pytest.approx(model.offset_, rel=1e-9)
        np.testing.assert_array_equal(again.predict(other), model.predict(X))
    scaled = clone(model).set_params(C=0.2 / 64).fit(8.0 * X)
    assert scaled.offset_ == pytest.approx(64 * model.offset_, rel=1e-6)


def test_rare_and_missing_values(rng):
    X = samples(rng, 120)
    X[rng.random(X.shape) < 0.05] = np.nan
    for rule in RULES:
        model = GroupDiscoveryOneClass(4, threshold_rule=rule).fit(imputed(X))
        assert 0.0 <= rejected(model, imputed(X)) < 1.0
    model = GroupDiscoveryOneClass(4, contamination=0.25).fit(imputed(X))
    assert rejected(model, imputed(X)) == 0.25


def test_the_held_out_rule_is_reproducible(rng):
    X = samples(rng, 70)
    model = GroupDiscoveryOneClass(4, threshold_rule="held_out")
    assert clone(model).fit(X).offset_ == clone(model).fit(X).offset_
    with_unused = np.vstack([X, 100.0 * np.ones((5, X.shape[1]))])
    weight = np.r_[np.ones(70), np.zeros(5)]
    assert clone(model).fit(with_unused, sample_weight=weight).offset_ == pytest.approx(clone(model).fit(X).offset_)


# Validation, files


@pytest.mark.parametrize("kind", ["support", "groups"])
@pytest.mark.parametrize("rule", ["quantile", "margin"])
def test_thresholds_within_the_folds_are_those_of_separate_fits(rng, kind, rule):
    X = np.vstack([samples(rng, 90), samples(rng, 45) - 1.0])
    y = np.repeat([1, -1], [90, 45])
    parts = np.arange(135) % 3
    folds = [(np.flatnonzero(parts != k), np.flatnonzero(parts == k)) for k in range(3)]
    options = {"contamination": 0.2, "threshold_rule": rule, "predict_with": kind, "standardize": False}
    model = GroupDiscoveryOneClassCV(4, Cs=[0.05], cv=folds, **options).fit(X, y)
    table = model.cv_results_
    for k, (train, test) in enumerate(folds):
        own = train[y[train] == 1]
        for row, size in enumerate(table["n_features"]):
            single = GroupDiscoveryOneClass(
                int(size), C=0.05, n_features_per_round="auto", reuse_features=False, **options
            ).fit(X[own])
            answer = single.predict(X[test])
            expected = np.mean([(answer[y[test] == label] == label).mean() for label in (1, -1)])
            assert table[f"split{k}_test_score"][row] == pytest.approx(expected)
    assert rejected(model, X[y == 1]) == 0.2 if rule == "quantile" else model.offset_ == model.margin_[0]


def test_the_threshold_does_not_depend_on_the_score(rng):
    """Chosen by the ranking of the samples, the model still accepts the share of normal samples that it is asked for."""
    X = np.vstack([samples(rng, 100), samples(rng, 50) - 1.0])
    y = np.repeat([1, -1], [100, 50])
    model = GroupDiscoveryOneClassCV(3, scoring="roc_auc", random_state=0).fit(X, y)
    assert rejected(model, X[y == 1]) == 0.1
    assert roc_auc_score(y, model.decision_function(X)) > 0.8


@pytest.mark.parametrize("rule", RULES)
def test_files(rng, rule, tmp_path):
    X = samples(rng, 60)
    model = GroupDiscoveryOneClass(4, threshold_rule=rule, contamination=0.2).fit(X)
    save(model, tmp_path / "model.coterie")
    again = load(tmp_path / "model.coterie")
    assert again.get_params() == model.get_params()
    assert again.offset_ == model.offset_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contamination": 0.0}, "contamination=0.0 must be a number above 0 and at most 0.5"),
        ({"contamination": 0.6}, "contamination=0.6 must be a number above 0 and at most 0.5"),
        ({"contamination": np.nan}, "contamination=nan must be"),
        ({"contamination": "auto"}, "contamination='auto' must be"),
        ({"contamination": True}, "contamination=True must be"),
        ({"threshold_rule": "mean"}, "threshold_rule='mean' must be one of 'quantile', 'held_out', 'margin'"),
        ({"threshold_rule": None}, "threshold_rule=None must be"),
    ],
)
def test_what_is_refused(rng, options, message):
    with pytest.raises(ValueError, match=message):
        GroupDiscoveryOneClass(2, **options).fit(samples(rng, 20))


def test_the_held_out_rule_needs_samples(rng):
    model = GroupDiscoveryOneClass(2, threshold_rule="held_out")
    with pytest.raises(ValueError, match=r"requires at least 3 samples with positive weight, but there are 2\. Use"):
        model.fit(samples(rng, 4), sample_weight=[1.0, 0.0, 0.0, 1.0])
    with pytest.raises(NotFittedError):
        model.predict(samples(rng, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(samples(rng, 3))
    with pytest.raises(ValueError, match="threshold_rule='held_out' must be one of 'quantile', 'margin'"):
        GroupDiscoveryOneClassCV(2, threshold_rule="held_out").fit(samples(rng, 20), np.repeat([1, -1], 10))
