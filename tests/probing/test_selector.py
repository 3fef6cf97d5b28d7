"""Public behaviour of DependencyAwareSelector."""

import os
import signal
import threading
import warnings
from contextlib import contextmanager
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import DependencyAwareSelector, KNNCriterion, RidgeCriterion
from coterie.data import as_source
from coterie.metrics import selection_stability
from coterie.probing import evaluation
from coterie.probing.probes import ProbePlan, ProbeSums
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks(
    [
        DependencyAwareSelector("ridge", n_features_to_select=1, n_probes=20),
        DependencyAwareSelector(n_features_to_select=1, n_probes=20, cv=2, variant="daf2", inclusion_probability=0.4),
        DependencyAwareSelector("ridge", n_features_to_select=1, n_probes=20, sampling="uniform"),
        DependencyAwareSelector("reconstruction", n_features_to_select=1, n_probes=10),
    ]
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def together(rng, n_samples=150, n_features=12):
    """Return labels that depend on features 2 and 7 only in combination."""
    X = rng.standard_normal((n_samples, n_features))
    return X, np.where(X[:, 2] * X[:, 7] > 0, "yes", "no")


def state_of(model):
    return [model.ranking_, *model.scores_.values(), model.coverage_, np.array(model.probe_summary_)]


def assert_same(first, second):
    assert first.n_probes_ == second.n_probes_
    for a, b in zip(state_of(first), state_of(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_finds_features_that_are_useful_only_in_combination(rng):
    X, y = together(rng)
    model = DependencyAwareSelector(n_features_to_select=2, n_probes=300, random_state=0).fit(X, y)
    assert set(model.support_features_) == {2, 7}
    assert sorted(model.ranking_) == list(range(1, 13))
    assert set(np.flatnonzero(model.ranking_ <= 2)) == {2, 7}
    np.testing.assert_array_equal(np.flatnonzero(model.get_support()), [2, 7])
    assert model.transform(X).shape == (150, 2)
    assert model.n_probes_ == 300
    assert model.stopped_by_ == "n_probes"
    assert sum(entry.n_probes for entry in model.probe_summary_) == 300
    assert model.coverage_.min() > 50
    for score in ("daf1", "daf2"):
        other = clone(model).set_params(variant=score).fit(X, y)
        np.testing.assert_array_equal(np.argsort(-model.scores_[score]), np.argsort(other.ranking_))


def sum_of_means(X, y):
    """A criterion that must be picklable."""
    return float(np.abs(X.mean(axis=0)).sum()) / X.shape[1]


@pytest.mark.parametrize("criterion", ["knn", "linear_svm", "ridge", sum_of_means, LogisticRegression()])
def test_workers_do_not_change_the_result(criterion, rng):
    X, y = together(rng, n_samples=60)
    model = DependencyAwareSelector(criterion, n_features_to_select=2, n_probes=37, random_state=1)
    alone = clone(model).fit(X, y)
    with joblib.parallel_config("loky" if criterion in ("knn", sum_of_means) else "threading", n_jobs=2):
        assert_same(clone(model).fit(X, y), alone)
    if model.criterion in ("knn", "ridge"):  # those that prefer threads
        assert_same(clone(model).set_params(n_jobs=3).fit(X, y), alone)


def test_batches_do_not_change_the_result(rng, monkeypatch):
    X, y = together(rng, n_samples=60)
    model = DependencyAwareSelector(n_features_to_select=2, n_probes=101, random_state=1)
    alone = clone(model).fit(X, y)
    monkeypatch.setattr("coterie.probing.evaluation._WAVE_SECONDS", 1e-9)
    assert_same(clone(model).fit(X, y), alone)


def test_formats_do_not_change_the_result(rng):
    X, y = sparse_counts(rng, n_features=30)
    model = DependencyAwareSelector(n_features_to_select=4, n_probes=60, random_state=3)
    expected = clone(model).fit(X, y)
    frame = pd.DataFrame(X, columns=[f"w{j}" for j in range(30)])
    for data in (np.asfortranarray(X), X.astype(np.int8), sparse.csc_array(X), sparse.csr_matrix(X), frame, as_source(X)):
        assert_same(clone(model).fit(data, y), expected)
    named = clone(model).fit(frame, y)
    assert list(named.get_feature_names_out()) == [f"w{j}" for j in np.sort(expected.support_features_)]


def test_warm_start_is_one_long_run(rng):
    X, y = together(rng)
    long = DependencyAwareSelector(n_features_to_select=2, n_probes=150, random_state=5).fit(X, y)
    model = DependencyAwareSelector(n_features_to_select=2, n_probes=40, random_state=5, warm_start=True).fit(X, y)
    before = [part.copy() for part in state_of(model)]
    sums = model._sums
    model.set_params(n_probes=150).fit(X, y)
    assert_same(model, long)
    assert sums.n_probes == 40  # the old sums are unchanged
    assert not np.array_equal(before[1], model.scores_.daf0)
    model.fit(X, y)  # no probes are added
    assert_same(model, long)
    with pytest.raises(ValueError, match="there are 150 already"):
        model.set_params(n_probes=100).fit(X, y)
    with pytest.raises(ValueError, match=r"last fit, which was made with different data \(X\)"):
        model.set_params(n_probes=200).fit(X + 1, y)
    with pytest.raises(ValueError, match="a different criterion"):
        model.set_params(criterion=KNNCriterion(5)).fit(X, y)
    assert_same(model, long)  # failed fits change nothing


def test_warm_start_without_a_seed(rng):
    X, y = together(rng, n_samples=60)
    model = DependencyAwareSelector("ridge", n_features_to_select=2, n_probes=20, warm_start=True).fit(X, y)
    first = model._sums.values.copy()
    model.set_params(n_probes=30).fit(X, y)
    np.testing.assert_array_equal(model._sums.values[:20], first)


def test_stops_at_the_first_rule_that_is_met(rng):
    X, y = together(rng, n_samples=60)
    uniform = partial(DependencyAwareSelector, "ridge", sampling="uniform", n_features_to_select=2)
    model = uniform(min_coverage=12, random_state=0).fit(X, y)
    assert model.stopped_by_ == "min_coverage"
    assert model.coverage_.min() == 12
    one_less = uniform(n_probes=model.n_probes_ - 1, random_state=0).fit(X, y)
    assert one_less.coverage_.min() == 11
    threads = clone(model).set_params(n_jobs=3).fit(X, y)
    assert_same(threads, model)
    both = clone(model).set_params(n_probes=10).fit(X, y)
    assert (both.n_probes_, both.stopped_by_) == (10, "n_probes")
    timed = clone(model).set_params(min_coverage=None, max_seconds=0.05).fit(X, y)
    assert timed.stopped_by_ == "max_seconds"
    assert timed.n_probes_ >= 1
    counted = uniform(n_probes=timed.n_probes_, random_state=0).fit(X, y)
    assert_same(timed, counted)
    by_default = uniform(random_state=0).fit(X, y)
    assert by_default.stopped_by_ == "min_stability"
    assert by_default.coverage_.min() >= 100
    assert clone(model).set_params(min_coverage=None).fit(X, y).n_probes_ == 1000


@pytest.mark.filterwarnings("default:Low coverage")
def test_low_coverage_warns_and_is_shown(rng, recwarn):
    X, y = together(rng, n_samples=60)
    model = DependencyAwareSelector(
        "ridge", sampling="uniform", n_features_to_select=2, n_probes=40, min_coverage=60, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match=r"after 40 probes: .* is (\d+), but min_coverage is 60\.") as caught:
        model.fit(X, y)
    numbers = [int(word) for word in str(caught[0].message).replace(",", "").split() if word.isdigit()]
    assert numbers == [40, model.coverage_.min()]
    recwarn.clear()
    for enough in ({"min_coverage": None}, {"min_coverage": 5}, {"n_probes": 400}):
        clone(model).set_params(**enough).fit(X, y)
    assert not recwarn.list


def test_wide_data_stop_at_a_number_of_probes(rng, monkeypatch):
    monkeypatch.setattr("coterie.probing.estimator._LEAST_LIMIT", 70)
    monkeypatch.setattr("coterie.probing.estimator._PROBES_PER_FEATURE", 2)
    X, y = together(rng, n_samples=30)
    model = DependencyAwareSelector("ridge", sampling="uniform", n_features_to_select=2, random_state=0).fit(X, y)
    assert (model.n_probes_, model.stopped_by_) == (70, "n_probes")
    assert clone(model).set_params(min_coverage=100).fit(X, y).stopped_by_ == "min_coverage"


@pytest.mark.parametrize(("n_features", "max_size"), [(5, 5), (100, 100), (2000, 150), (300, 20)])
def test_probes_are_estimated(n_features, max_size):
    plan = ProbePlan(n_features, max_size, None, (1, 2))
    expected = evaluation.expected_probes(ProbeSums(plan), evaluation.ProbeBudget(None, None, 40))
    held, number = np.zeros(n_features, dtype=int), 0
    while min(held.min(), number - held.max()) < 40:
        held[plan.draw(number)] += 1
        number += 1
    assert expected == pytest.approx(number, rel=0.25)
    assert evaluation.expected_probes(ProbeSums(plan), evaluation.ProbeBudget(30, None, 40)) == 30
    assert evaluation.expected_probes(ProbeSums(plan), evaluation.ProbeBudget(None, 1.0, 40)) is None
    assert evaluation.expected_probes(ProbeSums(plan), evaluation.ProbeBudget(7, None, None)) == 7


class Interrupts:
    """A criterion that is interrupted after some calls."""

    def __init__(self, after):
        self.after, self.calls = after, 0

    def __call__(self, X, y):
        self.calls += 1
        if self.calls > self.after:
            assert threading.current_thread() is threading.main_thread()
            os.kill(os.getpid(), signal.SIGINT)
        return X.shape[1] / (1 + self.calls % 7)


@pytest.fixture
def interruptible():
    """Restore the default SIGINT handler, which a shell disables for background processes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interruption_keeps_the_result_so_far(rng):
    X, y = together(rng, n_samples=30)
    model = DependencyAwareSelector(Interrupts(200), n_features_to_select=2, n_probes=100_000, random_state=0)
    with pytest.warns(UserWarning, match=r"Interrupted\. The ranking is based on the \d+ probes finished so far"):
        model.fit(X, y)
    assert model.stopped_by_ == "interrupt"
    assert 1 <= model.n_probes_ <= 200
    uninterrupted = DependencyAwareSelector(
        Interrupts(10**9), n_features_to_select=2, n_probes=model.n_probes_, random_state=0
    )
    assert_same(model, uninterrupted.fit(X, y))
    with pytest.raises(KeyboardInterrupt):
        DependencyAwareSelector(Interrupts(0), n_features_to_select=2).fit(X, y)


def test_features_without_probes_score_0(rng):
    X, y = grouped_matrix(rng)
    model = DependencyAwareSelector("ridge", n_features_to_select=3, n_probes=3, max_probe_size=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"\d+ of 40 features are in none or in all of the 3 probes"):
        model.fit(X, y)
    unknown = model.coverage_ == 0
    assert unknown.sum() >= 34
    for scores in model.scores_.values():
        assert not scores[unknown].any()
        assert np.isfinite(scores).all()


def test_one_feature(rng):
    X, y = together(rng, n_samples=30)
    model = DependencyAwareSelector("ridge", n_features_to_select=1, min_coverage=5, n_probes=4).fit(X[:, :1], y)
    assert model.n_probes_ == 4
    assert model.ranking_.tolist() == [1]


def test_in_a_pipeline_and_a_search(rng):
    X, y = together(rng, n_samples=90)
    selector = DependencyAwareSelector(KNNCriterion(), n_features_to_select=2, n_probes=100, random_state=0)
    pipeline = make_pipeline(selector, KNeighborsClassifier(3))
    grid = {"dependencyawareselector__criterion__n_neighbors": [1, 3], "dependencyawareselector__n_features_to_select": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_params_["dependencyawareselector__n_features_to_select"] == 2


def test_stability_curve(rng):
    X, y = together(rng, n_samples=200)
    selector = DependencyAwareSelector(n_features_to_select=2, n_probes=200, random_state=0)
    table = selection_stability(selector, X, y, n_resamples=3, sizes=[2, 6], random_state=0)
    assert table[0].weighted_consistency == 1.0
    assert table[1].n_selected == 6


def test_progress_lines(rng, capsys):
    X, y = together(rng, n_samples=30)
    DependencyAwareSelector("ridge", n_features_to_select=2, n_probes=60, random_state=0, verbose=1).fit(X, y)
    last = capsys.readouterr().err.splitlines()[-1]
    assert "60/60 probes" in last
    assert "probes/s, coverage" in last
    uniform = DependencyAwareSelector("ridge", sampling="uniform", n_features_to_select=2, random_state=0, verbose=1)
    uniform.set_params(min_coverage=100).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert "coverage 100 of 100" in lines[-1]
    assert " s left" in lines[0]  # an estimate


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"variant": "daf3"}, "variant='daf3' must be one of"),
        ({"n_probes": 0}, "n_probes=0 must be a whole number of at least 1"),
        ({"max_seconds": -1}, "max_seconds=-1 must be a number above 0"),
        ({"min_coverage": 1.5}, "min_coverage=1.5 must be a whole number"),
        ({"sampling": "greedy"}, "sampling='greedy' must be one of 'uniform', 'adaptive'"),
        ({"max_probe_size": 0}, "max_probe_size=0 must be"),
        ({"inclusion_probability": 1.0}, r"inclusion_probability=1\.0 must be a number above 0 and below 1 or None"),
        ({"inclusion_probability": 0.0}, "must be a number above 0"),
        ({"n_features_to_select": "auto"}, "n_features_to_select='auto' must be a whole number of at least 1 or a fraction"),
        ({"criterion": "nonsense"}, "criterion='nonsense' must be one of"),
        ({"n_jobs": 0}, "n_jobs=0 must be a whole number other than 0"),
        ({"cv": 1}, "cv=1 must be a number of folds"),
    ],
)
def test_wrong_parameters(parameters, message, rng):
    X, y = grouped_matrix(rng)
    model = DependencyAwareSelector(**{"n_features_to_select": 2, "n_probes": 5, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(NotFittedError):
        model.transform(X)


def test_wrong_data(rng):
    X, y = grouped_matrix(rng)
    model = DependencyAwareSelector(RidgeCriterion(), n_features_to_select=2, n_probes=300, random_state=0).fit(X, y)
    before = clone(model).fit(X, y)
    X_bad = X[:, :30].copy()
    X_bad[4, 7] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X_bad, y)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.ones(60))
    with pytest.raises(ValueError, match="returned nan for probe 0"):
        model.set_params(criterion=lambda X, y: np.nan).fit(X[:, :30], y)
    assert model.n_features_in_ == 40  # a failed fit changes nothing
    assert_same(model, before)


def test_worker_on_another_host_is_not_a_local_thread(monkeypatch):
    """PIDs repeat across hosts: a remote worker with our PID must still limit its BLAS to one thread."""
    held = []

    @contextmanager
    def recorded():
        held.append(True)
        yield

    monkeypatch.setattr(evaluation, "one_blas_thread", recorded)
    subsets = [np.array([0]), np.array([1])]
    evaluation._values_of(lambda features: float(features[0]), subsets, evaluation._this_process())
    assert not held
    evaluation._values_of(lambda features: float(features[0]), subsets, ("another host's", os.getpid()))
    assert held
