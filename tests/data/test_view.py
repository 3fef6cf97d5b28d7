"""Norms of residuals."""

import numpy as np
import pytest

from coterie.data import FeatureView, as_source, view


@pytest.mark.parametrize("weighted", [False, True])
def test_norm_of_many_samples(weighted, rng, monkeypatch):
    monkeypatch.setattr(view, "_CHUNK_VALUES", 7)
    weight = rng.integers(0, 3, 40).astype(float) if weighted else None
    own = FeatureView.of(as_source(rng.standard_normal((40, 2))), weight)
    for _ in range(2):  # the norm of another residual is not that of the last one
        residual = rng.standard_normal((40, 2))
        kept = np.ones(40) if weight is None else weight
        used = kept > 0
        expected = np.sqrt((residual[used] ** 2 / kept[used, None]).sum())
        assert own.norm_of(residual) == pytest.approx(expected, rel=1e-14)
        assert own.norm_of(residual) == own.norm_of(residual.copy())
