"""Which groups are real: how often half of the samples choose them again, and how often shuffled labels would."""

from coterie.confidence.estimation import group_confidence
from coterie.confidence.result import GroupConfidence

__all__ = ["GroupConfidence", "group_confidence"]
