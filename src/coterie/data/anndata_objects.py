"""AnnData objects as data sets, in memory or backed by their files."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from coterie.data.dataset import Dataset
from coterie.data.memory import as_source
from coterie.data.names import PackedStrings
from coterie.data.readers.anndata_parts import labels_of, values_and_names


def from_anndata(
    adata: Any, *, label: Any = None, layer: str | None = None, missing_labels: str = "error", feature_names: Any = None
) -> Dataset:
    """The features of an AnnData object, uncopied, with the labels of a column of ``obs``.

    Parameters
    ----------
    adata : AnnData
        The object.
    label : str, False or None
        Column of ``obs`` with the labels; None and False: no labels.
    layer : str, optional
        Layer to take instead of X; ``"raw"`` stands for ``adata.raw``.
    missing_labels : {"error", "drop"}, default="error"
        What to do with samples whose label is missing.
    feature_names : sequence of str, optional
        Other names than those of ``var``.

    Returns
    -------
    dataset : Dataset

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from anndata import AnnData
    >>> from coterie.data import open_features
    >>> obs = pd.DataFrame({"kind": ["B", "T", "B"]}, index=["c1", "c2", "c3"])
    >>> dataset = open_features(AnnData(np.eye(3), obs), label="kind")
    >>> dataset.shape, dataset.y
    ((3, 3), array(['B', 'T', 'B'], dtype=object))
    """
    if missing_labels not in ("error", "drop"):
        raise ValueError(f"missing_labels={missing_labels!r} must be 'error' or 'drop'.")
    try:
        values, names = values_and_names(adata, layer)
        labels = None if label is None or label is False else labels_of(adata, label)
    except ValueError as error:
        how = " coterie.data.open_features(adata, layer=...) takes one." if "choose a layer" in str(error) else ""
        raise ValueError(f"The AnnData object: {error}{how}") from error
    notes: dict[str, Any] = {} if layer is None else {"layer": layer}
    keep: Any = slice(None)
    if labels is not None and labels[1].any():
        keep, n_missing = _with_label(adata, label, labels[1], missing_labels)
        notes["samples_without_label_dropped"] = n_missing
    if hasattr(values, "to_memory"):  # backed by a file
        values = values.to_memory()
    if not sparse.issparse(values):
        values = np.asarray(values)
    if not isinstance(keep, slice):
        values = (values.tocsr() if sparse.issparse(values) else values)[keep]
    source = as_source(values, PackedStrings.pack(names if feature_names is None else feature_names))
    y = None if labels is None else labels[0][keep]
    return Dataset(source, y, PackedStrings.pack(adata.obs_names[keep]), "anndata", notes=notes)


def _with_label(adata: Any, label: Any, missing: np.ndarray, policy: str) -> tuple[np.ndarray, int]:
    """The samples that have a label; an error, if the others are not to be dropped."""
    count, first = int(missing.sum()), str(adata.obs_names[int(np.argmax(missing))])
    if count == len(missing):
        raise ValueError(f"The AnnData object: no sample has a label in obs[{label!r}].")
    if policy == "error":
        raise ValueError(
            f"y contains NaN or None: {count} of {len(missing)} samples have no label in obs[{label!r}], the first is "
            f"{first!r}. Leave them out: adata = adata[adata.obs[{label!r}].notna()]."
        )
    return np.flatnonzero(~missing), count
