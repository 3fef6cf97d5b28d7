"""What is known of the confidence of groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from coterie.groups import FeatureGroups
from coterie.groups.columns import Record, data_frame, plain
from coterie.markup import notebook_table

if TYPE_CHECKING:
    import pandas as pd

    from coterie.estimators.base import GroupDiscovery

Model = TypeVar("Model", bound="GroupDiscovery")

# One number per group each.
_FIGURES = ("confidence", "support_confidence", "expected_false", "false_share", "bound")
_SHOWN = 12
_SHOWN_ROWS = 25  # in a notebook
# Above this share of selected features Shah and Samworth's bound says nothing.
_LARGEST_SHARE = 1 / np.sqrt(3)


@dataclass(frozen=True, eq=False)
class GroupConfidence:
    """How often the groups of a model come back on half of the samples, and how often others do when labels are shuffled.

    Made by :func:`coterie.group_confidence`. Arrays have one entry per group, in the order of ``model.groups_``.

    Attributes
    ----------
    confidence : ndarray of shape (n_groups,)
        Share of the half-samples in which any member of the group is chosen as a support feature; NaN for fixed features.
    support_confidence : ndarray of shape (n_groups,)
        Share in which this very support feature is.
    shares : tuple of ndarray
        Share of each member of each group, the support feature first.
    n_pairs : int
        Pairs of half-samples that were done.
    n_permutations : int
        Permutations of the labels that were done.
    expected_false : ndarray of shape (n_groups,)
        Number of groups that reach this confidence when the labels are shuffled, on average; NaN without permutations.
    false_share : ndarray of shape (n_groups,)
        An estimate of the share of false ones among the groups of the model that reach this confidence (of the false discovery
        rate): the number expected, with the data themselves counted as one more permutation in which one group is false, over
        the number of groups there are; made monotone, at most 1. So five permutations can never promise less than a sixth of a
        false group.
    bound : ndarray of shape (n_groups,)
        Shah and Samworth's bound of the number of features that do not matter and reach this confidence, if all such features
        are equally likely to be chosen and their shares have one mode; NaN where it says nothing (at or below 0.5).
    permuted : tuple of ndarray
        Confidences of the groups found with shuffled labels, one array per permutation.
    n_features : int
        Features that could have been chosen.
    seed : int
        What the half-samples and permutations were drawn with.
    digest : str
        Of the model and the data, so that only the same work is gone on with.
    chosen : tuple of ndarray
        Support features of each half-sample.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryRegressor, group_confidence
    >>> X = np.random.default_rng(0).standard_normal((80, 30))
    >>> model = GroupDiscoveryRegressor(2).fit(X, 3 * X[:, 4] - X[:, 7])
    >>> group_confidence(model, X, 3 * X[:, 4] - X[:, 7], n_pairs=5, n_permutations=0, random_state=0)
    2 groups, 5 pairs of half-samples, 0 permutations
      1. 1.00
      2. 1.00
    """

    confidence: np.ndarray
    support_confidence: np.ndarray
    shares: tuple[np.ndarray, ...]
    n_pairs: int
    n_permutations: int
    expected_false: np.ndarray
    false_share: np.ndarray
    bound: np.ndarray
    permuted: tuple[np.ndarray, ...]
    n_features: int
    seed: int
    digest: str
    chosen: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls,
        groups: FeatureGroups,
        chosen: tuple[np.ndarray, ...],
        permuted: tuple[np.ndarray, ...],
        *,
        n_features: int,
        seed: int,
        digest: str = "",
    ) -> GroupConfidence:
        """From the support features of half-samples, and the confidences of groups that shuffled labels gave."""
        choices = Choices(chosen)
        shares = [choices.member_shares(group.members) for group in groups]
        confidence = np.array([choices.group_share(group.members) for group in groups])
        fixed = np.array([group.round == 0 for group in groups], dtype=bool)
        confidence[fixed] = np.nan
        expected = expected_false(confidence, permuted)
        n_chosen = float(np.mean([len(features) for features in chosen])) - np.count_nonzero(fixed)
        return cls(
            confidence=confidence,
            support_confidence=np.array([own[0] for own in shares]),
            shares=tuple(shares),
            n_pairs=len(chosen) // 2,
            n_permutations=len(permuted),
            expected_false=expected,
            false_share=false_share(confidence, expected, len(permuted)),
            bound=shah_samworth(confidence, n_chosen, n_features, len(chosen) // 2),
            permuted=permuted,
            n_features=n_features,
            seed=seed,
            digest=digest,
            chosen=chosen,
        )

    def fits(self, groups: object) -> bool:
        """Whether this is of these groups, as far as shapes can tell; for files from strangers."""
        arrays = [getattr(self, name) for name in _FIGURES]
        return (
            isinstance(groups, FeatureGroups)
            and all(isinstance(array, np.ndarray) and array.shape == (len(groups),) for array in arrays)
            and all(array.dtype.kind == "f" for array in arrays)
            and all(_are_arrays(rows, kind) for rows, kind in ((self.shares, "f"), (self.permuted, "f"), (self.chosen, "iu")))
            and [len(own) for own in self.shares] == [len(group) for group in groups]
            and (self.n_pairs, self.n_permutations) == (len(self.chosen) // 2, len(self.permuted))
            and all(type(number) is int and number >= 0 for number in (self.n_features, self.n_pairs, self.seed))
            and isinstance(self.digest, str)
        )

    def attach_to(self, model: Model) -> Model:
        """Let a fitted model have the confidences: its ``groups_`` carry them, and ``confidence_`` is this result.

        Parameters
        ----------
        model : group-discovery estimator
            The fitted model that :func:`coterie.group_confidence` was called with; it is changed.

        Returns
        -------
        model : group-discovery estimator
            The same object.
        """
        model.groups_ = self.attach(model.groups_)
        model.confidence_ = self
        return model

    def attach(self, groups: FeatureGroups) -> FeatureGroups:
        """The groups with their confidence."""
        return FeatureGroups(
            [replace(g, confidence=c, shares=s) for g, c, s in zip(groups, self.confidence.tolist(), self.shares, strict=True)]
        )

    @property
    def reached_by_chance(self) -> float:
        """The largest confidence of any group with shuffled labels; NaN without permutations."""
        return max((float(np.nanmax(values, initial=0.0)) for values in self.permuted), default=float("nan"))

    def rows(self) -> list[dict[str, float]]:
        """One dictionary per group."""
        figures = zip(*(getattr(self, name).tolist() for name in _FIGURES), strict=True)
        return [{"group": number, **dict(zip(_FIGURES, own, strict=True))} for number, own in enumerate(figures, start=1)]

    def to_frame(self) -> pd.DataFrame:
        """A pandas data frame with one row per group (needs ``pip install coterie[tabular]``)."""
        return data_frame(self.rows())

    def to_dict(self) -> Record:
        """What a JSON file can hold of it: numbers, with None for NaN."""
        return {
            "n_pairs": self.n_pairs,
            "n_permutations": self.n_permutations,
            "seed": self.seed,
            **{name: plain(getattr(self, name)) for name in _FIGURES},
            "permuted": [plain(np.sort(values)[::-1]) for values in self.permuted],
        }

    def __repr__(self) -> str:
        lines = [f"{len(self.confidence)} groups, {self.n_pairs} pairs of half-samples, {self.n_permutations} permutations"]
        for number, value in enumerate(self.confidence[:_SHOWN], start=1):
            chance = self.expected_false[number - 1]
            beside = "" if np.isnan(chance) else f" ({chance:.2g} expected with shuffled labels)"
            lines.append(f"  {number}. " + ("fixed" if np.isnan(value) else f"{value:.2f}{beside}"))
        if len(self.confidence) > _SHOWN:
            lines.append(f"  … and {len(self.confidence) - _SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            [
                number,
                "fixed" if np.isnan(value) else f"{value:.2f}",
                f"{self.support_confidence[number - 1]:.2f}",
                *(f"{array[number - 1]:.2g}" for array in (self.expected_false, self.false_share) if self.n_permutations),
            ]
            for number, value in enumerate(self.confidence[:_SHOWN_ROWS], start=1)
        ]
        heads = ["group", "confidence", "support feature alone"]
        heads += ["expected by chance", "share of false ones"] if self.n_permutations else []
        n_groups = len(self.confidence)
        title = f"{n_groups:,} groups, {self.n_pairs} pairs of half-samples, {self.n_permutations} permutations"
        return notebook_table(title, heads, rows, n_rows=n_groups, most=_SHOWN_ROWS)


def _are_arrays(rows: Iterable[object], kinds: str) -> bool:
    """Whether these are vectors of numbers of some kinds."""
    is_vector = (isinstance(row, np.ndarray) and row.ndim == 1 and row.dtype.kind in kinds for row in rows)
    return isinstance(rows, tuple) and all(is_vector)


class Choices:
    """Which features were chosen in which half-samples.

    Parameters
    ----------
    chosen : sequence of ndarray of int
        The support features of each half-sample.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.confidence.result import Choices
    >>> choices = Choices([np.array([3, 1]), np.array([1])])
    >>> choices.member_shares(np.array([1, 2, 3])), choices.group_share(np.array([2, 3]))
    (array([1. , 0. , 0.5]), 0.5)
    """

    def __init__(self, chosen: Sequence[np.ndarray]) -> None:
        self._n = len(chosen)
        features, halves = np.concatenate(chosen), np.repeat(np.arange(len(chosen)), [len(own) for own in chosen])
        order = np.argsort(features, kind="stable")
        self._features, self._halves = features[order], halves[order]

    def group_share(self, members: np.ndarray) -> float:
        """Share of the half-samples in which any of some features was chosen."""
        first, last = self._where(members)
        met = [self._halves[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True) if a < b]
        return len(np.unique(np.concatenate(met))) / self._n if met else 0.0

    def member_shares(self, members: np.ndarray) -> np.ndarray:
        """Share of the half-samples in which each of some features was chosen."""
        first, last = self._where(members)
        return (last - first) / self._n

    def _where(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the choices of some features begin and end."""
        return np.searchsorted(self._features, members), np.searchsorted(self._features, members, side="right")


