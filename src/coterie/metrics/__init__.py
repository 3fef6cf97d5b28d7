"""Measures of a selection other than accuracy: recovery, redundancy, stability, class statistics; concordance of risks."""

from coterie.metrics.class_statistics import ClassStatistics, class_statistics
from coterie.metrics.recovery import (
    SuccessHits,
    correct_move_rate,
    group_recovery,
    redundancy_rate,
    squared_redundancy,
    success_hits,
)
from coterie.metrics.resampling import selection_stability
from coterie.metrics.stability import (
    group_hamming_stability,
    group_tanimoto_stability,
    group_weighted_consistency,
    hamming_stability,
    tanimoto_stability,
    weighted_consistency,
)
from coterie.metrics.survival import concordance_index

__all__ = [
    "ClassStatistics",
    "SuccessHits",
    "class_statistics",
    "concordance_index",
    "correct_move_rate",
    "group_hamming_stability",
    "group_recovery",
    "group_tanimoto_stability",
    "group_weighted_consistency",
    "hamming_stability",
    "redundancy_rate",
    "selection_stability",
    "squared_redundancy",
    "success_hits",
    "tanimoto_stability",
    "weighted_consistency",
]
