r"""Substitutes: members of a group that take the place of features that new data lack.

The support feature s of a group links its members. A member m that stands for another one j predicts it by the product of two
regressions, of s on m and of j on s,

.. math:: \hat x_j = \bar x_j + r_j r_m \frac{\sigma_j}{\sigma_m} (x_m - \bar x_m),

where r are correlations with s in the training data (1 for s itself). The best substitute is therefore the member with the
largest :math:`|r_m|`. The variance of an output that is lost by substituting members j of weights :math:`w_j` is

.. math:: (1 - r_m^2)\Bigl(\sum_j w_j \sigma_j r_j\Bigr)^2 + \sum_j w_j^2 \sigma_j^2 (1 - r_j^2),

if members are related through the support feature only. Without a substitute, :math:`r_m = 0`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coterie.data.source import Columns, FeatureSource, Moments, StrongPairs, StrongQuery
from coterie.groups import FeatureGroup
from coterie.groups.columns import Record, data_frame
from coterie.groups.moments import MemberMoments
from coterie.inputs.arrays import check_features, require_numeric, take_columns
from coterie.inputs.naming import names_at, names_in, positions_of
from coterie.inputs.opening import unwrap_new
from coterie.inputs.types import FeaturesLike

if TYPE_CHECKING:
    import pandas as pd

# Smallest number of samples for which a constant column counts as unusable. Fewer samples can have equal values by chance.
_MIN_CONSTANT = 20
# Largest number of substitutes listed in a sentence.
_MAX_LISTED = 5
ABSENT, MISSING, CONSTANT = "absent", "all values missing", "constant"


@dataclass(frozen=True)
class Substitute:
    """A feature of a model that new data lack, and the member that takes its place.

    Attributes
    ----------
    feature : str or int
        Name (or index) of the feature.
    group : int
        Number of its group, from 1.
    reason : {"absent", "all values missing", "constant"}
        Why it cannot be used.
    substitute : str, int or None
        Name (or index) of the member. None if no member of the group can be used: the feature has its training mean.
    correlation : float
        Correlation of the two in the training data, the product of those with the support feature; 0 without a substitute.
    """

    feature: str | int
    group: int
    reason: str
    substitute: str | int | None
    correlation: float


class Substitutes(Sequence[Substitute]):
    """The substitutes of a prediction.

    Attributes
    ----------
    n_features : int
        Number of features that the model uses.
    agreement : float
        Expected correlation of the outputs of the model with those from complete data.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import coterie
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = coterie.GroupDiscoveryClassifier(3, threshold=0.9).fit(X, y)
    >>> found = coterie.substituted(model, X.drop(columns="worst concave points")).substitutes
    >>> found
    1 of 3 features is substituted: 'worst concave points' by 'mean concave points' (r = +0.91). ...
    >>> round(found.agreement, 2)
    0.93
    """

    def __init__(self, entries: Sequence[Substitute], n_features: int, agreement: float) -> None:
        self._entries = tuple(entries)
        self.n_features, self.agreement = n_features, agreement

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Substitute]:
        return iter(self._entries)

    @property
    def sentence(self) -> str:
        """One to three sentences that name the substitutes; empty if there are none."""
        by_member = [entry for entry in self if entry.substitute is not None]
        by_mean = [entry for entry in self if entry.substitute is None]
        parts = []
        if by_member:
            pairs = _listed([f"{own.feature!r} by {own.substitute!r} (r = {own.correlation:+.2f})" for own in by_member])
            parts.append(f"{_count(by_member, self.n_features)} substituted: {pairs}.")
        if by_mean:
            names = _listed([repr(entry.feature) for entry in by_mean])
            parts.append(f"{_count(by_mean, self.n_features)} replaced by the training mean, without a substitute: {names}.")
        if parts:
            parts.append(f"Expected correlation with the outputs from complete data: {self.agreement:.2f}.")
        return " ".join(parts)

    def to_dict(self) -> Record:
        """Return the substitutes as plain values."""
        return {
            "n_features": self.n_features,
            "agreement": self.agreement,
            "substitutes": [asdict(entry) for entry in self],
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per feature that the data lack."""
        columns = ["feature", "group", "reason", "substitute", "correlation"]
        return data_frame([asdict(entry) for entry in self], columns)

    def __repr__(self) -> str:
        return self.sentence or f"All {self.n_features} features of the model can be used. There are no substitutes."


