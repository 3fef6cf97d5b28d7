"""Correlation measures between features, user-defined measures, and the distribution of all pairwise correlations."""

from coterie.correlation.measures import FunctionCorrelation
from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import ROUNDING, Correlation, Pairs
from coterie.correlation.spearman import SpearmanCorrelation
from coterie.correlation.uncertainty import SymmetricalUncertainty

__all__ = [
    "ROUNDING",
    "Correlation",
    "FunctionCorrelation",
    "Pairs",
    "PearsonCorrelation",
    "SpearmanCorrelation",
    "SymmetricalUncertainty",
]
