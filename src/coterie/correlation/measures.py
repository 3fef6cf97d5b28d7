"""The measures of correlation by name. A new one is a class in a file of its own and an entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coterie._parameters import Function, OneOf, Rule
from coterie.correlation.checks import CheckedCorrelation
from coterie.correlation.function import FunctionCorrelation
from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import Correlation
from coterie.correlation.spearman import SpearmanCorrelation
from coterie.correlation.uncertainty import SymmetricalUncertainty
from coterie.data.view import FeatureView

# How each is made of a view and the number of bins (for those that have any).
MEASURES: dict[str, Callable[[FeatureView, int], Correlation]] = {
    "pearson": lambda view, n_bins: PearsonCorrelation(view),
    "spearman": lambda view, n_bins: SpearmanCorrelation(view),
    "su": lambda view, n_bins: SymmetricalUncertainty(view, n_bins=n_bins),
}

# What a parameter ``correlation`` may be, where there must be one.
CORRELATION: Rule = OneOf(*MEASURES) | Function()
CORRELATION_OR_NONE: Rule = OneOf(*MEASURES, None) | Function()


def measure_of(correlation: Any, view: FeatureView, n_bins: int) -> Correlation:
    """The measure that a parameter ``correlation`` means, on a view.

    Parameters
    ----------
    correlation : str, callable or class
        A name, a function of two blocks of columns (see :class:`FunctionCorrelation`), or a class with the methods of
        :class:`Correlation` that is made of a view.
    view : FeatureView
        The features.
    n_bins : int
        Bins, for symmetrical uncertainty.
    """
    if isinstance(correlation, str):
        return MEASURES[correlation](view, n_bins)
    if isinstance(correlation, type):
        return CheckedCorrelation(correlation, view)
    return FunctionCorrelation(view, correlation)
