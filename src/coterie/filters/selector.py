"""Selector by a filter score."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np

from coterie._parameters import N_FEATURES, OneOf, Options, Rule, check_options
from coterie.inputs.opening import Input, open_input
from coterie.inputs.types import ClientLike, FeaturesLike, TargetsLike
from coterie.methods import SCORES, score_on_cluster
from coterie.order import Ranked
from coterie.selection import Selector, n_features_wanted


class FilterSelector(Selector):
    """Select the features with the highest scores of a filter.

    Parameters
    ----------
    score_func : str, default="fisher"
        Name of one of the scores of :mod:`coterie.filters`.

    n_features_to_select : int or float, default=10
        Number of features to select, or their fraction of all features.

    parameters : dict or None, default=None
        Parameters of the score, by name.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Scores of the features.

    ranking_ : ndarray of shape (n_features,)
        Rank of each feature, starting at 1. Ties are broken by the content of the columns.

    support_features_ : ndarray of shape (n_selected,)
        Indices of the selected features, the best first.

    n_features_in_ : int
        Number of features seen in ``fit``.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from coterie.filters.selector import FilterSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> FilterSelector("fisher", 2).fit(X, y).support_features_
    array([2, 3])
    """

    @property
    def _on_cluster(self) -> str:
        """Kind of input for which workers of a cluster can compute the score; empty if they cannot."""
        return score_on_cluster(self.score_func, self.parameters)

    _allowed: ClassVar[dict[str, Rule]] = {
        "score_func": OneOf(*SCORES),
        "n_features_to_select": N_FEATURES,
        "parameters": Options() | OneOf(None),
    }

    def __init__(
        self, score_func: str = "fisher", n_features_to_select: int | float = 10, *, parameters: dict[str, Any] | None = None
    ) -> None:
        self.score_func = score_func
        self.n_features_to_select = n_features_to_select
        self.parameters = parameters

    def fit(self, X: FeaturesLike, y: TargetsLike = None, *, client: ClientLike = None) -> Self:
        """Score the features and select the best.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,), default=None
            Labels. Not required by unsupervised scores.
        client : distributed.Client, default=None
            Client of a Dask cluster whose workers hold the features of X: a store (name, address or open store) or, for
            scores of single features, a Dask array chunked by features. None means the active client, if any. All scores
            except ``mcfs`` are supported. ``scores_`` and ``ranking_`` then stay on the workers until ``numpy.asarray``
            fetches them.

        Returns
        -------
        self : FilterSelector
            The fitted selector.
        """
        return self._fit(lambda: self._read(X, y, client))

    def _read(self, X: FeaturesLike, y: TargetsLike, client: ClientLike = None) -> Input:
        check_options("parameters", self.parameters or {}, SCORES[self.score_func].load())
        supervised = SCORES[self.score_func].supervised
        return open_input(X, y, reader=self, target="labels" if supervised else "any", client=client)

    def _compute(self, data: Input) -> dict[str, Any]:
        n_wanted = n_features_wanted(self.n_features_to_select, data.source.shape[1])
        scores = SCORES[self.score_func].load()(data.source, data.y, **(self.parameters or {}))
        order = Ranked(data.source, scores)
        if order.all_equal:  # the check costs a pass over the features
            data.source.moments().require_variation()
        chosen = order.first(n_wanted)
        if not SCORES[self.score_func].signed:
            warn_about_zeros(n_wanted - int(np.count_nonzero(np.asarray(scores[chosen]))), n_wanted)
        return {"scores_": scores, "ranking_": order.ranks(n_wanted), "support_features_": chosen}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.score_func in SCORES and SCORES[self.score_func].supervised
        return tags


def warn_about_zeros(n_zeros: int, n_selected: int, *, stacklevel: int = 5) -> None:
    """Warn if selected features have a score of 0, as all others that are not selected."""
    if n_zeros:
        remedy = f"Select at most {n_selected - n_zeros} features." if n_zeros < n_selected else "Use another score."
        warnings.warn(
            f"{n_zeros} of the {n_selected} selected features have a score of 0, so they are not better than features that "
            f"are not selected. {remedy}",
            UserWarning,
            stacklevel=stacklevel,
        )
