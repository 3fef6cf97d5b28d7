"""MuData files (.h5mu) and objects: several AnnData matrices of the same samples as blocks, with labels from ``obs``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from coterie._warnings import ignored
from coterie.bounds import check_regular
from coterie.data.blocks import BLOCK, join_blocks
from coterie.data.dataset import Dataset
from coterie.data.errors import DataFileError, missing_extra
from coterie.data.names import PackedStrings
from coterie.data.readers.h5ad import FileCheck, column_of, from_anndata, labels_of
from coterie.data.readers.reader import Block, Progress, Reader, group_labels, usable_values


def is_mudata(X: Any) -> bool:
    """Return True if X is a MuData object, without importing mudata."""
    return type(X).__module__.partition(".")[0] == "mudata" and hasattr(X, "mod") and hasattr(X, "obs")


def from_mudata(mdata: Any, *, label: Any = None, sample_groups: Any = None) -> Dataset:
    """Return the features of all modalities of a MuData object; see :func:`coterie.data.blocks.join_blocks`.

    Parameters
    ----------
    mdata : MuData
        Modalities with the same samples. Each is a block of this name.
    label, sample_groups : str, False or None
        Columns of ``obs``.
    """
    label, sample_groups = (None if name is False else name for name in (label, sample_groups))
    blocks = {str(name): from_anndata(own) for name, own in mdata.mod.items()}
    joined = join_blocks(blocks)
    assert joined.sample_names is not None  # those of the AnnData objects
    rows = mdata.obs_names.get_indexer(list(joined.sample_names))
    if label is not None:
        y, missing = labels_of(mdata, label)
        if missing[rows].any():
            first = joined.sample_names[int(np.argmax(missing[rows]))]
            raise ValueError(
                f"{int(missing[rows].sum())} of {len(rows)} samples have no label in obs[{label!r}]. The first is {first!r}. "
                f"Drop them: mdata = mdata[mdata.obs[{label!r}].notna()]."
            )
        joined = replace(joined, y=y[rows])
    if sample_groups is not None:
        values = column_of(mdata, sample_groups, "sample groups")[rows]
        joined = replace(joined, sample_groups=group_labels(values.tolist(), "MuData object", f"obs[{sample_groups!r}]"))
    return replace(joined, format="mudata")


class H5muReader(Reader):
    """Reader of .h5mu files. All modalities must have the same samples.

    Parameters
    ----------
    path : Path
        .h5mu file, which is read as a whole.
    label : str, False or None
        Column of ``obs`` with the labels. None and False: no labels.
    sample_groups : str, optional
        Column of ``obs`` with the sample groups, such as the donor of each cell.
    """

    format = "h5mu"
    by = "features"
    _damage_message = "the file is damaged or not an .h5mu file ({})."

    def __init__(self, path: Path, *, label: Any = None, sample_groups: Any = None) -> None:
        super().__init__(path)
        check_regular(path)
        check = FileCheck(path, self._damage_message)  # runs while mudata is imported
        try:
            import mudata
        except ImportError as error:
            check.kill()
            raise missing_extra("Reading .h5mu files", "mudata", "bio") from error
        check.wait()
        with self._translate_errors(), ignored():
            mdata = mudata.read_h5mu(path)
        try:
            found = from_mudata(mdata, label=label, sample_groups=sample_groups)
        except ValueError as error:
            raise DataFileError(str(error), path) from error
        self._source = found.source
        self.shape = found.shape
        self.labels, self.sample_groups, self.notes = found.y, found.sample_groups, found.notes
        assert found.sample_names is not None
        assert found.feature_names is not None
        self.sample_names = PackedStrings.pack(found.sample_names)
        self.feature_names = PackedStrings.pack(found.feature_names)
        self.feature_info = {BLOCK: PackedStrings.pack(found.feature_info[BLOCK])}

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        n_samples, n_features = self._source.shape
        width = max(1, n_values // max(1, n_samples))
        for start in range(0, n_features, width):
            stop = min(start + width, n_features)
            block = usable_values(self._source.block(start, stop), self.path)
            self.dtype = block.dtype
            yield block
            if progress is not None:
                progress(stop, n_features, "reading")
