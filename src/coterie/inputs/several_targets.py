"""Several numeric targets per sample: the columns of a two-dimensional y."""

from __future__ import annotations

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
    columns = _columns(y)
    names = np.array(list(columns), dtype=object)
    check_consistent_length(Rows(n_samples), next(iter(columns.values())))
    found = []
    for name, values in columns.items():
        try:
            found.append(read_targets(values))
        except ValueError as error:
            raise ValueError(f"Target {name!r}: {error}") from error
    return TargetColumns(np.column_stack(found), names)


def _columns(y: Any) -> dict[str, np.ndarray]:
    """Return the columns by name."""
    if hasattr(y, "columns"):
        names = [str(name) for name in y.columns]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise ValueError(f"y has two columns named {repeated!r}. Rename or drop one of them.")
        return {str(name): np.asarray(y[name]) for name in y.columns}
    table = np.ma.filled(y, np.nan) if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    return {f"target_{k}": table[:, k] for k in range(table.shape[1])}
