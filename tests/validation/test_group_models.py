"""Models on groups in validation: equal to those that are fitted to the columns of the members at each size."""

from itertools import chain

import numpy as np
import pytest
from scipy import sparse

from coterie import GroupDiscoveryClassifier, GroupDiscoveryClassifierCV, GroupDiscoveryOneClass, GroupDiscoveryRegressor
from coterie.estimators.base import input_of
from coterie.search.lockstep import run_together
from coterie.search.membership import memberships
from coterie.search.outcome import covariate_coef, fit_members
from coterie.search.search import Search
from coterie.validation import group_models
from coterie.validation.group_models import MemberProducts, coarse, group_outputs
from tests.conftest import grouped_matrix

ESTIMATORS = {
    "two classes": GroupDiscoveryClassifier,
    "several classes": GroupDiscoveryClassifier,
    "numbers": GroupDiscoveryRegressor,
    "one class": GroupDiscoveryOneClass,
}


def paths(rng, kind, *, is_sparse=False, covariates=None):
    """Return the loops of paths with two values of C, whose last samples are held out, and their members."""
    X, y = grouped_matrix(rng, n_features=90, n_factors=12)
    if kind == "several classes":
        y = np.where(np.abs(X[:, 0]) < 0.4, 0, y)
    elif kind == "numbers":
        y = 50.0 + X[:, 0] - X[:, 1]
    weight = np.where(np.arange(60) < 45, rng.random(60) + 0.5, 0.0)
    target = None if kind == "one class" else y
    make = sparse.csc_array if is_sparse else np.asarray
    options = {} if covariates is None else {"covariates": covariates}
    data = input_of(ESTIMATORS[kind](8), make(X), target, weight, **options)
    searches = [
        Search(data, ESTIMATORS[kind](8, C=C, threshold=0.6, n_features_per_round=1)._settings(), 8) for C in (0.05, 2.0)
    ]
    loops, _ = run_together(searches, n_threads=1)
    return loops, memberships(loops)


def all_outputs(loops, members, covariates=None):
    """Return the outputs of the held-out samples for all models of some paths."""
    samples = np.arange(45, 60)
    known = None if covariates is None else covariates[samples]
    shared = MemberProducts(loops[0].oracle.view, members)
    return [list(group_outputs(loop, own, shared, samples, known)) for loop, own in zip(loops, members, strict=True)]


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("kind", "adjusted"),
    [*((kind, False) for kind in ESTIMATORS), *((kind, True) for kind in ESTIMATORS if kind != "one class")],
)
def test_outputs_are_those_of_models_on_the_columns_of_the_members(rng, kind, adjusted, is_sparse):
    covariates = rng.standard_normal((60, 2)) if adjusted else None
    loops, members = paths(rng, kind, is_sparse=is_sparse, covariates=covariates)
    for loop, own, models in zip(loops, members, all_outputs(loops, members, covariates), strict=True):
        assert [model.size for model in models] == coarse([entry.n_support for entry in loop.history])
        assert len(models) >= 5
        for model in models:
            features = own.at(model.size)
            coef, parts = fit_members(loop, features)
            states = [part.state for part in parts]
            columns = loop.oracle.view.model_columns(features)
            columns = columns if isinstance(columns, np.ndarray) else columns.toarray()
            expected = columns[45:] @ coef + np.concatenate([state.intercept for state in states])
            if adjusted:
                expected += covariates[45:] @ covariate_coef(states).T
            np.testing.assert_allclose(model.outputs, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
            np.testing.assert_array_equal(model.margin, np.concatenate([state.margin for state in states]))
            assert 0.0 <= model.gap <= 1e-10


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_MAX_SAMPLES", 0),
        ("_FEW_SAMPLES", 0),
        ("_MAX_MEMBERS", 0),
        ("_KEPT_BYTES", 0),
        ("_READ_COLUMNS", 7),
        ("_PRECISION", -1.0),
    ],
)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_every_way_has_the_same_outputs(rng, monkeypatch, name, value, is_sparse):
    """Columns are kept or read again, and models are fitted to products between samples or to the columns."""
    loops, members = paths(rng, "several classes", is_sparse=is_sparse)
    expected = all_outputs(loops, members)
    used = []
    fit = group_models.fit_members
    monkeypatch.setattr(group_models, "fit_members", lambda loop, own, start: used.append(len(own)) or fit(loop, own, start))
    monkeypatch.setattr(group_models, name, value)
    if name == "_READ_COLUMNS":
        monkeypatch.setattr(group_models, "_KEPT_BYTES", 0)
    if name == "_MAX_MEMBERS":
        monkeypatch.setattr(group_models, "_FEW_SAMPLES", 0)
    found = all_outputs(loops, members)
    for ours, theirs in zip(chain(*found), chain(*expected), strict=True):
        np.testing.assert_allclose(ours.outputs, theirs.outputs, rtol=1e-6, atol=1e-6 * np.abs(theirs.outputs).max())
    if name in ("_MAX_SAMPLES", "_PRECISION"):
        assert len(used) == sum(map(len, expected))
    elif name == "_MAX_MEMBERS":
        assert used
        assert max(used) <= 60
    else:
        assert not used


def test_columns_of_all_paths_are_read_once(rng, monkeypatch):
    loops, members = paths(rng, "two classes")
    reads = []
    kind = type(loops[0].oracle.view)
    read = kind.model_columns
    monkeypatch.setattr(kind, "model_columns", lambda self, features: reads.append(features) or read(self, features))
    all_outputs(loops, members)
    assert len(reads) == 1
    np.testing.assert_array_equal(reads[0], np.union1d(members[0].feature, members[1].feature))


def test_results_do_not_depend_on_the_number_of_threads(rng):
    X, y = grouped_matrix(rng, n_features=60)
    fits = [
        GroupDiscoveryClassifierCV(
            8, Cs=3, cv=3, nested=True, predict_with=["support", "groups"], scoring="roc_auc",
            n_jobs=n_jobs, random_state=0,
        ).fit(X, y)
        for n_jobs in (1, 3)
    ]  # fmt: skip
    np.testing.assert_array_equal(fits[0].cv_results_["mean_test_score"], fits[1].cv_results_["mean_test_score"])
    assert fits[0].calibration_slope_ == fits[1].calibration_slope_
    assert set(fits[0].cv_results_["predict_with"]) == {"support", "groups"}


def test_a_smaller_model_as_initial_point_does_not_change_the_model(rng):
    """The weights of the smaller model are assigned to its members, wherever these are among the others."""
    loops, members = paths(rng, "several classes")
    for loop, own in zip(loops, members, strict=True):
        few, all_members = own.at(2), own.at(len(loop.oracle.supports))
        smaller = group_models.FittedMembers.of(loop, few, None)
        warm = group_models.FittedMembers.of(loop, all_members, smaller)
        cold = group_models.FittedMembers.of(loop, all_members, None)
        np.testing.assert_allclose(warm.coef, cold.coef, rtol=1e-4, atol=1e-6 * np.abs(cold.coef).max())
        assert max(part.gap for part in warm.parts) <= 1e-9
        same = group_models.FittedMembers.of(loop, few, smaller)
        assert max(part.n_iter for part in same.parts) <= 1
