r"""The confidence of groups: complementary half-samples (Shah and Samworth 2013) and shuffled labels.

Correlated features take each other's place from sample to sample; their group does not. So a group counts as found again when
*any* of its members is chosen. Features of a large spread are chosen more often by chance than others, so what a
confidence is worth is told by the whole procedure repeated with shuffled labels. All half-samples are paths in lockstep
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
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from coterie._numba import thread_count
from coterie._parameters import N_JOBS, VERBOSE, Integer, check
from coterie.confidence.result import Choices, GroupConfidence
from coterie.estimators.base import GroupDiscovery, input_of, settings_of
from coterie.estimators.documentation import documented
from coterie.inputs.opening import Input
from coterie.inputs.types import ClientLike, CovariatesLike, FeaturesLike, RandomStateLike, SamplesLike, TargetsLike
from coterie.interruption import stop_requested
from coterie.progress import RoundProgress
from coterie.search.lockstep import batches, run_searches
from coterie.search.loop import CuttingPlane
from coterie.search.search import Search

# Pairs of half-samples that are done together at first, and how long a batch may take later on: what Ctrl-C costs at most.
_FIRST_PAIRS = 5
_BATCH_SECONDS = 30.0
# Pairs that are worth a pass over the features together, however long that takes: fewer would read large data again and again.
_MIN_PAIRS = 8


@documented
def group_confidence(
    model: GroupDiscovery,
    X: FeaturesLike,
    y: TargetsLike = None,
    sample_weight: SamplesLike = None,
    *,
    covariates: CovariatesLike = None,
    n_pairs: int = 25,
    n_permutations: int = 5,
    resume: GroupConfidence | None = None,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    client: ClientLike = None,
) -> GroupConfidence:
    """How sure one can be of each group of a fitted model.

    The search is repeated, with the settings of the model and for as many support features, on pairs of complementary
    half-samples [1]_. The confidence of a group is the share of these half-samples in which any of its members is chosen. Then
    the labels are shuffled and the whole is done again, which tells how many groups reach such a confidence by chance.

    The model is not changed. ``confidence.attach_to(model)`` lets its ``groups_``, and reports of it, have the confidences:
    ``model.groups_.at_least(0.9)``.

    Parameters
    ----------
    model : GroupDiscoveryClassifier, GroupDiscoveryRegressor or GroupDiscoveryOneClass
        A fitted model, also one of the ``...CV`` estimators (with the values that they have chosen).

    %(fitted_data)s

    n_pairs : int, default=25
        Pairs of complementary half-samples; classes are halved each by itself.

    n_permutations : int, default=5
        How often to repeat everything with shuffled labels (covariates go with them), which takes as long each time; 0 leaves
        ``expected_false`` empty. Without labels (one class) there is nothing to shuffle.

    resume : GroupConfidence, default=None
        An earlier result for the same model and data to go on with, for instance after Ctrl-C. It is as if all had been done
        at once.

    random_state : int, RandomState instance or None, default=None
        Seed of the half-samples and permutations; that of ``resume`` where it is given.

    n_jobs : int, default=None
        Number of threads. None: all cores, but one in a worker of a parallel job. Inside
        ``joblib.parallel_config("loky", n_jobs=...)`` so many processes share the half-samples. The result does not depend
        on it.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    client : distributed.Client, default=None
        Client of a Dask cluster whose workers hold the features of X, as in ``fit``.

    Returns
    -------
    confidence : GroupConfidence
        One entry a group. Ctrl-C keeps the pairs and permutations that are done, with a warning, if one pair is.

    See Also
    --------
    coterie.metrics.selection_stability : How stable any selector is.

    Notes
    -----
    Half of the samples show less than all of them: a weak group of many samples may have a low confidence and be real. A high
    one says that the group predicts in this data set, not that it causes anything.

    References
    ----------
    .. [1] R. D. Shah, R. J. Samworth, "Variable selection with error control: another look at stability selection", Journal of
       the Royal Statistical Society B 75(1), 2013.

    Examples
    --------
    >>> from coterie import GroupDiscoveryClassifier, group_confidence
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(400, 60, n_support=3, n_true=7, random_state=0)
    >>> model = GroupDiscoveryClassifier(6).fit(data.X, data.y)
    >>> result = group_confidence(model, data.X, data.y, n_pairs=10, n_permutations=2, random_state=0)
    >>> len(result.attach_to(model).groups_.at_least(0.9))
    3
    """
    _check(model, n_pairs=n_pairs, n_permutations=n_permutations, n_jobs=n_jobs, verbose=verbose)
    data = input_of(model, X, y, sample_weight, covariates, client)
    _check_covariates(model, data)
    if not (is_classifier(model) or is_regressor(model)):
        n_permutations = 0
    task = _Task(model, data, thread_count(n_jobs), int(verbose), _seed(random_state) if resume is None else resume.seed)
    n_pairs = n_pairs if resume is None else max(n_pairs, resume.n_pairs)
    chosen, permuted = task.earlier(resume, n_pairs)
    result: GroupConfidence | None = resume
    try:
        for so_far in task.real_halves(chosen, n_pairs):
            chosen = so_far
            result = task.result(chosen, permuted)
        task.announce(n_permutations - len(permuted), n_pairs)
        for permutation in range(len(permuted), n_permutations):
            values = task.permuted_confidence(1 + permutation, n_pairs)
            if values is None:
                break
            permuted = (*permuted, values)
            result = task.result(chosen, permuted)
    except KeyboardInterrupt:
        if result is None:
            raise
    if result is None:  # a signal came before the first pair was done
        raise KeyboardInterrupt
    if result.n_pairs < n_pairs or result.n_permutations < n_permutations:
        warnings.warn(
            f"Stopped after {result.n_pairs} of {n_pairs} pairs of half-samples and {result.n_permutations} of "
            f"{n_permutations} permutations; pass the result as resume to go on.",
            UserWarning,
            stacklevel=2,
        )
    return result


def _check(model: object, **parameters: int | None) -> None:
    if not isinstance(model, GroupDiscovery):
        raise ValueError(
            f"model is a {type(model).__name__}; the confidence is that of the groups of a GroupDiscovery… estimator."
        )
    check_is_fitted(model)
    rules = {"n_pairs": Integer(1), "n_permutations": Integer(0), "n_jobs": N_JOBS, "verbose": VERBOSE}
    for name, value in parameters.items():
        check(name, value, rules[name])


def _check_covariates(model: GroupDiscovery, data: Input) -> None:
    """Refuse covariates that the model was not fitted with, and the lack of those that it was."""
    wanted = getattr(model, "covariate_names_", None)
    if wanted is None and data.covariates is not None:
        raise ValueError("The model was fitted without covariates; leave them out, or fit it with them.")
    if wanted is not None and data.covariates is None:
        raise ValueError(f"The model was fitted with covariates ({', '.join(wanted)}); pass them with covariates=.")


def _seed(random_state: RandomStateLike) -> int:
    """A number from which everything is drawn."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


