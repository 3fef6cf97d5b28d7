"""Best admissible sets and bounds on their values, compared with enumeration and with slow code."""

import itertools

import numpy as np
import pytest

from coterie.data import FeatureView, as_source
from coterie.data.top import CandidateMask
from coterie.search import admissible
from coterie.search.admissible import AdmissibleSets, best_set, bound_of_sets
from coterie.search.scores import LazyScores


class GivenCorrelation:
    """Correlation measure with given values."""

    def __init__(self, view, matrix):
        self.view, self.matrix = view, matrix

    def within(self, features):
        return self.matrix[np.ix_(features, features)]


class Problem:
    """Features with given scores and random correlations of 0.9 or 0.1. Features of score 0 are constant."""

    def __init__(self, seed, n_features, share, *, tied=False, n_constant=0, threshold=0.7):
        rng = np.random.default_rng(seed)
        n_all = n_features + n_constant
        self.scores = rng.integers(1, 5, n_all) * 1.0 if tied else 0.1 + rng.permutation(n_all) + rng.random(n_all) / 2
        constant = rng.permutation(n_all)[:n_constant]
        self.scores[constant] = 0.0
        conflicts = np.triu(rng.random((n_all, n_all)) < share, 1)
        self.conflicts = conflicts | conflicts.T
        self.order = np.argsort(-self.scores, kind="stable")[:n_features]
        X = np.eye(n_all)  # Without centring, the score of a feature is the absolute residual of one sample.
        X[:, constant] = 0.0
        self.residual = (self.scores * rng.choice([-1.0, 1.0], n_all))[:, None]
        self.view = FeatureView.of(as_source(X), centred=False)
        signs = np.where(np.triu(rng.random((n_all, n_all)) < 0.5), 1, -1)
        correlation = np.where(self.conflicts, 0.9, 0.1) * signs * signs.T
        np.fill_diagonal(correlation, 1.0)
        self.sets = AdmissibleSets(GivenCorrelation(self.view, correlation), threshold)
        if not np.isfinite(threshold):
            self.conflicts[:] = False

    def lazy_scores(self):
        return LazyScores(self.view, self.residual)

    def best_value(self, size, features=None):
        """Return the largest value of an admissible set of at most ``size`` features, by enumeration."""
        features = self.order if features is None else features
        best = 0.0
        for k in range(1, size + 1):
            for chosen in itertools.combinations(features, k):
                if not self.conflicts[np.ix_(chosen, chosen)].any():
                    best = max(best, (self.scores[list(chosen)] ** 2).sum())
        return best

    def clique_bound(self, features, size, beyond):
        """Return the bound of the module's docstring for features in decreasing order."""
        cliques = []
        for feature in features:
            own = next((clique for clique in cliques if self.conflicts[feature, clique].all()), None)
            if own is None:
                cliques.append([feature])
            else:
                own.append(feature)
        leaders = [clique[0] for clique in cliques[:size]]
        return (self.scores[leaders] ** 2).sum() + (size - len(leaders)) * beyond**2

    def limited_bound(self, n_known, size, beyond):
        """Return the bound from the first features, at most as many as are compared for sets of this size."""
        n_compared = admissible._n_compared(size)
        if size == 0:
            return 0.0
        beyond = self.scores[self.order[n_compared]] if n_compared < n_known else beyond
        return self.clique_bound(self.order[: min(n_known, n_compared)], size, beyond)


@pytest.fixture
def few_compared(monkeypatch):
    """Compare four features per feature of a set, and search among 30."""
    monkeypatch.setattr(admissible, "_n_compared", lambda size: 4 * max(size, 1))
    monkeypatch.setattr(admissible, "_n_searched", lambda size: 30)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("tied", [False, True])
def test_search_returns_the_best_set_above_the_floor(share, size, tied):
    for seed in range(4):
        problem = Problem(seed, 10, share, tied=tied, n_constant=2)
        best = problem.best_value(size)
        for floor in (0.0, 0.5 * best, best * (1 - 1e-9), best, 2 * best):
            features, scores, bound = problem.sets.search(problem.lazy_scores(), size, floor)
            assert bound == pytest.approx(max(best, floor), rel=1e-12)
            if floor >= best:
                assert len(features) == len(scores) == 0
                continue
            assert (scores**2).sum() == pytest.approx(best, rel=1e-12)
            np.testing.assert_array_equal(problem.scores[features], scores)
            assert len(np.unique(features)) == len(features) <= size
            assert not problem.conflicts[np.ix_(features, features)].any()


