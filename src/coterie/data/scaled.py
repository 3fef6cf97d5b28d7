"""Dense features stored as whole numbers of a unit, such as dosages in hundredths, in one byte per value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie.data.memory import DenseSource
from coterie.data.source import Columns, FeatureSource, Moments, StrongPairs, StrongQuery, annotated


class ScaledSource(FeatureSource):
    """Features whose values are those of another dense source, divided by a number.

    Moments and products are those of the stored whole numbers, divided afterwards. Columns are float32, each value rounded
    once: a stored 137 with 100 units is the float32 number nearest to 1.37.

    Parameters
    ----------
    stored : DenseSource
        Whole numbers.
    units : int
        Divisor of all values.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import DenseSource
    >>> from coterie.data.scaled import ScaledSource
    >>> source = ScaledSource(DenseSource(np.array([[0], [137]], dtype=np.uint8)), 100)
    >>> source.columns(np.array([0]))[:, 0]
    array([0.  , 1.37], dtype=float32)
    >>> source.moments().mean
    array([0.685])
    """

    is_sparse = False
    first_feature = 0
    feature_names: Sequence[str] | None = None

    def __init__(self, stored: DenseSource, units: int) -> None:
        self.stored, self.units = stored, units
        self.feature_names, self.first_feature = stored.feature_names, stored.first_feature

    @property
    def shape(self) -> tuple[int, int]:
        return self.stored.shape

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        return self._divided(self.stored.moments(sample_weight, n_threads=n_threads))

    def many_moments(self, weights: Sequence[np.ndarray], *, n_threads: int = 1) -> list[Moments]:
        return [self._divided(moments) for moments in self.stored.many_moments(weights, n_threads=n_threads)]

    def _divided(self, moments: Moments) -> Moments:
        return Moments(moments.mean / self.units, moments.norm / self.units, moments.total_weight)

    def products(
        self,
        vectors: np.ndarray,
        *,
        centre: np.ndarray | None = None,
        features: np.ndarray | None = None,
        out: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        middle = None if centre is None else centre * self.units
        found = self.stored.products(vectors, centre=middle, features=features, out=out, n_threads=n_threads)
        found /= self.units
        return found

    def strong_products(self, query: StrongQuery, moments: Moments, *, n_threads: int = 1) -> StrongPairs:
        stored = Moments(moments.mean * self.units, moments.norm * self.units, moments.total_weight)
        exemplar = query.exemplar
        if exemplar is not None:
            query = query.with_exemplar(type(exemplar)(exemplar.scores * self.units, exemplar.shift, exemplar.norm))
        found = self.stored.strong_products(query, stored, n_threads=n_threads)
        return found._replace(product=found.product / self.units)

    def columns(self, features: np.ndarray) -> Columns:
        return self._values(self.stored.columns(features))

    def block(self, start: int, stop: int) -> Columns:
        return self._values(self.stored.block(start, stop))

    def _values(self, columns: Columns) -> np.ndarray:
        assert isinstance(columns, np.ndarray)  # of a dense source
        return np.divide(columns, np.float32(self.units), dtype=np.float32)

    def prefetch(self, features: np.ndarray) -> None:
        """Do nothing: the features are in this process."""


def divided(source: FeatureSource, units: int) -> FeatureSource:
    """Return a source over the values of a dense source, divided by ``units``."""
    if units == 1:
        return source
    assert isinstance(source, DenseSource)
    return annotated(ScaledSource(source, units), source.annotations)
