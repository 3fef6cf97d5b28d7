"""Replication: which groups of a discovery hold in a second cohort, and how well its model predicts there."""

from coterie.replication.result import GroupReplication, Replication, ScoreReplication

__all__ = ["GroupReplication", "Replication", "ScoreReplication"]
