r"""The confidence of groups: complementary half-samples (Shah and Samworth 2013) and permuted labels.

Correlated features replace each other from one sample to another, but their group remains. So a group counts as found again if
*any* of its members is selected. Features with a large spread are selected by chance more often than others. The whole
procedure is therefore repeated with permuted labels to calibrate the confidences. All half-samples are searched in lockstep
(:mod:`coterie.search.lockstep`).
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from coterie._numba import thread_count
from coterie._parameters import N_JOBS, VERBOSE, Integer, OneOf, check
from coterie.confidence.evidence import EvidenceSearch
from coterie.confidence.halves import complementary, permute_labels
from coterie.confidence.result import Choices, GroupConfidence, false_share
from coterie.estimators.base import GroupDiscovery, input_of, settings_of, task_of
from coterie.estimators.documentation import documented
from coterie.inputs.offsets import check_offset
from coterie.inputs.opening import Input
from coterie.inputs.types import (
    ClientLike,
    CovariatesLike,
    FeaturesLike,
    RandomStateLike,
    SampleGroupsLike,
    SamplesLike,
    TargetsLike,
)
from coterie.interruption import stop_requested
from coterie.progress import RoundProgress
from coterie.search.lockstep import batches, run_searches
from coterie.search.loop import CuttingPlane
from coterie.search.search import Search

# Half-sample pairs in the first batch, and duration of later batches, which is the most work that Ctrl-C discards.
_FIRST_PAIRS = 5
_BATCH_SECONDS = 30.0
# Smallest number of pairs per batch regardless of its duration, because smaller batches would read large data too often.
_MIN_PAIRS = 8
# Permutations by default, and most of them if the false share of a group may fall to the level.
_FIRST_PERMUTATIONS, _MOST_PERMUTATIONS = 5, 9
_LEVEL = 0.1


@documented
def group_confidence(
    model: GroupDiscovery,
    X: FeaturesLike,
    y: TargetsLike = None,
    sample_weight: SamplesLike = None,
    *,
    covariates: CovariatesLike = None,
    offset: SamplesLike = None,
    groups: SampleGroupsLike = None,
    n_pairs: int = 25,
    n_permutations: int | str = 0,
    resume: GroupConfidence | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    client: ClientLike = None,
) -> GroupConfidence:
    """Estimate the confidence of each group of a fitted model.

    The search is repeated, with the settings and the number of support features of the model, on pairs of complementary
    half-samples [1]_. The confidence of a group is the share of these half-samples in which any of its members is selected.

    Each group also gets a p-value and a q-value. ``select(fdr=0.1)`` returns the groups with a false discovery rate of at most
    10 %, ``select(fwer=0.05)`` those of which any is false with a probability of at most 5 %. Both come from searches and
    tests of their own, which do not depend on the C and the number of features of the model. So ``select`` may return groups
    that the model lacks.

    The model is not changed. ``confidence.attach_to(model)`` adds confidences, p-values and q-values to its ``groups_`` and to
    reports, so that ``model.groups_.select(fdr=0.1)`` returns its own groups at that rate.

    Parameters
    ----------
    model : GroupDiscoveryClassifier, GroupDiscoveryRegressor, GroupDiscoverySurvival or GroupDiscoveryOneClass
        A fitted model. For a ``...CV`` estimator, the values that it has chosen are used.

    %(fitted_data)s

    n_pairs : int, default=25
        Number of half-sample pairs. Each class (for survival times, events and censored samples) is halved separately.

    n_permutations : int or "auto", default=0
        Number of label permutations for ``expected_false`` and ``false_share`` (covariates and offset are permuted with the
        labels). Each takes as long as the half-samples of the original labels. ``"auto"`` makes five, and up to nine as long
        as more of them could reduce the ``false_share`` of a group to 0.1. p-values and q-values need none. One-class models
        have no labels to permute.

    resume : GroupConfidence, default=None
        An earlier result for the same model and data to continue, for example after Ctrl-C. The result is the same as that of
        a single call.

    random_state : int, RandomState instance or None, default=None
        Seed of the half-samples and permutations. If ``resume`` is given, its seed is used.

    n_jobs : int, default=None
        Number of threads. None means all cores, but one thread in a worker of a parallel job. Inside
        ``joblib.parallel_config("loky", n_jobs=...)`` the half-samples are divided among processes. The result does not
        depend on it.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    client : distributed.Client, default=None
        Client of a Dask cluster whose workers hold the features of X, as in ``fit``.

    Returns
    -------
    confidence : GroupConfidence
        One entry per group. Ctrl-C keeps the completed pairs and permutations, with a warning, if at least one pair is
        complete.

    See Also
    --------
    coterie.metrics.selection_stability : Stability of any selector.

    Notes
    -----
    Half of the samples have less power than all of them: a group with a weak effect may have a low confidence and still be
    real. A high confidence means that the group is predictive in this data set, not that it is causal.

    The p-values are those of Meinshausen, Meier and Bühlmann [2]_: one half selects, the other half tests jointly. The
    q-values come from the association of single features, given other groups. The assumptions are in the user guide.

    References
    ----------
    .. [1] R. D. Shah, R. J. Samworth, "Variable selection with error control: another look at stability selection", Journal of
       the Royal Statistical Society B 75(1), 2013.

    .. [2] N. Meinshausen, L. Meier, P. Bühlmann, "p-Values for High-Dimensional Regression", Journal of the American
       Statistical Association 104(488), 2009.

    Examples
    --------
    >>> from coterie import GroupDiscoveryClassifier, group_confidence
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(400, 60, n_support=3, n_true=7, random_state=0)
    >>> model = GroupDiscoveryClassifier(6).fit(data.X, data.y)
    >>> result = group_confidence(model, data.X, data.y, n_pairs=10, random_state=0)
    >>> len(result.attach_to(model).groups_.select(fdr=0.1))
    3
    """
    _check(model, n_pairs=n_pairs, n_permutations=n_permutations, n_jobs=n_jobs, verbose=verbose)
    check_offset(model, offset)
    data = input_of(model, X, y, sample_weight, covariates=covariates, offset=offset, groups=groups, client=client)
    _check_covariates(model, data)
    _check_sample_groups(model, data)
    permutations = _Permutations(0 if task_of(model) == "one-class" else n_permutations)
    task = _Task(model, data, thread_count(n_jobs), int(verbose), _seed(random_state) if resume is None else resume.seed)
    n_pairs = n_pairs if resume is None else max(n_pairs, resume.n_pairs)
    chosen, permuted = task.previous_results(resume, n_pairs)
    result: GroupConfidence | None = resume
    complete = False
    try:
        for selected in task.half_samples(chosen, n_pairs):
            chosen = selected
            result = task.result(chosen, permuted)
        task.report_permutation_cost(permutations.first - len(permuted), n_pairs)
        while result is not None and permutations.require_more(result):
            values = task.permuted_confidence(1 + len(permuted), n_pairs)
            if values is None:
                break
            permuted = (*permuted, values)
            result = task.result(chosen, permuted)
        if result is not None and not stop_requested():
            result, complete = task.with_evidence(result)
    except KeyboardInterrupt:
        if result is None:
            raise
    if result is None:  # A signal arrived before the first pair was complete.
        raise KeyboardInterrupt
    if not complete:
        warnings.warn(
            f"Stopped after {result.n_pairs} of {n_pairs} pairs of half-samples and {result.n_permutations} of "
            f"{permutations.first} permutations, before p-values and q-values. Pass the result as resume to continue.",
            UserWarning,
            stacklevel=2,
        )
    return result


class _Permutations:
    """Rule for the number of label permutations."""

    def __init__(self, wanted: int | str) -> None:
        automatic = isinstance(wanted, str)
        self.first = _FIRST_PERMUTATIONS if isinstance(wanted, str) else int(wanted)
        self._most = _MOST_PERMUTATIONS if automatic else self.first

    def require_more(self, result: GroupConfidence) -> bool:
        """Return True if further permutations are requested, or could reduce the false share of a group to the level."""
        n_made = result.n_permutations
        if n_made < self.first:
            return True
        if n_made >= self._most:
            return False
        attainable = false_share(result.confidence, result.expected_false * n_made / self._most, self._most)
        return bool(((attainable <= _LEVEL + 1e-9) & (result.false_share > _LEVEL + 1e-9)).any())


def _check(model: object, **parameters: int | str | None) -> None:
    if not isinstance(model, GroupDiscovery):
        raise ValueError(
            f"model is a {type(model).__name__}. Confidences require a fitted group discovery estimator, for example a "
            "GroupDiscoveryClassifier."
        )
    check_is_fitted(model)
    n_permutations = Integer(0) | OneOf("auto")
    rules = {"n_pairs": Integer(1), "n_permutations": n_permutations, "n_jobs": N_JOBS, "verbose": VERBOSE}
    for name, value in parameters.items():
        check(name, value, rules[name])


def _check_covariates(model: GroupDiscovery, data: Input) -> None:
    """Raise a ValueError unless covariates are given if and only if the model was fitted with covariates."""
    wanted = getattr(model, "covariate_names_", None)
    given = data.attributes.get("covariate_names_")
    if wanted is None and given is not None:
        raise ValueError("The model was fitted without covariates. Omit covariates, or fit the model with them.")
    if wanted is not None and given is None:
        raise ValueError(f"The model was fitted with covariates ({', '.join(wanted)}). Pass them with covariates=.")


def _check_sample_groups(model: GroupDiscovery, data: Input) -> None:
    """Raise a ValueError if the model was fitted with sample groups and the data have none."""
    if data.groups is None and hasattr(model, "n_sample_groups_"):
        raise ValueError("The model was fitted with sample groups. Pass them with groups=.")


def _seed(random_state: RandomStateLike) -> int:
    """Return the seed of all half-samples and permutations."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