@pytest.mark.parametrize("size", [1, 2, 4])
def test_without_a_threshold_the_best_set_has_the_best_features(size):
    problem = Problem(0, 9, 0.8, threshold=np.inf)
    features, _, bound = problem.sets.search(problem.lazy_scores(), size, 0.0)
    assert sorted(features) == sorted(problem.order[:size])
    assert bound == pytest.approx((problem.scores[features] ** 2).sum())


def test_correlations_at_the_threshold_are_conflicts():
    for threshold, in_conflict in ((0.9, True), (0.9 + 1e-12, True), (0.9 + 1e-6, False), (0.1, True)):
        problem = Problem(1, 6, 0.5, threshold=threshold)
        matrix = problem.sets._conflicts(np.arange(6))
        expected = problem.conflicts & in_conflict if threshold > 0.1 else ~np.eye(6, dtype=bool)
        np.testing.assert_array_equal(matrix, expected)
        assert not problem.sets._conflicts(np.arange(6), 1).any()


@pytest.mark.usefixtures("few_compared")
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_search_reads_features_until_the_others_cannot_reach_the_floor(share, size):
    n_features, n_chunks_found = 40, set()
    for seed in range(3):
        problem = Problem(seed, n_features, share)
        ordered = problem.scores[problem.order]
        best = problem.best_value(size)
        for floor in (0.0, 0.6 * best, 0.8 * best, 0.97 * best, best, 1.2 * best, 3 * best):
            n_read, n_new, n_chunks, known, others, beyond = 0, 4 * size, 0, 0, 0.0, np.inf
            while n_read < n_features:
                n_read, n_new, n_chunks = min(n_read + n_new, n_features), 2 * n_new, n_chunks + 1
                known = min(n_read, 30)
                beyond = ordered[30] if n_read > 30 else ordered[n_read - 1]
                others = problem.limited_bound(known, size - 1, beyond)
                if others + beyond**2 <= floor or known == 30:
                    break
            scores = problem.lazy_scores()
            features, _, bound = problem.sets.search(scores, size, floor)
            inside = problem.best_value(size, problem.order[:known])
            assert len(scores.chunks) == n_chunks
            assert bound == pytest.approx(max(floor, inside, others + beyond**2), rel=1e-12)
            assert bound >= best * (1 - 1e-12)
            assert (problem.scores[features] ** 2).sum() == pytest.approx(inside if inside > floor else 0.0)
            n_chunks_found.add(n_chunks)
    assert len(n_chunks_found) > 1


@pytest.mark.usefixtures("few_compared")
def test_scores_beyond_the_list_count_even_if_they_are_small():
    """All 31 features conflict except for the last, which is not in the list of 30."""
    problem = Problem(0, 31, 1.0)
    last = problem.order[-1]
    problem.conflicts[last] = problem.conflicts[:, last] = False
    problem.sets.correlation.matrix[last] = problem.sets.correlation.matrix[:, last] = 0.0
    _, _, bound = problem.sets.search(problem.lazy_scores(), 2, 0.0)
    assert 0.0 < problem.scores[last] < 1.0
    assert bound == pytest.approx(problem.best_value(2))


@pytest.mark.usefixtures("few_compared")
@pytest.mark.parametrize("share", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("n_chunks", [0, 1, 2, 9])
@pytest.mark.parametrize("n_excluded", [0, 5, 20])
def test_upper_bound_after_a_walk_covers_excluded_features(share, n_chunks, n_excluded):
    for seed, size in itertools.product(range(3), (1, 2, 3)):
        problem = Problem(seed, 20, share, n_constant=2)
        excluded = np.random.default_rng(seed).permutation(problem.order)[:n_excluded]
        candidates = CandidateMask(problem.view.moments, excluded)
        scores = problem.lazy_scores()
        walk = list(itertools.islice(scores.descend(candidates, 3), n_chunks))
        n_read = sum(len(chunk) for chunk, _ in walk) or min(4 * size, 20 - n_excluded)
        left = [problem.scores[feature] for feature in problem.order if feature not in excluded]
        lowest = left[n_read - 1] if n_read < len(left) else 0.0
        known = int((problem.scores[problem.order] >= lowest).sum())
        bound = problem.sets.upper_bound(scores, candidates, size)
        assert bound == pytest.approx(problem.limited_bound(known, size, lowest), rel=1e-12)
        assert bound >= problem.best_value(size) * (1 - 1e-12)


@pytest.mark.parametrize("n_excluded", [0, 2, 4])
def test_upper_bound_after_a_walk_over_all_candidates_is_exact_for_cliques(n_excluded):
    """If all features are known, a bound for more features than there are cliques adds nothing for others."""
    problem = Problem(0, 4, 1.0)
    candidates = CandidateMask(problem.view.moments, problem.order[4 - n_excluded :])
    scores = problem.lazy_scores()
    list(scores.descend(candidates, 2))
    assert problem.scores.min() < 1.0
    for size in (1, 2, 3):
        assert problem.sets.upper_bound(scores, candidates, size) == pytest.approx(problem.scores.max() ** 2)
    problem = Problem(0, 4, 0.0)
    candidates = CandidateMask(problem.view.moments, problem.order[4 - n_excluded :])
    scores = problem.lazy_scores()
    list(scores.descend(candidates, 2))
    assert problem.sets.upper_bound(scores, candidates, 4) == pytest.approx((problem.scores**2).sum())


@pytest.mark.usefixtures("few_compared")
@pytest.mark.parametrize("chunk", [4, 7, 1 << 18])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.9])
def test_upper_bound_from_all_scores(monkeypatch, share, chunk):
    monkeypatch.setattr(admissible, "_CHUNK_FEATURES", chunk)
    for seed, size in itertools.product(range(4), (1, 2, 3)):
        problem = Problem(seed, 20, share, n_constant=3)
        bound = problem.sets.upper_bound_of(problem.scores, size)
        assert bound == pytest.approx(problem.limited_bound(20, size, 0.0), rel=1e-12)
        assert bound >= problem.best_value(size) * (1 - 1e-12)


