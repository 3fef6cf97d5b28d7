r"""Evidence for groups at a stated error rate. Nothing here depends on the C or the size of a model.

**p-values** (:mod:`coterie.confidence.splits`) control the family-wise error rate. Groups with p-values of at most 0.05 are
called confirmed.

**q-values** control the false discovery rate. Candidate groups are found by the association of single features
(:mod:`coterie.confidence.association`). The feature with the smallest p-value is the support feature of the first group, which
contains all features correlated with it. The best remaining feature is that of the next group, and so on. A candidate j has
two p-values:

- :math:`p_j`: that of its association with the outcome, given the covariates alone or given all confirmed groups as well (the
  smaller one, times two). There are m features.
- :math:`p'_j`: the largest of its p-values given all confirmed groups, and given each one of the other candidates that are
  significant themselves. It is large for a feature that only represents another group.

Let :math:`u_j` be the smallest number t at which j passes both thresholds: those at which at most t features without any
association, and at most t features that represent another one (:mod:`coterie.confidence.proxies`), are expected. For confirmed
groups, :math:`u_j` is the family-wise p-value. Let :math:`r_j` be the probability that the signal of j belongs to a correlated
feature outside of its group. The q-value at rank i is :math:`(2 u_{(i)} + \sum_{k \le i} r_{(k)})/i`, made monotone.

**Members**. The probability that a member carries the signal of its group comes from approximate Bayes factors (Wakefield
2009) of a single effect, given the confirmed groups. The variance of the effect maximises the mean Bayes factor of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from coterie._numba import one_blas_thread
from coterie.confidence.association import NullModel, ScoreTests, dense_columns, null_models
from coterie.confidence.halves import complementary, used_samples
from coterie.confidence.proxies import Proxies, false_by_proxy, proxies_of, rivals_of
from coterie.confidence.result import q_values
from coterie.confidence.splits import SplitTests, n_testable, split_tests, tested_samples
from coterie.data.view import FeatureView
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.inputs.opening import Input
from coterie.interruption import stop_requested
from coterie.order import in_order
from coterie.search.lockstep import batches, run_searches
from coterie.search.loop import CuttingPlane
from coterie.search.search import Search, SearchSettings
from coterie.selection import names_of
from coterie.solver.losses import family_of

# C of the half-samples, relative to the scale of the features: features are selected jointly.
_FACTOR = 1.0
# Support features per half-sample: at most _MOST_FEATURES, and at most this share of the features that vary.
_MOST_FEATURES, _SHARE = 40, 1 / 3
# Family-wise error rate of confirmed groups, and false discovery rate of the associations that can explain others.
_CONFIRMED, _EXPLAINING = 0.05, 0.05
# Most features with an effect whose proxies are counted: those of the largest statistics.
_MOST_GIVEN = 32
# Features with larger p-values are no candidates; nor are features if more than this number of better ones is expected by
# chance.
_MAX_P, _MAX_EXPECTED = 0.05, 50.0
# Features tested at once, values of their columns, and most candidates.
_LEAST_TESTED = 100
_MOST_TESTED, _MOST_VALUES, _MOST_CANDIDATES = 2000, 10_000_000, 500
# Groups with larger q-values before this probability is counted do without it: computing it takes passes over the features.
_PROMISING = 0.5
# Features with a correlation smaller than the threshold by at most this much can be mistaken for the one with the signal.
_RIVAL = 0.2
# Features compared at once when groups are formed.
_CHUNK = 64
# Variances of a member's effect that are tried, relative to the variance of its estimate.
_PRIOR_RATIOS = 4.0 ** np.arange(0, 9)


class Evidence(NamedTuple):
    """Evidence for groups.

    Attributes
    ----------
    candidates : FeatureGroups
        Confirmed and candidate groups, with ``p_value``, ``q_value`` and ``probabilities``, the smallest q-value first.
    errors : ndarray of shape (n_candidates, 2)
        For each candidate, the arguments of :func:`coterie.confidence.result.q_values`.
    p_value, q_value : ndarray of shape (n_groups,)
        Those of the groups of the model. NaN for fixed features.
    probabilities : tuple of (ndarray or None)
        For each group of the model, the probability of each member to carry the signal.
    """

    candidates: FeatureGroups
    errors: np.ndarray
    p_value: np.ndarray
    q_value: np.ndarray
    probabilities: tuple[np.ndarray | None, ...]

    @classmethod
    def unknown(cls, n_groups: int) -> Evidence:
        """Return the evidence if none was computed."""
        missing = np.full(n_groups, np.nan)
        return cls(FeatureGroups([]), np.empty((0, 2)), missing, missing, (None,) * n_groups)


class _Near(NamedTuple):
    """Features that are correlated with a support feature, itself included, and their correlations with it."""

    features: np.ndarray
    correlation: np.ndarray


@dataclass(frozen=True)
class _Found:
    """Support features of groups in the order of their evidence, the features near each of them, and p-values."""

    supports: np.ndarray
    near: list[_Near]
    p_value: np.ndarray

    @property
    def members(self) -> np.ndarray:
        """All features near any of the support features."""
        return _union([one.features for one in self.near])

    @property
    def parts(self) -> tuple[np.ndarray, list[_Near], np.ndarray]:
        """Support features, features near them, and p-values."""
        return self.supports, self.near, self.p_value

    def chosen(self, positions: np.ndarray) -> _Found:
        """Return some of the groups."""
        return _Found(self.supports[positions], [self.near[k] for k in positions], self.p_value[positions])

    def extended(self, supports: np.ndarray, near: Sequence[_Near], p_value: np.ndarray) -> _Found:
        """Return these groups and some more."""
        return _Found(np.append(self.supports, supports), [*self.near, *near], np.append(self.p_value, p_value))

    def groups(self, names: Sequence[str] | None) -> list[FeatureGroup]:
        """Return the groups. A feature near several support features belongs to the one with the largest correlation."""
        sizes = [len(one.features) for one in self.near]
        feature, correlation = (np.concatenate([np.empty(0), *(one[k] for one in self.near)]) for k in range(2))
        position = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((position, -np.abs(correlation), feature))
        order = order[np.append(True, np.diff(feature[order]) != 0)[: len(order)]]
        order = order[~np.isin(feature[order], self.supports)]
        groups = []
        for k, support in enumerate(self.supports.tolist()):
            own = order[position[order] == k]
            own = own[np.argsort(-np.abs(correlation[own]), kind="stable")]
            members = np.append(support, feature[own]).astype(np.int64)
            groups.append(FeatureGroup(support, members[1:], correlation[own], names=names_of(names, members)))
        return groups


class EvidenceSearch:
    """Computation of the evidence for the groups of a model.

    Parameters
    ----------
    data : Input
        The data of the model.
    settings : SearchSettings
        The settings of the model. C, blocks and folds are replaced.
    n_fixed : int
        Number of fixed features.
    n_varying : int
        Number of features that vary.
    n_pairs : int
        Number of half-sample pairs.
    seed : int
        Seed of the half-samples.
    stratified : bool
        Whether each class is halved separately.
    n_threads : int
        Number of threads. The result does not depend on it.
    """

    def __init__(
        self,
        data: Input,
        settings: SearchSettings,
        *,
        n_fixed: int,
        n_varying: int,
        n_pairs: int,
        seed: int,
        stratified: bool,
        n_threads: int,
    ) -> None:
        self.data, self.n_pairs, self.seed, self.stratified, self.n_threads = data, n_pairs, seed, stratified, n_threads
        self.n_fixed, self.n_varying = n_fixed, n_varying
        self.family = family_of(settings.loss, data.classes is not None)
        self.rows = tested_samples(data, used_samples(data))
        most = max(1, min(_MOST_FEATURES, int(n_varying * _SHARE)))
        half = complementary(data, seed, 0, 0, stratified=stratified)[1]
        self.n_features = n_testable(data, np.flatnonzero(half > 0), most)
        plain = replace(settings, n_features_per_round=None, reuse_features=False, cv=None, max_rounds=None)
        self.settings = replace(plain, C=Search(data, plain, most, n_threads).relative_penalty(_FACTOR)[0])
        self.view = FeatureView.of(data.source, data.weight, n_threads=n_threads)
        self.measure = settings.measure(self.view)
        self.threshold = np.inf if settings.correlation is None else settings.threshold

    def run(self, groups: FeatureGroups, on_step: Callable[[int], None]) -> Evidence | None:
        """Return the evidence, or None after a signal."""
        with one_blas_thread():  # the columns are few, and threads of small products cost more than they save
            return self._run(groups, on_step)

    def _run(self, groups: FeatureGroups, on_step: Callable[[int], None]) -> Evidence | None:
        found = self._split_tests()
        if found is None:
            return None
        on_step(1)
        splits, fixed, whole = found
        confirmed = self._confirmed(whole, splits)
        n_confirmed = len(confirmed.supports)
        alone, beside = (_Association(self, np.append(fixed, own)) for own in (whole[:0], confirmed.supports))
        on_step(2)
        candidates = self._candidates([alone, beside][: 1 + (n_confirmed > 0)], _union([confirmed.members, fixed]))
        if candidates is None:
            return None
        given, n_explaining = self._explained(alone, beside, candidates, n_confirmed)
        effects = confirmed.extended(*candidates.chosen(np.arange(n_explaining)).parts)
        known = _union([effects.members, fixed])
        proxies = alone.proxies(effects.supports, np.setdiff1d(known, effects.supports))
        errors = np.maximum(self.n_varying * candidates.p_value, false_by_proxy(proxies, self.n_varying, given))
        every = confirmed.extended(*candidates.parts)
        errors = np.append(confirmed.p_value, errors)
        misplaced = np.zeros(len(errors))
        promising = np.flatnonzero(q_values(errors, misplaced) <= _PROMISING)
        misplaced[promising] = alone.misplaced(every.chosen(promising), known)
        q_value = q_values(errors, misplaced)
        own, is_own = confirmed.members, np.arange(len(every.supports)) < n_confirmed
        p_value = np.where(
            is_own, every.p_value, [splits.p_value(one.features[~np.isin(one.features, own)]) for one in every.near]
        )
        on_step(3)
        members = _Members(self, fixed, confirmed.supports, beside)
        own_p, own_q = np.array([_looked_up(group, every, p_value, q_value) for group in groups]).reshape(-1, 2).T
        is_fixed = np.array([group.round == 0 for group in groups], dtype=bool)
        order = np.lexsort((p_value, q_value))
        return Evidence(
            self._with_evidence(every.groups(self.view.feature_names), order, p_value, q_value, members),
            np.column_stack([errors, misplaced])[order],
            np.where(is_fixed, np.nan, own_p),
            np.where(is_fixed, np.nan, own_q),
            tuple(None if group.round == 0 else members.probabilities(group) for group in groups),
        )

    def _split_tests(self) -> tuple[SplitTests, np.ndarray, np.ndarray] | None:
        """Return the tests of half-samples, and the fixed and the other features selected in all samples."""
        halves = [
            half
            for pair in range(self.n_pairs)
            for half in complementary(self.data, self.seed, 0, pair, stratified=self.stratified)
        ]
        parts = [self.data, *(replace(self.data, weight=half) for half in halves)]
        n_features = self.n_features + self.n_fixed
        searches = [Search(part, self.settings, n_features, self.n_threads) for part in parts]
        # All samples select more, so that a group that only some halves select is known.
        searches[0] = replace(searches[0], n_features=min(2 * self.n_features, self.n_varying) + self.n_fixed)
        found: list[_Selected] = []
        for batch in batches(searches, self.data.n_features):
            found += run_searches(batch, _selected, n_threads=self.n_threads, on_round=lambda *_: stop_requested())
            if stop_requested():
                return None
        fixed, supports = found[0]
        tests = split_tests(self.data, halves, [own.supports for own in found[1:]], fixed, self.n_features, self.family)
        return None if tests is None else (tests, fixed, supports)

    def _near(self, supports: np.ndarray) -> list[_Near]:
        """Return, for each support feature, all features correlated with it, itself included."""
        if not np.isfinite(self.threshold):
            return [_Near(np.array([j]), np.ones(1)) for j in supports]
        if not len(supports):
            return []
        pairs = self.measure.strong(supports, self.threshold)
        own = [np.flatnonzero(pairs.position == position) for position in range(len(supports))]
        return [_Near(pairs.feature[rows], pairs.correlation[rows]) for rows in own]

    def _confirmed(self, supports: np.ndarray, splits: SplitTests) -> _Found:
        """Return the groups with p-values of at most 0.05, the smallest first.

        Features that are correlated with an earlier one of them do not count, because they may represent it.
        """
        near = self._near(supports)
        first = np.argsort([splits.p_value(one.features) for one in near], kind="stable")
        found = _Found(np.empty(0, dtype=np.int64), [], np.empty(0))
        for k in first.tolist():
            own = near[k].features[~np.isin(near[k].features, found.members)]
            p_value = splits.p_value(own)
            if p_value <= _CONFIRMED:
                found = found.extended(supports[[k]], [near[k]], np.array([p_value]))
        return found

    def _candidates(self, models: Sequence[_Association], known: np.ndarray) -> _Found | None:
        """Return the candidate groups, without known features as support features; None after a signal."""
        largest = min(_MAX_P, _MAX_EXPECTED / self.n_varying)
        size = int(np.clip(_MOST_VALUES // len(self.rows), _LEAST_TESTED, _MOST_TESTED))
        found = _Found(np.empty(0, dtype=np.int64), [], np.empty(0))
        while len(found.supports) < _MOST_CANDIDATES and not stop_requested():
            tested = _union([model.best(size, known) for model in models])
            columns = dense_columns(self.data, tested, self.rows)
            p_value = np.minimum(1.0, np.min([model.p_value(columns) for model in models], axis=0) * len(models))
            good = np.flatnonzero(p_value <= largest)
            # Ties are broken by the common rule, independently of the order of the columns.
            strength = -np.log(np.maximum(p_value[good], np.finfo(float).tiny))
            good = good[in_order(self.data.source, tested[good], strength, sample_weight=self.data.weight)]
            good = good[self._leads(tested[good])]
            near = self._near(tested[good])
            found = found.extended(tested[good], near, p_value[good])
            known = _union([known, *(one.features for one in near)])
            if len(tested) < size or (p_value > largest).any():  # all features with small p-values were among them
                break
        return None if stop_requested() else found.chosen(np.argsort(found.p_value, kind="stable"))

    def _leads(self, features: np.ndarray) -> np.ndarray:
        """Return the positions of the features that are not correlated with an earlier one."""
        if not np.isfinite(self.threshold):
            return np.arange(min(len(features), _MOST_CANDIDATES))
        leads: list[int] = []
        for first in range(0, len(features), _CHUNK):
            own = features[first : first + _CHUNK]
            free = np.ones(len(own), dtype=bool)
            if leads:
                free = ~(np.abs(self.measure.between(own, features[leads])) >= self.threshold).any(axis=1)
            near = np.abs(self.measure.within(own)) >= self.threshold
            for k in range(len(own)):
                if free[k]:
                    leads.append(first + k)
                    free[k:] &= ~near[k, k:]
            if len(leads) >= _MOST_CANDIDATES:
                break
        return np.array(leads[:_MOST_CANDIDATES], dtype=np.int64)

    def _explained(
        self, alone: _Association, beside: _Association, candidates: _Found, n_confirmed: int
    ) -> tuple[np.ndarray, int]:
        """Return the p-values of the candidates given other groups, and the number of candidates that can explain others."""
        if not len(candidates.supports):
            return np.empty(0), 0
        rank = n_confirmed + np.arange(1, len(candidates.supports) + 1)
        good = np.flatnonzero(candidates.p_value * self.n_varying <= _EXPLAINING * rank)
        n_explaining = int(good[-1]) + 1 if len(good) else 0
        columns = dense_columns(self.data, candidates.supports, self.rows)
        given = beside.p_value(columns)
        explaining = np.arange(n_explaining)
        values = [alone.given(columns, k, explaining[explaining != k]) for k in range(len(rank))]
        return np.maximum(given, values), n_explaining

    def _with_evidence(
        self,
        groups: Sequence[FeatureGroup],
        order: np.ndarray,
        p_value: np.ndarray,
        q_value: np.ndarray,
        members: _Members,
    ) -> FeatureGroups:
        """Return groups with their evidence, in this order."""
        return FeatureGroups(
            [
                replace(
                    groups[k],
                    p_value=float(p_value[k]),
                    q_value=float(q_value[k]),
                    probabilities=members.probabilities(groups[k]),
                    round=number,
                )
                for number, k in enumerate(order.tolist(), 1)
            ]
        )


class _Association:
    """Association of features with all outputs, given some features."""

    def __init__(self, task: EvidenceSearch, given: np.ndarray) -> None:
        self._task, self.models = task, null_models(task.data, given, task.rows, task.family)
        self._tests: tuple[np.ndarray, list[ScoreTests]] | None = None

    def best(self, size: int, excluded: np.ndarray) -> np.ndarray:
        """Return the features that are most associated with any output."""
        return np.concatenate([model.best(self._view(model), size, excluded).features for model in self.models])

    def _view(self, model: NullModel) -> FeatureView:
        weight = model.scan_weight(self._task.data.n_samples)
        if weight is None:
            return self._task.view
        return FeatureView.of(self._task.data.source, weight, n_threads=self._task.n_threads)

    def tests(self, columns: np.ndarray) -> list[ScoreTests]:
        """Return the tests of columns, one per output. Those of the last columns are kept."""
        if self._tests is None or self._tests[0] is not columns:
            self._tests = columns, [model.tests(columns) for model in self.models]
        return self._tests[1]

    def proxies(self, features: np.ndarray, excluded: np.ndarray) -> list[Proxies]:
        """Return, for each output, the features that are correlated with some features with an effect."""
        rows, groups = self._task.rows, self._task.data.groups
        n_units = len(rows) if groups is None else len(np.unique(groups[rows]))
        columns = dense_columns(self._task.data, features, rows)
        found = []
        for model in self.models:
            tests = model.tests(columns)
            strongest = np.argsort(-np.abs(tests.z), kind="stable")[:_MOST_GIVEN]
            vectors, scale = model.projections(tests.unit[:, strongest], self._task.data.n_samples)
            found.append(
                proxies_of(self._view(model), features[strongest], vectors, scale, tests.z[strongest], excluded, n_units)
            )
        return found

    def misplaced(self, groups: _Found, known: np.ndarray) -> np.ndarray:
        """Return, for each group, the probability that a feature outside of it carries its signal; known ones do not."""
        rows = self._task.rows
        least = min(self._task.threshold, 1.0) - _RIVAL
        odds = np.zeros(len(groups.supports))
        for first in range(0, len(odds), _MOST_GIVEN):
            part = slice(first, first + _MOST_GIVEN)
            columns = dense_columns(self._task.data, groups.supports[part], rows)
            near = [np.append(known, one.features) for one in groups.near[part]]
            tests = [model.tests(columns) for model in self.models]
            strongest = np.argmax([np.abs(own.z) for own in tests], axis=0)
            for number, (model, own) in enumerate(zip(self.models, tests, strict=True)):
                chosen = np.flatnonzero(strongest == number)
                vectors, scale = model.projections(own.unit[:, chosen], self._task.data.n_samples)
                vectors = np.column_stack([vectors, model.score_vector(len(vectors))])
                odds[first + chosen] = rivals_of(
                    self._view(model), vectors, scale, own.z[chosen], [near[k] for k in chosen], least
                )
        return odds / (1.0 + odds)

    def p_value(self, columns: np.ndarray) -> np.ndarray:
        """Return the p-values of columns: the smallest of the outputs, times their number."""
        found = [tests.p_value for tests in self.tests(columns)]
        return np.minimum(1.0, np.min(found, axis=0) * len(found))

    def given(self, columns: np.ndarray, feature: int, others: np.ndarray) -> float:
        """Return the largest p-value of a column given each of some others; 0 if there are none."""
        if not len(others):
            return 0.0
        found = [float(tests.given(feature, others).max()) for tests in self.tests(columns)]
        return min(1.0, min(found) * len(found))


class _Members:
    """Probabilities of members to carry the signal of their group, given the confirmed groups."""

    def __init__(self, task: EvidenceSearch, fixed: np.ndarray, supports: np.ndarray, beside: _Association) -> None:
        self._task, self._fixed, self._supports, self._beside = task, fixed, supports, beside

    def probabilities(self, group: FeatureGroup) -> np.ndarray | None:
        """Return the probability of each member, the support feature first; None for very large groups."""
        members = group.members
        if len(members) == 1:
            return np.ones(1)
        if len(members) * len(self._task.rows) > _MOST_VALUES:
            return None
        others = self._supports[~np.isin(self._supports, members)]
        same = len(others) == len(self._supports)
        model = self._beside if same else _Association(self._task, np.append(self._fixed, others))
        tests = model.tests(dense_columns(self._task.data, members, self._task.rows))
        strongest = tests[int(np.argmax([np.abs(own.z).max() for own in tests]))]
        return member_probabilities(strongest.z)


class _Selected(NamedTuple):
    """Fixed and other support features of a finished search."""

    fixed: np.ndarray
    supports: np.ndarray


def _selected(_: Sequence[int], loops: Sequence[CuttingPlane]) -> list[_Selected]:
    """Return the selections of finished loops."""
    return [_Selected(*np.split(loop.oracle.supports, [len(loop.fixed)])) for loop in loops]


def _union(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the different features of several arrays."""
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *parts]))


def member_probabilities(z: np.ndarray) -> np.ndarray:
    """Return the probability that each member is the single one with an effect, from their statistics.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.confidence.evidence import member_probabilities
    >>> member_probabilities(np.array([6.0, 5.5, 2.0])).round(2).tolist()
    [0.94, 0.06, 0.0]
    """
    shrinkage = _PRIOR_RATIOS[:, None] / (1.0 + _PRIOR_RATIOS[:, None])
    factors = 0.5 * np.log1p(-shrinkage) + 0.5 * shrinkage * z**2
    totals = np.logaddexp.reduce(factors, axis=1)
    best = int(np.argmax(totals))
    return np.asarray(np.exp(factors[best] - totals[best]))


def _looked_up(group: FeatureGroup, known: _Found, p_value: np.ndarray, q_value: np.ndarray) -> tuple[float, float]:
    """Return the smallest p-value and q-value of the known groups that the group belongs to or contains; 1 without any."""
    members = group.members
    same = [
        k
        for k, (support, near) in enumerate(zip(known.supports.tolist(), known.near, strict=True))
        if support in members or group.support in near.features
    ]
    return float(min(p_value[same], default=1.0)), float(min(q_value[same], default=1.0))
