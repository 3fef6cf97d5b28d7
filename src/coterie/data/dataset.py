"""Features with what came along with them in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coterie.data.covariates import Covariates
from coterie.data.names import PackedStrings
from coterie.data.source import FeatureSource, annotated


@dataclass(frozen=True, eq=False)
class Dataset:
    """What :func:`coterie.data.open_features` returns.

    ``X, y = dataset`` gives the two things that ``fit`` needs, and ``fit(dataset)`` takes both at once.

    Attributes
    ----------
    source : FeatureSource
        The features; ``source.feature_names`` has their names, if there are any.
    y : ndarray of shape (n_samples,) or None
        Labels.
    sample_names : sequence of str or None
        Names of the samples.
    format : str
        Format of the file, a name in ``coterie.data.FORMATS``, or ``"store"``.
    path : Path or str
        The file, or the store's folder or address.
    notes : dict
        Counts worth knowing: missing genotypes imputed, samples dropped, …
    feature_info : dict
        More about each feature, such as the chromosome and position of a SNP: arrays or packed strings of length n_features.
        The source carries them (:func:`coterie.data.annotated`), and groups get those of their features.
    covariates : Covariates or None
        Covariates of the samples (``values`` and ``names``), which ``fit(dataset)`` accounts for.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", annotated(self.source, self.feature_info))

    def __iter__(self) -> Iterator[Any]:
        yield self.source
        yield self.y

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, number of features."""
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
