"""Several matrices of the same samples as one source: blocks of features, such as expression and proteins.

A feature of block ``rna`` with the name ``TP53`` has the name ``rna:TP53``, and its annotation ``block`` is ``rna``. So names
are unique if they are unique within each block, and predictions find the features by name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from coterie.data.dataset import Dataset
from coterie.data.encoding import TableEncoding
from coterie.data.imputation import ImputedSource
from coterie.data.memory import DenseSource, SparseSource, as_source
from coterie.data.names import PackedStrings, require_unique_names
from coterie.data.source import Columns, FeatureSource, Moments, StrongPairs, StrongQuery, annotated

# Name of the annotation that holds the block of each feature.
BLOCK = "block"
# Blocks that take at most this many bytes together are copied into one matrix, which is faster to search.
_MAX_COPIED_BYTES = 1 << 30
# Bytes per entry of a sparse matrix in addition to its value.
_INDEX_BYTES = 4
# Columns of a query that are multiplied with a sparse part at a time.
_BATCH_COLUMNS = 16
# Maximum number of sample names in a message.
_MAX_NAMES_SHOWN = 3


class ConcatenatedSource(FeatureSource):
    """Features of several sources side by side, without a copy. Columns are returned dense.

    Every part computes its own moments and products, in its own layout. Use :func:`concatenated`, which copies small parts
    into one matrix.

    Parameters
    ----------
    parts : sequence of FeatureSource
        Sources of the same samples, in this process.
    feature_names : sequence of str, optional
        One name per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from coterie.data import as_source
    >>> from coterie.data.blocks import ConcatenatedSource
    >>> source = ConcatenatedSource([as_source(np.array([[1.0], [3.0]])), as_source(sparse.csc_array([[0, 4], [0, 0]]))])
    >>> source.moments().mean
    array([2., 0., 2.])
    >>> source.columns(np.array([2, 0]))
    array([[4., 1.],
           [0., 3.]])
    """

    is_sparse = False
    feature_names: Sequence[str] | None = None

    def __init__(self, parts: Sequence[FeatureSource], feature_names: Sequence[str] | None = None) -> None:
        self._starts = np.cumsum([0, *(part.shape[1] for part in parts)])
        self.feature_names = feature_names
        self._parts = [self._placed(part, int(start)) for part, start in zip(parts, self._starts, strict=False)]
        self._dtype = reduce(np.promote_types, (_value_type(part) for part in parts))

    def _placed(self, part: FeatureSource, start: int) -> FeatureSource:
        """Return a part that describes bad values by the position and the name in the whole matrix, if its class allows."""
        placed: Any = copy.copy(part)
        try:
            placed.first_feature = start
            if self.feature_names is not None:
                placed.feature_names = _Slice(self.feature_names, start, part.shape[1])
        except AttributeError:
            return part
        return placed

    @property
    def shape(self) -> tuple[int, int]:
        return self._parts[0].shape[0], int(self._starts[-1])

    def _each(self) -> list[tuple[FeatureSource, slice]]:
        """Return each part with the range of its features."""
        bounds = zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True)
        return [(part, slice(a, b)) for part, (a, b) in zip(self._parts, bounds, strict=True)]

    def _those_of(self, features: np.ndarray) -> list[tuple[FeatureSource, slice, np.ndarray, np.ndarray]]:
        """Return, per part with some of the features, its range, their places in ``features`` and indices in the part."""
        chosen = np.asarray(features, dtype=np.int64)
        owner = np.searchsorted(self._starts, chosen, side="right") - 1
        places = ((*each, np.flatnonzero(owner == k)) for k, each in enumerate(self._each()))
        return [(part, own, where, chosen[where] - own.start) for part, own, where in places if len(where)]

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        return _joined_moments([part.moments(sample_weight, n_threads=n_threads) for part in self._parts])

    def many_moments(self, weights: Sequence[np.ndarray], *, n_threads: int = 1) -> list[Moments]:
        by_part = [part.many_moments(weights, n_threads=n_threads) for part in self._parts]
        return [_joined_moments(moments) for moments in zip(*by_part, strict=True)]

    def products(
        self,
        vectors: np.ndarray,
        *,
        centre: np.ndarray | None = None,
        features: np.ndarray | None = None,
        out: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        n_features = self.shape[1] if features is None else len(features)
        out = np.empty((n_features, vectors.shape[1])) if out is None else out
        if features is None:
            for part, own in self._each():
                part.products(vectors, centre=None if centre is None else centre[own], out=out[own], n_threads=n_threads)
            return out
        for part, own, places, chosen in self._those_of(features):
            middle = None if centre is None else centre[own]
            out[places] = part.products(vectors, centre=middle, features=chosen, n_threads=n_threads)
        return out

    def strong_products(self, query: StrongQuery, moments: Moments, *, n_threads: int = 1) -> StrongPairs:
        found = []
        for part, own in self._each():
            known = _moments_at(moments, own)
            if part.is_sparse:
                pairs = _strong_in_sparse(part, query, known, n_threads)
            else:
                exemplar = query.exemplar
                if exemplar is not None:
                    exemplar = replace(exemplar, scores=exemplar.scores[own])
                pairs = part.strong_products(query.with_exemplar(exemplar), known, n_threads=n_threads)
            found.append(pairs._replace(feature=pairs.feature + own.start))
        feature, position, product = (np.concatenate([pairs[i] for pairs in found]) for i in range(3))
        n_evaluated, n_read = sum(pairs.n_evaluated for pairs in found), sum(pairs.n_read for pairs in found)
        return StrongPairs(feature, position, product, n_evaluated, n_read)

    def columns(self, features: np.ndarray) -> Columns:
        result: np.ndarray = np.empty((self.shape[0], len(features)), dtype=self._dtype, order="F")
        for part, _, places, chosen in self._those_of(features):
            result[:, places] = _dense(part.columns(chosen))
        return result

    def block(self, start: int, stop: int) -> Columns:
        inside = [(part, own) for part, own in self._each() if own.start < stop and start < own.stop]
        blocks = [_dense(part.block(max(start - own.start, 0), min(stop, own.stop) - own.start)) for part, own in inside]
        if len(blocks) == 1:
            return np.asfortranarray(blocks[0])
        result: np.ndarray = np.empty((self.shape[0], stop - start), dtype=self._dtype, order="F")
        return np.concatenate(blocks, axis=1, out=result) if blocks else result

    def prefetch(self, features: np.ndarray) -> None:
        """Do nothing: the parts are in this process."""


class _Slice(Sequence[str]):
    """A range of the names of a matrix, not copied."""

    def __init__(self, names: Sequence[str], start: int, length: int) -> None:
        self._names, self._start, self._length = names, start, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        return self._names[self._start + int(index)]


class _JoinedColumn(Sequence[Any]):
    """Annotation of several sources side by side; None where a source lacks it. Values are read on access."""

    def __init__(self, columns: Sequence[Any], lengths: Sequence[int]) -> None:
        self._columns = columns
        self._starts = np.cumsum([0, *lengths])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: Any) -> Any:
        k = int(np.searchsorted(self._starts, int(index), side="right")) - 1
        return None if self._columns[k] is None else self._columns[k][int(index) - int(self._starts[k])]


def _value_type(part: FeatureSource) -> np.dtype:
    """Return the type of the values of a source."""
    found: np.dtype = part.columns(np.zeros(1, dtype=np.int64)).dtype
    return found


def _dense(columns: Columns) -> np.ndarray:
    return columns if isinstance(columns, np.ndarray) else columns.toarray()


def _joined_moments(moments: Sequence[Moments]) -> Moments:
    mean, norm = (np.concatenate([getattr(own, name) for own in moments]) for name in ("mean", "norm"))
    return Moments(mean, norm, moments[0].total_weight)


def _moments_at(moments: Moments, features: slice) -> Moments:
    return Moments(moments.mean[features], moments.norm[features], moments.total_weight)


def _strong_in_sparse(part: FeatureSource, query: StrongQuery, moments: Moments, n_threads: int) -> StrongPairs:
    """Return the strong products of sparse features with centred dense columns, a batch of columns at a time."""
    columns, found = np.asarray(query.columns, dtype=np.float64), []
    for first in range(0, columns.shape[1], _BATCH_COLUMNS):
        batch = slice(first, first + _BATCH_COLUMNS)
        products = part.products(columns[:, batch], centre=moments.mean, n_threads=n_threads)
        strong = np.abs(products) >= moments.norm[:, None] * query.limits[batch]
        feature, position = np.nonzero(strong & (moments.norm > 0.0)[:, None])
        found.append((feature, position + first, products[feature, position]))
    feature, position, product = (np.concatenate([part[i] for part in found]) for i in range(3))
    order = np.lexsort((position, feature))
    return StrongPairs(
        feature[order], position[order], product[order], moments.n_varying * len(query.limits), moments.n_varying
    )


def concatenated(parts: Sequence[FeatureSource], feature_names: Sequence[str] | None = None) -> FeatureSource:
    """Return the features of several sources of the same samples side by side.

    Parts of at most 1 GiB together are copied into one matrix, dense or sparse, whichever is smaller. Sparse parts only are
    always copied. Larger parts stay where they are (:class:`ConcatenatedSource`).

    Parameters
    ----------
    parts : sequence of FeatureSource
        Sources of the same samples.
    feature_names : sequence of str, optional
        One name per feature.
    """
    if any(isinstance(part, ImputedSource) for part in parts):
        return _imputed(parts, feature_names)
    if all(part.is_sparse for part in parts):
        return SparseSource(_csc(parts), feature_names)
    dense, packed = _sizes(parts)
    if min(dense, packed) > _MAX_COPIED_BYTES:
        return ConcatenatedSource(parts, feature_names)
    if packed < dense:
        return SparseSource(_csc(parts), feature_names)
    return DenseSource(_array(parts), feature_names)


def _sizes(parts: Sequence[FeatureSource]) -> tuple[int, int]:
    """Return the bytes of all values as a dense array, and as a sparse one in which dense parts have all entries."""
    value = reduce(np.promote_types, map(_value_type, parts)).itemsize
    n_samples = parts[0].shape[0]
    n_values = [n_samples * part.shape[1] for part in parts]
    n_entries = [_n_entries(part) if part.is_sparse else n for part, n in zip(parts, n_values, strict=True)]
    return value * sum(n_values), (value + _INDEX_BYTES) * sum(n_entries)


def _n_entries(part: FeatureSource) -> int:
    return sum(block.nnz for _, block in part.blocks(1 << 16) if not isinstance(block, np.ndarray))


def _array(parts: Sequence[FeatureSource]) -> np.ndarray:
    blocks = [_dense(part.block(0, part.shape[1])) for part in parts]
    return np.asfortranarray(np.concatenate(blocks, axis=1))


def _csc(parts: Sequence[FeatureSource]) -> sparse.csc_array:
    blocks = [sparse.csc_array(part.block(0, part.shape[1])) for part in parts]
    return sparse.csc_array(sparse.hstack(blocks, format="csc"))


def _imputed(parts: Sequence[FeatureSource], feature_names: Sequence[str] | None) -> FeatureSource:
    """Return one imputed source, so that every fold is imputed from its own training samples."""
    strategies = sorted({part.strategy for part in parts if isinstance(part, ImputedSource)})
    if len(strategies) > 1:
        raise ValueError(f"The blocks are imputed by {' and '.join(strategies)}. Impute all blocks by one of them.")
    if any(part.is_sparse for part in parts):
        raise ValueError("Imputed blocks and sparse blocks cannot be combined. Convert the sparse blocks to dense arrays.")
    arrays = [part.with_gaps() if isinstance(part, ImputedSource) else _array([part]) for part in parts]
    return ImputedSource(np.asfortranarray(np.concatenate(arrays, axis=1)), strategies[0], feature_names)


def some_features(source: FeatureSource, features: np.ndarray) -> FeatureSource:
    """Return a source over some features, copied, with their names and annotations."""
    names = None if source.feature_names is None else [str(source.feature_names[int(j)]) for j in features]
    found: FeatureSource
    if isinstance(source, ImputedSource):
        found = ImputedSource(source.with_gaps()[:, features], source.strategy, names)
    else:
        found = as_source(source.columns(features), names)
    return annotated(found, {name: [column[int(j)] for j in features] for name, column in source.annotations.items()})


def blocks_of(source: FeatureSource) -> dict[str, np.ndarray]:
    """Return the features of each block, in order; empty if the features are not divided into blocks."""
    column = source.annotations.get(BLOCK)
    if column is None:
        return {}
    if isinstance(column, BlockColumn):
        return {name: np.arange(a, b) for name, a, b in column.ranges()}
    names, codes = np.unique([str(name) for name in column], return_inverse=True)
    found = {str(name): np.flatnonzero(codes == k) for k, name in enumerate(names)}
    return dict(sorted(found.items(), key=lambda item: int(item[1][0])))


class BlockColumn(Sequence[str]):
    """The block of each feature, as an annotation.

    Examples
    --------
    >>> from coterie.data.blocks import BlockColumn
    >>> column = BlockColumn({"rna": 3, "protein": 1})
    >>> column[2], column[3], len(column)
    ('rna', 'protein', 4)
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._names = list(sizes)
        self._starts = np.cumsum([0, *sizes.values()])

    def ranges(self) -> list[tuple[str, int, int]]:
        """Return the name, the first feature and the end of each block."""
        return list(zip(self._names, self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True))

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: Any) -> Any:
        return self._names[int(np.searchsorted(self._starts, int(index), side="right")) - 1]


