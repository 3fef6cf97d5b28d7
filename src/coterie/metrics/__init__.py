"""How good a selection is, apart from its accuracy."""

from coterie.metrics.recovery import group_recovery
from coterie.metrics.redundancy import redundancy_rate

__all__ = ["group_recovery", "redundancy_rate"]
