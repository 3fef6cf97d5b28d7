"""Quantiles: coverage and pinball loss of ``loss="quantile"`` beside scikit-learn's QuantileRegressor; levels of tests.

Both choose their settings in five inner folds: Coterie by its validated estimator, scikit-learn's L1 penalty by the pinball
loss, on standardised features. Run ``python benchmarks/quantiles.py``.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from _tables import markdown_table
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import GroupDiscoveryRegressorCV
from coterie.solver.quantile import QuantileRegression
from coterie.solver.regression import standardised

_QUANTILES = (0.1, 0.5, 0.9)
_ALPHAS = np.geomspace(1e-3, 0.3, 8)


def simulated(noise: str, n: int = 300, p: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Return features in groups of five (correlation 0.8), of which three change the level of y, and one its spread."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((n, p // 5))
    X = np.sqrt(0.8) * np.repeat(factors, 5, axis=1) + np.sqrt(0.2) * rng.standard_normal((n, p))
    error = rng.standard_t(2, n) if noise == "heavy tails" else rng.standard_normal(n)
    spread = np.exp(0.6 * factors[:, 5]) if noise == "unequal spread" else 1.0
    return X, factors[:, :3] @ np.array([1.0, -1.0, 0.7]) + spread * error


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return real and simulated sets."""
    wine = load_wine().data
    real = {"diabetes": load_diabetes(return_X_y=True), "wine (alcohol)": (wine[:, 1:], wine[:, 0])}
    return real | {f"simulated, {noise}": simulated(noise) for noise in ("normal", "unequal spread", "heavy tails")}


def lasso(X: np.ndarray, y: np.ndarray, quantile: float) -> tuple[GridSearchCV, float]:
    """Return scikit-learn's regressor of y in standard deviations, with the penalty of least pinball loss, and the unit."""
    model = make_pipeline(StandardScaler(), QuantileRegressor(quantile=quantile))
    score = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=quantile)
    scale = float(np.std(y))
    grid = {"quantileregressor__alpha": _ALPHAS}
    folds = KFold(5, shuffle=True, random_state=0)
    return GridSearchCV(model, grid, scoring=score, cv=folds).fit(X, y / scale), scale


def compared() -> None:
    """Print coverage, pinball loss, number of features and processor seconds of both, on five outer folds."""
    rows = []
    for name, (X, y) in data_sets().items():
        for quantile in _QUANTILES:
            found = []
            for train, test in KFold(5, shuffle=True, random_state=1).split(X):
                start = time.process_time()
                own = GroupDiscoveryRegressorCV(20, loss="quantile", quantile=quantile, random_state=0).fit(X[train], y[train])
                middle = time.process_time()
                other, scale = lasso(X[train], y[train], quantile)
                end = time.process_time()
                predicted = own.predict(X[test]), scale * other.predict(X[test])
                found.append(
                    [
                        *(mean_pinball_loss(y[test], values, alpha=quantile) for values in predicted),
                        *((y[test] <= values).mean() for values in predicted),
                        own.n_features_,
                        np.count_nonzero(other.best_estimator_[-1].coef_),
                        middle - start,
                        end - middle,
                        own.dual_gap_,
                    ]
                )
            loss, lasso_loss, share, lasso_share, k, lasso_k, seconds, lasso_seconds, _ = np.mean(found, axis=0)
            rows.append(
                {
                    "data set": name,
                    "quantile": f"{quantile:g}",
                    "pinball loss": f"{loss:.4g}",
                    "of scikit-learn": f"{lasso_loss:.4g}",
                    "ratio": f"{loss / lasso_loss:.3f}",
                    "coverage": f"{share:.3f}",
                    "of scikit-learn ": f"{lasso_share:.3f}",
                    "features": f"{k:.0f}",
                    "of scikit-learn  ": f"{lasso_k:.0f}",
                    "CPU s": f"{seconds:.2f}",
                    "of scikit-learn   ": f"{lasso_seconds:.2f}",
                    "largest gap": f"{np.max(np.array(found)[:, -1]):.0e}",
                }
            )
            print(rows[-1], flush=True)
    print(markdown_table(rows))


def levels(n_seeds: int = 400) -> None:
    """Print the shares of null features with small p-values in joint tests of six features, one of which has an effect."""
    rows = []
    for n in (50, 100, 400):
        for quantile in _QUANTILES:
            for noise in ("normal", "heavy tails", "unequal spread"):
                values = []
                for seed in range(n_seeds):
                    rng = np.random.default_rng(seed)
                    X = rng.standard_normal((n, 6))
                    error = rng.standard_t(2, n) if noise == "heavy tails" else rng.standard_normal(n)
                    spread = 1.0 + np.abs(X[:, 0]) if noise == "unequal spread" else 1.0
                    design = np.column_stack([np.ones(n), standardised(X, np.ones(n))])
                    tests = QuantileRegression(quantile).tests(design, X[:, 1] + spread * error, np.ones(n))
                    values.append(tests.p_value[3:])
                found = np.concatenate(values)
                shares = {f"p ≤ {level:g}": f"{(found <= level).mean():.4f}" for level in (0.05, 0.005)}
                rows.append({"samples": n, "quantile": f"{quantile:g}", "errors": noise, **shares})
    print(markdown_table(rows))


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    compared()
    levels()


if __name__ == "__main__":
    main()
