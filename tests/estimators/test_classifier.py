"""GroupDiscoveryClassifier as its users see it."""

import json
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import FeatureGroups, GroupDiscoveryClassifier
from coterie.data import as_source
from coterie.datasets import make_support_affiliated
from coterie.metrics import group_recovery
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


def expected_failures(estimator):
    if not estimator.fit_intercept:
        return {"check_class_weight_classifiers": "the boundary passes through the origin, so no weight can move it aside"}
    return {}


@parametrize_with_checks(
    [
        GroupDiscoveryClassifier(n_features_to_select="auto"),
        GroupDiscoveryClassifier(n_features_to_select="auto", standardize=True, keep="groups", affiliates="ranked"),
        GroupDiscoveryClassifier(n_features_to_select="auto", representative="medoid"),
        GroupDiscoveryClassifier(n_features_to_select="auto", fit_intercept=False),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def groups_of(model, order=None):
    """Groups as a list of (support, sorted affiliated), translated back through a column permutation."""
    back = (lambda j: int(j)) if order is None else (lambda j: int(order[j]))
    return [(back(g.support), sorted(back(j) for j in g.affiliated)) for g in model.groups_]


def test_planted_groups_are_found(planted):
    model = GroupDiscoveryClassifier(4, n_features_per_round=1).fit(planted.X, planted.y)
    assert group_recovery(planted.groups, model.groups_) == 1.0
    assert model.score(planted.X, planted.y) > 0.9
    expected = naive.complete_groups(planted.X, model.support_features_, 0.7)
    assert {g.support: set(g.affiliated.tolist()) for g in model.groups_} == expected


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_every_round_is_certified_and_theta_never_falls(rng, is_sparse, standardize, fit_intercept):
    X, y = sparse_counts(rng)
    model = GroupDiscoveryClassifier(
        20, n_features_per_round=3, standardize=standardize, fit_intercept=fit_intercept, C=5.0
    ).fit(sparse.csc_array(X) if is_sparse else X, y)
    assert len(model.history_) == model.n_rounds_ == 7
    assert [len(r.features) for r in model.history_] == [3] * 6 + [2]
    gaps = [r.gap for r in model.history_]
    assert max(gaps) <= model.tol
    theta = np.array([r.objective for r in model.history_])
    assert (np.diff(theta) >= -1e-9 * theta[:-1]).all()
    # The certificate once more, from nothing but the fitted attributes and the data.
    scale = X[:, model.support_features_].std(axis=0) if standardize else np.ones(20)
    Z = X[:, model.support_features_] / scale
    blocks = [list(range(3 * t, min(3 * t + 3, 20))) for t in range(7)]
    coef = model.support_coef_[0] * scale
    primal = naive.primal(Z, y, coef, blocks, 5.0, np.ones(len(y)), fit_intercept)
    dual = naive.dual(Z, model.dual_coef_[0], blocks, 5.0, np.ones(len(y)))
    assert model.objective_ == pytest.approx(dual, rel=1e-7)
    assert (primal + dual) / dual == pytest.approx(model.dual_gap_, abs=1e-7)
    alpha = model.dual_coef_[0] * y
    assert alpha.min() >= 0
    assert alpha.sum() == pytest.approx(1)
    if fit_intercept:
        assert model.dual_coef_.sum() == pytest.approx(0, abs=1e-10)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], atol=1e-9)
    # The intercept and margin are those that the primal's elimination gives.
    output = Z @ coef
    if fit_intercept:
        p = naive.eliminate(output[y > 0], np.ones((y > 0).sum()), 0.5 / 5.0)
        q = naive.eliminate(-output[y < 0], np.ones((y < 0).sum()), 0.5 / 5.0)
        assert model.intercept_[0] == pytest.approx((q - p) / 2, abs=1e-8)
        assert model.margin_[0] == pytest.approx((p + q) / 2, abs=1e-8)


