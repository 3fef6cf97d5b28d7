"""The linear model that predicts: that of the discovery, or one on support and affiliated features together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import sparse

from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.search.loop import CuttingPlane
from coterie.solver.block_problem import Solution
from coterie.solver.design import design_of
from coterie.solver.losses import MERGING, LossState, require
from coterie.solver.ridge import fit_ridge
from coterie.solver.rows import Rows


@dataclass(frozen=True)
class LinearModel:
    """A linear model on some features, in their original scale.

    Attributes
    ----------
    features : ndarray of int of shape (n_used,)
        The features it reads.
    coef : ndarray of shape (n_outputs, n_used)
        Their weights.
    intercept, margin : ndarray of shape (n_outputs,)
        Offset and margin.
    gap : float
        Certified relative gap of the problem that it solves.
    covariate_coef : ndarray of shape (n_outputs, n_covariates) or None
        Weights of the covariates, where there are any.
    """

    features: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    margin: np.ndarray
    gap: float
    covariate_coef: np.ndarray | None = None

    def outputs(self, source: FeatureSource, samples: np.ndarray, covariates: np.ndarray | None = None) -> np.ndarray:
        """Outputs for some samples, of shape (n_samples, n_outputs); the covariates are those of all samples."""
        columns = source.columns(self.features)
        rows = columns[samples] if isinstance(columns, np.ndarray) else sparse.csr_array(columns)[samples]
        outputs = np.asarray(rows @ self.coef.T) + self.intercept
        if covariates is None or self.covariate_coef is None:
            return outputs
        return outputs + covariates[samples] @ self.covariate_coef.T


def support_model(loop: CuttingPlane) -> LinearModel:
    """The discovery's own model: support features with the weights of the last master problem."""
    solution, supports = loop.solution, loop.oracle.supports
    state = solution.state
    model = unscaled(loop.oracle.view, supports, loop.coef, state.intercept, state.margin, solution.gap)
    return replace(model, covariate_coef=covariate_coef([state]))


def group_model(loop: CuttingPlane) -> LinearModel:
    """A model with the same loss on all members of the groups, with a plain squared norm (ICML 2012, section 4)."""
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
    """Weights of the covariates, of shape (n_outputs, n_covariates), from the states of the outputs; None without any."""
    known = [state.covariate_coef for state in states if state.covariate_coef is not None]
    return np.hstack(known).T if known else None


def fit_members(loop: CuttingPlane, members: np.ndarray) -> tuple[np.ndarray, list[Solution]]:
    """A linear model of a loop's loss on some features, which need not be those that it has now.

    Returns the weights of their columns (n_members, n_outputs), and the solution for each output.
    """
    loss = loop.master.loss
    require(loss, ("plain",), "predict_with='groups'")
    rows = Rows(loss.kinds(), merge=False) if loss.parts.issuperset(MERGING) else None  # samples of weight zero only cost time
    design = design_of(loop.oracle.view)
    design.append(members, rows)
    used = loss if rows is None or rows.is_all else loss.merged(rows)
    parts = [fit_ridge(part, design) for part in used.plain()]
    return np.hstack([part.coef for part in parts]), parts


def unscaled(
    view: FeatureView, features: np.ndarray, coef: np.ndarray, intercept: np.ndarray, margin: np.ndarray, gap: float
) -> LinearModel:
    """Weights of centred and scaled columns as those of the features themselves."""
    original = (coef / view.scales(features)[:, None]).T
    return LinearModel(features, original, intercept - original @ view.centre(features), margin.copy(), gap)


class HasMembers(Protocol):
    """A group: its members, the support feature first, and the correlations of the others with it."""

    @property
    def members(self) -> np.ndarray:
        """The features."""
        ...

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the affiliated features."""
        ...


def group_effects(groups: Sequence[HasMembers], features: np.ndarray, coef: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """What each group does to the outputs of a linear model, of shape (n_groups, n_outputs).

    The change of an output when the support feature rises by one standard deviation and the other members that the model
    reads follow by their correlations. Of a model on support features alone, the weight times the standard deviation.

    Parameters
    ----------
    groups : FeatureGroups, or a sequence of groups
        The groups.
    features, coef
        The features that the model reads, and their weights of shape (n_outputs, n_used).
    scale : ndarray of shape (n_used,)
        Their standard deviations.
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
