"""The distribution of all pairwise correlations (TPAMI 2016, Fig. 1)."""

from coterie.profile.profile import correlation_profile
from coterie.profile.result import CorrelationProfile

__all__ = ["CorrelationProfile", "correlation_profile"]