def test_no_two_support_features_are_correlated(rng):
    X, y = grouped_matrix(rng, n_samples=100, n_features=80)
    for representative in ("score", "medoid", lambda group: group.features[-1]):
        model = GroupDiscoveryClassifier("auto", threshold=0.6, representative=representative).fit(X, y)
        C = np.abs(naive.correlation(X))
        kept = C[np.ix_(model.support_features_, model.support_features_)]
        assert (kept - np.eye(len(kept)) < 0.6).all()
        for group in model.groups_:
            np.testing.assert_allclose(np.abs(group.correlation), C[group.support, group.affiliated], atol=1e-9)
            assert (np.abs(group.correlation) >= 0.6).all()
            assert (np.diff(np.abs(group.correlation)) <= 1e-12).all()
            assert (
                np.sign(group.correlation).tolist() == np.sign(naive.correlation(X)[group.support, group.affiliated]).tolist()
            )


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csc": sparse.csc_array,
    "csr_matrix": sparse.csr_matrix,
    "coo": sparse.coo_array,
    "int64 indices": lambda X: _int64(sparse.csc_array(X)),
    "source": as_source,
}


def _int64(S):
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


@pytest.mark.parametrize("standardize", [False, True])
def test_layouts_agree(rng, standardize, tmp_path):
    X, y = sparse_counts(rng)
    X = np.round(X * 8) / 8
    reference = GroupDiscoveryClassifier(12, n_features_per_round=4, standardize=standardize).fit(X, y)
    np.save(tmp_path / "x.npy", X)
    variants = {name: make(X) for name, make in LAYOUTS.items()}
    variants["memmap"] = np.load(tmp_path / "x.npy", mmap_mode="r")
    if (X.astype(np.uint8) == X).all():
        variants["uint8"] = X.astype(np.uint8)
    for name, variant in variants.items():
        model = clone(reference).fit(variant, y)
        assert groups_of(model) == groups_of(reference), name
        np.testing.assert_allclose(model.support_coef_, reference.support_coef_, atol=1e-8)
        np.testing.assert_allclose(model.decision_function(variant), reference.decision_function(X), atol=1e-7)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), is_sparse=st.booleans(), n_jobs=st.sampled_from([1, 2]), standardize=st.booleans())
def test_column_order_and_threads_change_nothing(seed, is_sparse, n_jobs, standardize):
    rng = np.random.default_rng(seed)
    X, y = sparse_counts(rng) if is_sparse else grouped_matrix(rng, noise=1.5)
    X[:, 3] = -X[:, 7]  # ties in |score| and |correlation|
    X[:, 5] = 2 * X[:, 9]
    X[:, 11] = X[:, 2] + 1
    # Copies can only be distinguished by name or place, so there are none.
    X = np.unique(X, axis=1)
    order = rng.permutation(X.shape[1])
    # Bit for bit within one layout; note that NumPy returns X[:, order] in F order.
    make = sparse.csc_array if is_sparse else np.ascontiguousarray
    options = {"n_features_per_round": 3, "standardize": standardize, "threshold": 0.8}
    first = GroupDiscoveryClassifier(9, n_jobs=1, **options).fit(make(X), y)
    second = GroupDiscoveryClassifier(9, n_jobs=n_jobs, **options).fit(make(X[:, order]), y)
    assert groups_of(first) == groups_of(second, order)
    np.testing.assert_array_equal(first.support_coef_, second.support_coef_)
    np.testing.assert_array_equal(first.scores_[order], second.scores_)


def test_copies_are_distinguished_by_name(rng):
    pd = pytest.importorskip("pandas")
    X, y = grouped_matrix(rng, n_features=10)
    frame = pd.DataFrame(np.c_[X, X], columns=[f"b{j}" for j in range(10)] + [f"a{j}" for j in range(10)])
    model = GroupDiscoveryClassifier(4, n_features_per_round=2, threshold=0.95).fit(frame, y)
    shuffled = frame[list(rng.permutation(frame.columns))]
    again = clone(model).fit(shuffled, y)
    assert model.correlated_feature_dict_ == again.correlated_feature_dict_
    assert all(name.startswith("a") for name in model.get_feature_names_out())


@pytest.mark.parametrize("is_sparse", [True, False])
def test_copies_negations_shifts_and_scales_join_the_group(rng, is_sparse):
    X, y = grouped_matrix(rng, n_features=12, noise=2.0)
    X = np.abs(X)
    model = GroupDiscoveryClassifier(3, n_features_per_round=1, threshold=0.9, standardize=True).fit(X, y)
    best = X[:, [model.support_features_[0]]]
    extended = np.c_[X, best, -best, 5 * best, best + 100, 0.001 * best - 7]
    make = sparse.csc_array if is_sparse else np.asarray
    again = clone(model).fit(make(extended), y)
    family = {model.support_features_[0], 12, 13, 14, 15, 16}
    assert set(again.groups_[0].members.tolist()) == family | set(model.groups_[0].members.tolist())
    np.testing.assert_allclose(np.abs(again.groups_[0].correlation[: len(family) - 1]), 1.0)


