"""Selectors to compare with."""

from coterie.ranking.floating import FloatingSelector
from coterie.ranking.individual import BestIndividualSelector

__all__ = ["BestIndividualSelector", "FloatingSelector"]
