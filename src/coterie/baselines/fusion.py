"""The fusion penalty over signed edges, which the graph-guided methods share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie._numba import read_only
from coterie.baselines.graph import FeatureGraph
from coterie.kernels.shrinkage import fuse

_MAX_SWEEPS = 500


class Edges(NamedTuple):
    """Pairs of features with the sign that their coefficients are to agree in, and the weight of each pair."""

    first: np.ndarray
    second: np.ndarray
    sign: np.ndarray
    weight: np.ndarray

    def differences(self, coef: np.ndarray) -> np.ndarray:
        """What is penalised: the first coefficient less the sign times the second."""
        return coef[self.first] - self.sign * coef[self.second]

    def gather(self, dual: np.ndarray, n_features: int) -> np.ndarray:
        """The transpose of :meth:`differences`."""
        return np.bincount(self.first, dual, n_features) - np.bincount(self.second, self.sign * dual, n_features)


def both_signs(graph: FeatureGraph) -> Edges:
    """Each edge twice, for the sum and the difference: together twice the larger of the two sizes."""
    sign = np.repeat([1.0, -1.0], len(graph.first))
    return Edges(np.tile(graph.first, 2), np.tile(graph.second, 2), sign, np.ones(len(sign)))


class FusedPenalty:
    r""":math:`\lambda\|w\|_1 + \mu\sum_e \omega_e |w_i - s_e w_j| - c'w`, with its proximal step.

    That of the fusion alone comes first, by the dual; then soft thresholding. This is exact for the sum of both, since
    thresholding is odd and monotone and thus keeps the sign of every difference.

    Parameters
    ----------
    lasso, fusion : float
        :math:`\lambda` and :math:`\mu`.
    edges : Edges
        The pairs, signs and weights.
    linear : ndarray of shape (n_features,) or None
        c.
    precision : float
        Largest change of an edge in the last sweep of the dual, relative to the largest entry.
    """

    def __init__(
        self, lasso: float, fusion: float, edges: Edges, *, linear: np.ndarray | None = None, precision: float = 1e-12
    ) -> None:
        self.lasso = lasso
        self.fusion = fusion
        self.edges = edges
        self.linear = linear
        self.precision = precision
        self.dual = np.zeros(len(edges.first))  # of the last step: a good first guess for the next

    def value(self, coef: np.ndarray) -> float:
        """The penalty of some coefficients."""
        fused = self.fusion * float(self.edges.weight @ np.abs(self.edges.differences(coef)))
        tilt = 0.0 if self.linear is None else float(self.linear @ coef)
        return self.lasso * float(np.abs(coef).sum()) + fused - tilt

    def prox(self, point: np.ndarray, step: float) -> np.ndarray:
        """Fusion, then soft thresholding."""
        fused = point.copy() if self.linear is None else point + step * self.linear
        scaled = self.dual * step
        edges = self.edges
        fuse(
            fused, read_only(edges.first), read_only(edges.second), read_only(edges.sign), step * self.fusion * edges.weight,
            scaled, self.precision * float(np.abs(fused).max(initial=0.0)), _MAX_SWEEPS,
        )  # fmt: skip
        self.dual = scaled / step
        return np.sign(fused) * np.maximum(np.abs(fused) - step * self.lasso, 0.0)


def equal_along_edges(coef: np.ndarray, edges: Any, size: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Edges between features with coefficients where the difference ``size`` is within the tolerance of the solver."""
    close = size <= max(100.0 * tol, 1e-6) * np.abs(coef).max(initial=0.0)
    both = (coef[edges.first] != 0.0) & (coef[edges.second] != 0.0)
    return edges.first[close & both], edges.second[close & both]
