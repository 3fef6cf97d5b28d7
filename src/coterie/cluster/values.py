"""Values per feature that remain with the workers: moments, scores, and the best of them.

**Best scores.** Every part scores its features of large norm, down to a floor that is the same for all parts, and returns its
best few scores. These are merged exactly. The scores that a part omits are bounded by the last score that it returned, those
of features below the floor by the floor. If a score below one of these bounds is requested, the parts return more, or score
the features down to a lower floor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from coterie.cluster.parts import PartSource, Recipe, recipe_of
from coterie.data.source import Moments
from coterie.data.top import (
    NO_FEATURES,
    CandidateMask,
    LayeredTop,
    Scored,
    SharedTop,
    TopQuery,
    next_floor,
    unscored_bound,
)
from coterie.data.view import FeatureView
from coterie.kernels.columns import kth_largest, positions_between

if TYPE_CHECKING:
    from coterie.cluster.source import DistributedSource


# Maximum number of features whose values the client caches.
_MAX_CACHED_FEATURES = 1 << 17
# Maximum number of features for which a saved model contains values per feature.
_MAX_SAVED_FEATURES = 1 << 24
# Number of features first requested from a part, relative to the size of the query, and factor by which it grows.
_FIRST_FACTOR = 4
_GROWTH_FACTOR = 8
# A first result omits features tied with the last score if it would exceed the requested number by this factor.
_MAX_TIED_FACTOR = 4


class Table:
    """Several values per feature, which a recipe computes as a list of arrays; the client caches received values."""

    def __init__(self, source: DistributedSource, recipe: Recipe) -> None:
        self.source = source
        self.recipe = recipe
        self._known: dict[int, tuple[float, ...]] = {}

    def cache(self, features: np.ndarray, *columns: np.ndarray) -> None:
        """Cache values of some features that were received with another result."""
        if len(self._known) + len(features) > _MAX_CACHED_FEATURES:
            self._known.clear()
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self._known.update(zip(features.tolist(), rows, strict=True))

    def take(self, features: np.ndarray, place: int) -> np.ndarray:
        features = np.asarray(features, dtype=np.int64)
        missing = np.unique([j for j in features.tolist() if j not in self._known]).astype(np.int64)
        if len(missing):
            if len(self._known) + len(missing) > _MAX_CACHED_FEATURES:  # the cache will be cleared
                missing = np.unique(features)
            self.cache(missing, *self.source.rows(self.recipe, missing))
        return np.array([self._known[j][place] for j in features.tolist()])


class FeatureValues(NDArrayOperatorsMixin):
    """One value per feature, computed and held by the workers; similar to an array that is fetched when it is indexed.

    ``values[features]`` fetches the values of some features, ``numpy.asarray(values)`` those of all features.

    Parameters
    ----------
    table : Table
        Table of several values per feature.
    place : int
        Column of the table.

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
        """Recipe by which a worker computes the values of its part."""
        return self._table.recipe.item(self._place)

    @property
    def shape(self) -> tuple[int]:
        return (self._table.source.shape[1],)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, features: Any) -> Any:
        chosen = None if isinstance(features, slice) else np.asarray(features)
        if chosen is None or chosen.dtype == np.bool_:
            return np.asarray(self)[features]
        found = self._table.take(np.atleast_1d(chosen), self._place)
        return found if chosen.ndim else float(found[0])

    def blocks(self) -> Iterator[np.ndarray]:
        return iter(self._table.source.run_on_parts(_whole, self.recipe, what="values of all features"))

    def for_saving(self) -> np.ndarray | None:
        """Return all values, to be saved with a model; None if there are too many."""
        return np.asarray(self) if len(self) <= _MAX_SAVED_FEATURES else None

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.concatenate([np.empty(0), *self.blocks()]).astype(dtype or np.float64, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(item) if isinstance(item, FeatureValues) else item for item in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self):,} features, held by the workers of a cluster>"


