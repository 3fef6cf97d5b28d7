"""The linear model that predicts: that of the discovery, or one on support and affiliated features together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.discovery.loop import CuttingPlane
from coterie.discovery.oracle import Oracle
from coterie.solver.design import DenseDesign, Design, SparseDesign
from coterie.solver.losses import require
from coterie.solver.ridge import fit_ridge


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
    """

    features: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    margin: np.ndarray
    gap: float


def support_model(loop: CuttingPlane) -> LinearModel:
    """The discovery's own model: support features with the weights of the last master problem."""
    solution, supports = loop.solution, loop.oracle.supports
    state = solution.state
    return _unscaled(loop.oracle, supports, solution.coef, state.intercept, state.margin, solution.gap)


def group_model(loop: CuttingPlane) -> LinearModel:
    """A model with the same loss on all members of the groups, with a plain squared norm (ICML 2012, section 4)."""
    require(loop.master.loss, ("plain",), "predict_with='groups'")
    oracle = loop.oracle
    members = np.union1d(oracle.supports, oracle.collect().feature)
    n_samples = oracle.source.shape[0]
    design: Design = SparseDesign(n_samples) if oracle.source.is_sparse else DenseDesign(n_samples)
    design.append(oracle.source.columns(members), oracle.centre(members), oracle.scales(members))
    parts = [fit_ridge(loss, design) for loss in loop.master.loss.plain()]
    return _unscaled(
        oracle,
        members,
        np.hstack([part.coef for part in parts]),
        np.concatenate([part.state.intercept for part in parts]),
        np.concatenate([part.state.margin for part in parts]),
        max(part.gap for part in parts),
    )


def _unscaled(
    oracle: Oracle, features: np.ndarray, coef: np.ndarray, intercept: np.ndarray, margin: np.ndarray, gap: float
) -> LinearModel:
    """Weights of centred and scaled columns as those of the features themselves."""
    original = (coef / oracle.scales(features)[:, None]).T
    return LinearModel(features, original, intercept - original @ oracle.centre(features), margin.copy(), gap)


def classes_of(classes: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The classes that decision values stand for."""
    return classes[(scores > 0).astype(np.int64) if scores.ndim == 1 else np.argmax(scores, axis=1)]
