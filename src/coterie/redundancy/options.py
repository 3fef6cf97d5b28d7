"""Options of the selector, and checks of its input: scores to refine, prior groups, and parameters of named scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length

from coterie._parameters import N_BINS, Integer, NotString, Number, OneOf, Rule, Scoring, check, check_options
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.inputs.types import ScoringLike, TargetsLike
from coterie.methods import SCORES
from coterie.redundancy.measures import as_numbers, mutual_information, sparse_representation
from coterie.selection import feature_label, feature_positions

# Scores to refine: a name, a function of X and y, or an array. Redundancy: a name, a function of columns, or a matrix.
ScoreLike: TypeAlias = "str | Callable[..., ArrayLike | tuple[ArrayLike, ...]] | ArrayLike"
RedundancyLike: TypeAlias = "str | Callable[..., ArrayLike] | ArrayLike"
GroupsLike: TypeAlias = "FeatureGroups | Sequence[FeatureGroup | ArrayLike] | None"
# Measures computed from the columns of the candidates, by name.
MEASURES: dict[str, Callable[..., np.ndarray]] = {
    "mutual_info": mutual_information,
    "sparse_representation": sparse_representation,
}
NO_SCORES = "All scores are 0, so features cannot be ranked. Use another score_func, or check y."


@dataclass(frozen=True)
class RefinementOptions:
    """Options of :class:`coterie.GlobalRedundancySelector` that are rarely changed; its docstring describes them."""

    power: float | str = 1.0
    group_strength: float = 1.0
    n_bins: int = 10
    alpha: float = 0.1
    l1_ratio: float = 0.9
    method: str = "working_set"
    penalty_growth: float = 1.03
    penalty_start: float = 0.01
    estimator: BaseEstimator | None = None
    scoring: ScoringLike = None
    tol: float = 1e-5
    max_iter: int = 100

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Self:
        """Return checked options, with defaults for those that are not given."""
        known = [field.name for field in fields(cls)]
        for name, value in (given or {}).items():
            if name not in known:
                raise ValueError(f"options has the key {name!r}, which is not an option. The options are {', '.join(known)}.")
            check(name, value, _RULES[name])
        return cls(**(given or {}))


_RULES: dict[str, Rule] = {
    "power": Number(at_most=64.0) | OneOf("cv"),
    "group_strength": Number(),
    "n_bins": N_BINS,
    "alpha": Number(at_most=1.0),
    "l1_ratio": Number(below=1.0),
    "method": OneOf("working_set", "alm"),
    "penalty_growth": Number(above=1.0, below=2.0),
    "penalty_start": Number(),
    "estimator": NotString("an estimator") | OneOf(None),
    "scoring": Scoring(),
    "tol": Number(),
    "max_iter": Integer(1),
}
# Options of named measures and methods.
MEASURE_OPTIONS = {"mutual_info": ("n_bins",), "sparse_representation": ("alpha", "l1_ratio")}
METHOD_OPTIONS = {"alm": ("penalty_growth", "penalty_start")}


def check_given_options(selector: Any, options: RefinementOptions) -> None:
    """Raise an error for options that do not apply to the selected solution, score, measure or method."""
    if selector.solution == "set":
        for name, given in (("groups", selector.groups is not None), ("method='alm'", options.method == "alm")):
            if given:
                raise ValueError(f"{name} only applies to solution='weights'. Remove it, or set solution='weights'.")
    if selector.score_parameters:
        if not isinstance(selector.score_func, str):
            raise ValueError(
                f"score_parameters only apply to {', '.join(map(repr, SCORES))}, not to a function or an array. Remove them."
            )
        check_options("score_parameters", selector.score_parameters, SCORES[selector.score_func].load())
    for parameter, chosen, known in (
        ("redundancy", selector.redundancy, MEASURE_OPTIONS), ("method", options.method, METHOD_OPTIONS),
    ):  # fmt: skip
        for value, names in known.items():
            misplaced = [name for name in names if name in (selector.options or {})]
            if misplaced and not (isinstance(chosen, str) and chosen == value):
                raise ValueError(f"The option {misplaced[0]} only applies to {parameter}={value!r}. Remove it.")


def named_scores(name: str, parameters: Mapping[str, Any], view: FeatureView, y: TargetsLike) -> np.ndarray:
    """Return the scores of a filter."""
    return SCORES[name].load()(view.source, y, **{"n_jobs": view.n_threads, **parameters})


class CheckedScores(NamedTuple):
    """Scores of all features, and the p-values that a function returned with them."""

    scores: np.ndarray
    p_values: np.ndarray | None


def checked_scores(
    score_func: ScoreLike, parameters: Mapping[str, Any], view: FeatureView, X: Any, y: Any, usable: np.ndarray
) -> CheckedScores:
    """Return checked scores, given a name, a function or an array. Features that are not ``usable`` have a score of 0."""
    clip, p_values = False, None
    given: ArrayLike
    if isinstance(score_func, str):
        given = named_scores(score_func, parameters, view, y)
        clip = SCORES[score_func].signed
    elif callable(score_func):
        if y is not None:
            check_consistent_length(np.empty((view.n_samples, 0)), y)
        if not isinstance(X, FeatureSource):
            X = check_array(X, accept_sparse=True, dtype=None, ensure_all_finite=False)
        returned = score_func(X, y)
        given = returned[0] if isinstance(returned, tuple) else returned
        if isinstance(returned, tuple) and len(returned) > 1:
            p_values = as_numbers(returned[1], "The p-values of score_func must be numbers")
            if p_values.shape != (len(usable),):
                raise ValueError(
                    f"The p-values of score_func have shape {p_values.shape}, but X has {len(usable)} features. Return one "
                    "p-value per feature, or only the scores."
                )
    else:
        given = score_func
    scores = as_numbers(given, "The scores of score_func must be numbers")
    if scores.shape != (len(usable),):
        raise ValueError(f"The scores of score_func have shape {scores.shape}, but X has {len(usable)} features.")
    scores[~usable] = 0.0
    if clip:
        np.maximum(scores, 0.0, out=scores)
    _refuse_bad_scores(scores, view.feature_names)
    return CheckedScores(scores, p_values)


def _refuse_bad_scores(scores: np.ndarray, names: Sequence[str] | None) -> None:
    """Raise an error unless all scores are finite, none is negative, and one is above 0."""
    for bad, what, remedy in (
        (np.isnan(scores), "NaN", "Assign a score to every feature, with 0 for the worst."),
        (np.isinf(scores), "infinite", "Clip the scores at a finite value."),
        (scores < 0, "negative", "Clip the scores at 0 or shift them, so that higher is better and 0 is worst."),
    ):
        if bad.any():
            first = int(np.argmax(bad))
            count = int(np.count_nonzero(bad))
            raise ValueError(
                f"score_func returned {count} {what} score(s), the first for feature {feature_label(names, first)!r}. {remedy}"
            )
    if not scores.any():
        raise ValueError(NO_SCORES)


def group_positions(groups: GroupsLike, source: FeatureSource) -> list[np.ndarray]:
    """Return the groups as positions of features."""
    if groups is None:
        return []
    if not isinstance(groups, Sequence):
        raise ValueError("groups must be FeatureGroups or a list of lists of feature indices or names.")
    return [
        feature_positions(
            group.members if isinstance(group, FeatureGroup) else group,
            source.shape[1], source.feature_names, f"groups[{number}]",
        )
        for number, group in enumerate(groups)
    ]  # fmt: skip


def warn_about_groups(groups: Sequence[np.ndarray], usable: np.ndarray, names: Sequence[str] | None) -> None:
    """Warn if members of the groups cannot be candidates."""
    members = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *groups]))
    constant = members[~usable[members]]
    if len(constant):
        label = feature_label(names, constant[0])
        warnings.warn(
            f"{len(constant)} feature(s) of the groups are constant and are removed from the groups. The first is {label!r}.",
            UserWarning,
            stacklevel=5,
        )
