"""Selection of the pool size, the power of the scores and the strength of redundancy by held-out accuracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import check_scoring
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import type_of_target

from coterie._numba import one_blas_thread
from coterie._warnings import ignored
from coterie.data.source import FeatureSource
from coterie.inputs.arrays import take_samples
from coterie.inputs.folds import Fold
from coterie.inputs.targets import LoneClassWarning
from coterie.inputs.types import ScoringLike, TargetsLike
from coterie.methods import SCORES
from coterie.redundancy.refinement import PoolRule, Refinement
from coterie.validation.score_table import standard_error

# Candidates per feature to select (None: all features; 1: the score alone), and powers of the scores. The first value of
# each is used without validation, and with validation unless another one is better.
FACTORS: tuple[int | None, ...] = (5, 3, 10, 20, None, 1)
POWERS = (1.0, 2.0, 4.0)
# Candidates per member of a set, and strengths of the redundancy within it, in the same order.
SET_FACTORS: tuple[int | None, ...] = (20, 5, 50, None, 1)
STRENGTHS = (2.0, 1.0, 4.0, 0.5)
# Largest default strength for classes; the default is half their number.
_MAX_STRENGTH = 3.0
# Largest numbers of candidates with and without a matrix of all pairs per setting and fold. With 100,000 features, a single
# setting with all of them took longer than all other settings together.
MAX_PAIRED, MAX_VALIDATED = 2000, 50_000
_NEIGHBOURS = 5
# Number of standard errors by which a setting must be better than the first.
_N_STANDARD_ERRORS = 2.0


class RefinementSettings(NamedTuple):
    """Settings of the problem. Without a strength of redundancy it is that of weights, otherwise that of a set."""

    rule: PoolRule
    power: float
    strength: float | None = None


def pool_rules(n_candidates: int | str | None, n_selected: int, *, is_set: bool, paired: bool) -> list[PoolRule]:
    """Return the numbers of candidates to try. The default of a set is limited if all pairs are computed."""
    if not isinstance(n_candidates, str):
        return [PoolRule(None if n_candidates is None else int(n_candidates))]
    factors = (SET_FACTORS if is_set else FACTORS)[: None if n_candidates == "cv" else 1]
    sizes = [None if factor is None else factor * n_selected for factor in factors]
    if is_set and paired and sizes[0] is not None:
        sizes[0] = max(n_selected, min(sizes[0], MAX_PAIRED))
    return [PoolRule(size, grows=factor not in (1, None) and not is_set) for size, factor in zip(sizes, factors, strict=True)]


def default_strength(n_classes: int | None, *, numeric: bool = False) -> float:
    """Return the default strength of redundancy for a number of classes, for numbers, or without labels (None).

    Two features that are independent within each of C classes are nevertheless correlated. Their squared correlation is about
    the product of their shares of variance between the classes, divided by C - 1, so that relevance minus redundancy is
    largest for features with a share of (C - 1)/(2 λ). Half the number of classes moves this to (C - 1)/C.
    """
    if numeric:
        return 1.0
    return STRENGTHS[0] if n_classes is None else min(_MAX_STRENGTH, n_classes / 2)


def strength_for(score_func: object, y: TargetsLike) -> float:
    """Return the default strength for a score and labels. Labels that the score does not use have no effect."""
    unused = isinstance(score_func, str) and not SCORES[score_func].supervised
    if y is None or unused:
        return default_strength(None)
    labels = np.asarray(y)
    kind = type_of_target(labels)
    n_classes = len(np.unique(labels)) if kind in ("binary", "multiclass") else None
    return default_strength(n_classes, numeric=kind.startswith("continuous"))


def strengths_of(given: float | str, default: float) -> tuple[float, ...]:
    """Return the strengths to try, the default first."""
    if given == "auto":
        return (default,)
    return (default, *(one for one in STRENGTHS if one != default)) if given == "cv" else (float(given),)


def settings_of(
    pools: Sequence[PoolRule],
    powers: Sequence[float],
    n_scored: int,
    paired: bool,
    strengths: Sequence[float | None] = (None,),
) -> list[RefinementSettings]:
    """Return all distinct settings. Pools with too many candidates are left out unless there is only one pool.

    ``n_scored`` is the number of features with a score above 0. ``paired`` is True if a matrix of all pairs is computed.
    """
    distinct: dict[tuple[int, bool], PoolRule] = {}
    for rule in pools:
        size = n_scored if rule.size is None else min(rule.size, n_scored)
        if len(pools) == 1 or size <= (MAX_PAIRED if paired else MAX_VALIDATED):
            distinct.setdefault((size, rule.size is None), rule)
    return [RefinementSettings(*one) for one in product(distinct.values(), powers, strengths)]


def default_models(y: np.ndarray, n_train: int) -> list[BaseEstimator]:
    """Return a linear model and nearest neighbours, for classes or numbers. A good selection suits both."""
    n_neighbors = min(_NEIGHBOURS, n_train)
    if is_numeric(y):
        models = [Ridge(), KNeighborsRegressor(n_neighbors)]
    else:
        models = [LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), KNeighborsClassifier(n_neighbors)]
    return [make_pipeline(StandardScaler(), model) for model in models]


def is_numeric(y: np.ndarray) -> bool:
    """Return True if targets are numbers to predict, not classes."""
    return bool(y.dtype.kind == "f" and type_of_target(y).startswith("continuous"))


def validated_scores(
    source: FeatureSource,
    y: np.ndarray,
    folds: Sequence[Fold],
    refinement_of: Callable[[Any, np.ndarray], Refinement],
    settings: Sequence[RefinementSettings],
    n_selected: int,
    models: Sequence[BaseEstimator],
    scoring: ScoringLike,
) -> np.ndarray:
    """Return held-out scores of shape (n_settings, n_folds): means over the models.

    ``refinement_of`` scores the features on the training samples. Held-out samples are not used for the pool or the weights.
    """
    scoring = scoring.item() if isinstance(scoring, np.generic) else scoring  # for readable messages
    if isinstance(scoring, (list, tuple, set, dict)):
        raise ValueError(f"scoring={scoring!r} must be a single score: the name of a scikit-learn score or a function.")
    X = source.block(0, source.shape[1])
    scorers = [check_scoring(model, scoring=scoring) for model in models]
    table = np.empty((len(settings), len(folds)))
    for column, (train, test) in enumerate(folds):
        with ignored(LoneClassWarning):  # the same warning has been issued for all samples
            refinement = refinement_of(take_samples(X, train), y[train])
        known: dict[bytes, float] = {}
        for row, setting in enumerate(settings):
            with ignored(ConvergenceWarning):  # issued by the final fit only
                found = refinement.refine(n_selected, *setting)
            features = np.sort(found.order[:n_selected])
            if features.tobytes() not in known:
                known[features.tobytes()] = _mean_score(X, y, train, test, features, models, scorers)
            table[row, column] = known[features.tobytes()]
    return table


def results_of(settings: Sequence[RefinementSettings], table: np.ndarray, most: int) -> dict[str, np.ndarray]:
    """Return the public table of all settings. ``most`` is the number of features that can be candidates."""
    results = {
        "n_candidates": np.array([most if one.rule.size is None else min(one.rule.size, most) for one in settings]),
        "power": np.array([one.power for one in settings]),
    }
    if settings[0].strength is not None:
        results["redundancy_strength"] = np.array([one.strength for one in settings])
    results |= {"mean_test_score": table.mean(axis=1), "std_test_score": table.std(axis=1)}
    return results | {f"split{number}_test_score": column for number, column in enumerate(table.T)}


def best_setting(table: np.ndarray) -> int:
    """Return the row with the best mean if it is clearly better than the first row, otherwise the first row.

    Clearly better means by more than two standard errors of the differences over the folds. Of equal rows the first is
    returned. The best of many settings is partly best by chance: on small data sets the row with the best mean was less
    accurate on other samples than the first row.
    """
    mean = table.mean(axis=1)
    best = int(np.argmax(mean >= mean.max() - 1e-12))
    gains = table[best] - table[0]
    error = float(standard_error(gains))
    return best if gains.mean() > _N_STANDARD_ERRORS * error else 0


def _mean_score(
    X: Any,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    features: np.ndarray,
    models: Sequence[BaseEstimator],
    scorers: Sequence[Callable[..., float]],
) -> float:
    columns = X[:, features]
    dense = np.asarray(columns.toarray() if sparse.issparse(columns) else columns, dtype=np.float64)
    scores = []
    with one_blas_thread(), ignored():  # warnings about classes of one sample and collinear features
        for model, scorer in zip(models, scorers, strict=True):
            scores.append(scorer(clone(model).fit(dense[train], y[train]), dense[test], y[test]))
    return float(np.mean(scores))
