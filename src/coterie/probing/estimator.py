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
from coterie.probing.checkpoint import Checkpoint, ProblemDigests, difference, problem_digests, seed_digest
from coterie.probing.criteria.base import CriterionLike
from coterie.probing.evaluation import CriterionSelector, ProbeBudget, Problem, expected_probes, run_probes
from coterie.probing.probes import Key, ProbePlan, ProbeRecord, ProbeSums, read_key
from coterie.probing.scores import ProbeSize, daf_scores, summarise
from coterie.probing.stability import Stability, StabilityGoal, stability_of
from coterie.progress import RoundProgress

# Number of probes without any stopping rule.
_DEFAULT_PROBES = 1000
# Goals of min_coverage="auto" and min_stability="auto".
_COVERAGE, _STABILITY = 100, 0.95
# Stability below which min_stability="auto" warns.
_LOW_STABILITY = 0.7
# Limit of runs without n_probes and max_seconds whose goal is a stability: probes per feature, and at least this number.
_PROBES_PER_FEATURE, _LEAST_LIMIT = 20, 20_000
# Time between two writes of a checkpoint, as a multiple of the time of a write.
_SAVE_INTERVAL = 20.0


@documented
class DependencyAwareSelector(CriterionSelector):
    r"""Rank features by their benefit to random subsets of the other features, and select the best.

    Dependency-aware feature ranking [1]_ evaluates random feature subsets (*probes*), each once, by a criterion such as the
    cross-validated accuracy of a classifier. A feature is rated by the difference between the probes with it and those
    without it. The method finds features that are useful only in combination, which rankings of single features miss. Its
    cost does not grow with the number of combinations.

    By default, a run stops when the selection is stable. It can also be stopped by a number of probes, by time, by coverage,
    or by Ctrl-C, which keeps the result so far.

    Parameters
    ----------
    criterion : str, criterion, estimator or callable, default="knn"
        Criterion that rates a subset:

        - a built-in criterion (:class:`~coterie.KNNCriterion`, :class:`~coterie.LinearSVMCriterion`,
          :class:`~coterie.probing.SVMCriterion`, :class:`~coterie.probing.RidgeCriterion` and, without labels,
          :class:`~coterie.probing.ClusteringCriterion`, :class:`~coterie.probing.ReconstructionCriterion`) or its name
          (``"knn"``, ``"linear_svm"``, ``"svm"``, ``"ridge"``, ``"clustering"``, ``"reconstruction"``);
        - an estimator: its mean score over the folds. Use :class:`~coterie.EstimatorCriterion` for another ``scoring``;
        - a function ``J(X_S, y) -> float`` (``J(X_S)`` if ``fit`` is called without y). Higher values are better.

    variant : {"daf0", "daf1", "daf2"}, default="daf0"
        Score used for the ranking. All three are computed. DAF0 is the difference of the mean values with and without the
        feature. DAF1 divides it by the standard deviation of the values. DAF2 first divides the values by the standard
        deviation over probes of the same size.

    %(n_kept)s

    sampling : {"adaptive", "uniform"}, default="adaptive"
        Sampling of the probes. "uniform" draws all features with the same probability, as in the paper. "adaptive" draws
        in rounds. Each round draws a feature according to the probability that it belongs to the best
        ``n_features_to_select``, estimated from the earlier rounds. If few of many features matter, adaptive probes find
        them with far fewer evaluations, and evaluate them together with better features. The ranking is most precise near
        the cut, and imprecise far below it. See the notes.

    n_probes : int or None, default=None
        Limit: stop after this number of probes in total. With ``n_probes`` or ``max_seconds``, goals that are "auto" do not
        stop the run earlier.

    max_seconds : float or None, default=None
        Limit: stop after this time (per call of ``fit``). Running evaluations are finished first.

    min_coverage : int, "auto" or None, default="auto"
        Goal: every feature is in at least this number of probes and is missing from at least this number of probes. With
        adaptive probes, only features that are or may be among the best count. "auto" means 100.

    min_stability : float, "auto" or None, default="auto"
        Goal: at least this share of the selected features would be selected again by a run with other probes. See
        ``stability_``. The run stops when all goals are met. "auto" means 0.95, or no such goal if ``min_coverage`` is a
        number or None. Without ``n_probes`` and ``max_seconds``, a run with this goal stops after 20 probes per feature, but
        not before 20,000 probes. A warning is issued if the result does not reach a number given here, or 0.7 with "auto".
        Without any goal or limit, 1000 probes are drawn.

    max_probe_size : int, default=150
        Largest size of a probe. Sizes are uniform from 1 to this number, or to the number of features if it is smaller.

    inclusion_probability : float or None, default=None
        If given, each feature is in a probe with this probability, and ``max_probe_size`` is ignored. Adaptive probes
        initially contain the corresponding number of features on average.

    cv : int or cross-validation generator, default=3
        Folds of the criterion, as in ``cross_val_score``. They are drawn once and used for all probes.

    checkpoint : path-like or None, default=None
        File to which the values of all finished probes are written regularly. If it exists, the run continues from it. A file
        made with different data or parameters is refused. If the process is killed, only the probes evaluated since the
        last write are lost.

    warm_start : bool, default=False
        Whether another call of ``fit`` on the same data adds probes to the existing ones. The result equals that of one
        long run.

    n_jobs : int or None, default=None
        Number of probes evaluated in parallel by joblib. Threads are used for the built-in criteria that allow it, processes
        otherwise; ``joblib.parallel_config`` selects another backend. None means 1. The result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        Seed of the probes. Every probe has its own seed, derived from this one and the number of the probe.

    verbose : int, default=0
        Show progress with probes per second and coverage: a bar on a terminal, lines otherwise.

    Attributes
    ----------
    ranking_ : ndarray of shape (n_features,)
        Rank of each feature by the score of ``variant``, starting at 1. Ties are broken by the content of the columns.

    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, the best first.

    scores_ : Bunch of ndarray of shape (n_features,)
        The scores ``scores_.daf0``, ``scores_.daf1`` and ``scores_.daf2``. Features that are in all probes or in none have
        scores of 0.

    scores_std_error_ : Bunch of ndarray of shape (n_features,)
        Standard errors of the scores, under the same names. They do not include errors of the divisors of DAF1 and DAF2.
        They are infinite for features that are in all probes or in none.

    stability_ : Stability
        Stability of the selection by DAF0: ``expected``, the share of the selected features that a repetition is expected
        to select again, if the scores have independent normal errors; ``halves``, the share that both halves of the probes
        (with even and with odd numbers) select; and ``value``, the smaller of the two, which ``min_stability`` refers to.

    coverage_ : ndarray of shape (n_features,)
        Number of probes with the feature or without it, whichever is smaller, per feature.

    n_probes_ : int
        Number of probes.

    probe_summary_ : list of ProbeSize
        Number, mean value and standard deviation of the probes per size, the ``scale`` (the divisor used by DAF2) and the
        ``reach`` of its pooling. ``pandas.DataFrame(model.probe_summary_)`` converts it to a table.

    stopped_by_ : {"n_probes", "max_seconds", "min_coverage", "min_stability", "interrupt"}
        Reason why the run ended. With both goals it is "min_stability".

    %(seen)s

    See Also
    --------
    BestIndividualSelector : Ranks features by the criterion's value of each single feature.
    FloatingSelector : Sequential floating search, which finds better subsets for the criterion at a much higher cost.
    coterie.metrics.selection_stability : Stability of a selector.

    Notes
    -----
    The same seed gives a bit-identical ranking, independent of the number of workers, the backend and interruptions,
    because values are added to the running sums in the order of the probes. A different order of the columns gives
    different probes.

    The stability is computed after 100 probes and again whenever their number has grown by a tenth. The run stops at one of
    these numbers, independent of time and workers. Two runs can differ more than the stability of each suggests, because
    adaptive probes of different seeds combine the features with different others.

    The memory in addition to the data is about ten numbers per feature and one per probe. Adaptive probes require one more
    byte per feature and round.

    Adaptive probes draw every feature independently with a known probability :math:`\pi` of at most one half. For a feature
    of level l it is lower by the factor :math:`2^{-l}`. The level is the negative binary logarithm of the feature's
    probability to be among the best, and at most 8, so that no feature is dropped entirely. The score of a feature is the
    sum of :math:`(1[f \in S] - \pi)(J(S) - c)` divided by the sum of :math:`\pi (1 - \pi)`, where c is the mean value of
    earlier probes. Within a round it is an unbiased estimate of the mean benefit of the feature to the probes of this round,
    whatever the earlier rounds were. Rounds are averaged by their weight, which is reduced by a tenth with each later round.
    The probes change from round to round: they contain more and more of the better features. (Weights that restore the
    distribution of uniform probes vary so much that nothing would be gained.) Scores of features far below the cut come
    mostly from the early rounds.

    DAF2 pools sizes with few probes: the scale of size d is the standard deviation over all probes of sizes d - r, ..., d +
    r, with the smallest r for which there are at least 10 probes with different values.

    References
    ----------
    .. [1] P. Somol, J. Grim, "Fast dependency-aware feature selection in very-high-dimensional pattern recognition
       problems", IEEE International Conference on Systems, Man, and Cybernetics, 2011.

    Examples
    --------
    Two features that predict the class only in combination:

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
        "min_stability": Number(at_most=1) | OneOf("auto", None),
        "max_probe_size": Integer(1),
        "inclusion_probability": Number(below=1) | OneOf(None),  # scores require probes without the feature
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
        min_stability: float | str | None = "auto",
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
        self.min_stability = min_stability
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
    scores_std_error_: Bunch
    coverage_: np.ndarray
    stability_: Stability
    probe_summary_: list[ProbeSize]
    _sums: ProbeRecord
    _marks: ProblemDigests

    def _compute(self, data: Problem) -> dict[str, Any]:
        rule = self._rule(data.source.shape[1], data.n_wanted)
        with ExitStack() as stack:
            sums, digests, writer = self._begin(data, rule, stack)
            bar = stack.enter_context(
                RoundProgress(rule.n_probes, int(self.verbose), type(self).__name__, unit="probes", first=sums.n_probes)
            )

            def on_wave(sums: ProbeRecord, rate: float) -> None:
                if self.verbose:
                    bar.total = expected_probes(sums, rule)
                    bar.update(sums.n_probes, f"{rate:.0f} probes/s, {_progress_of(sums, rule)}")
                writer.save_if_due(sums)

            sums, reason = run_probes(data.evaluate, sums, rule, data.workers, on_wave)
            writer.save(sums)
        summary = summarise(sums)
        scores, errors = daf_scores(sums, summary)
        order = ranked(data.source, scores[self.variant])
        stability = stability_of(sums, data.n_wanted)
        self._warn(sums, data.n_wanted, stability, reason)
        return {
            "scores_": Bunch(**scores),
            "scores_std_error_": Bunch(**errors),
            "ranking_": ranks(order, len(order)),
            "support_features_": order[: data.n_wanted],
            "coverage_": np.minimum(sums.count, sums.n_probes - sums.count),
            "stability_": stability,
            "n_probes_": sums.n_probes,
            "probe_summary_": summary,
            "stopped_by_": reason,
            "_sums": sums,
            "_marks": digests,
        }

    def _rule(self, n_features: int, n_selected: int) -> ProbeBudget:
        """Return the stopping rule."""
        n_probes, min_coverage, min_stability = self.n_probes, self.min_coverage, self.min_stability
        limited = n_probes is not None or self.max_seconds is not None
        if min_stability == "auto":
            min_stability = _STABILITY if not limited and min_coverage == "auto" else None
        if min_coverage == "auto":
            min_coverage = None if limited else _COVERAGE
        if n_features == 1:  # a single feature is in every probe: its coverage stays 0, and its selection is certain
            min_coverage = min_stability = None
        if not limited and min_stability is not None:
            n_probes = max(_LEAST_LIMIT, _PROBES_PER_FEATURE * n_features)
        if not limited and min_coverage is None and min_stability is None:
            n_probes = _DEFAULT_PROBES
        goal = None if min_stability is None else StabilityGoal(float(min_stability), n_selected)
        return ProbeBudget(n_probes, self.max_seconds, cast("int | None", min_coverage), goal)

    def _begin(
        self, problem: Problem, rule: ProbeBudget, stack: ExitStack
    ) -> tuple[ProbeRecord, ProblemDigests, _CheckpointWriter]:
        """Return the initial state: empty, from the last fit (warm start), or from the checkpoint, which is claimed."""
        warm = bool(self.warm_start) and hasattr(self, "_sums")
        plan = self._plan(problem, self._sums.plan.key if warm else read_key(self.random_state))
        seeded = warm or self.random_state is not None
        digests = problem_digests(problem.source, problem.y, problem.criterion, problem.evaluate.folds, plan)
        sums = _empty_record(plan)
        if warm:
            other = difference(self._marks, digests)
            if other is not None:
                raise ValueError(f"warm_start=True adds to the last fit, which was made {other}. Set warm_start=False.")
            if rule.n_probes is not None and self.n_probes is not None and rule.n_probes < self._sums.n_probes:
                raise ValueError(
                    f"n_probes={rule.n_probes} is the total number of probes, but with warm_start=True there are "
                    f"{self._sums.n_probes} already. Increase n_probes."
                )
            sums = copy.deepcopy(self._sums)
        if self.checkpoint is None:
            return sums, digests, _CheckpointWriter(None, sums)
        checkpoint = Checkpoint(self.checkpoint, digests if seeded else {**digests, "seed": ""})
        stack.enter_context(claimed(checkpoint.path))  # a concurrent run would overwrite the file
        saved = checkpoint.load()
        n_saved = -1 if saved is None else len(saved.values)
        if saved is not None and n_saved > sums.n_probes:
            sums = _resumed(replace(plan, key=saved.key), saved.values, rule)
            digests = {**digests, "seed": seed_digest(sums.plan)}
        return sums, digests, _CheckpointWriter(checkpoint, sums, n_saved)

    def _plan(self, problem: Problem, key: Key) -> ProbePlan:
        n_features = problem.source.shape[1]
        common = n_features, min(int(self.max_probe_size), n_features), self.inclusion_probability, key
        return AdaptivePlan(*common, problem.n_wanted) if self.sampling == "adaptive" else ProbePlan(*common)

    def _warn(self, sums: ProbeRecord, n_selected: int, stability: Stability, reason: str) -> None:
        """Warn if the run was interrupted, or if coverage or stability are low."""
        if reason == "interrupt":
            warnings.warn(f"Interrupted. The ranking is based on the {sums.n_probes} probes finished so far.", stacklevel=5)
        if sums.plan.n_features == 1:
            return
        problem = self._shortfall(sums, n_selected, stability)
        if problem is not None:
            warnings.warn(problem, ConvergenceWarning, stacklevel=5)

    def _shortfall(self, sums: ProbeRecord, n_selected: int, stability: Stability) -> str | None:
        """Return the text of the warning about too few probes, or None."""
        more = "Increase n_probes or max_seconds."
        unknown = int((~sums.known).sum())
        if unknown:
            return (
                f"{unknown} of {len(sums.count)} features are in none or in all of the {sums.n_probes} probes. "
                f"Their scores are 0. {more}"
            )
        coverage = self.min_coverage
        if isinstance(coverage, (int, np.integer)) and not sums.covers(int(coverage)):
            which = "a feature that may be among the best" if isinstance(sums, AdaptiveSums) else "a feature"
            return (
                f"Low coverage after {sums.n_probes} probes: the smallest coverage of {which} is {sums.coverage}, but "
                f"min_coverage is {coverage}. {more}"
            )
        if self.min_stability is None or (self.min_stability == "auto" and coverage != "auto"):
            return None
        least = _LOW_STABILITY if self.min_stability == "auto" else float(self.min_stability)
        if stability.value >= least:
            return None
        if self.n_probes is None and self.max_seconds is None:
            more = (
                "This is the limit without n_probes and max_seconds. The criterion may not distinguish these features from "
                "others. Select another number of features, or set n_probes."
            )
        return (
            f"Low stability after {sums.n_probes} probes: of the {n_selected} selected features, a repetition with other "
            f"probes is expected to select {n_selected * stability.expected:.1f} again, and both halves of the probes select "
            f"{n_selected * stability.halves:.0f}, but min_stability is {least:g}. {more}"
        )


def _progress_of(sums: ProbeRecord, rule: ProbeBudget) -> str:
    """Return coverage and stability as the rule uses them, with their goals."""
    goal = "" if rule.min_coverage is None else f" of {rule.min_coverage}"
    text = f"coverage {sums.coverage}{goal}"
    if rule.stability is None or rule.stability.latest is None:
        return text
    return f"{text}, stability {rule.stability.latest.value:.2f} of {rule.stability.least:g}"


def _empty_record(plan: ProbePlan) -> ProbeRecord:
    return AdaptiveSums(plan) if isinstance(plan, AdaptivePlan) else ProbeSums(plan)


def _resumed(plan: ProbePlan, values: np.ndarray, rule: ProbeBudget) -> ProbeRecord:
    """Return the record of the saved probes, up to the one that meets the stopping rule."""
    sums = _empty_record(plan)
    for value in values:
        if rule.is_reached(sums, 0.0) is not None:
            break
        sums.add(float(value))
    return sums


class _CheckpointWriter:
    """Writes the checkpoint at intervals that keep the cost small. Never replaces a file that has more probes."""

    def __init__(self, checkpoint: Checkpoint | None, sums: ProbeRecord, n_saved: int = -1) -> None:
        self._checkpoint = checkpoint
        self._n_saved = n_saved
        self._next = 0.0
        if checkpoint is not None:
            try:
                self._write(sums)  # raises an error for a read-only folder before any probe is evaluated
            except OSError as error:
                raise ValueError(
                    f"The checkpoint {str(checkpoint.path)!r} cannot be written: {error.strerror or error}."
                ) from error

    def save_if_due(self, sums: ProbeRecord) -> None:
        """Write the file if the interval since the last write has passed."""
        if self._checkpoint is not None and time.perf_counter() >= self._next:
            self.save(sums)

    def save(self, sums: ProbeRecord) -> None:
        """Write the file. A failure (such as a full disk) issues a warning and does not end the run."""
        try:
            self._write(sums)
        except OSError as error:
            warnings.warn(
                f"The checkpoint could not be written ({error}). The run continues without a checkpoint.", stacklevel=4
            )
            self._checkpoint = None

    def _write(self, sums: ProbeRecord) -> None:
        if self._checkpoint is None or sums.n_probes <= self._n_saved:
            return
        began = time.perf_counter()
        self._checkpoint.save(sums.values, sums.plan.key)
        ended = time.perf_counter()
        self._n_saved, self._next = sums.n_probes, ended + _SAVE_INTERVAL * (ended - began)
