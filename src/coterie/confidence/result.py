"""The result of estimating the confidence of groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from coterie.groups import FeatureGroups
from coterie.groups.columns import Record, data_frame, plain
from coterie.markup import notebook_table

if TYPE_CHECKING:
    import pandas as pd

    from coterie.estimators.base import GroupDiscovery

Model = TypeVar("Model", bound="GroupDiscovery")

# Attributes with one number per group.
_COLUMNS = ("confidence", "support_confidence", "expected_false", "false_share", "bound", "p_value", "q_value")
_MAX_REPR_GROUPS = 12
_MAX_HTML_ROWS = 25
# Shah and Samworth's bound does not apply above this share of selected features.
_MAX_SHARE = 1 / np.sqrt(3)


@dataclass(frozen=True, eq=False)
class GroupConfidence:
    """Confidences of the groups of a model from half-samples, compared with those for permuted labels.

    Returned by :func:`coterie.group_confidence`. Arrays have one entry per group, in the order of ``model.groups_``.

    Attributes
    ----------
    confidence : ndarray of shape (n_groups,)
        Share of the half-samples in which any member of the group is selected as a support feature. NaN for fixed features.
    support_confidence : ndarray of shape (n_groups,)
        Share of the half-samples in which the support feature itself is selected.
    shares : tuple of ndarray
        Share of the half-samples for each member of each group, the support feature first.
    n_pairs : int
        Number of completed half-sample pairs.
    n_permutations : int
        Number of completed label permutations.
    expected_false : ndarray of shape (n_groups,)
        Mean number of groups that reach this confidence with permuted labels. NaN without permutations.
    false_share : ndarray of shape (n_groups,)
        Estimated share of false groups among the groups of the model that reach this confidence (the false discovery rate).
        This is the expected number of false groups over the number of groups. The data count as one additional permutation,
        in which one group is false. The ratio is made monotone in the confidence and is at most 1. With five permutations,
        the expected number is at least one sixth, with nine at least one tenth.
    bound : ndarray of shape (n_groups,)
        Shah and Samworth's bound on the number of irrelevant features that reach this confidence. It assumes that all
        irrelevant features are equally likely to be selected and that the distribution of their shares is unimodal. NaN where
        it does not apply (at or below 0.5).
    p_value : ndarray of shape (n_groups,)
        P-value of each group, corrected for the selection of the features: among all groups of at most 0.05, any is false with
        a probability of at most 0.05 (family-wise error rate). NaN for fixed features and one-class models.
    q_value : ndarray of shape (n_groups,)
        Estimated share of false groups (false discovery rate) if all groups with at least this evidence are selected. NaN for
        fixed features and one-class models. It does not depend on the C of the model.
    probabilities : tuple of (ndarray or None)
        Probability of each member of a group to carry its signal, the support feature first. None for fixed features and very
        large groups.
    candidates : FeatureGroups
        Groups with p-values and q-values that do not depend on the model, the smallest q-value first. The model may lack some
        of them.
    candidate_errors : ndarray of shape (n_candidates, 2)
        Estimates behind the q-values of ``candidates``: the expected number of false groups of each of two kinds with at least
        this evidence, and the probability that a feature outside of the group carries its signal.
        :func:`coterie.pooled_groups` computes the q-values of several searches from them.
    permuted : tuple of ndarray
        Confidences of the groups found with permuted labels, one array per permutation.
    n_features : int
        Number of features that vary.
    seed : int
        Seed of the half-samples and permutations.
    digest : str
        Digest of the model and the data, which ``resume`` checks.
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
      1. 1.00, q-value 0
      2. 1.00, q-value 0
    """

    confidence: np.ndarray
    support_confidence: np.ndarray
    shares: tuple[np.ndarray, ...]
    n_pairs: int
    n_permutations: int
    expected_false: np.ndarray
    false_share: np.ndarray
    bound: np.ndarray
    p_value: np.ndarray
    q_value: np.ndarray
    probabilities: tuple[np.ndarray | None, ...]
    candidates: FeatureGroups
    permuted: tuple[np.ndarray, ...]
    n_features: int
    seed: int
    digest: str
    chosen: tuple[np.ndarray, ...]
    candidate_errors: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))

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
        """Return the result for support features of half-samples and confidences found with permuted labels."""
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
            p_value=np.full(len(groups), np.nan),
            q_value=np.full(len(groups), np.nan),
            probabilities=(None,) * len(groups),
            candidates=FeatureGroups([]),
            permuted=permuted,
            n_features=n_features,
            seed=seed,
            digest=digest,
            chosen=chosen,
        )

    def fits(self, groups: object) -> bool:
        """Return True if shapes and types match these groups. Used to check untrusted files."""
        arrays = [getattr(self, name) for name in _COLUMNS]
        return (
            isinstance(groups, FeatureGroups)
            and all(isinstance(array, np.ndarray) and array.shape == (len(groups),) for array in arrays)
            and all(array.dtype.kind == "f" for array in arrays)
            and all(_are_arrays(rows, kind) for rows, kind in ((self.shares, "f"), (self.permuted, "f"), (self.chosen, "iu")))
            and [len(own) for own in self.shares] == [len(group) for group in groups]
            and (self.n_pairs, self.n_permutations) == (len(self.chosen) // 2, len(self.permuted))
            and all(type(number) is int and number >= 0 for number in (self.n_features, self.n_pairs, self.seed))
            and isinstance(self.digest, str)
            and isinstance(self.candidates, FeatureGroups)
            and isinstance(self.candidate_errors, np.ndarray)
            and self.candidate_errors.dtype.kind == "f"
            and self.candidate_errors.shape in ((len(self.candidates), 2), (0, 2))
            and len(self.probabilities) == len(self.confidence)
        )

    def attach_to(self, model: Model) -> Model:
        """Add the confidences to the ``groups_`` of a fitted model, and set its ``confidence_`` to this result.

        Parameters
        ----------
        model : group-discovery estimator
            The fitted model that :func:`coterie.group_confidence` was called with. It is modified.

        Returns
        -------
        model : group-discovery estimator
            The same object.
        """
        model.groups_ = self.attach(model.groups_)
        model.confidence_ = self
        return model

    def attach(self, groups: FeatureGroups) -> FeatureGroups:
        """Return the groups with their confidences."""
        figures = zip(self.confidence.tolist(), self.shares, self.p_value.tolist(), self.q_value.tolist(), strict=True)
        names = ("confidence", "shares", "p_value", "q_value")
        own = zip(groups, figures, self.probabilities, strict=True)
        return FeatureGroups(
            [replace(group, **dict(zip(names, values, strict=True)), probabilities=p) for group, values, p in own]
        )

    def with_evidence(
        self,
        candidates: FeatureGroups,
        candidate_errors: np.ndarray,
        p_value: np.ndarray,
        q_value: np.ndarray,
        probabilities: tuple[np.ndarray | None, ...],
    ) -> GroupConfidence:
        """Return the result with the p-values and q-values of its groups and of all candidates."""
        return replace(
            self,
            candidates=candidates,
            candidate_errors=candidate_errors,
            p_value=p_value,
            q_value=q_value,
            probabilities=probabilities,
        )

    def select(self, *, fdr: float | None = None, fwer: float | None = None) -> FeatureGroups:
        """Return the groups that are real at a stated error rate, among all groups that were examined.

        Parameters
        ----------
        fdr : float, default=None
            False discovery rate: the expected share of false groups among those returned.

        fwer : float, default=None
            Family-wise error rate: the probability that any returned group is false.

        Returns
        -------
        groups : FeatureGroups
            Groups of ``candidates``. They do not depend on the C and the number of features of the model, and the model may
            lack some of them.

        Examples
        --------
        >>> import numpy as np
        >>> from coterie import GroupDiscoveryRegressor, group_confidence
        >>> X = np.random.default_rng(0).standard_normal((80, 30))
        >>> y = 3 * X[:, 4] - 2 * X[:, 7] + np.random.default_rng(1).standard_normal(80)
        >>> found = group_confidence(GroupDiscoveryRegressor(1).fit(X, y), X, y, n_pairs=5, random_state=0)
        >>> sorted(group.support for group in found.select(fdr=0.1))
        [4, 7]
        """
        if not len(self.candidates) and np.isnan(self.p_value).all():
            raise ValueError("The groups have no p-values and q-values. They require labels and a completed group_confidence.")
        return self.candidates.select(fdr=fdr, fwer=fwer)

    @property
    def reached_by_chance(self) -> float:
        """Largest confidence of any group found with permuted labels. NaN without permutations."""
        return max((float(np.nanmax(values, initial=0.0)) for values in self.permuted), default=float("nan"))

    def rows(self) -> list[dict[str, float]]:
        """Return one dictionary per group."""
        figures = zip(*(getattr(self, name).tolist() for name in _COLUMNS), strict=True)
        return [{"group": number, **dict(zip(_COLUMNS, own, strict=True))} for number, own in enumerate(figures, start=1)]

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per group (requires ``pip install coterie[tabular]``)."""
        return data_frame(self.rows())

    def to_dict(self) -> Record:
        """Return the content for a JSON file: numbers, with None for NaN."""
        return {
            "n_pairs": self.n_pairs,
            "n_permutations": self.n_permutations,
            "seed": self.seed,
            "n_features": self.n_features,
            "sizes": [len(own) for own in self.shares],
            **{name: plain(getattr(self, name)) for name in _COLUMNS},
            "permuted": [plain(np.sort(values)[::-1]) for values in self.permuted],
        }

    def __repr__(self) -> str:
        lines = [f"{len(self.confidence)} groups, {self.n_pairs} pairs of half-samples, {self.n_permutations} permutations"]
        for number, value in enumerate(self.confidence[:_MAX_REPR_GROUPS], start=1):
            expected, evidence = self.expected_false[number - 1], self.q_value[number - 1]
            note = "" if np.isnan(evidence) else f", q-value {evidence:.2g}"
            note += "" if np.isnan(expected) else f" ({expected:.2g} expected with permuted labels)"
            lines.append(f"  {number}. " + ("fixed" if np.isnan(value) else f"{value:.2f}{note}"))
        if len(self.confidence) > _MAX_REPR_GROUPS:
            lines.append(f"  … and {len(self.confidence) - _MAX_REPR_GROUPS} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            [
                number,
                "fixed" if np.isnan(value) else f"{value:.2f}",
                f"{self.support_confidence[number - 1]:.2f}",
                *(f"{array[number - 1]:.2g}" for array in (self.q_value, self.p_value) if not np.isnan(array).all()),
                *(f"{array[number - 1]:.2g}" for array in (self.expected_false, self.false_share) if self.n_permutations),
            ]
            for number, value in enumerate(self.confidence[:_MAX_HTML_ROWS], start=1)
        ]
        heads = ["group", "confidence", "support feature only"]
        heads += ["q-value", "p-value"] if not np.isnan(self.q_value).all() else []
        heads += ["expected by chance", "false share"] if self.n_permutations else []
        n_groups = len(self.confidence)
        title = f"{n_groups:,} groups, {self.n_pairs} pairs of half-samples, {self.n_permutations} permutations"
        return notebook_table(title, heads, rows, n_rows=n_groups, most=_MAX_HTML_ROWS)