class ScaledValues(FeatureValues):
    """Values divided by a number."""

    def __init__(self, values: FeatureValues, divisor: float) -> None:
        super().__init__(values._table, values._place)
        self.divisor = divisor

    @property
    def recipe(self) -> Recipe:
        plain = super().recipe
        return Recipe(f"{plain.token}/{self.divisor!r}", _divided, (plain, self.divisor))

    def __getitem__(self, features: Any) -> Any:
        found = super().__getitem__(features)
        return found / self.divisor if not isinstance(features, slice) else found


class SparseValues:
    """Array with one entry per feature, of which only the nonzero entries are stored: votes."""

    def __init__(self, features: np.ndarray, values: np.ndarray, n_features: int) -> None:
        self.features, self.values, self.shape = features, values, (n_features,)

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, features: Any) -> Any:
        chosen = np.asarray(features)
        place = np.searchsorted(self.features, chosen)
        inside = np.isin(chosen, self.features)
        return np.where(inside, self.values[np.minimum(place, max(len(self.values) - 1, 0))] if len(self.values) else 0, 0)

    def for_saving(self) -> np.ndarray | None:
        return np.asarray(self) if len(self) <= _MAX_SAVED_FEATURES else None

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        result = np.zeros(self.shape, dtype=dtype or self.dtype)
        result[self.features] = self.values
        return result


@dataclass(frozen=True)
class ClusterMoments(Moments):
    """Moments held by the workers, each of which computes those of its part by the recipe."""

    recipe: Recipe | None = None
    varying: int = 0

    @cached_property
    def n_varying(self) -> int:
        return self.varying

    @property
    def scale(self) -> np.ndarray:
        assert isinstance(self.norm, FeatureValues)
        return ScaledValues(self.norm, float(np.sqrt(self.total_weight)))

    @property
    def far_mean(self) -> np.ndarray:
        raise NotImplementedError("far_mean is not available for features held by workers")


def _whole(source: PartSource, values: np.ndarray) -> np.ndarray:
    return values


def _divided(source: PartSource, values: np.ndarray, divisor: float) -> np.ndarray:
    return values / divisor


def rows_of(source: PartSource, columns: Sequence[np.ndarray], features: np.ndarray) -> list[np.ndarray]:
    """Return the entries of some features of the part in several arrays."""
    return [np.asarray(column[features]) for column in columns]


class PartTop(NamedTuple):
    """Best candidates of a part, numbered as in the whole matrix, in storage order, with scores and moments."""

    features: np.ndarray
    scores: np.ndarray
    omitted_bound: float  # upper bound on the scores of other candidates that the part has scored; -1 if there are none
    mean: np.ndarray
    norm: np.ndarray
    excluded: np.ndarray  # excluded features that vary
    excluded_scores: np.ndarray
    n_scored: int


