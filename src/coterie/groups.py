"""Groups of features: a support feature and the features affiliated with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from coterie.markup import notebook_table, shortened, tag, text

if TYPE_CHECKING:
    import pandas as pd

_SHOWN_GROUPS = 12
_SHOWN_MEMBERS = 6
_SHOWN_ROWS = 25  # in a notebook
# What is said of each feature in tables.
COLUMNS = ["group", "feature", "name", "role", "correlation", "score", "weight", "effect", "round", "confidence", "share"]


class Purity(NamedTuple):
    """Smallest, mean and median absolute correlation between the members of a group (as in SuSiE)."""

    minimum: float
    mean: float
    median: float


@dataclass(frozen=True, eq=False)
class FeatureGroup:
    """A support feature and its affiliated features.

    Attributes
    ----------
    support : int
        Index of the support feature.
    affiliated : ndarray of shape (n_affiliated,)
        Indices of the affiliated features, the most correlated first.
    correlation : ndarray of shape (n_affiliated,)
        Their signed correlations with the support feature.
    names : tuple of str or None
        Names of the support feature and of the affiliated ones, if the data have names.
    score : float
        Score of the support feature in the round that chose it (NaN for a fixed one).
    affiliated_scores : ndarray of shape (n_affiliated,)
        Scores of the affiliated features for the final dual variables.
    weight : float or None
        Weight of the support feature in the model (the norm over classes where there are several).
    round : int
        Round that chose the support feature (0: fixed by the user).
    purity : Purity or None
        Correlation between all members; None where it was not computed.
    confidence : float or None
        Share of half-samples in which a member of the group is chosen; None where :func:`coterie.group_confidence` was not
        called, NaN for a fixed feature.
    shares : ndarray of shape (n_affiliated + 1,) or None
        The same for each member by itself, the support feature first.
    effect : float or None
        What the group does to the model's output when its support feature rises by one standard deviation: comparable between
        groups. Weight times standard deviation; with ``predict_with="groups"``, members that follow by their correlations add
        theirs. Over several classes, the norm.

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
    effect: float | None = None

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
        if not others:
            return f"{support} (alone)"
        shown = [f"{name} ({value:+.2f})" for name, value in zip(others, self.correlation, strict=True)][:_SHOWN_MEMBERS]
        more = f", … {len(others) - len(shown)} more" if len(others) > len(shown) else ""
        return f"{support} ~ {', '.join(shown)}{more}"

    def _repr_html_(self) -> str:
        names = self.labels[:_SHOWN_ROWS]
        values = [1.0, *self.correlation.tolist()]
        shares = [None] * len(names) if self.shares is None else self.shares.tolist()
        rows = [
            [name, "support" if place == 0 else "affiliated", _figure(values[place], "+.2f"), _figure(shares[place], ".2f")]
            for place, name in enumerate(names)
        ]
        known = [("effect", self.effect, "+.3g"), ("confidence", self.confidence, ".2f")]
        facts = "".join(f", {word} {_figure(value, form)}" for word, value, form in known if value is not None)
        title = f"Group of {shortened(names[0])}: {len(self):,} feature{'s' * (len(self) != 1)}{facts}"
        heads = ["feature", "role", "correlation", "share"]
        kept = len(heads) - (self.shares is None)
        return notebook_table(title, heads[:kept], [row[:kept] for row in rows], n_rows=len(self), most=_SHOWN_ROWS)


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
    def members(self) -> np.ndarray:
        """Indices of all features in any group, sorted."""
        if not self._groups:
            return np.empty(0, dtype=np.int64)
        return np.unique(np.concatenate([group.members for group in self]))

    def at_least(self, confidence: float) -> FeatureGroups:
        """The groups with at least this confidence (see :func:`coterie.group_confidence`).

        Examples
        --------
        >>> from coterie import FeatureGroup, FeatureGroups
        >>> FeatureGroups([FeatureGroup(3, [7], [0.9], confidence=0.96), FeatureGroup(1, [], confidence=0.1)]).at_least(0.9)
        1 group, 2 features
          1. [0.96] 3 ~ 7 (+0.90)
        """
        if any(group.confidence is None for group in self):
            raise ValueError("The groups have no confidence yet; call coterie.group_confidence(model, X, y) first.")
        return FeatureGroups([group for group in self if group.confidence is not None and group.confidence >= confidence])

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary a feature, with the keys of ``to_frame``'s columns."""
        result = []
        for number, group in enumerate(self, start=1):
            scores = group.affiliated_scores if group.affiliated_scores is not None else np.full(len(group) - 1, np.nan)
            values = [(1.0, group.score), *zip(group.correlation.tolist(), scores.tolist(), strict=True)]
            for position, (feature, (correlation, score)) in enumerate(zip(group.members.tolist(), values, strict=True)):
                result.append(
                    {
                        "group": number,
                        "feature": feature,
                        "name": group.names[position] if group.names is not None else None,
                        "role": "support" if position == 0 else "affiliated",
                        "correlation": correlation,
                        "score": score,
                        "weight": group.weight if position == 0 else None,
                        "effect": group.effect if position == 0 else None,
                        "round": group.round,
                        "confidence": group.confidence,
                        "share": None if group.shares is None else float(group.shares[position]),
                    }
                )
        return result

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame with one row a feature (needs ``pip install coterie[tabular]``).

        Its columns are group, feature, name, role, correlation, score, weight, effect, round, confidence (of the group) and
        share (of half-samples that choose this feature; both empty before :func:`coterie.group_confidence`).
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame() needs pandas: pip install 'coterie[tabular]'.") from error
        return pd.DataFrame(self.rows(), columns=COLUMNS).astype(
            {"weight": float, "effect": float, "confidence": float, "share": float}
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """The groups as JSON text: a list of objects with support, affiliated, correlation, names, …"""
        content = [
            {
                "support": group.support,
                "affiliated": group.affiliated.tolist(),
                "correlation": [_or_none(value) for value in group.correlation.tolist()],
                "names": list(group.names) if group.names is not None else None,
                "score": _or_none(group.score),
                "weight": _or_none(group.weight),
                "effect": _or_none(group.effect),
                "round": group.round,
                "purity": group.purity._asdict() if group.purity is not None else None,
                "confidence": _or_none(group.confidence),
                "shares": [_or_none(value) for value in group.shares.tolist()] if group.shares is not None else None,
            }
            for group in self
        ]
        return json.dumps(content, indent=indent, ensure_ascii=False)

    def __repr__(self) -> str:
        n_features = sum(len(group) for group in self)
        lines = [f"{len(self)} group{'s' * (len(self) != 1)}, {n_features} feature{'s' * (n_features != 1)}"]
        lines += [f"  {number}. {group!r}" for number, group in enumerate(self._groups[:_SHOWN_GROUPS], start=1)]
        if len(self) > _SHOWN_GROUPS:
            lines.append(f"  … and {len(self) - _SHOWN_GROUPS} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        n_features = sum(len(group) for group in self)
        heads = ["#", "support feature", "effect", "confidence", "features", "affiliated (correlation)"]
        rows = []
        for number, group in enumerate(self._groups[:_SHOWN_ROWS], start=1):
            shown = zip(group.labels[1 : _SHOWN_MEMBERS + 1], group.correlation.tolist(), strict=False)
            others = [f"{shortened(name, 40)} ({value:+.2f})" for name, value in shown]
            others += [f"… {len(group) - 1 - len(others):,} more"] if len(group) - 1 > len(others) else []
            figures = _figure(group.effect, "+.3g"), _figure(group.confidence, ".2f", "fixed")
            rows.append([number, tag("b", shortened(group.labels[0])), *figures, len(group), text(", ".join(others))])
        kept = [place for place, head in enumerate(heads) if getattr(self[0], head, 0) is not None] if rows else []
        title = f"{len(self):,} group{'s' * (len(self) != 1)}, {n_features:,} feature{'s' * (n_features != 1)}"
        shown_rows = [[row[place] for place in kept] for row in rows]
        return notebook_table(title, [heads[place] for place in kept], shown_rows, n_rows=len(self), most=_SHOWN_ROWS)


def _figure(value: float | None, form: str, nan: str = "–") -> str:
    """A number for a table."""
    return "–" if value is None else nan if np.isnan(value) else format(value, form)


def _or_none(value: float | None) -> float | None:
    """JSON has no NaN."""
    return None if value is None or not np.isfinite(value) else float(value)
