"""Generator of data with the shape of large real data sets, in blocks, in memory or written to a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch, check_random_state

from coterie.data.readers.collect import read_into_memory
from coterie.data.readers.reader import Block, Progress, Reader
from coterie.data.store.reading import open_store
from coterie.data.store.writing import DEFAULT_MEMORY_LIMIT, write_reader
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.inputs.types import PathLike, RandomStateLike

# Largest numbers of entries (or genotypes) and of features per block.
_BLOCK_VALUES = 1 << 22
_BLOCK_FEATURES = 1 << 18
# Exponent of the power law of column counts: the count of the r-th most common feature is proportional to r^-0.8.
_EXPONENT = 0.8
_MIN_CORRELATION = 0.7


class _Shape(NamedTuple):
    """Size of a real data set: samples, features, nonzeros (None: genotypes), type, share of samples per planted feature."""

    n_samples: int
    n_features: int
    n_values: int | None
    dtype: type
    presence: float


_SHAPES = {
    "news20": _Shape(9_996, 1_355_191, 3_600_000, np.float32, 0.05),
    "kdd2010": _Shape(19_264_097, 29_890_095, 586_000_000, np.uint8, 0.01),
    "webspam": _Shape(280_000, 16_609_143, 1_040_000_000, np.float32, 0.05),
    "psoriasis": _Shape(2_176, 529_651, None, np.int8, 0.0),
}


def make_big_dimensional(
    shape: str = "news20",
    *,
    scale: float = 1.0,
    n_samples: int | None = None,
    n_features: int | None = None,
    n_values: int | None = None,
    n_support: int = 20,
    max_affiliated: int = 8,
    path: PathLike | None = None,
    overwrite: bool = False,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    random_state: RandomStateLike = None,
    progress: Progress | None = None,
) -> Bunch:
    """Generate data with the shape of a large real data set, with planted support and affiliated features.

    Column counts of sparse shapes follow a power law. A planted support feature is present in a share of the samples. Its
    affiliated features are present in nearly the same samples, so that their correlations are 0.75 to 0.95. The class is the
    sign of a weighted sum of the support features plus noise.

    Genotypes (``"psoriasis"``) consist of linkage blocks: along each of the two haplotypes of a person, an allele is a copy of
    its left neighbour or a new draw. The class is the sign of a weighted sum of causal SNPs plus noise. A group is a causal
    SNP with the SNPs of its block whose absolute correlation with it is at least 0.7.

    Parameters
    ----------
    shape : {"news20", "kdd2010", "webspam", "psoriasis"}, default="news20"
        Name of the real data set.
    scale : float, default=1.0
        Factor of the numbers of samples, features and nonzeros.
    n_samples, n_features, n_values : int, optional
        Numbers of samples, features and nonzeros, instead of the real ones times ``scale``. The number of nonzeros is
        approximate.
    n_support : int, default=20
        Number of planted support features.
    max_affiliated : int, default=8
        Largest number of affiliated features per group (sparse shapes). The smallest number is 2.
    path : path-like, optional
        Store to write. By default the data are generated in memory.
    overwrite, memory_limit, progress
        As in :func:`coterie.data.convert`.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    data : Bunch
        ``X`` (CSC or F-ordered array, or the source of the store if ``path`` is given), ``y`` (-1 or 1), ``groups`` (the
        planted :class:`FeatureGroups`, in decreasing order of absolute weight), ``weights`` and ``path``.

    Examples
    --------
    >>> from coterie.datasets import make_big_dimensional
    >>> data = make_big_dimensional("news20", scale=0.01, n_support=3, random_state=0)
    >>> data.X.shape, len(data.groups)
    ((99, 13551), 3)
    """
    if shape not in _SHAPES:
        raise ValueError(f"shape={shape!r} must be one of {', '.join(repr(name) for name in _SHAPES)}.")
    if not scale > 0:
        raise ValueError(f"scale={scale!r} must be a number above 0.")
    real = _SHAPES[shape]
    size = _Shape(
        int(n_samples or max(real.n_samples * scale, 8)),
        int(n_features or max(real.n_features * scale, 8)),
        None if real.n_values is None else int(n_values or real.n_values * scale),
        real.dtype,
        real.presence,
    )
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    kind = _Genotypes if real.n_values is None else _PowerLaw
    reader = kind(Path(path or shape), size, n_support, max_affiliated, seed)
    if path is None:
        source = read_into_memory(reader, progress)
        X = source.block(0, source.shape[1])
    else:
        write_reader(reader, path, overwrite=overwrite, memory_limit=memory_limit, progress=progress)
        X = open_store(path).source
    return Bunch(X=X, y=reader.labels, groups=reader.groups, weights=reader.weights, path=None if path is None else Path(path))


class _Generator(Reader):
    """Reader of generated features."""

    format = "made"
    by = "features"
    groups: FeatureGroups

    def __init__(self, path: Path, size: _Shape, n_support: int, max_affiliated: int, seed: int) -> None:
        super().__init__(path)
        if n_support < 1 or max_affiliated < 2:
            raise ValueError(f"n_support={n_support} must be at least 1 and max_affiliated={max_affiliated} at least 2.")
        self.size = size
        self.rng = np.random.default_rng(seed)
        self.weights = np.sort(self.rng.uniform(1.0, 2.0, n_support))[::-1] * self.rng.choice([-1.0, 1.0], n_support)
        self.max_affiliated = max_affiliated

    def _label(self, signal: np.ndarray) -> None:
        noisy = signal - np.median(signal) + 0.3 * self.rng.standard_normal(len(signal))
        self.labels = np.where(noisy > 0, 1, -1)


class _PowerLaw(_Generator):
    """Generator of sparse features whose counts follow a power law."""

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        counts = self._counts()
        planted = self._plant()
        start = 0
        while start < len(counts):
            ends = np.cumsum(counts[start : start + _BLOCK_FEATURES])
            stop = start + max(1, int(np.searchsorted(ends, _BLOCK_VALUES)))
            stop = min(stop, start + _BLOCK_FEATURES, len(counts))
            yield self._block(start, stop, counts[start:stop], planted)
            start = stop
            if progress is not None:
                progress(start, len(counts), "generating features")

    def _counts(self) -> np.ndarray:
        """Return the number of samples with each feature: ``min(n / 2, C r^-0.8)``, at least 1, in random order."""
        n, m, n_values = self.size.n_samples, self.size.n_features, self.size.n_values
        assert n_values is not None
        law = np.arange(1, m + 1, dtype=np.float64) ** -_EXPONENT
        low, high = 0.0, float(n) * m
        for _ in range(60):  # bisection: the total increases with the factor
            middle = (low + high) / 2
            total = np.clip(middle * law, 1, max(n // 2, 1)).sum()
            low, high = (middle, high) if total < n_values else (low, middle)
        counts = np.rint(np.clip(high * law, 1, max(n // 2, 1))).astype(np.int32)
        self.rng.shuffle(counts)
        return counts

    def _plant(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Return rows and values of the planted features by position, and set labels and groups."""
        n, m, n_support = self.size.n_samples, self.size.n_features, len(self.weights)
        sizes = self.rng.integers(2, self.max_affiliated + 1, n_support)
        if n_support + sizes.sum() > m:
            raise ValueError(f"{n_support + sizes.sum()} planted features are more than n_features={m}. Decrease n_support.")
        places = self.rng.choice(m, n_support + int(sizes.sum()), replace=False)
        rest = iter(places[n_support:].tolist())
        planted: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        groups = []
        signal = np.zeros(n)
        for support, weight, n_affiliated in zip(places[:n_support].tolist(), self.weights, sizes, strict=True):
            rows = np.sort(self.rng.choice(n, max(2, int(self.size.presence * n)), replace=False))
            planted[support] = rows, self._values(len(rows))
            signal[rows] += weight
            mine = [next(rest) for _ in range(n_affiliated)]
            for place in mine:
                planted[place] = self._affiliate(*planted[support])
            groups.append(self._group(support, mine, planted))
        self.groups = FeatureGroups(groups)
        self._label(signal)
        return planted

    def _values(self, count: int) -> np.ndarray:
        if self.size.dtype is np.uint8:
            return np.ones(count, dtype=np.uint8)
        return self.rng.uniform(0.9, 1.1, count).astype(self.size.dtype)

    def _affiliate(self, rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same samples with some of them exchanged. The correlation is about the share that is kept."""
        stays = self.rng.random(len(rows)) < self.rng.uniform(0.78, 0.95)
        others = np.setdiff1d(self.rng.integers(0, self.size.n_samples, int((~stays).sum())), rows)
        mine = np.concatenate([rows[stays], others])
        order = np.argsort(mine)
        return mine[order], np.concatenate([values[stays], self._values(len(others))])[order]

    def _group(self, support: int, affiliated: list[int], planted: dict[int, tuple[np.ndarray, np.ndarray]]) -> FeatureGroup:
        """Return the group with its correlations, in decreasing order of their absolute values."""
        columns = [planted[place] for place in [support, *affiliated]]
        correlation = _sparse_correlations(columns, self.size.n_samples)
        order = np.argsort(-np.abs(correlation), kind="stable")
        return FeatureGroup(support, np.array(affiliated)[order], correlation[order])

    def _block(
        self, start: int, stop: int, counts: np.ndarray, planted: dict[int, tuple[np.ndarray, np.ndarray]]
    ) -> sparse.csc_array:
        n = self.size.n_samples
        share = counts / n
        # Number of draws with replacement that gives the requested number of different rows on average.
        draws = np.maximum(1, np.round(-n * np.log1p(-np.minimum(share, 0.999)))).astype(np.int64)
        mine = {place - start: column for place, column in planted.items() if start <= place < stop}
        draws[list(mine)] = 0
        keys = np.repeat(np.arange(stop - start, dtype=np.int64) * n, draws)
        keys += self.rng.integers(0, n, len(keys))
        keys = np.unique(keys)
        values = self._values(len(keys))
        if mine:
            keys = np.concatenate([keys, *(place * n + rows for place, (rows, _) in mine.items())])
            values = np.concatenate([values, *(column[1] for column in mine.values())])
            order = np.argsort(keys)
            keys, values = keys[order], values[order]
        starts = np.searchsorted(keys, np.arange(stop - start + 1, dtype=np.int64) * n)
        return sparse.csc_array((values, (keys % n).astype(np.int32), starts.astype(np.int32)), shape=(n, stop - start))


class _Genotypes(_Generator):
    """Generator of genotypes in linkage blocks."""

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        n, m = self.size.n_samples, self.size.n_features
        lengths = self._lengths(m)
        if len(lengths) < len(self.weights):
            raise ValueError(
                f"n_support={len(self.weights)} is more than the {len(lengths)} linkage blocks. Decrease n_support."
            )
        causal = dict(zip(self.rng.permutation(len(lengths))[: len(self.weights)].tolist(), self.weights, strict=True))
        found: list[tuple[float, FeatureGroup]] = []
        signal = np.zeros(n)
        width = max(1, _BLOCK_VALUES // n)
        pending: list[np.ndarray] = []
        start = 0
        for number, length in enumerate(lengths):
            genotypes = self._linked(n, int(length))
            if number in causal:
                place = int(length) // 2
                column = genotypes[:, place].astype(np.float64)
                signal += causal[number] * (column - column.mean()) / max(float(column.std()), 1e-12)
                found.append((abs(causal[number]), _linked_group(genotypes, place, start)))
            pending.append(genotypes)
            start += int(length)
            if sum(part.shape[1] for part in pending) >= width or start == m:
                yield np.asfortranarray(np.hstack(pending))
                pending = []
                if progress is not None:
                    progress(start, m, "generating SNPs")
        self.groups = FeatureGroups([group for _, group in sorted(found, key=lambda pair: -pair[0])])
        self._label(signal)

    def _lengths(self, m: int) -> np.ndarray:
        """Return the lengths of linkage blocks: 1 to 40 SNPs, 13 on average."""
        lengths = np.minimum(self.rng.geometric(0.08, 2 * (m // 13) + 100), 40)
        while lengths.sum() < m:
            lengths = np.concatenate([lengths, lengths])
        last = int(np.searchsorted(np.cumsum(lengths), m))
        lengths = lengths[: last + 1].copy()
        lengths[last] -= lengths.sum() - m
        return lengths

    def _linked(self, n: int, length: int) -> np.ndarray:
        """Return the genotypes of one block. Alleles of both haplotypes copy their left neighbour or are drawn anew."""
        frequency, copies = self.rng.uniform(0.05, 0.5), self.rng.uniform(0.85, 0.995)
        fresh = self.rng.random((length, 2 * n)) < frequency
        copied = self.rng.random((length, 2 * n)) < copies
        for j in range(1, length):
            fresh[j, copied[j]] = fresh[j - 1, copied[j]]
        return (fresh[:, :n].astype(np.int8) + fresh[:, n:]).T


def _linked_group(genotypes: np.ndarray, place: int, start: int) -> FeatureGroup:
    """Return the group of a causal SNP and the SNPs of its block that are correlated with it."""
    X = genotypes.astype(np.float64)
    X -= X.mean(axis=0)
    norms = np.sqrt((X**2).sum(axis=0))
    correlation = (X.T @ X[:, place]) / np.maximum(norms * norms[place], 1e-300)
    strong = np.flatnonzero((np.abs(correlation) >= _MIN_CORRELATION) & (np.arange(X.shape[1]) != place))
    order = strong[np.argsort(-np.abs(correlation[strong]), kind="stable")]
    return FeatureGroup(start + place, start + order, correlation[order])


def _sparse_correlations(columns: list[tuple[np.ndarray, np.ndarray]], n: int) -> np.ndarray:
    """Return the Pearson correlation of the first column with each of the others."""
    dense_rows = np.unique(np.concatenate([rows for rows, _ in columns]))
    table = np.zeros((len(dense_rows), len(columns)))
    for k, (rows, values) in enumerate(columns):
        table[np.searchsorted(dense_rows, rows), k] = values
    mean = table.sum(axis=0) / n
    covariance = table.T @ table[:, 0] / n - mean * mean[0]
    deviation = np.sqrt((table**2).sum(axis=0) / n - mean**2)
    return (covariance / (deviation * deviation[0]))[1:]
