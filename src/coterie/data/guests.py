"""Containers of other libraries that features come in: AnnData objects and Dask arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from coterie.data.memory import as_source
from coterie.data.names import PackedStrings


def from_guest(X: Any) -> Any:
    """A source over the X of an AnnData object, a Dask array computed, and anything else as it is.

    The libraries are not imported: whoever has such an object has its library.
    """
    library = type(X).__module__.partition(".")[0]
    if library == "anndata" and hasattr(X, "var_names"):
        values = X.X
        if values is None:
            raise ValueError("The AnnData object has no X. Put the layer to use there: adata.X = adata.layers[...].")
        if hasattr(values, "to_memory"):  # backed by a file
            values = values.to_memory()
        values = values if sparse.issparse(values) else np.asarray(values)
        return as_source(values, PackedStrings.pack(X.var_names))
    if library == "dask" and hasattr(X, "compute") and hasattr(X, "blocks"):
        return _computed(X)
    return X


def _computed(X: Any) -> Any:
    """A Dask array in memory; blocks may be dense or sparse."""
    computed = X.compute()
    if not sparse.issparse(computed) and not isinstance(computed, np.ndarray):
        raise ValueError(f"The Dask array has blocks of type {type(computed).__name__}; NumPy and SciPy's sparse are known.")
    return computed