def join_blocks(blocks: Mapping[str, Dataset], *, common: bool = False) -> Dataset:
    """Return several data sets of the same samples as one, with the features of all.

    Samples with names are matched by name, in the order of the first block with names. Blocks without names have their
    samples in this order. Labels, covariates and sample groups are those of the first block that has them.

    Parameters
    ----------
    blocks : mapping of str to Dataset
        Data set of each block.
    common : bool, default=False
        Whether to leave out samples that a block with sample names lacks. By default they raise an error.

    Returns
    -------
    dataset : Dataset
        Features named ``block:name`` (or ``block:position`` without names), with the annotation ``block``.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import Dataset, as_source
    >>> from coterie.data.blocks import join_blocks
    >>> rna = Dataset(as_source(np.array([[1.0], [2.0]]), ["TP53"]), sample_names=["a", "b"])
    >>> protein = Dataset(as_source(np.array([[8.0], [7.0]]), ["TP53"]), sample_names=["b", "a"])
    >>> joined = join_blocks({"rna": rna, "protein": protein})
    >>> list(joined.feature_names)
    ['rna:TP53', 'protein:TP53']
    >>> joined.source.columns(np.array([0, 1]))
    array([[1., 7.],
           [2., 8.]])
    """
    _check_blocks(blocks)
    n_samples = max(own.shape[0] for own in blocks.values())
    aligned = _aligned(_common_samples(blocks) if common else blocks)
    sources = [dataset.source for dataset in aligned.values()]
    sizes = {name: source.shape[1] for name, source in zip(aligned, sources, strict=True)}
    names = PackedStrings.pack(
        f"{block}:{name}"
        for block, source in zip(aligned, sources, strict=True)
        for name in (range(source.shape[1]) if source.feature_names is None else source.feature_names)
    )
    known = dict.fromkeys(key for source in sources for key in source.annotations if key != BLOCK)
    info: dict[str, Any] = {BLOCK: BlockColumn(sizes)}
    info |= {key: _JoinedColumn([source.annotations.get(key) for source in sources], list(sizes.values())) for key in known}
    shared = {key: info[key] for key in info if key == BLOCK or all(key in source.annotations for source in sources)}
    sets = list(aligned.values())
    notes = {f"{name}_{key}": value for name, own in aligned.items() for key, value in own.notes.items()}
    if (n_dropped := n_samples - sources[0].shape[0]) > 0:
        notes["samples_not_in_all_blocks_dropped"] = n_dropped
    return Dataset(
        annotated(concatenated(sources, names), info),
        _first(sets, lambda own: own.y),
        _first(sets, lambda own: own.sample_names),
        "blocks",
        " + ".join(aligned),
        {"blocks": ", ".join(f"{name} ({size:,} features)" for name, size in sizes.items()), **notes},
        shared,
        _first(sets, lambda own: own.covariates),
        _first(sets, lambda own: own.sample_groups),
        {key: codes for own in reversed(sets) for key, codes in own.other_columns.items()},
        _first(sets, lambda own: own.sample_weight),
        TableEncoding.joined({name: own.encoding for name, own in aligned.items()}),
    )


