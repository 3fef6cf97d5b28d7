"""Numbers of each feature that stay with the workers: moments, scores, entropies. The client has those it has asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.cluster.parts import PartSource, Recipe
from coterie.data.source import Moments

if TYPE_CHECKING:
    from coterie.cluster.source import DistributedSource

# Features whose numbers the client remembers.
_REMEMBERED = 1 << 17
# Features up to which a saved model has all their scores.
_SAVED = 1 << 24


class Table:
    """Several numbers of each feature, which one recipe makes; the client remembers what it was told.

    Parameters
    ----------
    source : DistributedSource
        The features.
    recipe : Recipe
        Makes a list of arrays with an entry a feature of the part.
    """

    def __init__(self, source: DistributedSource, recipe: Recipe) -> None:
        self.source = source
        self.recipe = recipe
        self._known: dict[int, tuple[float, ...]] = {}

    def remember(self, features: np.ndarray, *columns: np.ndarray) -> None:
        """Numbers of some features that came along with something else."""
        if len(self._known) + len(features) > _REMEMBERED:
            self._known.clear()
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self._known.update(zip(features.tolist(), rows, strict=True))

    def take(self, features: np.ndarray, place: int) -> np.ndarray:
        """One number of each of some features."""
        features = np.asarray(features, dtype=np.int64)
        missing = np.unique([j for j in features.tolist() if j not in self._known]).astype(np.int64)
        if len(missing):
            if len(self._known) + len(missing) > _REMEMBERED:  # what is known will be forgotten
                missing = np.unique(features)
            self.remember(missing, *self.source.rows(self.recipe, missing))
        return np.array([self._known[j][place] for j in features.tolist()])


class FeatureValues:
    """A number of each feature, computed by the workers and kept there; like an array that is fetched where it is indexed.

    ``values[features]`` fetches those of some features, ``numpy.asarray(values)`` all of them: as long as there are features.

    Parameters
    ----------
    table : Table
        The numbers.
    place : int
        Which one of them.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryClassifier
    >>> from coterie.cluster import DistributedSource
    >>> from coterie.data import write_store
    >>> import tempfile
    >>> X = np.random.default_rng(0).standard_normal((50, 40))
    >>> with Client(processes=False, dashboard_address=None) as client, tempfile.TemporaryDirectory() as folder:
    ...     source = DistributedSource.of_store(write_store(f"{folder}/x.store", X), client)
    ...     model = GroupDiscoveryClassifier(2).fit(source, X[:, 3] > 0)
    ...     print(model.support_features_[0], model.scores_[[3, 4]].shape, len(model.scores_))
    3 (2,) 40
    """

    def __init__(self, table: Table, place: int) -> None:
        self._table = table
        self._place = place

    @property
    def recipe(self) -> Recipe:
        """How a worker makes the numbers of its part."""
        return self._table.recipe.item(self._place)

    @property
    def shape(self) -> tuple[int]:
        """Number of features."""
        return (self._table.source.shape[1],)

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""
        return np.dtype(np.float64)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, features: Any) -> Any:
        if isinstance(features, slice):
            return np.asarray(self)[features] if features != slice(None) else np.asarray(self)
        chosen = np.asarray(features)
        if chosen.dtype == np.bool_:
            return np.asarray(self)[chosen]
        found = self._table.take(np.atleast_1d(chosen), self._place)
        return found if chosen.ndim else float(found[0])

    def blocks(self) -> Iterator[np.ndarray]:
        """All of them, part by part."""
        return iter(self._table.source.ask(_whole, self.recipe, what="numbers of all features"))

    def for_saving(self) -> np.ndarray | None:
        """All of them, as part of a model's file; None where they are too many for one."""
        return np.asarray(self) if len(self) <= _SAVED else None

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.concatenate([np.empty(0), *self.blocks()]).astype(dtype or np.float64, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(one) if isinstance(one, FeatureValues) else one for one in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __gt__(self, other: Any) -> Any:
        return np.asarray(self) > other

    def __eq__(self, other: object) -> Any:  # as arrays do
        return np.asarray(self) == other

    __hash__ = None  # type: ignore[assignment]

    def __truediv__(self, other: Any) -> Any:
        return np.asarray(self) / other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self):,} features, with the workers of a cluster>"


class ScaledValues(FeatureValues):
    """Values divided by a number."""

    def __init__(self, values: FeatureValues, divisor: float) -> None:
        super().__init__(values._table, values._place)
        self.divisor = divisor

    @property
    def recipe(self) -> Recipe:
        """How a worker makes the numbers of its part."""
        plain = super().recipe
        return Recipe(f"{plain.token}/{self.divisor!r}", _divided, (plain, self.divisor))

    def __getitem__(self, features: Any) -> Any:
        found = super().__getitem__(features)
        return found / self.divisor if not isinstance(features, slice) else found

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return super().__array__(dtype, copy)


class FewValues:
    """An array with an entry a feature of which all but a few are 0: votes. It takes the memory of those few."""

    def __init__(self, features: np.ndarray, values: np.ndarray, n_features: int) -> None:
        self.features, self.values, self.shape = features, values, (n_features,)

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""
        return self.values.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, features: Any) -> Any:
        chosen = np.asarray(features)
        place = np.searchsorted(self.features, chosen)
        inside = np.isin(chosen, self.features)
        return np.where(inside, self.values[np.minimum(place, max(len(self.values) - 1, 0))] if len(self.values) else 0, 0)

    def for_saving(self) -> np.ndarray | None:
        """All of them, as part of a model's file; None where they are too many for one."""
        return np.asarray(self) if len(self) <= _SAVED else None

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        result = np.zeros(self.shape, dtype=dtype or self.dtype)
        result[self.features] = self.values
        return result


@dataclass(frozen=True)
class ClusterMoments(Moments):
    """Moments that stay with the workers.

    Attributes
    ----------
    recipe : Recipe or None
        How a worker makes the :class:`Moments` of its part.
    varying : int
        Number of features that are not constant.
    """

    recipe: Recipe | None = None
    varying: int = 0

    @cached_property
    def n_varying(self) -> int:
        """Number of features that are not constant."""
        return self.varying

    @property
    def scale(self) -> np.ndarray:
        """Standard deviation of each feature, with the workers."""
        assert isinstance(self.norm, FeatureValues)
        return ScaledValues(self.norm, float(np.sqrt(self.total_weight)))

    @property
    def far_mean(self) -> np.ndarray:
        """Nobody on the client has all means."""
        raise NotImplementedError("far means of all features stay with the workers")


def _whole(source: PartSource, values: np.ndarray) -> np.ndarray:
    return values


def _divided(source: PartSource, values: np.ndarray, divisor: float) -> np.ndarray:
    return values / divisor


def rows_of(source: PartSource, columns: Sequence[np.ndarray], features: np.ndarray) -> list[np.ndarray]:
    """Entries of some features of the part in several arrays."""
    return [np.asarray(column[features]) for column in columns]
