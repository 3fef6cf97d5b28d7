"""Scores of single features: ``score_func(X, y)`` for ``SelectKBest`` and :class:`coterie.GlobalRedundancySelector`."""

from coterie.filters.graph import laplacian_score, mcfs_score
from coterie.filters.neighbours import lgd_score, relieff_score
from coterie.filters.univariate import correlation_score, fisher_score, information_gain_score, variance_score

__all__ = [
    "correlation_score",
    "fisher_score",
    "information_gain_score",
    "laplacian_score",
    "lgd_score",
    "mcfs_score",
    "relieff_score",
    "variance_score",
]
