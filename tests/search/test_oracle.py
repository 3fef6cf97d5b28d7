"""Ranking, walk and groups compared with brute force, and pruned with unpruned search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import GroupDiscoveryClassifier
from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import ROUNDING
from coterie.data import FeatureView, as_source
from coterie.data.top import CandidateMask
from coterie.order import by_content
from coterie.search import oracle as oracle_module
from coterie.search.oracle import Affiliations, Block, Oracle, _Matches
from coterie.search.scores import LazyScores
from tests import naive
from tests.conftest import grouped_matrix, random_sparse, sparse_counts


def make_oracle(X, *, threshold=0.7, weight=None, prune=True, n_threads=1, centred=True, standardize=False, **options):
    view = FeatureView.of(as_source(X), weight, standardize=standardize, centred=centred, n_threads=n_threads)
    return Oracle(PearsonCorrelation(view, prune=prune), threshold=threshold, **options)


def residual_for(y, rng):
    alpha = rng.random(len(y))
    alpha[y > 0] *= 0.5 / alpha[y > 0].sum()
    alpha[y < 0] *= 0.5 / alpha[y < 0].sum()
    return (alpha * y)[:, None]


def as_dict(supports, affiliations):
    return {int(z): set(affiliations.feature[affiliations.support == k].tolist()) for k, z in enumerate(supports)}


@st.composite
def matrices(draw):
    """Draw dense or sparse data with correlated, constant and negated columns, with or without weights."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kind = draw(st.sampled_from(["dense", "counts", "signed"]))
    if kind == "dense":
        X, y = grouped_matrix(rng, n_samples=draw(st.integers(8, 40)), n_features=draw(st.integers(3, 30)))
    else:
        X, y = sparse_counts(rng, n_samples=draw(st.integers(10, 60)), n_features=draw(st.integers(31, 60)))
        if kind == "signed":
            X = X * rng.choice([-1.0, 1.0], X.shape)
    X[:, rng.integers(X.shape[1])] = rng.integers(0, 2)
    j, k = rng.integers(X.shape[1], size=2)
    X[:, j] = draw(st.sampled_from([1.0, -1.0, 3.0])) * X[:, k] + draw(st.sampled_from([0.0, 1.0]))
    weight = rng.integers(0, 3, len(X)).astype(float) + 0.5 if draw(st.booleans()) else None
    threshold = draw(st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.0]))
    return X, y, weight, threshold, rng


@settings(max_examples=60)
@given(data=matrices(), is_sparse=st.booleans(), n_new=st.integers(1, 6), centred=st.booleans())
def test_rounds_and_groups_are_those_of_naive_code(data, is_sparse, n_new, centred):
    X, y, weight, threshold, rng = data
    C = naive.correlation(X, weight)
    matrix = sparse.csc_array(X) if is_sparse else X
    complete = make_oracle(matrix, threshold=threshold, weight=weight, centred=centred)
    unpruned = make_oracle(matrix, threshold=threshold, weight=weight, centred=centred, prune=False)
    ranked = make_oracle(matrix, threshold=threshold, weight=weight, centred=centred, affiliates="ranked")
    supports, encountered = [], set()
    for _ in range(3):
        residual = residual_for(y, rng)
        scores = (X - naive.mean(X, weight)).T @ residual[:, 0] if centred else X.T @ residual[:, 0]
        new, fresh = naive.walk(scores, C, supports, n_new, threshold)
        # Ties (between copies, for example) are broken by content here and by position in the naive code: skip them.
        pool = [j for j in np.argsort(-np.abs(scores)) if C[j, j] > 0]
        values = np.abs(scores[pool])
        if len(values) > 1 and np.abs(np.diff(values)).min() < 1e-9 * values.max():
            return
        for oracle in (complete, unpruned, ranked):
            block = oracle.find_block(residual, n_new)
            assert block.features.tolist() == new
            np.testing.assert_allclose(block.scores, np.abs(scores[new]), atol=1e-12)
            oracle.add_block(block)
        supports += new
        encountered |= fresh
        if not new:
            break
    if not supports:
        return
    expected = naive.complete_groups(X, supports, threshold, weight)
    for oracle in (complete, unpruned):
        assert as_dict(supports, oracle.collect()) == expected
    assert complete.n_evaluated <= unpruned.n_evaluated
    found = ranked.collect()
    assert as_dict(supports, found) == naive.ranked_groups(X, supports, encountered, threshold, weight)
    np.testing.assert_allclose(found.correlation, C[found.feature, np.array(supports)[found.support]], atol=1e-9)
    n_evaluated = ranked.n_evaluated
    np.testing.assert_array_equal(ranked.collect().support, found.support)
    assert ranked.n_evaluated == n_evaluated  # No pair is evaluated twice.


