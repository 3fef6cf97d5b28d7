"""Confidence of groups: how often half-samples find them again, and how often permuted labels yield such groups."""

from coterie.confidence.estimation import group_confidence
from coterie.confidence.result import GroupConfidence

__all__ = ["GroupConfidence", "group_confidence"]
