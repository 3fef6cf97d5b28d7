"""Several matrices as X: a dictionary of frames, arrays, files or AnnData objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.data.blocks import join_blocks
from coterie.data.dataset import Dataset
from coterie.data.source import FeatureSource
from coterie.inputs.frames import is_frame


def is_blocks(X: Any) -> bool:
    """Return True if X is a dictionary of several matrices."""
    return isinstance(X, Mapping)


def open_blocks(
    X: Mapping[str, Any], y: Any, groups: Any, open_block: Callable[[str, Any, Any, Any], Dataset | FeatureSource]
) -> Dataset:
    """Return the data set of several matrices of the same samples; see :func:`coterie.data.blocks.join_blocks`.

    Parameters
    ----------
    X : mapping of str to features
        The blocks.
    y, groups : array-like, str or None
        Labels and sample groups. A string is the name of a column of ``obs`` of an AnnData object, or of a file.
    open_block : callable
        Function of the name of a block, the block, the name of its labels (or None) and the name of its sample groups (or
        None). It returns a data set or a source.
    """
    if not X:
        raise ValueError("X has no blocks. Pass a dictionary with at least one matrix.")
    label, column = (given if isinstance(given, str) else None for given in (y, groups))
    found: dict[str, Dataset] = {}
    for name, block in X.items():
        if isinstance(block, Mapping):
            raise ValueError(f"Block {name!r} is a dictionary. Pass its matrices as blocks of their own.")
        if getattr(block, "ndim", 2) == 1 or (isinstance(block, (list, tuple)) and np.ndim(block[:1]) == 1):
            raise ValueError(
                f"Block {name!r} has one dimension. A dictionary has several matrices. Pass one matrix with these columns as "
                "pandas.DataFrame(X)."
            )
        if getattr(block, "shape", (1, 1))[1:] == (0,):
            raise ValueError(f"Block {name!r} has no features. Leave it out.")
        own = [value if value is not None and _has_column(block, value) else None for value in (label, column)]
        try:
            opened = open_block(name, block, *own)
        except ValueError as error:
            raise ValueError(f"Block {name!r}: {error}") from error
        dataset = opened if isinstance(opened, Dataset) else Dataset(opened)
        # A data frame that was opened as a table has no sample names of its own.
        found[name] = dataset if dataset.sample_names is not None else replace(dataset, sample_names=index_of(block))
    joined = join_blocks(found)
    for what, wanted, value in (("labels", label, joined.y), ("sample groups", column, joined.sample_groups)):
        if wanted is not None and value is None:
            raise ValueError(f"No block has a column {wanted!r} for the {what}. Pass the {what} themselves.")
    if y is not None and label is None:
        _check_order(y, joined.sample_names)
    return joined


def _has_column(block: Any, name: str) -> bool:
    """Return True if ``obs`` of an AnnData object has a column, and for a path, whose columns are not known yet."""
    return name in block.obs.columns if hasattr(block, "obs") else isinstance(block, str) or hasattr(block, "__fspath__")


def index_of(X: Any) -> list[str] | None:
    """Return the names of the samples of a pandas data frame or series, or None if its index only counts the rows."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or not (is_frame(X) or hasattr(X, "to_frame")):
        return None
    values = np.asarray(index)
    if values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values))):
        return None
    return [str(name) for name in index]


def _check_order(y: Any, samples: Sequence[str] | None) -> None:
    """Raise ``ValueError`` if the index of the labels has the samples in another order, or other samples."""
    names = index_of(y)
    if names is None or samples is None or names == list(samples):
        return
    if sorted(names) != sorted(samples):
        n_unknown = len(set(names) - set(samples))
        raise ValueError(
            f"The index of y differs from the samples of the blocks: {n_unknown} of its {len(names)} names "
            f"are not among their {len(samples)} samples. Pass the labels of these samples."
        )
    raise ValueError("y has the samples of the blocks in another order. Use y.loc[...] with the index of the first block.")
