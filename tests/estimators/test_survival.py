"""Group discovery for survival times: contract, certificates, prediction, choice of settings, invalid targets."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import coterie
from coterie import GroupDiscoverySurvival, GroupDiscoverySurvivalCV
from coterie.inputs.survival import SURVIVAL
from coterie.metrics import concordance_index


class OneColumnSurvival(GroupDiscoverySurvival):
    """The estimator with numbers as targets, which are event times. scikit-learn's checks have no survival targets."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, one_column(y), sample_weight)

    def score(self, X, y=None, sample_weight=None):
        return super().score(X, one_column(y), sample_weight)


def one_column(y):
    values = None if y is None else np.asarray(y)
    if values is None or values.ndim != 1 or values.dtype.kind not in "ifuO":
        return y
    values = values.astype(float)
    return np.column_stack([values - values.min() + 2.0, np.ones(len(values))])


def inapplicable(model):
    found = {}
    if model.ties == "efron":  # ties of repeated samples are broken, which a weight does not do
        for kind in ("dense", "sparse"):
            found[f"check_sample_weight_equivalence_on_{kind}_data"] = "a weight is no repetition with Efron's rule"
    return found


@parametrize_with_checks(
    [OneColumnSurvival("auto"), OneColumnSurvival("auto", ties="efron", keep="groups", predict_with="groups")],
    expected_failed_checks=lambda model: inapplicable(model),
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def hazards(seed=0, n=150, p=30, noise=0.3):
    """Return features in correlated pairs, of which 3 and 8 (and their partners) matter, and survival targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, p // 2 :] = X[:, : p // 2] + noise * rng.standard_normal((n, p // 2))
    time, end = rng.exponential(np.exp(-1.2 * X[:, 3] + X[:, 8])), rng.exponential(2.0, n)
    return X, np.column_stack([np.minimum(time, end), time <= end])


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_planted_groups_are_found_with_a_certificate(ties, is_sparse):
    X, y = hazards()
    y[:, 0] = np.ceil(10 * y[:, 0])
    model = GroupDiscoverySurvival(2, n_features_per_round=1, ties=ties, standardize=True)
    model.fit(sparse.csc_array(X) if is_sparse else X, y)
    assert sorted(sorted(group.members.tolist()) for group in model.groups_) == [[3, 18], [8, 23]]
    assert model.dual_gap_ <= 1e-10
    assert all(entry.gap <= 1e-10 for entry in model.history_)
    assert model.score(X, y) > 0.7


def test_samples_censored_before_the_first_event_change_nothing():
    X, y = hazards(n=100)
    early = np.column_stack([np.full(30, y[:, 0].min() / 2), np.zeros(30)])
    others = np.random.default_rng(1).standard_normal((30, X.shape[1]))
    others[:, 5] += 3.0
    options = {"n_features_per_round": 1, "standardize": False, "C": 1.0, "correlation": None}
    expected = GroupDiscoverySurvival(8, **options).fit(X, y)
    found = GroupDiscoverySurvival(8, **options).fit(np.vstack([X, others]), np.vstack([y, early]))
    assert found.support_features_.tolist() == expected.support_features_.tolist()
    assert found.support_coef_ == pytest.approx(expected.support_coef_, rel=1e-8)
    assert found.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-8)
    assert not found.dual_coef_.reshape(-1)[100:].any()


def test_all_forms_of_targets_are_equivalent():
    X, y = hazards(n=60)
    time, event = y[:, 0], y[:, 1].astype(bool)
    structured = np.array(list(zip(event, time, strict=True)), dtype=[("status", "?"), ("days", "f8")])
    expected = GroupDiscoverySurvival(3).fit(X, y)
    for form in (
        y[:, ::-1],
        y.tolist(),
        structured,
        pd.DataFrame({"event": event.astype(int), "months": time}),
        pd.DataFrame({"months": time, "dead": event}),
        np.column_stack([y, np.zeros(len(y))]),
    ):
        model = GroupDiscoverySurvival(3).fit(X, form)
        assert np.array_equal(model.support_coef_, expected.support_coef_)
        assert model.score(X, form) == expected.score(X, y)


def test_survival_function_is_breslows(rng):
    X, y = hazards(n=80)
    model = GroupDiscoverySurvival(2).fit(X, y)
    risk = model.predict(X)
    times = np.unique(y[y[:, 1] == 1, 0])
    steps = [np.sum((y[:, 0] == t) & (y[:, 1] == 1)) / np.exp(risk[y[:, 0] >= t]).sum() for t in times]
    assert model.event_times_ == pytest.approx(times)
    assert model.cumulative_baseline_hazard_ == pytest.approx(np.cumsum(steps))
    expected = np.exp(-np.cumsum(steps)[None, :] * np.exp(risk[:5])[:, None])
    assert model.predict_survival_function(X[:5]) == pytest.approx(expected)
    at = model.predict_survival_function(X[:5], times=[0.0, times[3], times[-1] + 9])
    assert at == pytest.approx(np.column_stack([np.ones(5), expected[:, 3], expected[:, -1]]))
    with pytest.raises(ValueError, match="times must be a flat list"):
        model.predict_survival_function(X, times=[np.nan])


def delayed(n=200, seed=4):
    """Return features and targets of samples that come under observation at different times, as a data frame."""
    X, y = hazards(seed, n=3 * n)
    entry = np.random.default_rng(seed).uniform(0.0, 0.6, 3 * n)
    seen = np.flatnonzero(entry < y[:, 0])[:n]
    return X[seen], pd.DataFrame({"start": entry[seen], "stop": y[seen, 0], "event": y[seen, 1]})


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_entry_times(ties):
    X, y = delayed()
    model = GroupDiscoverySurvival(2, n_features_per_round=1, ties=ties).fit(X, y)
    assert sorted(sorted(group.members.tolist()) for group in model.groups_) == [[3, 18], [8, 23]]
    assert model.dual_gap_ <= 1e-10
    start, stop, event = (y[name].to_numpy() for name in y)
    risk, times = model.predict(X), np.sort(stop[event == 1])
    steps = [1.0 / np.exp(risk[(stop >= t) & (start < t)]).sum() for t in times]
    assert model.event_times_ == pytest.approx(times)
    assert model.cumulative_baseline_hazard_ == pytest.approx(np.cumsum(steps))
    structured = np.array(list(zip(event == 1, stop, start, strict=True)), dtype=[("e", "?"), ("t", "f8"), ("Entry", "f8")])
    again = GroupDiscoverySurvival(2, n_features_per_round=1, ties=ties).fit(X, structured)
    assert np.array_equal(again.support_coef_, model.support_coef_)
    pairs = [(i, j) for i in np.flatnonzero(event) for j in range(200) if start[j] < stop[i] < stop[j]]
    assert model.score(X, y) == pytest.approx(np.mean([risk[i] > risk[j] for i, j in pairs]))


def test_entry_times_are_used_in_every_fold():
    X, y = delayed()
    model = GroupDiscoverySurvivalCV(6, nested=True, random_state=0).fit(X, y)
    assert {3, 8} <= {feature for group in model.groups_ for feature in group.members}
    assert model.held_out_scores_["concordance_index"] > 0.7
    with pytest.raises(ValueError, match="scoring='concordance_index_ipcw' does not support entry times"):
        GroupDiscoverySurvivalCV(6, scoring="concordance_index_ipcw").fit(X, y)


def test_strata_have_their_own_baselines():
    X, y = hazards(n=200)
    stratum = np.where(np.arange(200) % 3 == 0, "b", "a")
    scaled = y.copy()
    scaled[stratum == "b", 0] *= 50.0  # another time scale: no effect within strata
    table = pd.DataFrame({"time": scaled[:, 0], "event": scaled[:, 1], "stratum": stratum})
    model = GroupDiscoverySurvival(2, n_features_per_round=1).fit(X, table)
    assert set(model.support_features_) == {3, 8} or model.score(X, table) > 0.7
    assert model.strata_.tolist() == ["a", "b"]
    assert model.cumulative_baseline_hazard_.shape == (2, len(model.event_times_))
    found = model.predict_survival_function(X[:4], times=[1.0], strata=stratum[:4])
    assert (found[stratum[:4] == "b"] > 0.9).any()
    within = [concordance_index(scaled[stratum == s], model.predict(X[stratum == s])) for s in ("a", "b")]
    assert min(within) <= model.score(X, table) <= max(within)
    for strata, text in (
        (None, r"fitted with the strata \['a', 'b'\]. Pass strata="),
        (["c"] * 4, "'c', which the model was not fitted with"),
        (["a"], "has the shape"),
    ):
        with pytest.raises(ValueError, match=text):
            model.predict_survival_function(X[:4], strata=strata)
    with pytest.raises(ValueError, match=r"fitted without strata. Omit them"):
        GroupDiscoverySurvival(2).fit(X, y).predict_survival_function(X[:4], strata=["a"] * 4)


def test_weights_are_repetitions():
    X, y = hazards(n=60)
    times = np.arange(60) % 3
    weighted = GroupDiscoverySurvival(3, C=0.5).fit(X, y, sample_weight=times)
    repeated = GroupDiscoverySurvival(3, C=0.5).fit(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))
    assert weighted.support_features_.tolist() == repeated.support_features_.tolist()
    assert weighted.support_coef_ == pytest.approx(repeated.support_coef_, abs=1e-7)
    assert weighted.cumulative_baseline_hazard_ == pytest.approx(repeated.cumulative_baseline_hazard_, rel=1e-6)


def test_covariates_and_offset():
    X, y = hazards(n=200)
    known = X[:, [8]]
    alone = GroupDiscoverySurvival(1, n_features_per_round=1)
    assert alone.fit(np.delete(X, [8, 23], axis=1), y, covariates=known).support_features_.tolist() == [3]
    assert alone.covariate_coef_[0, 0] == pytest.approx(-1.0, abs=0.35)
    assert alone.score(np.delete(X, [8, 23], axis=1), y, covariates=known) > 0.75
    shifted = GroupDiscoverySurvival(1, n_features_per_round=1).fit(X, y, offset=-X[:, 8])
    assert shifted.support_features_[0] in (3, 18)
    assert shifted.predict(X, offset=-X[:, 8]) == pytest.approx(shifted.predict(X, offset=np.zeros(200)) - X[:, 8])
    with pytest.raises(ValueError, match="offset"):
        shifted.predict(X)


def test_saved_models_predict_the_same(tmp_path):
    X, y = hazards(n=60)
    model = GroupDiscoverySurvivalCV(3, cv=3, random_state=0, ties="efron").fit(X, np.column_stack([y, np.arange(60) % 2]))
    coterie.save(model, tmp_path / "model")
    again = coterie.load(tmp_path / "model")
    assert np.array_equal(again.predict(X), model.predict(X))
    strata = np.zeros(60)
    assert np.array_equal(again.predict_survival_function(X, strata=strata), model.predict_survival_function(X, strata=strata))


def test_cross_validation_chooses_and_assesses():
    X, y = hazards(n=200)
    model = GroupDiscoverySurvivalCV(6, rule="one_se", nested=True, cv=4, random_state=0).fit(X, y)
    found = [set(group.members.tolist()) for group in model.groups_]
    assert {3, 18} in found
    assert {8, 23} in found
    assert model.scoring_ == "concordance_index"
    assert "mean_test_deviance" in model.cv_results_
    value, (low, high) = model.held_out_scores_["concordance_index"], model.held_out_intervals_["concordance_index"]
    assert low < value < high
    assert value > 0.7
    assert model.baseline_scores_["concordance_index"] == 0.5
    assert model.held_out_predictions_.shape == (200,)
    assert model.nested_scores_ == pytest.approx(np.full(4, value), abs=0.15)


def test_folds_keep_the_share_of_events():
    X, y = hazards(n=100)
    y[:, 1] = np.arange(100) % 10 == 0
    model = GroupDiscoverySurvivalCV(2, cv=5, random_state=0)
    for fold in model._folds(model._read(X, y)):
        assert y[fold.parts[0], 1].sum() == 2


@pytest.mark.parametrize("scoring", ["concordance_index_ipcw", lambda model, X, y: float(-np.abs(model.predict(X)).mean())])
def test_other_scores(scoring):
    X, y = hazards(n=100)
    model = GroupDiscoverySurvivalCV(3, scoring=scoring, cv=3, random_state=0, nested=True).fit(X, y)
    assert "mean_test_deviance" not in model.cv_results_
    assert set(model.held_out_scores_) == {"concordance_index", model.scoring_}


def test_deviance_of_folds_is_that_of_scaled_outputs():
    X, y = hazards(n=120)
    model = GroupDiscoverySurvivalCV(2, cv=3, random_state=0)
    data = model._read(X, y)
    deviance = model._held_out_deviance(data, model._held_out_scores(data))
    held_out, outputs = np.arange(0, 120, 2), (X[::2, 3] - X[::2, 8])[:, None]
    plain, scaled, contrary, constant = deviance([outputs, 7.0 * outputs + 2.0, -outputs, 0.0 * outputs], held_out)
    assert plain == pytest.approx(scaled, rel=1e-9)
    assert contrary == constant > plain
    slopes = np.linspace(0.0, 5.0, 2001)
    own = y[held_out]

    def slow(slope):
        hazard = np.exp(slope * outputs[:, 0])
        events = [k for k in range(len(own)) if own[k, 1]]
        return 2 * np.mean([np.log(hazard[own[:, 0] >= own[k, 0]].sum() / hazard[k]) for k in events])

    assert plain == pytest.approx(min(map(slow, slopes)), rel=1e-5)


def with_entry(y, entry):
    return pd.DataFrame({"time": y[:, 0], "event": y[:, 1], "entry": entry})


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (lambda y: None, "requires y to be passed, but the target y is None"),
        (lambda y: y[:, 0], r"must have a time and an event per sample, but has the shape \(60,\)"),
        (lambda y: y[:, :1], r"y has 1 column\(s\)"),
        (lambda y: np.hstack([y, y]), r"y has 4 column\(s\)"),
        (lambda y: y[:-1], "y has 59 samples, but X has 60"),
        (lambda y: y * [-1, 1], "The time -.* of sample 0 is negative. Times must be at least 0"),
        (lambda y: y * [1, 0], "y has no events: all 60 samples are censored"),
        (lambda y: y * [0, 1] + [5, 0], "has the same time for all samples"),
        (lambda y: np.column_stack([y[:, 0], 2.0 * y[:, 1]]), "Neither column contains 0 and 1 only"),
        (lambda y: np.column_stack([y[:, 1], y[:, 1]]), "Both columns contain 0 and 1 only"),
        (lambda y: np.where(np.arange(60)[:, None] == 7, np.nan, y), "The time of sample 7 is NaN"),
        (lambda y: pd.DataFrame({"event": y[:, 1], "time": np.where(np.arange(60) == 7, np.nan, y[:, 0])}), "sample 7 is NaN"),
        (lambda y: pd.DataFrame({"event": 2 * y[:, 1], "time": y[:, 0]}), "The event of sample .* is 2. Events must be 1"),
        (lambda y: pd.DataFrame({"event": y[:, 1] > 0, "time": ["soon"] * 60}), "values of time must be numbers"),
        (
            lambda y: pd.DataFrame({"event": y[:, 1], "time": y[:, 0], "stratum": ["a", None] * 30}),
            "stratum of sample 1 is mis",
        ),
        (lambda y: with_entry(y, 2.0 * y[:, 0]), "The entry 2 of sample 0 is not before its time 1"),
        (lambda y: with_entry(y, 0.5 * y[:, 0] - 1.0), "The entry -0.5 of sample 0 is negative"),
        (lambda y: with_entry(y, np.full(60, np.nan)), "The entry of sample 0 is NaN"),
        (
            lambda y: with_entry(np.column_stack([np.arange(60) + 1.0, y[:, 1]]), np.arange(60)),
            "no event at which two samples",
        ),
        (lambda y: [[1.0, 1], [2.0]], "y must have two or three columns of equal length"),
    ],
)
def test_invalid_targets(y, text):
    X, valid = hazards(n=60)
    valid[0] = 1.0
    with pytest.raises(ValueError, match=text):
        GroupDiscoverySurvival(2).fit(X, y(valid))


def test_invalid_settings_and_folds():
    X, y = hazards(n=60)
    for model, text in (
        (GroupDiscoverySurvival(2, ties="exact"), "ties='exact' must be"),
        (GroupDiscoverySurvivalCV(2, scoring="r2"), "scoring='r2' must be"),
    ):
        with pytest.raises(ValueError, match=text):
            model.fit(X, y)
    y[:, 1] = np.arange(60) < 6
    pairs = [(np.arange(6, 60), np.arange(6)), (np.arange(6), np.arange(6, 60))]
    with pytest.raises(ValueError, match="The training part of fold 1 has no events"):
        GroupDiscoverySurvivalCV(2, cv=pairs).fit(X, y)
    with pytest.raises(ValueError, match="Fold 1 of cv holds out no event with a later sample"):
        GroupDiscoverySurvivalCV(2, cv=pairs[1:]).fit(X, y)


def test_records_of_targets_are_accepted_again():
    X, y = hazards(n=60)
    model = GroupDiscoverySurvival(2)
    targets = model._read(X, np.column_stack([y, np.arange(60) % 2])).targets
    assert targets.dtype == SURVIVAL
    assert np.array_equal(clone(model)._read(X, targets).targets, targets)
    targets = model._read(*delayed()).targets
    assert np.array_equal(clone(model)._read(delayed()[0], targets).targets, targets)
