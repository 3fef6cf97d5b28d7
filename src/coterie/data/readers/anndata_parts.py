"""Values, names and labels of an AnnData object, in memory or backed by a file: found by name, refused with what there is."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.data.readers.columns import did_you_mean
from coterie.data.readers.labels import is_missing

# Columns of obs that a message lists.
_SHOWN = 12


def is_anndata(X: Any) -> bool:
    """Whether X is an AnnData object; the library is not imported, whoever has one has it."""
    return type(X).__module__.partition(".")[0] == "anndata" and hasattr(X, "var_names") and hasattr(X, "obs")


def values_and_names(data: Any, layer: str | None) -> tuple[Any, Any]:
    """The matrix of an AnnData object that a layer names (``"raw"``: ``adata.raw``; None: X), and the names of its columns.

    Raises ValueError with what there is instead.
    """
    known = [str(name) for name in data.layers]
    known += ["raw"] if data.raw is not None and "raw" not in known else []
    if layer is None:
        if data.X is None:
            raise ValueError(f"it has no X; choose a layer: {', '.join(known) or 'there is none'}.")
        return data.X, data.var_names
    if layer == "raw" and data.raw is not None:
        return data.raw.X, data.raw.var_names
    if layer not in data.layers:
        raise ValueError(f"it has no layer {layer!r}; {suggestion(str(layer), known)}there is {', '.join(known) or 'none'}.")
    return data.layers[layer], data.var_names


def labels_of(data: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all samples from a column of ``obs``, and which of them are missing.

    Numbers and booleans stay what they are, anything else becomes text. Categories that no sample has do not count. Raises
    ValueError with the nearest names and the columns that could be meant.
    """
    obs = data.obs
    if label not in obs.columns:
        names = [str(name) for name in obs.columns]
        raise ValueError(
            f"obs has no column {label!r} for the labels; {suggestion(str(label), names)}it has {candidates(data) or 'none'}."
        )
    values = obs[label].to_numpy()
    missing = np.array([is_missing(value) for value in values], dtype=bool)
    if values.dtype.kind not in "biuf":  # text, or a type of pandas' own that has a word for nothing
        present = [value for value, gone in zip(values.tolist(), missing, strict=True) if not gone]
        numbers = bool(present) and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present)
        nothing, kind = (np.nan, np.float64) if numbers else (None, object)
        kept = np.array(present if numbers else [str(value) for value in present])
        if missing.any() or not numbers:
            values = np.full(len(values), nothing, dtype=kind)
            values[~missing] = kept
        else:
            values = kept
    return values, missing


def candidates(data: Any) -> str:
    """The columns of ``obs`` in words: those with classes first, with their number, then those with numbers."""
    classes, others = [], []
    for name in data.obs.columns:
        column = data.obs[name]
        n_values = column.nunique()
        numeric = getattr(column.dtype, "kind", "O") == "f" or (getattr(column.dtype, "kind", "O") in "iu" and n_values > 50)
        if not numeric and 2 <= n_values <= max(2, len(column) // 2):
            classes.append(f"{name} ({n_values} classes)")
        else:
            others.append(str(name))
    shown = [*classes, *others][:_SHOWN]
    more = len(classes) + len(others) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def suggestion(name: str, known: list[str]) -> str:
    """``did you mean 'a' or 'b'? `` where a known name is near, else nothing."""
    question = did_you_mean(name, known)
    return f"{question} " if question else ""
