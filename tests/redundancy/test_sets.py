"""Set of k features: relevance minus redundancy, compared with naive code and with all sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import GlobalRedundancySelector, load, save
from coterie.datasets import make_block_gaussian
from coterie.filters import correlation_score, fisher_score
from coterie.metrics import squared_redundancy
from coterie.redundancy import refinement
from coterie.redundancy.measures import MatrixRedundancy
from coterie.redundancy.solver import choose_set


@pytest.mark.filterwarnings("ignore:.*better than chance")
@parametrize_with_checks(
    [
        GlobalRedundancySelector(n_features_to_select=1, solution="set"),
        GlobalRedundancySelector(n_features_to_select=2, solution="set", redundancy_strength="cv", cv=2),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blocks():
    return make_block_gaussian(150, 6, 8, random_state=3)


def value(members, relevance, matrix, strength):
    """Return J by its definition."""
    members = list(members)
    pairs = [matrix[i, j] for i in members for j in members if i != j]
    return np.mean(relevance[members]) - (strength * np.mean(pairs) if pairs else 0.0)


def greedy(relevance, matrix, wanted, strength):
    members = []
    for _ in range(wanted):
        rest = [j for j in range(len(relevance)) if j not in members]
        members.append(max(rest, key=lambda j: value([*members, j], relevance, matrix, strength)))
    return members


def random_problem(seed, n=9, n_samples=6):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_samples, 3))
    X = factors @ rng.standard_normal((3, n)) + 0.5 * rng.standard_normal((n_samples, n))
    relevance = np.sort(rng.random(n))[::-1].copy()
    return relevance, np.corrcoef(X.T) ** 2


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([0.1, 0.5, 1.0, 2.0, 5.0]))
def test_against_all_sets(seed, wanted, strength):
    """No exchange is an improvement; the set is between the greedy and the best set."""
    relevance, matrix = random_problem(seed)
    found = choose_set(relevance, MatrixRedundancy(matrix), wanted, strength, 1000)
    mine = value(found.members, relevance, matrix, strength)
    assert found.converged
    assert len(set(found.members.tolist())) == wanted
    assert found.objective == pytest.approx(mine, abs=1e-12)
    assert mine >= value(greedy(relevance, matrix, wanted, strength), relevance, matrix, strength) - 1e-9
    best = max(value(one, relevance, matrix, strength) for one in itertools.combinations(range(9), wanted))
    assert mine <= best + 1e-12
    for place, entering in itertools.product(range(wanted), set(range(9)) - set(found.members.tolist())):
        other = found.members.tolist()
        other[place] = entering
        assert value(other, relevance, matrix, strength) <= mine + 1e-9


def test_nearly_always_the_best_of_all_sets():
    """Of 200 small problems, the exchanges end at the best set in most, and more often than the greedy method."""
    hits = {"greedy": 0, "exchanges": 0}
    for seed in range(200):
        relevance, matrix = random_problem(seed)
        best = max(value(one, relevance, matrix, 2.0) for one in itertools.combinations(range(9), 4))
        found = choose_set(relevance, MatrixRedundancy(matrix), 4, 2.0, 1000)
        hits["exchanges"] += found.objective >= best - 1e-9
        hits["greedy"] += value(greedy(relevance, matrix, 4, 2.0), relevance, matrix, 2.0) >= best - 1e-9
    assert hits["exchanges"] >= 160
    assert hits["exchanges"] > hits["greedy"] + 10


def test_first_feature_can_be_removed():
    """The best single feature is redundant with two others that are better in combination."""
    relevance = np.array([1.0, 0.98, 0.95, 0.1])
    matrix = np.eye(4)
    matrix[0, 1:3] = matrix[1:3, 0] = 0.6
    assert greedy(relevance, matrix, 2, 0.5)[0] == 0
    found = choose_set(relevance, MatrixRedundancy(matrix), 2, 0.5, 10)
    assert sorted(found.members) == [1, 2]
    assert found.n_exchanges == 1
    stopped = choose_set(relevance, MatrixRedundancy(matrix), 2, 0.5, 0)
    assert not stopped.converged
    assert 0 in stopped.members


def test_of_equal_exchanges_the_first_candidate_enters():
    """Candidates 1 to 4 are alike and go well with each other; the greedy set holds candidate 0, which repeats them."""
    relevance = np.array([1.0, 0.98, 0.98, 0.98, 0.98])
    matrix = np.eye(5)
    matrix[0, 1:] = matrix[1:, 0] = 0.6
    found = choose_set(relevance, MatrixRedundancy(matrix), 2, 0.5, 10)
    assert found.n_exchanges == 1
    assert sorted(found.members) == [1, 2]


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_members_in_order(seed):
    """The removal of the last member leaves the best set, and so on."""
    relevance, matrix = random_problem(seed)
    members = choose_set(relevance, MatrixRedundancy(matrix), 5, 1.0, 1000).members.tolist()
    while len(members) > 1:
        rest = {out: [one for one in members if one != out] for out in members}
        values = {out: value(rest[out], relevance, matrix, 1.0) for out in members}
        assert values[members[-1]] >= max(values.values()) - 1e-9
        members = rest[members[-1]]


@pytest.mark.parametrize("score", ["fisher", "information_gain"])
def test_what_the_selector_maximises(blocks, score):
    model = GlobalRedundancySelector(score, 6, solution="set", redundancy_strength=1.5).fit(blocks.X, blocks.y)
    scores = model.scores_
    relevance = model.relevance_
    chosen = model.support_features_
    assert model.objective_ == pytest.approx(relevance[chosen].mean() - 1.5 * squared_redundancy(blocks.X[:, chosen]))
    assert model.redundancy_strength_ == 1.5
    np.testing.assert_array_equal(np.flatnonzero(model.refined_scores_), np.sort(chosen))
    np.testing.assert_allclose(model.refined_scores_[chosen], 1 / 6)
    np.testing.assert_array_equal(model.ranking_[chosen], np.arange(1, 7))
    rest = np.argsort(model.ranking_)[6:]
    assert (np.diff(scores[rest]) <= 1e-12).all()
    assert not hasattr(model, "duality_gap_")


def test_fisher_enters_as_a_squared_correlation(blocks):
    """With two classes, the share of variance between them is the squared correlation with the labels."""
    classes = GlobalRedundancySelector("fisher", 5, solution="set").fit(blocks.X, blocks.y)
    numbers = GlobalRedundancySelector("correlation", 5, solution="set").fit(blocks.X, blocks.y.astype(float))
    share = fisher_score(blocks.X, blocks.y)
    np.testing.assert_allclose(share / (1 + share), correlation_score(blocks.X, blocks.y) ** 2, atol=1e-12)
    np.testing.assert_array_equal(classes.support_features_, numbers.support_features_)
    assert classes.objective_ == pytest.approx(numbers.objective_)


def test_without_the_matrix_and_sparse(blocks, monkeypatch):
    X = np.where(blocks.X > 0.5, blocks.X, 0.0)
    held = GlobalRedundancySelector("fisher", 7, solution="set", n_candidates=None).fit(X, blocks.y)
    monkeypatch.setattr(refinement, "_MAX_STORED", 0)
    for data in (X, sparse.csc_array(X), np.asfortranarray(X)):
        model = GlobalRedundancySelector("fisher", 7, solution="set", n_candidates=None).fit(data, blocks.y)
        np.testing.assert_array_equal(model.ranking_, held.ranking_)
        assert model.objective_ == pytest.approx(held.objective_)


@settings(max_examples=15)
@given(st.randoms(use_true_random=False))
def test_order_of_columns_does_not_matter(random):
    """Copies and ties included."""
    rng = np.random.default_rng(5)
    X = np.round(rng.standard_normal((30, 12)), 1)
    X = np.hstack([X, X[:, :4], -X[:, :2]])
    y = (X[:, 0] + X[:, 5] > 0).astype(int)
    columns = list(range(X.shape[1]))
    random.shuffle(columns)
    names = np.array([f"f{i:02d}" for i in range(X.shape[1])])
    plain = GlobalRedundancySelector("fisher", 5, solution="set", fdr=None).fit(X, y)
    moved = GlobalRedundancySelector("fisher", 5, solution="set", fdr=None).fit(X[:, columns], y)
    contents = [X[:, plain.support_features_], X[:, columns][:, moved.support_features_]]
    np.testing.assert_array_equal(contents[0], contents[1])
    assert len(names) == moved.n_features_in_


def test_one_feature_and_all_features(blocks):
    one = GlobalRedundancySelector("fisher", 1, solution="set").fit(blocks.X, blocks.y)
    assert one.support_features_[0] == np.argmax(one.scores_)
    everything = GlobalRedundancySelector("fisher", 48, solution="set", fdr=None).fit(blocks.X, blocks.y)
    assert sorted(everything.support_features_) == list(range(48))
    few = np.zeros(48)
    few[[3, 5]] = 1.0, 0.5
    with pytest.warns(UserWarning, match="2 of the 4 selected features have a score of 0.*Select at most 2 features"):
        padded = GlobalRedundancySelector(few, 4, solution="set").fit(blocks.X)
    assert set(padded.support_features_[:2]) == {3, 5}
    assert len(padded.support_features_) == 4


def test_little_strength_is_the_score_and_much_is_least_redundancy(blocks):
    weak = GlobalRedundancySelector("fisher", 4, solution="set", redundancy_strength=1e-9).fit(blocks.X, blocks.y)
    np.testing.assert_array_equal(np.sort(weak.support_features_), np.sort(np.argsort(-weak.scores_)[:4]))
    strong = GlobalRedundancySelector("fisher", 4, solution="set", redundancy_strength=100.0).fit(blocks.X, blocks.y)
    assert squared_redundancy(blocks.X[:, strong.support_features_]) < 0.2 * squared_redundancy(
        blocks.X[:, weak.support_features_]
    )


def test_choice_of_the_strength_by_hand(blocks):
    X, y = blocks.X, blocks.y
    model = GlobalRedundancySelector(
        "fisher",
        4,
        solution="set",
        redundancy_strength="cv",
        n_candidates="cv",
        cv=3,
        options={"estimator": LogisticRegression()},
    ).fit(X, y)
    results = model.cv_results_
    assert list(results["redundancy_strength"][:4]) == [1.0, 2.0, 4.0, 0.5]
    for row, (size, strength) in enumerate(zip(results["n_candidates"], results["redundancy_strength"], strict=True)):
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            one = GlobalRedundancySelector(
                "fisher", 4, solution="set", redundancy_strength=strength, n_candidates=int(size)
            ).fit(X[train], y[train])
            kept = np.sort(one.support_features_)
            share = LogisticRegression().fit(X[train][:, kept], y[train]).score(X[test][:, kept], y[test])
            assert results[f"split{fold}_test_score"][row] == pytest.approx(share)
    assert model.redundancy_strength_ in results["redundancy_strength"]


def test_saved_and_loaded(blocks, tmp_path):
    model = GlobalRedundancySelector("fisher", 4, solution="set", redundancy_strength="cv", cv=2).fit(blocks.X, blocks.y)
    save(model, tmp_path / "model.coterie")
    back = load(tmp_path / "model.coterie")
    assert back.get_params() == model.get_params()
    assert back.redundancy_strength_ == model.redundancy_strength_
    np.testing.assert_array_equal(back.transform(blocks.X), model.transform(blocks.X))


def test_unfinished_exchanges_warn(monkeypatch):
    relevance = np.array([1.0, 0.98, 0.95, 0.1])
    matrix = np.eye(4)
    matrix[0, 1:3] = matrix[1:3, 0] = 0.6
    monkeypatch.setattr(refinement, "choose_set", lambda *given: choose_set(*given[:-1], 0))
    with pytest.warns(ConvergenceWarning, match="can still be improved after 0 exchanges"):
        GlobalRedundancySelector(relevance, 2, solution="set", redundancy_strength=0.5, redundancy="precomputed").fit(matrix)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": [[0, 1]]}, "groups only applies to solution='weights'"),
        ({"options": {"method": "alm"}}, "method='alm' only applies to solution='weights'"),
        ({"redundancy_strength": 0}, "redundancy_strength=0 must be"),
        ({"redundancy_strength": "strong"}, "redundancy_strength='strong' must be"),
        ({"solution": "sets"}, "solution='sets' must be one of 'set', 'weights'"),
    ],
)
def test_wrong_input(options, message, blocks):
    with pytest.raises(ValueError, match=message):
        GlobalRedundancySelector("fisher", 3, **{"solution": "set", **options}).fit(blocks.X, blocks.y)


def test_validation_requires_labels(blocks):
    with pytest.raises(ValueError, match="redundancy_strength='cv' requires y to be passed"):
        GlobalRedundancySelector("variance", 3, solution="set", redundancy_strength="cv").fit(blocks.X)
    GlobalRedundancySelector("variance", 3, solution="weights", redundancy_strength="cv").fit(blocks.X)  # no set
