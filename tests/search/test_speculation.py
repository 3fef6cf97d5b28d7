"""Speculative rounds: the same results as the plain loop, bit for bit, on data where they often fail."""

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie import GroupDiscoveryClassifier, GroupDiscoveryOneClass, GroupDiscoveryRegressor
from coterie.data import FeatureView, as_source
from coterie.search import search, speculation
from coterie.search.speculation import RelativeScores, Speculation, speculates

PASSES = ("passes", "n_passes_", "n_passes")


def assert_same(first, second, where="model"):
    """Compare values bit for bit, except for the number of passes."""
    assert type(first) is type(second), where
    if dataclasses.is_dataclass(first):
        for field in dataclasses.fields(first):
            if field.name not in PASSES:
                assert_same(getattr(first, field.name), getattr(second, field.name), f"{where}.{field.name}")
    elif isinstance(first, list | tuple):
        assert len(first) == len(second), where
        for number, pair in enumerate(zip(first, second, strict=True)):
            assert_same(*pair, f"{where}[{number}]")
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype, where
        assert first.shape == second.shape, where
        if first.dtype == object:
            assert first.tolist() == second.tolist(), where
        else:
            assert first.tobytes() == second.tobytes(), where
    elif isinstance(first, int | float | str):
        assert np.array(first).tobytes() == np.array(second).tobytes(), where


def assert_same_models(first, second):
    names = {name for name in vars(first) if name.endswith("_")}
    assert names == {name for name in vars(second) if name.endswith("_")}
    for name in sorted(names.difference(PASSES)):
        if name == "groups_":
            for ours, theirs in zip(first.groups_, second.groups_, strict=True):
                assert_same(ours.members, theirs.members, "members")
                assert_same(ours.correlation, theirs.correlation, "correlation")
        else:
            assert_same(getattr(first, name), getattr(second, name), name)


def fit(patch, make, X, y, size=None, ratio=0.0, **data):
    """Fit a model with speculation on working sets of a given size; with the plain loop if it is None."""
    runs = []

    def run(loop):
        if size is None or not speculates(loop):
            loop.run()
            return
        runs.append(Speculation(loop))
        runs[-1].run()

    with patch.context() as context, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context.setattr(search, "run_loop", run)
        context.setattr(speculation, "_MIN_VALUES", 0)
        context.setattr(speculation, "_MIN_SHARE", 0)
        context.setattr(speculation, "_MIN_RATIO", ratio)
        context.setattr(speculation, "_RAISE", 1.0)
        context.setattr(speculation, "_working_size", lambda loop: size)
        model = make().fit(X, y, **data)
    return (model, runs[0]) if runs else (model, None)


