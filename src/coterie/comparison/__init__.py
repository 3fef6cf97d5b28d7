"""Comparison of feature selection methods on the same folds, each in its own process."""

from coterie.comparison.result import Comparison, Row
from coterie.comparison.run import compare

__all__ = ["Comparison", "Row", "compare"]
