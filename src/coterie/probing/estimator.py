"""Dependency-aware feature ranking (DAF)."""

from __future__ import annotations

import copy
import time
import warnings
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from coterie._parameters import AnyValue, Boolean, Integer, Number, OneOf, Path, Rule
from coterie.estimators.documentation import documented
from coterie.files import claimed
from coterie.inputs.types import FoldsLike, PathLike, RandomStateLike
from coterie.order import ranked, ranks
from coterie.probing.adaptive import AdaptivePlan, AdaptiveSums
from coterie.probing.checkpoint import Checkpoint, ProblemDigests, difference, problem_digests, seed_mark
from coterie.probing.criteria.base import CriterionLike
from coterie.probing.evaluation import CriterionSelector, ProbeBudget, Problem, expected_probes, run_probes
from coterie.probing.probes import Key, ProbePlan, ProbeRecord, ProbeSums, read_key
from coterie.probing.scores import ProbeSize, daf_scores, summarise
from coterie.progress import RoundProgress

# Without any rule of stopping.
_DEFAULT_PROBES = 1000
# min_coverage="auto", for each way of sampling, and the number of probes that it takes at most.
_COVERAGE = {"uniform": 100, "adaptive": 300}
_MAX_PROBES = 20_000
# A checkpoint is written again after so many times the time it took to write.
_SAVING_SHARE = 20.0


