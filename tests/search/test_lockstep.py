"""Searches in lockstep find the same features as single searches."""

import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from coterie import GroupDiscoveryClassifier, GroupDiscoveryOneClass, GroupDiscoveryRegressor
from coterie._numba import one_blas_thread
from coterie.data import as_source
from coterie.data.top import CandidateMask, SharedTop, TopQuery
from coterie.estimators.base import input_of
from coterie.interruption import stopping_gracefully
from coterie.search import lockstep
from coterie.search.lockstep import batches, run_searches, run_together
from coterie.search.scores import LazyScores, SharedPass
from coterie.search.search import Search
from tests.conftest import random_sparse


def make_data(kind, seed=0, n_samples=90, n_features=150):
    """Return correlated features of different scales and a target that depends on six of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, 100:] = X[:, :50] + 0.6 * X[:, 100:]
    target = X[:, :6] @ [3, -2, 2, 1.5, -1, 1] + rng.standard_normal(n_samples)
    X *= rng.uniform(0.5, 3.0, n_features)
    if kind == "sparse":
        X = sparse.csc_array(np.where(np.abs(X) > np.quantile(np.abs(X), 0.8), X, 0.0))
    elif kind == "int8":
        X = np.clip(np.round(5 * X), -127, 127).astype(np.int8)
    elif kind == "F":
        X = np.asfortranarray(X + 100.0)
    elif kind == "float32":
        X = X.astype(np.float32)
    return X, target


def halves(rng, n_samples, n_pairs=3):
    for _ in range(n_pairs):
        order = rng.permutation(n_samples)
        for half in (order[: n_samples // 2], order[n_samples // 2 :]):
            weight = np.zeros(n_samples)
            weight[half] = 1.0
            yield weight


def search(estimator, data, weight, n_features, records_members=False):
    return Search(replace(data, weight=weight), estimator._settings(), n_features, records_members=records_members)


ESTIMATORS = [
    GroupDiscoveryClassifier(13, threshold=0.6),
    GroupDiscoveryClassifier(9, n_features_per_round=4, standardize=True, class_weight="balanced"),
    GroupDiscoveryClassifier(8, fit_intercept=False, correlation=None),
    GroupDiscoveryClassifier(6, correlation="su", threshold=0.3),
    GroupDiscoveryClassifier(7, fixed_features=[3, 120], representative="medoid"),
    GroupDiscoveryClassifier("auto", C=0.1),
    GroupDiscoveryClassifier(7, cv=3, random_state=0),
    GroupDiscoveryRegressor(13),
    GroupDiscoveryRegressor(8, standardize=True, affiliates="ranked"),
    GroupDiscoveryOneClass(8, n_features_per_round=2),
    GroupDiscoveryClassifier("auto", n_features_per_round=3, reuse_features=True, affiliates="ranked", max_rounds=5),
    GroupDiscoveryClassifier(6, n_features_per_round=3, reuse_features=True, cv=2, random_state=0),
]


def _combinations():
    """All estimators with two layouts; the other layouts and types with one estimator of each task, and with all if slow."""
    for number, estimator in enumerate(ESTIMATORS):
        for kind in ("C", "F", "float32", "int8", "sparse"):
            marks = () if kind in ("C", "sparse") or number in (0, 7, 9) else pytest.mark.slow
            yield pytest.param(estimator, kind, marks=marks, id=f"{estimator!r}-{kind}")


@pytest.mark.parametrize(("estimator", "kind"), list(_combinations()))
def test_equal_to_single_paths(estimator, kind):
    X, target = make_data(kind)
    y = target if isinstance(estimator, GroupDiscoveryRegressor) else (target > 0).astype(int)
    rng = np.random.default_rng(1)
    if isinstance(estimator, GroupDiscoveryOneClass):
        data = input_of(estimator, X)
        samples = [data]
    else:
        data = input_of(estimator, X, y)
        samples = [data, replace(data, targets=rng.permutation(data.targets))]
    own = estimator._n_features_wanted(X.shape[1])
    paths = [
        search(clone(estimator).set_params(C=C), data, weight, own)
        for data in samples
        for weight in [None, *halves(rng, X.shape[0], 1)]
        for C in (0.01, 0.3)
    ]
    together, passes = run_together(paths, n_threads=2)
    assert passes > 0
    for path, loop in zip(paths, together, strict=True):
        alone = path.loop()
        with one_blas_thread():
            alone.run()
        np.testing.assert_array_equal(loop.oracle.supports, alone.oracle.supports)
        np.testing.assert_allclose(loop.solution.coef, alone.solution.coef, rtol=1e-8, atol=1e-10)
        assert loop.solution.objective == pytest.approx(alone.solution.objective, rel=1e-9)
        if path.n_features is None or path.settings.reuse_features:  # Otherwise bounds are not computed.
            assert loop.converged_at == alone.converged_at
        assert loop.exhausted == alone.exhausted


def test_three_classes_and_threads():
    X, target = make_data("C")
    estimator = GroupDiscoveryClassifier(10)
    data = input_of(estimator, X, np.digitize(target, [-1.5, 1.5]))
    paths = [search(estimator, data, weight, 10) for weight in halves(np.random.default_rng(0), len(target))]
    one, two = (run_together(paths, n_threads=n)[0] for n in (1, 2))
    for path, a, b in zip(paths, one, two, strict=True):
        alone = path.loop()
        with one_blas_thread():
            alone.run()
        np.testing.assert_array_equal(a.oracle.supports, alone.oracle.supports)
        np.testing.assert_array_equal(a.solution.coef, b.solution.coef)


def outcome(positions, loops):
    """Return the full state of finished loops as bytes."""
    found = []
    for position, loop in zip(positions, loops, strict=True):
        rounds = [{name: np.asarray(value).tobytes() for name, value in vars(entry).items()} for entry in loop.history]
        members = None if loop.encountered is None else loop.encountered.membership(loop).feature.tobytes()
        groups = loop.oracle.collect().feature.tobytes()
        found.append((position, rounds, loop.solution.residual.tobytes(), groups, members))
    return found


@pytest.mark.parametrize("kind", ["C", "sparse"])
@pytest.mark.parametrize(
    "estimator",
    [
        GroupDiscoveryClassifier(8),
        GroupDiscoveryClassifier(6, correlation="su", threshold=0.3),
        GroupDiscoveryRegressor(8, affiliates="ranked"),
    ],
    ids=repr,
)
def test_results_are_bit_identical_with_threads(estimator, kind):
    X, target = make_data(kind)
    data = input_of(estimator, X, target if isinstance(estimator, GroupDiscoveryRegressor) else target > 0)
    paths = [search(estimator, data, weight, 8, True) for weight in halves(np.random.default_rng(0), len(target), 4)]
    expected = run_searches(paths, outcome, n_threads=1)
    assert [position for position, *_ in expected] == list(range(8))
    assert run_searches(paths, outcome, n_threads=3) == expected


def test_results_are_bit_identical_with_processes(monkeypatch):
    """Inside joblib.parallel_config with a process backend, the searches are divided among processes."""
    monkeypatch.setattr(lockstep, "_MIN_VALUES", 0)
    X, target = make_data("C")
    estimator = GroupDiscoveryClassifier(6)
    data = input_of(estimator, X, target > 0)
    paths = [search(estimator, data, weight, 6) for weight in halves(np.random.default_rng(0), len(target), 3)]
    expected = run_searches(paths, process_and_supports, n_threads=1)
    assert {process for process, _ in expected} == {os.getpid()}
    with joblib.parallel_config("loky", n_jobs=2):
        shared = run_searches(paths, process_and_supports, n_threads=1)
    with joblib.parallel_config("threading", n_jobs=2):
        here = run_searches(paths, process_and_supports, n_threads=1)
    joblib.externals.loky.get_reusable_executor().shutdown(wait=True)
    assert os.getpid() not in {process for process, _ in shared}
    assert {process for process, _ in here} == {os.getpid()}
    for one, other, third in zip(expected, shared, here, strict=True):
        assert one[1] == other[1] == third[1]


def process_and_supports(positions, loops):
    return [(os.getpid(), (loop.oracle.supports.tolist(), loop.solution.residual.tobytes())) for loop in loops]


def test_small_problems_use_no_processes():
    X, target = make_data("C")
    estimator = GroupDiscoveryClassifier(3)
    data = input_of(estimator, X, target > 0)
    paths = [search(estimator, data, weight, 3) for weight in halves(np.random.default_rng(0), len(target), 2)]
    with joblib.parallel_config("loky", n_jobs=2):
        assert {process for process, _ in run_searches(paths, process_and_supports, n_threads=1)} == {os.getpid()}


def test_signals_stop_all_paths():
    """A search ends after the round in which a signal arrives, the others after at most one further round."""
    X, target = make_data("C")
    estimator = GroupDiscoveryRegressor(40)
    data = input_of(estimator, X, target)
    paths = [search(estimator, data, weight, 40) for weight in halves(np.random.default_rng(0), len(target), 4)]

    def on_round(position, loop):
        if position == 0 and len(loop.history) == 2:
            signal.raise_signal(signal.SIGTERM)
        return False

    with stopping_gracefully(lambda _: None):
        loops, _ = run_together(paths, n_threads=1, on_round=on_round)
    assert all(loop.stopped for loop in loops)
    assert len(loops[0].history) == 2
    assert {len(loop.history) for loop in loops[1:]} <= {1, 2}


def test_same_result_for_any_order_of_columns():
    X, target = make_data("C")
    order = np.random.default_rng(3).permutation(X.shape[1])
    weights = list(halves(np.random.default_rng(0), len(target)))
    chosen = []
    for columns in (np.arange(X.shape[1]), order):
        estimator = GroupDiscoveryRegressor(9)
        data = input_of(estimator, np.ascontiguousarray(X[:, columns]), target)
        loops, _ = run_together([search(estimator, data, weight, 9) for weight in weights], n_threads=1)
        chosen.append([columns[loop.oracle.supports] for loop in loops])
    np.testing.assert_array_equal(*chosen)


def test_on_round_can_stop_a_search():
    X, target = make_data("C")
    estimator = GroupDiscoveryRegressor(9)
    data = input_of(estimator, X, target)
    paths = [search(estimator, data, None, 9)] * 2
    loops, _ = run_together(paths, n_threads=1, on_round=lambda position, loop: position == 1 and len(loop.history) == 3)
    assert [len(loop.oracle.supports) for loop in loops] == [9, 3]
    assert [loop.stopped for loop in loops] == [False, True]


@pytest.mark.parametrize("kind", ["C", "sparse"])
def test_features_beyond_those_requested(kind):
    """Features beyond those requested from the shared pass are found by another pass."""
    X, target = make_data(kind)
    estimator = GroupDiscoveryClassifier(9)
    view = search(estimator, input_of(estimator, X, target > 0), None, 9).loop().oracle.view
    residual = np.random.default_rng(0).standard_normal((len(target), 1))
    residual -= residual.mean()
    candidates = CandidateMask.where(view.moments, np.random.default_rng(1).random(view.n_features) < 0.7)
    expected = list(LazyScores(view, residual).descend(candidates, 10))
    for size in (1, 5, 10, 400):
        for hint in (np.empty(0, dtype=np.int64), np.arange(100)):
            (top,) = SharedPass([view]).best([TopQuery(view, residual, candidates, size, hint)])
            assert candidates[top.hint].all()
            for given, wanted in zip(top.descend(candidates, 10), expected, strict=True):
                np.testing.assert_array_equal(given[0], wanted[0])
                np.testing.assert_array_equal(given[1], wanted[1])


@pytest.mark.parametrize("case", ["scales", "ties", "huge without weight", "tiny"])
def test_single_precision_does_not_change_results(case, rng):
    """Products in single precision only preselect features; none is missed, for any scales and ties."""
    X = rng.standard_normal((80, 300)) + 100.0 * rng.random(300)
    X *= 10.0 ** rng.uniform(-4, 4, 300) if case == "scales" else 1e-25 if case == "tiny" else 1.0
    if case == "ties":
        X[:, 150:] = X[:, :150] * (1.0 + 1e-9 * rng.standard_normal(150))
    weight = np.where(np.arange(80) < 70, 1.0, 0.0)
    if case == "huge without weight":
        X[75] = 1e300
    estimator = GroupDiscoveryClassifier(9, standardize=case != "scales")
    view = search(estimator, input_of(estimator, X, np.arange(80) % 2), weight, 9).loop().oracle.view
    residual = rng.standard_normal((80, 1)) * weight[:, None]
    candidates = CandidateMask(view.moments)
    expected = list(LazyScores(view, residual).descend(candidates, 10))
    assert SharedTop([view])._single == (case != "tiny")
    (top,) = SharedPass([view]).best([TopQuery(view, residual, candidates, 40)])
    for given, wanted in zip(top.descend(candidates, 10), expected, strict=True):
        np.testing.assert_array_equal(given[0], wanted[0])
        np.testing.assert_array_equal(given[1], wanted[1])


def test_small_features_of_a_long_tail_are_not_multiplied():
    rng = np.random.default_rng(0)
    X = random_sparse(rng, (200, 5000), density=0.05, format="csc")
    X = X.multiply(1.0 / (1 + np.arange(5000))).tocsc()
    estimator = GroupDiscoveryRegressor(20)
    data = input_of(estimator, X, X[:, :10].sum(axis=1))
    _, passes = run_together([search(estimator, data, weight, 20) for weight in halves(rng, 200)], n_threads=1)
    assert passes < 0.5 * 19  # There are 19 rounds.


@pytest.mark.parametrize("kind", ["C", "F", "int8", "float32", "sparse"])
def test_moments(kind):
    X, _ = make_data(kind)
    X = X.tolil() if kind == "sparse" else X
    X[:45, 7] = 3  # constant in one half-sample
    X[:, 9] = 2
    source = as_source(X)
    rng = np.random.default_rng(0)
    half = np.repeat([1.0, 0.0], 45)
    weights = [half, 1.0 - half, rng.random(90), *halves(rng, 90)]
    for weight, moments in zip(weights, source.many_moments(weights, n_threads=2), strict=True):
        alone = source.moments(weight)
        np.testing.assert_allclose(moments.mean, alone.mean, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(moments.norm, alone.norm, rtol=1e-11)
        np.testing.assert_array_equal(moments.norm == 0.0, alone.norm == 0.0)
        assert moments.total_weight == pytest.approx(alone.total_weight, rel=1e-14)
        if kind == "sparse":
            np.testing.assert_array_equal([moments.mean, moments.norm], [alone.mean, alone.norm])


@pytest.mark.parametrize(("n_samples", "n_features"), [(90, 80), (77, 333)])
def test_moments_do_not_depend_on_the_number_of_weights(n_samples, n_features):
    rng = np.random.default_rng(0)
    source = as_source(rng.standard_normal((n_samples, n_features)))
    weights = [half for _ in range(6) for half in halves(rng, n_samples)]
    together = source.many_moments(weights)
    for chosen in (weights[:2], weights[3:], weights[::-1]):
        expected = {id(weight): moments for weight, moments in zip(weights, together, strict=True)}
        for weight, moments in zip(chosen, source.many_moments(chosen), strict=True):
            assert moments.mean.tobytes() == expected[id(weight)].mean.tobytes()
            assert moments.norm.tobytes() == expected[id(weight)].norm.tobytes()


def test_moments_of_features_far_from_zero():
    rng = np.random.default_rng(0)
    X = 1e9 + rng.standard_normal((60, 40))
    X[:30, 3] += 1e6
    weights = [*halves(rng, 60), np.repeat([1.0, 0.0], 30)]
    for weight, moments in zip(weights, as_source(X).many_moments(weights), strict=True):
        np.testing.assert_allclose(moments.norm, as_source(X).moments(weight).norm, rtol=1e-8)


def test_batches_fit_into_memory(monkeypatch):
    monkeypatch.setattr(lockstep, "_MAX_BYTES", 24 * 100 * 4)
    assert [len(part) for part in batches(list(range(10)), 100)] == [4, 4, 2]
    assert [len(part) for part in batches(list(range(2)), 10**9)] == [1, 1]
    monkeypatch.setattr(lockstep, "_MAX_BYTES", 24 * 100 + 8 * 50)
    assert [len(part) for part in batches(list(range(3)), 100, 50)] == [1, 1, 1]
    monkeypatch.setattr(lockstep, "_MAX_BYTES", 2 * (24 * 100 + 8 * 50))
    assert list(batches([5, 6, 7], 100, 50)) == [[5, 6], [7]]


class Backend:
    """Backend of joblib with a given number of workers."""

    def __init__(self, n_workers, shares_memory=False):
        self.n_workers, self.supports_sharedmem = n_workers, shares_memory

    def effective_n_jobs(self, n_jobs):
        return self.n_workers


@pytest.mark.parametrize(
    ("backend", "n_jobs", "n_searches", "min_values", "expected"),
    [
        (Backend(4), None, 10, 0, 1),
        (Backend(4), 1, 10, 0, 1),
        (Backend(4, shares_memory=True), 4, 10, 0, 1),
        (Backend(4), 4, 10, 0, 4),
        (Backend(4), -1, 7, 0, 3),  # Each process runs at least two searches.
        (Backend(4), 4, 1, 0, 0),
        (Backend(4), 4, 10, 10 * 90 * 150, 4),
        (Backend(4), 4, 10, 10 * 90 * 150 + 1, 1),
    ],
)
def test_number_of_processes(monkeypatch, backend, n_jobs, n_searches, min_values, expected):
    X, target = make_data("C")
    estimator = GroupDiscoveryRegressor(3)
    path = search(estimator, input_of(estimator, X, target), None, 3)
    monkeypatch.setattr(lockstep, "get_active_backend", lambda: (backend, n_jobs))
    monkeypatch.setattr(lockstep, "_MIN_VALUES", min_values)
    found = lockstep._process_count([path] * n_searches)
    assert (found, type(found)) == (expected, int)


def test_other_sources_use_one_process(monkeypatch):
    """The features of a cluster, for instance, cannot be sent to another process."""
    X, target = make_data("C")
    estimator = GroupDiscoveryRegressor(3)
    data = replace(input_of(estimator, X, target), source=SimpleNamespace(shape=X.shape))
    monkeypatch.setattr(lockstep, "get_active_backend", lambda: (Backend(4), 4))
    monkeypatch.setattr(lockstep, "_MIN_VALUES", 0)
    assert lockstep._process_count([search(estimator, data, None, 3)] * 10) == 1


def test_searches_divided_among_processes_keep_their_order(monkeypatch):
    """Without processes: the shares run one after another. They do not contain what only the estimator needs."""
    X, target = make_data("C")
    estimator = GroupDiscoveryRegressor(3)
    data = input_of(estimator, X, target)
    paths = [search(estimator, data, weight, 3) for weight in halves(np.random.default_rng(0), len(target), 3)][:5]
    expected = run_searches(paths, supports_by_position, n_threads=1)
    shares = []

    def run_share(searches, positions, finish):
        assert all(one.data.X is None and one.data.attributes == {} for one in searches)
        shares.append(list(positions))
        return lockstep_run_share(searches, positions, finish)

    lockstep_run_share = lockstep._run_share
    monkeypatch.setattr(lockstep, "_run_share", run_share)
    monkeypatch.setattr(lockstep, "_process_count", lambda searches: 2)
    monkeypatch.setattr(lockstep, "Parallel", lambda n_jobs: lambda calls: [call(*args) for call, args, _ in calls])
    assert run_searches(paths, supports_by_position, n_threads=1) == expected
    assert shares == [[0, 2, 4], [1, 3]]
    assert [position for position, _ in expected] == list(range(5))


def supports_by_position(positions, loops):
    return [(position, loop.oracle.supports.tolist()) for position, loop in zip(positions, loops, strict=True)]


def test_searches_share_views_with_the_same_weights_and_scale():
    X, target = make_data("C")
    data = input_of(GroupDiscoveryRegressor(3), X, target)
    weights = list(halves(np.random.default_rng(0), len(target), 1))
    paths = [
        search(GroupDiscoveryRegressor(3, C=C, standardize=standardize), data, weight, 3)
        for C in (0.1, 1.0) for weight in (None, *weights) for standardize in (False, True)
    ]  # fmt: skip
    loops, _ = run_together(paths, n_threads=1)
    views = [loop.oracle.view for loop in loops]
    assert len({id(view) for view in views}) == 6
    assert views[:6] == views[6:]
    for path, loop in zip(paths, loops, strict=True):
        assert (loop.oracle.view.scale is not None) == path.settings.standardize
        assert loop.oracle.view.sample_weight is path.data.weight
        assert loop.on_round is None
        assert not loop.warns


@pytest.mark.parametrize("reuse", [False, True])
def test_bounds_in_lockstep(reuse):
    """Searches that stop at a given size need no bounds, except with reuse, where they decide on the next block."""
    X, target = make_data("C")
    options = {"n_features_per_round": 3, "reuse_features": reuse, "C": 0.01}
    estimator = GroupDiscoveryRegressor(20, **options)
    paths = [search(estimator, input_of(estimator, X, target), None, n_features) for n_features in (20, None)]
    (sized, converged), _ = run_together(paths, n_threads=1)
    assert np.isfinite(converged.upper)
    assert np.isfinite(sized.upper) == reuse
    for path, loop in zip(paths, (sized, converged), strict=True):
        alone = path.loop()
        alone.run()
        if reuse:
            assert alone.converged_at is not None
            assert loop.converged_at == alone.converged_at
            assert loop.upper == pytest.approx(alone.upper)
        assert loop.oracle.supports.tolist() == alone.oracle.supports.tolist()
