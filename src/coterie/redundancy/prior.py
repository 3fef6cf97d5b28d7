"""Prior groups of features: what the user says belongs together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.data.source import FeatureSource
from coterie.groups import FeatureGroup
from coterie.selection import feature_label, feature_positions


def group_positions(groups: Any, source: FeatureSource) -> list[np.ndarray]:
    """The groups as positions of features."""
    if groups is None:
        return []
    if not isinstance(groups, Sequence):
        raise ValueError("groups must be FeatureGroups or a list of lists of feature indices or names.")
    return [
        feature_positions(
            group.members if isinstance(group, FeatureGroup) else group,
            source.shape[1], source.feature_names, f"groups[{number}]",
        )
        for number, group in enumerate(groups)
    ]  # fmt: skip


def warn_about_groups(groups: Sequence[np.ndarray], usable: np.ndarray, names: Sequence[str] | None) -> None:
    """Say which members of the groups cannot be candidates."""
    members = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *groups]))
    constant = members[~usable[members]]
    if len(constant):
        label = feature_label(names, constant[0])
        warnings.warn(
            f"{len(constant)} feature(s) of groups, the first of them {label!r}, do not vary and are left out of their "
            "groups.",
            UserWarning,
            stacklevel=5,
        )
