"""The outcome of a search: the linear model that predicts, the groups, and the certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from coterie.correlation.compatibility import unconstrained
from coterie.correlation.grouping import group_purity
from coterie.correlation.pearson import PearsonCorrelation
from coterie.correlation.units import UnitCorrelation
from coterie.data.view import FeatureView
from coterie.groups import FeatureGroup, FeatureGroups
from coterie.groups.moments import MemberMoments
from coterie.search.loop import CuttingPlane, Round
from coterie.search.oracle import Oracle
from coterie.search.voting import VotingOracle
from coterie.solver.block_problem import Solution
from coterie.solver.design import Rows, design_of
from coterie.solver.loss import MERGING, LossState, require
from coterie.solver.ridge import fit_ridge


@dataclass(frozen=True)
class LinearModel:
    """A linear model on some features, in their original scale.

    Attributes
    ----------
    features : ndarray of int of shape (n_used,)
        Features that the model uses.
    coef : ndarray of shape (n_outputs, n_used)
        Weights of these features.
    intercept, margin : ndarray of shape (n_outputs,)
        Offset and margin.
    gap : float
        Certified relative duality gap of the model's problem.
    covariate_coef : ndarray of shape (n_outputs, n_covariates) or None
        Weights of the covariates, if there are any.
    """

    features: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    margin: np.ndarray
    gap: float
    covariate_coef: np.ndarray | None = None


def support_model(loop: CuttingPlane) -> LinearModel:
    """Return the model of the search: support features with the weights of the last master problem."""
    solution, supports = loop.solution, loop.oracle.supports
    state = solution.state
    model = unscaled(loop.oracle.view, supports, loop.coef, state.intercept, state.margin, solution.gap)
    return replace(model, covariate_coef=covariate_coef([state]))


def group_model(loop: CuttingPlane) -> LinearModel:
    """Return a model with the same loss and a squared norm on all members of the groups (ICML 2012, section 4)."""
    oracle = loop.oracle
    members = np.union1d(oracle.supports, oracle.collect().feature)
    coef, parts = fit_members(loop, members)
    model = unscaled(
        oracle.view,
        members,
        coef,
        np.concatenate([part.state.intercept for part in parts]),
        np.concatenate([part.state.margin for part in parts]),
        max(part.gap for part in parts),
    )
    return replace(model, covariate_coef=covariate_coef([part.state for part in parts]))


def covariate_coef(states: Sequence[LossState]) -> np.ndarray | None:
    """Return the covariates' weights, of shape (n_outputs, n_covariates), from loss states. None without covariates."""
    known = [state.covariate_coef for state in states if state.covariate_coef is not None]
    return np.hstack(known).T if known else None


def fit_members(loop: CuttingPlane, members: np.ndarray, start: np.ndarray | None = None) -> tuple[np.ndarray, list[Solution]]:
    """Fit a linear model with a loop's loss on the features ``members``, which need not be its current features.

    ``start`` contains weights near the optimum, of the same shape as the result, if they are known.

    Returns the weights of their columns, of shape (n_members, n_outputs), and the solution for each output.
    """
    loss = loop.master.loss
    require(loss, ("plain",), "predict_with='groups'")
    # Samples of weight zero are dropped to save time.
    rows = Rows(loss.kinds(), merge=False) if loss.parts.issuperset(MERGING) else None
    design = design_of(loop.oracle.view)
    design.append(members, rows)
    used = loss if rows is None or rows.is_all else loss.merged(rows)
    parts = [fit_ridge(part, design, start=None if start is None else start[:, [c]]) for c, part in enumerate(used.plain())]
    return np.hstack([part.coef for part in parts]), parts


def unscaled(
    view: FeatureView, features: np.ndarray, coef: np.ndarray, intercept: np.ndarray, margin: np.ndarray, gap: float
) -> LinearModel:
    """Return the model in the original scale, given the weights of centred and scaled columns."""
    original = (coef / view.scales(features)[:, None]).T
    return LinearModel(features, original, intercept - original @ view.centre(features), margin.copy(), gap)


