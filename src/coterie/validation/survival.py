"""Concordance of risks with survival times, and the deviance of the partial likelihood on held-out samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, rankdata
from sklearn.base import BaseEstimator

from coterie._numba import read_only
from coterie.inputs.opening import Input
from coterie.inputs.survival import has_entries
from coterie.inputs.types import ScoringLike
from coterie.kernels.concordance import concordance_sums
from coterie.solver.cox import CoxLoss
from coterie.solver.loss import LossLike
from coterie.validation.held_out import HeldOutScores
from coterie.validation.metrics import Linearised

# Names of the scores: Harrell's and Uno's concordance index.
SCORES = ("concordance_index", "concordance_index_ipcw")
_MAX_STEPS = 60
# Relative precision of the slopes, and decimals of a deviance; see coterie.validation.deviance.
_TOLERANCE, _DECIMALS = 1e-7, 10
# Largest standard deviation of the log hazards, for outputs that order all events.
_LARGEST_SPREAD = 30.0


def linearised_concordance(
    targets: np.ndarray,
    risk: np.ndarray,
    weight: np.ndarray,
    part: np.ndarray | None = None,
    event_weight: np.ndarray | None = None,
) -> Linearised:
    """Return the concordance of risks with survival times, and its linearisation.

    Parameters
    ----------
    targets : structured ndarray of shape (n_samples,)
        Times, events, strata and entry times. Samples of different strata are not compared, nor are samples with events before
        their entry.
    risk : ndarray of shape (n_samples,)
        Risks, larger for earlier events.
    weight : ndarray of shape (n_samples,)
        Weights.
    part : ndarray of int of shape (n_samples,), optional
        Samples of different parts, such as folds, are not compared.
    event_weight : ndarray of shape (n_samples,), optional
        Weights of samples as the earlier ones of pairs; by default ``weight``.
    """
    agreeing, comparable = np.zeros(len(risk)), np.zeros(len(risk))
    stratum = targets["stratum"]
    part = stratum if part is None else stratum * (int(part.max(initial=0)) + 1) + part
    order = np.lexsort((targets["time"], part))
    first = event_weight if event_weight is not None else weight
    for own in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        sums = np.zeros((2, len(own)))
        place = np.unique(risk[own], return_inverse=True)[1]
        values = targets["time"][own], targets["event"][own], place, weight[own], first[own], targets["entry"][own]
        time, event, ranks, mass, pairs, entry = (read_only(np.ascontiguousarray(array)) for array in values)
        by_entry = read_only(np.argsort(entry))
        concordance_sums(time, event, ranks, mass, pairs, entry, by_entry, sums[0], sums[1])
        agreeing[own], comparable[own] = sums
    total = float(comparable.sum())
    if total == 0.0:
        return Linearised(np.nan, np.zeros(len(risk)))
    value = float(agreeing.sum()) / total
    return Linearised(value, 2.0 * (agreeing - value * comparable) / total)


def censoring_weights(targets: np.ndarray, weight: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """Return the inverse squared probabilities that samples are not censored before their times (Uno et al. 2011).

    The probabilities are Kaplan–Meier estimates of the censoring times, from ``targets`` or from the samples ``known``. They
    are those just before each time, as in R's survival package. (scikit-survival takes those at the time, which differ if
    samples are censored at event times.) Weights are 0 where the estimate is 0, and for censored samples.
    """
    reference = targets if known is None else known
    mass = weight if known is None else np.ones(len(known))
    times, left = survival_curve(reference["time"], ~reference["event"], mass, after_events=True)
    before = np.append(1.0, left)[np.searchsorted(times, targets["time"], side="left")]
    found = np.zeros(len(targets))
    usable = targets["event"] & (before > 0.0)
    found[usable] = before[usable] ** -2.0
    return found


def refuse_entries(targets: np.ndarray, what: str, remedy: str) -> None:
    """Raise a ``ValueError`` if there are entry times, for scores that are weighted by the probability of no censoring."""
    if has_entries(targets):
        raise ValueError(f"{what} does not support entry times, because of which censoring times are not comparable. {remedy}")


def survival_curve(
    time: np.ndarray, event: np.ndarray, weight: np.ndarray, entry: np.ndarray | None = None, *, after_events: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of events and the Kaplan–Meier estimate of the probability to survive each of them.

    Samples with an entry time are at risk after it only. With ``after_events``, samples without the event leave before the
    events of the same time: the event is then the censoring, and the others are the events proper, which come first.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.survival import survival_curve
    >>> times, share = survival_curve(np.array([1.0, 2.0, 2.0, 3.0]), np.array([True, True, False, True]), np.ones(4))
    >>> times, share
    (array([1., 2., 3.]), array([0.75, 0.5 , 0.  ]))
    """
    times, place = np.unique(time, return_inverse=True)
    total, lost = np.bincount(place, weight), np.bincount(place, weight * event)
    at_risk = np.cumsum(total[::-1])[::-1] - (total - lost if after_events else 0.0)
    if entry is not None:
        at_risk = np.maximum(at_risk - _not_entered(times, entry, weight), lost)
    share = np.cumprod(1.0 - np.divide(lost, at_risk, out=np.zeros(len(times)), where=at_risk > 0.0))
    kept = lost > 0.0
    return times[kept], share[kept]


