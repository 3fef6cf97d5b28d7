"""Subsets whose values the workers of a cluster compute: each of them opens the store itself, and binds the criterion to it.

A task is a pure function of the store, the criterion, the labels, the folds, and which subsets: any worker computes the same
value, so that a lost one costs a few values that are computed again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from coterie._quiet import ignored, recorded
from coterie.cluster.parts import Recipe
from coterie.cluster.source import DistributedSource
from coterie.inputs.reading import Fold
from coterie.probing.criteria.base import Criterion, Evaluator

# What no process is: a worker is never the one that has sent the task.
_NOBODY = ("", 0)


class BoundThere:
    """A criterion that the workers bind to the features: what makes it, and the folds that all of them use."""

    def __init__(self, recipe: Recipe, folds: list[Fold] | None) -> None:
        self.recipe = recipe
        self.folds = folds

    def __call__(self, features: np.ndarray) -> float:
        """It has no value here."""
        raise NotImplementedError("the workers of the cluster evaluate subsets")


class ClusterWorkers:
    """Subsets are evaluated by the workers of the cluster that has the features.

    Parameters
    ----------
    source : DistributedSource
        The features, in a store.
    """

    here = False
    wave_seconds = 3.0

    def __init__(self, source: DistributedSource) -> None:
        self.source = source
        self.count = max(1, source.engine.n_threads)

    def parallel(self) -> AbstractContextManager[None]:
        """Nothing needs to be begun or ended."""
        return nullcontext()

    def bind(self, criterion: Criterion, y: Any, cv: Any) -> BoundThere:
        """The criterion on the workers; the folds are drawn once, by one of them, for all."""
        common = self.source.share(criterion), self.source.share(y)
        (found,) = self.source.ask_anybody(_folds, [(*common, self.source.share(cv))], what="the folds")
        folds, told = found
        for category, message in told:
            warnings.warn(message, category, stacklevel=5)
        drawn = self.source.share(cv if folds is None else folds)
        return BoundThere(self.source.recipe(_bound, *common, drawn).passing(), folds)

    def run(self, _: Any, function: Callable[..., Any], evaluate: BoundThere, pieces: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Answers of ``function(evaluate, *piece, parent)`` for all pieces, in order."""
        arguments = [(evaluate.recipe, function, *piece) for piece in pieces]
        return self.source.ask_anybody(_piece, arguments, what="values of subsets of the features")


def _folds(source: Any, criterion: Criterion, y: Any, cv: Any) -> tuple[list[Fold] | None, list[tuple[Any, str]]]:
    """The folds of a criterion, and what binding it warned of."""
    with recorded() as told:
        folds = criterion.bind(source, y, cv).folds
    return folds, [(one.category, one.message) for one in told]


def _bound(source: Any, criterion: Criterion, y: Any, cv: Any) -> Evaluator:
    with ignored():  # said already
        return criterion.bind(source, y, cv)


def _piece(source: Any, evaluate: Evaluator, function: Callable[..., Any], *piece: Any) -> Any:
    return function(evaluate, *piece, _NOBODY)