class HasMembers(Protocol):
    """A group with members, the support feature first, and correlations of the others with it."""

    @property
    def members(self) -> np.ndarray:
        """Features of the group, the support feature first."""
        ...

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the affiliated features with the support feature."""
        ...


def output_changes(groups: Sequence[HasMembers], features: np.ndarray, coef: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the effect of each group on the outputs of a linear model, of shape (n_groups, n_outputs).

    The effect is the change of an output if the support feature increases by one standard deviation and the other members
    that the model uses change in proportion to their correlations. For a model on support features alone, it is the weight
    times the standard deviation.

    Parameters
    ----------
    groups : FeatureGroups, or a sequence of groups
        The groups.
    features, coef
        Features that the model uses, and their weights of shape (n_outputs, n_used).
    scale : ndarray of shape (n_used,)
        Standard deviations of these features.
    """
    order = np.argsort(features, kind="stable")
    known = np.asarray(features)[order]
    standardised = (coef * scale)[:, order]
    effects = np.zeros((len(groups), len(coef)))
    for number, group in enumerate(groups):
        members = group.members
        place = np.minimum(np.searchsorted(known, members), len(known) - 1)
        read = known[place] == members
        follows = np.append(1.0, np.nan_to_num(group.correlation))
        effects[number] = standardised[:, place[read]] @ follows[read]
    return effects


# Groups whose columns are prefetched together, for sources that are not in memory.
_PREFETCHED_GROUPS = 16
# Fields that become fitted attributes only if they are not None.
_OPTIONAL = ("covariate_coef", "votes")


@dataclass(frozen=True)
class Outcome:
    """Result of a search. Fitted attributes of an estimator have the names of these fields, with a trailing underscore.

    See :class:`coterie.GroupDiscoveryClassifier` for their descriptions.
    """

    groups: FeatureGroups
    scores: np.ndarray
    support_features: np.ndarray
    support_coef: np.ndarray
    prediction_features: np.ndarray
    prediction_coef: np.ndarray
    prediction_gap: float
    member_moments: MemberMoments
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
        """Return the fitted attributes by name."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return {f"{name}_": value for name, value in content.items() if value is not None or name not in _OPTIONAL}


def outcome_of(loop: CuttingPlane, predict_with: str, classes: np.ndarray | None, *, one_class: bool = False) -> Outcome:
    """Return the result of a loop as of its last round.

    Parameters
    ----------
    loop : CuttingPlane
        The loop, with at least one round.
    predict_with : {"support", "groups"}
        Features of the predictive model.
    classes : ndarray or None
        The classes, for the weights of the groups per class.
    one_class : bool, default=False
        Whether the model has no target, so that the effect of a group is the change of the output.
    """
    oracle, solution, history = loop.oracle, loop.solution, list(loop.history)
    discovered = support_model(loop)
    scores = oracle.final_scores(solution.residual)
    drafts = _drafts(oracle, scores)
    lower, upper, converged_at = loop.final_bounds(scores)
    model = discovered if predict_with == "support" else group_model(loop)
    n_pairs = oracle.view.n_features * (oracle.view.n_features - 1) // 2
    return Outcome(
        groups=_groups(drafts, oracle, history, discovered.coef, model, classes, one_class),
        scores=scores,
        support_features=discovered.features,
        support_coef=discovered.coef,
        prediction_features=model.features,
        prediction_coef=model.coef,
        prediction_gap=model.gap,
        member_moments=_member_moments(drafts, oracle, model),
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
        # The identity of evaluated pairs is not recorded. A pair that was evaluated in several rounds must not raise the count
        # above the number of pairs.
        n_correlations_evaluated=min(oracle.n_evaluated, n_pairs),
        n_correlations_possible=n_pairs,
        n_passes=1.0 + oracle.n_passes,  # The first pass computes the moments.
        votes=oracle.votes if isinstance(oracle, VotingOracle) else None,
    )


class _Draft(NamedTuple):
    """Unfinished group: members, support feature first, correlations of the others with it, and scores of all members."""

    members: np.ndarray
    correlation: np.ndarray
    scores: np.ndarray


def _drafts(oracle: Oracle, scores: np.ndarray) -> list[_Draft]:
    """Return all groups in order of selection, their members in order of decreasing correlation, then of feature."""
    found = oracle.collect()  # Sorted by feature, so the stable sort below keeps this order for equal correlations.
    member_scores, support_scores = scores[found.feature], scores[oracle.supports]
    order = np.lexsort((-np.abs(found.correlation), found.support))
    bounds = np.searchsorted(found.support[order], np.arange(len(oracle.supports) + 1))
    drafts = []
    for position, support in enumerate(oracle.supports):
        own = order[bounds[position] : bounds[position + 1]]
        members = np.append(support, found.feature[own])
        correlation = _reported(oracle, int(support), found.feature[own], found.correlation[own])
        drafts.append(_Draft(members, correlation, np.append(support_scores[position], member_scores[own])))
    return drafts


def _reported(oracle: Oracle, support: int, features: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return correlations as the measure gives them. In the search, features of one column count as perfectly correlated."""
    measure = oracle.correlation
    if isinstance(measure, UnitCorrelation):
        correlation = correlation.copy()
        same = measure.units[features] == measure.units[support]
        if same.any():
            correlation[same] = measure.measure.between(np.array([support]), features[same])[0]
    return correlation


