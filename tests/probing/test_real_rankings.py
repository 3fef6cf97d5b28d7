"""On real data, if available: exact values of the k-NN criterion, and Madelon's informative features."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from coterie import DependencyAwareSelector, KNNCriterion
from coterie.baselines import BestIndividualSelector
from coterie.data import as_source

INFORMATIVE = {28, 48, 64, 105, 128, 153, 241, 281, 318, 336, 338, 378, 433, 442, 451, 453, 455, 472, 475, 493}


def load(path):
    with np.load(path, allow_pickle=False) as file:
        if "X" in file:
            return file["X"], file["y"]
        X = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        return sparse.csc_array(X), file["y"]


@pytest.mark.parametrize("name", ["madelon", "gisette_valid", "spambase", "basehock"])
def test_nearest_neighbours_as_in_scikit_learn(real_data, name, rng):
    X, y = load(real_data / f"{name}.npz")
    rows = np.sort(rng.choice(len(y), 700, replace=False))
    X, y = X[rows], y[rows]
    evaluate = KNNCriterion(3).bind(as_source(X), y, 3)
    for size in (1, 3, 20, 57):
        features = np.sort(rng.choice(X.shape[1], size, replace=False))
        columns = X[:, features]
        columns = (columns.toarray() if sparse.issparse(columns) else columns).astype(np.float64)
        with threadpool_limits(1):
            expected = cross_val_score(KNeighborsClassifier(3, algorithm="brute"), columns, y, cv=3).mean()
        assert evaluate(features) == expected


def test_madelon(real_data):
    X, y = load(real_data / "madelon.npz")
    X, y = X[:800], y[:800]
    model = DependencyAwareSelector(n_features_to_select=20, n_probes=1000, random_state=0).fit(X, y)
    assert len(INFORMATIVE.intersection(model.support_features_.tolist())) >= 12
    single = BestIndividualSelector(n_features_to_select=20).fit(X, y)
    assert len(INFORMATIVE.intersection(single.support_features_.tolist())) <= 7
