"""Group discovery for two or more classes with the number of features found by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from coterie._inputs import read_folds
from coterie._parameters import Anything, Rule, Whole
from coterie._sklearn import with_callbacks
from coterie.discovery.base import Samples
from coterie.discovery.classifier import GroupDiscoveryClassifier
from coterie.discovery.loop import CuttingPlane, Round
from coterie.discovery.oracle import Representative
from coterie.discovery.prediction import LinearModel, group_model, support_model
from coterie.discovery.size_search import HeldOutScores, Path, best_size, merge_paths


class GroupDiscoveryClassifierCV(GroupDiscoveryClassifier):
    """Group discovery with the number of support features chosen by cross-validation.

    Each fold goes once along the path of rounds, up to ``max_features_to_select``, and is scored on its
    held-out samples after every round: one path serves all sizes. The model is then fitted to all samples with
    the size of the best mean score. Sizes are the multiples of ``n_features_per_round``.

    Parameters
    ----------
    max_features_to_select : int, default=100
        The largest number of support features to try (all features where there are fewer).

    n_features_per_round : int, default=10
        Support features chosen in a round, and so the step between sizes.

    correlation : str or None, default="pearson"
        Measure of correlation, one of those of :class:`GroupDiscoveryClassifier`; None lifts the constraint.

    threshold : float, default=0.7
        Absolute correlation in (0, 1] from which on two features belong to the same group.

    n_bins : int, default=10
        Bins of equal width over a feature's range, for symmetrical uncertainty.

    affiliates : {"complete", "ranked"}, default="complete"
        Collect every feature that is correlated with a support feature, or only those met while
        looking for support features.

    representative : {"score", "medoid"} or callable, default="score"
        Which member of a would-be group is its support feature.

    fixed_features : array-like of int, str or bool, default=None
        Features (indices, names or a mask) that are support features from the start.

    keep : {"support", "groups"}, default="support"
        What :meth:`transform` keeps: the support features, or these and the affiliated ones.

    predict_with : {"support", "groups"}, default="support"
        What the prediction rests on, in the folds as well: the support features, or these and the
        affiliated ones, which takes a pass over the data for the groups of every round.

    C : float, default=1.0
        Weight of the classification errors.

    fit_intercept : bool, default=True
        Whether to fit an intercept.

    standardize : bool, default=False
        Judge features by their values divided by their standard deviation.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in the loss.

    cv : int or cross-validation generator, default=5
        Folds that decide about the size. A number means so many shuffled, stratified folds.

    scoring : str, callable or None, default=None
        The score, as in scikit-learn; None for the accuracy. Sample weights are handed on to it. What a
        callable ``scorer(estimator, X, y)`` gets as X are the held-out samples' decision values, of shape
        (n_samples, n_outputs), and as estimator one that predicts from these.

    embedded_cv : int, cross-validation generator or None, default=None
        Embedded cross-validation, the ``cv`` of :class:`GroupDiscoveryClassifier`.

    max_rounds : int, default=None
        Limit of rounds.

    tol : float, default=1e-4
        Relative precision of the optimality gap.

    n_jobs : int, default=None
        Number of threads. None: all cores, but one in a worker of a parallel job. The result does
        not depend on it.

    random_state : int, RandomState instance or None, default=None
        Seed of the folds.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    Attributes
    ----------
    n_features_ : int
        The number of support features chosen.

    best_score_ : float
        Mean score with so many.

    cv_results_ : dict of ndarray
        For each size tried (``n_features``) the scores of all folds (``split0_test_score``, ...), their mean
        (``mean_test_score``) and standard deviation (``std_test_score``).

    groups_, support_features_, support_coef_, coef_, intercept_, classes_, history_, ...
        As in :class:`GroupDiscoveryClassifier`, for the model fitted to all samples.

    See Also
    --------
    GroupDiscoveryClassifier : With a given number of features, or ``"auto"``.
    sklearn.feature_selection.RFECV : Recursive elimination with the size chosen in the same way.

    Notes
    -----
    ``best_score_`` is the best of many and therefore a little too good; score the model on other data.

    Examples
    --------
    >>> from coterie import GroupDiscoveryClassifierCV
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(400, 60, n_support=3, n_true=7, random_state=0)
    >>> model = GroupDiscoveryClassifierCV(20, n_features_per_round=1, random_state=0).fit(data.X, data.y)
    >>> model.n_features_
    3
    >>> len(model.groups_)
    3
    """

    _allowed: ClassVar[dict[str, Rule]] = {
        **{name: rule for name, rule in GroupDiscoveryClassifier._allowed.items() if name != "n_features_to_select"},
        "max_features_to_select": Whole(1),
        "n_features_per_round": Whole(1),
        "scoring": Anything(),
        "embedded_cv": Anything(),
    }

    def __init__(
        self,
        max_features_to_select: int = 100,
        *,
        n_features_per_round: int = 10,
        correlation: str | None = "pearson",
        threshold: float = 0.7,
        n_bins: int = 10,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: Any = None,
        keep: str = "support",
        predict_with: str = "support",
        C: float = 1.0,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        embedded_cv: Any = None,
        max_rounds: int | None = None,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_features_to_select = max_features_to_select
        self.n_features_per_round = n_features_per_round
        self.correlation = correlation
        self.threshold = threshold
        self.n_bins = n_bins
        self.affiliates = affiliates
        self.representative = representative
        self.fixed_features = fixed_features
        self.keep = keep
        self.predict_with = predict_with
        self.C = C
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.embedded_cv = embedded_cv
        self.max_rounds = max_rounds
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _voting_cv(self) -> Any:
        return self.embedded_cv

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GroupDiscoveryClassifierCV:
        """Choose the number of support features, then find their groups in all samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; a weight of 2 is the same as having the sample twice.

        Returns
        -------
        self : GroupDiscoveryClassifierCV
            The fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self

    def _compute(self, data: Samples) -> dict[str, Any]:
        classes, codes, weight = data.attributes["classes_"], data.targets, data.weight
        most = min(int(self.max_features_to_select), data.source.shape[1])
        score = HeldOutScores(self.scoring, classes, codes, weight)
        folds = read_folds(self.cv, data.y, classifier=True, shuffle=True, random_state=self.random_state)
        self._require_all_classes(classes, codes, weight, [train for train, _ in folds])
        paths = []
        for number, (train, held_out) in enumerate(folds, start=1):
            fold_weight = np.zeros(len(data.y))
            fold_weight[train] = 1.0 if weight is None else weight[train]
            loop = self._loop(data, fold_weight, most)
            paths.append(self._scored_path(loop, partial(score, held_out=held_out), f"fold {number} of {len(folds)}"))
        results = merge_paths(paths)
        best = best_size(results)
        size = int(results["n_features"][best])
        return self._discover(
            data,
            size,
            cv_results_=results,
            best_score_=float(results["mean_test_score"][best]),
            n_features_=size,
        )

    @staticmethod
    def _require_all_classes(
        classes: np.ndarray, codes: np.ndarray, weight: np.ndarray | None, training_parts: list[np.ndarray]
    ) -> None:
        for number, train in enumerate(training_parts, start=1):
            masses = np.bincount(codes[train], None if weight is None else weight[train], minlength=len(classes))
            absent = classes[masses == 0.0]
            if len(absent):
                raise ValueError(
                    f"The training part of fold {number} of cv has no samples of class {absent.tolist()[0]!r}. "
                    "Shuffle the samples, or use StratifiedKFold, which a whole number stands for."
                )

    def _scored_path(self, loop: CuttingPlane, score: Callable[[CuttingPlane, LinearModel], float], title: str) -> Path:
        """Run a loop and score its model after every round."""
        path: Path = []

        def on_round(entry: Round) -> bool:
            model = support_model(loop) if self.predict_with == "support" else group_model(loop)
            path.append((entry.n_support, score(loop, model)))
            return False

        loop.on_round = on_round
        self._run(loop, title)
        return path
