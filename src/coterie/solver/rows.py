"""Which samples the master problem has to tell apart.

Samples of weight zero (those that a fold or a half-sample leaves out) play no part. Samples of one kind whose selected
columns are equal get equal outputs whatever the weights, so they are one sample with the sum of their weights; the dual
variables of each are its share. Most samples of sparse data have none of the few selected features, and the problem of
millions of samples is one of some thousands. All of that is exact.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coterie.data.source import Columns
from coterie.kernels.blocks import number_by_first

# Merging ends when it leaves more than this part of the samples: from then on each one stands for itself.
_WORTHWHILE = 0.75


class Rows:
    """Samples in classes of equal ones, finer with each column. Their order is that of their first samples.

    Parameters
    ----------
    kinds : ndarray of int of shape (n_samples,)
        What each sample is to the loss; -1 for those of weight zero. Samples of different kinds are never merged.
    merge : bool, default=True
        Whether to merge equal samples at all, or only to leave those of weight zero out.

    Attributes
    ----------
    owner : ndarray of int of shape (n_samples,)
        The row that each sample is part of, -1 for none.
    first : ndarray of int of shape (n_rows,)
        The first sample of each row.
    """

    def __init__(self, kinds: np.ndarray, *, merge: bool = True) -> None:
        self._kept = np.flatnonzero(kinds >= 0)
        self._merging = merge
        self.owner = np.array(kinds, dtype=np.int64)
        if merge:
            self._number(int(kinds.max(initial=-1)) + 1)
        else:
            self._release()

    @property
    def is_all(self) -> bool:
        """Whether every sample is a row of its own."""
        return len(self.first) == len(self.owner)

    def refine(self, columns: Columns) -> np.ndarray | None:
        """Tell samples apart by further columns; the former row of each row, or None where nothing has changed."""
        if not self._merging:
            return None
        n_before, before = len(self.first), self.owner.copy()
        n_names, most = n_before, _WORTHWHILE * len(self._kept)
        for samples, values in self._entries(columns):
            order = np.lexsort((values, self.owner[samples]))
            owner, value = self.owner[samples][order], values[order]
            begins = np.append(True, (owner[1:] != owner[:-1]) | (value[1:] != value[:-1]))
            n_fresh = int(np.count_nonzero(begins))
            self.owner[samples[order]] = n_names + np.cumsum(begins) - 1
            n_names += n_fresh
            if n_fresh > most:  # so many differ in this column alone
                break
        self._number(n_names)
        if len(self.first) > most:
            self._merging = False
            self._release()
        return None if len(self.first) == n_before else before[self.first]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of the samples' values over the rows."""
        if self.is_all:
            return values
        if len(self._kept) == len(self.owner):  # as they are: samples can be many
            return np.bincount(self.owner, weights=values, minlength=len(self.first))
        return np.bincount(self.owner[self._kept], weights=values[self._kept], minlength=len(self.first))

    def _entries(self, columns: Columns) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Samples and values of each column; samples that do not come up have the value zero."""
        for k in range(columns.shape[1]):
            if isinstance(columns, np.ndarray):
                samples, values = self._kept, columns[self._kept, k]
            else:
                entries = slice(columns.indptr[k], columns.indptr[k + 1])
                samples, values = columns.indices[entries], columns.data[entries]
                counted = (values != 0.0) & (self.owner[samples] >= 0)
                samples, values = samples[counted], values[counted]
            if len(samples):
                yield samples, values

    def _number(self, n_names: int) -> None:
        """Number the rows, which have any names below a limit, in the order of their first samples."""
        first = np.empty(n_names, dtype=np.int64)
        self.first = first[: number_by_first(self.owner, first)].copy()

    def _release(self) -> None:
        """Let each sample stand for itself."""
        self.first = self._kept
        self.owner[self._kept] = np.arange(len(self._kept))
