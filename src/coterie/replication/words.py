"""Sentences about the limits of a replication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.inputs.opening import Input
from coterie.inputs.substitution import Substitutes
from coterie.replication.result import ABSENT, OPPOSITE, GroupReplication, ScoreReplication
from coterie.replication.testing import Procedure
from coterie.report.judgement import PREDICTS

# Difference of means, in standard deviations, above which cohorts count as measured on other scales.
_LARGE_SHIFT = 2.0
_MAX_LISTED = 5
# Number of sample groups below which false replications are too frequent (docs/evidence/replication.md).
_FEW_GROUPS = 40


def notes_about(
    model: Any,
    entries: Sequence[GroupReplication],
    data: Input,
    procedure: Procedure,
    together: bool,
    score: ScoreReplication | None,
    substitutes: Substitutes,
) -> list[str]:
    """Return the notes of a replication, in the order of their importance."""
    tested = [entry for entry in entries if entry.p_value is not None]
    notes = [*_about_groups(entries), *_about_tests(model, tested, procedure, together, data)]
    shifted = [entry for entry in tested if entry.shift is not None and abs(entry.shift) > _LARGE_SHIFT]
    if 2 * len(shifted) >= max(1, len(tested)) and shifted:
        notes.append(
            f"The means of {len(shifted)} of {len(tested)} tested features differ by more than {_LARGE_SHIFT:g} standard "
            "deviations between the cohorts. Check that both are on the same scale."
        )
    if score is not None and score.prediction != PREDICTS:
        notes += _about_order(score)
    if substitutes.sentence:
        notes.append(f"Prediction: {substitutes.sentence}")
    return notes


def _about_groups(entries: Sequence[GroupReplication]) -> list[str]:
    """Return notes about groups with opposite effects, without members, and with another member as representative."""
    notes = []
    opposite = [entry for entry in entries if entry.status == OPPOSITE]
    if opposite:
        notes.append(f"The effect has the opposite sign in the second cohort: {_listed(opposite)}.")
    absent = [entry for entry in entries if entry.status == ABSENT]
    if absent:
        notes.append(f"Without a member that varies in the second cohort: {_listed(absent)}.")
    others = [entry for entry in entries if entry.representative not in (None, entry.feature)]
    if others:
        pairs = ", ".join(
            f"{entry.feature!r} by {entry.representative!r} (r = {entry.correlation:+.2f})" for entry in others[:_MAX_LISTED]
        )
        more = f" and {len(others) - _MAX_LISTED} more" if len(others) > _MAX_LISTED else ""
        notes.append(f"Represented by another member: {pairs}{more}.")
    return notes


def _about_tests(
    model: Any, tested: Sequence[GroupReplication], procedure: Procedure, together: bool, data: Input
) -> list[str]:
    """Return notes about the groups that were tested, and how."""
    notes = []
    known = any(group.selected is not None for group in model.groups_)
    if procedure.which != "all" and known and not any(group.selected for group in model.groups_):
        all_tested = ", so all groups that the model uses were tested" if tested else ""
        notes.append(f"No group was significant in the first cohort{all_tested}.")
    if not together and len(tested) > 1:
        reason = "" if procedure.joint is False else f", because {data.n_samples:,} samples are too few for all together"
        notes.append(f"Each group was tested alone{reason}. A group that only represents another one can be replicated, too.")
    n_groups = None if data.groups is None else len(np.unique(data.groups))
    if n_groups is not None and n_groups < _FEW_GROUPS:
        notes.append(f"There are only {n_groups} sample groups. With fewer than {_FEW_GROUPS}, p-values tend to be too small.")
    if data.classes is not None and len(data.classes) < len(model.classes_):
        absent = ", ".join(str(label) for label in np.setdiff1d(model.classes_, data.classes))
        notes.append(f"Classes without samples in the second cohort: {absent}.")
    return notes


def _about_order(score: ScoreReplication) -> list[str]:
    """Return a note if the order of the samples is predicted, but not their class."""
    auc = score.figures.get("ROC AUC")
    if auc is None or score.score == "ROC AUC" or auc["interval"] is None or auc["interval"][0] <= auc["constant"]:
        return []
    return [
        f"The model orders the samples (ROC AUC {auc['value']:.3g}), but its threshold does not fit the second cohort. "
        "Check the scale of the features and the shares of the classes."
    ]


def _listed(entries: Sequence[GroupReplication]) -> str:
    more = f" and {len(entries) - _MAX_LISTED} more" if len(entries) > _MAX_LISTED else ""
    return ", ".join(repr(entry.feature) for entry in entries[:_MAX_LISTED]) + more