def _are_arrays(rows: Iterable[object], kinds: str) -> bool:
    """Return True if ``rows`` is a tuple of vectors whose dtypes are of the given kinds."""
    is_vector = (isinstance(row, np.ndarray) and row.ndim == 1 and row.dtype.kind in kinds for row in rows)
    return isinstance(rows, tuple) and all(is_vector)


class Choices:
    """Features selected in each half-sample.

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
        """Return the share of the half-samples in which any of the features was selected."""
        first, last = self._where(members)
        halves = [self._halves[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True) if a < b]
        return len(np.unique(np.concatenate(halves))) / self._n if halves else 0.0

    def member_shares(self, members: np.ndarray) -> np.ndarray:
        """Return the share of the half-samples in which each of the features was selected."""
        first, last = self._where(members)
        return (last - first) / self._n

    def _where(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and last position of the selections of some features."""
        return np.searchsorted(self._features, members), np.searchsorted(self._features, members, side="right")


def expected_false(confidence: np.ndarray, permuted: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the mean number of groups per permutation that reach each confidence."""
    if not permuted:
        return np.full(len(confidence), np.nan)
    pooled = np.sort(np.concatenate(permuted))
    reached = len(pooled) - np.searchsorted(pooled, confidence - 1e-9)
    return np.where(np.isnan(confidence), np.nan, reached / len(permuted))


def false_share(confidence: np.ndarray, expected: np.ndarray, n_permutations: int) -> np.ndarray:
    """Return the expected number of false groups over the number of groups, at each confidence.

    The share never increases with the confidence. An event that does not occur in a few permutations is still possible, so the
    data count as one additional permutation with one false group.
    """
    conservative = (expected * n_permutations + 1.0) / (n_permutations + 1.0)
    n_reached = np.array([np.count_nonzero(confidence >= value - 1e-9) for value in confidence])
    share = np.minimum(conservative / np.maximum(n_reached, 1), 1.0)
    order = np.argsort(confidence, kind="stable")
    result = share.copy()
    known = order[~np.isnan(share[order])]
    result[known] = np.minimum.accumulate(share[known])
    return result


def q_values(errors: np.ndarray, misplaced: np.ndarray) -> np.ndarray:
    """Return the estimated false discovery rate at each group, monotone.

    The expected number of false groups up to a rank is twice the largest of the expected errors, for the two kinds of errors,
    and the sum of the probabilities that groups are misplaced.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.confidence.result import q_values
    >>> q_values(np.array([0.01, 2.0, 0.12, 0.1]), np.zeros(4)).round(3).tolist()
    [0.02, 1.0, 0.08, 0.08]
    """
    order = np.lexsort((errors, 2.0 * errors + misplaced))
    expected = 2.0 * np.maximum.accumulate(errors[order]) + np.cumsum(misplaced[order])
    share = np.minimum(expected / np.arange(1, len(errors) + 1), 1.0)
    result = np.empty(len(errors))
    result[order] = np.minimum.accumulate(share[::-1])[::-1]
    return result


def pooled_groups(confidences: Sequence[GroupConfidence]) -> list[FeatureGroups]:
    """Return the groups of several searches, with p-values and q-values for all searches together.

    The ``p_value`` and the ``q_value`` of a group refer to one search, for instance of one chromosome. If the groups of many
    searches are listed together, their false groups add up: with 22 chromosomes and ``select(fwer=0.05)`` in each of them, any
    false group has a probability of up to 0.68.

    Parameters
    ----------
    confidences : sequence of GroupConfidence
        Results of :func:`coterie.group_confidence`, or the ``confidence`` of results of :func:`coterie.discover`. Searches
        without any group count as well: pass all of them.

    Returns
    -------
    groups : list of FeatureGroups
        The ``candidates`` of each search, in the same order, with new ``p_value`` (times the number of searches) and
        ``q_value``.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryRegressor, group_confidence, pooled_groups
    >>> X = np.random.default_rng(0).standard_normal((80, 60))
    >>> y = 3 * X[:, 4] + np.random.default_rng(1).standard_normal(80)
    >>> parts = [X[:, :30], X[:, 30:]]
    >>> models = [GroupDiscoveryRegressor(1).fit(part, y) for part in parts]
    >>> found = [group_confidence(model, part, y, random_state=0) for model, part in zip(models, parts)]
    >>> [[group.support for group in groups.select(fdr=0.1)] for groups in pooled_groups(found)]
    [[4], []]
    """
    for number, result in enumerate(confidences, start=1):
        if np.isnan(result.p_value).all() and not len(result.candidates):
            raise ValueError(
                f"Search {number} has no p-values and q-values. They require labels and a completed group_confidence."
            )
        if len(result.candidate_errors) != len(result.candidates):
            raise ValueError(f"Search {number} was computed by an earlier version. Compute its confidence again.")
    errors = np.concatenate([np.empty((0, 2)), *(result.candidate_errors for result in confidences)])
    found = q_values(len(confidences) * errors[:, 0], errors[:, 1]).tolist()
    pooled, first = [], 0
    for result in confidences:
        own = found[first : first + len(result.candidates)]
        first += len(own)
        pooled.append(
            FeatureGroups(
                [
                    replace(group, p_value=min(1.0, (group.p_value or 0.0) * len(confidences)), q_value=q_value)
                    for group, q_value in zip(result.candidates, own, strict=True)
                ]
            )
        )
    return pooled


def pooled_false_share(confidences: Sequence[GroupConfidence]) -> list[np.ndarray]:
    """Return the shares of false groups by permuted labels if the groups of several searches are reported together.

    Each ``false_share`` refers to one search, for instance of one chromosome. If the groups of many searches are listed
    together, their false groups add up. The pooled share counts the groups found with permuted labels in all searches.

    Parameters
    ----------
    confidences : sequence of GroupConfidence
        Results of :func:`coterie.group_confidence`, with permutations.

    Returns
    -------
    shares : list of ndarray
        Share of false groups among all groups of at least this confidence, for each group of each search.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryRegressor, group_confidence, pooled_false_share
    >>> X = np.random.default_rng(0).standard_normal((80, 60))
    >>> y = 3 * X[:, 4] + np.random.default_rng(1).standard_normal(80)
    >>> parts = [X[:, :30], X[:, 30:]]
    >>> models = [GroupDiscoveryRegressor(1).fit(part, y) for part in parts]
    >>> options = {"n_pairs": 5, "n_permutations": 10, "random_state": 0}
    >>> found = [group_confidence(model, part, y, **options) for model, part in zip(models, parts)]
    >>> [share.round(2).tolist() for share in pooled_false_share(found)]
    [[0.09], [0.82]]
    """
    if any(not result.permuted for result in confidences):
        raise ValueError("A share of false groups requires permutations. Pass results with n_permutations of at least 1.")
    confidence = np.concatenate([np.empty(0), *(result.confidence for result in confidences)])
    expected = sum((expected_false(confidence, result.permuted) for result in confidences), np.zeros(len(confidence)))
    n_permutations = min((result.n_permutations for result in confidences), default=0)
    shares = false_share(confidence, expected, n_permutations)
    return np.split(shares, np.cumsum([len(result.confidence) for result in confidences])[:-1])


def shah_samworth(confidence: np.ndarray, n_chosen: float, n_features: int, n_pairs: int) -> np.ndarray:
    r"""Return the bound of Theorem 2 of Shah and Samworth (2013).

    At most :math:`C(\tau, B)\,q^2/p` irrelevant features reach a share of τ on average. The theorem assumes a unimodal
    distribution of the shares, q of p features selected in each of 2B half-samples, and :math:`\theta = q/p \le 1/\sqrt3`.
    """
    bound = np.full(len(confidence), np.nan)
    theta = n_chosen / n_features
    if theta > _MAX_SHARE:
        return bound
    lowest = min(0.5 + theta**2, 0.5 + 1 / (2 * n_pairs) + 0.75 * theta**2)
    low = (confidence > lowest) & (confidence <= 0.75) & (2 * confidence - 1 - 1 / (2 * n_pairs) > 0)
    high = confidence > 0.75
    bound[low] = 1.0 / (2.0 * (2.0 * confidence[low] - 1.0 - 1.0 / (2 * n_pairs)))
    bound[high] = 4.0 * (1.0 - confidence[high] + 1.0 / (2 * n_pairs)) / (1.0 + 1.0 / n_pairs)
    return bound * theta * n_chosen
