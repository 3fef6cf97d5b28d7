"""Outputs of models on whole groups at some sizes of the paths of one fold.

The members of the groups grow with the size, so the inner products between samples are updated by the columns of the new
members, and the active samples of a size are the initial guess for the next. Paths that differ in C share most members, whose
columns are read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from coterie.data.source import Columns
from coterie.data.view import FeatureView
from coterie.search.loop import CuttingPlane
from coterie.search.membership import Membership
from coterie.search.outcome import covariate_coef, fit_members
from coterie.solver.block_problem import Solution
from coterie.solver.sample_space import SampleProblem

# Smallest ratio of successive sizes at which models on groups are fitted.
_SIZE_RATIO = 1.5
# Number of samples up to which models of few members are fitted in terms of the products between samples, too.
_FEW_SAMPLES = 200
# Number of samples up to which models of more members than samples are fitted in this way.
_MAX_SAMPLES = 2000
# Number of members up to which models of fewer members than samples are fitted to their columns by a kernel.
_MAX_MEMBERS = 200
# Bytes of columns that are kept for all paths of a fold, and number of columns that are read at once otherwise.
_KEPT_BYTES = 1 << 27
_READ_COLUMNS = 4096
# Largest accepted relative gap. Models with a larger one are fitted to the columns.
_PRECISION = 1e-10


class GroupOutputs(NamedTuple):
    """Outputs of a model on groups.

    Attributes
    ----------
    size : int
        Number of support features.
    outputs : ndarray of shape (n_samples, n_outputs)
        Outputs of the requested samples, with intercept and covariates.
    margin : ndarray of shape (n_outputs,)
        Margins.
    gap : float
        Largest certified relative gap of the outputs' problems.
    """

    size: int
    outputs: np.ndarray
    margin: np.ndarray
    gap: float


class MemberProducts:
    """Products of the members of some paths between samples. Columns that fit into memory are read once.

    Parameters
    ----------
    view : FeatureView
        View that all paths share.
    members : sequence of Membership
        Members of the paths.
    """

    def __init__(self, view: FeatureView, members: Sequence[Membership]) -> None:
        self._view = view
        self._features = np.unique(np.concatenate([own.feature for own in members]))
        self._columns: np.ndarray | None = None  # A row per feature.
        if not view.is_sparse and 8 * view.n_samples * len(self._features) <= _KEPT_BYTES:
            self._columns = np.ascontiguousarray(np.asarray(view.model_columns(self._features)).T)

    def columns(self, features: np.ndarray) -> np.ndarray:
        """Return the columns of some features, one row per sample."""
        if self._columns is not None:
            return self._columns[np.searchsorted(self._features, features)].T
        columns = self._view.model_columns(features)
        return columns if isinstance(columns, np.ndarray) else columns.toarray()

    def add(self, features: np.ndarray, products: np.ndarray) -> None:
        """Add the products of some features to the matrix ``products``."""
        if self._columns is not None:
            rows = self._columns[np.searchsorted(self._features, features)]
            products += rows.T @ rows
            return
        for first in range(0, len(features), _READ_COLUMNS):
            columns = self._view.model_columns(features[first : first + _READ_COLUMNS])
            products += columns @ columns.T if isinstance(columns, np.ndarray) else (columns @ columns.T).toarray()


def group_outputs(
    loop: CuttingPlane, members: Membership, shared: MemberProducts, samples: np.ndarray, covariates: np.ndarray | None
) -> Iterator[GroupOutputs]:
    """Yield the outputs of models on whole groups at some sizes of a path.

    Parameters
    ----------
    loop : CuttingPlane
        The finished path.
    members : Membership
        Members of its groups.
    shared : MemberProducts
        Products of the members of this and other paths.
    samples : ndarray of int
        Samples whose outputs are computed.
    covariates : ndarray or None
        Covariates of these samples.
    """
    view = loop.oracle.view
    problem = SampleProblem.of(loop.master.loss.plain()) if view.n_samples <= _MAX_SAMPLES else None
    order = np.argsort(members.since, kind="stable")
    features, since = members.feature[order], members.since[order]
    products, n_added, active = np.zeros((0, 0)), 0, None
    coef: np.ndarray | None = None
    known: FittedMembers | None = None
    for size in coarse([entry.n_support for entry in loop.history]):
        n_members = int(np.searchsorted(since, size, side="right"))
        if problem is not None and (view.n_samples <= _FEW_SAMPLES or n_members > view.n_samples):
            if not n_added:
                products = np.zeros((view.n_samples, view.n_samples))
            shared.add(features[n_added:n_members], products)
            n_added = n_members
            fit = problem.fit(products, active)
            active = fit.active
        elif problem is not None and n_members <= _MAX_MEMBERS:
            fit, coef = problem.fit_columns(shared.columns(features[:n_members]), coef)
        else:
            fit = None
        gap = np.inf if fit is None else float(fit.gap.max())
        if fit is not None and gap <= _PRECISION:
            outputs = fit.outputs[:, samples].T + _offset(fit.intercept, fit.covariate_coef, covariates)
            yield GroupOutputs(size, outputs, fit.margin, gap)
            continue
        known = FittedMembers.of(loop, members.at(size), known)
        yield _outputs_of(loop, known, size, samples, covariates)


class FittedMembers(NamedTuple):
    """A model that is fitted to the columns of some members, which are in increasing order."""

    members: np.ndarray
    coef: np.ndarray
    parts: list[Solution]

    @classmethod
    def of(cls, loop: CuttingPlane, members: np.ndarray, smaller: FittedMembers | None) -> FittedMembers:
        """Fit a model. The model of some of the members is a good initial point, if it is known."""
        start = None
        if smaller is not None:
            start = np.zeros((len(members), smaller.coef.shape[1]))
            start[np.searchsorted(members, smaller.members)] = smaller.coef
        return cls(members, *fit_members(loop, members, start))


def _outputs_of(
    loop: CuttingPlane, fitted: FittedMembers, size: int, samples: np.ndarray, covariates: np.ndarray | None
) -> GroupOutputs:
    """Return the outputs of a model for some samples."""
    members, coef, parts = fitted
    states = [part.state for part in parts]
    offset = _offset(np.concatenate([state.intercept for state in states]), covariate_coef(states), covariates)
    margin = np.concatenate([state.margin for state in states])
    outputs = sample_columns(loop.oracle.view, members, samples) @ coef + offset
    return GroupOutputs(size, outputs, margin, max(part.gap for part in parts))


def _offset(intercept: np.ndarray, coef: np.ndarray | None, covariates: np.ndarray | None) -> np.ndarray:
    """Return the intercepts plus the outputs of the covariates, if there are any."""
    return intercept if coef is None or covariates is None else intercept + covariates @ coef.T


def sample_columns(view: FeatureView, features: np.ndarray, samples: np.ndarray) -> Columns:
    """Return features of some samples, centred and scaled as in a model."""
    columns = view.model_columns(features)
    return columns[samples] if isinstance(columns, np.ndarray) else sparse.csr_array(columns)[samples]


def coarse(sizes: Sequence[int]) -> list[int]:
    """Return some of the increasing sizes, each at least 1.5 times the previous one, and the last.

    Examples
    --------
    >>> from coterie.validation.group_models import coarse
    >>> coarse(range(1, 31))
    [1, 2, 3, 5, 8, 12, 18, 27, 30]
    """
    kept: list[int] = []
    for size in sizes:
        if not kept or size >= _SIZE_RATIO * kept[-1]:
            kept.append(size)
    return kept if kept[-1] == sizes[-1] else [*kept, sizes[-1]]