class _Task:
    """Repetition of a model's search on half-samples."""

    def __init__(self, model: GroupDiscovery, data: Input, n_threads: int, verbose: int, seed: int) -> None:
        self.model = model
        self.data = data
        self.settings = settings_of(model)
        self.n_threads = n_threads
        self.verbose = verbose
        self.seed = seed
        self.stratified = data.balanced is not None
        self.n_features = data.source.moments(data.weight, n_threads=n_threads).n_varying
        self._seconds = 0.0
        self._n_paths = 0
        self._validate_data()

    def _validate_data(self) -> None:
        """Raise a ValueError if the data are not those of the model or cannot be halved."""
        given, known = self.data.source.shape[1], self.model.n_features_in_
        if given != known:
            raise ValueError(f"X has {given} features, but the model was fitted to {known}. Pass the data of its fit.")
        if self.data.is_survival:
            used = self.data.targets if self.data.weight is None else self.data.targets[self.data.weight > 0]
            if used["event"].sum() < 2:
                raise ValueError("y has one event, so that the samples cannot be halved.")
        classes = self.data.classes
        if classes is None:
            return
        if not np.array_equal(classes, getattr(self.model, "classes_", ())):
            raise ValueError("y has other classes than the model. Pass the data of its fit.")
        used = self.data.targets if self.data.weight is None else self.data.targets[self.data.weight > 0]
        counts = np.bincount(used, minlength=len(classes)).tolist()
        if min(counts) < 2:  # A single sample of weight 2 is enough for a fit, but cannot be halved.
            label = classes.tolist()[counts.index(min(counts))]
            raise ValueError(
                f"Class {label!r} has one sample, which cannot be halved. Remove the class or merge it with another."
            )

    @property
    def digest(self) -> str:
        """Digest of settings, groups, labels, sample weights, covariates, offset and shape of the data."""
        parts = [
            repr(replace(self.settings, predict_with="")),  # predict_with does not affect the groups.
            repr([group.members.tolist() for group in self.model.groups_]),
            repr(self.data.source.shape),
        ]
        text = hashlib.sha256("\n".join(parts).encode())
        text.update(np.ascontiguousarray(self.data.targets).tobytes())
        if self.data.weight is not None:
            text.update(self.data.weight.tobytes())
        if self.data.covariates is not None:
            text.update(np.ascontiguousarray(self.data.covariates).tobytes())
        if self.data.offset is not None:
            text.update(np.ascontiguousarray(self.data.offset).tobytes())
        if self.data.groups is not None:
            text.update(self.data.groups.tobytes())
        return text.hexdigest()

    def previous_results(
        self, resume: GroupConfidence | None, n_pairs: int
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Return the selections and permutations of ``resume``. Permutations with another number of pairs are dropped."""
        if resume is None:
            return (), ()
        if resume.digest != self.digest:
            raise ValueError("resume is the confidence of another model or other data. Omit it to start from the beginning.")
        return resume.chosen, resume.permuted if resume.n_pairs == n_pairs else ()

    def result(self, chosen: tuple[np.ndarray, ...], permuted: tuple[np.ndarray, ...]) -> GroupConfidence:
        """Return the result for the selections and permutations so far."""
        return GroupConfidence.of(
            self.model.groups_, chosen, permuted, n_features=self.n_features, seed=self.seed, digest=self.digest
        )

    @property
    def has_labels(self) -> bool:
        """Whether the model has labels, which p-values and q-values require."""
        return task_of(self.model) != "one-class"

    def with_evidence(self, result: GroupConfidence) -> tuple[GroupConfidence, bool]:
        """Return the result with p-values and q-values (none for one class), and whether no signal prevented them."""
        if not self.has_labels:
            return result, True
        search = EvidenceSearch(
            self.data,
            self.settings,
            n_fixed=sum(group.round == 0 for group in self.model.groups_),
            n_varying=self.n_features,
            n_pairs=result.n_pairs,
            seed=self.seed,
            stratified=self.stratified,
            n_threads=self.n_threads,
        )
        with RoundProgress(3, self.verbose, "Evidence", "steps") as bar:
            found = search.run(self.model.groups_, lambda number: bar.update(number, "p-values and q-values"))
        return (result, False) if found is None else (result.with_evidence(*found), True)

    def half_samples(self, chosen: tuple[np.ndarray, ...], n_pairs: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield the support features of all half-samples so far, after each batch."""
        with RoundProgress(2 * n_pairs, self.verbose, "Confidence", "half-samples") as bar:
            while len(chosen) < 2 * n_pairs and not stop_requested():
                first = len(chosen) // 2
                found = self._run(self._searches(self.data, 0, range(first, min(first + self._batch_size(), n_pairs))))
                if found is None:
                    return
                chosen = (*chosen, *(selection.supports for selection in found))
                yield chosen
                bar.update(len(chosen), "original labels")

    def report_permutation_cost(self, n_permutations: int, n_pairs: int) -> None:
        """Report the estimated duration of the permutations before they start."""
        if self.verbose and n_permutations > 0 and self._n_paths and not stop_requested():
            seconds = self._seconds / self._n_paths * (2 * n_pairs + 1) * n_permutations
            with RoundProgress(None, self.verbose, "Confidence", "label permutations remaining") as bar:
                bar.update(n_permutations, f"about {seconds:.0f} s")

    def permuted_confidence(self, permutation: int, n_pairs: int) -> np.ndarray | None:
        """Return the confidences of the groups found with permuted labels, or None if stopped by a signal."""
        data = permute_labels(self.data, self.seed, permutation)
        whole = Search(data, self.settings, len(self.model.groups_), self.n_threads)
        searches = [whole, *self._searches(data, permutation, range(n_pairs))]
        found: list[_Selection] = []
        with RoundProgress(len(searches), self.verbose, f"Permutation {permutation}", "half-samples") as bar:
            for part in batches(searches, self.data.n_features):
                own = self._run(part, first_groups=not found)
                if own is None:
                    return None
                found += own
                bar.update(len(found), "permuted labels")
        choices = Choices(tuple(selection.supports for selection in found[1:]))
        return np.array([choices.group_share(members) for members in found[0].groups])

    def _searches(self, data: Input, permutation: int, pairs: range) -> list[Search]:
        """Return the searches on some half-sample pairs."""
        return [
            Search(replace(data, weight=half), self.settings, len(self.model.groups_), self.n_threads)
            for pair in pairs
            for half in complementary(data, self.seed, permutation, pair, stratified=self.stratified)
        ]

    def _batch_size(self) -> int:
        """Return the number of pairs in the next batch, limited by its duration and by memory."""
        if not self._n_paths:
            return _FIRST_PAIRS
        n_affordable = max(int(_BATCH_SECONDS / (2 * self._seconds / self._n_paths)), _MIN_PAIRS)
        return max(1, min(n_affordable, len(next(batches(range(10**6), self.data.source.shape[1]))) // 2))

    def _run(self, searches: Sequence[Search], *, first_groups: bool = False) -> list[_Selection] | None:
        """Return the selections of some searches, with the groups of the first search if requested. None after a signal."""
        start = time.perf_counter()
        finish = partial(_selections, first_groups)
        found = run_searches(searches, finish, n_threads=self.n_threads, on_round=lambda *_: stop_requested())
        self._seconds += time.perf_counter() - start
        self._n_paths += len(searches)
        return None if stop_requested() else found


class _Selection(NamedTuple):
    """Support features of a finished search and, if requested, the members of its groups except fixed ones."""

    supports: np.ndarray
    groups: list[np.ndarray]


def _selections(first_groups: bool, positions: Sequence[int], loops: Sequence[CuttingPlane]) -> list[_Selection]:
    """Return the selections of finished loops."""
    return [
        _Selection(loop.oracle.supports, _members(loop) if first_groups and position == 0 else [])
        for position, loop in zip(positions, loops, strict=True)
    ]


def _members(loop: CuttingPlane) -> list[np.ndarray]:
    """Return the members of the groups that a search has found, without those of fixed features."""
    supports, found = loop.oracle.supports, loop.oracle.collect()
    return [np.append(supports[k], found.feature[found.support == k]) for k in range(len(loop.fixed), len(supports))]
