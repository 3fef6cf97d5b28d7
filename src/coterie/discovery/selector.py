"""The selector side of the group-discovery estimators: which columns are kept, and the groups in other tools' form."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie.groups import FeatureGroups
from coterie.selection import ColumnSelectorMixin


class GroupSelectorMixin(ColumnSelectorMixin):
    """Selector methods for an estimator with ``groups_`` and a ``keep`` parameter."""

    keep: str
    groups_: FeatureGroups

    def _kept(self) -> np.ndarray:
        """Indices of the kept features, sorted."""
        check_is_fitted(self)
        return self.groups_.members if self.keep == "groups" else np.sort(self.groups_.support)

    @property
    def correlated_feature_sets_(self) -> list[set[Any]]:
        """Groups of two and more features as sets of names (or indices), as in feature-engine."""
        return [{self._label(j) for j in group.members} for group in self.groups_ if len(group) > 1]

    @property
    def correlated_feature_dict_(self) -> dict[Any, set[Any]]:
        """Support feature to the set of its affiliated features, as in feature-engine."""
        return {
            self._label(group.support): {self._label(j) for j in group.affiliated} for group in self.groups_ if len(group) > 1
        }
