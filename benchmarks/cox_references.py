"""Coefficients, survival functions and concordance of Coterie beside lifelines, scikit-survival and skglm.

Requires ``pip install -e '.[survival-peers]'``. Run ``python benchmarks/cox_references.py``.

With one block of features, the penalty of group discovery is half the squared norm of the weights. For given features it
is then the ridge penalty of scikit-survival's ``CoxPHSurvivalAnalysis(alpha=1 / C)``. With a large C, the coefficients are
those of the unpenalised likelihood of lifelines. Uno's index differs from scikit-survival's if samples are censored at event
times (see coterie.validation.survival.censoring_weights).
"""

from __future__ import annotations

import warnings

import numpy as np
from lifelines import CoxPHFitter
from lifelines.utils import concordance_index as lifelines_index
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import concordance_index_censored, concordance_index_ipcw
from sksurv.util import Surv

from coterie import GroupDiscoverySurvival
from coterie.inputs.survival import survival_targets
from coterie.metrics import concordance_index
from coterie.solver.cox import CoxLoss


def simulated(n: int = 300, p: int = 6, *, ties: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, times and events, with many ties if required."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    time, end = rng.exponential(np.exp(-X[:, 0] + 0.5 * X[:, 1])), rng.exponential(2.0, n)
    observed = np.minimum(time, end)
    return X, np.ceil(10 * observed) if ties else observed, time <= end


def fitted(X: np.ndarray, y: np.ndarray, C: float, ties: str) -> GroupDiscoverySurvival:
    """Return a model on all features as one block."""
    model = GroupDiscoverySurvival(
        X.shape[1], n_features_per_round=X.shape[1], correlation=None, C=C, ties=ties, standardize=False, tol=1e-10
    )
    return model.fit(X, y)


def main() -> None:
    """Print the largest differences."""
    warnings.simplefilter("ignore")
    rows = []
    for tied in (False, True):
        X, time, event = simulated(ties=tied)
        y, structured = np.column_stack([time, event]), Surv.from_arrays(event, time)
        for ties in ("breslow", "efron"):
            for C in (0.1, 1e5):
                own = fitted(X, y, C, ties)
                other = CoxPHSurvivalAnalysis(alpha=1 / C, ties=ties, tol=1e-12).fit(X, structured)
                rows.append((f"scikit-survival, {ties}, C={C:g}, ties={tied}", np.abs(own.coef_ - other.coef_).max()))
            if ties == "breslow":
                times = own.event_times_
                found = own.predict_survival_function(X[:20])
                expected = np.stack([curve(times) for curve in other.predict_survival_function(X[:20])])
                rows.append((f"scikit-survival, survival functions, ties={tied}", np.abs(found - expected).max()))
        import pandas as pd

        frame = pd.DataFrame(X).assign(time=time, event=event)
        reference = CoxPHFitter().fit(frame, "time", "event", fit_options={"precision": 1e-10})
        own = fitted(X, y, 1e7, "efron")
        rows.append((f"lifelines, efron, ties={tied}", np.abs(own.coef_ - reference.params_.to_numpy()).max()))
        loss = CoxLoss(survival_targets(event, time), np.ones(len(time)), 1.0, "efron")
        at_zero = CoxLoss(survival_targets(event, time), np.ones(len(time)), 1.0, "efron").evaluate(np.zeros((len(time), 1)))
        gain = 2 * (at_zero.value - loss.evaluate((X @ own.coef_)[:, None]).value)
        rows.append((f"lifelines, likelihood ratio statistic, ties={tied}",
                     abs(gain - reference.log_likelihood_ratio_test().test_statistic)))  # fmt: skip
        risk = own.predict(X)
        rows.append((f"scikit-survival, Harrell's index, ties={tied}",
                     abs(concordance_index(y, risk) - concordance_index_censored(event, time, risk)[0])))  # fmt: skip
        rows.append((f"lifelines, Harrell's index, ties={tied}",
                     abs(concordance_index(y, risk) - lifelines_index(time, -risk, event))))  # fmt: skip
        tau = float(np.quantile(time, 0.8))
        rows.append((f"scikit-survival, Uno's index, ties={tied}",
                     abs(concordance_index(y, risk, censoring=y, tau=tau)
                         - concordance_index_ipcw(structured, structured, risk, tau=tau)[0])))  # fmt: skip
    rows += with_entry_times() + with_skglm()
    for name, difference in rows:
        print(f"{name:70s} {difference:.1e}")


def with_entry_times() -> list[tuple[str, float]]:
    """Return differences from lifelines with entry times: coefficients, and the increase of the baseline hazard."""
    import pandas as pd

    rows = []
    for tied in (False, True):
        X, time, event = simulated(600, ties=tied)
        entry = np.random.default_rng(1).uniform(0.0, np.quantile(time, 0.5), len(time))
        entry = np.floor(entry) if tied else entry
        seen = entry < time
        X, table = X[seen], pd.DataFrame({"time": time, "event": event, "entry": entry})[seen].reset_index(drop=True)
        frame = pd.DataFrame(X).join(table)
        reference = CoxPHFitter().fit(frame, "time", "event", entry_col="entry", fit_options={"precision": 1e-10})
        own = fitted(X, table, 1e7, "efron")
        rows.append((f"lifelines, entry times, efron, ties={tied}", np.abs(own.coef_ - reference.params_.to_numpy()).max()))
        loss = CoxLoss(survival_targets(table["event"], table["time"], entry=table["entry"]), np.ones(len(X)), 1.0, "efron")
        value = loss.evaluate(np.zeros((len(X), 1))).value - loss.evaluate((X @ own.coef_)[:, None]).value
        statistic = reference.log_likelihood_ratio_test().test_statistic
        rows.append((f"lifelines, entry times, likelihood ratio statistic, ties={tied}", abs(2 * value - statistic)))
    return rows


def with_skglm() -> list[tuple[str, float]]:
    """Return differences from skglm: value and gradient of its Cox datafit, which is divided by the number of samples."""
    from skglm.datafits import Cox
    from skglm.utils.jit_compilation import compiled_clone

    rows = []
    for ties in ("breslow", "efron"):
        X, time, event = simulated()
        datafit = compiled_clone(Cox(use_efron=ties == "efron"))
        y = np.column_stack([time, event]).astype(np.float64)
        datafit.initialize(X, y)
        z = X[:, 0] - X[:, 1]
        loss = CoxLoss(survival_targets(event, time), np.ones(len(z)), 1.0, ties)
        gradient = datafit.raw_grad(y, z) * len(z)
        rows.append((f"skglm, {ties}, gradient", float(np.abs(gradient + loss.evaluate(z[:, None]).residual[:, 0]).max())))
        values = [datafit.value(y, np.zeros(X.shape[1]), own) * len(z) for own in (z, np.zeros(len(z)))]
        own = [loss.evaluate(part[:, None]).value for part in (z, np.zeros(len(z)))]
        rows.append((f"skglm, {ties}, difference of two values", abs((values[0] - values[1]) - (own[0] - own[1]))))
    return rows


if __name__ == "__main__":
    main()
