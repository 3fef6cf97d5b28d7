"""The measures of correlation by name. A new one is a class in a file of its own and an entry here."""

from __future__ import annotations

from collections.abc import Callable

from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import Correlation
from coterie.correlation.uncertainty import SymmetricalUncertainty
from coterie.data.view import FeatureView

# How each is made of a view and the number of bins (for those that have any).
MEASURES: dict[str, Callable[[FeatureView, int], Correlation]] = {
    "pearson": lambda view, n_bins: PearsonCorrelation(view),
    "su": lambda view, n_bins: SymmetricalUncertainty(view, n_bins=n_bins),
}
