"""Compatibility of features beside their correlation: pairs that may not be in one group, however correlated they are.

A compatibility is an object with one method. :class:`CompatibleCorrelation` sets the correlations of incompatible pairs to
zero, so that the search, its bounds, the groups and their tests need no other change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from coterie._parameters import OneOf, Rule, WithMethod
from coterie.correlation.protocol import Correlation, Pairs
from coterie.correlation.units import measured
from coterie.data.source import Exemplar


class Compatibility(Protocol):
    """Decision which pairs of features may be in one group.

    Two features belong together if they are correlated and compatible. An object may also have an attribute ``n_features``,
    which is compared with the number of features of the data.
    """

    def compatible(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return a mask of the pairs that may be in one group.

        ``features`` and ``others`` are arrays of feature indices (columns of X), which are broadcast against each other like
        the operands of a sum. The relation must be symmetric, and every feature compatible with itself.
        """
        ...


# Rule for parameters ``compatibility``.
COMPATIBILITY: Rule = OneOf(None) | WithMethod("compatible", "an object with a method compatible(features, others)")


@dataclass(frozen=True, eq=False, repr=False)
class ChromosomeDistance:
    """Features are compatible if they are on the same chromosome within a distance.

    With it, the members of a group are within ``max_distance`` base pairs of its support feature, as in ``plink --clump``.

    Parameters
    ----------
    chromosome : array-like of str or int of shape (n_features,)
        Chromosome of each feature.
    position : array-like of shape (n_features,)
        Position of each feature in base pairs.
    max_distance : float
        Largest distance of two features in base pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import ChromosomeDistance
    >>> near = ChromosomeDistance(["1", "1", "2"], [1_000, 251_000, 1_000], max_distance=250_000)
    >>> near.compatible(np.array([0]), np.array([0, 1, 2]))
    array([ True,  True, False])
    """

    chromosome: ArrayLike
    position: ArrayLike
    max_distance: float

    def __post_init__(self) -> None:
        position, chromosome = np.asarray(self.position), np.asarray(self.chromosome)
        if position.dtype.kind not in "iuf" or not np.isfinite(position).all():
            raise ValueError("position must be an array of finite numbers, one per feature.")
        if position.ndim != 1 or chromosome.shape != position.shape:
            raise ValueError(
                f"chromosome and position must have one entry per feature, got arrays of shape {chromosome.shape} and "
                f"{position.shape}."
            )
        _require_distance(self.max_distance)
        object.__setattr__(self, "chromosome", chromosome)  # Files of models hold arrays, not other sequences.
        object.__setattr__(self, "position", position)

    def __repr__(self) -> str:
        return f"ChromosomeDistance({self.n_features:,} features, max_distance={self.max_distance:g})"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self._places[0])

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the chromosomes, and positions."""
        return np.unique(np.asarray(self.chromosome), return_inverse=True)[1], np.asarray(self.position, dtype=np.float64)

    def compatible(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return a mask of the pairs on the same chromosome within the distance; see :class:`Compatibility`."""
        chromosome, position = self._places
        near = np.abs(position[features] - position[others]) <= self.max_distance
        return np.asarray(near & (chromosome[features] == chromosome[others]))


