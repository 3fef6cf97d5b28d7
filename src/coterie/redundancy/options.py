"""Checks of the selector's input: scores to refine, prior groups, and parameters of named methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length

from coterie._parameters import check_options
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.inputs.types import TargetsLike
from coterie.methods import SCORES, Method
from coterie.redundancy.measures import as_numbers, mutual_information, sparse_representation
from coterie.redundancy.solver import solve_alm
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


def check_given_options(selector: Any) -> None:
    """Raise an error for parameters that do not apply to the selected solution, score, measure or method."""
    if selector.solution == "set":
        for name, given in (("groups", selector.groups is not None), ("method='alm'", selector.method == "alm")):
            if given:
                raise ValueError(f"{name} only applies to solution='weights'. Remove it, or set solution='weights'.")
    known: Mapping[str, Method | Callable[..., Any]]
    for name, chosen, known in (
        ("score_parameters", selector.score_func, SCORES),
        ("redundancy_parameters", selector.redundancy, MEASURES),
        ("method_parameters", selector.method, {"alm": solve_alm}),
    ):
        given = getattr(selector, name)
        if not given:
            continue
        if not isinstance(chosen, str) or chosen not in known:
            shown = repr(chosen) if isinstance(chosen, str) else "a function or an array"
            raise ValueError(f"{name} only apply to {', '.join(map(repr, known))}, not to {shown}. Remove them.")
        function = known[chosen]
        check_options(name, given, function.load() if isinstance(function, Method) else function)


def named_scores(name: str, parameters: Mapping[str, Any], view: FeatureView, y: TargetsLike) -> np.ndarray:
    """Return the scores of a filter."""
    return SCORES[name].load()(view.source, y, **{"n_jobs": view.n_threads, **parameters})


def checked_scores(
    score_func: ScoreLike, parameters: Mapping[str, Any], view: FeatureView, X: Any, y: Any, usable: np.ndarray
) -> np.ndarray:
    """Return checked scores, given a name, a function or an array. Features that are not ``usable`` have a score of 0."""
    clip = False
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
    else:
        given = score_func
    scores = as_numbers(given, "The scores of score_func must be numbers")
    if scores.shape != (len(usable),):
        raise ValueError(f"The scores of score_func have shape {scores.shape}, but X has {len(usable)} features.")
    scores[~usable] = 0.0
    if clip:
        np.maximum(scores, 0.0, out=scores)
    _refuse_bad_scores(scores, view.feature_names)
    return scores


def on_redundancy_scale(score_func: ScoreLike, scores: np.ndarray) -> np.ndarray:
    """Return relevances between 0 and 1, the range of the redundancies.

    Scores derived from a squared correlation are converted to it: the Fisher score to the share of the variance between the
    classes, the absolute correlation to its square. Other scores are divided by the largest.
    """
    if isinstance(score_func, str) and score_func == "fisher":
        return np.asarray(scores / (1.0 + scores))
    if isinstance(score_func, str) and score_func == "correlation":
        return np.asarray(scores**2)
    return np.asarray(scores / scores.max())


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
