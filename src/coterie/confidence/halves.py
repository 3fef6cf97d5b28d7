"""Half-samples and permutations of labels, with whole sample groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.inputs.opening import Input
from coterie.inputs.sample_groups import halves, permutation_within


def permute_labels(data: Input, seed: int, permutation: int) -> Input:
    """Return the data with labels permuted among the samples of nonzero weight, or unchanged for ``permutation`` 0.

    Sample groups restrict the permutation; see :func:`coterie.inputs.sample_groups.permutation_within`.
    """
    if permutation == 0:
        return data
    order = np.arange(len(data.targets))
    used = used_samples(data)
    rng = np.random.default_rng([seed, permutation])
    if data.groups is None:
        order[used] = rng.permutation(used)
    else:
        order[used] = used[permutation_within(data.groups[used], data.targets[used], rng)]
    # Covariates and offset are permuted with the labels, which keeps their relation. Only the relation to the features is
    # broken.
    covariates, offset = (None if values is None else values[order] for values in (data.covariates, data.offset))
    return replace(data, y=data.labels[order], targets=data.targets[order], covariates=covariates, offset=offset)


def complementary(data: Input, seed: int, permutation: int, pair: int, *, stratified: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the sample weights of a half-sample and of its complement.

    The halves depend only on ``seed``, ``permutation`` (that of the labels of ``data``) and ``pair``, not on earlier draws. If
    the number of samples is odd, the first half has one more than the second. If ``stratified``, each class is halved
    separately; the classes of survival times are events and censored samples. Among the classes with an odd number of samples,
    the first gives its extra sample to the first half, the next one to the second half, and so on in alternation. Sample
    groups are not divided; see :func:`coterie.inputs.sample_groups.halves`.
    """
    rng = np.random.default_rng([seed, permutation, 1 + pair])
    used = used_samples(data)
    weight = np.ones(len(data.targets)) if data.weight is None else data.weight
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    codes = data.balanced
    if data.groups is not None:
        half = halves(data.groups[used], codes[used] if codes is not None and stratified else None, rng)
        first[used[half]], second[used[~half]] = weight[used[half]], weight[used[~half]]
        return first, second
    order = rng.permutation(used)
    if codes is not None and stratified:  # Sort by class; the order within a class stays random.
        order = order[np.argsort(codes[order], kind="stable")]
    elif rng.random() < 0.5:
        order = order[::-1]
    first[order[::2]], second[order[1::2]] = weight[order[::2]], weight[order[1::2]]
    return first, second


def used_samples(data: Input) -> np.ndarray:
    """Return the samples of nonzero weight."""
    return np.arange(len(data.targets)) if data.weight is None else np.flatnonzero(data.weight > 0)
