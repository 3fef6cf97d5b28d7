"""SVM-RFE, compared with scikit-learn's RFE; L1-SVM, compared with LinearSVC."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie.baselines import L1SVMSelector, SVMRFESelector
from tests.conftest import grouped_matrix, sparse_counts


@parametrize_with_checks([SVMRFESelector(1, step="half", tol=1e-2), L1SVMSelector(1)])
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():  # columns far from zero: liblinear penalises the intercept and converges slowly
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("step", [1, 3, 0.25])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rfe_against_scikit_learn(rng, step, n_classes):
    X, y = grouped_matrix(rng, n_features=12)
    labels = y if n_classes == 2 else y + (X[:, 3] > 0)
    model = SVMRFESelector(4, step=step).fit(X, labels)
    reference = RFE(LinearSVC(max_iter=10_000, random_state=0), n_features_to_select=4, step=step).fit(X, labels)
    np.testing.assert_array_equal(model.get_support(), reference.support_)
    later = reference.ranking_[:, None] < reference.ranking_
    assert (model.ranking_[:, None] < model.ranking_)[later].all()
    assert sorted(model.ranking_) == list(range(1, 13))
    assert model.ranking_[model.support_features_].tolist() == [1, 2, 3, 4]
    weights = np.linalg.norm(np.atleast_2d(reference.estimator_.coef_), axis=0)
    np.testing.assert_allclose(np.abs(model.coef_[model.get_support()]), weights)


def test_rfe_by_halves_on_sparse_data(rng):
    X, y = sparse_counts(rng, n_features=40)
    model = SVMRFESelector(3, step="half").fit(sparse.csc_array(X), y)
    left = np.arange(40)
    for size in (20, 10, 5, 3):
        coef = LinearSVC(max_iter=10_000, random_state=0).fit(sparse.csr_array(X[:, left]), y).coef_[0]
        left = np.sort(left[np.argsort(coef**2, kind="stable")[-size:]])
    assert np.flatnonzero(model.get_support()).tolist() == left.tolist()
    assert model.transform(sparse.csc_array(X)).format == "csc"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_l1_svm_is_linear_svc_at_its_own_c(rng, n_classes):
    X, y = grouped_matrix(rng, n_features=12)
    labels = y if n_classes == 2 else y + (X[:, 3] > 0)
    for n_wanted in (1, 3, 5):
        model = L1SVMSelector(n_wanted).fit(X, labels)
        svc = LinearSVC(penalty="l1", dual=False, C=model.C_, max_iter=10_000, random_state=0).fit(X, labels)
        weights = np.linalg.norm(svc.coef_, axis=0)
        np.testing.assert_allclose(np.abs(model.coef_), weights)
        assert len(model.support_features_) == n_wanted
        assert (model.C_, np.count_nonzero(weights)) in model.path_
        # The largest weights are selected, and no model on the path has a closer number of features.
        assert np.abs(model.coef_[model.support_features_]).min() >= np.sort(weights)[-n_wanted]
        assert np.count_nonzero(weights) == min(count for _, count in model.path_ if count >= n_wanted)


def test_l1_svm_if_the_path_skips_the_number(rng):
    """The weight of two equal columns may be shared; one of them is selected."""
    x = rng.standard_normal(50)
    X = np.column_stack([x, x, 0.01 * rng.standard_normal(50)])
    model = L1SVMSelector(1).fit(X, x > 0)
    assert model.support_features_[0] in (0, 1)


def test_l1_svm_if_the_path_ends():
    """Feature 2 is empty and 1 repeats 0: the path has no third feature, but three are requested."""
    x = np.array([-2.0, -1.0, 1.0, 2.0])
    X = np.column_stack([x, x, np.zeros(4)])
    for data in (X, sparse.csr_array(X)):
        model = L1SVMSelector(3).fit(data, x > 0)
        assert model.support_features_[-1] == 2
        assert sorted(model.support_features_) == [0, 1, 2]


def test_wrong_parameters(rng):
    X, y = grouped_matrix(rng, n_features=5)
    for wrong in ({"step": 0}, {"step": 1.5}, {"step": "most"}, {"C": 0}, {"tol": -1}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SVMRFESelector(2, **wrong).fit(X, y)
    with pytest.raises(ValueError, match="constant"):
        L1SVMSelector(1).fit(np.zeros((6, 2)), [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("selector", [SVMRFESelector(2), L1SVMSelector(2)])
def test_indices_of_64_bits_and_any_number_of_iterations(selector, rng):
    """liblinear supports neither."""
    X, y = sparse_counts(rng, 60, 8, 0.5, n_copies=1)
    X = sparse.csc_array(X)
    expected = clone(selector).fit(X, y)
    long = sparse.csc_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    model = selector.set_params(max_iter=10**12).fit(long, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_nonfinite_model_is_an_error(monkeypatch, rng):
    X, y = grouped_matrix(rng, n_features=5)

    def fit(self, X, y):
        self.coef_, self.intercept_ = np.full((1, 5), np.inf), np.zeros(1)
        return self

    monkeypatch.setattr(LinearSVC, "fit", fit)
    with pytest.raises(ValueError, match=r"The linear SVM cannot be computed: .* Standardise the features"):
        SVMRFESelector(2).fit(X, y)
