"""Scores in decreasing order: chunks, ties, excluded features and counts."""

import numpy as np
import pytest

from coterie.data import FeatureView, as_source
from coterie.data.top import CandidateMask, TopQuery
from coterie.order import TIE
from coterie.search import scores as scores_module
from coterie.search.scores import LazyScores, SharedPass


def with_scores(values):
    """Return a view and a residual for which the features have these scores: each depends on one sample only."""
    view = FeatureView.of(as_source(np.eye(len(values))), centred=False)
    return view, np.asarray(values, dtype=float)[:, None]


def test_chunks_double_up_to_the_limit(monkeypatch):
    monkeypatch.setattr(scores_module, "_MAX_CHUNK_FEATURES", 10)
    values = np.random.default_rng(0).permutation(40) + 1.0
    view, residual = with_scores(values)
    scores = LazyScores(view, residual)
    assert scores.chunks == []
    assert scores.needed_norm == np.inf
    n_read, sizes = 0, []
    for features, own in scores.descend(CandidateMask(view.moments), 3):
        expected = np.argsort(-values)[n_read : n_read + len(features)]
        np.testing.assert_array_equal(features, expected)
        np.testing.assert_array_equal(own, values[expected])
        n_read += len(features)
        sizes.append(len(features))
        assert len(scores.chunks) == len(sizes)
        assert scores.chunks[-1][0] is features
        assert scores.needed_norm == pytest.approx(own[-1] / np.linalg.norm(residual), rel=1e-6)
    assert sizes == [3, 6, 10, 10, 10, 1]
    next(scores.descend(CandidateMask(view.moments), 4))
    assert [len(features) for features, _ in scores.chunks] == [4]  # A new walk starts a new list.


def test_tied_scores_are_in_one_chunk():
    """Scores are tied up to a share of the best score, not of their own size."""
    tie = TIE * 8.0
    values = np.array([1.0, 4.0 - 0.9 * tie, 8.0, 4.0, 4.0 + 0.9 * tie, 4.0 - 2 * tie, 0.5])
    view, residual = with_scores(values)
    chunks = list(LazyScores(view, residual).descend(CandidateMask(view.moments), 3))
    assert [sorted(features) for features, _ in chunks] == [[1, 2, 3, 4], [0, 5, 6]]
    assert chunks[0][0][0] == 2
    for _, own in chunks:
        assert (np.diff(own) <= 0).all()


def test_scores_of_zero():
    view, residual = with_scores([0.0, 3.0, 0.0, 1.0])
    scores = LazyScores(view, residual)
    chunks = list(scores.descend(CandidateMask(view.moments), 1))
    assert [len(features) for features, _ in chunks] == [1, 3]
    assert scores.needed_norm == 0.0
    scores = LazyScores(view, np.zeros_like(residual))
    ((features, own),) = scores.descend(CandidateMask(view.moments), 2)
    assert sorted(features) == [0, 1, 2, 3]
    assert own.tolist() == [0.0] * 4
    assert scores.needed_norm == 0.0


def test_excluded_features_and_their_scores():
    view, residual = with_scores([5.0, 1.0, 4.0, 3.0, 2.0])
    scores = LazyScores(view, residual)
    assert [len(part) for part in scores.excluded()] == [0, 0]
    candidates = CandidateMask(view.moments, np.array([0, 3]))
    assert next(scores.descend(candidates, 2))[0].tolist() == [2, 4]
    features, own = scores.excluded()
    assert dict(zip(features.tolist(), own.tolist(), strict=True)) == {0: 5.0, 3: 3.0}
    next(scores.descend(CandidateMask(view.moments, np.array([1])), 2))
    assert scores.excluded()[0].tolist() == [1]  # The last walk counts.


def test_number_of_scored_features():
    view, residual = with_scores([5.0, 1.0, 4.0, 3.0, 2.0])
    scores, candidates = LazyScores(view, residual), CandidateMask(view.moments)
    assert scores.n_scored == 0
    list(scores.descend(candidates, 2))
    assert scores.n_scored == 5
    assert scores.of(np.array([3, 0])).tolist() == [3.0, 5.0]
    assert scores.n_scored == 7
    scores.count(10)
    next(scores.descend(candidates, 1))
    assert scores.n_scored == 22


def test_results_of_a_shared_pass_are_used_once():
    view, residual = with_scores(np.arange(1.0, 31.0))
    candidates = CandidateMask(view.moments)
    shared = SharedPass([view])
    assert shared.n_passes == 0.0
    first, second = shared.best([TopQuery(view, residual, candidates, 4), TopQuery(view, residual[::-1], candidates, 4)])
    assert shared.n_passes == 1.0
    assert set(first.hint.tolist()) >= {26, 27, 28, 29}
    assert set(second.hint.tolist()) >= {0, 1, 2, 3}
    assert next(first.descend(candidates, 2))[0].tolist() == [29, 28]
    assert first.n_scored == len(first.hint)
    assert next(first.descend(candidates, 3))[0].tolist() == [29, 28, 27]
    assert first.n_scored == len(first.hint) + 30  # The second walk scores all features.
    assert LazyScores(view, residual).hint is None