@settings(max_examples=40)
@given(data=matrices(), is_sparse=st.booleans(), seed=st.integers(0, 1000))
def test_strong_pairs_are_all_pairs_over_the_threshold(data, is_sparse, seed):
    X, y, weight, threshold, rng = data
    C = naive.correlation(X, weight)
    varying = np.flatnonzero(np.diag(C) > 0)
    supports = np.random.default_rng(seed).permutation(varying)[:20]
    oracle = make_oracle(sparse.csc_array(X) if is_sparse else X, weight=weight, n_threads=2)
    residual = residual_for(y, rng)
    oracle.final_scores(residual)
    near = [abs(abs(C[j, z]) - threshold) < 1e-8 for j in varying for z in supports]
    pairs = {
        (int(j), int(k))
        for j in varying
        for k, z in enumerate(supports)
        if abs(C[j, z]) >= threshold - (1e-8 if any(near) else 0)
    }
    for exemplar in (None, oracle._exemplar):
        feature, position, value = oracle.correlation.strong(supports, threshold, exemplar)
        found = set(zip(feature.tolist(), position.tolist(), strict=True))
        assert found <= pairs if any(near) else found == pairs
        np.testing.assert_allclose(value, C[feature, supports[position]], atol=1e-9)


def test_nested_binary_columns_reach_the_size_bound():
    """n = 100, counts 20 within 40: the correlation equals the bound, so a threshold at the bound must keep the pair."""
    X = np.zeros((100, 3))
    X[:20, 0], X[:40, 1], X[50:55, 2] = 1, 1, 1
    bound = np.sqrt(20 * 60 / (40 * 80))
    assert naive.correlation(X)[0, 1] == pytest.approx(bound)
    oracle = make_oracle(sparse.csc_array(X))
    for threshold, expected in ((bound, [0, 1]), (bound + 1e-6, [1])):
        feature, _, _ = oracle.correlation.strong(np.array([1]), threshold)
        assert feature.tolist() == expected


def test_disjoint_columns_can_be_affiliated():
    """An indicator and its complement share no sample, and have correlation -1."""
    half = np.arange(40) % 2 == 0
    X = sparse.csc_array(np.c_[half, ~half, np.arange(40) < 3].astype(float))
    feature, _, value = make_oracle(X).correlation.strong(np.array([0]), 0.7)
    assert feature.tolist() == [0, 1]
    assert value[1] == pytest.approx(-1.0)


def test_pruning_reduces_evaluations(rng):
    X, y = sparse_counts(rng, n_samples=200, n_features=2000, density=0.02)
    results = []
    for prune in (True, False):
        oracle = make_oracle(sparse.csc_array(X), prune=prune)
        oracle.add_block(oracle.find_block(residual_for(y, np.random.default_rng(0)), 10))
        before = oracle.n_evaluated
        oracle.collect()
        results.append(oracle.n_evaluated - before)
    assert results[0] < results[1] < 10 * 2000 / 2  # Pairs without a common sample are never evaluated.


def test_layers_reduce_scored_features(rng):
    """Rare features cannot have large scores, so they are not scored."""
    X = random_sparse(rng, (500, 3000), density=0.002, format="csc")
    X.data[:] = 1.0
    common = sparse.csc_array((rng.random((500, 20)) < 0.5).astype(float))
    view = FeatureView.of(as_source(sparse.hstack([X, common], format="csc")))
    y = np.where(common.toarray()[:, 0] > 0, 1.0, -1.0)
    scores = LazyScores(view, residual_for(y, rng))
    features, values = next(scores.descend(CandidateMask(view.moments), 1))
    assert features[0] == 3000
    assert scores.n_scored < 100
    assert values[0] == pytest.approx(scores.of(np.array([3000]))[0])


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_descent_is_the_sorted_order(rng, centred, standardize):
    X, y = sparse_counts(rng)
    X = X * 10.0 ** rng.integers(-3, 3, X.shape[1])
    view = FeatureView.of(as_source(sparse.csc_array(X)), standardize=standardize, centred=centred)
    moments = view.moments
    residual = residual_for(y, rng)
    candidates = rng.random(X.shape[1]) < 0.9
    candidates &= moments.norm > 0
    chunks = list(LazyScores(view, residual).descend(CandidateMask.where(moments, candidates), 3))
    features, scores = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    expected = np.abs((X - (X.mean(axis=0) if centred else 0)).T @ residual[:, 0])
    if standardize:
        expected[moments.norm > 0] /= moments.scale[moments.norm > 0]
    assert sorted(features) == np.flatnonzero(candidates).tolist()
    np.testing.assert_allclose(scores, expected[features], atol=1e-12)
    assert (np.diff(scores) <= 1e-9 * scores[0]).all()


