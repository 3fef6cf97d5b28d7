"""Criteria without labels."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold, cross_val_score

from coterie import DependencyAwareSelector
from coterie.baselines import BestIndividualSelector, FloatingSelector
from coterie.data import as_source
from coterie.probing import ClusteringCriterion, EstimatorCriterion, ReconstructionCriterion
from tests.conftest import grouped_matrix, sparse_counts
from tests.probing.test_criteria import subsets_of
from tests.probing.test_selector import assert_same


def clustered(rng):
    """Samples in two clusters that features 2 and 5 separate."""
    X = rng.standard_normal((60, 8))
    X[:30, [2, 5]] += 5.0
    return X


def mean_width(X, y=None):
    """A function of the columns alone, or with y."""
    return float(X.std(axis=0).mean())


def test_clustering_is_the_silhouette_of_k_means(rng):
    X = clustered(rng)
    evaluate = ClusteringCriterion(3, n_init=2, random_state=7).bind(as_source(X), None, None)
    for features in subsets_of(rng, 8):
        labels = KMeans(3, n_init=2, random_state=7).fit_predict(X[:, features])
        assert evaluate(features) == pytest.approx(silhouette_score(X[:, features], labels), abs=1e-12)
    flat = np.repeat([[0.0], [1.0]], 10, axis=0) * [1.0, 0.0]
    evaluate = ClusteringCriterion().bind(as_source(flat), None, None)
    assert evaluate(np.array([1])) == -1.0  # a constant feature cannot be clustered
    assert evaluate(np.array([0])) == 1.0


@pytest.mark.parametrize("kind", [np.asarray, sparse.csc_array])
@pytest.mark.parametrize("scale", [1.0, 1e-70, 1e60])
def test_reconstruction_is_explained_variance(rng, kind, scale):
    X, _ = sparse_counts(rng, n_features=30)
    X = X.astype(np.float64)[:25]  # more features than samples
    centred = X - X.mean(axis=0)
    evaluate = ReconstructionCriterion(0.1).bind(as_source(kind(X * scale)), None, None)
    for features in subsets_of(rng, 30):
        mine = centred[:, features]
        penalty = 0.1 * (mine**2).sum() / len(features)
        if penalty == 0:
            continue
        fitted = Ridge(penalty, fit_intercept=False).fit(mine, centred).predict(mine)
        expected = 1 - ((centred - fitted) ** 2).sum() / (centred**2).sum()
        assert evaluate(features) == pytest.approx(expected, abs=1e-9)


def test_reconstruction_with_a_negligible_penalty(rng):
    X, _ = grouped_matrix(rng)
    evaluate = ReconstructionCriterion(1e-15).bind(as_source(X), None, None)
    mine = X[:, [3, 8, 9]]
    fitted = LinearRegression().fit(mine, X).predict(mine)
    expected = 1 - ((X - fitted) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    assert evaluate(np.array([3, 8, 9])) == pytest.approx(expected)
    constant = X.copy()
    constant[:, 4] = 2.5
    assert ReconstructionCriterion().bind(as_source(constant), None, None)(np.array([4])) == 0.0


@pytest.mark.parametrize("criterion", ["clustering", "reconstruction", mean_width, PCA(1), GaussianMixture(random_state=0)])
def test_selectors_need_no_labels(criterion, rng):
    X = clustered(rng)
    model = DependencyAwareSelector(criterion, n_features_to_select=2, n_probes=60, random_state=0, inclusion_probability=0.4)
    assert not model.__sklearn_tags__().target_tags.required
    if isinstance(criterion, PCA):
        model.set_params(criterion=PCA(), inclusion_probability=None, max_probe_size=4)
    model.fit(X)
    if criterion in ("clustering", mean_width):
        assert set(model.support_features_) == {2, 5}
    assert BestIndividualSelector(criterion, n_features_to_select=2).fit(X).scores_.shape == (8,)
    assert len(FloatingSelector(criterion, n_features_to_select=2).fit(X).support_features_) == 2


def test_an_estimator_is_scored_over_folds(rng):
    X = clustered(rng)
    evaluate = EstimatorCriterion(GaussianMixture(2, random_state=0)).bind(as_source(X), None, 4)
    expected = cross_val_score(GaussianMixture(2, random_state=0), X[:, [1, 2]], cv=KFold(4)).mean()
    assert evaluate(np.array([1, 2])) == expected


def test_labels_change_nothing(rng, tmp_path):
    X, y = grouped_matrix(rng)
    model = DependencyAwareSelector("reconstruction", n_features_to_select=2, n_probes=40, random_state=0)
    without = model.fit(X)
    assert_same(DependencyAwareSelector(**without.get_params()).fit(X, y), without)
    kept = DependencyAwareSelector(**{**model.get_params(), "n_probes": 25, "checkpoint": tmp_path / "probes"}).fit(X)
    assert_same(kept.set_params(n_probes=40).fit(X), without)  # from the checkpoint


def test_supervised_criteria_require_labels(rng):
    X, _ = grouped_matrix(rng)
    for criterion in ("knn", "svm", LinearRegression()):
        model = DependencyAwareSelector(criterion, n_features_to_select=2, n_probes=5)
        assert model.__sklearn_tags__().target_tags.required
        with pytest.raises(ValueError, match="requires y to be passed"):
            model.fit(X)
    with pytest.raises(ValueError, match="n_clusters=60 must be less than the 60 samples"):
        DependencyAwareSelector(ClusteringCriterion(60), n_features_to_select=2).fit(X)
    with pytest.raises(ValueError, match="criterion='x' must be one of"):
        DependencyAwareSelector("x").fit(X)
