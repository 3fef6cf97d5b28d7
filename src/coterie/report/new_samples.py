"""What a discovery does with new samples: predictions, and replication in a second cohort."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie._parameters import OneOf, check
from coterie.estimators.base import GroupDiscovery
from coterie.inputs.opening import unwrap_new
from coterie.inputs.substitution import members_read, substituted
from coterie.inputs.types import CovariatesLike, FeaturesLike, SampleGroupsLike, SamplesLike, TargetsLike
from coterie.methods import load

if TYPE_CHECKING:
    from coterie.replication.result import Replication


class NewSamples:
    """Methods of a discovery for new samples."""

    model: GroupDiscovery

    def predict(self, X: FeaturesLike, *, missing: str = "error", **options: CovariatesLike) -> np.ndarray:
        """Predict new samples with :attr:`model`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource, path} of shape (n_samples, n_features)
            The samples.

        missing : {"error", "substitute"}, default="error"
            Treatment of features of the model that X lacks, or whose values are all missing. With ``"substitute"``, other
            members of their groups take their place (:func:`coterie.substituted`), and a warning states which.

        **options
            ``covariates`` and ``offset`` of the samples, if the model was fitted with them.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)

        Examples
        --------
        >>> import warnings
        >>> from sklearn.datasets import load_breast_cancer
        >>> import coterie
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> discovery = coterie.discover(X, y, n_features_to_select=3, threshold=0.9, fast=True)
        >>> others = X.drop(columns="worst concave points")
        >>> with warnings.catch_warnings(record=True) as raised:
        ...     warnings.simplefilter("always")
        ...     predictions = discovery.predict(others, missing="substitute")
        >>> print(raised[0].message)
        1 of 3 features is substituted: 'worst concave points' by 'mean concave points' (r = +0.91). ...
        """
        check("missing", missing, OneOf("error", "substitute"))
        if missing == "error":
            return np.asarray(self.model.predict(X, **options))
        if options.get("covariates") is None and hasattr(self.model, "covariate_names_"):
            options["covariates"] = unwrap_new(self.model, X, features=members_read(self.model)).covariates
        new = substituted(self.model, X)
        if new.substitutes:
            warnings.warn(new.substitutes.sentence, UserWarning, stacklevel=2)
        return np.asarray(self.model.predict(new, **options))

    def replicate(
        self,
        X: FeaturesLike,
        y: TargetsLike = None,
        *,
        sample_weight: SamplesLike = None,
        covariates: CovariatesLike = None,
        offset: SamplesLike = None,
        exposure: SamplesLike = None,
        groups: SampleGroupsLike = None,
        which: str = "auto",
        joint: bool | str = "auto",
        fwer: float | None = None,
        fdr: float | None = None,
    ) -> Replication:
        """Test which groups hold in a second cohort, and score the model there.

        Parameters
        ----------
        X : {array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset} of shape (n_samples, n_features)
            Features of the second cohort. They are matched by name if both cohorts have names. Some may be absent.

        y : array-like of shape (n_samples,) or (n_samples, n_targets), or str, default=None
            Labels, numbers or survival times, as in the first cohort. None uses those of a path or data set.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the samples.

        covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
            Covariates, for which the tests adjust. Required if the first cohort had some.

        offset : array-like of shape (n_samples,), default=None
            Offset of the samples, if the first cohort had one.

        exposure : array-like of shape (n_samples,), default=None
            Positive exposure of each sample, for counts. Its logarithm is the offset.

        groups : array-like of shape (n_samples,) or str, default=None
            Sample groups: labels of samples that belong together. Standard errors are then cluster-robust.

        which : {"auto", "significant", "all"}, default="auto"
            Groups to test: those that were significant in the first cohort, or all that the model uses. ``"auto"`` tests
            those that were significant, if there are any.

        joint : bool or "auto", default="auto"
            Whether all groups are tested in one regression, so that each is tested given the others. ``"auto"`` requires at
            least ten samples per group (for classes, twice the samples of the rarest one; for survival times, twice the
            events).

        fwer : float, default=0.05
            Family-wise error rate, controlled by Holm's method.

        fdr : float, default=None
            False discovery rate, controlled by the method of Benjamini and Hochberg, instead of ``fwer``.

        Returns
        -------
        replication : Replication
            One entry per group, with ``to_frame()`` and ``to_dict()``, and the score of the model.

        Raises
        ------
        ValueError
            If no member of any group varies in X, y has labels that the first cohort lacks, covariates are missing, or the
            data are those of the first cohort.

        Notes
        -----
        The support feature represents its group. If it is absent or constant, the member with the largest absolute
        correlation in the first cohort does. The tests are those of the first cohort: least squares with robust standard
        errors for classes and numbers, Huber, Poisson and Cox regression for other outcomes. They are one-sided, in the
        direction of the first cohort. With more than two classes or several targets, the outcome is that of the largest
        effect in the first cohort.

        Because the second cohort took no part in the selection, its effects are not too large on average, as those of the
        first cohort are.

        Examples
        --------
        >>> import numpy as np
        >>> import coterie
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((300, 30))
        >>> y = 2 * X[:, 4] - 2 * X[:, 7] + rng.standard_normal(300)
        >>> first = coterie.discover(X[:200], y[:200], max_features_to_select=4, n_pairs=5)
        >>> [group.feature for group in first.replicate(X[200:], y[200:]).replicated]
        [4, 7]
        """
        run: Any = load("coterie.replication.run:replicate")
        found: Replication = run(
            self,
            X,
            y,
            sample_weight=sample_weight,
            covariates=covariates,
            offset=offset,
            exposure=exposure,
            groups=groups,
            which=which,
            joint=joint,
            fwer=fwer,
            fdr=fdr,
        )
        return found
