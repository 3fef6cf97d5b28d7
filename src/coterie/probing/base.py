"""What the selectors with a criterion share: the reading of the data, and the criterion bound to them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie._parameters import N_FEATURES, N_JOBS, VERBOSE, Anything, Rule
from coterie.data.source import FeatureSource
from coterie.inputs.opening import open_input
from coterie.inputs.types import ClientLike, FeaturesLike, TargetsLike
from coterie.probing.criteria import Criterion, as_criterion
from coterie.probing.criteria.base import Evaluator
from coterie.probing.evaluation import AnyWorkers, TaskWorkers, Workers
from coterie.selection import Selector, n_features_wanted


@dataclass(frozen=True)
class Problem:
    """What a fit works on: data, bound criterion, number of features wanted."""

    attributes: dict[str, Any]
    source: FeatureSource
    y: np.ndarray | None
    criterion: Criterion
    evaluate: Evaluator
    workers: AnyWorkers
    n_wanted: int


class CriterionSelector(Selector):
    """Base class: a selector that evaluates subsets of the features by a criterion."""

    _allowed: ClassVar[dict[str, Rule]] = {
        "criterion": Anything(),
        "n_features_to_select": N_FEATURES,
        "cv": Anything(),
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    _on_cluster: ClassVar[str] = "stores"

    def fit(self, X: Any, y: Any = None, *, client: Any = None) -> Self:
        """Evaluate subsets of the features, and select.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, FeatureSource} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Labels, or numbers where the criterion wants them; None for criteria that do without.
        client : distributed.Client, default=None
            Client of a Dask cluster whose workers evaluate the subsets, instead of ``n_jobs``; X is a store (its name, its
            address, or opened), which each of them opens. None takes the active client, if there is one.

        Returns
        -------
        self : object
            The fitted selector.
        """
        return self._fit(lambda: self._read(X, y, client))

    def _read(self, X: FeaturesLike, y: TargetsLike, client: ClientLike = None) -> Problem:
        criterion = as_criterion(self.criterion)
        data = open_input(X, y, reader=self, target="labels" if criterion.supervised else "optional", client=client)
        source, labels = data.source, data.y
        source.moments().require_variation()
        n_wanted = n_features_wanted(self.n_features_to_select, source.shape[1])
        workers: AnyWorkers
        evaluate: Evaluator
        if source.n_workers is None:
            workers = Workers(self.n_jobs, criterion.prefer)
            evaluate = criterion.bind(source, labels, self.cv)
        else:
            workers = TaskWorkers(source)
            evaluate = workers.bind(criterion, labels, self.cv)
        return Problem(data.attributes, source, labels, criterion, evaluate, workers, n_wanted)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ValueError):  # no criterion; fit says so
            tags.target_tags.required = as_criterion(self.criterion).supervised
        return tags
