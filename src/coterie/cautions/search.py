"""The search for cautions, in bounded time and memory: two passes over the features, and a sample of features and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coterie._numba import one_blas_thread
from coterie.cautions.caution import LEAK, SMALL_CLASSES, Caution
from coterie.cautions.columns import feature_id_cautions, leak_caution, other_id_cautions
from coterie.cautions.dependence import (
    Dependence,
    dependence_caution,
    duplicates_caution,
    find_dependence,
    share_of_duplicates,
)
from coterie.cautions.genotypes import (
    are_genotypes,
    relatives_caution,
    share_with_relatives,
    structure_caution,
    structure_p_value,
)
from coterie.cautions.sampling import DrawnRows, draw_features, read_contents, read_rows, row_parts
from coterie.data.covariates import as_covariates
from coterie.data.source import FeatureSource
from coterie.inputs.several_targets import are_several, columns_of

# Largest number of classes whose indicators are targets, and of values of these.
_MAX_CLASSES, _MAX_INDICATORS = 50, 50_000_000
# Number of samples of a class below which results for it are unreliable, and number of classes shown.
_SMALL_CLASS_SIZE, _SHOWN_CLASSES = 10, 5
# Largest number of targets that are examined, with two passes over the features each.
_MAX_TARGETS = 10


@dataclass(frozen=True, eq=False)
class AboutSamples:
    """What is known about the samples.

    Attributes
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or None
        Labels or targets.
    task : {"classification", "regression", "one-class"} or None
        Kind of prediction; None without labels.
    groups : array-like of shape (n_samples,) or None
        Sample groups.
    covariates : Covariates, array-like or None
        Covariates of the samples.
    offset : bool
        Whether predictions have an offset per sample, which accounts for relatives.
    columns : mapping of str to ndarray of shape (n_samples,)
        Columns that are not features: text that was ignored, or columns of ``obs``.
    is_genetic : bool
        Whether the features are known to be genotypes, because they have chromosomes.
    """

    y: Any = None
    task: str | None = None
    groups: Any = None
    covariates: Any = None
    offset: bool = False
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    is_genetic: bool = False


def find_cautions(source: FeatureSource, about: AboutSamples) -> list[Caution]:
    """Return the cautions about some data.

    Features on the workers of a cluster are not examined. Invalid labels or values have no cautions; the fit explains the
    error.

    Parameters
    ----------
    source : FeatureSource
        Features.
    about : AboutSamples
        Labels, sample groups, covariates and other columns.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.cautions import AboutSamples, find_cautions
    >>> from coterie.data import as_source
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.standard_normal((50, 100)), 5, axis=0) + rng.standard_normal((250, 100))
    >>> y = np.repeat(rng.permutation(50) % 2, 5)
    >>> [caution.kind for caution in find_cautions(as_source(X), AboutSamples(y, "classification"))]
    ['dependent samples']
    >>> find_cautions(as_source(X), AboutSamples(y, "classification", groups=np.repeat(np.arange(50), 5)))
    []
    """
    try:
        return _about_targets(source, about) if are_several(about.y) else _found(source, about)
    except (TypeError, ValueError):
        return []


def _about_targets(source: FeatureSource, about: AboutSamples) -> list[Caution]:
    """Return the cautions for the first of several targets: all leaks, and the first caution of every other kind."""
    found: dict[tuple[str, str], Caution] = {}
    for name, y in list(columns_of(about.y).items())[:_MAX_TARGETS]:
        for one in _found(source, replace(about, y=y)):
            leak = one.kind == LEAK
            text = f"Target {name!r}: {one.text[0].lower()}{one.text[1:]}" if leak else one.text
            found.setdefault((one.kind, text if leak else ""), Caution(one.kind, text))
    return list(found.values())


def _found(source: FeatureSource, about: AboutSamples) -> list[Caution]:
    """Return the cautions about valid data."""
    y = np.asarray(about.y) if about.y is not None and about.task in ("classification", "regression") else None
    found: list[Caution | None] = [] if about.task != "classification" or y is None else [_small_classes(y)]
    if about.groups is None:
        found += other_id_cautions(about.columns.items(), y)
    if source.n_workers is None and source.shape[0] > 1:
        found += feature_id_cautions(source, y)
        with one_blas_thread():
            found += _about_values(source, y, about)
    return [one for one in found if one is not None]


def _small_classes(y: np.ndarray) -> Caution | None:
    """Return the caution about classes with few samples."""
    labels, counts = np.unique(y, return_counts=True)
    counted = zip(labels.tolist(), counts.tolist(), strict=True)
    small = [f"{label} ({count})" for label, count in counted if count < _SMALL_CLASS_SIZE]
    if not small:
        return None
    shown = ", ".join(small[:_SHOWN_CLASSES]) + (", …" if len(small) > _SHOWN_CLASSES else "")
    return Caution(SMALL_CLASSES, f"Classes with few samples: {shown}. Results for these classes are unreliable.")


def _about_values(source: FeatureSource, y: np.ndarray | None, about: AboutSamples) -> list[Caution | None]:
    """Return the cautions that depend on the values of the features."""
    targets, n_classes = (None, 1) if y is None else _targets(y, classes=about.task == "classification")
    moments = source.moments()
    if not moments.n_varying:
        return []
    contents = read_contents(source, moments, targets)
    found: list[Caution | None] = []
    if y is not None and targets is not None:
        found.append(leak_caution(source, contents.correlation, y, classes=about.task == "classification"))
    if about.groups is not None and about.covariates is not None:
        return found
    parts = row_parts(read_rows(source, draw_features(source, moments, contents.content)))
    if about.is_genetic or (not source.is_sparse and are_genotypes(parts[0])):
        genetic = [one for one in _about_genotypes(parts, targets, about) if one is not None]
        found += genetic
        if about.is_genetic or genetic:
            return found
    if about.groups is None:
        found.append(duplicates_caution(max(share_of_duplicates(part, is_sparse=source.is_sparse) for part in parts)))
        if targets is not None:
            found.append(_dependence(parts, targets, n_classes))
    return found


def _dependence(parts: list[DrawnRows], targets: np.ndarray, n_classes: int) -> Caution | None:
    """Return the caution about samples that belong together: that of the part with the clearest clusters."""
    found: list[Dependence] = []
    for part in parts:
        own = targets[part.rows]
        one = find_dependence(part, own - own.mean(axis=0), n_classes)
        found += [] if one is None else [one]
    return dependence_caution(max(found, key=lambda one: one.by_sample - one.by_cluster)) if found else None


def _about_genotypes(parts: list[DrawnRows], targets: np.ndarray | None, about: AboutSamples) -> list[Caution | None]:
    """Return the cautions about relatives and population structure."""
    found: list[Caution | None] = []
    if about.groups is None and not about.offset:
        found.append(relatives_caution(max(share_with_relatives(part) for part in parts)))
    if targets is not None and not about.offset:
        first = parts[0]
        covariates = None if about.covariates is None else as_covariates(about.covariates).values[first.rows]
        p_value = structure_p_value(first, targets[first.rows], covariates)
        found.append(structure_caution(p_value, with_covariates=covariates is not None))
    return found


def _targets(y: np.ndarray, *, classes: bool) -> tuple[np.ndarray | None, int]:
    """Return centred indicators of the classes or the numbers, and the number of classes; None for too many classes."""
    if not classes:
        numbers = np.asarray(y, dtype=np.float64)
        return (numbers - numbers.mean())[:, None], 1
    labels, codes = np.unique(y, return_inverse=True)
    if not 2 <= len(labels) <= min(_MAX_CLASSES, _MAX_INDICATORS // len(codes)):
        return None, len(labels)
    indicators = (codes[:, None] == np.arange(len(labels))).astype(np.float64)
    return indicators - indicators.mean(axis=0), len(labels)
