"""Errors for invalid input."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from tests.redundancy import by_weights

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 6))
y = np.arange(30) % 2
A = np.corrcoef(X.T) ** 2


def scores_with(value):
    scores = np.ones(6)
    scores[4] = value
    return scores


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score_func": scores_with(np.nan)}, "1 NaN score.*first for feature 4.*Assign a score to every feature"),
        ({"score_func": scores_with(np.inf)}, "1 infinite score.*feature 4"),
        ({"score_func": scores_with(-0.1)}, "1 negative score.*feature 4.*Clip the scores at 0"),
        ({"score_func": lambda X, y: -X.var(axis=0)}, "6 negative score"),
        ({"score_func": np.zeros(6)}, "All scores are 0"),
        ({"score_func": np.ones(5)}, r"scores of score_func have shape \(5,\), but X has 6 features"),
        ({"score_func": lambda X, y: 1.0}, r"scores of score_func have shape \(\)"),
        ({"score_func": ["a"] * 6}, "scores of score_func must be numbers"),
        ({"score_func": "fischer"}, "score_func='fischer' must be one of 'variance'"),
        ({"n_features_to_select": 0}, "n_features_to_select=0"),
        ({"n_features_to_select": 1.5}, "must be a whole number of at least 1 or a fraction"),
        ({"n_features_to_select": "auto"}, "n_features_to_select='auto' must be a whole number"),
        ({"n_candidates": 1}, "n_candidates=1 is less than the 2 features to select"),
        ({"n_candidates": 0}, "n_candidates=0"),
        ({"n_candidates": "all"}, "n_candidates='all'"),
        ({"redundancy": "cosine"}, "redundancy='cosine' must be one of"),
        ({"redundancy": None}, "redundancy=None must be one of"),
        ({"redundancy": A[:5]}, "must be a square matrix"),
        ({"redundancy": A[:5, :5]}, r"redundancy has shape \(5, 5\), but there are 6 features"),
        ({"redundancy": A + np.triu(np.ones((6, 6)))}, "is not symmetric"),
        ({"redundancy": A - 0.9 * np.eye(6)}, "is not positive semidefinite.*smallest eigenvalue -0"),
        ({"redundancy": np.where(np.eye(6), 1, np.nan)}, "contains NaN or infinity, first between features 0 and 1"),
        ({"redundancy": lambda X: np.ones((3, 4))}, "must be a square matrix"),
        ({"redundancy": lambda X: -np.eye(6)}, "The matrix returned by redundancy is not positive semidefinite"),
        ({"redundancy": lambda X: np.diag([1.0, 1, 0, 1, 1, 1])}, r"redundancy returned 0 for feature \d with itself"),
        ({"redundancy": "precomputed"}, "Pass scores as score_func"),
        ({"groups": [[0, 6]]}, r"groups\[0\] has index 6, but X has 6 features"),
        ({"groups": [[0, 1], ["a", "b"]]}, r"groups\[1\] contains names, but X has no feature names"),
        ({"groups": [[1, 1]]}, r"groups\[0\] contains a feature twice"),
        ({"groups": 3}, "groups must be"),
        ({"options": {"group_strength": 0}}, "group_strength=0"),
        ({"options": {"method": "newton"}}, "method='newton'"),
        ({"options": {"tol": 0}}, "tol=0"),
        ({"options": {"max_iter": 0}}, "max_iter=0"),
        ({"n_jobs": 1.5}, "n_jobs=1.5"),
    ],
)
def test_wrong_parameters(options, message):
    model = by_weights(**{"n_features_to_select": 2, "fdr": None, **options})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "scores_")


def test_groups_with_unknown_names():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"groups\[0\] contains 'z', which is not a feature of X"):
        by_weights("variance", 2, groups=[["a", "z"]]).fit(pd.DataFrame(X, columns=list("abcdef")))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (A[:5], "must be a square matrix"),
        (A - 0.9 * np.eye(6), "X, the redundancy matrix, is not positive semidefinite"),
        (-np.eye(6), "not positive semidefinite"),
    ],
)
def test_wrong_precomputed_matrix(data, message):
    with pytest.raises(ValueError, match=message):
        by_weights(np.ones(6), 2, redundancy="precomputed").fit(data)


def test_precomputed_features_without_redundancy_are_last():
    matrix = A.copy()
    matrix[2], matrix[:, 2] = 0, 0
    model = by_weights(np.ones(6), 2, redundancy="precomputed", n_candidates=None).fit(matrix)
    assert model.ranking_[2] == 6
    assert model.scores_[2] == 0


def test_labels():
    with pytest.raises(ValueError, match="requires y to be passed"):
        by_weights("fisher", 2).fit(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        by_weights(lambda X, y: np.ones(6), 2).fit(X, y[:5])
    with pytest.raises(ValueError, match="only one class"):
        by_weights("relieff", 2).fit(X, np.zeros(30))


def test_data():
    with pytest.raises(ValueError, match="All features of X are constant"):
        by_weights("variance", 1).fit(np.ones((5, 3)))
    bad = X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="sample 3 of feature 2"):
        by_weights(np.ones(6), 2).fit(bad)
    with pytest.raises(ValueError, match="expecting 6"):
        by_weights("variance", 2).fit(X).transform(X[:, :5])
    with pytest.raises(NotFittedError):
        by_weights("variance", 2).transform(X)


def test_too_many_pairs(monkeypatch):
    from coterie.redundancy import estimator

    monkeypatch.setattr(estimator, "MAX_MATRIX", 4)
    for options in ({"redundancy": "mutual_info"}, {"options": {"method": "alm"}}):
        with pytest.raises(
            ValueError, match=r"matrix of all pairs of 6 candidates is too large\. Set n_candidates to at most 4"
        ):
            by_weights("variance", 2, **options).fit(X)
    by_weights("variance", 2).fit(X)


def test_failed_fit_keeps_the_previous_result():
    model = by_weights("variance", 2).fit(X)
    kept, ranking = model._kept(), model.ranking_
    with pytest.raises(ValueError, match="negative"):
        model.set_params(score_func=-np.ones(6)).fit(X)
    np.testing.assert_array_equal(model._kept(), kept)
    np.testing.assert_array_equal(model.ranking_, ranking)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (A * 1.7e308, r"redundancy has a largest value of 2e\+308, which is too far from 1\. Divide it by this value"),
        (A * 1e-320, "redundancy has a largest value of 1e-320"),
        (A + 1j, "redundancy must be a matrix of numbers: the values have type complex128"),
        (A.astype(str), "redundancy must be a matrix of numbers: the values have type <U"),
        ([[1], [1, 2]], "redundancy must be a matrix of numbers: setting an array element"),
    ],
)
def test_invalid_matrices(matrix, message):
    with pytest.raises(ValueError, match=message):
        by_weights("fisher", 2, redundancy=matrix).fit(X, y)


def test_scores_that_are_not_numbers():
    for scores, kind in ((np.ones(6) + 1j, "complex128"), (["1"] * 6, "<U1")):
        with pytest.raises(ValueError, match=f"The scores of score_func must be numbers: the values have type {kind}"):
            by_weights(scores, 2).fit(X, y)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
def test_means_far_above_the_deviations(kind):
    near = np.round(X * 256)
    far = 3.0 + near * 2.0**-40
    expected = by_weights("fisher", 2, fdr=None).fit(near, y)
    model = by_weights("fisher", 2, fdr=None).fit(kind(far), y)
    np.testing.assert_allclose(model.refined_scores_, expected.refined_scores_, atol=1e-6)
