"""Regressors of several targets: optimality, units, validation, confidence, effects, saving and bad targets."""

import itertools

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score

import coterie
from coterie import (
    GroupDiscoveryClassifier,
    GroupDiscoveryRegressor,
    GroupDiscoveryRegressorCV,
    group_confidence,
    group_effects,
)
from coterie.solver.loss import Loss
from coterie.solver.losses import SquaredLoss
from coterie.validation.metrics import MEASURES, explained

UNITS = np.array([1.0, 1e4, 1e-3])


@pytest.fixture(scope="module")
def several():
    """Three targets in different units: feature 2 (with its copy 5) acts on the first and the last, 7 on the second."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 20))
    X[:, 5] = X[:, 2] + 0.3 * X[:, 5]
    signal = np.column_stack([2 * X[:, 2] - X[:, 7], X[:, 7], X[:, 2]])
    return X, UNITS * (signal + 0.5 * rng.standard_normal((120, 3))) + 3.0 * UNITS


def blocks_of(model):
    sizes = np.cumsum([0, *(len(r.features) for r in model.history_)])
    return [slice(a, b) for a, b in itertools.pairwise(sizes)]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_optimal_and_certified(several, fit_intercept):
    """The primal problem with cvxpy, for the targets divided by their standard deviations, and the dual one by definition."""
    X, Y = several
    rng = np.random.default_rng(1)
    weight, offset = rng.random(120) + 0.2, 0.3 * UNITS * rng.standard_normal((120, 3))
    model = GroupDiscoveryRegressor(6, n_features_per_round=2, fit_intercept=fit_intercept, C=0.5, standardize=False)
    model.fit(X, Y, weight, offset=offset)
    assert max(entry.gap for entry in model.history_) <= 1e-8
    rest = Y - offset
    centred = rest - np.average(rest, axis=0, weights=weight)
    scale = np.sqrt(np.average(centred**2, axis=0, weights=weight))
    Z, targets, blocks = X[:, model.support_features_], rest / scale, blocks_of(model)
    coef = model.support_coef_.T / scale
    errors = targets - Z @ coef - model.intercept_ / scale
    primal = 0.5 * sum(np.linalg.norm(coef[b]) for b in blocks) ** 2 + 0.25 * (weight @ errors**2).sum()
    residual = model.dual_coef_.T
    np.testing.assert_allclose(residual, 0.5 * weight[:, None] * errors, rtol=1e-7, atol=1e-9)
    scores = Z.T @ residual
    dual = (
        max(0.5 * (scores[b] ** 2).sum() for b in blocks) + (residual**2 / weight[:, None]).sum() - (residual * targets).sum()
    )
    assert model.objective_ == pytest.approx(dual, rel=1e-7)
    assert primal + dual == pytest.approx(0.0, abs=1e-7 * primal)
    W, b = cp.Variable(coef.shape), cp.Variable((1, 3))
    fitted = Z @ W + (np.ones((120, 1)) @ b if fit_intercept else 0.0)
    norms = sum(cp.norm(W[own], "fro") for own in blocks)
    loss = cp.sum(cp.multiply(weight[:, None] * np.ones((1, 3)), cp.square(targets - fitted)))
    task = cp.Problem(cp.Minimize(0.5 * cp.square(norms) + 0.25 * loss))
    task.solve(solver=cp.CLARABEL)
    assert primal == pytest.approx(task.value, rel=1e-6)
    np.testing.assert_allclose(model.predict(X, offset=offset), X @ model.coef_.T + model.intercept_ + offset)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_units_do_not_decide(several, loss):
    X, Y = several
    model = GroupDiscoveryRegressor(3, loss=loss).fit(X, Y)
    other = GroupDiscoveryRegressor(3, loss=loss).fit(X, Y / UNITS)
    assert model.support_features_.tolist()[:2] == [2, 7]
    np.testing.assert_array_equal(model.support_features_, other.support_features_)
    np.testing.assert_allclose(model.predict(X), UNITS * other.predict(X), rtol=1e-8)
    assert model.score(X, Y) == pytest.approx(other.score(X, Y / UNITS), rel=1e-9)
    plain = GroupDiscoveryRegressor(1, loss=loss, scale_targets=False).fit(X, Y)
    assert plain.support_features_.tolist() == [7]  # only the target in large units counts


def test_targets_with_more_counts_do_not_decide():
    """Noise is equal for all targets: the feature of rare events is found beside those of frequent ones."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 40))
    rates = np.column_stack([np.full(300, 400.0), 2.0 * np.exp(0.5 * X[:, 4])])
    Y = rng.poisson(rates)
    settings = {"loss": "poisson", "n_features_per_round": 1}
    assert GroupDiscoveryRegressor(1, **settings).fit(X, Y).support_features_.tolist() == [4]
    assert GroupDiscoveryRegressor(1, **settings, scale_targets=False).fit(X, Y).support_features_.tolist() != [4]
    model = GroupDiscoveryRegressor(1, **settings).fit(X, Y, offset=np.zeros(300))  # one offset for all targets
    assert model.offset_coef_.tolist() == [1.0, 1.0]
    np.testing.assert_allclose(
        model.predict(X, offset=np.log(2.0) * np.ones(300)), 2.0 * np.exp(X @ model.coef_.T + model.intercept_)
    )


