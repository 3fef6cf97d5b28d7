"""Group discovery for one class, with settings chosen on held-out normal samples and outliers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from coterie._parameters import OneOf, Rule
from coterie._sklearn import with_callbacks
from coterie.correlation.compatibility import Compatibility
from coterie.data.view import FeatureView
from coterie.estimators.documentation import documented
from coterie.estimators.one_class import GroupDiscoveryOneClass
from coterie.estimators.validated import ValidatedDiscovery, grid, validated_rules
from coterie.inputs.opening import Input
from coterie.inputs.types import (
    ClientLike,
    FeaturesLike,
    FoldsLike,
    NamesLike,
    RandomStateLike,
    SampleGroupsLike,
    SamplesLike,
    ScoringLike,
    TargetsLike,
)
from coterie.search.oracle import Representative
from coterie.search.penalty import similarity_unit
from coterie.search.search import CorrelationLike
from coterie.validation.held_out import HeldOutScores, NormalityScores
from coterie.validation.nested import pairs_of
from coterie.validation.path_search import Fold

# Range of the values of C for an integer ``Cs``, in units of 1 / (n sigma): from rejecting all training samples to hardly any.
_LOWEST_C, _HIGHEST_C = 0.1, 1000.0
_KINDS = {1: "normal samples", -1: "outliers"}


@documented
class GroupDiscoveryOneClassCV(ValidatedDiscovery, GroupDiscoveryOneClass):
    r"""One-class group discovery, with settings chosen by cross-validation.

    Cross-validation chooses the number of features, C and the features used for prediction. Every search uses normal samples
    only. Known outliers are used for validation. For every C, threshold and scale, each fold computes one path of rounds, up
    to ``max_features_to_select`` features. Every size on the path is scored on the held-out samples, both normal samples and
    outliers. All paths share each pass over the data, so many paths need as many passes as one. The model with the chosen
    settings is then fitted to all normal samples.

    Parameters
    ----------
    %(sizes)s

    Cs : int or list of float, default=10
        Values of C to choose from. An integer is a number of values between 0.1 and 1000 with equal ratios, divided by the
        number of normal samples times the standard deviation of a typical feature's share in :math:`x \cdot \bar x`, the
        similarity of a sample to the mean. Over this range, the share of training samples above the margin rises from none to
        nearly all.

    %(choice)s

    %(n_features_per_round)s

    %(reuse_features)s

    %(grouping)s

    %(predict_with_choice)s

    contamination : float, default=0.1
        Share of the training samples to reject, above 0 and at most 0.5. At most this share (by weight) is rejected; tied
        samples are accepted together. Not used by ``threshold_rule="margin"``.

    threshold_rule : {"quantile", "margin"}, default="quantile"
        Definition of the threshold, as in :class:`GroupDiscoveryOneClass`, also within the folds. With ``"margin"``, the share
        of rejected samples depends on C, which validation chooses.

    standardize : bool, "auto" or list of bool, default="auto"
        Whether to divide features by their standard deviation. From ``"auto"`` and ``[False, True]``, validation chooses.

    cv : int or cross-validation generator, default=5
        Folds of the cross-validation. An integer is a number of shuffled folds, each with its share of the outliers.

    scoring : str, callable or None, default="balanced_accuracy"
        Score of predicted labels or decision values, as in scikit-learn: ``"balanced_accuracy"`` (or None), ``"roc_auc"``,
        ``"average_precision"``, ... Normal samples are the positive class. These scores require both normal samples and
        outliers. A callable ``scorer(estimator, X, y)`` gets as X the decision values of the held-out samples, of shape
        (n_samples, 1), and as estimator an object that predicts from them. It may work without outliers. Sample weights are
        passed to it.

    %(embedded_choice)s

    %(running_paths)s

    Attributes
    ----------
    %(chosen)s

    offset_ : float
        Threshold: ``decision_function = score_samples - offset_``.

    groups_, support_features_, support_coef_, coef_, history_, ...
        As in :class:`GroupDiscoveryOneClass`, for the model fitted to all normal samples.

    See Also
    --------
    GroupDiscoveryOneClass : One-class group discovery with a given number of features, or ``"auto"``, and a given C; requires
        no outliers.
    GroupDiscoveryClassifierCV : Group discovery for classes that each have enough samples for training.

    Notes
    -----
    ``best_score_`` is the best of many scores and therefore slightly optimistic. Score the model on other data.
    Among equal scores, the candidate with fewer features is chosen, then the one with the smaller C. The settings are chosen
    on the known outliers and suit outliers of the same kind.

    ``"roc_auc"`` and ``"average_precision"`` depend on the order of the samples and not on the threshold. With
    ``threshold_rule="margin"``, the candidate they choose may have a small C with which :meth:`predict` rejects nearly all
    samples.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryOneClassCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((150, 30)) < 0.05
    >>> X[:120, :3] |= rng.random((120, 3)) < 0.9
    >>> y = np.repeat([1, -1], [120, 30])
    >>> model = GroupDiscoveryOneClassCV(10, random_state=0).fit(X, y)
    >>> sorted(model.support_features_.tolist())
    [0, 1, 2]
    >>> model.predict([[1] * 3 + [0] * 27, [0] * 30]).tolist()
    [1, -1]

    Without outliers, the score must be a function that requires none, for instance one that prefers to accept 95 % of the
    samples:

    >>> def accepts(model, X, y):
    ...     return -abs((model.predict(X) == 1).mean() - 0.95)
    >>> model = GroupDiscoveryOneClassCV(10, scoring=accepts, random_state=0).fit(X[:120])
    >>> bool((model.predict(X[:120]) == 1).mean() > 0.8)
    True
    """

    _target = "normality"
    _stratified = True
    _centred = False
    _automatic_kinds = ("support",)
    _allowed: ClassVar[dict[str, Rule]] = {
        **validated_rules(GroupDiscoveryOneClass),
        "threshold_rule": OneOf("quantile", "margin"),
    }

    def __init__(
        self,
        max_features_to_select: int = 100,
        *,
        min_features_to_select: int = 1,
        Cs: int | Sequence[float] = 10,
        thresholds: Sequence[float] | None = None,
        rule: str = "auto",
        nested: bool = False,
        n_features_per_round: int | str = "auto",
        reuse_features: bool = False,
        correlation: CorrelationLike = "pearson",
        threshold: float = 0.7,
        n_bins: int = 10,
        compatibility: Compatibility | None = None,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: ArrayLike | None = None,
        keep: str = "support",
        predict_with: str | Sequence[str] = "auto",
        contamination: float = 0.1,
        threshold_rule: str = "quantile",
        standardize: bool | str | Sequence[bool] = "auto",
        cv: FoldsLike = 5,
        scoring: ScoringLike = "balanced_accuracy",
        embedded_cv: FoldsLike = None,
        cv_part: str = "training",
        max_rounds: int | None = None,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    @with_callbacks
    def fit(
        self,
        X: FeaturesLike,
        y: TargetsLike = None,
        sample_weight: SamplesLike = None,
        *,
        feature_names: NamesLike = None,
        groups: SampleGroupsLike = None,
        client: ClientLike = None,
    ) -> Self:
        """Choose the settings on held-out normal samples and outliers, then find the groups in all normal samples.

        Parameters
        ----------
        %(X)s
        y : array-like of shape (n_samples,), default=None
            1 for normal samples and -1 for outliers. None uses the labels of a path, data set or store. Without labels, all
            samples are normal, and ``scoring`` must be a function that works without outliers.
        %(sample_weight)s
        %(feature_names)s
        %(sample_groups)s
        %(client)s

        Returns
        -------
        self : GroupDiscoveryOneClassCV
            The fitted estimator.
        """
        return self._fit(lambda: self._read(X, y, sample_weight, feature_names, groups=groups, client=client))

    def fit_predict(self, X: FeaturesLike, y: TargetsLike = None, sample_weight: SamplesLike = None) -> np.ndarray:
        """Fit to X and y, and predict X.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 for normal samples, -1 for outliers.
        """
        return self.fit(X, y, sample_weight).predict(X)

    def _held_out_scores(self, data: Input) -> HeldOutScores:
        scores = NormalityScores(self.scoring, data, self._loss)
        if self._compares and data.weight is data.score_weight:  # no sample is an outlier
            raise ValueError(
                f"scoring={self.scoring!r} compares normal samples with outliers, but no sample is labelled as an outlier. "
                "Pass y with 1 for normal samples and -1 for outliers, pass a function (estimator, X, y) as scoring, or use "
                "GroupDiscoveryOneClass, which requires no score."
            )
        return scores

    @property
    def _compares(self) -> bool:
        """Whether the score requires both normal samples and outliers; a callable may not."""
        return not callable(self.scoring)

    def _folds(self, data: Input) -> list[Fold]:
        if not self._compares:
            return super()._folds(data)
        if isinstance(self.cv, Integral) and not isinstance(self.cv, bool):
            for label, kind in _KINDS.items():
                count = int(np.count_nonzero(data.labels == label))
                if int(self.cv) > count:
                    raise ValueError(f"cv={self.cv} exceeds the number of {kind} ({count}). Use at most {count} folds.")
        folds = super()._folds(data)
        self._check_kinds(data, [("A fold", fold) for fold in folds])
        if self.nested:
            self._check_kinds(data, [("A pair of folds", pair) for pair in pairs_of(folds)])
        return folds

    def _check_kinds(self, data: Input, folds: list[tuple[str, Fold]]) -> None:
        """Raise a ``ValueError`` for folds that cannot be scored."""
        weight = np.ones(data.n_samples) if data.score_weight is None else data.score_weight
        for name, fold in folds:
            for part in fold.parts:
                for label, kind in _KINDS.items():
                    if not weight[part][data.labels[part] == label].any():
                        raise ValueError(
                            f"{name} of cv holds out no {kind} of positive weight, which scoring={self.scoring!r} requires. "
                            "Use fewer or other folds."
                        )

    def _scales(self, data: Input) -> list[bool]:
        # Features with large values and features with little spread can both be typical of a class, so neither scale is
        # better in general.
        return [False, True] if isinstance(self.standardize, str) else super()._scales(data)

    def _penalties(self, view: FeatureView, kinds: Sequence[str]) -> list[float]:
        return grid(self.Cs, _LOWEST_C, _HIGHEST_C, lambda: similarity_unit(view))
