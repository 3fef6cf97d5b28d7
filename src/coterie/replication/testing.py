"""One-sided tests of groups in a second cohort, with error control over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.confidence.splits import joint_tests, n_testable, tested_samples
from coterie.effects import effects_of
from coterie.estimators.base import GroupDiscovery
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.inputs.opening import Input
from coterie.inputs.substitution import label_of
from coterie.replication.cohort import Cohort, Question, Representative
from coterie.replication.multiplicity import benjamini_hochberg, holm
from coterie.replication.result import ABSENT, NOT_REPLICATED, NOT_TESTED, OPPOSITE, REPLICATED, GroupReplication
from coterie.solver.families import Family

NO_FEATURES = np.empty(0, dtype=np.int64)
# Level of the intervals of effects, which need no adjustment for a selection.
_LEVEL = 0.95


@dataclass(frozen=True)
class Procedure:
    """How groups are tested.

    Attributes
    ----------
    which : {"auto", "significant", "all"}
        Groups that are tested.
    joint : bool or "auto"
        Whether they are tested in one regression.
    error_rate : {"fwer", "fdr"}
        Error rate that is controlled.
    level : float
        Its level.
    family : Family
        Regression of the tests.
    """

    which: str
    joint: bool | str
    error_rate: str
    level: float
    family: Family


def tested_groups(
    model: GroupDiscovery, cohort: Cohort, data: Input, questions: Sequence[Question], procedure: Procedure
) -> tuple[list[GroupReplication], bool]:
    """Return what the second cohort shows about each group, and whether the groups were tested jointly."""
    entries = [_untested(model, number, cohort, data, question) for number, question in enumerate(questions)]
    tested = groups_to_test(model.groups_, cohort, questions, procedure.which)
    rows = tested_samples(data, np.arange(data.n_samples) if data.weight is None else np.flatnonzero(data.weight > 0.0))
    together = procedure.joint
    if isinstance(together, str):
        together = len(tested) <= n_testable(data, rows, len(tested))
    chosen = [(questions[number], _known(cohort.representatives[number])) for number in tested]
    parts = [chosen] if together else [[one] for one in chosen]
    results = [result for part in parts for result in _regressed(data, rows, part, procedure.family)] if chosen else []
    adjust = holm if procedure.error_rate == "fwer" else benjamini_hochberg
    adjusted, opposite = (
        adjust(np.array([getattr(result, name) for result in results])) for name in ("p_value", "opposite_p_value")
    )
    for place, number in enumerate(tested):
        result = results[place]
        status = REPLICATED if adjusted[place] <= procedure.level else NOT_REPLICATED
        if status == NOT_REPLICATED and opposite[place] <= procedure.level:
            status = OPPOSITE
        entries[number] = replace(
            entries[number],
            status=status,
            effect=result.effect,
            low=result.low,
            high=result.high,
            p_value=result.p_value,
            adjusted_p_value=float(adjusted[place]),
        )
    return entries, bool(together)


def groups_to_test(groups: FeatureGroups, cohort: Cohort, questions: Sequence[Question], which: str) -> list[int]:
    """Return the positions of the groups that are tested.

    Groups that the model does not use are never tested. Those that were significant in the first cohort are preferred.
    """
    able = [
        number
        for number, question in enumerate(questions)
        if groups[number].used and question.is_known and cohort.representatives[number] is not None
    ]
    significant = [number for number in able if groups[number].selected]
    if which == "significant" and all(group.selected is None for group in groups):
        raise ValueError(
            "which='significant' requires q-values of the first cohort, which were not computed (fast=True or n_pairs=0). Use "
            "which='all'."
        )
    if which == "significant" or (which == "auto" and significant):
        return significant
    return able


@dataclass(frozen=True)
class _Result:
    """Effect for larger values of the support feature, and one-sided p-values for its direction and for the opposite one."""

    effect: float | None
    low: float | None
    high: float | None
    p_value: float
    opposite_p_value: float


def _regressed(
    data: Input, rows: np.ndarray, part: Sequence[tuple[Question, Representative]], family: Family
) -> list[_Result]:
    """Return the results of some groups from one regression per outcome."""
    columns = np.array([representative.column for _, representative in part])
    tests = joint_tests(data, rows, columns, family, jackknife=True)
    effects = effects_of(FeatureGroups([FeatureGroup(int(column), NO_FEATURES) for column in columns]), data, family, _LEVEL)
    found = []
    for place, (question, representative) in enumerate(part):
        assert question.output is not None
        assert question.first_effect is not None
        turn = question.flip * representative.relation
        sign = np.full(len(part), turn * np.sign(question.first_effect))
        test, output = tests[question.output], question.output
        limits = turn * np.array([effects.low[place, output], effects.high[place, output]])
        low, high = sorted(limits.tolist())
        found.append(
            _Result(
                _number(turn * effects.effects[place, output]),
                _number(low),
                _number(high),
                float(test.one_sided(sign)[place]),
                float(test.one_sided(-sign)[place]),
            )
        )
    return found


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _known(representative: Representative | None) -> Representative:
    assert representative is not None
    return representative


def _untested(model: GroupDiscovery, number: int, cohort: Cohort, data: Input, question: Question) -> GroupReplication:
    """Return the entry of a group before its test."""
    group, representative = model.groups_[number], cohort.representatives[number]
    coherence = cohort.coherence(model, number, data)
    first = None if question.first_effect is None or np.isnan(question.first_effect) else float(question.first_effect)
    entry = GroupReplication(
        number + 1,
        label_of(model, group.support),
        None,
        0.0,
        ABSENT,
        question.outcome,
        first,
        n_members=len(group),
        n_present=coherence.n_present,
        first_coherence=coherence.first,
        coherence=coherence.second,
        members=coherence.members,
    )
    if representative is None:
        return entry
    return replace(
        entry,
        representative=label_of(model, int(group.members[representative.place])),
        correlation=float(np.append(1.0, group.correlation)[representative.place]),
        status=NOT_TESTED,
        shift=representative.shift,
    )
