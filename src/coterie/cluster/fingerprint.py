"""Whether client and workers compute alike: the same version of Coterie, and kernels that give the same last bits."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from scipy import sparse


def this_version() -> str:
    """The version of Coterie of this process."""
    import coterie

    return coterie.__version__


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """A word for how the kernels of this process sum: processors with other vector registers sum in another order."""
    from coterie.data.memory import DenseSource, SparseSource
    from coterie.data.structure import canonical_csc

    rng = np.random.default_rng(20120626)
    X, vectors = np.asfortranarray(rng.standard_normal((997, 3))), rng.standard_normal((997, 2))
    X[rng.random(X.shape) < 0.5] = 0.0
    text = hashlib.sha256()
    for source in (DenseSource(X), DenseSource((8 * X).astype(np.int8)), SparseSource(canonical_csc(sparse.csc_array(X)))):
        moments = source.moments()
        products = source.products(vectors), source.products(vectors[:, :1], centre=moments.mean)
        for part in (moments.mean, moments.norm, *products):
            text.update(np.ascontiguousarray(part).tobytes())
    return text.hexdigest()[:16]
