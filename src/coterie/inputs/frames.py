"""Data frames as people have them: which columns are no numbers, all of them in one message, with what helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.data.readers.columns import listed

# What NumPy's kinds of types are, that are no numbers.
KINDS = {"M": "dates", "m": "durations", "U": "text", "S": "text", "T": "text", "V": "records"}
# The last part of what pandas, polars and pyarrow call theirs, in lower case.
_BEGINNINGS = {
    "date": "dates", "timestamp": "dates", "period": "dates", "time": "dates", "duration": "durations",
    "timedelta": "durations", "categor": "categories", "enum": "categories", "dictionary": "categories",
    "str": "text", "string": "text", "utf8": "text", "large_string": "text", "binary": "text",
    "list": "lists", "struct": "records", "array": "lists", "interval": "intervals",
}  # fmt: skip


def is_frame(X: Any) -> bool:
    """Whether X is a data frame: columns that have names and types."""
    return not is_lazy(X) and hasattr(X, "dtypes") and hasattr(X, "columns")


def is_lazy(X: Any) -> bool:
    """Whether X is a query of polars' that has not been run."""
    return type(X).__name__ == "LazyFrame" and type(X).__module__.partition(".")[0] == "polars"


def refuse_columns(X: Any) -> None:
    """Refuse a frame with columns that are no numbers: all of them at once, and the gaps of the others."""
    types = list(X.dtypes)
    wrong = {}
    for place, (name, dtype) in enumerate(zip(X.columns, types, strict=True)):
        kind = _kind_of(dtype) or (_kind_of_objects(_column(X, place)) if str(dtype).lower() == "object" else None)
        if kind is not None:
            wrong[place] = (str(name), kind)
    if not wrong:
        return
    shown = listed([f"{name!r} ({kind})" for name, kind in wrong.values()])
    are = "columns of X is not" if len(wrong) == 1 else "columns of X are not"
    encoded = [name for place, (name, kind) in wrong.items() if kind in ("categories", "text") and _repeats(_column(X, place))]
    raise ValueError(
        f"Features must be numbers, but {len(wrong)} of {len(types)} {are}: {shown}.{_gaps(X, set(wrong))} Leave them out, or "
        f"encode them in a pipeline:\n{_remedy(encoded, [name for name, _ in wrong.values() if name not in encoded])}"
    )


def _repeats(values: Any) -> bool:
    """Whether values are words for kinds of things, not names of single ones: a column each would say nothing."""
    different = {str(value) for value in values}
    return len(different) <= max(2, min(100, len(values) // 2))


def _remedy(encoded: Sequence[str], dropped: Sequence[str]) -> str:
    """The two lines that make numbers of columns: some are encoded, the others left out."""
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


def _gaps(X: Any, skip: set[int]) -> str:
    """The missing values of the other columns, in a sentence; empty where there are none."""
    found = []
    for place, name in enumerate(X.columns):
        if place in skip:
            continue
        try:
            column = np.asarray(_column(X, place), dtype=np.float64)
        except (TypeError, ValueError):  # whatever it is, scikit-learn will tell
            continue
        if count := int(np.isnan(column).sum()):
            found.append(f"{name!r} ({count})")
    if not found:
        return ""
    return f" And there are values missing, which SimpleImputer fills: {listed(found)}."


def _kind_of(dtype: Any) -> str | None:
    """What a type of a column is in words; None for numbers, booleans, and objects, which may be anything."""
    text = str(dtype).lower().removeprefix("arrow.")
    if getattr(dtype, "kind", "") in KINDS:
        return KINDS[dtype.kind]
    return next((kind for beginning, kind in _BEGINNINGS.items() if text.startswith(beginning)), None)


def _kind_of_objects(values: Any) -> str | None:
    """What objects are, by the first one that is no number."""
    for value in values:
        if isinstance(value, (str, bytes)):
            return "text"
        if hasattr(value, "isoformat") and str(value) != "NaT":
            return "dates"
    return None


def _column(X: Any, place: int) -> Any:
    """A column by its position: names may come twice."""
    return X.iloc[:, place] if hasattr(X, "iloc") else X[:, place]
