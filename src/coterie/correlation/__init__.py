"""Measures of correlation between features, how to bring one's own, and the distribution of all pairs' correlations."""

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
