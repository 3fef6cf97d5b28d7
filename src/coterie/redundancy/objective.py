r"""The problem of global redundancy minimisation (eqs. 1 and 26 of the paper), without a matrix of all pairs.

.. math:: \min_{z \ge 0,\ 1'z = 1} f(z) = \frac{q(z)}{s'z}, \qquad q(z) = z'(A + \gamma G'G)z.

Quadratic over linear is jointly convex, so f is convex. With :math:`t = s'z`,
:math:`\nabla f = 2(A + \gamma G'G)z/t - (f/t)\,s` and :math:`\nabla f'z = f`, hence for every other point z' of the simplex
:math:`f(z') \ge f(z) + \nabla f'(z' - z) \ge \min_i \nabla_i f`: the smallest entry of the gradient is a lower bound of the
optimum, and the Frank-Wolfe gap :math:`f - \min_i \nabla_i f` is a certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from coterie.redundancy.measures import Redundancy


class Certificate(NamedTuple):
    """Value and gradient of the objective at some point, and a lower bound of the optimum."""

    value: float
    gradient: np.ndarray
    bound: float

    @property
    def gap(self) -> float:
        """Upper bound of how much larger the value is than the optimum, relative to the value."""
        return max(self.value - self.bound, 0.0) / self.value


class GroupPenalty:
    r"""Prior groups (section 2.4): :math:`\|Gz\|^2 = \sum_g \sum_{i<j \in g} (z_i - z_j)^2`.

    For each group this is the Laplacian of its complete graph, :math:`m_g \sum z_i^2 - (\sum z_i)^2`, so that a product
    takes one pass over the members, and G, with a row for each pair, is never built.

    Parameters
    ----------
    groups : sequence of ndarray
        Candidates of each group; groups may overlap.
    n_candidates : int
        Number of candidates.
    strength : float
        Factor γ.
    """

    def __init__(self, groups: Sequence[np.ndarray], n_candidates: int, strength: float) -> None:
        groups = [group for group in groups if len(group) > 1]
        sizes = np.array([len(group) for group in groups], dtype=np.int64)
        members = np.concatenate([np.empty(0, dtype=np.int64), *groups])
        which = np.repeat(np.arange(len(groups)), sizes)
        self.strength = strength
        self.membership = sparse.csr_array((np.ones(len(members)), (members, which)), shape=(n_candidates, len(groups)))
        self.degree = np.asarray(self.membership @ sizes.astype(np.float64))

    def within(self, candidates: np.ndarray) -> np.ndarray:
        """The Laplacian between a few candidates, times γ."""
        rows = self.membership[candidates]
        matrix = -(rows @ rows.T).toarray()
        matrix[np.diag_indices_from(matrix)] += self.degree[candidates]
        return self.strength * matrix

    def product(self, support: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """γ G'G z for all candidates."""
        sums = weights @ self.membership[support]
        result = -(self.membership @ sums)
        result[support] += self.degree[support] * weights
        return self.strength * result


class Objective:
    """Scores, redundancy and groups of the candidates put together.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)
        Non-negative scores, not all zero.
    redundancy : Redundancy
        The matrix A.
    penalty : GroupPenalty or None, default=None
        Prior groups.
    """

    def __init__(self, scores: np.ndarray, redundancy: Redundancy, penalty: GroupPenalty | None = None) -> None:
        self.scores = scores
        self.redundancy = redundancy
        self.penalty = penalty

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.scores)

    def within(self, candidates: np.ndarray) -> np.ndarray:
        """The quadratic form between a few candidates."""
        matrix = self.redundancy.within(candidates)
        return matrix if self.penalty is None else matrix + self.penalty.within(candidates)

    def certificate(self, support: np.ndarray, weights: np.ndarray) -> Certificate:
        """Value, gradient and bound at z, which is ``weights`` (with sum 1) on ``support``."""
        product = self.redundancy.product(support, weights)
        if self.penalty is not None:
            product = product + self.penalty.product(support, weights)
        relevance = float(self.scores[support] @ weights)
        value = float(product[support] @ weights) / relevance
        product *= 2.0 / relevance
        product -= (value / relevance) * self.scores
        return Certificate(value, product, float(product.min()))
