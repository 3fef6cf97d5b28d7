"""Groups without labels, compared with the greedy walk over the matrix of all correlations."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import CorrelationGroups, load, save
from coterie.correlation import PearsonCorrelation, SpearmanCorrelation, SymmetricalUncertainty, grouping
from coterie.data import FeatureView, as_source, memory
from tests import naive
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks(
    [
        CorrelationGroups(),
        CorrelationGroups(0.9, correlation="spearman", representative="variance"),
        CorrelationGroups(0.5, correlation="su"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def brute_force(C, order, fixed, threshold):
    """Return a dict from representative to members, from the matrix of all correlations and an order."""
    strong = np.abs(C) >= threshold - 1e-10
    supports = list(fixed)
    for j in order:
        if C[j, j] != 0 and j not in supports and not strong[j, supports].any():
            supports.append(int(j))
    groups = {int(z): set() for z in supports}
    for j in np.flatnonzero(np.diag(C) != 0):
        if j not in groups and supports:
            best = np.abs(C[j, supports]).max()
            groups[next(z for z in supports if abs(C[j, z]) >= best - 1e-10)].add(int(j))
    return groups


def order_of(X, C, representative, threshold, weight=None):
    """Return features by number of neighbours, then variance (or by variance only), then content."""
    variance = naive.norm(X, weight) ** 2
    prints = X.T @ np.random.default_rng(20120626).standard_normal(len(X))
    neighbours = (np.abs(C) >= threshold - 1e-10).sum(axis=1) if representative == "neighbours" else np.zeros(len(C))
    tie = 1e-9 * variance.max()
    steps = np.round(variance / max(tie, 1e-300))
    return sorted(range(len(C)), key=lambda j: (-neighbours[j], -steps[j], -round(prints[j], 7), j))


def found_groups(model):
    return {group.support: set(group.affiliated.tolist()) for group in model.groups_}


@st.composite
def tables(draw):
    """Draw small integers: equal, negated and constant columns, correlations at the threshold, equal variances."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, m = draw(st.integers(3, 12)), draw(st.integers(1, 14))
    X = rng.integers(-2, 3, (n, m)).astype(float)
    for _ in range(draw(st.integers(0, 4))):
        j, k = rng.integers(m, size=2)
        X[:, j] = draw(st.sampled_from([1.0, -1.0, 2.0])) * X[:, k]
    return X, rng


@settings(max_examples=80)
@given(
    table=tables(), threshold=st.sampled_from([0.25, 0.5, 0.75, 1.0]), is_sparse=st.booleans(),
    representative=st.sampled_from(["neighbours", "variance"]), batch=st.sampled_from([1, 3, 256]),
)  # fmt: skip
def test_groups_are_those_of_brute_force(table, threshold, representative, is_sparse, batch):
    X, rng = table
    if not naive.norm(X).any():
        return
    C = naive.correlation(X)
    form = sparse.csc_array(X) if is_sparse else X
    fixed = [int(j) for j in np.flatnonzero(np.diag(C) != 0)[:1]] if rng.random() < 0.3 else []
    model = CorrelationGroups(threshold, representative=representative, fixed_features=fixed or None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "_FIRST_BATCH_FEATURES", batch)
        model.fit(form)
    order = order_of(X, C, representative, threshold)
    assert found_groups(model) == brute_force(C, order, fixed, threshold)
    for group in model.groups_:
        np.testing.assert_allclose(group.correlation, C[group.support, group.affiliated], atol=1e-9)
        pairs = np.abs(C[np.ix_(group.members, group.members)])[np.triu_indices(len(group), 1)]
        assert group.purity.minimum == pytest.approx(pairs.min() if len(pairs) else 1.0)
        assert group.purity.mean == pytest.approx(pairs.mean() if len(pairs) else 1.0)
    # Any order of the columns gives the same groups, up to equal columns.
    turn = rng.permutation(X.shape[1])
    again = CorrelationGroups(threshold, representative=representative).fit(form[:, turn])
    if not fixed:
        columns = [X[:, j].tolist() for j in model.support_features_]
        assert [X[:, turn[j]].tolist() for j in again.support_features_] == columns
        assert [len(group) for group in again.groups_] == [len(group) for group in model.groups_]


