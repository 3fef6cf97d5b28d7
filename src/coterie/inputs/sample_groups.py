"""Sample groups: samples that belong together, such as the cells of a donor or the visits of a patient.

Folds, half-samples and permutations keep them together. Sample groups are the ``groups`` of scikit-learn. They are not related
to groups of features.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

# Sample groups whose sizes differ by at most this factor exchange their labels, if there are at least this number of them.
_SIZE_RATIO = 2.0
_MIN_EXCHANGED = 6
# Draws of half-samples until both halves contain every class.
_MAX_DRAWS = 100


def read_sample_groups(groups: Any, n_samples: int) -> np.ndarray:
    """Check the sample groups of all samples, and return their numbers from 0, in the order of their labels.

    Parameters
    ----------
    groups : array-like of shape (n_samples,)
        Label of the group of each sample: numbers, text or other values.
    n_samples : int
        Number of samples.

    Examples
    --------
    >>> from coterie.inputs.sample_groups import read_sample_groups
    >>> read_sample_groups(["d2", "d1", "d2"], 3)
    array([1, 0, 1])
    """
    labels = np.asarray(groups)
    if labels.ndim != 1:
        raise ValueError(f"groups must be one-dimensional, one entry per sample, but has {labels.ndim} dimensions.")
    if len(labels) != n_samples:
        raise ValueError(f"groups has {len(labels)} entries, but X has {n_samples} samples.")
    if labels.dtype.kind == "O":
        missing = np.array([label is None or str(label) in ("nan", "<NA>", "NaT") for label in labels], dtype=bool)
        labels = np.array([f"{type(label).__name__} {label}" for label in labels])
    else:
        missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(n_samples, dtype=bool)
    if missing.any():
        raise ValueError(
            f"groups is missing for {int(missing.sum())} sample(s). The first is sample {int(np.argmax(missing))}. Drop these "
            "samples, or give each its own group."
        )
    codes: np.ndarray = np.unique(labels, return_inverse=True)[1]
    if n_samples and not codes.any():
        raise ValueError(
            "groups has a single group. Validation requires at least two. Omit groups if samples are independent."
        )
    return codes


def accepts_groups(selector: Any) -> bool:
    """Return True if ``fit`` of an estimator, or of its class, has a parameter ``groups`` for sample groups."""
    return "groups" in inspect.signature(selector.fit).parameters


def is_constant_within(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return whether values are equal within each sample group, one entry per group number.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.inputs.sample_groups import is_constant_within
    >>> is_constant_within(np.array([1, 1, 0, 1]), np.array([0, 0, 1, 1]))
    array([ True, False])
    """
    first = np.zeros(groups.max() + 1, dtype=np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]
    differs = values != values[first[groups]]
    return np.bincount(groups, differs if differs.ndim == 1 else differs.any(axis=1), minlength=len(first)) == 0.0


def halves(groups: np.ndarray, codes: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Return a mask of the samples of a random half of the sample groups.

    Groups of the same most frequent class and of similar size form pairs, and one of each pair belongs to the half. So the
    halves have similar sizes and shares of the classes. Both contain every class.

    Parameters
    ----------
    groups : ndarray of int of shape (n_samples,)
        Sample groups. Their numbers need not be consecutive.
    codes : ndarray of int of shape (n_samples,) or None
        Class codes; None for numbers.
    rng : Generator
        Source of random numbers.
    """
    _, own = np.unique(groups, return_inverse=True)
    sizes = np.bincount(own)
    stratum = np.zeros(len(sizes), dtype=np.int64)
    if codes is not None:
        stratum = np.stack([np.bincount(own, codes == code) for code in range(codes.max() + 1)]).argmax(axis=0)
    for _ in range(_MAX_DRAWS):
        order = np.lexsort((rng.permutation(len(sizes)), sizes, stratum))
        chosen = np.zeros(len(sizes), dtype=bool)
        last = len(order) - len(order) % 2
        first = rng.random(last // 2) < 0.5
        chosen[order[0:last:2]], chosen[order[1:last:2]] = first, ~first
        chosen[order[last:]] = rng.random() < 0.5
        half = chosen[own]
        if codes is None or all(set(codes[part].tolist()) == set(codes.tolist()) for part in (half, ~half)):
            return half
    raise ValueError(
        "No division of the sample groups into halves has every class in both. Each class must occur in two sample groups or "
        "more. Merge classes, or use more groups."
    )


def permutation_within(groups: np.ndarray, targets: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each sample the sample whose label (and covariates) it gets in a permutation that respects sample groups.

    Labels that are constant within a group are exchanged between such groups of similar size. If their sizes differ, the
    samples of the smaller group are repeated. Labels that vary within a group are permuted within it, so what distinguishes
    groups from each other remains.

    Parameters
    ----------
    groups : ndarray of int of shape (n_samples,)
        Sample groups. Their numbers need not be consecutive.
    targets : ndarray of shape (n_samples,)
        Class codes or numbers.
    rng : Generator
        Source of random numbers.
    """
    _, own = np.unique(groups, return_inverse=True)
    members = np.split(np.argsort(own, kind="stable"), np.cumsum(np.bincount(own))[:-1])
    constant = is_constant_within(targets, own)
    result = np.arange(len(groups))
    for group in np.flatnonzero(~constant):
        result[members[group]] = rng.permutation(members[group])
    for part in _similar_sizes(np.flatnonzero(constant), np.bincount(own)):
        for group, source in zip(part.tolist(), rng.permutation(part).tolist(), strict=True):
            result[members[group]] = np.resize(rng.permutation(members[source]), len(members[group]))
    return result


def _similar_sizes(groups: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Divide groups into parts of similar sizes, with at least ``_MIN_EXCHANGED`` groups per part as far as possible."""
    order = groups[np.argsort(sizes[groups], kind="stable")]
    parts: list[list[int]] = []
    for group in order.tolist():
        if parts and (len(parts[-1]) < _MIN_EXCHANGED or sizes[group] <= _SIZE_RATIO * sizes[parts[-1][0]]):
            parts[-1].append(group)
        else:
            parts.append([group])
    if len(parts) > 1 and len(parts[-1]) < _MIN_EXCHANGED:
        parts[-2] += parts.pop()
    return [np.array(part) for part in parts]
