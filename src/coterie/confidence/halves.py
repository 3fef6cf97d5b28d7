"""Complementary halves of the samples, and shuffled labels: each known by a seed and its number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.inputs.opening import Input


def shuffled(data: Input, seed: int, permutation: int) -> Input:
    """The data with their labels shuffled among the samples that count; ``permutation`` 0 leaves them as they are."""
    if permutation == 0:
        return data
    order = np.arange(len(data.targets))
    used = _used(data)
    order[used] = np.random.default_rng([seed, permutation]).permutation(used)
    # Covariates stay with the labels that they explain: what is broken is what the features have to do with either.
    covariates = None if data.covariates is None else data.covariates[order]
    return replace(data, y=data.labels[order], targets=data.targets[order], covariates=covariates)


def complementary(data: Input, seed: int, permutation: int, pair: int, *, stratified: bool) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the samples of two halves that have none in common, and all together.

    Of an odd number of samples, the first half has one more than the second.

    Parameters
    ----------
    data : Input
        With the labels of this permutation.
    seed, permutation, pair : int
        Which halves: the same numbers give the same ones, whatever was drawn before.
    stratified : bool
        Whether each class is halved by itself. Of the classes with an odd number of samples, the first gives its extra sample
        to the first half, the next one to the second half, and so on in turn.
    """
    rng = np.random.default_rng([seed, permutation, 1 + pair])
    used = _used(data)
    order = rng.permutation(used)
    if stratified:  # classes one after the other, each in random order
        order = order[np.argsort(data.targets[order], kind="stable")]
    elif rng.random() < 0.5:
        order = order[::-1]
    weight = np.ones(len(data.targets)) if data.weight is None else data.weight
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    first[order[::2]], second[order[1::2]] = weight[order[::2]], weight[order[1::2]]
    return first, second


def _used(data: Input) -> np.ndarray:
    """The samples with a weight."""
    return np.arange(len(data.targets)) if data.weight is None else np.flatnonzero(data.weight > 0)