@pytest.mark.usefixtures("few_compared")
def test_upper_bound_from_blocks_is_that_of_the_whole(monkeypatch):
    """Each block contributes its best features, and a bound on its other features."""
    problem = Problem(2, 24, 0.9)
    expected = [problem.sets.upper_bound_of(problem.scores, size) for size in (1, 2, 4)]

    def halves(function, scores, n_best):
        parts = []
        for first in (0, 12):
            own = FeatureView.of(as_source(np.eye(24)[:, first : first + 12]), centred=False)
            found = function(own, scores[first : first + 12], n_best)
            parts.append(found._replace(features=found.features + first))
        return parts

    monkeypatch.setattr(problem.view.__class__, "map_blocks", lambda self, *arguments: halves(*arguments))
    np.testing.assert_allclose([problem.sets.upper_bound_of(problem.scores, size) for size in (1, 2, 4)], expected, rtol=1e-12)


def test_numbers_of_compared_features():
    """Eight per feature of a set, but at most 512, or twice the size of the set; never more than 2048."""
    sizes = [0, 1, 10, 64, 65, 256, 300, 1024, 5000]
    assert [admissible._n_compared(size) for size in sizes] == [8, 8, 80, 512, 512, 512, 600, 2048, 2048]
    assert [admissible._n_searched(size) for size in sizes] == [512, 512, 512, 512, 512, 512, 600, 2048, 2048]


def test_bound_assumes_no_conflicts_beyond_the_list():
    conflicts = ~np.eye(3, dtype=bool)
    values = np.array([5.0, 4.0, 3.0])
    assert bound_of_sets(values, conflicts, 1, 2.0) == (5.0, True)
    assert bound_of_sets(values, conflicts, 3, 2.0) == (9.0, False)
    assert bound_of_sets(values[:0], conflicts[:0, :0], 2, 2.0) == (4.0, False)


def test_limits_of_a_search(monkeypatch):
    """The bound covers open branches. The limit of steps divides by the number of features and the size."""
    problem = Problem(3, 12, 0.4)
    values = problem.scores[problem.order] ** 2
    conflicts = problem.conflicts[np.ix_(problem.order, problem.order)]
    best = problem.best_value(4)
    bounds, n_needed = [], None
    for n_branches in range(60):
        monkeypatch.setattr(admissible, "_MAX_BRANCHES", n_branches)
        chosen, bound = best_set(values, conflicts, 4, 0.0)
        bounds.append(bound)
        assert bound >= best * (1 - 1e-12)
        if n_branches == 0:
            assert len(chosen) == 0
            assert bound == bound_of_sets(values, conflicts, 4)[0]
        if n_needed is None and bound == pytest.approx(best) and bound == pytest.approx(values[chosen].sum()):
            n_needed = n_branches
    assert n_needed is not None
    assert n_needed > 1
    assert (np.diff(bounds) <= 1e-12).all()
    monkeypatch.setattr(admissible, "_MAX_BRANCHES", 5000)
    for n_branches in range(n_needed + 1):
        monkeypatch.setattr(admissible, "_MAX_STEPS", 12 * 4 * n_branches + 12 * 4 - 1)
        assert best_set(values, conflicts, 4, 0.0)[1] == bounds[n_branches]
