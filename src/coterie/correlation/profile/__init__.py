"""The distribution of all pairwise correlations (TPAMI 2016, Fig. 1)."""

from coterie.correlation.profile.count import correlation_profile
from coterie.correlation.profile.result import CorrelationProfile

__all__ = ["CorrelationProfile", "correlation_profile"]