@pytest.mark.parametrize("correlation", ["pearson", "spearman", "su"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_measure_dense_and_sparse(rng, monkeypatch, correlation, is_sparse, weighted):
    monkeypatch.setattr(grouping, "_FIRST_BATCH_FEATURES", 5)
    monkeypatch.setattr(grouping, "_MAX_BATCH_FEATURES", 70)
    X, _ = sparse_counts(rng, n_samples=60) if is_sparse else grouped_matrix(rng, 60, 90, n_factors=30)
    X[:, 11] = 3.0
    weight = rng.integers(0, 3, 60).astype(float) if weighted else None
    form = sparse.csr_matrix(X) if is_sparse else X
    results = []
    for n_jobs in (1, 2):
        model = CorrelationGroups(0.6, correlation=correlation, n_jobs=n_jobs, verbose=0).fit(form, sample_weight=weight)
        results.append([(g.support, g.affiliated.tolist(), g.correlation.tolist()) for g in model.groups_])
    assert results[0] == results[1]
    repeated = X if weight is None else np.repeat(X, weight.astype(int), axis=0)
    if correlation == "su":  # The measure itself is compared with naive code elsewhere.
        C = SymmetricalUncertainty(FeatureView.of(as_source(repeated))).within(np.arange(X.shape[1]))
    else:
        ranks = stats.rankdata(repeated, axis=0) if correlation == "spearman" else repeated
        C = naive.correlation(ranks)
    supports = model.support_features_
    apart = np.abs(C[np.ix_(supports, supports)])[~np.eye(len(supports), dtype=bool)]
    assert (apart < 0.6).all()
    members = np.concatenate([group.members for group in model.groups_])
    assert sorted(members.tolist()) == np.flatnonzero(np.diag(C) > 0).tolist()  # All features except constant ones, each once.
    for group in model.groups_:
        for j, r in zip(group.affiliated, group.correlation, strict=True):
            assert abs(r) == pytest.approx(np.abs(C[j, supports]).max(), abs=1e-9)
            assert r == pytest.approx(C[j, group.support], abs=1e-9)
    assert 11 not in members
    assert model.n_correlations_evaluated_ <= model.n_correlations_possible_


def test_the_feature_with_the_most_neighbours_is_the_representative(rng):
    hub = rng.standard_normal(500)
    X = np.column_stack([hub, *(hub + 0.6 * rng.standard_normal(500) for _ in range(5)), 9 * rng.standard_normal(500)])
    assert abs(np.corrcoef(X.T)[1, 2]) < 0.8 < abs(np.corrcoef(X.T)[0, 1])
    model = CorrelationGroups(0.8).fit(X)
    assert found_groups(model) == {0: {1, 2, 3, 4, 5}, 6: set()}
    assert model.scores_.tolist() == [5, 1, 1, 1, 1, 1, 0]
    assert model.correlated_feature_sets_ == [{0, 1, 2, 3, 4, 5}]
    assert model.correlated_feature_dict_ == {0: {1, 2, 3, 4, 5}}
    assert model.transform(X).shape == (500, 2)
    assert len(CorrelationGroups(0.8, representative="variance").fit(X).groups_) > 2


def test_user_defined_scores(rng):
    X, _ = grouped_matrix(rng, 60, 40)
    C, wish = naive.correlation(X), rng.random(40)
    expected = brute_force(C, np.argsort(-wish), [], 0.7)
    seen = []
    for representative in (wish, wish.tolist(), lambda data: seen.append(data) or wish):
        model = CorrelationGroups(0.7, representative=representative).fit(X)
        assert found_groups(model) == expected
        assert model.scores_.tolist() == wish.tolist()
    assert seen[0] is X


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"threshold": 0.0}, "threshold=0.0 must be a number above 0 and at most 1"),
        ({"correlation": None}, "correlation=None must be one of 'pearson', 'spearman', 'su' or a function"),
        ({"representative": "score"}, "representative='score' must be one of 'neighbours', 'variance'"),
        ({"representative": [1.0, 2.0]}, r"representative provides scores of shape \(2,\), but X has 5 features"),
        ({"representative": [1, 2, 3, 4, np.nan]}, "NaN or infinite"),
        ({"representative": lambda X: ["a"] * 5}, "representative must provide one numeric score per feature"),
        ({"fixed_features": [1]}, "fixed_features has feature 1, which is constant"),
    ],
)
def test_bad_parameters(rng, parameters, message):
    X = rng.standard_normal((20, 5))
    X[:, 1] = 0
    with pytest.raises(ValueError, match=message):
        CorrelationGroups(**parameters).fit(X)


