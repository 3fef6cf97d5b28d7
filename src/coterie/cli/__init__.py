"""The ``coterie`` command."""

from coterie.cli.app import main

__all__ = ["main"]