def _member_moments(drafts: Sequence[_Draft], oracle: Oracle, model: LinearModel) -> MemberMoments:
    """Return the moments of the members of all groups, and the standard deviations of the outputs."""
    view = oracle.view
    members = np.concatenate([draft.members for draft in drafts] or [np.empty(0, dtype=np.int64)])
    outputs = np.asarray(view.columns(model.features) @ model.coef.T, dtype=np.float64)
    weight = np.ones(len(outputs)) if view.sample_weight is None else view.sample_weight
    variance = weight @ (outputs - weight @ outputs / weight.sum()) ** 2 / weight.sum()
    correlation = np.concatenate([_pearson(draft, oracle) for draft in drafts] or [np.empty(0)])
    scale = view.moments.norm[members] / np.sqrt(view.moments.total_weight)
    return MemberMoments(view.moments.mean[members], scale, correlation, np.sqrt(variance))


def _pearson(draft: _Draft, oracle: Oracle) -> np.ndarray:
    """Return Pearson's correlations of the members of a group with its support feature."""
    if isinstance(unconstrained(oracle.correlation), PearsonCorrelation):
        own = draft.correlation
    else:
        own = PearsonCorrelation(oracle.view).between(draft.members[1:], draft.members[:1])[:, 0]
    return np.append(1.0, np.clip(own, -1.0, 1.0))


def _groups(
    drafts: Sequence[_Draft],
    oracle: Oracle,
    history: Sequence[Round],
    coef: np.ndarray,
    model: LinearModel,
    classes: np.ndarray | None,
    one_class: bool,
) -> FeatureGroups:
    """Return the groups as public objects.

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
        The predictive model, which uses a group if it has a nonzero weight of a member.
    classes : ndarray or None
        The classes.
    one_class : bool
        Whether the effect of a group is the change of the output.
    """
    view = oracle.view
    scale = view.moments.norm[model.features] / np.sqrt(view.moments.total_weight)
    changes = output_changes(drafts, model.features, model.coef, scale)[:, 0].tolist() if one_class else None
    weights, nonzero = _signed_or_norm(coef), np.sort(model.features[model.coef.any(axis=0)])
    by_class, rounds, names = _class_weights(coef, classes), _rounds(history), view.feature_names
    groups = []
    for position, draft in enumerate(drafts):
        if position % _PREFETCHED_GROUPS == 0:
            view.source.prefetch(
                np.concatenate([soon.members[1:] for soon in drafts[position : position + _PREFETCHED_GROUPS]])
            )
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
                purity=group_purity(unconstrained(oracle.correlation), draft.members),
                class_weights=None if by_class is None else by_class[position],
                effect=None if changes is None else changes[position],
                used=bool(np.isin(draft.members, nonzero).any()),
            )
        )
    return FeatureGroups(groups)


def _rounds(history: Sequence[Round]) -> np.ndarray:
    """Return the round of each support feature, which is that of the first block that contains it."""
    blocks = np.concatenate([entry.features for entry in history] or [np.empty(0, int)])
    first = np.sort(np.unique(blocks, return_index=True)[1])
    return np.concatenate([np.full(len(entry.features), entry.round) for entry in history] or [np.empty(0, int)])[first]


def _signed_or_norm(values: np.ndarray) -> np.ndarray:
    """Return one number per column of shape (n_outputs, n): the value for one output, the norm for several."""
    return values[0] if len(values) == 1 else np.linalg.norm(values, axis=0)


def _class_weights(coef: np.ndarray, classes: np.ndarray | None) -> list[dict[Any, float]] | None:
    """Return the signed weights of each support feature by class. With two classes, one weight is the other's negative."""
    if classes is None:
        return None
    signed = coef if len(classes) > 2 else np.vstack([-coef, coef])
    return [dict(zip(classes.tolist(), own, strict=True)) for own in (signed + 0.0).T.tolist()]  # + 0.0 turns -0.0 into 0.0.
