"""Containers of features: paths, data sets, stores, AnnData objects, Dask arrays, lazy frames.

They are opened here; what is left is an array, a sparse matrix, a data frame or a source.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from coterie.data.addresses import is_address
from coterie.data.covariates import Covariates
from coterie.data.dataset import Dataset
from coterie.data.opening import open_features
from coterie.data.readers.anndata_parts import candidates, is_anndata
from coterie.data.store import Store, is_store
from coterie.inputs.frames import is_lazy
from coterie.inputs.placing import lives_on_cluster, on_cluster, placed
from coterie.inputs.types import ClientLike, FeaturesLike, TargetsLike


class Unwrapped(NamedTuple):
    """What a container holds.

    Attributes
    ----------
    X : array, sparse matrix, data frame or FeatureSource
        The features.
    y : array-like or None
        The labels given, or else those of the container.
    origin : Dataset, Store or None
        The container, where it is more than a matrix.
    """

    X: Any
    y: Any
    origin: Dataset | Store | None = None

    @property
    def covariates(self) -> Covariates | None:
        """The covariates that the container brings."""
        return None if self.origin is None else self.origin.covariates


def unwrapped(
    X: FeaturesLike, y: TargetsLike = None, *, reader: BaseEstimator | None = None, client: ClientLike = None
) -> Unwrapped:
    """Open a container; anything else is left as it is.

    Parameters
    ----------
    X : array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store or Dask array
        The features. Stores and Dask arrays stay with the workers of a Dask cluster where a client is given or active and the
        reader can work there. Other Dask arrays and lazy frames are computed.
    y : array-like, str or None
        Labels. Text is the name of a column: of ``obs`` for an AnnData object, of the file for a path. None takes the labels
        of the container.
    reader : estimator, optional
        The estimator that reads; None for functions, which work in this process.
    client : distributed.Client, optional
        Client of a cluster.
    """
    held: Any = X
    labels: Any = y
    if isinstance(held, (str, os.PathLike)) or is_anndata(held):
        if isinstance(labels, str):
            held = open_features(held, label=labels)
            labels = held.y
        elif not is_anndata(held) and (is_address(held) or is_store(held)):
            held = Store(held)  # nothing is read yet: its features may stay with the workers of a cluster
        else:
            held = open_features(held)
    origin = held if isinstance(held, (Dataset, Store)) else None
    if reader is not None:
        held, labels = _on_workers(held, labels, reader, client)
    if isinstance(labels, str):
        columns = f" (X[{labels!r}]) and X without them" if hasattr(held, "columns") else ""
        raise ValueError(
            f"y is the word {labels!r}. It may be the name of a column for an AnnData object or a path; "
            f"of other data, pass the labels themselves{columns}."
        )
    if isinstance(held, (Dataset, Store)):
        return Unwrapped(held.source, held.y if labels is None else labels, origin)
    if type(held).__module__.partition(".")[0] == "dask" and hasattr(held, "compute") and hasattr(held, "blocks"):
        held = _computed(held)
    return Unwrapped(held.collect() if is_lazy(held) else held, labels, origin)


def opened(X: FeaturesLike, y: TargetsLike = None, *, cluster: bool = False) -> tuple[Any, Any]:
    """Features and labels out of a container, for functions."""
    on_workers = on_cluster(X) if cluster else None
    if on_workers is not None:
        return on_workers[0], on_workers[1] if y is None else y
    found = unwrapped(X, y)
    return found.X, found.y


def _on_workers(X: Any, y: Any, reader: BaseEstimator, client: ClientLike) -> tuple[Any, Any]:
    """Features with the workers of a cluster, where there is a client and the reader can work there."""
    X, y = placed(X, y, client, reader=reader, able=lives_on_cluster(reader))
    found = on_cluster(X) if lives_on_cluster(reader, X) else None
    return (X, y) if found is None else (found[0], found[1] if y is None else y)


def labels_hint(X: Any) -> str:
    """What y could be for an AnnData object."""
    known = candidates(X) if is_anndata(X) else ""
    return f" Pass the name of a column of obs: {known}." if known else ""


def _computed(X: Any) -> Any:
    """A Dask array in memory; blocks may be dense or sparse."""
    computed = X.compute()
    if not sparse.issparse(computed) and not isinstance(computed, np.ndarray):
        raise ValueError(f"The Dask array has blocks of type {type(computed).__name__}; NumPy and SciPy's sparse are known.")
    return computed
