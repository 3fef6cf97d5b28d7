"""The table of held-out scores, and the choice of a candidate."""

import numpy as np
import pandas as pd
import pytest

from coterie.validation.score_table import Candidate, choose, merge_paths, score_table, smallest_size

ONE = Candidate(0.1, 0.7, False, "support")


def table(n_features, C, mean, half):
    """Return a table of two folds whose scores are ``mean - half`` and ``mean + half``."""
    mean, half = np.array(mean, dtype=float), np.array(half, dtype=float)
    splits = {"split0_test_score": mean - half, "split1_test_score": mean + half}
    return {"n_features": np.array(n_features), "C": np.array(C, dtype=float), "mean_test_score": mean, **splits}


def test_exhausted_folds_keep_their_last_score():
    sizes, scores = merge_paths([[(2, 0.5), (4, 0.7)], [(2, 0.6), (4, 0.6), (6, 0.9)], [(3, 0.1), (6, 0.2)]])
    assert sizes.tolist() == [3, 4, 6]
    np.testing.assert_allclose(scores, [[0.5, 0.7, 0.7], [0.6, 0.6, 0.9], [0.1, 0.1, 0.2]])


def test_sizes_that_stopped_paths_have_not_reached_are_left_out():
    paths = [[(2, 0.5), (4, 0.7), (6, 0.8)], [(2, 0.6), (4, 0.6)]]
    assert merge_paths(paths, 4)[0].tolist() == [2, 4]
    assert merge_paths(paths, 1)[0].tolist() == [2]


def test_a_row_for_each_candidate_and_size():
    other = Candidate(1.0, 0.5, True, "groups")
    results = score_table({ONE: [[(1, 0.5), (2, 0.6)], [(1, 0.7), (2, 0.6)]], other: [[(1, 0.0)], [(1, 1.0)]]})
    frame = pd.DataFrame(results)
    assert list(frame) == [
        "C", "threshold", "standardize", "predict_with", "n_features", "mean_test_score", "std_test_score",
        "split0_test_score", "split1_test_score",
    ]  # fmt: skip
    assert frame["C"].tolist() == [0.1, 0.1, 1.0]
    assert frame["predict_with"].tolist() == ["support", "support", "groups"]
    assert frame["standardize"].tolist() == [False, False, True]
    assert frame["n_features"].tolist() == [1, 2, 1]
    np.testing.assert_allclose(frame["mean_test_score"], [0.6, 0.6, 0.5])
    np.testing.assert_allclose(frame["std_test_score"], [0.1, 0.0, 0.5])


@pytest.mark.parametrize(
    ("rule", "n_features", "C", "mean", "half", "row"),
    [
        ("best", [1, 2, 3], [1, 1, 1], [0.5, 0.7, 0.7], [0, 0, 0], 1),
        ("best", [3, 2, 2], [1, 1, 0.1], [0.7, 0.7, 0.7], [0, 0, 0], 2),
        ("best", [1, 2, 3], [1, 1, 1], [np.nan, 0.7, np.nan], [0, 0, 0], 1),
        # Two folds: the standard error of the best row is half of their difference (ddof=1).
        ("one_se", [1, 2, 3], [1, 1, 1], [0.61, 0.65, 0.7], [0, 0, 0.095], 0),
        ("one_se", [1, 2, 3], [1, 1, 1], [0.59, 0.65, 0.7], [0, 0, 0.095], 1),
        ("one_se", [1, 2, 3], [1, 1, 1], [0.61, 0.65, 0.7], [1, 1, 0], 2),
        ("one_se", [2, 2, 3], [0.1, 1, 1], [0.64, 0.65, 0.7], [0, 0, 0.095], 1),
        ("one_se", [2, 2, 3], [1, 0.1, 1], [0.65, 0.65, 0.7], [0, 0, 0.095], 1),
        ("one_se", [1, 2, 3], [1, 1, 1], [np.nan, 0.65, 0.7], [0, 0, 0.095], 1),
    ],
)
def test_choice(rule, n_features, C, mean, half, row):
    assert choose(table(n_features, C, mean, half), rule) == row


def test_no_score_at_all():
    with pytest.raises(ValueError, match="NaN for every number of features"):
        choose(table([1], [1], [np.nan], [0]), "best")


def by_deviance(n_features, C, deviance, half=0.0, score=0.5):
    """Return a table of two folds with these deviances. All scores are equal unless given."""
    deviance = np.array(deviance, dtype=float)
    columns = {"split0_test_deviance": deviance - half, "split1_test_deviance": deviance + half}
    zeros = np.zeros(len(deviance))
    return {**table(n_features, C, zeros + score, zeros), "mean_test_deviance": deviance, **columns}


@pytest.mark.parametrize(
    ("n_features", "C", "deviance", "row"),
    [
        ([1, 2, 3], [1, 1, 1], [0.9, 0.4, 0.5], 1),
        ([3, 2, 2], [1, 1, 0.1], [0.4, 0.4, 0.4], 2),
        ([1, 2, 3], [1, 1, 1], [np.nan, 0.7, 0.6], 2),
    ],
)
def test_choice_by_deviance(n_features, C, deviance, row):
    """The smallest deviance is chosen, whatever the scores are."""
    best_elsewhere = np.where(np.arange(3) == row, 0.1, 0.9)
    assert choose(by_deviance(n_features, C, deviance, score=best_elsewhere), "deviance") == row
    assert choose(by_deviance(n_features, C, deviance, score=best_elsewhere), "best") != row


def test_fewest_features_apply_to_the_deviance():
    assert choose(by_deviance([1, 2, 3], [1, 1, 1], [0.1, 0.5, 0.4]), "deviance", fewest=2) == 2


@pytest.mark.parametrize(("half", "size"), [(0.0, 3), (0.05, 3), (0.15, 2), (0.35, 1)])
def test_the_smallest_size_is_within_one_standard_error(half, size):
    """With two folds, the standard error of the best row is half of their difference."""
    results = by_deviance([1, 2, 3], [1, 1, 1], [0.7, 0.5, 0.4], half)
    assert smallest_size(results, "deviance") == smallest_size(results, "one_se") == size
    assert choose(results, "deviance") == 2
    assert choose(results, "one_se") == size - 1


def test_the_smallest_size_by_score():
    results = table([1, 2, 3], [1, 1, 1], [0.61, 0.65, 0.7], [0, 0, 0.095])
    assert smallest_size(results, "best") == results["n_features"][choose(results, "one_se")] == 1


def test_deviances_are_columns_of_the_table():
    scores = {ONE: [[(1, 0.5), (2, 0.6)], [(1, 0.7), (2, 0.6)]]}
    results = score_table(scores, None, {ONE: [[(1, 0.8), (2, 0.4)], [(1, 0.6), (2, 0.2)]]})
    np.testing.assert_allclose(results["mean_test_deviance"], [0.7, 0.3])
    np.testing.assert_allclose(results["split1_test_deviance"], [0.6, 0.2])
    assert "mean_test_deviance" not in score_table(scores)
