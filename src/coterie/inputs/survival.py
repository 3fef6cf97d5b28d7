"""Survival targets: a time, whether an event occurred then, and optionally a stratum and an entry time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

# One record per sample. The time is that of the event, or of the end of observation (a censored sample). Risk sets contain
# samples of the same stratum only, from after their entry time, which is minus infinity for samples observed from the start.
SURVIVAL = np.dtype([("event", np.bool_), ("time", np.float64), ("stratum", np.int64), ("entry", np.float64)])
_FORMS = (
    "Pass a structured array with a boolean field (event) and a numeric field (time), such as sksurv.util.Surv creates, or "
    "two columns, the time and 1 or 0 for event or censored; a third one contains strata. A column named 'entry' or 'start' "
    "contains entry times."
)
_EVENT_NAMES, _STRATUM_NAMES, _ENTRY_NAMES = ("event", "status"), ("stratum", "strata"), ("entry", "start")
_WORDS = {"true": True, "false": False}
_MISSING = ("None", "nan", "NaN", "<NA>", "NaT")


class _Columns(NamedTuple):
    """Columns of survival targets."""

    event: Any
    time: Any
    stratum: Any = None
    entry: Any = None


def survival_targets(event: Any, time: Any, stratum: Any = None, entry: Any = None) -> np.ndarray:
    """Return checked survival targets as a structured array with the fields ``event``, ``time``, ``stratum`` and ``entry``.

    Strata are numbered from 0 in the order of their labels. Without entry times, samples are observed from the start.

    Examples
    --------
    >>> from coterie.inputs.survival import survival_targets
    >>> survival_targets([1, 0], [2.5, 4.0])
    array([( True, 2.5, 0, -inf), (False, 4. , 0, -inf)],
          dtype=[('event', '?'), ('time', '<f8'), ('stratum', '<i8'), ('entry', '<f8')])
    """
    return _targets(_Columns(event, time, stratum, entry))[0]


def has_entries(targets: np.ndarray) -> bool:
    """Return True if survival targets have entry times."""
    return bool(np.isfinite(targets["entry"]).any())


def _targets(columns: _Columns) -> tuple[np.ndarray, np.ndarray | None]:
    """Return targets, and the labels of the strata."""
    event, time, stratum, entry = columns
    times, labels = _numbers(time, "time"), None
    for name, column in (("event", event), ("stratum", stratum), ("entry", entry)):
        if column is not None and np.shape(column)[:1] != times.shape:
            raise ValueError(f"y has {len(times)} times, but {len(column)} values of {name}. Pass one of each per sample.")
    result = np.zeros(len(times), dtype=SURVIVAL)
    if (times < 0.0).any():
        place = int(np.argmax(times < 0.0))
        raise ValueError(f"The time {times[place]:g} of sample {place} is negative. Times must be at least 0.")
    result["time"], result["event"] = times, _events(event)
    if stratum is not None:
        labels, result["stratum"] = np.unique(_complete(np.asarray(stratum), "stratum"), return_inverse=True)
    result["entry"] = -np.inf if entry is None else _entries(entry, times)
    return result, labels


def _entries(entry: Any, times: np.ndarray) -> np.ndarray:
    """Return checked entry times."""
    found = _numbers(entry, "entry")
    if (found < 0.0).any():
        place = int(np.argmax(found < 0.0))
        raise ValueError(f"The entry {found[place]:g} of sample {place} is negative. Entry times must be at least 0.")
    if (found >= times).any():
        place = int(np.argmax(found >= times))
        raise ValueError(
            f"The entry {found[place]:g} of sample {place} is not before its time {times[place]:g}. Such a sample was never "
            "under observation. Correct it or drop it."
        )
    return found


def read_survival(y: Any, n_samples: int, reader: BaseEstimator | str, hint: str = "") -> tuple[np.ndarray, np.ndarray | None]:
    """Return survival targets given in any form, and the labels of their strata (None without strata).

    ``reader`` is named in errors. ``hint`` is appended to the message if y is None.
    """
    if y is None:
        name = reader if isinstance(reader, str) else type(reader).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None.{hint}")
    if isinstance(y, np.ndarray) and y.dtype == SURVIVAL:
        found, labels = _targets(_Columns(y["event"], y["time"], None, y["entry"] if has_entries(y) else None))
        found["stratum"] = y["stratum"]
        labels = np.unique(y["stratum"]) if y["stratum"].any() else None
    else:
        found, labels = _targets(_columns(y))
    if len(found) != n_samples:
        raise ValueError(f"y has {len(found)} samples, but X has {n_samples}.")
    return found, labels


def survival_records(y: Any) -> np.ndarray:
    """Return survival targets in any form as a structured array with their own labels of strata and their entry times.

    Examples
    --------
    >>> from coterie.inputs.survival import survival_records
    >>> survival_records([[2.5, 1], [4.0, 0]])
    array([( True, 2.5), (False, 4. )], dtype=[('event', '?'), ('time', '<f8')])
    """
    columns = _columns(y)
    found, labels = _targets(columns)
    kinds: list[Any] = [("event", np.bool_), ("time", np.float64)]
    if labels is not None:
        kinds.append(("stratum", labels.dtype))
    if columns.entry is not None:
        kinds.append(("entry", np.float64))
    result = np.empty(len(found), dtype=kinds)
    result["event"], result["time"] = found["event"], found["time"]
    if labels is not None:
        result["stratum"] = labels[found["stratum"]]
    if columns.entry is not None:
        result["entry"] = found["entry"]
    return result


def require_events(targets: np.ndarray, weight: np.ndarray | None = None, name: str = "y") -> None:
    """Raise a ``ValueError`` if the samples of positive weight have no events, or one time per stratum."""
    used = targets if weight is None else targets[weight > 0.0]
    if not used["event"].any():
        raise ValueError(f"{name} has no events: all {len(used)} samples are censored. Check which values mean an event.")
    first, last = np.full((2, int(used["stratum"].max()) + 1), [[np.inf], [-np.inf]])
    np.minimum.at(first, used["stratum"], used["time"])
    np.maximum.at(last, used["stratum"], used["time"])
    if not (first < last).any():
        raise ValueError(f"{name} has the same time for all samples (of a stratum), so there is no order to predict.")
    if has_entries(used) and not _are_compared(used):
        raise ValueError(
            f"{name} has no event at which two samples (of a stratum) are under observation. Check the entry times: a sample "
            "is at risk from after its entry to its time."
        )


def _are_compared(targets: np.ndarray) -> bool:
    """Return True if at least two samples are at risk at the time of some event."""
    for stratum in np.unique(targets["stratum"]):
        own = targets[targets["stratum"] == stratum]
        events = own["time"][own["event"]]
        left = np.searchsorted(np.sort(own["time"]), events, side="left")
        entered = np.searchsorted(np.sort(own["entry"]), events, side="left")
        if (entered - left > 1).any():
            return True
    return False


def _columns(y: Any) -> _Columns:
    """Return the columns of survival targets in any form."""
    if isinstance(y, np.ndarray) and y.dtype.names is not None:
        return _by_name({name: y[name] for name in y.dtype.names})
    if isinstance(y, dict) or hasattr(y, "columns"):
        return _by_name({str(name): np.asarray(y[name]) for name in getattr(y, "columns", y)})
    try:
        table = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"y must have two or three columns of equal length. {_FORMS}") from error
    if table.ndim != 2:
        raise ValueError(f"y must have a time and an event per sample, but has the shape {table.shape}. {_FORMS}")
    return _by_name({f"column {k}": table[:, k] for k in range(table.shape[1])})


def _by_name(columns: dict[str, np.ndarray]) -> _Columns:
    """Return the roles of named columns: by type, else by name, else by value."""
    rest = dict(columns)
    entry = next((rest.pop(name) for name in columns if name.lower() in _ENTRY_NAMES), None)
    stratum = next((rest.pop(name) for name in columns if name.lower() in _STRATUM_NAMES), None)
    if stratum is None and len(rest) == 3:
        stratum = rest.pop(list(rest)[2])
    if len(rest) != 2:
        raise ValueError(f"y has {len(columns)} column(s) ({', '.join(columns)}). {_FORMS}")
    names = list(rest)
    for rule in (_is_boolean, _is_named, _is_indicator):
        events = [name for name in names if rule(name, rest[name])]
        if len(events) == 1:
            (time,) = (name for name in names if name != events[0])
            return _Columns(rest[events[0]], rest[time], stratum, entry)
    which = "Both columns contain" if events else "Neither column contains"
    raise ValueError(f"{which} 0 and 1 only, so that the column of events is unclear ({', '.join(names)}). {_FORMS}")


def _is_boolean(name: str, values: np.ndarray) -> bool:
    return values.dtype.kind == "b"


def _is_named(name: str, values: np.ndarray) -> bool:
    return name.lower() in _EVENT_NAMES


def _is_indicator(name: str, values: np.ndarray) -> bool:
    """Return True if all values that are not missing are 0 or 1."""
    known = np.array([value for value in values.tolist() if str(value) not in _MISSING])
    return len(known) > 0 and bool(np.isin(known, (0, 1)).all())


def _events(event: Any) -> np.ndarray:
    values = np.asarray(event)
    if values.dtype.kind == "b":
        return values
    if values.dtype.kind in "OU" and all(str(value).lower() in _WORDS for value in values.ravel().tolist()):
        return np.array([_WORDS[str(value).lower()] for value in values.tolist()], dtype=bool)
    numbers = _numbers(values, "event")
    wrong = ~np.isin(numbers, (0.0, 1.0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ValueError(
            f"The event of sample {place} is {numbers[place]:g}. Events must be 1 or True (event), or 0 or False (censored)."
        )
    return numbers.astype(bool)


def _numbers(values: Any, name: str) -> np.ndarray:
    """Return finite numbers."""
    given = _complete(np.asarray(values), name)
    try:
        numbers = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The values of {name} must be numbers, but sample 0 has {given.tolist()[0]!r}.") from error
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"The {name} of sample {int(np.argmax(~np.isfinite(numbers)))} is NaN or infinite. Drop such samples."
        )
    return numbers


def _complete(values: np.ndarray, name: str) -> np.ndarray:
    """Return one-dimensional values without missing ones."""
    if values.ndim != 1:
        raise ValueError(f"The {name} must be one value per sample, but has the shape {values.shape}.")
    if values.dtype.kind == "O":
        missing = np.array([str(value) in _MISSING for value in values.tolist()], dtype=bool)
        if missing.any():
            raise ValueError(f"The {name} of sample {int(np.argmax(missing))} is missing. Drop such samples.")
    return values
