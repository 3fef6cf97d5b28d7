"""Groups of features: a support feature and the features affiliated with it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from coterie.groups.columns import (
    COLUMNS,
    RESERVED,
    SHOWN,
    Column,
    Content,
    Context,
    Item,
    Record,
    data_frame,
    flat_columns,
    flat_table,
    items_of,
    listed,
    plain,
    reading_table,
    shown,
)
from coterie.groups.effects import EffectProperties
from coterie.markup import notebook_table, shortened, tag

if TYPE_CHECKING:
    import pandas as pd

_MAX_REPR_GROUPS = 12
_MAX_MEMBERS = 6
_MAX_HTML_ROWS = 25


class Purity(NamedTuple):
    """Smallest, mean and median absolute correlation between the members of a group (as in SuSiE)."""

    minimum: float
    mean: float
    median: float


@dataclass(frozen=True, eq=False)
class FeatureGroup(EffectProperties):
    """A support feature and its affiliated features.

    Attributes
    ----------
    support : int
        Index of the support feature.
    affiliated : ndarray of shape (n_affiliated,)
        Indices of the affiliated features, the most correlated first.
    correlation : ndarray of shape (n_affiliated,)
        Signed correlations of the affiliated features with the support feature.
    names : tuple of str or None
        Names of the support feature and the affiliated features, if the data have feature names.
    score : float
        Score of the support feature: its entry of the selector's ``scores_``. Group discovery computes it for the final dual
        variables. The score at the time of selection is in ``history_``.
    affiliated_scores : ndarray of shape (n_affiliated,)
        Scores of the affiliated features.
    weight : float or None
        Weight of the support feature in the model (the norm over more than two classes, or several targets). For two classes
        it is signed: if it is positive, larger values indicate the second class.
    round : int
        Round that selected the support feature (0: fixed by the user).
    purity : Purity or None
        Absolute correlations between all members. None if they were not computed.
    confidence : float or None
        Share of half-samples in which a member of the group is selected. None before :func:`coterie.group_confidence`, NaN
        for a fixed feature.
    p_value, q_value : float or None
        Evidence for the group: family-wise p-value, and false discovery rate (see :class:`coterie.GroupConfidence`). None
        before :func:`coterie.group_confidence`, NaN if unknown.
    selected : bool or None
        Whether the q-value is at most the false discovery rate of :func:`coterie.discover`. None if it was not compared.
    probabilities : ndarray of shape (n_affiliated + 1,) or None
        Probability of each member to carry the signal of the group, the support feature first. None if unknown.
    shares : ndarray of shape (n_affiliated + 1,) or None
        Share of half-samples in which each member is selected, the support feature first.
    class_weights : dict or None
        Signed weight of the support feature for each class, by label. None for models without classes. If it is positive,
        larger values indicate the class. (With two classes, one weight is the other's negative.)
    annotations : dict of str to tuple, or None
        Further data of each member, the support feature first: chromosome and position of a SNP, a p-value.
    effect : float or None
        Effect per standard deviation of the support feature, given those of the other groups, as estimated by
        :func:`coterie.group_effects`: log-odds of the second class, units of the target, or the logarithm of a hazard ratio,
        of a rate ratio (counts) or of a ratio of means (``loss="gamma"``). With more than two classes it is the largest in
        absolute value of ``class_effects``; with several targets, the largest of ``target_effects`` relative to the scales of
        the targets. None before the estimation. For a one-class model it is the change of the output.
    effect_interval : (float, float) or None
        Limits of the 95 % interval of the effect, or None if it is unknown.
    class_effects : dict or None
        Effect for each class against the others, by label: log-odds per standard deviation.
    target_effects : dict of str to float, or None
        Effect on each of several targets, by name.
    ratio_kind : {"odds", "hazard", "rate", "mean"} or None
        What the exponential of the effect is a ratio of: the odds of a class, hazards of survival times, rates of counts, or
        means of positive numbers.
        None for effects in units of the target, and before the estimation.
    used : bool
        Whether the predictive model has a nonzero weight of any member. Groups that it does not use are no findings.

    Examples
    --------
    >>> from coterie import FeatureGroup
    >>> group = FeatureGroup(3, [7, 5], [0.9, -0.8])
    >>> group.members
    array([3, 7, 5])
    >>> len(group)
    3
    """

    support: int
    affiliated: np.ndarray
    correlation: np.ndarray = field(default_factory=lambda: np.empty(0))
    names: tuple[str, ...] | None = None
    score: float = float("nan")
    affiliated_scores: np.ndarray | None = None
    weight: float | None = None
    round: int = 0
    purity: Purity | None = None
    confidence: float | None = None
    shares: np.ndarray | None = None
    class_weights: dict[Any, float] | None = None
    annotations: dict[str, tuple[Any, ...]] | None = None
    effect: float | None = None
    effect_interval: tuple[float, float] | None = None
    class_effects: dict[Any, float] | None = None
    used: bool = True
    p_value: float | None = None
    q_value: float | None = None
    probabilities: np.ndarray | None = None
    selected: bool | None = None
    target_effects: dict[str, float] | None = None
    ratio_kind: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", int(self.support))
        object.__setattr__(self, "affiliated", np.asarray(self.affiliated, dtype=np.int64))
        correlation = np.asarray(self.correlation, dtype=np.float64)
        if not len(correlation) and len(self.affiliated):
            correlation = np.full(len(self.affiliated), np.nan)
        object.__setattr__(self, "correlation", correlation)

    @property
    def members(self) -> np.ndarray:
        """Indices of all features of the group, the support feature first."""
        return np.append(self.support, self.affiliated)

    @property
    def labels(self) -> list[str]:
        """Names of all features, or their indices as text."""
        return list(self.names) if self.names is not None else [str(j) for j in self.members]

    def likely_members(self, coverage: float = 0.95) -> np.ndarray:
        """Return the fewest members that contain the one with the signal with this probability, the most likely first.

        Parameters
        ----------
        coverage : float, default=0.95
            Probability that the set contains the member that carries the signal, if one of the members does.

        Returns
        -------
        members : ndarray of int
            Indices of features.

        Examples
        --------
        >>> import numpy as np
        >>> from coterie import FeatureGroup
        >>> FeatureGroup(3, [7, 5], [0.9, -0.8], probabilities=np.array([0.6, 0.03, 0.37])).likely_members()
        array([3, 5])
        """
        if self.probabilities is None:
            raise ValueError("The members have no probabilities. Call coterie.group_confidence(model, X, y).attach_to(model).")
        if not isinstance(coverage, Real) or isinstance(coverage, bool) or not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1.")
        order = np.argsort(-self.probabilities, kind="stable")
        size = int(np.searchsorted(np.cumsum(self.probabilities[order]), coverage * (1.0 - 1e-12))) + 1
        return np.asarray(self.members[order[:size]])

    def __len__(self) -> int:
        return 1 + len(self.affiliated)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureGroup):
            return NotImplemented
        return self.support == other.support and np.array_equal(np.sort(self.affiliated), np.sort(other.affiliated))

    def __hash__(self) -> int:
        return hash((self.support, tuple(np.sort(self.affiliated))))

    def __repr__(self) -> str:
        support, *others = self.labels
        if self.confidence is not None and not np.isnan(self.confidence):
            support = f"[{self.confidence:.2f}] {support}"
        has_zero_weight = self.weight == 0.0 or not self.used  # It was selected, but the model does not use it.
        if _shows_class(self):
            support += f" (marks {self.marks})"
        if not others:
            return f"{support} (alone{', weight 0' * has_zero_weight})"
        support += " (weight 0)" * has_zero_weight
        return f"{support} ~ {listed(others, self.correlation.tolist(), _MAX_MEMBERS)}"

    def _repr_html_(self) -> str:
        (item,) = items_of([self])
        columns = [column for column in shown("notebook group") if column.value(item) is not None]
        cells = [[column.text(value) for value in column.of_members(item, column.value(item))] for column in columns]
        facts = [COLUMNS[name] for name in ("effect", "confidence")]
        known = [(column, value) for column in facts if (value := column.value(item)) is not None]
        words = "".join(f", {column.title} {column.text(value)}" for column, value in known)
        title = f"Group of {shortened(self.labels[0])}: {len(self):,} feature{'s' * (len(self) != 1)}{words}"
        rows = list(zip(*cells, strict=True))[:_MAX_HTML_ROWS]
        return _notebook(title, columns, rows, len(self))


class FeatureGroups(Sequence[FeatureGroup]):
    """A sequence of :class:`FeatureGroup`, in order of selection.

    Parameters
    ----------
    groups : iterable of FeatureGroup
        The groups.

    Examples
    --------
    >>> from coterie import FeatureGroup, FeatureGroups
    >>> groups = FeatureGroups([FeatureGroup(3, [7], [0.9]), FeatureGroup(1, [])])
    >>> groups
    2 groups, 3 features
      1. 3 ~ 7 (+0.90)
      2. 1 (alone)
    >>> groups.support
    array([3, 1])
    >>> groups.members
    array([1, 3, 7])
    """

    def __init__(self, groups: Sequence[FeatureGroup] = ()) -> None:
        self._groups = tuple(groups)

    @overload
    def __getitem__(self, index: int) -> FeatureGroup: ...
    @overload
    def __getitem__(self, index: slice) -> FeatureGroups: ...
    def __getitem__(self, index: int | slice) -> FeatureGroup | FeatureGroups:
        if isinstance(index, slice):
            return FeatureGroups(self._groups[index])
        return self._groups[index]

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[FeatureGroup]:
        return iter(self._groups)

    def __eq__(self, other: object) -> bool:
        return self._groups == other._groups if isinstance(other, FeatureGroups) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._groups)

    @property
    def support(self) -> np.ndarray:
        """Indices of the support features, in order of selection."""
        return np.array([group.support for group in self], dtype=np.int64)

    @property
    def classes(self) -> list[Any] | None:
        """Classes of the columns of :attr:`class_weights`, in the order of the model. None without classes."""
        return next((list(group.class_weights) for group in self if group.class_weights), None)

    @property
    def class_weights(self) -> np.ndarray | None:
        """Signed weights of the support features by class, of shape (n_groups, n_classes). None without classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from coterie import GroupDiscoveryClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> groups = GroupDiscoveryClassifier(2, threshold=0.9).fit(X, y).groups_
        >>> groups.classes, groups.class_weights.shape
        ([0, 1, 2], (2, 3))
        """
        classes = self.classes
        if classes is None:
            return None
        return np.array([[(group.class_weights or {}).get(label, np.nan) for label in classes] for group in self])

    @property
    def members(self) -> np.ndarray:
        """Sorted indices of all features in any group."""
        if not self._groups:
            return np.empty(0, dtype=np.int64)
        return np.unique(np.concatenate([group.members for group in self]))

    def with_names(self, names: Sequence[str]) -> FeatureGroups:
        """Return the same groups with names for their features.

        Parameters
        ----------
        names : sequence of str
            Names of all features of X, such as ``pipeline[:-1].get_feature_names_out()``.

        Examples
        --------
        >>> from coterie import FeatureGroup, FeatureGroups
        >>> FeatureGroups([FeatureGroup(2, [0], [0.9])]).with_names(["cast", "plot", "film"])
        1 group, 2 features
          1. film ~ cast (+0.90)
        """
        last = int(self.members.max(initial=-1))
        if isinstance(names, str) or len(names) <= last:
            raise ValueError(
                f"with_names() requires the names of all features: {len(names)} names are too few for feature index {last}."
            )
        return FeatureGroups([replace(group, names=tuple(str(names[int(j)]) for j in group.members)) for group in self])

    def at_least(self, confidence: float) -> FeatureGroups:
        """Return the groups with at least this confidence (see :func:`coterie.group_confidence`).

        Examples
        --------
        >>> from coterie import FeatureGroup, FeatureGroups
        >>> FeatureGroups([FeatureGroup(3, [7], [0.9], confidence=0.96), FeatureGroup(1, [], confidence=0.1)]).at_least(0.9)
        1 group, 2 features
          1. [0.96] 3 ~ 7 (+0.90)
        """
        if any(group.confidence is None for group in self):
            raise ValueError(
                "The groups have no confidence yet. Call coterie.group_confidence(model, X, y).attach_to(model) first."
            )
        return FeatureGroups([group for group in self if group.confidence is not None and group.confidence >= confidence])

    def select(self, *, fdr: float | None = None, fwer: float | None = None) -> FeatureGroups:
        """Return the groups that are real at a stated error rate (see :func:`coterie.group_confidence`).

        Parameters
        ----------
        fdr : float, default=None
            False discovery rate: groups with a ``q_value`` of at most this level.

        fwer : float, default=None
            Family-wise error rate: groups with a ``p_value`` of at most this level.

        Returns
        -------
        groups : FeatureGroups
            The selected groups.

        Examples
        --------
        >>> from coterie import FeatureGroup, FeatureGroups
        >>> groups = [FeatureGroup(3, [7], [0.9], p_value=0.2, q_value=0.04), FeatureGroup(1, [], p_value=1.0, q_value=0.6)]
        >>> FeatureGroups(groups).select(fdr=0.1)
        1 group, 2 features
          1. 3 ~ 7 (+0.90)
        """
        if (fdr is None) == (fwer is None):
            raise ValueError("Pass either fdr or fwer, for example select(fdr=0.1).")
        name, level = ("q_value", fdr) if fwer is None else ("p_value", fwer)
        if not isinstance(level, Real) or isinstance(level, bool) or not 0.0 < level < 1.0:
            raise ValueError(f"{'fdr' if fwer is None else 'fwer'}={level!r} must be a number between 0 and 1.")
        values = [getattr(group, name) for group in self]
        if any(value is None for value in values):
            raise ValueError(
                f"The groups have no {name} yet. Call coterie.group_confidence(model, X, y).attach_to(model) first."
            )
        if values and all(math.isnan(value) for value in values):
            raise ValueError(
                f"The {name} of all groups is unknown. One-class models, fixed features and interrupted runs have none."
            )
        return FeatureGroups([group for group, value in zip(self, values, strict=True) if value <= level])

    def marked(self, fdr: float) -> FeatureGroups:
        """Return the groups with ``selected``: whether the q-value is at most ``fdr``. None without q-values."""
        known = [group.q_value is not None and not math.isnan(group.q_value) for group in self]
        return FeatureGroups(
            [
                replace(group, selected=bool((group.q_value or 0.0) <= fdr) if is_known else None)
                for group, is_known in zip(self, known, strict=True)
            ]
        )

    @property
    def annotations(self) -> dict[str, list[Any]]:
        """Annotations of the features of the groups, by column, in the order of :meth:`rows`. None for missing values.

        Examples
        --------
        >>> from coterie import FeatureGroup, FeatureGroups
        >>> groups = FeatureGroups([FeatureGroup(1, [2], [0.9]), FeatureGroup(0, [])])
        >>> groups.annotated({"position": [500, 100, 120]}).annotations
        {'position': [100, 120, 500]}
        """
        known = [group.annotations or {} for group in self]
        names = dict.fromkeys(name for own in known for name in own)
        return {
            name: [v for own, group in zip(known, self, strict=True) for v in own.get(name, (None,) * len(group))]
            for name in names
        }

    def annotated(self, columns: Content) -> FeatureGroups:
        """Return the groups with additional annotations. Existing annotations of the same name are replaced.

        Parameters
        ----------
        columns : mapping of str to sequence of length n_features
            One value per feature of the data. Only those of the groups' features are read. A column with the name of a
            column of :meth:`rows` gets the prefix ``info_``.

        Returns
        -------
        groups : FeatureGroups
        """
        named = {f"info_{name}" if name in RESERVED else str(name): values for name, values in columns.items()}
        return FeatureGroups(
            [
                replace(
                    group,
                    annotations={
                        **(group.annotations or {}),
                        **{name: tuple(_plain(values[j]) for j in group.members.tolist()) for name, values in named.items()},
                    },
                )
                for group in self
            ]
        )

    def rows(self) -> list[Record]:
        """Return one dictionary per feature, with the columns of :meth:`to_frame`.

        Groups of a classifier also have ``marks`` (the class that larger values of the support feature indicate) and, for more
        than two classes, ``weight[LABEL]`` (its signed weight for each class). The :attr:`annotations` follow, if there are
        any.
        """
        return flat_table(self)[1]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of :meth:`rows` and :meth:`to_frame`."""
        return list(flat_columns(self))

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per feature (requires ``pip install coterie[tabular]``).

        Its columns are group, feature, name, role, correlation, score, weight, effect, round, confidence (of the group) and
        share (of half-samples in which this feature is selected). Confidence and share are empty before
        :func:`coterie.group_confidence`. The score is the selector's ``scores_`` in every row, for both roles.

        Groups of a classifier also have marks (the class that larger values of a support feature indicate). For more than two
        classes they have ``weight[LABEL]``, the signed weight for each class, and weight is the norm of these. For two classes
        the weight is signed, and positive for the second class. The last columns are the :attr:`annotations`.
        """
        found = flat_columns(self)
        # Missing values are NaN in a column of numbers.
        numbers = {name: float for name, (column, _) in found.items() if column.numeric and column.kind != "count"}
        return data_frame({name: cells for name, (_, cells) in found.items()}).astype(numbers)

    def clumps(self, *, kb: float | None = 250.0, r2: float | None = None, p2: float = 1.0) -> list[Record]:
        """Return the groups of SNPs as rows of PLINK's ``.clumped`` table, smallest p-value first.

        The features must be annotated with chromosome and position (as after a fit to the result of ``open_features`` for a
        .bed file). The columns of p-values require annotated p-values (``coterie.association(...).attach(groups)``).

        Parameters
        ----------
        kb : float or None, default=250
            Maximum distance of members from the support SNP in kilobases, as in ``--clump-kb``. None includes the whole
            chromosome. Members on other chromosomes are never included.
        r2 : float or None, default=None
            Minimum squared correlation of members with the support SNP (``--clump-r2``). None includes the whole group.
        p2 : float, default=1
            Members with a p-value below this are listed in SP2 (``--clump-p2``, for which PLINK's default is 0.01).

        Returns
        -------
        rows : list of dict
            The columns of PLINK: CHR, F (always 1), SNP (the support SNP), BP, P, and TOTAL (number of other SNPs of the
            clump). NSIG, S05, S01, S001 and S0001 are the numbers of them with a p-value of at least 0.05, and below 0.05,
            0.01, 0.001 and 0.0001. SP2 lists them. CS95 lists the likely members of the whole group (see
            :meth:`FeatureGroup.likely_members`). Unknown values are None.

        Examples
        --------
        >>> from coterie import FeatureGroup, FeatureGroups
        >>> groups = FeatureGroups([FeatureGroup(0, [1, 2], [0.9, 0.8], names=("rs1", "rs2", "rs3"))])
        >>> places = {"chromosome": ["1", "1", "1"], "position": [1000, 5000, 900_000], "p_value": [1e-8, 0.02, 1e-6]}
        >>> [clump] = groups.annotated(places).clumps()
        >>> clump["SNP"], clump["P"], clump["TOTAL"], clump["S05"], clump["SP2"]
        ('rs1', 1e-08, 1, 1, 'rs2(1)')
        """
        # PLINK's table is part of the reports, a higher layer, so it is imported on demand.
        rows: list[Record] = import_module("coterie.report.table").clumps_of(self, kb=kb, r2=r2, p2=p2)
        return rows

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the groups as JSON text: a list of objects with support, affiliated, correlation, names and others."""
        content = [_json_object(item) for item in items_of(self)]
        return json.dumps(content, indent=indent, ensure_ascii=False)

    def __repr__(self) -> str:
        n_features = sum(len(group) for group in self)
        lines = [f"{len(self)} group{'s' * (len(self) != 1)}, {n_features} feature{'s' * (n_features != 1)}"]
        lines += [f"  {number}. {group!r}" for number, group in enumerate(self._groups[:_MAX_REPR_GROUPS], start=1)]
        if len(self) > _MAX_REPR_GROUPS:
            lines.append(f"  … and {len(self) - _MAX_REPR_GROUPS} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return groups_html(self)


def groups_html(groups: FeatureGroups, context: Context | None = None) -> str:
    """Return the table of groups of a notebook. With the context of a result, it has the directions of the effects."""
    n_features = sum(len(group) for group in groups)
    title = f"{len(groups):,} group{'s' * (len(groups) != 1)}, {n_features:,} feature{'s' * (n_features != 1)}"
    columns, rows = reading_table("notebook", list(groups)[:_MAX_HTML_ROWS], context)
    cells = [[_cell(column, value) for column, value in zip(columns, row, strict=True)] for row in rows]
    return _notebook(title, columns, cells, len(groups))


def _cell(column: Column, value: Any) -> str:
    """Return a cell of a notebook's table of groups."""
    if column.kind == "name":
        return tag("b", shortened(value))
    if column.kind == "members":
        names, correlation = value
        return listed(names, correlation, _MAX_MEMBERS, letters=40)
    return column.text(value)


def _notebook(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]], n_rows: int) -> str:
    heads, right = [column.title for column in columns], [column.numeric for column in columns]
    return notebook_table(title, heads, rows, n_rows=n_rows, most=_MAX_HTML_ROWS, right=right)


def _shows_class(group: FeatureGroup) -> bool:
    """Return True if a repr names the class that a group marks. With two classes, only if their labels are strings."""
    if group.marks is None or group.class_weights is None:
        return False
    return len(group.class_weights) > 2 or isinstance(group.marks, str)


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python object, and other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def _json_object(item: Item) -> Record:
    """Return a group for ``to_json``: values of the group, and lists over its members."""
    group = item.group
    lists = {
        "affiliated": group.affiliated.tolist(),
        "correlation": group.correlation.tolist(),
        "names": group.names,
        "shares": None if group.shares is None else group.shares.tolist(),
        "probabilities": None if group.probabilities is None else group.probabilities.tolist(),
    }
    content = {name: lists[name] if name in lists else COLUMNS[name].for_json(item) for name in SHOWN["json"]}
    return plain(content if group.annotations is None else {**content, "annotations": group.annotations})
