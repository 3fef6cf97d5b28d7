"""Search in which all classes have equal shares in the scores of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coterie.data.top import TopQuery
from coterie.search.oracle import Block, Oracle
from coterie.search.scores import LazyScores


def equal_shares(residual: np.ndarray) -> np.ndarray:
    """Return residuals of several outputs, scaled to the largest norm of them. Outputs without residual remain zero.

    The score of a feature is the norm of its products with the residuals of all classes. A class with a large residual, which
    is usually a frequent one, therefore decides about most features. With residuals of equal norm, a feature is scored by its
    correlations with them.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.search.shares import equal_shares
    >>> equal_shares(np.array([[3.0, 1.0, 0.0], [4.0, 0.0, 0.0]]))
    array([[3., 5., 0.],
           [4., 0., 0.]])
    """
    norms = np.sqrt((residual * residual).sum(axis=0))
    return residual * np.divide(norms.max(initial=0.0), norms, out=np.zeros_like(norms), where=norms > 0.0)


class EqualSharesOracle(Oracle):
    """An oracle that scores features by :func:`equal_shares` of the residuals.

    Only the choice of a block differs. The scores that are recorded, and the bounds of the optimum, are those of the
    residuals themselves.
    """

    @property
    def is_exact(self) -> bool:
        """False: blocks are not the most violated sets."""
        return False

    def query(self, residual: np.ndarray, n_new: int) -> TopQuery:
        """Return the query for the best selectable features."""
        return super().query(equal_shares(residual), n_new)

    def find_block(self, residual: np.ndarray, n_new: int, scores: Sequence[LazyScores] | None = None) -> Block:
        """Return the next block for the dual variables ``residual``."""
        block = super().find_block(equal_shares(residual), n_new, scores)
        return replace(block, scores=LazyScores(self.view, residual).of(block.features))
