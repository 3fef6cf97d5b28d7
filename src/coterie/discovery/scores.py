r"""The ranking of the features by score: found from the top, no further than needed.

**Norm bound.** A score is a product with the residual, so
:math:`|s_j| \le \|f_j\|_\omega (\sum_i \tilde\alpha_i^2/\omega_i)^{1/2}` (Cauchy-Schwarz with the sample weights
:math:`\omega`; features are centred where there is an intercept). Features are scored in layers of
falling norm, and no layer is touched before the walk has come down to the best score that it could
hold. In data with a long tail of rare features (words, clicks) that is a small part of one pass; where
all norms are alike it is one pass.

**Order.** Scores closer than rounding are tied; ties are broken by the content of the columns, then by
name, so the order does not depend on that of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coterie.data.source import FeatureSource, Moments
from coterie.kernels.columns import kth_largest, positions_between
from coterie.order import TIE, in_order

# Each layer goes down to this part of the previous one's norms.
_LAYER = 0.5
# Features of a chunk: their correlations with each other may be computed.
_LARGEST_CHUNK = 512


class Ranking:
    """Scores of the features for one residual, computed layer by layer.

    Parameters
    ----------
    source : FeatureSource
        The features.
    moments : Moments
        Their moments.
    residual : ndarray of shape (n_samples, n_outputs)
        Dual variables.
    sample_weight : ndarray of shape (n_samples,) or None
        The weights of the moments.
    centred : bool
        Whether the residuals sum to zero, so that features may be centred.
    scale : ndarray of shape (n_features,) or None
        What to divide each feature by, or None.
    reach : Reach
        Norm of each feature over its scale.
    first_floor : float, default=inf
        Reach down to which the first layer goes; inf for half of the largest one.
    n_threads : int, default=1
        Number of threads.

    Attributes
    ----------
    floor : float
        Reach down to which features have been scored.
    needed : float
        Reach down to which the chunks so far needed scores.
    n_scored : int
        Number of features scored.
    """

    def __init__(
        self,
        source: FeatureSource,
        moments: Moments,
        residual: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        centred: bool,
        scale: np.ndarray | None,
        reach: Reach,
        first_floor: float = np.inf,
        n_threads: int = 1,
    ) -> None:
        self.source = source
        self.moments = moments
        self.residual = residual
        self.sample_weight = sample_weight
        self.centred = centred
        self.scale = scale
        self.reach = reach
        self.n_threads = n_threads
        self.n_scored = 0
        self.floor = np.inf
        self.needed = np.inf
        self._first_floor = first_floor
        self._length = residual_norm(residual, sample_weight)

    def descend(self, free: np.ndarray, first_size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Free features, strongest first, with their strengths, in chunks that double in size."""
        top = self._next_floor(np.inf)
        features, strength = self._layer(top, np.inf, free)
        tie = -1.0
        below, size = np.inf, first_size
        while True:
            # What lies under the floor cannot be stronger than this.
            hidden = self.floor * self._length * (1.0 + 1e-9) if self.floor > 0.0 else 0.0
            low = float(kth_largest(strength, below, size))
            if low <= hidden and self.floor > 0.0:
                more, more_strength = self._layer(self._next_floor(self.floor), self.floor, free)
                assert features is not None  # the first layer was not the whole
                assert more is not None
                features, strength = np.concatenate([features, more]), np.concatenate([strength, more_strength])
                continue
            if low < 0.0:
                return
            if tie < 0.0:
                tie = TIE * float(strength.max(initial=0.0))
            low = max(low - tie, 0.0)
            self.needed = low / self._length if self._length > 0.0 else 0.0
            where = positions_between(strength, low, below)
            yield in_order(
                where if features is None else features[where], strength[where], tie, self.source, self.sample_weight
            )
            below, size = low, min(2 * size, _LARGEST_CHUNK)

    def products(self, features: np.ndarray | None) -> np.ndarray:
        """Products of some (None: all) features with the residual, of shape (n_features, n_outputs)."""
        n_features = self.source.shape[1] if features is None else len(features)
        self.n_scored += n_features
        return self.source.products(
            self.residual,
            centre=self.moments.mean if self.centred else None,
            features=features,
            n_threads=self.n_threads if n_features >= 4096 else 1,
        )

    def strengths(self, features: np.ndarray | None, products: np.ndarray | None = None) -> np.ndarray:
        """Scores of some (None: all) features as the ranking sees them: norms over outputs, scaled.

        ``products`` are overwritten.
        """
        products = self.products(features) if products is None else products
        strength = products[:, 0] if products.shape[1] == 1 else np.sqrt((products**2).sum(axis=1))
        strength = np.abs(strength, out=strength)  # in the memory of the products: features can be many
        if self.scale is not None:
            scale = self.scale if features is None else self.scale[features]
            np.divide(strength, scale, out=strength, where=scale > 0)
        return strength

    def _next_floor(self, floor: float) -> float:
        """The next lower floor; 0 when next to nothing would be left under it."""
        lower = _LAYER * floor if floor < np.inf else min(self._first_floor, _LAYER * self.reach.highest)
        return lower if lower > self.reach.lowest else 0.0

    def _layer(self, low: float, below: float, free: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Score the free features whose reach is in [low, below) (None: all); zero reach is that of constant features."""
        self.floor = low
        if low == 0.0 and below == np.inf:  # one pass in order of storage
            strength = self.strengths(None)
            strength[~free] = -1.0
            return None, strength
        features = np.flatnonzero(self.reach.values >= (low if low > 0.0 else np.finfo(float).tiny))
        if below < np.inf:
            features = features[self.reach.values[features] < below]
        strength = self.strengths(features)
        strength[~free[features]] = -1.0
        return features, strength


class ScoredRanking(Ranking):
    """A ranking by scores that are known already.

    Parameters
    ----------
    source : FeatureSource
        The features.
    strength : ndarray of shape (n_features,)
        Their scores.
    sample_weight : ndarray of shape (n_samples,) or None
        The weights that the scores were computed with.
    """

    def __init__(self, source: FeatureSource, strength: np.ndarray, sample_weight: np.ndarray | None) -> None:
        self.source = source
        self.sample_weight = sample_weight
        self.floor = self.needed = 0.0
        self.n_scored = 0
        self._length = 0.0
        self._strength = strength

    def strengths(self, features: np.ndarray | None, products: np.ndarray | None = None) -> np.ndarray:
        """Scores of some (None: all) features."""
        return self._strength.copy() if features is None else self._strength[features]

    def _next_floor(self, floor: float) -> float:
        return 0.0


def residual_norm(residual: np.ndarray, sample_weight: np.ndarray | None) -> float:
    r"""The norm :math:`(\sum_i \tilde\alpha_i^2/\omega_i)^{1/2}`, which goes with weighted norms of features."""
    if sample_weight is None:
        return float(np.sqrt((residual**2).sum()))
    used = sample_weight > 0
    return float(np.sqrt(((residual[used] ** 2).T / sample_weight[used]).sum()))


class Reach:
    """Norm of each feature (about its mean if ``centred``) over its scale; 0 for constant features.

    Attributes
    ----------
    values : ndarray of shape (n_features,)
        The norms.
    lowest, highest : float
        Smallest and largest of those above 0.
    """

    def __init__(self, moments: Moments, centred: bool, scale: np.ndarray | None) -> None:
        reach = moments.norm
        if not centred:
            reach = np.sqrt(moments.norm**2 + moments.total_weight * moments.mean**2)
            reach[moments.norm == 0.0] = 0.0
        if scale is not None:
            reach = np.divide(reach, scale, out=np.zeros(len(reach)), where=scale > 0)
        self.values = reach
        self.highest = float(reach.max(initial=0.0))
        self.lowest = float(reach.min(initial=np.inf, where=reach > 0.0))
