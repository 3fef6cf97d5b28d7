"""Groups of features: the public classes."""

from coterie.groups.feature_groups import FeatureGroup, FeatureGroups, Purity

__all__ = ["FeatureGroup", "FeatureGroups", "Purity"]