def _not_entered(times: np.ndarray, entry: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weight of the samples that enter at each of some sorted times or later."""
    place = np.searchsorted(times, entry, side="right")  # the first time at which a sample is at risk
    return np.asarray(np.bincount(place, weight, minlength=len(times) + 1)[::-1].cumsum()[::-1][1:])


def risk_tertiles(risk: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the tertile of each risk among those of the same part (fold): 0 for low, 1 for medium, 2 for high risk.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.validation.survival import risk_tertiles
    >>> risk_tertiles(np.array([0.1, 0.5, 0.9, 8.0, 6.0, 7.0]), np.array([0, 0, 0, 1, 1, 1])).tolist()
    [0, 1, 2, 2, 0, 1]
    """
    found = np.zeros(len(risk), dtype=np.int64)
    for own in np.unique(part):
        here = np.flatnonzero(part == own)
        found[here] = 3.0 * (rankdata(risk[here]) - 0.5) / len(here)
    return found


def log_rank_p_value(targets: np.ndarray, group: np.ndarray, weight: np.ndarray) -> float:
    """Return the p-value of the log-rank test of several groups, within strata. NaN if the groups cannot be compared.

    Parameters
    ----------
    targets : structured ndarray of shape (n_samples,)
        Times, events and strata.
    group : ndarray of int of shape (n_samples,)
        Numbers of the groups, from 0.
    weight : ndarray of shape (n_samples,)
        Weights; 2 is equivalent to having the sample twice.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.inputs.survival import survival_targets
    >>> from coterie.validation.survival import log_rank_p_value
    >>> targets = survival_targets([1, 1, 1, 1, 0, 1], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> round(log_rank_p_value(targets, np.array([0, 0, 0, 1, 1, 1]), np.ones(6)), 3)
    0.025
    """
    names, codes = np.unique(group, return_inverse=True)
    excess, variance = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for stratum in np.unique(targets["stratum"]):
        here = targets["stratum"] == stratum
        times, place = np.unique(targets["time"][here], return_inverse=True)
        shape, cell = (len(times), len(names)), place * len(names) + codes[here]
        mass, deaths = (
            np.bincount(cell, own, minlength=shape[0] * shape[1]).reshape(shape)
            for own in (weight[here], weight[here] * targets["event"][here])
        )
        at_risk = mass[::-1].cumsum(axis=0)[::-1]
        for code in range(len(names)):
            own = here & (codes == code)
            at_risk[:, code] -= _not_entered(times, targets["entry"][own], weight[own])
        total, died = at_risk.sum(axis=1), deaths.sum(axis=1)
        share = at_risk / total[:, None]
        excess += (deaths - died[:, None] * share).sum(axis=0)
        factor = died * np.divide(total - died, total - 1.0, out=np.zeros(len(total)), where=total > 1.0)
        variance += np.diag(factor @ share) - (share * factor[:, None]).T @ share
    freedom = np.linalg.matrix_rank(variance, hermitian=True)
    if not freedom:
        return np.nan
    statistic = float(excess @ np.linalg.pinv(variance, rcond=1e-10, hermitian=True) @ excess)
    return float(chi2.sf(statistic, freedom))


class SurvivalScores(HeldOutScores):
    """Scorer for risks of held-out samples.

    By default, ``scoring`` is ``"concordance_index"``. The other parameters are those of
    :class:`~coterie.validation.held_out.HeldOutScores`.
    """

    def __init__(self, scoring: ScoringLike, data: Input, loss: LossLike) -> None:
        super().__init__(scoring, data, loss)
        if self.name == SCORES[1]:
            refuse_entries(data.targets, f"scoring={SCORES[1]!r}", "Use scoring='concordance_index'.")
        mass = np.ones(data.n_samples) if self._weight is None else self._weight
        self._event_weight = mass * censoring_weights(data.targets, mass) if self.name == SCORES[1] else mass

    def _scorer_inputs(self, data: Input, loss: LossLike) -> tuple[BaseEstimator, np.ndarray]:
        return _Risks(loss), data.targets

    def _default_name(self, data: Input) -> str:
        return SCORES[0]

    def _fast_scores(self) -> tuple[str, ...]:
        return SCORES

    def __call__(self, outputs: np.ndarray, held_out: np.ndarray) -> float:
        """Return the score of outputs of shape (n_held_out, 1) for the samples ``held_out``."""
        if self._scorer is not None:
            return super().__call__(outputs, held_out)
        weight = np.ones(len(held_out)) if self._weight is None else self._weight[held_out]
        first = self._event_weight[held_out]
        return linearised_concordance(self._y[held_out], outputs[:, 0], weight, event_weight=first).value


class _Risks(BaseEstimator):
    """Survival model whose input consists of linear outputs. It stands in for the model in scorers."""

    def __init__(self, loss: LossLike) -> None:
        self.loss = loss

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Risks:
        """Return the estimator unchanged."""
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.loss.predict(X)


@dataclass(frozen=True)
class PartialDeviance:
    """Deviance of the partial likelihood of held-out samples per event, for outputs times their slope of largest likelihood.

    The outputs of different settings differ in scale, as in :class:`coterie.validation.deviance.HeldOutDeviance`.

    Attributes
    ----------
    targets : structured ndarray of shape (n_samples,)
        Times, events and strata of all samples.
    weight : ndarray of shape (n_samples,)
        Weights of all samples in the deviance.
    ties : {"breslow", "efron"}
        Rule for tied event times.
    """

    targets: np.ndarray
    weight: np.ndarray
    ties: str

    def __call__(self, outputs: Sequence[np.ndarray], held_out: np.ndarray) -> list[float]:
        """Return the deviance of each model, given its outputs of shape (n_held_out, 1). NaN without events."""
        loss = CoxLoss(self.targets[held_out], self.weight[held_out], 1.0, self.ties)
        n_events = float(self.weight[held_out] @ self.targets["event"][held_out])
        if n_events == 0.0:
            return [np.nan] * len(outputs)
        return [round(2.0 * _smallest(loss, own) / n_events, _DECIMALS) for own in outputs]


def _smallest(loss: CoxLoss, outputs: np.ndarray) -> float:
    """Return the smallest loss over non-negative multiples of the outputs, by Newton's method within a bracket."""
    scale = float(outputs.std())
    if scale <= 1e-12 * float(np.abs(outputs).max(initial=0.0)):
        return loss.evaluate(np.zeros_like(outputs)).value
    unit = (outputs - outputs.mean()) / scale
    low, high, slope = 0.0, _LARGEST_SPREAD, 0.0
    best = np.inf
    for _ in range(_MAX_STEPS):
        state = loss.evaluate(slope * unit)
        best = min(best, state.value)
        derivative = -float((state.residual * unit).sum())
        if derivative >= 0.0 and slope == 0.0:
            break
        low, high = (slope, high) if derivative < 0.0 else (low, slope)
        assert state.coupling is not None
        along = state.coupling.apply(unit)
        curvature = float((state.curvature * unit**2).sum() - (along**2).sum())
        step = slope - derivative / curvature if curvature > 0.0 else np.inf
        following = step if low < step < high else 0.5 * (low + high)
        if abs(following - slope) <= _TOLERANCE * max(slope, 1.0):
            break
        slope = following
    return best
