"""The partial likelihood compared with a slow definition, its certificate, and the master problem compared with cvxpy."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from coterie.data import FeatureView, as_source
from coterie.inputs.survival import survival_targets
from coterie.solver.adjusted import AdjustedLoss
from coterie.solver.cox import CoxLoss
from coterie.solver.cox_regression import PartialLikelihood
from coterie.solver.design import DenseDesign, design_of
from coterie.solver.loss import MERGING, Targets
from coterie.solver.master import Master
from coterie.solver.ridge import fit_ridge

LOSSES = {
    "seed": st.integers(0, 10**6),
    "ties": st.sampled_from(["breslow", "efron"]),
    "n_times": st.sampled_from([3, 8, 10**6]),
    "with_offset": st.booleans(),
    "with_entry": st.booleans(),
}


def random_loss(seed, ties, n_times, with_offset, with_entry=False, n=15, C=1.7):
    rng = np.random.default_rng(seed)
    event = rng.random(n) < 0.6
    event[:2] = True
    time = 1 + rng.integers(0, n_times, n)
    entry = np.floor(rng.random(n) ** 2 * time) if with_entry else None
    targets = survival_targets(event, time, rng.integers(0, 2, n), entry)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    weight[:2] = 1.0
    return CoxLoss(targets, weight, C, ties, rng.standard_normal(n) if with_offset else None), rng


def terms(loss):
    """Yield mass, weights over the risk set and their sum over the events for each term, by definition."""
    t, weight = loss.targets, loss.weight
    for stratum in np.unique(t["stratum"]):
        inside = (t["stratum"] == stratum) & (weight > 0)
        for time in np.unique(t["time"][inside & t["event"]]):
            events = inside & t["event"] & (t["time"] == time)
            members = np.where(inside & (t["time"] >= time) & (t["entry"] < time), weight, 0.0)
            d = events.sum()
            if loss.ties == "breslow":
                yield weight[events].sum(), members, weight[events].sum()
            else:
                for number in range(d):
                    own = members * np.where(events, 1 - number / d, 1.0)
                    yield weight[events].mean(), own, own[events].sum()


def slow_value(loss, z):
    z = z if loss.offset is None else z + loss.offset
    value = sum(mass * np.log(own @ np.exp(z) / constant) for mass, own, constant in terms(loss))
    return loss.C * (value - loss.weight @ (loss.targets["event"] * z))


@given(**LOSSES)
@settings(max_examples=60, deadline=None)
def test_value_and_derivatives(seed, ties, n_times, with_offset, with_entry):
    loss, rng = random_loss(seed, ties, n_times, with_offset, with_entry)
    n, h = len(loss.weight), 1e-6
    z = 2 * rng.standard_normal(n)
    state = loss.evaluate(z[:, None])
    assert state.value == pytest.approx(slow_value(loss, z), rel=1e-10, abs=1e-10)
    assert state.value >= 0.0  # C times half the deviance
    steps = h * np.eye(n)
    gradient = [(slow_value(loss, z + step) - slow_value(loss, z - step)) / (2 * h) for step in steps]
    assert -state.residual[:, 0] == pytest.approx(np.array(gradient), abs=1e-6)
    slopes = [(loss.evaluate((z + step)[:, None]).residual - loss.evaluate((z - step)[:, None]).residual) for step in steps]
    hessian = -np.array(slopes)[:, :, 0] / (2 * h)
    coupling = state.coupling.apply(np.eye(n))
    assert hessian == pytest.approx(np.diag(state.curvature[:, 0]) - coupling.T @ coupling, abs=1e-6)
    assert state.coupling.adjoint(np.eye(len(coupling))) == pytest.approx(coupling.T, abs=1e-12)


@given(**LOSSES)
@settings(max_examples=60, deadline=None)
def test_the_conjugate_bounds_every_other_point(seed, ties, n_times, with_offset, with_entry):
    """Fenchel: F(u) + F*(-r) >= -<r, u> for all u, with equality at the point of the residual."""
    loss, rng = random_loss(seed, ties, n_times, with_offset, with_entry)
    z = 3 * rng.standard_normal((len(loss.weight), 1))
    state = loss.evaluate(z)
    assert state.value + state.conjugate == pytest.approx(-float((state.residual * z).sum()), rel=1e-10, abs=1e-10)
    for scale in (0.01, 1.0, 30.0):
        other = z + scale * rng.standard_normal(z.shape)
        assert loss.evaluate(other).value + state.conjugate >= -float((state.residual * other).sum()) - 1e-9


@given(**LOSSES)
@settings(max_examples=40, deadline=None)
def test_the_conjugate_is_a_sum_of_entropies(seed, ties, n_times, with_offset, with_entry):
    loss, rng = random_loss(seed, ties, n_times, with_offset, with_entry)
    z = rng.standard_normal(len(loss.weight))
    shifted = z if loss.offset is None else z + loss.offset
    state, expected, sums = loss.evaluate(z[:, None]), 0.0, loss.C * loss.weight * loss.targets["event"]
    for mass, own, constant in terms(loss):
        share = own * np.exp(shifted) / (own @ np.exp(shifted))
        inside = own > 0
        expected += loss.C * mass * (share[inside] @ np.log(share[inside] / own[inside]) + np.log(constant))
        sums = sums - loss.C * mass * share
    assert state.residual[:, 0] == pytest.approx(sums, abs=1e-12)
    expected += 0.0 if loss.offset is None else state.residual[:, 0] @ loss.offset
    assert state.conjugate == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_large_outputs_do_not_overflow(rng, ties):
    n = 50
    targets = survival_targets(rng.random(n) < 0.7, rng.integers(0, 20, n))
    loss = CoxLoss(targets, np.ones(n), 1.0, ties)
    z = rng.standard_normal((n, 1))
    plain, moved = loss.evaluate(z), loss.evaluate(z + 5000.0)
    assert moved.residual == pytest.approx(plain.residual, abs=1e-9)
    assert moved.value == pytest.approx(plain.value, rel=1e-9)
    for factor in (1e3, -1e3):
        state = loss.evaluate(factor * z)
        assert np.isfinite(state.residual).all()
        assert np.isfinite([state.value, state.conjugate]).all()
        assert state.residual.sum() == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_entry_times_lose_no_digits(ties):
    """A sample that enters late has a hazard of e^600 times that of the others, whose sums must not be differences."""
    time = np.array([1.0, 2.0, 2.0, 3.0, 9.0])
    targets = survival_targets([1, 1, 1, 1, 1], time, entry=[0, 0, 0, 0, 5])
    z = np.array([0.3, -0.2, 0.1, 0.4, 600.0])
    state = CoxLoss(targets, np.ones(5), 1.0, ties).evaluate(z[:, None])
    alone = CoxLoss(targets[:4], np.ones(4), 1.0, ties).evaluate(z[:4, None])
    assert state.value == pytest.approx(alone.value, rel=1e-12)
    assert state.residual[:4] == pytest.approx(alone.residual, rel=1e-12)
    assert state.residual[4, 0] == 0.0


def test_entries_before_the_first_event_change_nothing(rng):
    time = 5.0 + rng.random(20)
    early = survival_targets(np.ones(20), time, entry=rng.random(20))
    z = rng.standard_normal((20, 1))
    own, plain = (CoxLoss(targets, np.ones(20), 1.0) for targets in (early, survival_targets(np.ones(20), time)))
    assert own.evaluate(z).residual.tolist() == plain.evaluate(z).residual.tolist()
    assert own.kinds().tolist() == plain.kinds().tolist()


def test_perfect_order_has_no_loss():
    loss = CoxLoss(survival_targets([1, 1, 1, 0], [1.0, 2.0, 3.0, 3.0]), np.ones(4), 1.0)
    assert loss.evaluate(np.array([[300.0], [200.0], [100.0], [0.0]])).value == pytest.approx(0.0, abs=1e-12)


def test_weights_are_repetitions_with_breslows_rule(rng):
    n = 30
    targets = survival_targets(rng.random(n) < 0.5, rng.integers(0, 10, n))
    times, z = rng.integers(0, 4, n), rng.standard_normal((n, 1))
    weighted = CoxLoss(targets, times.astype(float), 1.0).evaluate(z)
    repeated = CoxLoss(np.repeat(targets, times), np.ones(times.sum()), 1.0).evaluate(np.repeat(z, times, axis=0))
    assert weighted.value == pytest.approx(repeated.value, rel=1e-12)
    sums = np.bincount(np.repeat(np.arange(n), times), repeated.residual[:, 0], minlength=n)
    assert weighted.residual[:, 0] == pytest.approx(sums, abs=1e-12)


def with_cvxpy(X, loss, size):
    p = X.shape[1]
    w = cp.Variable(p)
    z = X @ w + (0.0 if loss.offset is None else loss.offset)
    value = -loss.weight @ cp.multiply(loss.targets["event"].astype(float), z)
    for mass, own, constant in terms(loss):
        members = np.flatnonzero(own)
        value += mass * (cp.log_sum_exp(z[members] + np.log(own[members])) - np.log(constant))
    norms = sum(cp.norm(w[a : a + size]) for a in range(0, p, size))
    problem = cp.Problem(cp.Minimize(0.5 * cp.square(norms) + loss.C * value))
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("C", [0.05, 2.0])
@pytest.mark.parametrize(
    ("ties", "with_offset", "with_entry"), [("breslow", False, False), ("efron", True, False), ("efron", False, True)]
)
def test_master_problem(C, ties, with_offset, with_entry, size):
    rng = np.random.default_rng(3)
    n, p = 40, 6
    X = rng.standard_normal((n, p))
    time = np.ceil(10 * rng.exponential(np.exp(-X[:, 0] + 0.5 * X[:, 4])))
    entry = np.floor(np.linspace(0.0, 0.9, n) * time) if with_entry else None
    targets = survival_targets(rng.random(n) < 0.7, time, rng.integers(0, 2, n), entry)
    weight = rng.choice([0.0, 1.0, 2.5], n, p=[0.1, 0.6, 0.3])
    loss = CoxLoss(targets, weight, C, ties, rng.standard_normal(n) if with_offset else None)
    for matrix in (X, sparse.csc_array(X)):
        master = Master(loss, design_of(FeatureView.of(as_source(matrix), weight, centred=True)))
        for first in range(0, p, size):
            master.add_block(np.arange(first, first + size))
            solution = master.solve()
            assert solution.gap < 1e-11
        assert -solution.bound == pytest.approx(with_cvxpy(X, loss, size), rel=1e-6)
        # The certificate by definition: half the largest squared norm of a block's scores, plus the conjugate.
        scores = X.T @ solution.residual[:, 0]
        level = max(float((scores[a : a + size] ** 2).sum()) for a in range(0, p, size)) / 2
        assert solution.objective == pytest.approx(level + solution.state.conjugate, rel=1e-9)


@pytest.mark.parametrize(("C", "precision"), [(1e-3, 1e-10), (1.0, 1e-10), (100.0, 1e-9), (1e4, 1e-6)])
@pytest.mark.parametrize("n_features", [4, 60])
def test_master_converges(C, precision, n_features):
    """Also where the features order all events, so that the likelihood alone has no maximum."""
    rng = np.random.default_rng(0)
    n = 50
    X = rng.standard_normal((n, n_features))
    targets = survival_targets(rng.random(n) < 0.8, rng.exponential(np.exp(-2 * X[:, 0])))
    loss = CoxLoss(targets, np.ones(n), C)
    master = Master(loss, design_of(FeatureView.of(as_source(X), centred=True)))
    for features in np.split(np.arange(n_features), range(2, n_features, 2)):
        master.add_block(features)
        assert master.solve().gap < precision


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize(("is_sparse", "with_entry"), [(False, False), (True, False), (False, True)])
def test_merged_samples_give_the_same_solution(monkeypatch, ties, is_sparse, with_entry):
    rng = np.random.default_rng(1)
    n, p = 120, 3
    X = (rng.random((n, p)) < 0.1).astype(float)
    event, time = rng.random(n) < 0.3, 1 + rng.integers(0, 6, n)
    targets = survival_targets(event, time, rng.integers(0, 2, n), (time - 1) * (np.arange(n) % 2) if with_entry else None)
    weight = rng.choice([0.0, 1.0, 2.0], n)
    loss = CoxLoss(targets, weight, 0.5, ties)
    assert loss.parts.issuperset(MERGING)
    matrix = sparse.csc_array(X) if is_sparse else X

    def solved():
        master = Master(loss, design_of(FeatureView.of(as_source(matrix), weight, centred=True)))
        master.add_block(np.arange(p))
        return master, master.solve()

    master, merged = solved()
    assert len(master.used_samples) < np.count_nonzero(weight)
    monkeypatch.setattr(CoxLoss, "kinds", lambda self: np.where(self.weight > 0, np.arange(len(self.weight)), -1))
    _, separate = solved()
    assert merged.objective == pytest.approx(separate.objective, rel=1e-10)
    assert merged.residual == pytest.approx(separate.residual, abs=1e-8)


def test_samples_censored_before_the_first_event_are_left_out():
    targets = survival_targets([0, 1, 0, 1, 0, 0], [1.0, 2.0, 3.0, 4.0, 4.0, 5.0], [0, 0, 0, 0, 0, 1])
    assert CoxLoss(targets, np.ones(6), 1.0).kinds().tolist() == [-1, 1, 0, 3, 2, -1]
    efron = CoxLoss(targets, np.ones(6), 1.0, "efron").kinds().tolist()
    assert [efron[k] for k in (0, 2, 4, 5)] == [-1, 0, 2, -1]
    assert len(set(efron) - {-1}) == 4


def test_covariates_are_eliminated(rng):
    n = 60
    X, K = rng.standard_normal((n, 2)), rng.standard_normal((n, 2))
    targets = survival_targets(rng.random(n) < 0.8, rng.exponential(np.exp(-X[:, 0] - K[:, 0])))
    loss = CoxLoss(targets, np.ones(n), 1.0)
    adjusted = AdjustedLoss(loss, K, np.ones(n))
    master = Master(adjusted, design_of(FeatureView.of(as_source(X), centred=True)))
    master.add_block(np.arange(2))
    solution = master.solve()
    assert solution.gap < 1e-11
    w, a = cp.Variable(2), cp.Variable(adjusted.covariates.shape[1])
    z = X @ w + adjusted.covariates @ a
    value = -cp.sum(z[targets["event"]])
    for _, own, _ in terms(loss):
        value += cp.log_sum_exp(z[np.flatnonzero(own)])
    penalty = 0.5 * cp.square(cp.norm(w)) + 0.5 * adjusted.covariate_penalty * cp.sum_squares(a)
    problem = cp.Problem(cp.Minimize(penalty + value))
    problem.solve(solver=cp.CLARABEL)
    assert -solution.bound == pytest.approx(problem.value, rel=1e-7)
    assert solution.coef[:, 0] == pytest.approx(w.value, abs=1e-5)


@pytest.mark.parametrize("shape", [(40, 5), (30, 200)])
def test_ridge(rng, shape):
    n, p = shape
    X = rng.standard_normal(shape)
    targets = survival_targets(rng.random(n) < 0.8, rng.exponential(np.exp(-X[:, 0])))
    loss = CoxLoss(targets, np.ones(n), 3.0, "efron")
    found = fit_ridge(loss, DenseDesign.of_array(X - X.mean(axis=0)), precision=1e-14)
    assert found.gap < 1e-11
    gradient = found.coef[:, 0] - (X - X.mean(axis=0)).T @ loss.evaluate((X - X.mean(axis=0)) @ found.coef).residual[:, 0]
    assert gradient == pytest.approx(np.zeros(p), abs=1e-5)


def test_loss_of_an_estimator(rng):
    targets = survival_targets(rng.random(20) < 0.5, rng.random(20))
    loss = PartialLikelihood("efron").of(Targets(targets, 0, np.ones(20)), np.ones(20), 2.0, False)
    assert (loss.C, loss.ties, loss.offset[0]) == (2.0, "efron", 1.0)
    z = rng.standard_normal((20, 1))
    assert PartialLikelihood().predict(z).tolist() == z[:, 0].tolist()
    assert PartialLikelihood().constant_outputs(Targets(targets, 0), np.ones(20)).tolist() == [0.0]
    assert replace(loss.evaluate(z), value=0.0).coupling is not None
