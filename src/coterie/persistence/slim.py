"""Models that leave out what nobody will ask for: the names of a million features that the model does not read."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Bytes of names from which on only those that are needed are saved.
MANY_BYTES = 1 << 20
# What a prediction, the groups and their names can do without; the first and the last have a number for each feature.
_NOT_FOR_PREDICTION = ("scores_", "dual_coef_", "votes_")


@dataclass(frozen=True, eq=False)
class KeptNames:
    """The names of some of many features, and what tells all the others.

    Attributes
    ----------
    features : ndarray of int64
        The features whose names are known, in order.
    names : ndarray of str objects
        Their names.
    n_features : int
        Number of all features.
    digest : str
        SHA-256 of all names, by which the whole list is known again (see :func:`coterie.name_features`).

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.persistence.slim import KeptNames
    >>> kept = KeptNames.of(["a", "b", "c", "d"], np.array([3, 1]))
    >>> kept.at(np.array([1, 3])), kept.n_features
    (['b', 'd'], 4)
    """

    features: np.ndarray
    names: np.ndarray
    n_features: int
    digest: str

    @classmethod
    def of(cls, names: Any, features: np.ndarray) -> KeptNames:
        """Those of some features."""
        features = np.unique(features).astype(np.int64)
        kept = np.empty(len(features), dtype=object)
        kept[:] = [str(names[int(j)]) for j in features]
        return cls(features, kept, len(names), names_digest(names))

    def at(self, features: np.ndarray) -> list[str]:
        """The names of some features, which must be among those kept."""
        places = np.searchsorted(self.features, features)
        places = np.minimum(places, len(self.features) - 1)
        unknown = np.flatnonzero(self.features[places] != features)
        if len(unknown):
            raise ValueError(
                f"The model was saved without the name of feature {int(features[unknown[0]])}, which it does not read; "
                "coterie.name_features(model, names) gives it all names again."
            )
        return [str(name) for name in self.names[places]]

    def fits(self, n_features: Any) -> bool:
        """Whether all is what :meth:`of` makes, for so many features."""
        return (
            isinstance(self.features, np.ndarray)
            and self.features.dtype == np.int64
            and self.features.ndim == 1
            and len(self.features) > 0
            and bool((np.diff(self.features) > 0).all())
            and isinstance(self.names, np.ndarray)
            and self.names.shape == self.features.shape
            and all(type(name) is str for name in self.names)
            and type(self.n_features) is int
            and self.n_features == n_features
            and 0 <= int(self.features[0]) <= int(self.features[-1]) < self.n_features
            and type(self.digest) is str
        )


def names_digest(names: Iterable[Any]) -> str:
    """SHA-256 of names, each with its length before it."""
    digest = hashlib.sha256()
    for name in names:
        text = str(name).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text) + text)
    return digest.hexdigest()


def slimmed(model: BaseEstimator, content: str) -> BaseEstimator:
    """The model as it is saved: ``"all"`` of it, without many names (``"auto"``), or what a prediction needs."""
    state = vars(model)
    if content == "all":
        return model
    left_out = _NOT_FOR_PREDICTION if content == "prediction" else ()
    names, read = state.get("feature_names_in_"), _read_features(state)
    many = names is not None and (content == "prediction" or sum(len(str(name)) for name in names) > MANY_BYTES)
    if not (left_out or (many and read is not None)):
        return model
    kept: dict[str, Any] = {}
    for key, value in state.items():  # in their order, so that equal models make equal files
        if key == "feature_names_in_" and many and read is not None:
            kept["kept_names_"] = KeptNames.of(names, read)
        elif key not in left_out:
            kept[key] = value
    slim = copy.copy(model)
    slim.__dict__ = kept
    return slim


def _read_features(state: dict[str, Any]) -> np.ndarray | None:
    """The features that a fitted selector reads, keeps or speaks of; None where that is not known."""
    if not isinstance(state.get("support_features_"), np.ndarray) or not len(state["support_features_"]):
        return None
    parts = [state[name] for name in ("support_features_", "prediction_features_", "other_features_") if name in state]
    if "groups_" in state:
        parts.append(state["groups_"].members)
    return np.unique(np.concatenate(parts))
