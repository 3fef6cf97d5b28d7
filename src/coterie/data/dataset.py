"""Features together with the labels, names and notes of their file."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coterie.data.covariates import Covariates
from coterie.data.encoding import TableEncoding
from coterie.data.names import PackedStrings
from coterie.data.source import FeatureSource, annotated


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features, labels, names and notes, as :func:`coterie.data.open_features` returns them.

    ``X, y = dataset`` unpacks the features and the labels. ``fit(dataset)`` uses both.

    Attributes
    ----------
    source : FeatureSource
        Features. ``source.feature_names`` holds their names, if any.
    y : ndarray of shape (n_samples,) or None
        Labels.
    sample_names : sequence of str or None
        Names of the samples.
    format : str
        Format of the file: a name in ``coterie.data.FORMATS``, or ``"store"``.
    path : Path or str
        Path of the file, or folder or URL of the store.
    notes : dict
        Counts made while reading, such as imputed genotypes and dropped samples.
    feature_info : dict
        Annotations of the features, such as the chromosome and position of a SNP: arrays or packed strings of length
        n_features. The source carries them (:func:`coterie.data.annotated`), and groups hold those of their features.
    covariates : Covariates or None
        Covariates of the samples (``values`` and ``names``), for which ``fit(dataset)`` adjusts.
    sample_groups : ndarray of shape (n_samples,) or None
        Sample groups, such as the donors of cells, which validation keeps together.
    other_columns : dict
        Columns that are not features, by name: text that was ignored, dropped columns, columns of ``obs``. Their values are
        codes, integers of shape (n_samples,). :mod:`coterie.cautions` looks for identifiers among them.
    sample_weight : ndarray of shape (n_samples,) or None
        Sample weights, which ``fit(dataset)`` uses unless it gets others.
    encoding : TableEncoding or None
        Encoding of the columns of a table, unless all are numbers. A model fitted to the data reads new tables with it.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.data import Dataset, as_source
    >>> X, y = Dataset(as_source(np.eye(2)), np.array([0, 1]))
    >>> X.shape, y
    ((2, 2), array([0, 1]))
    """

    source: FeatureSource
    y: np.ndarray | None = None
    sample_names: Sequence[str] | None = None
    format: str = ""
    path: Path | str = Path()
    notes: dict[str, Any] = field(default_factory=dict)
    feature_info: dict[str, np.ndarray | PackedStrings] = field(default_factory=dict)
    covariates: Covariates | None = None
    sample_groups: np.ndarray | None = None
    other_columns: dict[str, np.ndarray] = field(default_factory=dict)
    sample_weight: np.ndarray | None = None
    encoding: TableEncoding | None = None

    def __post_init__(self) -> None:
        source = annotated(self.source, self.feature_info)
        if self.encoding is not None:
            source = copy.copy(source)
            source.encoding = self.encoding
        object.__setattr__(self, "source", source)

    def __iter__(self) -> Iterator[Any]:
        yield self.source
        yield self.y

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and number of features."""
        return self.source.shape

    @property
    def feature_names(self) -> Sequence[str] | None:
        """Names of the features, or None."""
        return self.source.feature_names

    def __repr__(self) -> str:
        n, m = self.shape
        kind = "sparse" if self.source.is_sparse else "dense"
        labels = "no labels" if self.y is None else "with labels"
        notes = "".join(f", {key}={value}" for key, value in self.notes.items())
        return f"<Dataset {str(self.path)!r} ({self.format}): {n:,} samples x {m:,} features, {kind}, {labels}{notes}>"
