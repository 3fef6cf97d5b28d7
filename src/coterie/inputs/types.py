"""Types of user input: features, targets, folds, seeds and clients."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from distributed import Client
    from scipy import sparse

    from coterie.data.covariates import Covariates
    from coterie.data.dataset import Dataset
    from coterie.data.source import FeatureSource
    from coterie.data.store.reading import Store


class AnnDataLike(Protocol):
    """An AnnData object: features in ``X``, samples in ``obs``, features in ``var``."""

    X: Any
    obs: Any
    var: Any


class MuDataLike(Protocol):
    """A MuData object: AnnData objects by name in ``mod``, samples in ``obs``."""

    mod: Any
    obs: Any


class FrameLike(Protocol):
    """A data frame of pandas or polars."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""
        ...


class Splitter(Protocol):
    """Cross-validation splitter of scikit-learn."""

    def split(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield the training and test samples of each fold."""
        ...


PathLike: TypeAlias = "str | os.PathLike[str]"
# One matrix: arrays, sparse matrices and arrays, data frames, AnnData, paths, opened data sets and stores, sources.
MatrixLike: TypeAlias = (
    "ArrayLike | sparse.sparray | sparse.spmatrix | PathLike | AnnDataLike | FrameLike | FeatureSource | Dataset | Store"
)
# Features: one matrix, or several matrices of the same samples by name.
FeaturesLike: TypeAlias = "MatrixLike | Mapping[str, MatrixLike] | MuDataLike"
# Labels or numbers, one per sample; the name of a column; None for the labels of the data.
TargetsLike: TypeAlias = "ArrayLike | str | None"
# Sample groups, one label per sample; the name of a column; None for those of the data.
SampleGroupsLike: TypeAlias = "ArrayLike | str | None"
# One number or row of numbers per sample.
SamplesLike: TypeAlias = "ArrayLike | None"
# One weight per sample; the name of a column.
WeightsLike: TypeAlias = "ArrayLike | str | None"
# One number or row of numbers per sample; names of columns.
CovariatesLike: TypeAlias = "ArrayLike | Covariates | str | Sequence[str] | None"
NamesLike: TypeAlias = "ArrayLike | Callable[[], ArrayLike] | None"
FoldsLike: TypeAlias = "int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None"
RandomStateLike: TypeAlias = "int | np.random.RandomState | None"
ClientLike: TypeAlias = "Client | None"
ClassWeightLike: TypeAlias = "Mapping[Any, float] | str | None"
ScoringLike: TypeAlias = "str | Callable[..., float] | None"
