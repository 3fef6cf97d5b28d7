"""Writes the file that must be readable for ever. Only for use before the first release: after it, the file stays as it is."""

from pathlib import Path

import numpy as np
import pandas as pd

import coterie

if __name__ == "__main__":
    X = np.random.default_rng(0).standard_normal((30, 4))
    X[:, 2] = X[:, 0] + 0.2 * X[:, 2]
    model = coterie.GroupDiscoveryClassifier(2, n_features_per_round=1)
    model.fit(pd.DataFrame(X, columns=["a", "b", "c", "ü"]), np.where(X[:, 0] > 0, "yes", "no"))
    path = Path(__file__).with_name("model-v1.coterie")
    coterie.save(model, path)
    path.with_suffix(".json").write_text(model.groups_.to_json() + "\n")
