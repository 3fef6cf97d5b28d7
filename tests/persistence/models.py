"""Models of every kind, with every kind of record that a file can contain."""

from __future__ import annotations

import numpy as np
import pandas as pd

import coterie
from coterie import baselines


def data():
    """Return samples, labels of two classes, and numeric targets."""
    rng = np.random.default_rng(20261116)
    X = rng.integers(-8, 9, (40, 12)) / 4.0  # exact in any arithmetic
    X[:, 6:9] = X[:, :3] + rng.integers(-2, 3, (40, 3)) / 8.0
    target = X[:, 0] - X[:, 1] + 0.25 * X[:, 3]
    return X, np.where(target > 0, "yes", "no"), target


def models():
    """Return estimators with every kind of record that a file can contain."""
    X, y, target = data()
    yield "classifier", coterie.GroupDiscoveryClassifier(4, cv=3, random_state=0).fit(X, y)
    yield "classifier-cv", coterie.GroupDiscoveryClassifierCV(6, n_features_per_round=2, cv=3, random_state=0).fit(X, y)
    yield "regressor", coterie.GroupDiscoveryRegressor(3, predict_with="groups").fit(X, target)
    yield "one-class", coterie.GroupDiscoveryOneClass(3).fit(np.abs(X))
    yield "grm", coterie.GlobalRedundancySelector("fisher", 4, fdr=None).fit(X, y)
    yield "daf", daf().fit(X, y)
    yield "bif", baselines.BestIndividualSelector("ridge", n_features_to_select=3).fit(X, y)
    yield "sffs", baselines.FloatingSelector(coterie.RidgeCriterion(), n_features_to_select=3).fit(X, y)
    yield "mrmr", baselines.MRMRSelector(3).fit(X, y)
    yield "oscar", baselines.OSCARSelector(3).fit(X, y)


def daf(**options):
    """Return a selector fitted with few probes."""
    criterion = coterie.KNNCriterion(3)
    return coterie.DependencyAwareSelector(criterion, n_features_to_select=3, n_probes=30, random_state=0, **options)


def small():
    """Return a classifier of four named features."""
    X = np.random.default_rng(0).standard_normal((30, 4))
    X[:, 2] = X[:, 0] + 0.2 * X[:, 2]
    model = coterie.GroupDiscoveryClassifier(2, n_features_per_round=1)
    return model.fit(pd.DataFrame(X, columns=["a", "b", "c", "ü"]), np.where(X[:, 0] > 0, "yes", "no"))
