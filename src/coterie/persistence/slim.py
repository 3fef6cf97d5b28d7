"""Copies of models without attributes that predictions do not need, such as names of features that are not read."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Size of the names above which only those that are needed are saved.
MIN_SLIM_BYTES = 1 << 20
# Attributes that neither predictions nor groups need. The first and the last have one number per feature.
_NOT_NEEDED_TO_PREDICT = ("scores_", "dual_coef_", "votes_")


@dataclass(frozen=True, eq=False)
class KeptNames:
    """Names of some of many features, and a digest of all names.

    Attributes
    ----------
    features : ndarray of int64
        Features whose names are kept, in ascending order.
    names : ndarray of str objects
        Names of these features.
    n_features : int
        Number of all features.
    digest : str
        SHA-256 of all names, which identifies the complete list (see :func:`coterie.name_features`).

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
        """Keep the names of some features."""
        features = np.unique(features).astype(np.int64)
        kept = np.empty(len(features), dtype=object)
        kept[:] = [str(names[int(j)]) for j in features]
        return cls(features, kept, len(names), names_digest(names))

    def at(self, features: np.ndarray) -> list[str]:
        """Return the names of some features, which must be among those kept."""
        positions = np.searchsorted(self.features, features)
        positions = np.minimum(positions, len(self.features) - 1)
        unknown = np.flatnonzero(self.features[positions] != features)
        if len(unknown):
            raise ValueError(
                f"The model was saved without the name of feature {int(features[unknown[0]])}, which it does not read. "
                "Restore all names with coterie.name_features(model, names)."
            )
        return [str(name) for name in self.names[positions]]

    def fits(self, n_features: Any) -> bool:
        """Return True if the attributes are valid, as made by :meth:`of`, for this number of features."""
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
    """Return the SHA-256 of names, each preceded by its length."""
    digest = hashlib.sha256()
    for name in names:
        text = str(name).encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(text) + text)
    return digest.hexdigest()


def slim_copy(model: BaseEstimator, content: str) -> BaseEstimator:
    """Return the model as it is saved: unchanged, or a copy without some attributes; see :func:`coterie.save`."""
    state = vars(model)
    if content == "all":
        return model
    omitted = _NOT_NEEDED_TO_PREDICT if content == "prediction" else ()
    names, read = state.get("feature_names_in_"), _read_features(state)
    many = names is not None and (content == "prediction" or sum(len(str(name)) for name in names) > MIN_SLIM_BYTES)
    if not (omitted or (many and read is not None)):
        return model
    kept: dict[str, Any] = {}
    for key, value in state.items():  # in this order, so that equal models make equal files
        if key == "feature_names_in_" and many and read is not None:
            kept["kept_names_"] = KeptNames.of(names, read)
        elif key not in omitted:
            kept[key] = value
    slim = copy.copy(model)
    slim.__dict__ = kept
    return slim


def _read_features(state: dict[str, Any]) -> np.ndarray | None:
    """Return the features that a fitted selector reads, selects or has in its groups; None if unknown."""
    if not isinstance(state.get("support_features_"), np.ndarray) or not len(state["support_features_"]):
        return None
    parts = [state[name] for name in ("support_features_", "prediction_features_", "other_features_") if name in state]
    if "groups_" in state:
        parts.append(state["groups_"].members)
    return np.unique(np.concatenate(parts))
