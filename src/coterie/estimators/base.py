"""What the group-discovery estimators share: everything but the targets and the loss."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from coterie._numba import one_blas_thread, thread_count
from coterie._parameters import (
    N_BINS,
    N_FEATURES_OR_AUTO,
    N_JOBS,
    PENALTY,
    VERBOSE,
    Anything,
    Flag,
    Function,
    Number,
    OneOf,
    Rule,
    Whole,
)
from coterie._sklearn import CallbackSupportMixin, RoundReport
from coterie.correlation.measures import CORRELATION_OR_NONE, measure_of
from coterie.correlation.protocol import Correlation
from coterie.data.covariates import as_covariates, explains, known_covariates
from coterie.data.source import Moments
from coterie.data.view import FeatureView
from coterie.groups import FeatureGroups
from coterie.inputs.naming import columns_read
from coterie.inputs.reading import features_of_share, with_covariates
from coterie.interruption import stop_requested
from coterie.methods import load
from coterie.progress import RoundProgress
from coterie.search.assembly import assemble_groups, with_class_weights
from coterie.search.loop import CuttingPlane, Round, StoppingRule
from coterie.search.oracle import Oracle
from coterie.search.prediction import group_model, support_model, with_effects
from coterie.search.samples import Samples
from coterie.search.voting import VotingOracle, fold_parts
from coterie.selection import FeatureSets, Selector, fixed_positions
from coterie.solver.adjusted import adjusted
from coterie.solver.design import design_of
from coterie.solver.losses import Loss
from coterie.solver.master import Master


class GroupDiscovery(CallbackSupportMixin, FeatureSets, Selector):
    """Base class: runs the loop; a subclass reads the targets and makes the loss."""

    _allowed: ClassVar[dict[str, Rule]] = {
        "n_features_to_select": N_FEATURES_OR_AUTO,
        "n_features_per_round": Whole(1) | OneOf("auto"),
        "reuse_features": Flag(),
        "correlation": CORRELATION_OR_NONE,
        "threshold": Number(at_most=1),
        "n_bins": N_BINS,
        "affiliates": OneOf("complete", "ranked"),
        "representative": OneOf("score", "medoid") | Function(),
        "fixed_features": Anything(),
        "keep": OneOf("support", "groups"),
        "predict_with": OneOf("support", "groups"),
        "C": PENALTY,
        "standardize": Flag() | OneOf("auto"),
        "cv": Anything(),
        "cv_part": OneOf("training", "fold"),
        "max_rounds": Whole(1) | OneOf(None),
        "tol": Number(),
        "n_jobs": N_JOBS,
        "random_state": Anything(),
        "verbose": VERBOSE,
    }
    groups_: FeatureGroups
    standardize_: bool
    covariate_coef_: np.ndarray
    _on_cluster: ClassVar[str] = "parts"
    # A client is no property of samples, which scikit-learn would route through pipelines.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"client": UNUSED}

    @abstractmethod
    def _loss(self, data: Samples, weight: np.ndarray) -> Loss:
        """The loss of samples with these weights."""

    def _adjusted_loss(self, data: Samples, weight: np.ndarray | None) -> Loss:
        """The loss of samples with these weights (None: all one), covariates eliminated."""
        weight = np.ones(len(data.y)) if weight is None else weight
        return adjusted(self._loss(data, weight), data.covariates, weight)

    def _read_covariates(self, covariates: Any, targets: np.ndarray) -> tuple[np.ndarray | None, dict[str, Any]]:
        """Values of the covariates of a fit, and what the fitted estimator will say of them."""
        if covariates is None:
            return None, {}
        values, names = as_covariates(covariates, len(targets))
        if explains(values, targets):
            raise ValueError(
                f"The covariates ({', '.join(names)}) explain y completely, so that nothing is left for the features. Is y "
                "one of them, or are there as many covariates as samples?"
            )
        return values, {"covariate_names_": np.array(names, dtype=object)}

    def _procedure(self) -> GroupDiscovery:
        """The search that has led to this fitted model, to be done again on other samples."""
        # Files from before standardize="auto" say by the parameter alone what was done.
        return clone(self).set_params(standardize=getattr(self, "standardize_", self.standardize))

    def _compute(self, data: Samples) -> dict[str, Any]:
        return self._discover(data, self._n_features_wanted(data.source.shape[1]))

    def _n_features_wanted(self, n_features: int) -> int | None:
        """The number of support features asked for, which may be more than there are; None for ``"auto"``."""
        asked = self.n_features_to_select
        if isinstance(asked, str):
            return None
        return int(asked) if isinstance(asked, Integral) else features_of_share(asked, n_features)

    def _discover(
        self, data: Samples, n_features: int | None, *, owner: Any = None, moments: Moments | None = None, **known: Any
    ) -> dict[str, Any]:
        """Run the cutting-plane loop; the fitted attributes, those already ``known`` among them.

        ``owner`` is the estimator whose fit this is, where another one works for it; ``moments`` those of the features.
        """
        owner = self if owner is None else owner
        loop = self._loop(data, data.weight, n_features, moments)
        known = {**data.attributes, **known}
        # Folds may agree on fewer features a round, and a block may have old ones: then the number of rounds is not known.
        most_rounds = self.max_rounds if self.reuse_features or self._voting_cv is not None else loop.rule.most_rounds()
        report = RoundReport(owner, most_rounds if most_rounds is None else most_rounds + (len(loop.fixed) > 0), data.y)
        loop.on_round = lambda _: report.round_done(lambda: with_class_weights({**known, **self._fitted_state(loop)}))
        # Who has ended a validation by a signal wants the model that this has chosen.
        self._run(loop, type(owner).__name__, stoppable=owner is self or not stop_requested())
        with one_blas_thread():
            state = with_class_weights({**known, **self._fitted_state(loop)})
        self._warn_if_short(loop, n_features)
        self._warn_if_inexact(state["prediction_gap_"])
        report.done(state)
        return state

    def _loop(
        self,
        data: Samples,
        weight: np.ndarray | None,
        n_features: int | None,
        moments: Moments | None = None,
        view: FeatureView | None = None,
    ) -> CuttingPlane:
        """The loop over these data with other weights, ready to run; moments, or the whole view, if they are known."""
        loss = self._adjusted_loss(data, weight)
        if view is None:
            view = FeatureView.of(
                data.source,
                weight,
                standardize=not data.mostly_zero if isinstance(self.standardize, str) else bool(self.standardize),
                centred=loss.centred,
                n_threads=thread_count(self.n_jobs),
                moments=moments,
            )
        fixed = self._fixed_features(view, n_features)
        view.moments.require_variation()
        wanted = None if n_features is None else min(n_features, view.n_features) - len(fixed)
        per_round = None if self.n_features_per_round == "auto" else int(self.n_features_per_round)
        rule = StoppingRule(wanted, per_round, self.max_rounds, float(self.tol))
        return CuttingPlane(self._oracle(view, data.y), Master(loss, design_of(view)), rule, fixed)

    def _run(self, loop: CuttingPlane, title: str, *, stoppable: bool = True) -> None:
        """Run a loop with its progress shown under a title; a signal ends it after the round if it is stoppable."""
        then = loop.on_round

        def on_round(entry: Round) -> bool:
            where = getattr(loop.oracle.view.source, "n_workers", None)
            workers = "" if where is None else f", {where} workers"
            bar.update(entry.n_support, f"objective {entry.objective:.6g}, gap {entry.gap:.1e}{workers}")
            return (then is not None and then(entry)) or (stoppable and stop_requested())

        loop.on_round = on_round
        total = None if loop.rule.n_features is None else loop.rule.n_features + len(loop.fixed)
        with one_blas_thread(), RoundProgress(total, int(self.verbose), title) as bar:
            loop.run()

    @property
    def _voting_cv(self) -> Any:
        """The folds of embedded cross-validation, or None."""
        return self.cv

    def _oracle(self, view: FeatureView, y: np.ndarray) -> Oracle:
        options: dict[str, Any] = {
            "threshold": np.inf if self.correlation is None else float(self.threshold),
            "affiliates": self.affiliates,
            "representative": self.representative,
            "reuse": bool(self.reuse_features),
        }
        if self._voting_cv is None:
            return Oracle(self._measure(view), **options)
        parts = fold_parts(
            view, y, self._voting_cv, self.cv_part, classifier=is_classifier(self), random_state=self.random_state
        )
        return VotingOracle(self._measure(view), [self._measure(part) for part in parts], **options)

    def _measure(self, view: FeatureView) -> Correlation:
        correlation = "pearson" if self.correlation is None else self.correlation  # without a constraint, for purities alone
        return measure_of(correlation, view, int(self.n_bins))

    def _fixed_features(self, view: FeatureView, n_features: int | None) -> np.ndarray:
        fixed = fixed_positions(self.fixed_features, view)
        if n_features is not None and len(fixed) > n_features:
            raise ValueError(
                f"fixed_features has {len(fixed)} features, more than n_features_to_select={n_features}, which counts them."
            )
        return fixed

    def _fitted_state(self, loop: CuttingPlane) -> dict[str, Any]:
        """The fitted attributes as of the last round."""
        oracle, solution, history = loop.oracle, loop.solution, list(loop.history)
        discovered = support_model(loop)
        coef = discovered.coef
        weights = coef[0] if len(coef) == 1 else np.linalg.norm(coef, axis=0)
        scores = oracle.final_scores(solution.residual)
        groups = assemble_groups(oracle, history, weights, scores)
        lower, upper, converged_at = loop.final_bounds(scores)
        model = discovered if self.predict_with == "support" else group_model(loop)
        n_pairs = oracle.view.n_features * (oracle.view.n_features - 1) // 2
        return {
            "groups_": with_effects(groups, model, oracle.view.moments),
            "scores_": scores,
            "support_features_": discovered.features,
            "support_coef_": coef,
            "prediction_features_": model.features,
            "prediction_coef_": model.coef,
            "prediction_gap_": model.gap,
            "intercept_": model.intercept,
            "margin_": model.margin,
            **({} if model.covariate_coef is None else {"covariate_coef_": model.covariate_coef}),
            "history_": history,
            "n_rounds_": history[-1].round,
            "converged_at_": converged_at,
            "objective_": solution.objective,
            "dual_gap_": solution.gap,
            "lower_bound_": lower,
            "upper_bound_": upper,
            "block_weights_": loop.block_weights,
            "standardize_": oracle.view.scale is not None,
            "dual_coef_": solution.residual.T,
            # A pair that is looked at in several rounds is one pair; which ones were, nobody writes down.
            "n_correlations_evaluated_": min(oracle.n_evaluated, n_pairs),
            "n_correlations_possible_": n_pairs,
            "n_passes_": 1.0 + oracle.n_passes,  # the first is that of the moments
            **({"votes_": oracle.votes} if isinstance(oracle, VotingOracle) else {}),
        }

    def _warn_if_short(self, loop: CuttingPlane, n_features: int | None) -> None:
        found = len(loop.oracle.supports)
        if n_features is None or found >= n_features:
            return
        if found == loop.oracle.view.n_features:
            reason = "X has no more features"
        elif loop.exhausted:
            reason = "every other feature is constant or affiliated with one of them; a higher threshold splits the groups"
        else:
            reason = f"max_rounds={self.max_rounds}, a callback or a signal ended the search"
        warnings.warn(f"Only {found} of {n_features} support features were found: {reason}.", ConvergenceWarning, stacklevel=6)

    def _warn_if_inexact(self, gap: float) -> None:
        if self.predict_with == "groups" and gap > self.tol:
            warnings.warn(
                f"The model on support and affiliated features stopped at a relative gap of {gap:.1e}, over tol={self.tol:g}. "
                "Scale the features (standardize=True) or choose a smaller C.",
                ConvergenceWarning,
                stacklevel=6,
            )

    def report(self, X: Any, y: Any = None, path: Any = None, **options: Any) -> Any:
        """Make a page about the model in its data; see :func:`coterie.report` for the options.

        Parameters
        ----------
        X, y
            The data of the fit.
        path : path, default=None
            Where to save the page.
        **options
            As for :func:`coterie.report`.

        Returns
        -------
        report : coterie.report.Report
            It shows itself in a notebook.
        """
        return load("coterie.report.making:report")(self, X, y, path, **options)

    def _kept(self) -> np.ndarray:
        check_is_fitted(self)
        return self.groups_.members if self.keep == "groups" else np.sort(self.groups_.support)

    def _outputs(self, X: Any, covariates: Any = None) -> np.ndarray:
        """``X @ coef + intercept`` of shape (n_samples, n_outputs), reading only the columns with a weight."""
        check_is_fitted(self)
        if hasattr(self, "covariate_names_"):
            X, covariates, _ = with_covariates(X, covariates)
        columns = columns_read(self, X, self.prediction_features_)
        outputs = np.asarray(columns @ self.prediction_coef_.T) + self.intercept_
        known = known_covariates(self, covariates, len(outputs))
        return outputs if known is None else outputs + known @ self.covariate_coef_.T

    @property
    def coef_(self) -> np.ndarray:
        """Weights of all features in the prediction, of shape (n_outputs, n_features); built on demand."""
        check_is_fitted(self)
        coef = np.zeros((len(self.prediction_coef_), self.n_features_in_))
        coef[:, self.prediction_features_] = self.prediction_coef_
        return coef
