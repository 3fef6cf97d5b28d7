"""Checks of data frames: one message lists all columns that are not numeric, with a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Descriptions of the NumPy type kinds that are not numeric.
KINDS = {"M": "dates", "m": "durations", "U": "text", "S": "text", "T": "text", "V": "records"}
# Descriptions of type names of pandas, polars and pyarrow, by their beginning in lower case.
_TYPE_PREFIXES = {
    "date": "dates", "timestamp": "dates", "period": "dates", "time": "dates", "duration": "durations",
    "timedelta": "durations", "categor": "categories", "enum": "categories", "dictionary": "categories",
    "str": "text", "string": "text", "utf8": "text", "large_string": "text", "binary": "text",
    "list": "lists", "struct": "records", "array": "lists", "interval": "intervals",
}  # fmt: skip


def is_frame(X: Any) -> bool:
    """Return True if X is a data frame: columns with names and types."""
    return not is_lazy(X) and hasattr(X, "dtypes") and hasattr(X, "columns")


def is_lazy(X: Any) -> bool:
    """Return True if X is a polars ``LazyFrame``."""
    return type(X).__name__ == "LazyFrame" and type(X).__module__.partition(".")[0] == "polars"


def require_numeric_columns(X: Any) -> None:
    """Raise ``ValueError`` with all columns of a frame that are not numeric, and missing values of the others."""
    types = list(X.dtypes)
    wrong = {}
    for position, (name, dtype) in enumerate(zip(X.columns, types, strict=True)):
        kind = _kind_of(dtype) or (_kind_of_objects(_column(X, position)) if str(dtype).lower() == "object" else None)
        if kind is not None:
            wrong[position] = (str(name), kind)
    if not wrong:
        return
    from coterie.data.readers.columns import listed

    shown = listed([f"{name!r} ({kind})" for name, kind in wrong.values()])
    are = "columns of X is not" if len(wrong) == 1 else "columns of X are not"
    encoded = [
        name
        for position, (name, kind) in wrong.items()
        if kind in ("categories", "text") and _is_categorical(_column(X, position))
    ]
    dropped = [name for name, _ in wrong.values() if name not in encoded]
    raise ValueError(
        f"Features must be numbers, but {len(wrong)} of {len(types)} {are}: {shown}.{_describe_missing(X, set(wrong))} Let "
        "coterie.data.open_features(X) encode them (coterie.discover does so by itself), or encode or drop them in a "
        f"pipeline:\n{_remedy(encoded, dropped)}"
    )


def has_other_columns(X: Any) -> bool:
    """Return True if a data frame has columns that are not numeric."""
    if not is_frame(X):
        return is_lazy(X) or hasattr(X, "schema")
    for position, dtype in enumerate(X.dtypes):
        if _kind_of(dtype) is not None or (
            str(dtype).lower() == "object" and _kind_of_objects(_column(X, position)) is not None
        ):
            return True
    return False


def _is_categorical(values: Any) -> bool:
    """Return True if text values repeat, so that they are categories and not names, which one-hot encoding cannot use."""
    distinct = {str(value) for value in values}
    return len(distinct) <= max(2, min(100, len(values) // 2))


def _remedy(encoded: Sequence[str], dropped: Sequence[str]) -> str:
    """Return two lines of code that encode some columns and drop others."""
    steps = []
    if encoded:
        more = ", ..." if len(encoded) > 3 else ""
        columns = f"[{', '.join(map(repr, encoded[:3]))}{more}]"
        steps.append(f"(OneHotEncoder(handle_unknown='ignore'), {columns})")
    if dropped:
        more = ", ..." if len(dropped) > 3 else ""
        steps.append(f"('drop', [{', '.join(map(repr, dropped[:3]))}{more}])")
    return (
        f"    columns = make_column_transformer({', '.join(steps)}, remainder='passthrough')\n"
        "    model = make_pipeline(columns, estimator)"
    )


def _describe_missing(X: Any, skip: set[int]) -> str:
    """Return a sentence about missing values of the other columns; "" if there are none."""
    found = []
    for position, name in enumerate(X.columns):
        if position in skip:
            continue
        try:
            column = np.asarray(_column(X, position), dtype=np.float64)
        except (TypeError, ValueError):  # scikit-learn reports it
            continue
        if count := int(np.isnan(column).sum()):
            found.append(f"{name!r} ({count})")
    if not found:
        return ""
    from coterie.data.readers.columns import listed

    return f" Values are missing, which SimpleImputer can impute: {listed(found)}."


def _kind_of(dtype: Any) -> str | None:
    """Describe the type of a column; return None for numbers, booleans and objects, which may be anything."""
    text = str(dtype).lower().removeprefix("arrow.")
    if getattr(dtype, "kind", "") in KINDS:
        return KINDS[dtype.kind]
    return next((kind for beginning, kind in _TYPE_PREFIXES.items() if text.startswith(beginning)), None)


def _kind_of_objects(values: Any) -> str | None:
    """Describe objects by the first that is text or a date; return None if there is none."""
    for value in values:
        if isinstance(value, (str, bytes)):
            return "text"
        if hasattr(value, "isoformat") and str(value) != "NaT":
            return "dates"
    return None


def _column(X: Any, position: int) -> Any:
    """Return a column by position, because names may repeat."""
    return X.iloc[:, position] if hasattr(X, "iloc") else X[:, position]