def _count(entries: Sequence[Substitute], n_features: int) -> str:
    return f"{len(entries)} of {n_features} features {'is' if len(entries) == 1 else 'are'}"


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _MAX_LISTED
    return ", ".join(texts[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


class SubstitutedSource(FeatureSource):
    """New data with the features that a fitted model uses, made by :func:`coterie.substituted`.

    All methods of the model take it as X. Other features cannot be read, and no model can be fitted to it.

    Attributes
    ----------
    substitutes : Substitutes
        Which features were replaced, and by what.
    """

    is_sparse = False

    def __init__(self, features: np.ndarray, values: np.ndarray, n_features: int, substitutes: Substitutes) -> None:
        self._features, self._values, self._n_features = features, values, n_features
        self.substitutes = substitutes

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, and number of features of the model's training data."""
        return len(self._values), self._n_features

    def columns(self, features: np.ndarray) -> Columns:
        """Return some of the features that the model uses for prediction."""
        wanted = np.asarray(features, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._features, wanted), max(0, len(self._features) - 1))
        if len(wanted) and (not len(self._features) or (self._features[place] != wanted).any()):
            raise _partial()
        return np.asfortranarray(self._values[:, place])

    def block(self, start: int, stop: int) -> Columns:
        """Return contiguous features; see :meth:`columns`."""
        return self.columns(np.arange(start, stop))

    def moments(self, sample_weight: np.ndarray | None = None, *, n_threads: int = 1) -> Moments:
        """Raise a ``ValueError``: a model cannot be fitted to these data."""
        raise _partial()

    def many_moments(self, weights: Sequence[np.ndarray], *, n_threads: int = 1) -> list[Moments]:
        """Raise a ``ValueError``; see :meth:`moments`."""
        raise _partial()

    def products(self, vectors: np.ndarray, **options: Any) -> np.ndarray:
        """Raise a ``ValueError``; see :meth:`moments`."""
        raise _partial()

    def strong_products(self, query: StrongQuery, moments: Moments, *, n_threads: int = 1) -> StrongPairs:
        """Raise a ``ValueError``; see :meth:`moments`."""
        raise _partial()

    def prefetch(self, features: np.ndarray) -> None:
        """Do nothing: the features are in memory."""


def _partial() -> ValueError:
    return ValueError(
        "Data with substitutes have only the features that the model uses for prediction. Pass the original data instead."
    )


def substituted(model: BaseEstimator, X: FeaturesLike) -> SubstitutedSource:
    """Replace features that new data lack by other members of their groups, for the prediction of a fitted model.

    A feature of the model is unusable if it is absent, if all its values are missing, or if it is constant in at least 20
    samples of dense data. The usable member with the largest absolute correlation with the support feature then predicts it,
    by a regression on the training data. If a group has no usable member, its features have their training means.

    Parameters
    ----------
    model : fitted estimator of group discovery
        Model that will predict, such as a :class:`coterie.GroupDiscoveryClassifier`.
    X : {array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset} of shape (n_samples, n_features)
        New samples. Columns are matched by name if model and data have names. Otherwise X must have all features.

    Returns
    -------
    X : SubstitutedSource
        Data for all methods of the model. Its attribute ``substitutes`` states which feature stands for which.

    Raises
    ------
    ValueError
        If no feature of any group can be used, or single values of a usable feature are missing and the model was not fitted
        to imputed data (:func:`coterie.imputed`).

    See Also
    --------
    Discovery.predict : Predicts with substitutes by ``missing="substitute"``.
    imputed : Imputes single missing values.

    Notes
    -----
    The model needs no other data than its own: it stores mean, standard deviation and correlation of each member
    (``member_moments_``). Constant columns depend on all samples passed. Samples predicted in small parts can therefore have
    other substitutes than all samples together.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import coterie
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = coterie.GroupDiscoveryClassifier(3, threshold=0.9).fit(X, y)
    >>> others = coterie.substituted(model, X.drop(columns="worst concave points"))
    >>> others.substitutes[0].substitute
    'mean concave points'
    >>> model.score(X, y).__round__(2), model.score(others, y).__round__(2)
    (0.93, 0.93)
    """
    if not hasattr(model, "predict") or type(model).__module__.partition(".")[0] != "coterie":
        raise TypeError(f"substituted() requires a model of group discovery, but got {type(model).__name__}.")
    check_is_fitted(model)
    fitted = cast("Any", model)
    data = NewData(model, unwrap_new(model, X, features=members_read(model), covariates=False).X)
    used = np.unique(fitted.prediction_features_)
    reasons = data.reasons(used)
    unusable = {int(j): reason for j, reason in zip(used, reasons, strict=True) if reason is not None}
    values = np.empty((data.n_samples, len(used)), order="F")
    usable = ~np.isin(used, list(unusable))
    values[:, usable] = data.complete(used[usable])
    entries: list[Substitute] = []
    lost = np.zeros(len(fitted.prediction_coef_))
    moments = fitted.member_moments_.by_group([len(group) for group in fitted.groups_])
    for number, (group, own) in enumerate(zip(fitted.groups_, moments, strict=True), start=1):
        gaps = [place for place, j in enumerate(group.members.tolist()) if j in unusable]
        if not gaps:
            continue
        member = _best_member(data, group, own)
        for place in gaps:
            values[:, np.searchsorted(used, group.members[place])] = _predicted(data, group, own, place, member)
        lost += _lost_variance(fitted, group, own, gaps, member)
        entries += [_entry(model, unusable, group, own, number, place, member) for place in gaps]
    if not usable.any() and all(entry.substitute is None for entry in entries):
        raise ValueError(
            f"X has none of the {len(data.features)} features in the groups of {type(model).__name__} with values that vary. "
            "Check that its feature names are those of the training data."
        )
    total = float((fitted.member_moments_.output_scale**2).sum())
    agreement = float(np.sqrt(max(0.0, 1.0 - lost.sum() / total))) if total > 0.0 else 1.0
    return SubstitutedSource(used, values, fitted.n_features_in_, Substitutes(entries, len(used), agreement))


def _best_member(data: NewData, group: FeatureGroup, moments: MemberMoments) -> int | None:
    """Return the position of the usable member with the largest absolute correlation with the support feature, or None."""
    reasons = data.reasons(group.members)
    able = [
        place
        for place, reason in enumerate(reasons)
        if reason is None and moments.scale[place] > 0.0 and moments.correlation[place] != 0.0
    ]
    return max(able, key=lambda place: (abs(moments.correlation[place]), -place), default=None)


def _predicted(
    data: NewData, group: FeatureGroup, moments: MemberMoments, place: int, member: int | None
) -> np.ndarray | float:
    """Return the values of a member, given by its position, as predicted by another one, or its mean."""
    if member is None:
        return float(moments.mean[place])
    deviation = (data.complete(group.members[[member]])[:, 0] - moments.mean[member]) / moments.scale[member]
    slope = moments.correlation[place] * moments.correlation[member] * moments.scale[place]
    return np.asarray(moments.mean[place] + slope * deviation)


def _lost_variance(model: Any, group: FeatureGroup, moments: MemberMoments, gaps: list[int], member: int | None) -> np.ndarray:
    """Return the variance of each output that is lost by substituting the members of a group at some positions."""
    features = model.prediction_features_
    order = np.argsort(features, kind="stable")
    place = order[np.searchsorted(features, group.members[gaps], sorter=order)]
    weight = model.prediction_coef_[:, place] * moments.scale[gaps]
    r, linked = moments.correlation[gaps], 0.0 if member is None else float(moments.correlation[member])
    return np.asarray((1.0 - linked**2) * (weight @ r) ** 2 + weight**2 @ (1.0 - r**2))


def _entry(
    model: BaseEstimator,
    unusable: dict[int, str],
    group: FeatureGroup,
    moments: MemberMoments,
    number: int,
    place: int,
    member: int | None,
) -> Substitute:
    feature = int(group.members[place])
    substitute = None if member is None else label_of(model, int(group.members[member]))
    r = 0.0 if member is None else float(moments.correlation[place] * moments.correlation[member])
    return Substitute(label_of(model, feature), number, unusable[feature], substitute, r)


def label_of(model: BaseEstimator, feature: int) -> str | int:
    """Return the name of a feature of a fitted model, or its index if there are no names."""
    names = names_at(model, np.array([feature]))
    return feature if names is None else names[0]


def members_read(model: Any) -> np.ndarray:
    """Return the features of the groups and of the prediction of a model, in ascending order."""
    return np.union1d(model.groups_.members, model.prediction_features_)


class NewData:
    """Samples that were not used for training, and the features of a fitted model among their columns.

    Parameters
    ----------
    model : fitted estimator
        Model whose features are read.
    given : array, sparse matrix, data frame or source
        Unwrapped new samples.

    Attributes
    ----------
    features : ndarray of int of shape (n_members,)
        Features of the groups and of the prediction, in ascending order.
    positions : ndarray of int of shape (n_members,)
        Column of each of them; -1 for an absent feature.
    """

    def __init__(self, model: BaseEstimator, given: Any) -> None:
        fitted: Any = model
        if not hasattr(model, "member_moments_"):
            raise ValueError("The model was saved by an earlier version, without the moments of its members. Fit it again.")
        self._model, self._given = model, given
        self.features = members_read(fitted)
        wanted, names = names_at(model, self.features), names_in(self._given)
        if wanted is None or names is None:
            self._given = check_features(model, self._given, allow_nan=True)
            self.positions = self.features
        else:
            self.positions = positions_of(model, names, wanted)
        self._fill = getattr(model, "fill_values_", None)
        self.n_samples = int(self._given.shape[0])

    def reasons(self, features: np.ndarray, *, predicts: bool = True) -> list[str | None]:
        """Return why each of some features cannot be used, or None for usable ones.

        A prediction can use constant columns, if they are sparse or have few samples.
        """
        positions = self._positions(features)
        found: list[str | None] = [ABSENT] * len(features)
        present = np.flatnonzero(positions >= 0)
        columns, is_sparse = self._read(positions[present])
        for place, column in zip(present, columns.T, strict=True):
            known = column[~np.isnan(column)]
            complete = len(known) == len(column) or self._fill is not None
            if not len(known):
                found[place] = MISSING
            elif known.min() == known.max() and not (predicts and (is_sparse or len(known) < _MIN_CONSTANT)):
                found[place] = CONSTANT
            else:
                found[place] = None if complete or features[place] in self._model.prediction_features_ else MISSING
        return found

    def complete(self, features: np.ndarray) -> np.ndarray:
        """Return columns of usable features, with single missing values imputed as in the fit."""
        columns, _ = self._read(self._positions(features))
        bad = ~np.isfinite(columns) if self._fill is None else np.isinf(columns)
        if bad.any():
            sample, place = np.argwhere(bad)[0].tolist()
            raise ValueError(
                f"Input X contains NaN or infinity. The first is in sample {sample} of feature "
                f"{label_of(self._model, int(features[place]))!r}. Impute such values, or drop these samples."
            )
        return columns if self._fill is None else np.where(np.isnan(columns), self._fill[features], columns)

    def _positions(self, features: np.ndarray) -> np.ndarray:
        return self.positions[np.searchsorted(self.features, features)]

    def _read(self, positions: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return columns as a dense array, and whether they were sparse."""
        if not len(positions):
            return np.empty((self.n_samples, 0)), False
        columns = take_columns(self._given, positions)
        if hasattr(columns, "columns"):
            require_numeric(columns)
        is_sparse = sparse.issparse(columns)
        dense = columns.toarray() if is_sparse else columns
        return np.asarray(dense, dtype=np.float64), is_sparse