def test_samples_of_weight_zero_do_not_break_ties(rng):
    X = rng.integers(0, 2, (40, 30)).astype(float)
    X[:15] = X[:15, :1]  # equal on the first samples
    weight = np.repeat([1.0, 0.0], [15, 25])
    absent = by_content(as_source(X[:15]), np.arange(30))
    np.testing.assert_array_equal(by_content(as_source(X), np.arange(30), weight), absent)


def test_order_by_content_does_not_depend_on_position(rng):
    X = rng.standard_normal((20, 6))
    X[:, 4] = X[:, 1]
    order = rng.permutation(6)
    first = X[:, by_content(as_source(X), np.arange(6))]
    second = X[:, order][:, by_content(as_source(np.asfortranarray(X[:, order])), np.arange(6))]
    np.testing.assert_array_equal(first, second)
    names = ["f", "e", "d", "c", "b", "a"]
    ranked = by_content(as_source(X, names), np.arange(6)).tolist()
    assert ranked.index(4) < ranked.index(1)  # "b" before "e"


@pytest.mark.parametrize("affiliates", ["complete", "ranked"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_blocks_do_not_depend_on_the_matrix_size(rng, monkeypatch, is_sparse, affiliates):
    X, y = sparse_counts(rng, n_samples=80, n_features=60) if is_sparse else grouped_matrix(rng, n_features=60)
    residuals = [residual_for(y, rng) for _ in range(3)]
    results = []
    for most in (2048, 5, 1):
        monkeypatch.setattr(oracle_module, "_MAX_MATRIX_FEATURES", most)
        oracle = make_oracle(sparse.csc_array(X) if is_sparse else X, threshold=0.5, affiliates=affiliates)
        for residual in residuals:
            oracle.add_block(oracle.find_block(residual, 6))
        results.append((oracle.supports.tolist(), as_dict(oracle.supports.tolist(), oracle.collect())))
    assert len(results[0][0]) > 6
    assert any(results[0][1].values())
    assert results[0] == results[1] == results[2]


def test_merging_keeps_the_closest_and_the_earlier_of_equals():
    old = Affiliations(np.array([1, 2, 3]), np.array([0, 0, 1]), np.array([0.8, -0.9, 0.7]), np.zeros(3))
    new = Affiliations(np.array([1, 2, 4]), np.array([2, 2, 2]), np.array([-0.85, 0.9, 0.75]), np.ones(3))
    both = old.merged(new)
    assert both.feature.tolist() == [1, 2, 3, 4]
    assert both.support.tolist() == [2, 0, 1, 2]
    assert both.correlation.tolist() == [-0.85, -0.9, 0.7, 0.75]
    assert len(Affiliations.empty().merged(Affiliations.empty()).feature) == 0


def test_the_earlier_of_two_tied_supports_keeps_a_feature():
    """A later support feature takes over only if its correlation is larger by more than the rounding."""
    tie = 0.8 + ROUNDING
    best = _Matches(4, threshold=0.7)
    best.update(np.arange(4), np.array([0.8, -0.8, 0.8, 0.6]), 3)
    best.update(np.arange(4), np.array([tie, tie, np.nextafter(tie, 1), 0.7 - ROUNDING]), 5)
    assert best.support.tolist() == [3, 3, 5, 5]
    assert best.value.tolist() == [0.8, -0.8, np.nextafter(tie, 1), 0.7 - ROUNDING]


def test_blocks_are_truncated_to_their_first_new_features(rng):
    oracle = make_oracle(rng.standard_normal((20, 8)))
    oracle.add_block(Block(np.array([2, 5]), np.ones(2)))
    found = Affiliations(np.array([0, 1, 7]), np.array([0, 2, 3]), np.full(3, 0.8), np.zeros(3))
    block = Block(np.array([4, 2, 6, 5, 3]), np.array([9.0, 8.0, 7.0, 6.0, 5.0]), (found,))
    assert oracle.new_features(block).tolist() == [4, 6, 3]
    assert oracle.truncated(block, 3) is block
    shorter = oracle.truncated(block, 1)
    assert shorter.features.tolist() == [4, 2, 5]
    assert shorter.scores.tolist() == [9.0, 8.0, 6.0]
    assert [part.feature.tolist() for part in shorter.encountered] == [[0, 1]]  # The third feature joined a removed one.
    oracle.add_block(shorter)
    assert oracle.supports.tolist() == [2, 5, 4]
    assert set(np.flatnonzero(~oracle._candidates.mask)) == {0, 1, 2, 4, 5}


def test_fixed_blocks_have_no_scores(rng):
    block = make_oracle(rng.standard_normal((20, 8))).fixed_block([3, 1])
    assert block.features.tolist() == [3, 1]
    assert block.features.dtype == np.int64
    assert np.isnan(block.scores).all()


def test_size_of_queries(rng):
    """Four chunks of two candidates per new feature and eight more, of at most 2048 candidates."""
    oracle = make_oracle(rng.standard_normal((20, 8)))
    (query,) = oracle.queries(np.ones((20, 1)), 3)
    assert query.size == 4 * 14
    assert query.view is oracle.view
    assert [oracle_module.first_chunk(n) for n in (1, 1020, 1021)] == [10, 2048, 2048]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
def test_final_scores_and_products_of_the_angle_bound(rng, weighted, centred, standardize):
    X = rng.standard_normal((30, 6)) + 2.0
    X[:, 4] = 1.5
    weight = rng.random(30) + 0.5 if weighted else None
    w = np.ones(30) if weight is None else weight
    residual = rng.standard_normal((30, 2))
    if centred:
        residual -= residual.mean(axis=0)
    oracle = make_oracle(X, weight=weight, centred=centred, standardize=standardize)
    scores = oracle.final_scores(residual)
    used = X - naive.mean(X, weight) if centred else X
    scale = np.sqrt(np.average((X - naive.mean(X, weight)) ** 2, axis=0, weights=w)) if standardize else np.ones(6)
    varying = np.arange(6) != 4
    expected = np.linalg.norm(used.T @ residual, axis=1)[varying] / scale[varying]
    np.testing.assert_allclose(scores[varying], expected)
    assert scores[4] == 0.0
    exemplar = oracle._exemplar
    np.testing.assert_allclose(np.abs(exemplar.scores), np.abs(used.T @ residual[:, 0]), atol=1e-12)
    if not centred:
        np.testing.assert_allclose(exemplar.scores, used.T @ residual[:, 0], atol=1e-12)
    assert exemplar.shift == pytest.approx(0.0 if centred else residual[:, 0].sum())
    vector = residual[:, 0] / w
    assert exemplar.norm == pytest.approx(np.sqrt(w @ (vector - np.average(vector, weights=w)) ** 2))


def test_groups_given_to_a_representative(rng):
    """The best feature first, without members of other groups, and with names, scores and correlations."""
    X, y = grouped_matrix(rng, n_factors=4, noise=0.6)
    residual, groups = residual_for(y, rng), []

    def last(group):
        groups.append(group)
        return group.features[-1]

    view = FeatureView.of(as_source(X, [f"f{j}" for j in range(40)]))
    oracle = Oracle(PearsonCorrelation(view), threshold=0.6, representative=last)
    assert not oracle.is_exact
    correlation = naive.correlation(X)
    scores = np.abs((X - X.mean(axis=0)).T @ residual[:, 0])
    supports = []
    for _ in range(2):
        block = oracle.find_block(residual, 2)
        np.testing.assert_allclose(block.scores, scores[block.features])
        supports += block.features.tolist()
        oracle.add_block(block)
    assert len(groups) > 1
    for group in groups:
        first = group.features[0]
        assert group.names == [f"f{j}" for j in group.features]
        np.testing.assert_allclose(group.scores, scores[group.features])
        np.testing.assert_allclose(group.correlation, correlation[first, group.features], atol=1e-9)
        earlier = supports[: supports.index(group.features[-1])]
        members = np.flatnonzero(np.abs(correlation[first]) >= 0.6)
        free = [j for j in members if not (np.abs(correlation[j, earlier]) >= 0.6).any()]
        assert sorted(group.features) == free
    with pytest.raises(ValueError, match=r"^representative returned 99\. It must return one of group.features: \["):
        Oracle(PearsonCorrelation(view), threshold=0.6, representative=lambda group: 99).find_block(residual, 1)


def test_medoids_have_the_largest_mean_correlation(rng):
    X, y = grouped_matrix(rng, n_factors=5, noise=0.7)
    residual = residual_for(y, rng)
    correlation = np.abs(naive.correlation(X))
    scores = np.abs((X - X.mean(axis=0)).T @ residual[:, 0])
    oracle = make_oracle(X, threshold=0.5, representative="medoid")
    block = oracle.find_block(residual, 1)
    members = np.flatnonzero(correlation[scores.argmax()] >= 0.5)
    assert len(members) > 2
    assert block.features.tolist() == [members[correlation[np.ix_(members, members)].sum(axis=1).argmax()]]
    pair = X[:, [scores.argmax()]] + np.c_[np.zeros(60), 0.1 * rng.standard_normal(60)]
    pair_scores = np.abs((pair - pair.mean(axis=0)).T @ residual[:, 0])
    block = make_oracle(pair, threshold=0.5, representative="medoid").find_block(residual, 1)
    assert block.features.tolist() == [pair_scores.argmax()]  # Two members are tied.


@pytest.mark.parametrize("n_new", [1, 3, 12, 40])
def test_without_a_threshold_blocks_are_the_best_features(rng, n_new):
    X, y = grouped_matrix(rng)
    residual = residual_for(y, rng)
    order = np.argsort(-np.abs((X - X.mean(axis=0)).T @ residual[:, 0]))
    oracle = make_oracle(X, threshold=np.inf)
    oracle.add_block(oracle.find_block(residual, n_new))
    assert oracle.supports.tolist() == order[:n_new].tolist()
    assert oracle.find_block(residual, n_new).features.tolist() == order[n_new : 2 * n_new].tolist()
    assert len(oracle.collect().feature) == 0


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("options", [{}, {"cv": 3, "random_state": 0}, {"n_features_per_round": "auto"}])
def test_ranked_groups_of_an_exhausted_search_have_all_encountered_features(rng, is_sparse, options):
    """The last walk finds no new support feature, but encounters all features that are left."""
    factors = rng.standard_normal((200, 3))
    X = np.repeat(factors, 4, axis=1) + 0.2 * rng.standard_normal((200, 12))
    y = np.where(factors.sum(axis=1) > 0, 1, -1)
    model = GroupDiscoveryClassifier(12, **{"n_features_per_round": 3, "affiliates": "ranked", **options})
    with pytest.warns(ConvergenceWarning, match="Only 3 of 12 support features"):
        model.fit(sparse.csc_array(X) if is_sparse else X, y)
    assert sorted(sorted(group.members.tolist()) for group in model.groups_) == np.arange(12).reshape(3, 4).tolist()


@pytest.mark.parametrize(("n_new", "most"), [(1, 1.25), (3, 1.25), (10, 1.5)])
def test_ranked_walks_compute_few_correlations_in_vain(rng, n_new, most):
    """The walk of the paper compares each feature that it visits with all support features so far."""
    X, y = grouped_matrix(rng, n_samples=100, n_features=600, n_factors=60, noise=0.8)
    for matrix, threshold in ((X, 0.6), (rng.standard_normal((100, 600)), 0.6)):
        C = np.abs(naive.correlation(matrix))
        oracle = make_oracle(matrix, threshold=threshold, affiliates="ranked")
        supports, met, n_compared = [], set(), 0
        for _ in range(4):
            residual = residual_for(y, rng)
            new, fresh = naive.walk(matrix.T @ residual[:, 0], C, supports, n_new, threshold, excluded=met)
            scores = np.abs(matrix.T @ residual[:, 0])
            visited = [j for j in np.argsort(-scores) if scores[j] >= scores[new[-1]] and j not in met and j not in supports]
            for j in visited:
                n_compared += len(supports) + sum(scores[k] > scores[j] for k in new)
            oracle.add_block(oracle.find_block(residual, n_new))
            supports, met = supports + new, met | fresh
        assert oracle.supports.tolist() == supports
        assert n_compared <= oracle.n_evaluated <= most * n_compared
        groups = naive.ranked_groups(matrix, supports, met, threshold)
        assert as_dict(supports, oracle.collect()) == groups  # Members move to the closest support feature.