def test_shares_features_as_classes_do(several):
    """Several targets of one feature each: one group serves two targets, and a model per target finds the same ones."""
    X, Y = several
    model = GroupDiscoveryRegressor(2, n_features_per_round=1).fit(X, Y)
    assert [sorted(group.members.tolist()) for group in model.groups_] == [[2, 5], [7]]
    alone = [GroupDiscoveryRegressor(1, n_features_per_round=1).fit(X, y).support_features_[0] for y in Y[:, 1:].T]
    assert alone == [7, 2]
    # A single block and a large C: ordinary least squares on the selected features.
    model = GroupDiscoveryRegressor(2, n_features_per_round=2, C=1e7).fit(X, Y)
    ridge = Ridge(alpha=1e-9).fit(X[:, model.support_features_], Y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X[:, model.support_features_]), rtol=1e-5)


def test_models_on_groups_are_ridge_regressions(several):
    X, Y = several
    for covariates in (None, X[:, [11]]):
        model = GroupDiscoveryRegressor(2, predict_with="groups", C=0.8, standardize=False).fit(X, Y, covariates=covariates)
        members = model.prediction_features_
        used = (
            X[:, members] if covariates is None else X[:, members] - covariates @ np.linalg.lstsq(covariates, X[:, members])[0]
        )
        if covariates is None:
            ridge = Ridge(alpha=1 / 0.8, tol=1e-12).fit(used, Y)
            np.testing.assert_allclose(model.coef_[:, members], ridge.coef_, rtol=1e-6)
            np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-6)
        assert model.prediction_gap_ <= 1e-9


def test_sample_weights_are_repetitions(several):
    X, Y = several
    weight = np.random.default_rng(2).integers(0, 3, 120)
    repeated = np.repeat(np.arange(120), weight)
    a = GroupDiscoveryRegressor(3).fit(X, Y, weight)
    b = GroupDiscoveryRegressor(3).fit(X[repeated], Y[repeated])
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6, atol=1e-9 * UNITS.max())


def test_one_column_is_one_target(several):
    X, Y = several
    with pytest.warns(UserWarning, match="column-vector"):
        model = GroupDiscoveryRegressor(2).fit(X, Y[:, :1])
    assert not hasattr(model, "target_names_")
    assert model.coef_.shape == (20,)
    assert model.predict(X).shape == (120,)
    np.testing.assert_array_equal(model.coef_, GroupDiscoveryRegressor(2).fit(X, Y[:, 0]).coef_)


@pytest.fixture(scope="module")
def validated(several):
    X, Y = several
    names = pd.DataFrame(Y, columns=["height", "weight", "dose"])
    model = GroupDiscoveryRegressorCV(4, nested=True, rule="one_se", random_state=0)
    return names, model.fit(X, names)


