"""What the group-discovery estimators share: everything but the targets and the loss."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from coterie._numba import one_blas_thread, thread_count
from coterie._validation import (
    CallbackSupportMixin,
    check_features,
    feature_positions,
    n_features_wanted,
    read_folds,
    require_choice,
    require_integer,
    require_real,
    take_columns,
)
from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.protocol import Correlation
from coterie.correlation.uncertainty import SymmetricalUncertainty
from coterie.data.source import FeatureSource, Moments
from coterie.discovery.assembly import assemble_groups
from coterie.discovery.loop import CuttingPlane, Round, StoppingRule
from coterie.discovery.oracle import Oracle
from coterie.discovery.prediction import group_model, support_model
from coterie.discovery.selector import GroupSelectorMixin
from coterie.discovery.voting import VotingOracle
from coterie.interruption import stop_requested
from coterie.progress import RoundProgress
from coterie.solver.design import DenseDesign, SparseDesign
from coterie.solver.losses import Loss
from coterie.solver.master import Master

# Features a round that are "auto": so many that there are ten rounds, but no more than in the papers.
_FEWEST_ROUNDS = 10
_MOST_PER_ROUND = 10


class GroupDiscovery(CallbackSupportMixin, GroupSelectorMixin, BaseEstimator):
    """Base class: checks the parameters, runs the loop, and sets the fitted attributes once all is done."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _check_parameters(self) -> None:
        require_integer("n_features_per_round", self.n_features_per_round, minimum=1, auto=True)
        require_choice("correlation", self.correlation, ("pearson", "su", None))
        require_real("threshold", self.threshold, above=0.0, at_most=1.0)
        require_integer("n_bins", self.n_bins, minimum=2)
        if self.n_bins > 255:
            raise ValueError(f"n_bins={self.n_bins} must be at most 255.")
        require_choice("affiliates", self.affiliates, ("complete", "ranked"))
        require_choice("keep", self.keep, ("support", "groups"))
        require_choice("predict_with", self.predict_with, ("support", "groups"))
        if not callable(self.representative):
            require_choice("representative", self.representative, ("score", "medoid"))
        require_real("C", self.C)
        require_real("tol", self.tol)
        if self.max_rounds is not None:
            require_integer("max_rounds", self.max_rounds, minimum=1)
        if self.n_jobs is not None:
            require_integer("n_jobs", self.n_jobs, minimum=None)
        if not isinstance(self.verbose, bool):
            require_integer("verbose", self.verbose, minimum=0)

    def _discover(
        self,
        source: FeatureSource,
        loss: Loss,
        sample_weight: np.ndarray | None,
        y: np.ndarray,
        *,
        n_features: int | None = None,
        **known: Any,
    ) -> None:
        """Run the cutting-plane loop and set the fitted attributes, those already ``known`` among them.

        Nothing is set before everything has gone well.
        """
        if n_features is None:
            n_features = n_features_wanted(self.n_features_to_select, source.shape[1])
        loop, fixed = self._loop(source, loss, sample_weight, y, n_features)
        # Folds may agree on fewer features a round, so the number of rounds is not known with them.
        report = _RoundReport(self, loop.rule.most_rounds(len(fixed)) if self._voting_cv is None else self.max_rounds, y)
        loop.on_round = lambda _: report.round_done(lambda: {**known, **self._fitted_state(loop)})
        self._run(loop, fixed, type(self).__name__)
        with one_blas_thread():
            state = self._fitted_state(loop)
        self._warn_if_short(loop, n_features)
        self._warn_if_inexact(state["prediction_gap_"])
        self.__dict__.pop("votes_", None)  # of an earlier fit with folds
        for name, value in {**known, **state}.items():
            setattr(self, name, value)
        report.done()

    def _loop(
        self,
        source: FeatureSource,
        loss: Loss,
        sample_weight: np.ndarray | None,
        y: np.ndarray,
        n_features: int | None,
    ) -> tuple[CuttingPlane, np.ndarray]:
        """The loop over these data, ready to run, and the features to start it with."""
        n_threads = thread_count(self.n_jobs)
        moments = source.moments(sample_weight, n_threads=n_threads)
        fixed = self._fixed_features(source, moments.norm, n_features)
        if not moments.norm.any():
            raise ValueError("All features of X are constant, so none can predict y. Check that X holds the right columns.")
        oracle = self._oracle(source, moments, sample_weight, y, loss.centred, n_threads)
        master = Master(loss, SparseDesign(source.shape[0]) if source.is_sparse else DenseDesign(source.shape[0]))
        rule = StoppingRule(n_features, self._features_per_round(n_features, len(fixed)), self.max_rounds, float(self.tol))
        return CuttingPlane(oracle, master, rule), fixed

    def _features_per_round(self, n_features: int | None, n_fixed: int) -> int:
        if self.n_features_per_round != "auto":
            return int(self.n_features_per_round)
        if n_features is None:
            return _MOST_PER_ROUND
        return min(max((n_features - n_fixed) // _FEWEST_ROUNDS, 1), _MOST_PER_ROUND)

    def _run(self, loop: CuttingPlane, fixed: np.ndarray, title: str) -> None:
        """Run a loop with its progress shown under a title."""
        then = loop.on_round

        def on_round(entry: Round) -> bool:
            bar.update(entry.n_support, f"objective {entry.objective:.6g}, gap {entry.gap:.1e}")
            return (then is not None and then(entry)) or stop_requested()

        loop.on_round = on_round
        with one_blas_thread(), RoundProgress(loop.rule.n_features, int(self.verbose), title) as bar:
            loop.run(fixed)

    @property
    def _voting_cv(self) -> Any:
        """The folds of embedded cross-validation, or None."""
        return self.cv

    def _oracle(
        self,
        source: FeatureSource,
        moments: Moments,
        sample_weight: np.ndarray | None,
        y: np.ndarray,
        centred: bool,
        n_threads: int,
    ) -> Oracle:
        options: dict[str, Any] = {
            "threshold": np.inf if self.correlation is None else float(self.threshold),
            "scale": moments.scale if self.standardize else None,
            "centred": centred,
            "affiliates": self.affiliates,
            "representative": self.representative,
        }
        measure = self._measure(source, moments, sample_weight, n_threads)
        if self._voting_cv is None:
            return Oracle(measure, **options)
        folds = []
        for train, _ in read_folds(self, self._voting_cv, y, self.random_state):
            weight = np.zeros(source.shape[0])
            weight[train] = 1.0 if sample_weight is None else sample_weight[train]
            folds.append(self._measure(source, source.moments(weight, n_threads=n_threads), weight, n_threads))
        return VotingOracle(measure, folds, **options)

    def _measure(
        self, source: FeatureSource, moments: Moments, sample_weight: np.ndarray | None, n_threads: int
    ) -> Correlation:
        if self.correlation == "su":
            n_bins = int(self.n_bins)
            return SymmetricalUncertainty(source, moments, sample_weight, n_bins=n_bins, n_threads=n_threads)
        return PearsonCorrelation(source, moments, sample_weight, n_threads=n_threads)

    def _fixed_features(self, source: FeatureSource, norm: np.ndarray, n_features: int | None) -> np.ndarray:
        fixed = feature_positions(self.fixed_features, source.shape[1], source.feature_names, "fixed_features")
        constant = fixed[norm[fixed] == 0.0]
        if len(constant):
            raise ValueError(f"fixed_features has feature {self._label(constant[0])!r}, which is constant; leave it out.")
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
        groups = assemble_groups(oracle, history, weights, oracle.source.feature_names, scores)
        model = discovered if self.predict_with == "support" else group_model(loop)
        n_features = oracle.source.shape[1]
        return {
            "groups_": groups,
            "scores_": scores,
            "support_features_": discovered.features,
            "support_coef_": coef,
            "prediction_features_": model.features,
            "prediction_coef_": model.coef,
            "prediction_gap_": model.gap,
            "intercept_": model.intercept,
            "margin_": model.margin,
            "history_": history,
            "n_rounds_": history[-1].round,
            "converged_at_": loop.converged_at,
            "objective_": solution.objective,
            "dual_gap_": solution.gap,
            "dual_coef_": solution.residual.T,
            "n_correlations_evaluated_": oracle.n_evaluated,
            "n_correlations_possible_": n_features * (n_features - 1) // 2,
            "n_passes_": 1.0 + oracle.n_passes,  # the first is that of the moments
            "n_features_in_": n_features,
            **({"votes_": oracle.votes.copy()} if isinstance(oracle, VotingOracle) else {}),
        }

    def _warn_if_short(self, loop: CuttingPlane, n_features: int | None) -> None:
        found = len(loop.oracle.supports)
        if n_features is None or found >= n_features:
            return
        if loop.exhausted:
            reason = "every other feature is constant or affiliated with one of them; a higher threshold splits the groups"
        else:
            reason = f"max_rounds={self.max_rounds}, a callback or a signal ended the search"
        warnings.warn(f"Only {found} of {n_features} support features were found: {reason}.", ConvergenceWarning, stacklevel=4)

    def _warn_if_inexact(self, gap: float) -> None:
        if self.predict_with == "groups" and gap > self.tol:
            warnings.warn(
                f"The model on support and affiliated features stopped at a relative gap of {gap:.1e}, over tol={self.tol:g}. "
                "Scale the features (standardize=True) or choose a smaller C.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _outputs(self, X: Any) -> np.ndarray:
        """``X @ coef + intercept`` of shape (n_samples, n_outputs), reading only the columns with a weight."""
        check_is_fitted(self)
        columns = take_columns(check_features(self, X), self.prediction_features_)
        return np.asarray(columns @ self.prediction_coef_.T) + self.intercept_

    @property
    def coef_(self) -> np.ndarray:
        """Weights of all features in the prediction, of shape (n_outputs, n_features); built on demand."""
        check_is_fitted(self)
        coef = np.zeros((len(self.prediction_coef_), self.n_features_in_))
        coef[:, self.prediction_features_] = self.prediction_coef_
        return coef


class _RoundReport:
    """Tells scikit-learn's callbacks (1.9 and later) about each round."""

    def __init__(self, estimator: Any, max_rounds: int | None, y: np.ndarray) -> None:
        self.estimator = estimator
        self.y = y
        self.context = None
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self.context = estimator._init_callback_context(max_subtasks=max_rounds)
            self.context.call_on_fit_task_begin(estimator=estimator, y=y)

    def round_done(self, state: Any) -> bool:
        """Report a round; true when a callback asks to stop."""
        if self.context is None:
            return False
        round_context = self.context.subcontext(task_name="round")
        round_context.call_on_fit_task_begin(estimator=self.estimator, y=self.y)
        return bool(round_context.call_on_fit_task_end(estimator=self.estimator, y=self.y, reconstruction_attributes=state))

    def done(self) -> None:
        """Report the end of fit."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, y=self.y)
