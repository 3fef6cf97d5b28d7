"""Products of a dense design's columns, weighted by the curvature of a loss and kept from one Newton step to the next."""

from __future__ import annotations

import numpy as np


class KeptProducts:
    r"""Products :math:`X'\mathrm{diag}(h)X` and :math:`X's_e` of several outputs, brought up to date.

    From one step to the next few samples of a hinge become active or inactive, and from one round to the next a few columns
    are added: only these cost anything. Where most weights have changed (as those of a logistic loss do) the products are
    made anew, which is also more exact.

    Parameters
    ----------
    n_outputs, n_samples, n_strata : int
        Number of outputs, of samples, and of eliminated offsets of each output.
    """

    def __init__(self, n_outputs: int, n_samples: int, n_strata: int) -> None:
        self.weights = np.zeros((n_outputs, n_samples))
        self.squares = np.zeros((n_outputs, 0, 0))
        self.mixed = np.zeros((n_outputs, n_strata, 0))

    def fit(self, n_outputs: int, n_samples: int, n_strata: int) -> bool:
        """Whether they are those of a loss of this shape."""
        return (*self.weights.shape, self.mixed.shape[1]) == (n_outputs, n_samples, n_strata)

    def update(self, array: np.ndarray, weights: np.ndarray, strata: np.ndarray, signs: np.ndarray) -> None:
        """Make them those of the columns of ``array`` with other ``weights`` of shape (n_outputs, n_samples)."""
        n_old, n_columns = self.squares.shape[1], array.shape[1]
        if n_columns > n_old:
            more = n_columns - n_old
            self.squares = np.pad(self.squares, ((0, 0), (0, more), (0, more)))
            self.mixed = np.pad(self.mixed, ((0, 0), (0, 0), (0, more)))
        for c, (old, new) in enumerate(zip(self.weights, weights, strict=True)):
            changed, active = np.flatnonzero(new != old), np.flatnonzero(new)
            if 2 * len(changed) >= len(active):
                rows = array if len(active) == len(new) else array[active]
                roots = rows * np.sqrt(new[active])[:, None]
                np.matmul(roots.T, roots, out=self.squares[c])
                self.mixed[c] = self._signed(new, strata, signs, c, active) @ rows
                continue
            if n_columns > n_old:
                before = np.flatnonzero(old)
                rows = array[before]
                fresh = rows[:, n_old:]
                cross = (fresh * old[before, None]).T @ rows
                self.squares[c, n_old:], self.squares[c, :n_old, n_old:] = cross, cross[:, :n_old].T
                self.mixed[c, :, n_old:] = self._signed(old, strata, signs, c, before) @ fresh
            if len(changed):
                rows, change = array[changed], new - old
                self.squares[c] += (rows * change[changed, None]).T @ rows
                self.mixed[c] += self._signed(change, strata, signs, c, changed) @ rows
        self.weights[...] = weights

    def _signed(self, weight: np.ndarray, strata: np.ndarray, signs: np.ndarray, c: int, samples: np.ndarray) -> np.ndarray:
        """Signed weights of some samples of an output, in the row of their stratum."""
        result = np.zeros((self.mixed.shape[1], len(samples)))
        if len(result):
            result[strata[samples, c], np.arange(len(samples))] = weight[samples] * signs[samples, c]
        return result

    def hessians(self, strata: np.ndarray) -> np.ndarray:
        """Hessians of shape (n_outputs, p, p) with the eliminated offsets projected out."""
        if not self.mixed.shape[1]:
            return self.squares.copy()
        total = np.stack([np.where(e == strata.T, self.weights, 0.0).sum(axis=1) for e in range(self.mixed.shape[1])], axis=1)
        share = np.divide(self.mixed, total[:, :, None], out=np.zeros_like(self.mixed), where=total[:, :, None] > 0.0)
        return self.squares - np.matmul(share.transpose(0, 2, 1), self.mixed)