def test_held_out_scores(several, validated):
    """Scores of all targets together and of each, in their units, from predictions without the samples."""
    X, Y = several
    _, model = validated
    assert model.target_names_.tolist() == ["height", "weight", "dose"]
    assert model.support_features_.tolist() == [2, 7]
    predicted, scores = model.held_out_predictions_, model.held_out_scores_
    assert scores["r2"] == pytest.approx(r2_score(Y, predicted))
    for c, name in enumerate(model.target_names_):
        assert scores[f"r2[{name}]"] == pytest.approx(r2_score(Y[:, c], predicted[:, c]))
        assert scores[f"mean_absolute_error[{name}]"] == pytest.approx(mean_absolute_error(Y[:, c], predicted[:, c]))
        low, high = model.held_out_intervals_[f"r2[{name}]"]
        assert low < scores[f"r2[{name}]"] < high
    assert model.baseline_scores_["r2"] < 0.0
    assert model.nested_scores_.mean() == pytest.approx(scores["r2"], abs=0.1)
    assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)))
    # A score with a unit is that of the user's units.
    other = GroupDiscoveryRegressorCV(2, scoring="neg_mean_absolute_error", Cs=[1.0], predict_with="support", random_state=0)
    other.fit(X, Y)
    assert -other.best_score_ > 0.1 * UNITS.max()


def test_compiled_paths_and_lockstep_agree(several):
    """Covariates have no compiled form: a constant one leaves the paths to the general loop."""
    X, Y = several
    settings = {"Cs": [0.1, 1.0], "predict_with": "support", "random_state": 0}
    for loss in ("squared", "huber"):
        fast = GroupDiscoveryRegressorCV(4, loss=loss, **settings).fit(X, Y)
        slow = GroupDiscoveryRegressorCV(4, loss=loss, **settings).fit(X, Y, covariates=np.zeros((120, 1)))
        for name, values in fast.cv_results_.items():
            if name.endswith("test_score"):
                np.testing.assert_allclose(values, slow.cv_results_[name], atol=1e-7)


def test_explained_is_the_mean_over_targets(rng):
    y, predicted, weight = rng.poisson(4.0, (30, 2)) + 0.5, rng.random((30, 2)) + 3.0, rng.random(30)
    for name in ("r2", "d2_poisson", "d2_absolute_error"):
        parts = [explained(MEASURES[name], y[:, c], predicted[:, c], weight) for c in range(2)]
        assert explained(MEASURES[name], y, predicted, weight) == pytest.approx(np.mean(parts))
    assert explained(MEASURES["r2"], y, predicted, weight) == pytest.approx(r2_score(y, predicted, sample_weight=weight))


def test_effects_are_in_the_units_of_the_targets(several, validated):
    X, Y = several
    names, model = validated
    found = group_effects(model, X, names)
    assert found.effects.shape == (2, 3)
    for c in range(3):
        alone = group_effects(GroupDiscoveryRegressor(2, n_features_per_round=1).fit(X, Y[:, 0]), X, Y[:, c])
        np.testing.assert_allclose(found.effects[:, [c]], alone.effects, rtol=1e-9)
        # Three targets have three times as many effects to choose from.
        ratio = np.divide(*(stats.t.isf((1 - one.level) / 2, len(X) - 3) for one in (found, alone)))
        np.testing.assert_allclose(found.low[:, [c]] - alone.effects, ratio * (alone.low - alone.effects), rtol=1e-9)
    groups = found.attach(model.groups_)
    assert groups[0].target_effects == dict(zip(names, found.effects[0].tolist(), strict=True))
    # The main target is that of the largest effect in standard deviations, not in units.
    assert groups[0].effect == pytest.approx(groups[0].target_effects["height"])
    assert abs(groups[0].target_effects["weight"]) > abs(groups[0].effect)
    assert groups[1].effect_interval == (found.low[1, 1], found.high[1, 1])
    assert groups[1].note is None


