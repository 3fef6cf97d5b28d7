"""Groups of features: a support feature and the features affiliated with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_SHOWN_GROUPS = 12
_SHOWN_MEMBERS = 6
# What is said of each feature in tables.
COLUMNS = ["group", "feature", "name", "role", "correlation", "score", "weight", "round", "confidence", "share"]


# p-values that PLINK's tables of clumps count by, and the columns of these.
_LEVELS = (0.0001, 0.001, 0.01, 0.05)
CLUMP_COLUMNS = ["CHR", "F", "SNP", "BP", "P", "TOTAL", "NSIG", "S05", "S01", "S001", "S0001", "SP2"]


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
    annotations : dict of str to tuple, or None
        What else is known of each member, the support feature first: chromosome and position of a SNP, a p-value.

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
    annotations: dict[str, tuple[Any, ...]] | None = None

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

    @property
    def annotations(self) -> dict[str, list[Any]]:
        """What else is known of the features of the groups, by column, in the order of :meth:`rows`; None where nothing is.

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

    def annotated(self, columns: Mapping[str, Any]) -> FeatureGroups:
        """The groups with more columns, of which those of the same name are replaced.

        Parameters
        ----------
        columns : mapping of str to sequence of length n_features
            A value for every feature of the data; only those of the groups' features are read. A column that is called like
            one of :meth:`rows` gets ``info_`` before its name.

        Returns
        -------
        groups : FeatureGroups
        """
        named = {f"info_{name}" if name in COLUMNS else str(name): values for name, values in columns.items()}
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

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary a feature: group, feature, name, role, correlation, score, weight, round, confidence, share.

        Then come the :attr:`annotations`, if there are any.
        """
        result: list[dict[str, Any]] = []
        more = self.annotations
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
                        "round": group.round,
                        "confidence": group.confidence,
                        "share": None if group.shares is None else float(group.shares[position]),
                        **{column: values[len(result)] for column, values in more.items()},
                    }
                )
        return result

    @property
    def columns(self) -> list[str]:
        """The columns of :meth:`rows` and :meth:`to_frame`."""
        return [*COLUMNS, *self.annotations]

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame with one row a feature (needs ``pip install coterie[tabular]``).

        Its columns are group, feature, name, role, correlation, score, weight, round, confidence (of the group) and share (of
        half-samples that choose this feature; both empty before :func:`coterie.group_confidence`), then :attr:`annotations`.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame() needs pandas: pip install 'coterie[tabular]'.") from error
        return pd.DataFrame(self.rows(), columns=self.columns).astype({"weight": float, "confidence": float, "share": float})

    def clumps(self, *, kb: float | None = 250.0, r2: float | None = None, p2: float = 1.0) -> list[dict[str, Any]]:
        """The groups of SNPs as the rows of PLINK's ``.clumped`` table, the smallest p-value first.

        The features must be annotated with chromosome and position (``fit`` to what ``open_features`` made of a .bed file),
        and for the columns of p-values with these (``coterie.association(...).attach(groups)``).

        Parameters
        ----------
        kb : float or None, default=250
            A group's members count that lie at most so many kilobases from the support SNP, as ``--clump-kb`` has it; None
            takes those of the whole chromosome. Members on other chromosomes never count.
        r2 : float or None, default=None
            The squared correlation with the support SNP that a member must have (``--clump-r2``); None takes the whole group.
        p2 : float, default=1
            The p-value below which members are listed in SP2 (``--clump-p2``, where PLINK's default is 0.01).

        Returns
        -------
        rows : list of dict
            CHR, F (always 1), SNP (the support SNP), BP, P, TOTAL (other SNPs of the clump), NSIG, S05, S01, S001, S0001 (how
            many of them have a p-value from 0.05 on, below 0.05, 0.01, 0.001, 0.0001) and SP2. What is not known is None.

        Examples
        --------
        >>> from coterie import FeatureGroup, FeatureGroups
        >>> groups = FeatureGroups([FeatureGroup(0, [1, 2], [0.9, 0.8], names=("rs1", "rs2", "rs3"))])
        >>> places = {"chromosome": ["1", "1", "1"], "position": [1000, 5000, 900_000], "p_value": [1e-8, 0.02, 1e-6]}
        >>> [clump] = groups.annotated(places).clumps()
        >>> clump["SNP"], clump["P"], clump["TOTAL"], clump["S05"], clump["SP2"]
        ('rs1', 1e-08, 1, 1, 'rs2(1)')
        """
        for name, value, most in (("kb", kb, np.inf), ("r2", r2, 1.0), ("p2", p2, 1.0)):
            if value is not None and not 0.0 <= value <= most:
                raise ValueError(
                    f"{name}={value!r} must be a number of at least 0{'' if most == np.inf else ' and at most 1'}."
                )
        rows = [{name: row[name] for name in CLUMP_COLUMNS} for row in (_clump(group, kb, r2, p2) for group in self)]
        return sorted(rows, key=lambda row: np.inf if row["P"] is None else row["P"])

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
                "round": group.round,
                "purity": group.purity._asdict() if group.purity is not None else None,
                "confidence": _or_none(group.confidence),
                "shares": [_or_none(value) for value in group.shares.tolist()] if group.shares is not None else None,
                **({} if group.annotations is None else {"annotations": _for_json(group.annotations)}),
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


def _clump(group: FeatureGroup, kb: float | None, r2: float | None, p2: float) -> dict[str, Any]:
    """A row of PLINK's table."""
    known = group.annotations or {}
    if "chromosome" not in known or "position" not in known:
        raise ValueError(
            "The features of the groups have no chromosome and position. Fit to what coterie.open_features makes of a .bed "
            "file, or add them: groups.annotated({'chromosome': ..., 'position': ...})."
        )
    chromosome, position = known["chromosome"], known["position"]
    p_values = known.get("p_value", (None,) * len(group))
    p_values = tuple(None if p is None or np.isnan(p) else float(p) for p in p_values)
    squares = [1.0, *(group.correlation**2).tolist()]
    inside = [
        k
        for k in range(1, len(group))
        if chromosome[k] == chromosome[0]
        and (kb is None or abs(position[k] - position[0]) <= 1000.0 * kb)
        and (r2 is None or squares[k] >= r2)
    ]
    known_p = [p for k in inside if (p := p_values[k]) is not None]
    counts = np.bincount(np.searchsorted(_LEVELS, known_p, side="right"), minlength=len(_LEVELS) + 1).tolist()
    counted = counts if len(known_p) == len(inside) and (inside or p_values[0] is not None) else [None] * len(counts)
    labels = group.labels
    listed = [f"{labels[k]}(1)" for k in inside if (p := p_values[k]) is None or p < p2 or p2 >= 1.0]
    return {
        "CHR": chromosome[0],
        "F": 1,
        "SNP": labels[0],
        "BP": position[0],
        "P": p_values[0],
        "TOTAL": len(inside),
        **dict(zip(("S0001", "S001", "S01", "S05", "NSIG"), counted, strict=True)),
        "SP2": ",".join(listed) or "NONE",
    }


def _plain(value: Any) -> Any:
    """A value of a column as Python's own kind."""
    return value.item() if isinstance(value, np.generic) else value


def _for_json(annotations: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Columns without NaN; what JSON does not have as text."""
    return {
        name: [
            _or_none(v) if isinstance(v, float) else v if v is None or isinstance(v, (int, str)) else str(v) for v in values
        ]
        for name, values in annotations.items()
    }


def _or_none(value: float | None) -> float | None:
    """JSON has no NaN."""
    return None if value is None or not np.isfinite(value) else float(value)
