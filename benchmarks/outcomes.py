"""Recovery of planted groups for odds, counts, costs and numbers with outliers, with each loss that applies.

300 samples and 300 features in 60 blocks of five, whose features have a correlation of about 0.85. Five blocks have an effect
on the outcome, the same for all, with alternating signs. A group is true if its support feature is in such a block. "Found" is
the share of the five blocks that a true group represents. "Significant" are the groups with a q-value of at most 0.1.

To add an outcome (survival times), add an entry of OUTCOMES: a function that draws the target, and its fits.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _record import read_arguments, write_results
from _tables import print_table

import coterie

N_SAMPLES, N_BLOCKS, BLOCK, N_TRUE = 300, 60, 5, 5
N_SEEDS, N_PAIRS = 20, 10
CV = {"max_features_to_select": 12, "Cs": 2, "rule": "one_se", "nested": True, "random_state": 0}


@dataclass(frozen=True)
class Target:
    """A target, and further arguments of the fit, such as an offset."""

    y: np.ndarray
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """An outcome: how it is drawn given the linear predictor, the size of an effect, and the models that are compared."""

    draw: Callable[[np.random.Generator, np.ndarray], Target]
    effect: float
    fits: Mapping[str, Callable[[Target], Any]]


def _classes(rng: np.random.Generator, eta: np.ndarray) -> Target:
    return Target((eta + rng.logistic(size=len(eta)) > 0).astype(int))


def _rare_class(rng: np.random.Generator, eta: np.ndarray) -> Target:
    return Target((eta - 2.0 + rng.logistic(size=len(eta)) > 0).astype(int))


def _three_classes(rng: np.random.Generator, eta: np.ndarray) -> Target:
    return Target(np.digitize(eta + rng.logistic(size=len(eta)), [-1.0, 1.0]))


def _counts(rng: np.random.Generator, eta: np.ndarray) -> Target:
    return Target(rng.poisson(np.exp(1.0 + eta)).astype(float))


def _exposed(rng: np.random.Generator, eta: np.ndarray) -> Target:
    """Counts per exposure with twice the variance of a Poisson distribution."""
    exposure = rng.uniform(0.2, 5.0, len(eta))
    mean = exposure * np.exp(eta)
    return Target(rng.negative_binomial(np.maximum(mean, 1e-9), 0.5).astype(float), {"offset": np.log(exposure)})


def _rare_counts(rng: np.random.Generator, eta: np.ndarray) -> Target:
    return Target(rng.poisson(np.exp(-1.2 + eta)).astype(float))


def _costs(rng: np.random.Generator, eta: np.ndarray) -> Target:
    """Positive numbers whose standard deviation is 0.7 times their mean."""
    return Target(np.exp(7.0 + eta) * rng.gamma(2.0, 0.5, len(eta)))


def _outliers(rng: np.random.Generator, eta: np.ndarray) -> Target:
    return Target(eta + rng.standard_t(1.5, len(eta)))


def _normal(rng: np.random.Generator, eta: np.ndarray) -> Target:
    return Target(eta + rng.standard_normal(len(eta)))


def classifier(loss: str) -> Callable[[Target], Any]:
    """Return a validated classifier with a loss."""
    return lambda _: coterie.GroupDiscoveryClassifierCV(loss=loss, **CV)


def regressor(loss: str) -> Callable[[Target], Any]:
    """Return a validated regressor with a loss."""
    return lambda _: coterie.GroupDiscoveryRegressorCV(loss=loss, **CV)


CLASSIFIERS = {"logistic": classifier("logistic"), "squared_hinge": classifier("squared_hinge")}
COUNTERS = {"poisson": regressor("poisson"), "squared": regressor("squared")}
COSTS = {"gamma": regressor("gamma"), "squared": regressor("squared")}
NUMBERS = {"huber": regressor("huber"), "squared": regressor("squared")}
OUTCOMES: dict[str, Outcome] = {
    "two classes": Outcome(_classes, 0.7, CLASSIFIERS),
    "rare class": Outcome(_rare_class, 0.9, CLASSIFIERS),
    "three classes": Outcome(_three_classes, 0.7, CLASSIFIERS),
    "counts": Outcome(_counts, 0.2, COUNTERS),
    "counts with exposure": Outcome(_exposed, 0.3, {"poisson": regressor("poisson")}),
    "rare counts": Outcome(_rare_counts, 0.45, COUNTERS),
    "costs": Outcome(_costs, 0.3, COSTS),
    "numbers with outliers": Outcome(_outliers, 0.6, NUMBERS),
    "normal numbers": Outcome(_normal, 0.4, NUMBERS),
}


def features(rng: np.random.Generator) -> np.ndarray:
    """Return the features. The first N_TRUE blocks are those with an effect."""
    factors = rng.standard_normal((N_SAMPLES, N_BLOCKS))
    return np.repeat(factors, BLOCK, axis=1) + 0.42 * rng.standard_normal((N_SAMPLES, N_BLOCKS * BLOCK))


def quality(supports: np.ndarray) -> tuple[float, float]:
    """Return the share of the true blocks found, and the share of false groups among the groups."""
    block = supports // BLOCK
    true = block < N_TRUE
    return len(set(block[true].tolist())) / N_TRUE, float(np.mean(~true)) if len(true) else 0.0


def run(outcome: Outcome, name: str, seed: int, n_pairs: int) -> dict[str, Any]:
    """Return the results of one fit with its p-values and q-values."""
    rng = np.random.default_rng(seed)
    X = features(rng)
    signs = np.where(np.arange(N_TRUE) % 2 == 0, 1.0, -1.0)
    target = outcome.draw(rng, outcome.effect * X[:, : N_TRUE * BLOCK : BLOCK] @ signs)
    arguments = dict(target.arguments)
    model = outcome.fits[name](target)
    start = time.perf_counter()
    model.fit(X, target.y, **arguments)
    fitted = time.perf_counter()
    confidence = coterie.group_confidence(model, X, target.y, **arguments, n_pairs=n_pairs, random_state=0)
    done = time.perf_counter()
    significant = np.array([group.support for group in confidence.select(fdr=0.1)], dtype=int)
    found, false = quality(model.groups_.support)
    significant_found, significant_false = quality(significant)
    return {
        "n_groups": len(model.groups_),
        "found": found,
        "false": false,
        "n_significant": len(significant),
        "significant_found": significant_found,
        "significant_false": significant_false,
        "score": model.held_out_scores_[model.scoring_],
        "scoring": model.scoring_,
        "gap": max(model.prediction_gap_, model.dual_gap_),
        "fit_seconds": fitted - start,
        "confidence_seconds": done - fitted,
    }


def summary(outcome: str, name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a row of the table: means over the seeds."""

    def mean(key: str) -> float:
        return float(np.mean([one[key] for one in runs]))

    return {
        "outcome": outcome,
        "loss": name,
        "groups": round(mean("n_groups"), 1),
        "found": round(mean("found"), 2),
        "false": round(mean("false"), 2),
        "significant": round(mean("n_significant"), 1),
        "of these found": round(mean("significant_found"), 2),
        "of these false": round(mean("significant_false"), 3),
        "held-out score": f"{mean('score'):.3f} {runs[0]['scoring']}",
        "largest gap": f"{max(one['gap'] for one in runs):.0e}",
        "s per fit": round(float(np.median([one["fit_seconds"] for one in runs])), 2),
        "s for q-values": round(float(np.median([one["confidence_seconds"] for one in runs])), 2),
    }


def main() -> None:
    options = read_arguments(__doc__, parts=tuple(OUTCOMES))
    n_seeds, n_pairs = (2, 5) if options.quick else (N_SEEDS, N_PAIRS)
    results: dict[str, Any] = {}
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for outcome in [options.only] if options.only else OUTCOMES:
            for name in OUTCOMES[outcome].fits:
                run(OUTCOMES[outcome], name, options.seed, 1)  # compiles
                runs = [run(OUTCOMES[outcome], name, options.seed + seed, n_pairs) for seed in range(n_seeds)]
                results[f"{outcome}, {name}"] = runs
                rows.append(summary(outcome, name, runs))
                print(rows[-1], flush=True)
    print_table(f"Recovery of five planted groups, means over {n_seeds} seeds", rows)
    write_results("outcomes", options, rows=rows, runs=results)


if __name__ == "__main__":
    main()
