"""Correlation measures between features, user-defined measures, and the distribution of all pairwise correlations.

Names are imported on first use, because a fit uses one measure.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "compatibility": ("ChromosomeDistance", "Compatibility", "CompatibleCorrelation", "PixelDistance"),
    "measures": ("FunctionCorrelation",),
    "pearson": ("PearsonCorrelation",),
    "protocol": ("ROUNDING", "Correlation", "Pairs"),
    "spearman": ("SpearmanCorrelation",),
    "uncertainty": ("SymmetricalUncertainty",),
    "units": ("UnitCorrelation", "column_units"),
}
_HOMES = {name: f"coterie.correlation.{module}" for module, names in _NAMES.items() for name in names}

__all__ = [
    "ROUNDING",
    "ChromosomeDistance",
    "Compatibility",
    "CompatibleCorrelation",
    "Correlation",
    "FunctionCorrelation",
    "Pairs",
    "PearsonCorrelation",
    "PixelDistance",
    "SpearmanCorrelation",
    "SymmetricalUncertainty",
    "UnitCorrelation",
    "column_units",
]

if TYPE_CHECKING:
    from coterie.correlation.compatibility import (
        ChromosomeDistance,
        Compatibility,
        CompatibleCorrelation,
        PixelDistance,
    )
    from coterie.correlation.measures import FunctionCorrelation
    from coterie.correlation.pearson import PearsonCorrelation
    from coterie.correlation.protocol import ROUNDING, Correlation, Pairs
    from coterie.correlation.spearman import SpearmanCorrelation
    from coterie.correlation.uncertainty import SymmetricalUncertainty
    from coterie.correlation.units import UnitCorrelation, column_units


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'coterie.correlation' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
