"""Features of one column of a table, which stay together: a measure that counts them as perfectly correlated.

A category is encoded as one feature per level. Two levels are hardly correlated, but they are one variable. Counted as
correlated, they are never support features of two groups, and a group with one of them as its support feature has them all.
The search, its bounds, the groups and their tests need no other change.
"""

from __future__ import annotations

import numpy as np

from coterie.correlation.protocol import Correlation, Pairs
from coterie.data.encoding import COLUMN
from coterie.data.source import Exemplar, FeatureSource

# Annotation of features of several matrices; see :mod:`coterie.data.blocks`.
_BLOCK = "block"


def column_units(source: FeatureSource) -> np.ndarray | None:
    """Return a number per feature, equal for features of one column of a table; None if every column is one feature.

    The columns are those of the annotation ``column``. Features without one are units of their own.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.correlation.units import column_units
    >>> from coterie.data import annotated, as_source
    >>> column_units(annotated(as_source(np.eye(3)), {"column": ["age", "city", "city"]})).tolist()
    [0, 1, 1]
    """
    columns = source.annotations.get(COLUMN)
    if columns is None:
        return None
    known = vars(source).get("_column_units")
    if known is not None and known[0] is columns:
        return None if known[1] is None else np.asarray(known[1])
    blocks = source.annotations.get(_BLOCK)
    names = zip(range(len(columns)), columns, [None] * len(columns) if blocks is None else blocks, strict=True)
    keys: dict[object, int] = {}
    codes = np.array([keys.setdefault((str(name), str(block)) if name else j, len(keys)) for j, name, block in names])
    found = codes if len(keys) < len(codes) else None
    vars(source)["_column_units"] = columns, found
    return found


class UnitCorrelation:
    """A correlation measure whose absolute value is 1 within a unit, as a :class:`~coterie.correlation.Correlation`.

    The sign is that of the measure.

    Parameters
    ----------
    measure : Correlation
        The measure.
    units : ndarray of int of shape (n_features,)
        Unit of each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.correlation import PearsonCorrelation, UnitCorrelation
    >>> from coterie.data import FeatureView, as_source
    >>> levels = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> measure = UnitCorrelation(PearsonCorrelation(FeatureView.of(as_source(levels))), np.array([0, 0]))
    >>> measure.between(np.array([0]), np.array([1])), measure.measure.between(np.array([0]), np.array([1]))
    (array([[-1.]]), array([[-0.5]]))
    """

    def __init__(self, measure: Correlation, units: np.ndarray) -> None:
        self.measure = measure
        self.view = measure.view
        self.units = units
        self._order = np.argsort(units, kind="stable")
        self._starts = np.searchsorted(units[self._order], np.arange(int(units.max(initial=-1)) + 2))

    @property
    def n_evaluated(self) -> int:
        """Number of pairs whose correlation was computed so far."""
        return self.measure.n_evaluated

    @property
    def n_features_read(self) -> int:
        """Number of features read so far."""
        return self.measure.n_features_read

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations of some features with some others, of absolute value 1 within a unit."""
        return self._joined(self.measure.between(features, others), features, others)

    def within(self, features: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations between a few features, of absolute value 1 within a unit."""
        return self._joined(self.measure.within(features), features, features)

    def _joined(self, matrix: np.ndarray, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        same = self.units[features][:, None] == self.units[others][None, :]
        return np.where(same, np.where(matrix < 0.0, -1.0, 1.0), matrix)

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """Return all pairs of a feature and one of ``supports`` that reach the threshold or are in one unit."""
        pairs = self.measure.strong(supports, threshold, exemplar)
        different = self.units[pairs.feature] != self.units[supports[pairs.position]]
        added = [self._unit_pairs(int(support), place) for place, support in enumerate(supports)]
        feature = np.concatenate([pairs.feature[different], *(own.feature for own in added)])
        position = np.concatenate([pairs.position[different], *(own.position for own in added)])
        correlation = np.concatenate([pairs.correlation[different], *(own.correlation for own in added)])
        order = np.lexsort((position, feature))
        return Pairs(feature[order], position[order], correlation[order])

    def _unit_pairs(self, support: int, place: int) -> Pairs:
        """Return the pairs of a support feature with the features of its unit that vary, itself included."""
        unit = self.units[support]
        members = self._order[self._starts[unit] : self._starts[unit + 1]]
        members = members[self.view.moments.norm[members] > 0.0]
        values = self.between(np.array([support]), members)[0]
        return Pairs(members, np.full(len(members), place), values)


def measured(correlation: Correlation) -> Correlation:
    """Return a measure without units."""
    return correlation.measure if isinstance(correlation, UnitCorrelation) else correlation