@dataclass(frozen=True, eq=False, repr=False)
class PixelDistance:
    """Features are compatible if they are pixels (or voxels) within a distance.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the images whose pixels are the features; more numbers for volumes.
    max_distance : float
        Largest Euclidean distance of two pixels: 1 for the four direct neighbours of a pixel, 1.5 for all eight.
    order : {"C", "F"}, default="C"
        Order of the pixels: row by row ("C") or column by column ("F").

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import PixelDistance
    >>> near = PixelDistance((3, 4), max_distance=1)
    >>> np.flatnonzero(near.compatible(np.array([5]), np.arange(12))).tolist()
    [1, 4, 5, 6, 9]
    """

    shape: Sequence[int]
    max_distance: float
    order: Literal["C", "F"] = "C"

    def __post_init__(self) -> None:
        sizes = self.shape if isinstance(self.shape, Sequence) and not isinstance(self.shape, str) else ()
        if not sizes or not all(isinstance(size, Integral) and size > 0 for size in sizes):
            raise ValueError(f"shape={self.shape!r} must be positive whole numbers, such as (28, 28).")
        if self.order not in ("C", "F"):
            raise ValueError(f"order={self.order!r} must be 'C' or 'F'.")
        _require_distance(self.max_distance)

    def __repr__(self) -> str:
        order = "" if self.order == "C" else f", order={self.order!r}"
        return f"PixelDistance({tuple(self.shape)}, max_distance={self.max_distance:g}{order})"

    @property
    def n_features(self) -> int:
        """Number of pixels."""
        return int(np.prod(self.shape))

    def compatible(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return a mask of the pairs of pixels within the distance; see :class:`Compatibility`."""
        places = [np.unravel_index(pixels, tuple(self.shape), order=self.order) for pixels in (features, others)]
        squares = sum(np.square(one.astype(np.float64) - other) for one, other in zip(*places, strict=True))
        return np.asarray(np.sqrt(squares) <= self.max_distance)


def _require_distance(distance: float) -> None:
    if not isinstance(distance, Real) or isinstance(distance, bool) or not 0 <= float(distance) < np.inf:
        raise ValueError(f"max_distance={distance!r} must be a finite number of at least 0.")


class CompatibleCorrelation:
    """A correlation measure whose value is 0 for incompatible pairs, as a :class:`~coterie.correlation.Correlation`.

    Parameters
    ----------
    measure : Correlation
        The measure.
    compatibility : Compatibility
        The compatible pairs.
    """

    def __init__(self, measure: Correlation, compatibility: Compatibility) -> None:
        self.measure = measure
        self.view = measure.view
        self.compatibility = compatibility
        n_features = getattr(compatibility, "n_features", None)
        if n_features is not None and n_features != self.view.n_features:
            raise ValueError(
                f"compatibility={compatibility!r} has {n_features:,} features, but X has {self.view.n_features:,}. It must "
                "describe all columns of X in their order."
            )

    @property
    def n_evaluated(self) -> int:
        """Number of pairs whose correlation was computed so far."""
        return self.measure.n_evaluated

    @property
    def n_features_read(self) -> int:
        """Number of features read so far."""
        return self.measure.n_features_read

    def between(self, features: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations of some features with some others, 0 for incompatible pairs."""
        mask = self._mask(features[:, None], others[None, :], (len(features), len(others)))
        rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
        result = np.zeros(mask.shape)
        if len(rows):
            result[np.ix_(rows, columns)] = self.measure.between(features[rows], others[columns])
        return np.where(mask, result, 0.0)

    def within(self, features: np.ndarray) -> np.ndarray:
        """Return the matrix of correlations between a few features, 0 for incompatible pairs."""
        mask = self._mask(features[:, None], features[None, :], (len(features), len(features)))
        if not mask.diagonal().all() or (mask != mask.T).any():
            raise ValueError(
                f"compatibility={self.compatibility!r} must be symmetric, and every feature compatible with itself."
            )
        return np.where(mask, self.measure.within(features), 0.0)

    def strong(self, supports: np.ndarray, threshold: float, exemplar: Exemplar | None = None) -> Pairs:
        """Return all compatible pairs of a feature and one of ``supports`` that reach the threshold."""
        pairs = self.measure.strong(supports, threshold, exemplar)
        kept = self._mask(pairs.feature, supports[pairs.position], pairs.feature.shape)
        return Pairs(pairs.feature[kept], pairs.position[kept], pairs.correlation[kept])

    def _mask(self, features: np.ndarray, others: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the compatible pairs. Raise a ``ValueError`` if the result is invalid."""
        mask = np.asarray(self.compatibility.compatible(features, others))
        if mask.dtype != np.bool_ or mask.shape != shape:
            raise ValueError(
                f"compatibility={self.compatibility!r} returned an array of type {mask.dtype} and shape {mask.shape}. "
                f"compatible() must return booleans of shape {shape} for these features."
            )
        return mask


def unconstrained(correlation: Correlation) -> Correlation:
    """Return a measure without units and without the constraint of compatibility."""
    correlation = measured(correlation)
    return correlation.measure if isinstance(correlation, CompatibleCorrelation) else correlation