class ClusterTop:
    """Scores of the features of a query, as far as the parts have returned them; ``first`` holds initial results.

    The layers are those of :class:`~coterie.data.top.LayeredTop` in one process, with floors that hold for all parts. So no
    more features are scored than in one process. A part returns only the best of the features that it has scored.
    """

    def __init__(self, source: DistributedSource, query: TopQuery, first: Sequence[PartTop] | None = None) -> None:
        self.source = source
        self.query = query
        self.known = NO_FEATURES
        self.n_scored = 0
        self._scores = np.empty(0)
        self._floor = np.inf  # score bound down to which the parts have scored their features
        self._unscored_bound = np.inf  # upper bound on the scores of features that no part has scored
        self._omitted_bound = -1.0  # upper bound on the scores that parts have omitted; -1 if there are none
        self._excluded_scores: Scored = (NO_FEATURES, np.empty(0))
        self._size = _FIRST_FACTOR * query.size
        if first is not None:
            self._size = query.size
            self._add_parts(first)
            self._unscored_bound = -1.0

    @cached_property
    def _length(self) -> float:
        return self.query.view.norm_of(self.query.residual)

    @property
    def best(self) -> float:
        return float(self._scores.max(initial=0.0))

    def kth(self, below: float, size: int) -> float:
        while True:
            low = float(kth_largest(self._scores, below, size))
            n_under = int(np.count_nonzero(self._scores < below))
            if self._omitted_bound >= 0.0 and (low <= self._omitted_bound or n_under < size):
                self._request_more(size)
            elif self._unscored_bound >= 0.0 and low <= self._unscored_bound:
                self._request_layer()
            else:
                return low

    def between(self, low: float, below: float) -> Scored:
        while self._omitted_bound >= low:
            self._request_more(self._size)
        where = positions_between(self._scores, low, below)
        return self.known[where], self._scores[where]

    def excluded(self) -> Scored:
        if self._unscored_bound == np.inf:
            self._request_layer()
        return self._excluded_scores

    def first(self, most: int) -> np.ndarray:
        """Return at most ``most`` features with the highest known scores."""
        return self.known[np.argsort(-self._scores)[:most]]

    def _request_layer(self) -> None:
        """Request the best features of the layers down to the next floor."""
        query = self.query
        self._request(next_floor(self._floor, query.first_floor, *query.view.score_bound_range), brief=True)

    def _request_more(self, size: int) -> None:
        """Request more of the scored features from the parts than in the previous request."""
        self._size = _GROWTH_FACTOR * max(self._size, size)
        self._request(0.0 if self._unscored_bound < 0.0 else self._floor, brief=False)

    def _request(self, floor: float, brief: bool) -> None:
        taken = self.query.candidates.taken
        arguments = [
            (
                self.query.view,
                self.query.residual,
                taken[(taken >= part.first) & (taken < part.last)] - part.first,
                self._size,
                floor,
                self._floor,
                brief,
            )
            for part in self.source.parts
        ]
        only = range(len(arguments))
        self._add_parts(self.source.run_on_each_part(part_top, arguments, what="the features with the best scores", only=only))
        self._floor = floor
        self._unscored_bound = unscored_bound(floor, self._length) if floor > 0.0 else -1.0

    def _add_parts(self, parts: Sequence[PartTop]) -> None:
        self.known, self._scores, mean, norm = (np.concatenate([part[i] for part in parts]) for i in (0, 1, 3, 4))
        self._excluded_scores = (
            np.concatenate([part.excluded for part in parts]),
            np.concatenate([part.excluded_scores for part in parts]),
        )
        self._omitted_bound = max(part.omitted_bound for part in parts)
        self.n_scored += sum(part.n_scored for part in parts)
        table: Any = self.query.view.moments.norm
        table._table.cache(self.known, mean, norm)