@documented
class DependencyAwareSelector(CriterionSelector):
    r"""Rank features by what they add to random subsets of the others, and keep the best.

    Dependency-aware feature ranking [1]_: random subsets of the features (*probes*) are each evaluated once by a criterion,
    for instance the cross-validated accuracy of a classifier. A feature is good if the probes that hold it do better than
    those that do not. So features that are of use only together are found, which rankings of single features miss, at a
    cost that does not grow with the number of their combinations.

    The method can be stopped at any time: by a number of probes, by time, by coverage, or by Ctrl-C, which keeps the result
    so far.

    Parameters
    ----------
    criterion : str, criterion, estimator or callable, default="knn"
        What evaluates a subset: a criterion with code of its own (:class:`~coterie.KNNCriterion`,
        :class:`~coterie.LinearSVMCriterion`, :class:`~coterie.probing.SVMCriterion`, :class:`~coterie.probing.RidgeCriterion`,
        and without labels :class:`~coterie.probing.ClusteringCriterion`, :class:`~coterie.probing.ReconstructionCriterion`)
        or its name (``"knn"``, ``"linear_svm"``, ``"svm"``, ``"ridge"``, ``"clustering"``,
        ``"reconstruction"``), any estimator (its mean score over the folds; :class:`~coterie.EstimatorCriterion` for another
        ``scoring``), or any function ``J(X_S, y) -> float`` (``J(X_S)`` if ``fit`` is given no y), the higher the better.

    variant : {"daf0", "daf1", "daf2"}, default="daf0"
        The score to rank by; all three are computed. DAF0 is the plain difference of the mean values with and without the
        feature, DAF1 is divided by their spread, DAF2 first divides values by the spread over probes of the same size.

    %(n_kept)s

    sampling : {"adaptive", "uniform"}, default="adaptive"
        How probes are drawn: all features alike ("uniform", as in the paper), or in rounds, of which each draws features
        with the probability that they belong to the best ``n_features_to_select``, as far as the rounds before tell. Adaptive
        probes find features with far fewer evaluations where few of many matter, and judge them in better company;
        their ranking is about the place of that cut, and says little far below it. See the notes.

    n_probes : int or None, default=None
        Stop after this number of probes, all told.

    max_seconds : float or None, default=None
        Stop after this time (of one call of ``fit``); probes under way are finished.

    min_coverage : int, "auto" or None, default="auto"
        Stop when every feature is held by at least so many probes, and left out by so many; with adaptive probes, every
        feature that is among the best or close. A result below it is warned of. "auto" is 300, for uniform probes 100, which
        takes about two to three probes per feature where there are many; it stops at 20,000 probes in any case. Where
        ``n_probes`` or ``max_seconds`` are given, it does not stop, but warns. None: no rule and no warning; without any other
        rule 1000 probes.

    max_probe_size : int, default=150
        Sizes of probes are drawn evenly from 1 to this number, or to the number of features if there are fewer.

    inclusion_probability : float or None, default=None
        If given, probes hold each feature with this probability instead, and ``max_probe_size`` plays no part. (Adaptive:
        as many features on average, at first.)

    cv : int or cross-validation generator, default=3
        Folds of the criterion, as in ``cross_val_score``; drawn once, the same for all probes.

    checkpoint : path-like or None, default=None
        File that is kept up to date with the values of all finished probes. If it exists, the run goes on from there; it is
        refused if it was made with other data or parameters. Nothing is lost by a kill but the probes under way.

    warm_start : bool, default=False
        Whether another call of ``fit`` on the same data adds probes to those there are. The result is the same
        as that of one long run.

    n_jobs : int or None, default=None
        Number of probes evaluated at the same time, through joblib: threads for the built-in criteria that allow it, else
        processes; ``joblib.parallel_config`` chooses another backend. None means 1. The result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        Seed of the probes. Every probe has a seed of its own, derived from this one and its number.

    verbose : int, default=0
        Show progress with probes per second and coverage: a bar on a terminal, lines elsewhere.

    Attributes
    ----------
    ranking_ : ndarray of shape (n_features,)
        Rank of each feature by the score of ``variant``, 1 for the best; ties by the content of the columns.

    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, the best first.

    scores_ : Bunch of ndarray of shape (n_features,)
        The scores ``scores_.daf0``, ``scores_.daf1`` and ``scores_.daf2``. Features that all probes hold, or none, have
        scores of 0.

    coverage_ : ndarray of shape (n_features,)
        For each feature, the number of probes that hold it or the number that do not, whichever is smaller: what its
        score rests on.

    n_probes_ : int
        Number of probes.

    probe_summary_ : list of ProbeSize
        For each size of probes their number, mean value, standard deviation, and the ``scale`` that DAF2 divides by with the
        ``reach`` of the pooling; ``pandas.DataFrame(model.probe_summary_)`` makes a table of it.

    stopped_by_ : {"n_probes", "max_seconds", "min_coverage", "interrupt"}
        What ended the run.

    %(seen)s

    See Also
    --------
    BestIndividualSelector : Ranks features by their value alone.
    FloatingSelector : Sequential floating search; finds better subsets for the criterion, at a much higher price.
    coterie.metrics.selection_stability : How stable a selector is.

    Notes
    -----
    Same seed, same ranking, bit for bit, whatever the number of workers, the backend, and the interruptions: values enter
    running sums in the order of the probes. A different order of columns is a different draw of probes.

    Memory besides the data: three numbers per feature and one per probe; adaptive, also one byte per feature and round.

    Adaptive probes: every feature is drawn by itself with a known probability :math:`\pi`, which is one half at most, and
    lower by :math:`2^{-l}` for a feature of level l, the binary logarithm of its probability to be among the best (8 at
    most, so that nothing is ever given up). Its score is the sum of :math:`(1[f \in S] - \pi)(J(S) - c)` over that of
    :math:`\pi (1 - \pi)`, with c the mean value of earlier probes. Over a round that is unbiased for its mean benefit to the
    probes that are drawn, whatever has led to them; rounds count by their weight. The company in which features are judged
    does change: it is made of the better features more and more. (Weights that would make it that of uniform probes again
    vary so much that nothing would be gained.) Scores of features far below the cut are those of the early rounds.

    DAF2 pools sizes with few probes: the scale of size d is the standard deviation over all probes of sizes d - r, ..., d +
    r, with the smallest r for which these are at least 10 probes with different values.

    References
    ----------
    .. [1] P. Somol, J. Grim, "Fast dependency-aware feature selection in very-high-dimensional pattern recognition
       problems", IEEE International Conference on Systems, Man, and Cybernetics, 2011.

    Examples
    --------
    Two features that tell the class only together:

    >>> import numpy as np
    >>> from coterie import DependencyAwareSelector
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((200, 20))
    >>> y = (X[:, 3] * X[:, 11] > 0).astype(int)
    >>> selector = DependencyAwareSelector(n_features_to_select=2, random_state=0)
    >>> sorted(selector.fit(X, y).support_features_.tolist())
    [3, 11]
    >>> selector.transform(X).shape
    (200, 2)
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        **CriterionSelector._allowed,
        "variant": OneOf("daf0", "daf1", "daf2"),
        "sampling": OneOf("uniform", "adaptive"),
        "n_probes": Integer(1) | OneOf(None),
        "max_seconds": Number() | OneOf(None),
        "min_coverage": Integer(1) | OneOf("auto", None),
        "max_probe_size": Integer(1),
        "inclusion_probability": Number(below=1) | OneOf(None),  # features must be left out to be judged
        "checkpoint": Path() | OneOf(None),
        "warm_start": Boolean(),
        "random_state": AnyValue(),
    }

    def __init__(
        self,
        criterion: CriterionLike = "knn",
        *,
        variant: str = "daf0",
        n_features_to_select: int | float = 10,
        sampling: str = "adaptive",
        n_probes: int | None = None,
        max_seconds: float | None = None,
        min_coverage: int | str | None = "auto",
        max_probe_size: int = 150,
        inclusion_probability: float | None = None,
        cv: FoldsLike = 3,
        checkpoint: PathLike | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.variant = variant
        self.n_features_to_select = n_features_to_select
        self.sampling = sampling
        self.n_probes = n_probes
        self.max_seconds = max_seconds
        self.min_coverage = min_coverage
        self.max_probe_size = max_probe_size
        self.inclusion_probability = inclusion_probability
        self.cv = cv
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    ranking_: np.ndarray
    scores_: Bunch
    coverage_: np.ndarray
    probe_summary_: list[ProbeSize]
    _sums: ProbeRecord
    _marks: ProblemDigests

    def _compute(self, data: Problem) -> dict[str, Any]:
        rule = self._rule(data.source.shape[1])
        with ExitStack() as stack:
            sums, marks, keeper = self._begin(data, rule, stack)
            total = expected_probes(sums.plan, rule)
            bar = stack.enter_context(RoundProgress(total, int(self.verbose), type(self).__name__, unit="probes"))
            goal = "" if rule.min_coverage is None else f" of {rule.min_coverage}"

            def on_wave(sums: ProbeRecord, rate: float) -> None:
                if bar.total is not None and rule.n_probes != bar.total:
                    bar.total = max(bar.total, sums.n_probes)  # it was an estimate
                bar.update(sums.n_probes, f"{rate:.0f} probes/s, coverage {sums.coverage}{goal}")
                keeper.wave_done(sums)

            sums, reason = run_probes(data.evaluate, sums, rule, data.workers, on_wave)
            keeper.done(sums)
        summary = summarise(sums)
        scores = daf_scores(sums, summary)
        order = ranked(data.source, scores[self.variant])
        coverage = np.minimum(sums.count, sums.n_probes - sums.count)
        self._warn(sums, coverage, reason)
        return {
            "scores_": Bunch(**scores),
            "ranking_": ranks(order, len(order)),
            "support_features_": order[: data.n_wanted],
            "coverage_": coverage,
            "n_probes_": sums.n_probes,
            "probe_summary_": summary,
            "stopped_by_": reason,
            "_sums": sums,
            "_marks": marks,
        }

    @property
    def _wanted_coverage(self) -> int | None:
        """What ``min_coverage`` asks for."""
        return _COVERAGE[self.sampling] if self.min_coverage == "auto" else cast("int | None", self.min_coverage)

    def _rule(self, n_features: int) -> ProbeBudget:
        """The stopping rule; a single feature is in every probe, so that no coverage can be waited for."""
        n_probes, min_coverage = self.n_probes, self._wanted_coverage
        if self.min_coverage == "auto":
            limited = n_probes is not None or self.max_seconds is not None
            n_probes, min_coverage = (n_probes, None) if limited else (_MAX_PROBES, min_coverage)
        if n_features == 1:
            min_coverage = None
        if min_coverage is None and self.max_seconds is None and (n_probes is None or (n_features == 1 and not self.n_probes)):
            n_probes = _DEFAULT_PROBES
        return ProbeBudget(n_probes, self.max_seconds, min_coverage)

    def _begin(self, problem: Problem, rule: ProbeBudget, stack: ExitStack) -> tuple[ProbeRecord, ProblemDigests, _Keeper]:
        """What to go on from: nothing, the last fit (warm start), or the checkpoint, which is claimed."""
        warm = bool(self.warm_start) and hasattr(self, "_sums")
        plan = self._plan(problem, self._sums.plan.key if warm else read_key(self.random_state))
        seeded = warm or self.random_state is not None
        marks = problem_digests(problem.source, problem.y, problem.criterion, problem.evaluate.folds, plan)
        sums = _nothing_known(plan)
        if warm:
            other = difference(self._marks, marks)
            if other is not None:
                raise ValueError(f"warm_start=True adds to the last fit, which was made {other}. Set warm_start=False.")
            if rule.n_probes is not None and self.n_probes is not None and rule.n_probes < self._sums.n_probes:
                raise ValueError(
                    f"n_probes={rule.n_probes} counts all probes, and with warm_start=True there are "
                    f"{self._sums.n_probes} already."
                )
            sums = copy.deepcopy(self._sums)
        if self.checkpoint is None:
            return sums, marks, _Keeper(None, sums)
        checkpoint = Checkpoint(self.checkpoint, marks if seeded else {**marks, "seed": ""})
        stack.enter_context(claimed(checkpoint.path))  # another run would replace our probes by its own
        saved = checkpoint.load()
        n_saved = -1 if saved is None else len(saved.values)
        if saved is not None and n_saved > sums.n_probes:
            sums = _resumed(replace(plan, key=saved.key), saved.values, rule)
            marks = {**marks, "seed": seed_mark(sums.plan)}
        return sums, marks, _Keeper(checkpoint, sums, n_saved)

    def _plan(self, problem: Problem, key: Key) -> ProbePlan:
        n_features = problem.source.shape[1]
        common = n_features, min(int(self.max_probe_size), n_features), self.inclusion_probability, key
        return AdaptivePlan(*common, problem.n_wanted) if self.sampling == "adaptive" else ProbePlan(*common)

    def _warn(self, sums: ProbeRecord, coverage: np.ndarray, reason: str) -> None:
        """Say what a result of an early end rests on."""
        if reason == "interrupt":
            warnings.warn(f"Interrupted: the ranking rests on the {sums.n_probes} probes finished so far.", stacklevel=5)
        if len(coverage) == 1:
            return
        unknown, least = int((coverage == 0).sum()), self._wanted_coverage
        more = "More probes (n_probes, max_seconds, min_coverage) judge them."
        if unknown:
            warnings.warn(
                f"{unknown} of {len(coverage)} features were held by none or by all of the {sums.n_probes} probes; "
                f"their scores are 0. {more}",
                ConvergenceWarning,
                stacklevel=5,
            )
        elif least is not None and not sums.covers(least):
            warnings.warn(
                f"Low coverage: after {sums.n_probes} probes features have been in (or out of) {int(coverage.min())} of them "
                f"at least, {int(np.median(coverage))} in the median, where min_coverage asks for {least}. {more}",
                ConvergenceWarning,
                stacklevel=5,
            )


def _nothing_known(plan: ProbePlan) -> ProbeRecord:
    return AdaptiveSums(plan) if isinstance(plan, AdaptivePlan) else ProbeSums(plan)


def _resumed(plan: ProbePlan, values: np.ndarray, rule: ProbeBudget) -> ProbeRecord:
    """What is known after the saved probes, as far as the rule goes."""
    sums = _nothing_known(plan)
    for value in values:
        if rule.is_reached(sums, 0.0) is not None:
            break
        sums.add(float(value))
    return sums


class _Keeper:
    """Keeps the checkpoint up to date, at a small share of the time, and never replaces more probes by fewer."""

    def __init__(self, checkpoint: Checkpoint | None, sums: ProbeRecord, n_saved: int = -1) -> None:
        self._checkpoint = checkpoint
        self._n_saved = n_saved
        self._next = 0.0
        if checkpoint is not None:
            try:
                self._save(sums)  # a folder that cannot be written to is found out before the work
            except OSError as error:
                raise ValueError(
                    f"The checkpoint {str(checkpoint.path)!r} cannot be written: {error.strerror or error}."
                ) from error

    def wave_done(self, sums: ProbeRecord) -> None:
        """Save if the last time is long enough ago."""
        if self._checkpoint is not None and time.perf_counter() >= self._next:
            self.done(sums)

    def done(self, sums: ProbeRecord) -> None:
        """Save; a failure (a full disk) is warned of and does not end the run."""
        try:
            self._save(sums)
        except OSError as error:
            warnings.warn(f"The checkpoint could not be written ({error}); the run goes on without.", stacklevel=4)
            self._checkpoint = None

    def _save(self, sums: ProbeRecord) -> None:
        if self._checkpoint is None or sums.n_probes <= self._n_saved:
            return
        began = time.perf_counter()
        self._checkpoint.save(sums.values, sums.plan.key)
        ended = time.perf_counter()
        self._n_saved, self._next = sums.n_probes, ended + _SAVING_SHARE * (ended - began)