def test_shift_changes_nothing_with_an_intercept(rng):
    X, y = grouped_matrix(rng, noise=1.5)
    shift = 10.0 ** rng.integers(0, 7, X.shape[1])
    plain = GroupDiscoveryClassifier(8, n_features_per_round=2).fit(X, y)
    moved = GroupDiscoveryClassifier(8, n_features_per_round=2).fit(X + shift, y)
    assert groups_of(plain) == groups_of(moved)
    np.testing.assert_allclose(plain.support_coef_, moved.support_coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(plain.decision_function(X), moved.decision_function(X + shift), atol=1e-6)


def test_scale_changes_nothing_when_standardised(rng):
    X, y = grouped_matrix(rng, noise=1.5)
    factor = 10.0 ** rng.integers(-4, 5, X.shape[1])
    plain = GroupDiscoveryClassifier(8, standardize=True).fit(X, y)
    scaled = GroupDiscoveryClassifier(8, standardize=True).fit(X * factor, y)
    assert groups_of(plain) == groups_of(scaled)
    np.testing.assert_allclose(plain.coef_, scaled.coef_ * factor, rtol=1e-7, atol=1e-12)
    by_hand = GroupDiscoveryClassifier(8).fit(StandardScaler().fit_transform(X), y)
    assert groups_of(plain) == groups_of(by_hand)
    np.testing.assert_allclose(plain.coef_ * X.std(axis=0), by_hand.coef_, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_weights_are_repetitions(rng, is_sparse, standardize):
    X, y = sparse_counts(rng)
    weight = rng.integers(0, 4, len(y))
    weight[:4] = 2
    rows = np.repeat(np.arange(len(y)), weight)
    make = sparse.csc_array if is_sparse else np.asarray
    options = {"n_features_per_round": 3, "standardize": standardize}
    weighted = GroupDiscoveryClassifier(9, **options).fit(make(X), y, sample_weight=weight)
    repeated = GroupDiscoveryClassifier(9, **options).fit(make(X[rows]), y[rows])
    assert groups_of(weighted) == groups_of(repeated)
    np.testing.assert_allclose(weighted.support_coef_, repeated.support_coef_, atol=1e-8)


@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_class_weight(rng):
    X, y = grouped_matrix(rng, n_samples=200)
    keep = (y > 0) | (rng.random(200) < 0.2)
    X, y = X[keep], y[keep]
    plain = GroupDiscoveryClassifier(5, C=0.01).fit(X, y)
    rare = GroupDiscoveryClassifier(5, C=0.01, class_weight={-1: 50.0, 1: 1.0}).fit(X, y)
    assert (rare.predict(X) == -1).sum() > (plain.predict(X) == -1).sum()
    balanced = GroupDiscoveryClassifier(5, class_weight="balanced").fit(X, y)
    by_hand = {label: len(y) / (2 * (y == label).sum()) for label in (-1, 1)}
    same = GroupDiscoveryClassifier(5, class_weight=by_hand).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, same.coef_, atol=1e-12)


def test_keep_groups_and_transform_formats(planted):
    X, y = planted.X, planted.y
    model = GroupDiscoveryClassifier(4, n_features_per_round=1, keep="groups").fit(X, y)
    members = model.groups_.members
    assert model.get_support(indices=True).tolist() == members.tolist()
    np.testing.assert_array_equal(model.transform(X), X[:, members])
    model.set_params(keep="support")
    kept = np.sort(model.support_features_)
    np.testing.assert_array_equal(model.transform(X), X[:, kept])
    for form in ("csc", "csr", "coo", "lil", "dok", "bsr"):
        for container in (sparse.csc_array, sparse.csc_matrix):
            S = container(X).asformat(form)
            T = model.transform(S)
            assert T.format == form
            assert isinstance(T, sparse.sparray) == isinstance(S, sparse.sparray)
            np.testing.assert_array_equal(T.toarray(), X[:, kept])
            np.testing.assert_allclose(model.decision_function(S), model.decision_function(X), atol=1e-10)
    S = sparse.csc_array(X)
    back = model.inverse_transform(model.transform(S))
    assert back.format == "csc"
    expected = np.where(np.isin(np.arange(80), kept), X, 0)
    np.testing.assert_array_equal(back.toarray(), expected)
    np.testing.assert_array_equal(model.inverse_transform(model.transform(X)), expected)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.get_feature_names_out().tolist() == [f"x{j}" for j in kept]


def test_pandas_in_names_out(planted):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(planted.X, columns=[f"gene{j}" for j in range(80)])
    frame["gene7"] = frame["gene7"].astype(np.float32)
    model = GroupDiscoveryClassifier(4, n_features_per_round=1).fit(frame, planted.y)
    assert groups_of(model)[0] == groups_of(GroupDiscoveryClassifier(4, n_features_per_round=1).fit(planted.X, planted.y))[0]
    first = model.groups_[0]
    assert first.names[0] == f"gene{first.support}"
    out = model.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    assert all(name.startswith("gene") for name in out.columns)
    table = model.groups_.to_frame()
    assert list(table.columns) == [*FeatureGroups().columns, "marks"]
    assert len(table) == sum(len(g) for g in model.groups_)
    assert (table.loc[table.role == "support", "feature"].to_numpy() == model.support_features_).all()
    np.testing.assert_allclose(table.loc[table.role == "support", "weight"], model.support_coef_[0])
    assert table.loc[table.role == "affiliated", "correlation"].abs().min() >= 0.7
    assert set(model.correlated_feature_dict_) <= set(model.get_feature_names_out())
    assert pd.DataFrame(model.history_)["gap"].max() <= 1e-4
    with pytest.raises(ValueError, match=f"X lacks 1 of the 4 features .* reads: '{first.names[0]}'"):
        model.predict(frame.rename(columns={first.names[0]: "other"}))


def test_polars_in_names_out(planted):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(planted.X, schema=[f"gene{j}" for j in range(80)])
    model = GroupDiscoveryClassifier(4, n_features_per_round=1).fit(frame, planted.y)
    assert model.groups_[0].names[0] == f"gene{model.groups_[0].support}"
    out = model.set_output(transform="polars").transform(frame)
    assert out.columns == list(model.get_feature_names_out())
    np.testing.assert_allclose(model.decision_function(frame), frame.to_numpy() @ model.coef_[0] + model.intercept_)


def test_feature_engine_mirrors(planted):
    model = GroupDiscoveryClassifier(4, n_features_per_round=1).fit(planted.X, planted.y)
    pairs = {g.support: set(g.affiliated.tolist()) for g in model.groups_ if len(g) > 1}
    assert model.correlated_feature_dict_ == pairs
    assert model.correlated_feature_sets_ == [{z} | rest for z, rest in pairs.items()]


def test_purity(planted):
    model = GroupDiscoveryClassifier(4, n_features_per_round=1).fit(planted.X, planted.y)
    C = np.abs(naive.correlation(planted.X))
    for variant in (model, clone(model).fit(sparse.csc_array(planted.X), planted.y)):
        for group in variant.groups_:
            pairs = C[np.ix_(group.members, group.members)][np.triu_indices(len(group), 1)]
            expected = (pairs.min(), pairs.mean(), np.median(pairs)) if len(pairs) else (1, 1, 1)
            np.testing.assert_allclose(group.purity, expected, atol=1e-9)


def test_purity_of_a_large_group_uses_a_hundred_members(rng):
    factor = rng.standard_normal((60, 1))
    X = factor + 0.1 * rng.standard_normal((60, 150))
    y = np.where(factor[:, 0] > 0, 1, 0)
    model = GroupDiscoveryClassifier(1).fit(X, y)
    assert len(model.groups_[0]) == 150
    assert 0.9 < model.groups_[0].purity.minimum < model.groups_[0].purity.mean < 1


def test_medoid_and_callable_representatives(rng):
    X, y = grouped_matrix(rng, n_samples=150, n_features=30, noise=0.5)
    C = np.abs(naive.correlation(X))
    by_score = GroupDiscoveryClassifier(1).fit(X, y)
    top = by_score.support_features_[0]
    members = np.flatnonzero(C[top] >= 0.7)
    medoid = GroupDiscoveryClassifier(1, representative="medoid").fit(X, y)
    assert medoid.support_features_[0] == members[np.argmax(C[np.ix_(members, members)].sum(axis=1))]
    seen = []

    def cheapest(group):
        seen.append(group)
        return group.features.min()

    custom = GroupDiscoveryClassifier(1, representative=cheapest).fit(X, y)
    assert custom.support_features_[0] == members.min()
    assert sorted(seen[0].features) == members.tolist()
    assert seen[0].features[0] == top
    assert seen[0].names is None
    np.testing.assert_allclose(seen[0].correlation, naive.correlation(X)[top, seen[0].features], atol=1e-9)
    assert (seen[0].scores <= seen[0].scores[0] + 1e-12).all()
    with pytest.raises(ValueError, match=r"must return one of group\.features"):
        GroupDiscoveryClassifier(1, representative=lambda group: 10**6).fit(X, y)


def test_fixed_features(rng):
    X, y = grouped_matrix(rng, n_samples=150, n_features=30)
    free = GroupDiscoveryClassifier(5, n_features_per_round=1).fit(X, y)
    worst = int(np.argmin(free.scores_))
    for fixed in ([worst], np.arange(30) == worst):
        model = GroupDiscoveryClassifier(5, n_features_per_round=2, fixed_features=fixed).fit(X, y)
        assert model.support_features_[0] == worst
        assert len(model.support_features_) == 5
        assert model.history_[0].round == 0
        assert model.groups_[0].round == 0
        assert {g.support: set(g.affiliated.tolist()) for g in model.groups_} == naive.complete_groups(
            X, model.support_features_, 0.7
        )
    # Two fixed ones stay even if they are copies of each other, and the others are judged beside them.
    X[:, 1] = X[:, 0]
    model = GroupDiscoveryClassifier(4, fixed_features=[1, 0]).fit(X, y)
    assert model.support_features_[:2].tolist() == [1, 0]
    C = np.abs(naive.correlation(X))
    assert (C[np.ix_(model.support_features_[2:], [0, 1])] < 0.7).all()
    everything = GroupDiscoveryClassifier(2, fixed_features=[3, 4]).fit(X, y)
    assert everything.support_features_.tolist() == [3, 4]


@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_auto_stops_at_convergence(planted):
    model = GroupDiscoveryClassifier("auto", n_features_per_round=2, C=0.1, reuse_features=True).fit(planted.X, planted.y)
    assert model.converged_at_ == model.n_rounds_
    longer = GroupDiscoveryClassifier(40, n_features_per_round=2, C=0.1, reuse_features=True).fit(planted.X, planted.y)
    assert longer.converged_at_ == model.converged_at_
    assert longer.objective_ <= model.objective_ * (1 + 10 * model.tol)


@pytest.mark.filterwarnings("ignore:.* have the weight 0:UserWarning")
def test_auto_stops_where_new_features_change_nothing(planted):
    model = GroupDiscoveryClassifier("auto", n_features_per_round=2, C=0.1).fit(planted.X, planted.y)
    assert model.converged_at_ is None  # of sets with old features nothing is known but the bounds
    longer = GroupDiscoveryClassifier(40, n_features_per_round=2, C=0.1).fit(planted.X, planted.y)
    assert longer.support_features_[: len(model.support_features_)].tolist() == model.support_features_.tolist()
    assert longer.objective_ <= model.objective_ * (1 + 10 * model.tol)


def test_fraction_of_features(planted):
    model = GroupDiscoveryClassifier(0.1).fit(planted.X, planted.y)
    assert len(model.support_features_) == 8


def test_fewer_features_than_requested_give_a_warning(rng):
    factor = rng.standard_normal((50, 3))
    X = np.repeat(factor, 4, axis=1) + 0.01 * rng.standard_normal((50, 12))
    y = np.where(factor[:, 0] > 0, 1, -1)
    with pytest.warns(ConvergenceWarning, match="Only 3 of 6 support features were found: every other feature"):
        model = GroupDiscoveryClassifier(6).fit(X, y)
    assert len(model.groups_.members) == 12
    with pytest.warns(ConvergenceWarning, match="max_rounds=1"):
        GroupDiscoveryClassifier(3, n_features_per_round=1, max_rounds=1).fit(X, y)


def test_first_support_features_do_not_depend_on_the_number_requested(planted):
    short = GroupDiscoveryClassifier(6, n_features_per_round=2).fit(planted.X, planted.y)
    long = GroupDiscoveryClassifier(12, n_features_per_round=2).fit(planted.X, planted.y)
    assert long.support_features_[:6].tolist() == short.support_features_.tolist()


def test_ranked_groups_are_part_of_the_complete_ones(rng):
    X, y = grouped_matrix(rng, n_samples=100, n_features=80)
    complete = GroupDiscoveryClassifier(6, n_features_per_round=2).fit(X, y)
    ranked = GroupDiscoveryClassifier(6, n_features_per_round=2, affiliates="ranked").fit(X, y)
    assert ranked.support_features_.tolist() == complete.support_features_.tolist()
    assert set(ranked.groups_.members) <= set(complete.groups_.members)
    assert ranked.n_correlations_evaluated_ < complete.n_correlations_evaluated_
    assert complete.n_correlations_possible_ == 80 * 79 // 2


@pytest.mark.parametrize("options", [{}, {"representative": "medoid"}, {"correlation": "su", "n_bins": 3, "threshold": 0.2}])
@pytest.mark.parametrize("seed", range(3))
def test_ranked_members_move_to_a_later_support_feature_that_is_closer(seed, options):
    X, y = grouped_matrix(np.random.default_rng(seed), n_samples=40, n_features=60, noise=1.0)
    options = {"n_features_per_round": 2, "threshold": 0.4, **options}
    ranked = GroupDiscoveryClassifier(12, affiliates="ranked", **options).fit(X, y)
    complete = GroupDiscoveryClassifier(12, **options).fit(X, y)
    closest = {j: group for group in complete.groups_ for j in group.affiliated}
    assert len(ranked.groups_.members) > 12
    for group in ranked.groups_:
        for j, correlation in zip(group.affiliated, group.correlation, strict=True):
            assert closest[j].support == group.support
            assert correlation == pytest.approx(closest[j].correlation[closest[j].affiliated == j][0], abs=1e-12)


def test_labels_of_any_kind(planted):
    X, y = planted.X, planted.y
    reference = GroupDiscoveryClassifier(4).fit(X, y)
    for negative, positive in (("no", "yes"), (False, True), (7, 9), (0.0, 1.0)):
        labels = np.array([positive if v > 0 else negative for v in y])
        model = GroupDiscoveryClassifier(4).fit(X, labels)
        assert model.classes_.tolist() == [negative, positive]
        np.testing.assert_array_equal(model.predict(X) == positive, reference.predict(X) > 0)
    mixed = np.array(["b" if v > 0 else 7 for v in y], dtype=object)
    model = GroupDiscoveryClassifier(4).fit(X, mixed)
    assert set(model.predict(X)) == {"b", 7}


def test_pickle_clone_and_repr(planted):
    model = GroupDiscoveryClassifier(4).fit(planted.X, planted.y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(planted.X), model.predict(planted.X))
    assert copy.groups_ == model.groups_
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "groups_")
    assert isinstance(copy.groups_, FeatureGroups)
    assert json.loads(model.groups_.to_json())[0]["support"] == model.support_features_[0]


