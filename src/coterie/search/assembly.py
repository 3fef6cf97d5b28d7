"""The outcome of a search: groups, the model that predicts, and the certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from coterie.correlation.purity import group_purity
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.search.loop import CuttingPlane, Round
from coterie.search.oracle import Oracle
from coterie.search.prediction import LinearModel, group_effects, group_model, support_model
from coterie.search.voting import VotingOracle

# Groups whose columns are fetched together, where they are far away.
_TOGETHER = 16
# Fields that are published only where the search has them.
_OPTIONAL = ("covariate_coef", "votes")


@dataclass(frozen=True)
class Outcome:
    """What a search has found; the fitted attributes of an estimator have the names of these fields, with an underscore.

    The fields are described there (:class:`coterie.GroupDiscoveryClassifier`).
    """

    groups: FeatureGroups
    scores: np.ndarray
    support_features: np.ndarray
    support_coef: np.ndarray
    prediction_features: np.ndarray
    prediction_coef: np.ndarray
    prediction_gap: float
    intercept: np.ndarray
    margin: np.ndarray
    covariate_coef: np.ndarray | None
    history: list[Round]
    n_rounds: int
    converged_at: int | None
    objective: float
    dual_gap: float
    lower_bound: float
    upper_bound: float
    block_weights: np.ndarray
    standardize: bool
    dual_coef: np.ndarray
    n_correlations_evaluated: int
    n_correlations_possible: int
    n_passes: float
    votes: np.ndarray | None

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes by name."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return {f"{name}_": value for name, value in content.items() if value is not None or name not in _OPTIONAL}


def outcome_of(loop: CuttingPlane, predict_with: str, classes: np.ndarray | None) -> Outcome:
    """What a loop has found as of its last round.

    Parameters
    ----------
    loop : CuttingPlane
        The loop, with at least one round.
    predict_with : {"support", "groups"}
        Features of the model that predicts.
    classes : ndarray or None
        The classes, for the weights of the groups in each of them.
    """
    oracle, solution, history = loop.oracle, loop.solution, list(loop.history)
    discovered = support_model(loop)
    scores = oracle.final_scores(solution.residual)
    drafts = _drafts(oracle, scores)
    lower, upper, converged_at = loop.final_bounds(scores)
    model = discovered if predict_with == "support" else group_model(loop)
    n_pairs = oracle.view.n_features * (oracle.view.n_features - 1) // 2
    return Outcome(
        groups=_groups(drafts, oracle, history, discovered.coef, model, classes),
        scores=scores,
        support_features=discovered.features,
        support_coef=discovered.coef,
        prediction_features=model.features,
        prediction_coef=model.coef,
        prediction_gap=model.gap,
        intercept=model.intercept,
        margin=model.margin,
        covariate_coef=model.covariate_coef,
        history=history,
        n_rounds=history[-1].round,
        converged_at=converged_at,
        objective=solution.objective,
        dual_gap=solution.gap,
        lower_bound=lower,
        upper_bound=upper,
        block_weights=loop.block_weights,
        standardize=oracle.view.scale is not None,
        dual_coef=solution.residual.T,
        # A pair that is evaluated in several rounds is one pair; which pairs were evaluated is not recorded.
        n_correlations_evaluated=min(oracle.n_evaluated, n_pairs),
        n_correlations_possible=n_pairs,
        n_passes=1.0 + oracle.n_passes,  # the first is that of the moments
        votes=oracle.votes if isinstance(oracle, VotingOracle) else None,
    )


class _Draft(NamedTuple):
    """A group to be: members, the support feature first, correlations of the others with it, and scores of all members."""

    members: np.ndarray
    correlation: np.ndarray
    scores: np.ndarray


def _drafts(oracle: Oracle, scores: np.ndarray) -> list[_Draft]:
    """All groups in order of selection; their members by correlation, the strongest first, then by feature."""
    found = oracle.collect()  # in order of feature
    member_scores, support_scores = scores[found.feature], scores[oracle.supports]
    order = np.lexsort((-np.abs(found.correlation), found.support))
    bounds = np.searchsorted(found.support[order], np.arange(len(oracle.supports) + 1))
    drafts = []
    for position, support in enumerate(oracle.supports):
        own = order[bounds[position] : bounds[position + 1]]
        members = np.append(support, found.feature[own])
        drafts.append(_Draft(members, found.correlation[own], np.append(support_scores[position], member_scores[own])))
    return drafts


def _groups(
    drafts: Sequence[_Draft],
    oracle: Oracle,
    history: Sequence[Round],
    coef: np.ndarray,
    model: LinearModel,
    classes: np.ndarray | None,
) -> FeatureGroups:
    """The groups that users see.

    Parameters
    ----------
    drafts : sequence of _Draft
        Members, correlations and scores.
    oracle : Oracle
        The oracle that found them.
    history : sequence of Round
        The rounds.
    coef : ndarray of shape (n_outputs, n_support)
        Weights of the support features in the model of the search.
    model : LinearModel
        The model that predicts, for the effects.
    classes : ndarray or None
        The classes.
    """
    view = oracle.view
    effects = group_effects(
        drafts, model.features, model.coef, view.moments.norm[model.features] / np.sqrt(view.moments.total_weight)
    )
    weights, sizes = _signed_or_norm(coef), _signed_or_norm(effects.T)
    by_class, rounds, names = _class_weights(coef, classes), _rounds(history), view.feature_names
    groups = []
    for position, draft in enumerate(drafts):
        if position % _TOGETHER == 0:
            view.source.prefetch(np.concatenate([soon.members[1:] for soon in drafts[position : position + _TOGETHER]]))
        groups.append(
            FeatureGroup(
                support=int(draft.members[0]),
                affiliated=draft.members[1:],
                correlation=draft.correlation,
                names=None if names is None else tuple(str(names[j]) for j in draft.members),
                score=float(draft.scores[0]),
                affiliated_scores=draft.scores[1:],
                weight=float(weights[position]),
                round=int(rounds[position]),
                purity=group_purity(oracle.correlation, draft.members),
                class_weights=None if by_class is None else by_class[position],
                effect=float(sizes[position]),
            )
        )
    return FeatureGroups(groups)


def _rounds(history: Sequence[Round]) -> np.ndarray:
    """The round of each support feature: that of the first block that it is in."""
    blocks = np.concatenate([entry.features for entry in history] or [np.empty(0, int)])
    first = np.sort(np.unique(blocks, return_index=True)[1])
    return np.concatenate([np.full(len(entry.features), entry.round) for entry in history] or [np.empty(0, int)])[first]


def _signed_or_norm(values: np.ndarray) -> np.ndarray:
    """One number per column of values of shape (n_outputs, n): the value itself of one output, the norm of several."""
    return values[0] if len(values) == 1 else np.linalg.norm(values, axis=0)


def _class_weights(coef: np.ndarray, classes: np.ndarray | None) -> list[dict[Any, float]] | None:
    """Signed weights of each support feature by class; of two classes, one has the weight and the other its negative."""
    if classes is None:
        return None
    signed = coef if len(classes) > 2 else np.vstack([-coef, coef])
    return [dict(zip(classes.tolist(), own, strict=True)) for own in (signed + 0.0).T.tolist()]  # + 0.0: no -0.0
