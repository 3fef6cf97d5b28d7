"""Which columns of a table take part in a grouping, and what becomes of the others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from coterie.data.names import refuse_repeated
from coterie.data.source import FeatureSource
from coterie.inputs.arrays import Reading, read_source, take_columns
from coterie.selection import feature_positions

_SHOWN = 5


class Participants(NamedTuple):
    """The columns that take part.

    Attributes
    ----------
    X : Any
        These columns, in the format that they came in.
    reading : Reading
        The source over them; the attributes are those of the whole table.
    features : ndarray of int
        Their places in the whole table, in order.
    others : ndarray of int
        The places of all other columns.
    """

    X: Any
    reading: Reading
    features: np.ndarray
    others: np.ndarray


def participants(estimator: BaseEstimator, given: Any, variables: Any, remainder: str) -> Participants:
    """The columns that ``variables`` name; without any, all columns of numbers."""
    is_frame = hasattr(given, "columns") and hasattr(given, "dtypes") and not isinstance(given, FeatureSource)
    if not is_frame and variables is None:
        reading = read_source(estimator, given)
        return Participants(given, reading, np.arange(reading.source.shape[1]), np.empty(0, dtype=np.int64))
    names = list(given.columns) if is_frame else getattr(given, "feature_names", None)
    all_text = names is not None and all(isinstance(name, str) for name in names)
    if is_frame and all_text:
        refuse_repeated(names or [], of="X: ")
    n_features = given.shape[1] if hasattr(given, "shape") else np.shape(given)[1]
    numbers = np.flatnonzero([is_number(dtype) for dtype in given.dtypes]) if is_frame else np.arange(n_features)
    features = numbers if variables is None else _asked(given, variables, names if all_text else None, numbers, n_features)
    others = np.setdiff1d(np.arange(n_features), features)
    if len(others) and remainder == "refuse":
        raise _refusal(given, others, variables is None)
    if not len(features):
        raise ValueError(
            "X has no columns of numbers to group. Columns of objects that hold numbers must be converted first "
            "(X.infer_objects() or X.astype(float))."
        )
    if not len(others):
        return Participants(given, read_source(estimator, given), features, others)
    chosen = take_columns(given if hasattr(given, "shape") else np.asarray(given), features)
    reading = read_source(estimator, chosen)
    attributes: dict[str, Any] = {"n_features_in_": n_features}
    if all_text:
        attributes["feature_names_in_"] = np.array([str(name) for name in names or []], dtype=object)
    return Participants(chosen, Reading(reading.source, attributes), features, others)


def is_number(dtype: Any) -> bool:
    """Whether a column of this type has numbers (or True and False), of pandas as well as of polars."""
    if hasattr(dtype, "is_numeric"):  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return getattr(dtype, "kind", "O") in "biuf"


def _asked(X: Any, variables: Any, names: Any, numbers: np.ndarray, n_features: int) -> np.ndarray:
    """The places of the columns that a user names, all of which must be numbers."""
    asked = np.sort(feature_positions(variables, n_features, names, "variables"))
    if not len(asked):
        raise ValueError("variables has no features; None takes all columns of numbers.")
    wrong = np.setdiff1d(asked, numbers)
    if len(wrong):
        raise ValueError(f"variables has {_listed(X, wrong)}, whose values are no numbers. Leave out or encode it.")
    return asked


def _refusal(X: Any, others: np.ndarray, by_kind: bool) -> ValueError:
    what = "are no numbers" if by_kind else "are not among the variables"
    return ValueError(f"remainder='refuse', and these columns of X {what}: {_listed(X, others)}. Drop or encode them.")


def _listed(X: Any, places: np.ndarray) -> str:
    columns = list(X.columns) if hasattr(X, "columns") and hasattr(X, "dtypes") else None
    kinds = list(X.dtypes) if columns is not None else []
    shown = [str(int(j)) if columns is None else f"{columns[int(j)]!r} ({kinds[int(j)]})" for j in places[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else "")
