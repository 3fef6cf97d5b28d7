"""Writes the files of version 1 that later versions must open: models of every kind, a checkpoint, a result.

They were written on 2026-11-16, when files still named their classes by module path. They stay as they are; this script is
kept to show what is in them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import coterie
from coterie import baselines
from coterie.report import Discovery, write_result

ARCHIVE = Path(__file__).parent / "archive"


def data():
    """Samples, two classes, and a number to predict."""
    rng = np.random.default_rng(20261116)
    X = rng.integers(-8, 9, (40, 12)) / 4.0  # exact in any arithmetic
    X[:, 6:9] = X[:, :3] + rng.integers(-2, 3, (40, 3)) / 8.0
    target = X[:, 0] - X[:, 1] + 0.25 * X[:, 3]
    return X, np.where(target > 0, "yes", "no"), target


def models():
    """Estimators with every kind of record that a file can hold."""
    X, y, target = data()
    yield "classifier", coterie.GroupDiscoveryClassifier(4, cv=3, random_state=0).fit(X, y)
    yield "classifier-cv", coterie.GroupDiscoveryClassifierCV(6, n_features_per_round=2, cv=3, random_state=0).fit(X, y)
    yield "regressor", coterie.GroupDiscoveryRegressor(3, predict_with="groups").fit(X, target)
    yield "one-class", coterie.GroupDiscoveryOneClass(3).fit(np.abs(X))
    yield "grm", coterie.GlobalRedundancySelector("fisher", 4).fit(X, y)
    yield "daf", daf().fit(X, y)
    yield "bif", baselines.BestIndividualSelector("ridge", n_features_to_select=3).fit(X, y)
    yield "sffs", baselines.FloatingSelector(coterie.RidgeCriterion(), n_features_to_select=3).fit(X, y)
    yield "mrmr", baselines.MRMRSelector(3).fit(X, y)
    yield "oscar", baselines.OSCARSelector(3).fit(X, y)


def daf(**options):
    """A short run of probes."""
    criterion = coterie.KNNCriterion(3)
    options = {"sampling": "uniform", **options}  # there was nothing else
    return coterie.DependencyAwareSelector(criterion, n_features_to_select=3, n_probes=30, random_state=0, **options)


if __name__ == "__main__":
    if any(ARCHIVE.iterdir()):
        sys.exit("The archive is there already, and stays as it is.")
    X, y, _ = data()
    kept = {}
    for name, model in models():
        coterie.save(model, ARCHIVE / f"{name}.coterie")
        kept[name] = model.get_support(indices=True).tolist()
        if name == "classifier":
            result = Discovery(model, {"path": "synthetic"}, "classification")
            write_result(ARCHIVE / "result", result)
    (ARCHIVE / "kept.json").write_text(json.dumps(kept, indent=1) + "\n")
    daf(checkpoint=ARCHIVE / "probes.npz").fit(X, y)