def test_fixed_features_may_be_correlated(rng):
    X, _ = grouped_matrix(rng, 60, 40, n_factors=3)
    C = np.abs(naive.correlation(X))
    first, second = np.argwhere(np.triu(C, 1) > 0.7)[0]
    model = CorrelationGroups(0.7, fixed_features=[second, first]).fit(X)
    assert model.support_features_[:2].tolist() == [second, first]
    assert [group.round for group in model.groups_][:3] == [0, 0, 1]
    rest = model.support_features_[2:]
    assert (C[np.ix_(rest, model.support_features_)] < 0.7).sum() == len(rest) * (len(rest) + 1)


def test_frames_names_and_files(rng, tmp_path):
    X, _ = grouped_matrix(rng, 60, 12)
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
    model = CorrelationGroups(0.6, fixed_features=["gene 3"]).fit(frame)
    assert model.groups_[0].names[0] == "gene 3"
    assert "gene 3" in model.correlated_feature_dict_
    assert model.get_feature_names_out().tolist() == [f"gene {j}" for j in sorted(model.support_features_)]
    assert set(model.groups_.to_frame()["role"]) == {"support", "affiliated"}
    save(model, tmp_path / "groups.coterie")
    again = load(tmp_path / "groups.coterie")
    assert again.groups_.to_json() == model.groups_.to_json()
    assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    pipeline = make_pipeline(StandardScaler(), CorrelationGroups(0.6, fixed_features=[3]))
    assert pipeline.fit_transform(X).shape == (60, len(model.groups_))


def test_progress_is_shown(rng, capsys):
    X, _ = grouped_matrix(rng)
    CorrelationGroups(verbose=1).fit(X)
    assert "representatives" in capsys.readouterr().err


def test_purities_do_not_depend_on_batches(rng, monkeypatch):
    X, _ = grouped_matrix(rng, 60, 200)
    measure = PearsonCorrelation(FeatureView.of(as_source(X)))
    groups = [np.arange(a, b) for a, b in ((0, 1), (1, 3), (3, 70), (70, 72), (72, 190), (190, 191), (191, 200))]
    together = grouping.group_purities(measure, groups)
    monkeypatch.setattr(grouping, "_MAX_SHARED_MEMBERS", 1)
    np.testing.assert_allclose(together, grouping.group_purities(measure, groups), atol=1e-12)
    C = np.abs(naive.correlation(X))[1, 2]
    assert together[1] == pytest.approx((C, C, C))


@pytest.mark.parametrize("kind", ["float64 C", "float32 F", "int8", "double precision"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", [PearsonCorrelation, SpearmanCorrelation])
def test_many_columns_by_blas_are_exact(rng, monkeypatch, kind, weighted, measure):
    """Results equal those of small batches, although some pairs are closer to the threshold than single precision."""
    X, _ = grouped_matrix(rng, 70, 90)
    X = {"float64 C": X, "double precision": X, "float32 F": np.asfortranarray(X, dtype=np.float32)}.get(
        kind, np.round(3 * X).astype(np.int8)
    )
    X[:, 5] = 1
    weight = rng.integers(0, 3, 70) * 1.0 if weighted else None
    if kind == "double precision":
        monkeypatch.setattr(memory, "_SINGLE_PRECISION", 10)
    view = FeatureView.of(as_source(X), weight, n_threads=2)
    supports = np.setdiff1d(rng.permutation(90)[:75], [5])
    monkeypatch.setattr(memory, "_MANY_COLUMNS", 10**9)
    C = np.abs(measure(view).within(supports))
    border = float(np.sort(C[np.triu_indices(len(C), 1)])[-300])
    for threshold in (border, border + 3e-10, border - 1e-9, 0.5):
        few = measure(view).strong(supports, threshold)
        monkeypatch.setattr(memory, "_MANY_COLUMNS", 1)
        monkeypatch.setattr(memory, "_BLOCK_FEATURES", 13)
        many = measure(view).strong(supports, threshold)
        monkeypatch.setattr(memory, "_MANY_COLUMNS", 10**9)
        assert few.feature.tolist() == many.feature.tolist()
        assert few.position.tolist() == many.position.tolist()
        np.testing.assert_allclose(few.correlation, many.correlation, atol=1e-12)
        assert len(many.feature) > len(supports)
        assert 5 not in many.feature
