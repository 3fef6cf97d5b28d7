"""Cautions about data: dependent samples, identifiers, leaks, relatives, population structure."""

from coterie.cautions.caution import Caution
from coterie.cautions.search import AboutSamples, find_cautions

__all__ = ["AboutSamples", "Caution", "find_cautions"]