def test_confidence_and_evidence(several, validated):
    X, _ = several
    names, model = validated
    found = group_confidence(model, X, names, n_pairs=5, random_state=0)
    assert (found.q_value < 1e-4).all()
    assert (found.p_value < 1e-3).all()
    assert found.confidence.tolist() == [1.0, 1.0]
    again = group_confidence(model, X, names.to_numpy() * [1e3, 1.0, 1.0], n_pairs=5, random_state=0)
    np.testing.assert_allclose(again.q_value, found.q_value, rtol=1e-6)  # units do not matter


def test_saved_models(several, validated, tmp_path):
    X, _ = several
    names, model = validated
    model = group_effects(model, X, names).attach_to(clone(model).fit(X, names))
    coterie.save(model, tmp_path / "m.coterie")
    other = coterie.load(tmp_path / "m.coterie")
    assert other.target_names_.tolist() == model.target_names_.tolist()
    assert other.groups_[0].target_effects == model.groups_[0].target_effects
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(other.coef_, model.coef_)


class OneTarget(SquaredLoss):
    """A loss that does not declare that its targets may be several."""

    takes_several_targets = False

    @classmethod
    def of(cls, targets, weight, C, fit_intercept):
        return SquaredLoss(targets.values, weight, C, fit_intercept)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda Y: np.where(np.arange(360).reshape(120, 3) == 7, np.nan, Y), "Target 'target_1': y contains NaN.* sample 2"),
        (lambda Y: Y * [1, 0, 1], "Target 'target_1': y is constant"),
        (lambda Y: Y[:100], "inconsistent numbers of samples"),
        (lambda Y: [row[: 1 + i % 3] for i, row in enumerate(Y.tolist())], "entries are sequences of different lengths"),
        (lambda Y: Y.astype(str) + "a", "Target 'target_0': Targets must be numbers"),
        (lambda Y: pd.DataFrame(Y, columns=["a", "b", "b"]), "two columns named 'b'"),
        (lambda Y: Y[:, :, None], "dim"),
        (lambda Y: np.ma.masked_array(Y, mask=np.eye(120, 3)), "Target 'target_0': y contains NaN"),
    ],
)
def test_bad_targets(several, change, message):
    X, Y = several
    with pytest.raises(ValueError, match=message):
        GroupDiscoveryRegressor(2).fit(X, change(Y))


def test_other_bad_arguments(several):
    X, Y = several
    with pytest.raises(ValueError, match="offset has 2 columns, but there are 3 targets"):
        GroupDiscoveryRegressor(2).fit(X, Y, offset=Y[:, :2])
    with pytest.raises(ValueError, match="The offset explains y completely"):
        GroupDiscoveryRegressor(2).fit(X, Y, offset=Y)
    with pytest.raises(ValueError, match=r"The covariates \(covariate_0\) explain y completely"):
        GroupDiscoveryRegressor(2).fit(X, Y, covariates=Y[:, [1]])
    with pytest.raises(ValueError, match="y has 3 targets, but the loss has one"):
        GroupDiscoveryRegressor(2, loss=OneTarget).fit(X, Y)
    with pytest.raises(ValueError, match="Counts must be at least 0"):
        GroupDiscoveryRegressor(2, loss="poisson").fit(X, Y - 1e6)
    assert not Loss.takes_several_targets


def test_other_numbers_of_targets_than_in_the_fit(rng):
    X, Y = rng.standard_normal((60, 5)), rng.standard_normal((60, 2))
    several, one = GroupDiscoveryRegressor(2).fit(X, Y), GroupDiscoveryRegressor(2).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match=r"fitted with 2 target\(s\), but y has 1\. Pass the y of the fit\."):
        group_effects(several, X, Y[:, 0])
    with pytest.raises(ValueError, match=r"fitted with 1 target\(s\), but y has 2"):
        group_confidence(one, X, Y, n_pairs=2)
    with pytest.raises(ValueError, match=r"y has no columns\. Pass one value per sample"):
        GroupDiscoveryRegressor(2).fit(X, Y[:, :0])
    with pytest.raises(ValueError, match=r"has 2 columns\. Pass one column\. For several numeric targets, use Group"):
        GroupDiscoveryClassifier(2).fit(X, Y > 0)