class ClusterSharedTop:
    """Search for the best features of many residuals of some views, in one pass of every part over its features."""

    def __init__(self, source: DistributedSource, views: Sequence[FeatureView]) -> None:
        self.source = source
        distinct = list({id(view): view for view in views}.values())
        self._shared = recipe_of(_shared_top, [source.view_recipe(view) for view in distinct])
        self._n_multiplied = 0.0

    @property
    def n_passes(self) -> float:
        return self._n_multiplied / self.source.shape[1]

    def best(self, queries: Sequence[TopQuery]) -> list[ClusterTop]:
        """Return the best features of each query, from one pass, and fetch the columns of the very best of all queries."""
        residuals = self.source.as_argument(np.hstack([query.residual for query in queries]))
        widths = [query.residual.shape[1] for query in queries]
        views: list[Recipe] = [self.source.view_recipe(query.view) for query in queries]
        sizes = [query.size for query in queries]
        arguments = []
        for part in self.source.parts:
            taken, hints = (
                [features[(features >= part.first) & (features < part.last)] - part.first for features in lists]
                for lists in ([query.candidates.taken for query in queries], [query.hint for query in queries])
            )
            arguments.append((self._shared, list(views), residuals, widths, sizes, _Lists(taken), _Lists(hints)))
        what = f"the features with the best scores for {len(queries)} residuals"
        parts = self.source.run_on_each_part(_part_tops, arguments, what=what, only=range(len(arguments)))
        self._n_multiplied += sum(n_multiplied for _, n_multiplied in parts)
        tops = [ClusterTop(self.source, query, [found[k] for found, _ in parts]) for k, query in enumerate(queries)]
        needed = [top.first(max(1, query.size // _FIRST_FACTOR)) for top, query in zip(tops, queries, strict=True)]
        self.source.prefetch(np.concatenate([NO_FEATURES, *needed]))
        return tops


class _Lists(NamedTuple):
    """Lists of features, one per query."""

    lists: list[np.ndarray]


class _LastTop(NamedTuple):
    """Scores of the last query of a part. A request for a lower floor continues with them."""

    view: FeatureView
    residual: np.ndarray
    taken: np.ndarray
    top: LayeredTop


def part_top(
    source: PartSource,
    view: FeatureView,
    residual: np.ndarray,
    taken: np.ndarray,
    size: int,
    floor: float,
    previous: float,
    brief: bool,
) -> PartTop:
    """Return the best features of a part whose score bound is at least ``floor``, on a worker.

    Only those below the ``previous`` floor count as scored. A ``brief`` result omits many features tied with the last.
    """
    last: _LastTop | None = vars(source).pop("_last_top", None)  # no other thread may continue with it
    if last is not None and last.view is view and last.residual is residual and np.array_equal(last.taken, taken):
        top = last.top
    else:
        top = LayeredTop(TopQuery(view, residual, CandidateMask(view.moments, taken), size))
    top.score_down_to(floor)
    (features, scores), omits = top.best_scored(size)
    omitted_bound = float(scores.min()) if omits else -1.0
    if brief and len(features) > _MAX_TIED_FACTOR * size:
        omitted_bound = float(scores.min())
        keep = scores > omitted_bound
        features, scores = features[keep], scores[keep]
    result = _part_result(view, features, scores, omitted_bound, top.excluded(), _layer_size(view, floor, previous))
    vars(source)["_last_top"] = _LastTop(view, residual, taken, top)
    return result


def _layer_size(view: FeatureView, floor: float, below: float) -> int:
    """Return the number of features that are scored for a layer: all of them in one pass, else those that vary."""
    if floor == 0.0 and below == np.inf:
        return view.n_features
    values = view.score_bounds.values
    return int(np.count_nonzero((values >= max(floor, np.finfo(float).tiny)) & (values < below)))


def _part_result(
    view: FeatureView, features: np.ndarray, scores: np.ndarray, omitted_bound: float, excluded: Scored, n_scored: int
) -> PartTop:
    order = np.argsort(features)
    features, scores = features[order], scores[order]
    first = view.source.first_feature
    moments = view.moments.mean[features], view.moments.norm[features]
    return PartTop(features + first, scores, omitted_bound, *moments, excluded[0] + first, excluded[1], n_scored)


def _shared_top(source: PartSource, views: list[FeatureView]) -> SharedTop:
    return SharedTop(views)


def _part_tops(
    source: PartSource, shared: SharedTop, views: list[FeatureView], residuals: np.ndarray, widths: list[int],
    sizes: list[int], taken: _Lists, hints: _Lists,
) -> tuple[list[PartTop], float]:  # fmt: skip
    """Return the best features of a part for many residuals, on a worker: found in one pass, then scored as usual."""
    search = SharedTop.like(shared)
    ends = np.cumsum(widths)
    queries = [
        TopQuery(
            view, np.ascontiguousarray(residuals[:, end - width : end]), CandidateMask(view.moments, excluded), size, hint
        )
        for view, width, end, excluded, size, hint in zip(views, widths, ends, taken.lists, sizes, hints.lists, strict=True)
    ]
    found = []
    for query, top in zip(queries, search.best(queries), strict=True):
        low = top.kth(np.inf, query.size)
        features, scores = top.between(low, np.inf) if low >= 0.0 else (NO_FEATURES, np.empty(0))
        omitted_bound = low if len(features) < query.candidates.count else -1.0
        n_scored = top.n_scored
        found.append(_part_result(query.view, features, scores, omitted_bound, top.excluded(), n_scored))
    return found, search.n_multiplied
