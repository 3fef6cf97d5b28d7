"""What the selector is given: scores to refine, prior groups, and options of what is chosen by name."""

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

# Scores to refine: a name, a function of X and y, or the scores; redundancy: a name, a function of columns, or a matrix.
ScoreLike: TypeAlias = "str | Callable[..., ArrayLike | tuple[ArrayLike, ...]] | ArrayLike"
RedundancyLike: TypeAlias = "str | Callable[..., ArrayLike] | ArrayLike"
GroupsLike: TypeAlias = "FeatureGroups | Sequence[FeatureGroup | ArrayLike] | None"
# Measures that are computed from the columns of the candidates, by name.
MEASURES: dict[str, Callable[..., np.ndarray]] = {
    "mutual_info": mutual_information,
    "sparse_representation": sparse_representation,
}
NO_SCORES = "All scores are 0, so no feature is better than another. Use another score_func, or check y."


def check_given_options(selector: Any) -> None:
    """Refuse options that what they are for does not take."""
    if selector.solution == "set":
        for name, given in (("groups", selector.groups is not None), ("method='alm'", selector.method == "alm")):
            if given:
                raise ValueError(f"{name} is for solution='weights'; a set is chosen without.")
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
            shown = repr(chosen) if isinstance(chosen, str) else "something of your own"
            raise ValueError(f"{name} are for {', '.join(map(repr, known))}; {shown} takes none.")
        taker = known[chosen]
        check_options(name, given, taker.load() if isinstance(taker, Method) else taker)


def named_scores(name: str, parameters: Mapping[str, Any], view: FeatureView, y: TargetsLike) -> np.ndarray:
    """The scores of a filter."""
    return SCORES[name].load()(view.source, y, **{"n_jobs": view.n_threads, **parameters})


def checked_scores(
    score_func: ScoreLike, parameters: Mapping[str, Any], view: FeatureView, X: Any, y: Any, usable: np.ndarray
) -> np.ndarray:
    """Checked scores by a name, a function or an array, 0 for features that are not ``usable``."""
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
        made = score_func(X, y)
        given = made[0] if isinstance(made, tuple) else made
    else:
        given = score_func
    scores = as_numbers(given, "score_func must give numbers")
    if scores.shape != (len(usable),):
        raise ValueError(f"score_func gives scores of shape {scores.shape}, but X has {len(usable)} features.")
    scores[~usable] = 0.0
    if clip:
        np.maximum(scores, 0.0, out=scores)
    _refuse_bad_scores(scores, view.feature_names)
    return scores


def on_redundancy_scale(score_func: ScoreLike, scores: np.ndarray) -> np.ndarray:
    """Relevances between 0 and 1, to be weighed against redundancies between 0 and 1.

    Where the score is made of a squared correlation, that: of Fisher's score the share of the variance that lies between the
    classes, of the absolute correlation its square. Others are divided by the largest.
    """
    if isinstance(score_func, str) and score_func == "fisher":
        return np.asarray(scores / (1.0 + scores))
    if isinstance(score_func, str) and score_func == "correlation":
        return np.asarray(scores**2)
    return np.asarray(scores / scores.max())


def _refuse_bad_scores(scores: np.ndarray, names: Sequence[str] | None) -> None:
    """Raise unless all scores are finite, none is negative, and one is above 0."""
    for bad, what, remedy in (
        (np.isnan(scores), "NaN", "Give every feature a score, 0 for the worst."),
        (np.isinf(scores), "infinite", "Cap the scores at a finite value."),
        (scores < 0, "negative", "Clip the scores at 0 or shift them, so that higher is better and 0 is worst."),
    ):
        if bad.any():
            first = int(np.argmax(bad))
            count = int(np.count_nonzero(bad))
            raise ValueError(
                f"score_func gives {count} {what} score(s), the first to feature {feature_label(names, first)!r}. {remedy}"
            )
    if not scores.any():
        raise ValueError(NO_SCORES)


def group_positions(groups: GroupsLike, source: FeatureSource) -> list[np.ndarray]:
    """The groups as positions of features."""
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
    """Say which members of the groups cannot be candidates."""
    members = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *groups]))
    constant = members[~usable[members]]
    if len(constant):
        label = feature_label(names, constant[0])
        warnings.warn(
            f"{len(constant)} feature(s) of groups, the first of them {label!r}, do not vary and are left out of their "
            "groups.",
            UserWarning,
            stacklevel=5,
        )
