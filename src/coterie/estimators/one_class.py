"""Group discovery for one class, with given settings."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin

from coterie._numba import thread_count
from coterie._parameters import Number, OneOf, Rule
from coterie._sklearn import with_callbacks
from coterie.correlation.compatibility import Compatibility
from coterie.estimators.base import GroupDiscovery
from coterie.estimators.documentation import documented
from coterie.inputs.opening import Input, TargetKind
from coterie.inputs.types import (
    ClientLike,
    FeaturesLike,
    FoldsLike,
    NamesLike,
    RandomStateLike,
    SamplesLike,
    TargetsLike,
)
from coterie.search.oracle import Representative
from coterie.search.search import CorrelationLike
from coterie.solver.loss import LossLike
from coterie.solver.losses import OneClassHinge
from coterie.validation.threshold import Threshold, held_out_offset, model_outputs


@documented
class GroupDiscoveryOneClass(OutlierMixin, GroupDiscovery):
    r"""Outlier detector that selects a few features that are typical of one class, and groups correlated features.

    The one-class Group Discovery Machine (TPAMI 2016, section 3.8). All samples have the label 1 and there is
    no intercept. The score of a feature is :math:`f_j \cdot \alpha`, and a sample is normal if :math:`w \cdot x` reaches a
    threshold. By default it is the quantile of the training samples' :math:`w \cdot x` that rejects a given share of them.
    The papers use the margin :math:`\gamma`, which is learnt with the weights and rejects every support vector.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        Number of support features, or their fraction of all features. ``"auto"`` continues until the optimum over all
        admissible sets is reached to within ``tol``. Without ``reuse_features``, which may never reach that optimum, it
        continues until new features change the objective by less than ``tol``, as in the paper.

    n_features_per_round : int or "auto", default=10
        Number of support features selected per round (2, 5 or 10 in the paper). ``"auto"`` selects one feature per round up
        to ten features, then a tenth of those found so far, rounded up.

    reuse_features : bool, default=True
        Whether a block (the features of a round) may contain features of earlier blocks, as in
        :class:`GroupDiscoveryClassifier`.

    %(grouping)s

    %(predict_with)s

    contamination : float, default=0.1
        Share of the training samples to reject, above 0 and at most 0.5. At most this share (by weight) is rejected; tied
        samples are accepted together. Not used by ``threshold_rule="margin"``.

    threshold_rule : {"quantile", "held_out", "margin"}, default="quantile"
        Definition of the threshold. ``"quantile"`` rejects the share ``contamination`` of the training samples. New normal
        samples are rejected about as often if few features predict. Models of many features fit the training samples better
        than new ones: ``"held_out"`` chooses the quantile such that ``contamination`` is the share rejected in ten
        held-out folds, which takes ten more fits. ``"margin"`` is the decision of the papers. It rejects all samples below the
        margin, whose share depends on C.

    C : float, default=1.0
        Weight of the loss, which corresponds to 1 / (nu n) in the one-class SVM. The smaller it is, the more training samples
        lie below the margin and determine the weights.

    standardize : bool, default=False
        Whether to divide features by their standard deviation. X is not copied.

    %(embedded)s

    %(running)s

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Weights of all features in the prediction.

    offset_ : float
        Threshold: ``decision_function = score_samples - offset_``.

    margin_ : ndarray of shape (1,)
        Margin :math:`\gamma` of the papers.

    %(found)s

    See Also
    --------
    sklearn.svm.OneClassSVM : Outlier detector that uses all features; its ``nu`` is similar to ``contamination``.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GroupDiscoveryOneClass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((100, 30)) < 0.05
    >>> X[:, :3] = rng.random((100, 3)) < 0.9
    >>> model = GroupDiscoveryOneClass(3).fit(X)
    >>> sorted(model.support_features_.tolist())
    [0, 1, 2]
    >>> model.predict([[1] * 3 + [0] * 27, [0] * 30]).tolist()
    [1, -1]
    """

    _target: ClassVar[TargetKind] = "none"
    _adjusts = False
    contamination: float
    threshold_rule: str
    offset_: float
    _allowed: ClassVar[dict[str, Rule]] = {
        **GroupDiscovery._allowed,
        "contamination": Number(at_most=0.5),
        "threshold_rule": OneOf("quantile", "held_out", "margin"),
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        n_features_per_round: int | str = 10,
        reuse_features: bool = True,
        correlation: CorrelationLike = "pearson",
        threshold: float = 0.7,
        n_bins: int = 10,
        compatibility: Compatibility | None = None,
        affiliates: str = "complete",
        representative: Representative = "score",
        fixed_features: ArrayLike | None = None,
        keep: str = "support",
        predict_with: str = "support",
        contamination: float = 0.1,
        threshold_rule: str = "quantile",
        C: float = 1.0,
        standardize: bool = False,
        cv: FoldsLike = None,
        cv_part: str = "training",
        max_rounds: int | None = None,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    @property
    def _loss(self) -> LossLike:
        return OneClassHinge

    @with_callbacks
    def fit(
        self,
        X: FeaturesLike,
        y: TargetsLike = None,
        sample_weight: SamplesLike = None,
        *,
        feature_names: NamesLike = None,
        client: ClientLike = None,
    ) -> Self:
        """Find groups of features that are typical of the samples.

        Parameters
        ----------
        %(X)s
        y : ignored
            Present for API consistency.
        %(sample_weight)s
        %(feature_names)s
        %(client)s

        Returns
        -------
        self : GroupDiscoveryOneClass
            The fitted estimator.
        """
        return self._fit(lambda: self._read(X, None, sample_weight, feature_names, client=client))

    def _compute(self, data: Input) -> dict[str, Any]:
        fitted = super()._compute(data)
        if self.threshold_rule != "held_out":
            return fitted
        offset = held_out_offset(
            data,
            _outputs(fitted, data),
            float(fitted["margin_"][0]),
            self._settings(),
            self._n_features_wanted(data.n_features),
            float(self.contamination),
            n_threads=thread_count(self.n_jobs),
        )
        return {**fitted, "offset_": offset}

    def _published(self, attributes: dict[str, Any], data: Input) -> dict[str, Any]:
        rule = self._threshold_rule()
        outputs = _outputs(attributes, data) if rule.uses_outputs else np.empty(0)
        return {**attributes, "offset_": rule.offset(outputs, data.weight, float(attributes["margin_"][0]))}

    def _threshold_rule(self) -> Threshold:
        """Return the rule for the threshold."""
        return Threshold(self.threshold_rule, float(self.contamination))

    def score_samples(self, X: FeaturesLike) -> np.ndarray:
        """Return how typical samples are: ``w · x``.

        Parameters
        ----------
        %(new_samples)s

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self._outputs(X)[:, 0]

    def decision_function(self, X: FeaturesLike) -> np.ndarray:
        """Return ``score_samples(X) - offset_``, which is negative for outliers.

        Parameters
        ----------
        %(new_samples)s

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: FeaturesLike) -> np.ndarray:
        """Predict 1 for normal samples and -1 for outliers.

        Parameters
        ----------
        %(new_samples)s

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)


def _outputs(fitted: dict[str, Any], data: Input) -> np.ndarray:
    """Return the outputs of a fitted model for its training data."""
    features, coef = fitted["prediction_features_"], fitted["prediction_coef_"]
    return model_outputs(data, features, coef[0], fitted["intercept_"][0])