def test_inside_pipelines_and_searches(planted):
    X, y = planted.X, planted.y
    pipeline = make_pipeline(StandardScaler(), GroupDiscoveryClassifier(4), LinearSVC())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    search = GridSearchCV(GroupDiscoveryClassifier(4), {"n_features_to_select": [2, 4], "C": [0.1, 1.0]}, cv=3, n_jobs=2)
    assert search.fit(sparse.csc_array(X), y).best_score_ > 0.8


def test_metadata_routing(planted):
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        estimator = GroupDiscoveryClassifier(4).set_fit_request(sample_weight=True)
        weight = np.ones(len(planted.y))
        weight[::2] = 0.0
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, estimator).fit(planted.X, planted.y, sample_weight=weight)
        half = make_pipeline(StandardScaler(), GroupDiscoveryClassifier(4)).fit(planted.X, planted.y)
        assert not np.allclose(pipeline[-1].dual_coef_, half[-1].dual_coef_)
        assert (pipeline[-1].dual_coef_[0, ::2] == 0).all()


def test_progress(planted, capsys):
    GroupDiscoveryClassifier(4, n_features_per_round=2, verbose=1).fit(planted.X, planted.y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "2/4 support features" in lines[0]
    assert "left" in lines[0]
    GroupDiscoveryClassifier(4).fit(planted.X, planted.y)
    assert capsys.readouterr().err == ""


def test_callbacks(planted):
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 brought callbacks")

    class Watcher:
        def __init__(self, stop_after):
            self.stop_after, self.rounds, self.supports, self.closed = stop_after, 0, [], False

        def setup(self, estimator, context):
            self.max_rounds = context.max_subtasks

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if context.task_name == "round":
                self.rounds += 1
                self.supports.append(len(fitted_estimator.support_features_))
                assert fitted_estimator.predict(planted.X).shape == planted.y.shape
                return self.rounds == self.stop_after
            return False

        def teardown(self, estimator, context):
            self.closed = True

    watcher = Watcher(stop_after=99)
    model = GroupDiscoveryClassifier(6, n_features_per_round=2).set_callbacks(watcher).fit(planted.X, planted.y)
    assert (watcher.rounds, watcher.max_rounds, watcher.supports, watcher.closed) == (3, 3, [2, 4, 6], True)
    plain = GroupDiscoveryClassifier(6, n_features_per_round=2).fit(planted.X, planted.y)
    assert model.groups_ == plain.groups_
    watcher = Watcher(stop_after=2)
    with pytest.warns(ConvergenceWarning, match="the search was ended by"):
        model = GroupDiscoveryClassifier(6, n_features_per_round=2).set_callbacks(watcher).fit(planted.X, planted.y)
    assert len(model.support_features_) == 4


def test_few_samples_and_many_features():
    data = make_support_affiliated(30, 500, n_support=3, n_true=6, random_state=0)
    for X in (data.X, 1e4 * data.X):
        model = GroupDiscoveryClassifier(60).fit(X, data.y)
        assert max(r.gap for r in model.history_) <= 1e-4
        assert model.score(X, data.y) == 1.0


SCHEDULE = [1] * 11 + [2] * 5 + [3] * 4 + [4] * 2 + [5] * 2 + [6] * 2 + [7] * 2


@pytest.mark.parametrize(("n_features", "rounds"), [(5, [1] * 5), (22, [*SCHEDULE[:16], 1]), (83, [*SCHEDULE, 6])])
def test_automatic_rounds(n_features, rounds):
    """One a round up to ten, then a tenth of what has been found."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 160))
    y = X[:, :30].sum(axis=1) > 0
    model = GroupDiscoveryClassifier(n_features).fit(X, y)
    assert [len(r.features) for r in model.history_] == rounds


def test_automatic_rounds_after_fixed_features():
    """Fixed features do not count as found."""
    X, y = np.random.default_rng(0).standard_normal((100, 160)), np.arange(100) % 2
    model = GroupDiscoveryClassifier(50, fixed_features=np.arange(30)).fit(X, y)
    assert [len(r.features) for r in model.history_] == [30, *SCHEDULE[:15], 1]


def test_automatic_rounds_with_an_automatic_number():
    X, y = np.random.default_rng(0).standard_normal((100, 60)), np.arange(100) % 2
    rounds = [len(r.features) for r in GroupDiscoveryClassifier("auto", C=0.01).fit(X, y).history_]
    assert rounds == SCHEDULE[: len(rounds)]


@pytest.mark.parametrize("correlation", ["pearson", None])
@pytest.mark.parametrize("fixed", [None, [3, 40]])
def test_automatic_paths_are_nested(correlation, fixed):
    """The first features are the same for every number."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 90))
    X[:, 45:] += X[:, :45]
    y = X[:, :20].sum(axis=1) + rng.standard_normal(120) > 0
    options = {"correlation": correlation, "fixed_features": fixed, "threshold": 0.6}
    longest = GroupDiscoveryClassifier(40, **options).fit(X, y).support_features_
    for n_features in (2, 3, 9, 10, 11, 12, 13, 27, 39):
        np.testing.assert_array_equal(
            GroupDiscoveryClassifier(n_features, **options).fit(X, y).support_features_, longest[:n_features]
        )


@pytest.mark.parametrize(
    ("threshold", "message"), [(0.99, "Only 30 of 100 .* X has no more features"), (0.6, "correlated with one of them")]
)
def test_more_features_requested_than_available(threshold, message):
    """As many are taken as can be had, with one warning."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30))
    X[:, 15:] += 2 * X[:, :15]
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = GroupDiscoveryClassifier(threshold=threshold).fit(X, X[:, 0] > 0)
    assert len(caught) == 1
    assert len(model.groups_.members) == 30
