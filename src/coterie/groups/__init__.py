"""Groups of features, as users get them."""

from coterie.groups.feature_groups import FeatureGroup, FeatureGroups, Purity

__all__ = ["FeatureGroup", "FeatureGroups", "Purity"]