def expected_false(confidence: np.ndarray, permuted: tuple[np.ndarray, ...]) -> np.ndarray:
    """How many groups reach each confidence with shuffled labels, on average over the permutations."""
    if not permuted:
        return np.full(len(confidence), np.nan)
    everything = np.sort(np.concatenate(permuted))
    reached = len(everything) - np.searchsorted(everything, confidence - 1e-9)
    return np.where(np.isnan(confidence), np.nan, reached / len(permuted))


def false_share(confidence: np.ndarray, expected: np.ndarray, n_permutations: int) -> np.ndarray:
    """Expected false groups over the groups there are, at each confidence; a higher confidence never has a larger one.

    What was never seen in a few permutations may still happen. So the data themselves count as one more, with one false group.
    """
    careful = (expected * n_permutations + 1.0) / (n_permutations + 1.0)
    n_there = np.array([np.count_nonzero(confidence >= value - 1e-9) for value in confidence])
    share = np.minimum(careful / np.maximum(n_there, 1), 1.0)
    order = np.argsort(confidence, kind="stable")
    result = share.copy()
    known = order[~np.isnan(share[order])]
    result[known] = np.minimum.accumulate(share[known])
    return result


def shah_samworth(confidence: np.ndarray, n_chosen: float, n_features: int, n_pairs: int) -> np.ndarray:
    r"""Theorem 2 of Shah and Samworth (2013): at most :math:`C(\tau, B)\,q^2/p` features of no matter reach a share of τ.

    For shares with one mode, q features chosen of p in each of 2B half-samples, and :math:`\theta = q/p \le 1/\sqrt3`.
    """
    bound = np.full(len(confidence), np.nan)
    theta = n_chosen / n_features
    if theta > _LARGEST_SHARE:
        return bound
    lowest = min(0.5 + theta**2, 0.5 + 1 / (2 * n_pairs) + 0.75 * theta**2)
    low = (confidence > lowest) & (confidence <= 0.75) & (2 * confidence - 1 - 1 / (2 * n_pairs) > 0)
    high = confidence > 0.75
    bound[low] = 1.0 / (2.0 * (2.0 * confidence[low] - 1.0 - 1.0 / (2 * n_pairs)))
    bound[high] = 4.0 * (1.0 - confidence[high] + 1.0 / (2 * n_pairs)) / (1.0 + 1.0 / n_pairs)
    return bound * theta * n_chosen
