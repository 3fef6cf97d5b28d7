"""Methods side by side on the same folds, each in a process of its own."""

from coterie.comparison.result import Comparison, Row
from coterie.comparison.run import compare

__all__ = ["Comparison", "Row", "compare"]
