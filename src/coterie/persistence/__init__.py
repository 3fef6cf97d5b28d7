"""Saving of models to files that run no code when they are loaded."""

from coterie.persistence.model import load, save

__all__ = ["load", "save"]
