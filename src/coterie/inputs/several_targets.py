"""Several numeric targets per sample: the columns of a two-dimensional y."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from coterie.inputs.targets import Rows, read_targets


class TargetColumns(NamedTuple):
    """Several targets.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_targets)
        The targets as float64.
    names : ndarray of str of shape (n_targets,)
        Names of the columns of a data frame, or ``target_0``, ``target_1``, ...
    """

    values: np.ndarray
    names: np.ndarray


@dataclass(frozen=True, eq=False)
class TargetTable:
    """Columns by name, such as a data frame has, of any type.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.inputs.several_targets import TargetTable
    >>> table = TargetTable({"height": np.array([1.0, 2.0]), "weight": np.array([5.0, 7.0])})
    >>> table.shape, table["weight"]
    ((2, 2), array([5., 7.]))
    """

    columns: Mapping[str, np.ndarray]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and number of columns."""
        return len(self), len(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        columns = list(self.columns.values())
        mixed = len({values.dtype.kind in "biuf" for values in columns}) > 1  # numbers would become text
        table = np.column_stack([values.astype(object) for values in columns] if mixed else columns)
        return table if dtype is None else table.astype(dtype)


def are_several(y: Any) -> bool:
    """Return True if y has two or more columns, and no fields as survival times have.

    Examples
    --------
    >>> from coterie.inputs.several_targets import are_several
    >>> are_several([[1.0, 2.0], [3.0, 4.0]]), are_several([[1.0], [2.0]]), are_several([1.0, 2.0])
    (True, False, False)
    """
    if hasattr(y, "columns"):
        return len(y.columns) > 1
    try:
        shape = np.asarray(y).shape
    except ValueError:  # rows of different lengths, which the checks of labels report
        return False
    return len(shape) == 2 and shape[1] > 1


def read_several(y: Any, n_samples: int, reader: BaseEstimator | str) -> TargetColumns:
    """Check several targets and return them. ``reader`` is named in errors.

    Examples
    --------
    >>> from coterie.inputs.several_targets import read_several
    >>> read_several([[1, 5], [2, 7]], 2, "fit")
    TargetColumns(values=array([[1., 5.],
           [2., 7.]]), names=array(['target_0', 'target_1'], dtype=object))
    """
    columns = columns_of(y)
    names = np.array(list(columns), dtype=object)
    check_consistent_length(Rows(n_samples), next(iter(columns.values())))
    found = []
    for name, values in columns.items():
        with errors_of(name):
            if values.dtype.kind in "cmM":
                raise ValueError(f"Targets must be numbers, but are of type {values.dtype}.")
            found.append(read_targets(values))
    return TargetColumns(np.column_stack(found), names)


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Name one of several targets in the ``ValueError`` of a check."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Target {name!r}: {error}") from error


def columns_of(y: Any) -> dict[str, np.ndarray]:
    """Return the columns of several targets by name."""
    if hasattr(y, "columns"):
        names = [str(name) for name in y.columns]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ValueError(f"y has two columns named {repeated!r}. Rename or drop one of them.")
        return {str(name): np.asarray(y[name]) for name in y.columns}
    table = np.ma.filled(y, np.nan) if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    return {f"target_{k}": table[:, k] for k in range(table.shape[1])}