def _first(datasets: Sequence[Dataset], value: Callable[[Dataset], Any]) -> Any:
    return next((found for own in datasets if (found := value(own)) is not None), None)


def _check_blocks(blocks: Mapping[str, Dataset]) -> None:
    """Raise ``ValueError`` for blocks that cannot be joined whatever their samples are."""
    for name, dataset in blocks.items():
        if not isinstance(name, str) or not name or ":" in name:
            raise ValueError(f"The block name {name!r} must be a string without a colon that is not empty.")
        if not dataset.shape[1]:
            raise ValueError(f"Block {name!r} has no features. Leave it out.")
        if dataset.source.n_workers is not None:
            raise ValueError(f"Block {name!r} is on a cluster. Blocks must be in this process.")
        if dataset.feature_names is not None:
            require_unique_names(dataset.feature_names, of=f"Block {name!r}: ")


def _aligned(blocks: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """Return the data sets with their samples in the same order."""
    named = {
        name: [str(sample) for sample in own.sample_names] for name, own in blocks.items() if own.sample_names is not None
    }
    for name, samples in named.items():
        repeated = _first_repeated(samples)
        if repeated is not None and len(named) > 1:
            raise ValueError(
                f"Block {name!r} has the sample name {repeated!r} twice, so its samples cannot be matched by name. Rename or "
                "drop one of them."
            )
    first, n_samples = next((name, own.shape[0]) for name, own in blocks.items() if name in named or not named)
    for name, own in blocks.items():
        if name not in named and own.shape[0] != n_samples:
            raise ValueError(
                f"Block {name!r} has {own.shape[0]} samples, but block {first!r} has {n_samples}. All blocks require the same "
                "samples."
            )
        if name not in named and len(blocks) > 1 and (ignored := own.notes.get("columns_ignored")):
            raise ValueError(
                f"Block {name!r} has no sample names and can only be matched by position, but columns of it are left out: "
                f"{ignored}. State the column of the sample names (open_features(..., sample_names=COLUMN), --read "
                "sample_names=COLUMN), or drop these columns if all blocks have the samples in the same order."
            )
    reference = named.get(first, [])
    return {
        name: own if name not in named else _in_order(own, named[name], reference, name, first) for name, own in blocks.items()
    }


def _common_samples(blocks: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """Return the data sets with the samples that all of them have. All must have sample names."""
    unnamed = next((name for name, own in blocks.items() if own.sample_names is None), None)
    if unnamed is not None:
        raise ValueError(f"Block {unnamed!r} has no sample names, so the common samples are unknown. Add sample names to it.")
    common = set.intersection(*({str(sample) for sample in own.sample_names or ()} for own in blocks.values()))
    if not common:
        raise ValueError("No sample name occurs in all blocks. Check that the blocks use the same names.")
    found = {}
    for name, own in blocks.items():
        kept = np.array([str(sample) in common for sample in own.sample_names or ()])
        found[name] = own if kept.all() else _with_samples(own, np.flatnonzero(kept))
    return found


def _first_repeated(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _in_order(dataset: Dataset, names: list[str], reference: list[str], block: str, first: str) -> Dataset:
    """Return a data set with its samples in the order of the reference."""
    if names == reference:
        return dataset
    known, wanted = set(names), set(reference)
    for lacking, name, other in (
        ([sample for sample in reference if sample not in known], block, first),
        ([sample for sample in names if sample not in wanted], first, block),
    ):
        if lacking:
            shown = ", ".join(map(repr, lacking[:_MAX_NAMES_SHOWN])) + (", …" if len(lacking) > _MAX_NAMES_SHOWN else "")
            raise ValueError(
                f"Block {name!r} lacks {len(lacking)} of the samples of block {other!r}: {shown}. Keep the samples that all "
                "blocks have, in the labels too: --common-samples on the command line, or for data frames "
                "common = a.index.intersection(b.index), then a.loc[common]."
            )
    positions = {name: place for place, name in enumerate(names)}
    return _with_samples(dataset, np.array([positions[name] for name in reference]))


def _with_samples(dataset: Dataset, samples: np.ndarray) -> Dataset:
    """Return a data set with some of its samples, in this order."""
    source, found = dataset.source, dataset.source
    if isinstance(source, ImputedSource):
        found = ImputedSource(np.asfortranarray(source.with_gaps()[samples]), source.strategy, source.feature_names)
    else:
        block = source.block(0, source.shape[1])
        rows = block[samples] if isinstance(block, np.ndarray) else sparse.csc_array(block.tocsr()[samples])
        found = as_source(rows, source.feature_names)
    covariates = dataset.covariates
    return replace(
        dataset,
        source=annotated(found, source.annotations),
        y=None if dataset.y is None else dataset.y[samples],
        sample_names=None if dataset.sample_names is None else [dataset.sample_names[int(i)] for i in samples],
        covariates=None if covariates is None else covariates._replace(values=covariates.values[samples]),
        sample_groups=None if dataset.sample_groups is None else dataset.sample_groups[samples],
        sample_weight=None if dataset.sample_weight is None else dataset.sample_weight[samples],
        other_columns={name: codes[samples] for name, codes in dataset.other_columns.items()},
    )
