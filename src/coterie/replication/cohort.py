"""The groups of a first cohort in the data of a second one: representatives, correlations, and what is tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.correlation.measures import measure_of
from coterie.data.memory import as_source
from coterie.data.view import FeatureView
from coterie.estimators.base import GroupDiscovery, settings_of
from coterie.groups import FeatureGroup
from coterie.groups.columns import Record
from coterie.groups.moments import MemberMoments
from coterie.inputs.opening import Input
from coterie.inputs.substitution import NewData, label_of

# Members of a group whose correlations are compared.
_MAX_MEMBERS = 2000


@dataclass(frozen=True)
class Representative:
    """The member that represents a group in the second cohort.

    Attributes
    ----------
    place : int
        Its position among the members of the group.
    column : int
        Its column in :attr:`Cohort.values`.
    relation : float
        Sign of its correlation with the support feature in the first cohort.
    shift : float
        Difference of its means between the cohorts, in its standard deviations in the first one.
    moments : tuple of float
        Its mean and standard deviation in the first cohort.
    """

    place: int
    column: int
    relation: float
    shift: float
    moments: tuple[float, float]


@dataclass(frozen=True)
class Coherence:
    """Correlations within a group, in both cohorts.

    Attributes
    ----------
    members : tuple of dict
        Name and both correlations of each member.
    n_present : int
        Members that vary in the second cohort.
    first, second : float or None
        Mean absolute correlation of the other present members with the support feature in the first cohort, and with the
        representative in the second one.
    """

    members: tuple[Record, ...]
    n_present: int
    first: float | None
    second: float | None


@dataclass(frozen=True)
class Cohort:
    """The representatives of all groups of a model in new data.

    Attributes
    ----------
    new : NewData
        The data.
    representatives : list of Representative or None
        One per group; None for groups without a usable member.
    values : ndarray of shape (n_samples, n_represented)
        Values of the representatives.
    """

    new: NewData
    representatives: list[Representative | None]
    values: np.ndarray

    @classmethod
    def of(cls, model: GroupDiscovery, new: NewData) -> Cohort:
        """Find the representatives. Raise a ``ValueError`` if no group has a usable member."""
        groups = model.groups_
        moments = model.member_moments_.by_group([len(group) for group in groups])
        representatives: list[Representative | None] = []
        columns: list[np.ndarray] = []
        for group, own in zip(groups, moments, strict=True):
            place = _place(new, group, own)
            if place is None:
                representatives.append(None)
                continue
            values = new.complete(group.members[[place]])[:, 0]
            mean, scale = float(own.mean[place]), float(own.scale[place])
            shift, relation = float((values.mean() - mean) / scale), float(np.sign(own.correlation[place]))
            representatives.append(Representative(place, len(columns), relation, shift, (mean, scale)))
            columns.append(values)
        if not columns:
            raise ValueError(
                f"X has none of the {len(groups.members)} features in the groups of {type(model).__name__} with values that "
                "vary. Check that its feature names are those of the training data."
            )
        return cls(new, representatives, np.asfortranarray(np.column_stack(columns)))

    def coherence(self, model: Any, number: int, data: Input) -> Coherence:
        """Return the correlations within a group, given by its position."""
        group, representative = model.groups_[number], self.representatives[number]
        usable = np.array([reason is None for reason in self.new.reasons(group.members, predicts=False)], dtype=bool)
        first = np.append(1.0, group.correlation)
        second = np.full(len(group), np.nan)
        if representative is not None:
            others = np.flatnonzero(usable)[:_MAX_MEMBERS]
            second[others] = self._correlations(model, group.members[others], representative, data)
        compared = np.isfinite(first) & np.isfinite(second)
        if representative is not None:
            compared[representative.place] = False
        members = tuple(
            {
                "feature": label_of(model, int(feature)),
                "first_correlation": float(first[place]),
                "correlation": None if np.isnan(second[place]) else float(second[place]),
            }
            for place, feature in enumerate(group.members)
        )
        if not compared.any():
            return Coherence(members, int(usable.sum()), None, None)
        means = (float(np.abs(values[compared]).mean()) for values in (first, second))
        return Coherence(members, int(usable.sum()), *means)

    def _correlations(self, model: Any, features: np.ndarray, representative: Representative, data: Input) -> np.ndarray:
        """Return the correlations of some features with a representative, by the measure of the model."""
        settings = settings_of(model)
        own = self.values[:, [representative.column]]
        columns = np.asfortranarray(np.column_stack([own, self.new.complete(features)]))
        view = FeatureView.of(as_source(columns), data.weight)
        varying = np.flatnonzero(view.moments.norm[1:] > 0.0)
        found = np.full(len(features), np.nan)
        if view.moments.norm[0] > 0.0 and len(varying):
            measure = measure_of("pearson" if settings.correlation is None else settings.correlation, view, settings.n_bins)
            found[varying] = measure.between(1 + varying, np.array([0]))[:, 0]
        return found


def _place(new: NewData, group: FeatureGroup, moments: MemberMoments) -> int | None:
    """Return the position of the member that represents a group: the first usable one, in order of correlation."""
    for place, feature in enumerate(group.members):
        known = moments.scale[place] > 0.0 and moments.correlation[place] != 0.0
        if known and new.reasons(np.array([feature]), predicts=False)[0] is None:
            return place
    return None


@dataclass(frozen=True)
class Question:
    """What is tested about a group: its largest effect in the first cohort.

    Attributes
    ----------
    outcome : str or None
        Class or target of the effect; None if there is only one.
    output : int or None
        Number of the output in the second cohort; None if the class is absent there.
    flip : float
        -1 if the output in the second cohort is the opposite of the class.
    first_effect : float or None
        Effect in the first cohort; None if it is unknown.
    """

    outcome: str | None
    output: int | None
    flip: float
    first_effect: float | None

    @classmethod
    def of(cls, group: FeatureGroup, data: Input) -> Question:
        """Return the question about a group."""
        effect = group.effect
        if group.target_effects is not None:
            names = list(group.target_effects)
            target = group.main_target
            return cls(target, None if target is None else names.index(target), 1.0, effect)
        if group.class_effects is None or data.classes is None:
            return cls(None, 0, 1.0, effect)
        label = list(group.class_effects)[-1]
        if len(group.class_effects) > 2:
            label = max(group.class_effects, key=lambda own: abs((group.class_effects or {})[own]))
        present = data.classes.tolist()
        if label not in present:
            return cls(str(label), None, 1.0, effect)
        place = present.index(label)
        if len(present) > 2:
            return cls(str(label), place, 1.0, effect)
        return cls(str(label), 0, 1.0 if place else -1.0, effect)  # two classes have one output, for the second one

    @property
    def is_known(self) -> bool:
        """Whether the second cohort can answer it."""
        return self.output is not None and self.first_effect is not None and bool(np.abs(self.first_effect) > 0.0)
