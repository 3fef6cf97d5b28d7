"""Moments of the members of groups, from which one member can predict another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class MemberMoments:
    """Moments of the members of all groups in the training data, with the sample weights of the fit.

    With them, a member can take the place of another one that is absent from new data; see :func:`coterie.substituted`.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_members,)
        Mean and standard deviation of each member, in the order of the groups, each support feature first.
    correlation : ndarray of shape (n_members,)
        Pearson's correlation with the support feature of the group; 1 for the support feature.
    output_scale : ndarray of shape (n_outputs,)
        Standard deviation of each output of the model, without covariates and offset.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie import GroupDiscoveryClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = GroupDiscoveryClassifier(2, threshold=0.9).fit(X, y)
    >>> moments = model.member_moments_
    >>> len(moments.mean) == sum(len(group) for group in model.groups_)
    True
    """

    mean: np.ndarray
    scale: np.ndarray
    correlation: np.ndarray
    output_scale: np.ndarray

    def by_group(self, sizes: Sequence[int]) -> list[MemberMoments]:
        """Return the moments of each group, given the numbers of members."""
        bounds = np.cumsum([0, *sizes])
        parts = (slice(start, stop) for start, stop in itertools.pairwise(bounds))
        return [MemberMoments(self.mean[own], self.scale[own], self.correlation[own], self.output_scale) for own in parts]

    def fits(self, groups: Any, n_outputs: int) -> bool:
        """Return True if the attributes are valid for these groups and this number of outputs."""
        n_members = sum(len(group) for group in groups)
        return (
            all(_are_finite(values, n_members) for values in (self.mean, self.scale, self.correlation))
            and _are_finite(self.output_scale, n_outputs)
            and bool((self.scale >= 0.0).all() and (np.abs(self.correlation) <= 1.0).all())
            and bool((self.output_scale >= 0.0).all())
        )


def _are_finite(values: Any, size: int) -> bool:
    known = isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == (size,)
    return known and bool(np.isfinite(values).all())