def make_data(seed, n_samples, n_features, kind, order):
    """Return features with groups, duplicates, ties and constants, and a signal."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_samples, max(n_features // 4, 1)))
    X = factors[:, rng.integers(factors.shape[1], size=n_features)] + rng.choice([0.0, 0.3, 1.0]) * rng.standard_normal(
        (n_samples, n_features)
    )
    signal = X[:, :5] @ rng.standard_normal(5) + rng.choice([0.1, 1.0]) * rng.standard_normal(n_samples)
    if kind == "ties":
        X = np.round(X)
    X[:, rng.integers(10, n_features, size=3)] = 1.0
    copies = rng.integers(10, n_features, size=(2, n_features // 8))
    X[:, copies[0]] = -X[:, copies[1]]
    if kind == "far":
        X = X * 10.0 ** rng.integers(-3, 4, size=n_features) + rng.choice([0.0, 1e4], size=n_features)
    if kind == "int8":
        X = np.clip(np.round(10 * X), -100, 100).astype(np.int8)
    if kind == "float32":
        X = X.astype(np.float32)
    return np.asarray(X, order=order), signal


KINDS = ["normal", "ties", "far", "int8", "float32"]
OPTIONS = st.fixed_dictionaries(
    {
        "n_features_to_select": st.sampled_from([6, 12, "auto"]),
        "n_features_per_round": st.sampled_from([1, 1, 2, "auto"]),
        "standardize": st.booleans(),
        "affiliates": st.sampled_from(["complete", "ranked"]),
        "correlation": st.sampled_from(["pearson", "pearson", None]),
        "threshold": st.sampled_from([0.4, 0.7, 0.95]),
        "max_rounds": st.sampled_from([None, None, 7]),
        "fixed_features": st.sampled_from([None, None, [3, 1]]),
        "C": st.sampled_from([0.1, 1.0, 10.0]),
    }
)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(30, 90), (57, 200), (1100, 60)]),
    kind=st.sampled_from(KINDS),
    order=st.sampled_from("FC"),
    task=st.sampled_from(["two", "three", "numbers", "one class"]),
    size=st.sampled_from([3, 10, 25, 60]),
    options=OPTIONS,
    weighted=st.booleans(),
    adjusted=st.booleans(),
)
def test_speculation_does_not_change_a_result(seed, shape, kind, order, task, size, options, weighted, adjusted):
    X, signal = make_data(seed, *shape, kind, order)
    rng = np.random.default_rng(seed + 1)
    data = {}
    if weighted:
        data["sample_weight"] = rng.choice([0.0, 0.5, 1.0, 3.0], p=[0.1, 0.3, 0.3, 0.3], size=len(X))
    if adjusted and task != "one class":
        data["covariates"] = rng.standard_normal((len(X), 2))
    kinds = {"two": GroupDiscoveryClassifier, "three": GroupDiscoveryClassifier, "numbers": GroupDiscoveryRegressor}
    y = signal if task == "numbers" else np.digitize(signal, [0.0] if task == "two" else [-1.0, 1.0])
    if task == "one class":
        options = {name: value for name, value in options.items() if name not in ("C", "n_features_to_select")}

        def make():
            return GroupDiscoveryOneClass(6, **options)

        y = None
    else:

        def make():
            return kinds[task](n_jobs=1, **options)

    patch = pytest.MonkeyPatch()
    plain, _ = fit(patch, make, X, y, **data)
    model, _ = fit(patch, make, X, y, size, **data)
    assert_same_models(model, plain)


def wide_data(n_signal=12):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1000))
    return X, X[:, :n_signal] @ np.linspace(1.0, 2.0, n_signal) + 0.5 * rng.standard_normal(200)


def regressor():
    return GroupDiscoveryRegressor(12, n_features_per_round=1, n_jobs=1)


def test_verified_rounds_save_passes(monkeypatch):
    X, y = wide_data()
    plain, _ = fit(monkeypatch, regressor, X, y)
    model, run = fit(monkeypatch, regressor, X, y, 100)
    assert_same_models(model, plain)
    assert run.n_verified > 5
    assert run.n_verifications < run.n_verified
    assert model.n_passes_ < plain.n_passes_ - 2
    assert all(entry.passes > 0 for entry in model.history_)
    before = sum(entry.passes for entry in model.history_)
    assert model.n_passes_ - before == pytest.approx(plain.n_passes_ - sum(entry.passes for entry in plain.history_))


def test_failed_rounds_are_discarded_and_without_verification_the_result_differs(monkeypatch):
    X, y = wide_data(n_signal=3)
    plain, _ = fit(monkeypatch, regressor, X, y)
    model, run = fit(monkeypatch, regressor, X, y, 40)
    assert run.n_discarded > 0
    assert_same_models(model, plain)
    monkeypatch.setattr(speculation, "_is_verified", lambda upper, working, floor: True)
    wrong, _ = fit(monkeypatch, regressor, X, y, 40)
    assert wrong.support_features_.tolist() != plain.support_features_.tolist()


@pytest.mark.parametrize("order", ["F", "C"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("centred", [True, False])
def test_bounds_in_single_precision_hold_and_are_close(order, kind, centred):
    X, signal = make_data(3, 2500, 37, kind, order)
    rng = np.random.default_rng(0)
    weight = rng.choice([0.0, 1.0, 2.0], size=len(X))
    view = FeatureView.of(as_source(X), weight, standardize=kind != "far", centred=centred)
    residuals = [np.column_stack([weight * signal, weight * rng.standard_normal(len(X))]) for _ in range(3)]
    if centred:
        residuals = [residual - weight[:, None] * residual.sum(axis=0) / weight.sum() for residual in residuals]
    scores = RelativeScores(view, residuals, 0.0)
    assert scores.n_multiplied == 37
    for position, residual in enumerate(residuals):
        upper, exact = scores.upper(position), view.scores(residual)
        exact[view.moments.norm == 0.0] = 0.0
        scale = view.score_bounds.values * view.norm_of(residual)
        assert (upper >= exact).all()
        assert (upper <= exact + 1.01 * 2 * speculation.ERROR * scale).all()


def test_features_of_small_norm_are_bounded_by_it():
    X, signal = make_data(3, 50, 40, "far", "F")
    view = FeatureView.of(as_source(X))
    residual = (signal - signal.mean())[:, None]
    lowest = float(np.median(view.score_bounds.values))
    scores = RelativeScores(view, [residual], lowest)
    rare = view.score_bounds.values < lowest
    assert scores.n_multiplied == np.count_nonzero(~rare)
    limit = view.score_bounds.values[rare] * view.norm_of(residual)
    assert (scores.upper(0)[rare] >= limit).all()


def test_a_score_that_is_not_finite_is_not_verified():
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((20, 8)))
    X[3, 5] = 1e60
    weight = np.ones(20)
    weight[3] = 0.0
    view = FeatureView.of(as_source(X), weight)
    residual = weight[:, None] * np.random.default_rng(1).standard_normal((20, 1))
    upper = RelativeScores(view, [residual], 0.0).upper(0)
    assert np.isnan(upper[5])
    working = speculation.WorkingSet(view, speculation.CandidateMask(view.moments), upper.copy(), 1, 1.0)
    assert working.features.tolist() == [5]
    other = speculation.WorkingSet(view, speculation.CandidateMask(view.moments), np.arange(8.0), 1, 1.0)
    assert not speculation._is_verified(upper, other, np.inf)


def test_callbacks_see_verified_rounds_only_and_can_stop(monkeypatch):
    X, y = wide_data()
    plain, _ = fit(monkeypatch, regressor, X, y)
    seen = []

    def run(loop):
        after = loop.on_round

        def on_round(entry):
            assert loop.history[-1] is entry
            assert len(loop.oracle.supports) == entry.n_support
            seen.append(entry)
            return after(entry) or len(seen) == 7

        loop.on_round = on_round
        Speculation(loop).run()
        assert loop.stopped

    monkeypatch.setattr(search, "run_loop", run)
    monkeypatch.setattr(speculation, "_MIN_RATIO", 0.0)
    monkeypatch.setattr(speculation, "_working_size", lambda loop: 30)
    with pytest.warns(match="Only 7 of 12 support features"):
        model = regressor().fit(X, y)
    assert_same(seen, plain.history_[:7])
    assert_same(model.history_, plain.history_[:7])
    stopped, _ = fit(monkeypatch, lambda: GroupDiscoveryRegressor(7, n_features_per_round=1, n_jobs=1), X, y)
    assert_same(model.support_coef_, stopped.support_coef_)
    assert_same(model.scores_, stopped.scores_)


def test_an_error_in_a_discarded_round_is_not_raised(monkeypatch):
    X, y = wide_data()
    plain, _ = fit(monkeypatch, regressor, X, y)
    step, calls = speculation.CuttingPlane.step, []

    def failing(loop, scores=None, **options):
        step(loop, scores, **options)
        calls.append(loop.publishes)
        if not loop.publishes and calls.count(False) == 3:
            raise ValueError("wrong trajectory")

    monkeypatch.setattr(speculation.CuttingPlane, "step", failing)
    model, _ = fit(monkeypatch, regressor, X, y, 300)
    assert calls.count(False) > 3
    assert_same_models(model, plain)


@pytest.mark.parametrize(
    "options",
    [
        {"reuse_features": True},
        {"representative": "medoid"},
        {"cv": 3},
        {"n_features_to_select": 2, "n_features_per_round": 1},
    ],
)
def test_rounds_that_depend_on_more_than_scores_are_not_speculative(monkeypatch, options):
    X, y = wide_data()
    found = []
    monkeypatch.setattr(speculation, "_MIN_VALUES", 0)
    monkeypatch.setattr(speculation, "_MIN_SHARE", 0)
    monkeypatch.setattr(search, "run_loop", lambda loop: (found.append(speculates(loop)), loop.run()))
    GroupDiscoveryRegressor(**{"n_features_to_select": 4, **options}).fit(X, y)
    GroupDiscoveryRegressor(4, n_features_per_round=1).fit(X, y)
    assert found == [False, True]


@pytest.mark.parametrize(("highest", "expected"), [(1e5, True), (1e7, False), (1e13, False)])
def test_extreme_weights_are_not_speculative(monkeypatch, highest, expected):
    X, y = wide_data()
    found = []
    monkeypatch.setattr(speculation, "_MIN_VALUES", 0)
    monkeypatch.setattr(speculation, "_MIN_SHARE", 0)
    monkeypatch.setattr(search, "run_loop", lambda loop: (found.append(speculates(loop)), loop.run()))
    weight = np.ones(len(X))
    weight[0] = highest
    GroupDiscoveryRegressor(4, n_features_per_round=1).fit(X, y, sample_weight=weight)
    assert found == [expected]


def test_all_features_are_scored_if_a_bounded_working_set_does_not_suffice():
    X = np.linalg.qr(np.random.default_rng(0).standard_normal((40, 8)))[0]
    view = FeatureView.of(as_source(np.asfortranarray(X)), centred=False)
    exact = np.array([10.0, 9.0, 8.0, 5.0, 3.0, 2.0, 1.0, 0.5])
    residual = (X @ exact)[:, None]
    candidates = speculation.CandidateMask(view.moments)
    upper = exact.copy()
    upper[3] = 100.0  # a loose bound, as that of a feature which was not multiplied
    working = speculation.WorkingSet(view, candidates, upper, 3, 1.0)
    assert working.features.tolist() == [0, 1, 3]
    assert working.outside == pytest.approx(8.0)
    query = speculation.TopQuery(view, residual, candidates, 3)
    top = speculation.WorkingTop(query, working, is_bounded=True)
    assert top.kth(np.inf, 2) == pytest.approx(9.0)
    assert not top.is_extended
    assert top.kth(np.inf, 3) == pytest.approx(8.0)
    assert top.is_extended
    with pytest.raises(speculation._TooFewError):
        speculation.WorkingTop(query, working, is_bounded=False).kth(np.inf, 4)