class _Task:
    """The search of a model, to be repeated on half-samples."""

    def __init__(self, model: GroupDiscovery, data: Input, n_threads: int, verbose: int, seed: int) -> None:
        self.model = model
        self.data = data
        self.settings = settings_of(model)
        self.n_threads = n_threads
        self.verbose = verbose
        self.seed = seed
        self.stratified = is_classifier(model)
        self.n_features = data.source.moments(data.weight, n_threads=n_threads).n_varying
        self._seconds = 0.0
        self._n_paths = 0
        self._refuse()

    def _refuse(self) -> None:
        """Refuse data that are not the model's, or cannot be halved."""
        given, known = self.data.source.shape[1], self.model.n_features_in_
        if given != known:
            raise ValueError(f"X has {given} features, but the model was fitted to {known}; pass the data of its fit.")
        if not self.stratified:
            return
        classes = self.data.classes
        assert classes is not None
        if not np.array_equal(classes, getattr(self.model, "classes_", ())):
            raise ValueError("y has other classes than the model; pass the data of its fit.")
        used = self.data.targets if self.data.weight is None else self.data.targets[self.data.weight > 0]
        counts = np.bincount(used, minlength=len(classes)).tolist()
        if min(counts) < 2:  # one of weight 2 can be fitted to
            label = classes.tolist()[counts.index(min(counts))]
            raise ValueError(f"Class {label!r} has one sample, which cannot be halved. Leave the class out, or merge it.")

    @property
    def digest(self) -> str:
        """What the same work is known by: settings, groups, labels and the size of the data."""
        parts = [
            repr(replace(self.settings, predict_with="")),  # which does not change what is found
            repr([group.members.tolist() for group in self.model.groups_]),
            repr(self.data.source.shape),
        ]
        text = hashlib.sha256("\n".join(parts).encode())
        text.update(np.ascontiguousarray(self.data.targets).tobytes())
        if self.data.weight is not None:
            text.update(self.data.weight.tobytes())
        if self.data.covariates is not None:
            text.update(np.ascontiguousarray(self.data.covariates).tobytes())
        return text.hexdigest()

    def earlier(self, resume: GroupConfidence | None, n_pairs: int) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """What an earlier call has done; permutations count only if they had as many pairs."""
        if resume is None:
            return (), ()
        if resume.digest != self.digest:
            raise ValueError("resume is the confidence of another model or other data; leave it out to begin anew.")
        return resume.chosen, resume.permuted if resume.n_pairs == n_pairs else ()

    def result(self, chosen: tuple[np.ndarray, ...], permuted: tuple[np.ndarray, ...]) -> GroupConfidence:
        """What is known so far."""
        return GroupConfidence.of(
            self.model.groups_, chosen, permuted, n_features=self.n_features, seed=self.seed, digest=self.digest
        )

    def real_halves(self, chosen: tuple[np.ndarray, ...], n_pairs: int) -> Iterator[tuple[np.ndarray, ...]]:
        """The support features of all half-samples so far, after each batch."""
        with RoundProgress(2 * n_pairs, self.verbose, "Confidence", "half-samples") as bar:
            while len(chosen) < 2 * n_pairs and not stop_requested():
                first = len(chosen) // 2
                found = self._run(self._searches(self.data, 0, range(first, min(first + self._batch(), n_pairs))))
                if found is None:
                    return
                chosen = (*chosen, *(selection.supports for selection in found))
                yield chosen
                bar.update(len(chosen), "as sampled")

    def announce(self, n_permutations: int, n_pairs: int) -> None:
        """Say what the permutations will cost, before they begin."""
        if self.verbose and n_permutations > 0 and self._n_paths and not stop_requested():
            seconds = self._seconds / self._n_paths * (2 * n_pairs + 1) * n_permutations
            with RoundProgress(None, self.verbose, "Confidence", "permutations of the labels to come") as bar:
                bar.update(n_permutations, f"about {seconds:.0f} s")

    def permuted_confidence(self, permutation: int, n_pairs: int) -> np.ndarray | None:
        """Confidences of the groups found with shuffled labels; None if it was stopped."""
        data = shuffled(self.data, self.seed, permutation)
        whole = Search(data, self.settings, len(self.model.groups_), self.n_threads)
        searches = [whole, *self._searches(data, permutation, range(n_pairs))]
        found: list[_Selection] = []
        with RoundProgress(len(searches), self.verbose, f"Shuffled labels, {permutation}", "half-samples") as bar:
            for part in batches(searches, self.data.n_features):
                own = self._run(part, first_groups=not found)
                if own is None:
                    return None
                found += own
                bar.update(len(found), "with shuffled labels")
        choices = Choices(tuple(selection.supports for selection in found[1:]))
        return np.array([choices.group_share(members) for members in found[0].groups])

    def _searches(self, data: Input, permutation: int, pairs: range) -> list[Search]:
        """The searches on some pairs of half-samples."""
        return [
            Search(replace(data, weight=half), self.settings, len(self.model.groups_), self.n_threads)
            for pair in pairs
            for half in complementary(data, self.seed, permutation, pair, stratified=self.stratified)
        ]

    def _batch(self) -> int:
        """Pairs of the next batch: as many as take some seconds and fit into memory."""
        if not self._n_paths:
            return _FIRST_PAIRS
        quick = max(int(_BATCH_SECONDS / (2 * self._seconds / self._n_paths)), _MIN_PAIRS)
        return max(1, min(quick, len(next(batches(range(10**6), self.data.source.shape[1]))) // 2))

    def _run(self, searches: Sequence[Search], *, first_groups: bool = False) -> list[_Selection] | None:
        """What some searches have selected; of the first one the groups, too, if they are wanted. None at a signal."""
        began = time.perf_counter()
        finish = partial(_selections, first_groups)
        found = run_searches(searches, finish, n_threads=self.n_threads, on_round=lambda *_: stop_requested())
        self._seconds += time.perf_counter() - began
        self._n_paths += len(searches)
        return None if stop_requested() else found


class _Selection(NamedTuple):
    """The support features of a finished search, and the members of its groups, the fixed ones aside, if they are wanted."""

    supports: np.ndarray
    groups: list[np.ndarray]


def _selections(first_groups: bool, positions: Sequence[int], loops: Sequence[CuttingPlane]) -> list[_Selection]:
    """What finished loops have selected."""
    return [
        _Selection(loop.oracle.supports, _members(loop) if first_groups and position == 0 else [])
        for position, loop in zip(positions, loops, strict=True)
    ]


def _members(loop: CuttingPlane) -> list[np.ndarray]:
    """The members of the groups that a search has found."""
    supports, found = loop.oracle.supports, loop.oracle.collect()
    return [np.append(supports[k], found.feature[found.support == k]) for k in range(len(loop.fixed), len(supports))]


def shuffled(data: Input, seed: int, permutation: int) -> Input:
    """The data with their labels shuffled among the samples that count; ``permutation`` 0 leaves them as they are."""
    if permutation == 0:
        return data
    order = np.arange(len(data.targets))
    used = _used(data)
    order[used] = np.random.default_rng([seed, permutation]).permutation(used)
    # Covariates stay with the labels that they explain: what is broken is what the features have to do with either.
    covariates = None if data.covariates is None else data.covariates[order]
    return replace(data, y=data.labels[order], targets=data.targets[order], covariates=covariates)


def complementary(data: Input, seed: int, permutation: int, pair: int, *, stratified: bool) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the samples of two halves that have none in common, and all together.

    ``seed``, ``permutation`` (that of the labels of ``data``) and ``pair`` say which halves, whatever was drawn before. Of an
    odd number of samples, the first half has one more than the second. If ``stratified``, each class is halved by itself: of
    the classes with an odd number of samples, the first gives its extra sample to the first half, the next one to the second
    half, and so on in turn.
    """
    rng = np.random.default_rng([seed, permutation, 1 + pair])
    used = _used(data)
    order = rng.permutation(used)
    if stratified:  # classes one after the other, each in random order
        order = order[np.argsort(data.targets[order], kind="stable")]
    elif rng.random() < 0.5:
        order = order[::-1]
    weight = np.ones(len(data.targets)) if data.weight is None else data.weight
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    first[order[::2]], second[order[1::2]] = weight[order[::2]], weight[order[1::2]]
    return first, second


def _used(data: Input) -> np.ndarray:
    """The samples with a weight."""
    return np.arange(len(data.targets)) if data.weight is None else np.flatnonzero(data.weight > 0)
