"""What each block of several matrices contributes: groups, share of the model, and held-out scores with and without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.data.blocks import blocks_of, some_features
from coterie.estimators.base import GroupDiscovery
from coterie.groups.columns import Content, Record
from coterie.markup import Markup, join, shortened, tag, wide_table
from coterie.report.held_out import HeldOut
from coterie.validation.intervals import fold_interval

if TYPE_CHECKING:
    from coterie.report.assembly import OpenedData

Interval = tuple[float, float]
_LETTERS = 60


@dataclass(frozen=True)
class BlockContribution:
    """Contribution of a block to a discovery.

    Attributes
    ----------
    block : str
        Name of the block.
    n_features : int
        Number of its features.
    n_groups : int
        Number of groups with a support feature of this block.
    n_members : int
        Number of its features in groups.
    share : float or None
        Covariance of the block's part of the outputs of the model with the outputs, divided by their variance. The shares of
        all blocks sum to 1. A share is negative if the block corrects the others.
    alone, without : float or None
        Held-out score of the whole procedure with this block only, and with all other blocks; None if it was not computed.
    alone_interval, without_interval : tuple of float or None
        Intervals of these scores.
    adds : float or None
        Held-out score with all blocks minus that without this block: the mean difference over the folds.
    adds_interval : tuple of float or None
        Interval of ``adds``, from the differences in the same folds.

    Examples
    --------
    >>> from coterie.report import BlockContribution
    >>> BlockContribution("rna", 60, n_groups=2, n_members=5, share=0.7, alone=0.8, without=0.6, adds=0.25).adds
    0.25
    """

    block: str
    n_features: int
    n_groups: int
    n_members: int
    share: float | None = None
    alone: float | None = None
    alone_interval: Interval | None = None
    without: float | None = None
    without_interval: Interval | None = None
    adds: float | None = None
    adds_interval: Interval | None = None

    def to_dict(self) -> Record:
        """Return the entry of ``result.json``."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Content) -> BlockContribution:
        """Create a contribution from the value of :meth:`to_dict`."""
        values: Record = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
        return cls(**values)


def block_contributions(model: GroupDiscovery, data: OpenedData) -> tuple[BlockContribution, ...]:
    """Return the groups and the share of each block; empty for features that are not divided into blocks."""
    blocks = blocks_of(data.source)
    shares = _shares(model, data, blocks)
    supports, members = model.groups_.support, model.groups_.members
    return tuple(
        BlockContribution(
            name,
            len(features),
            int(np.isin(supports, features).sum()),
            int(np.isin(members, features).sum()),
            shares.get(name),
        )
        for name, features in blocks.items()
    )


def _shares(model: GroupDiscovery, data: OpenedData, blocks: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the share of each block in the variance of the outputs; empty if they do not vary."""
    used, coef = model.prediction_features_, model.prediction_coef_
    n_samples = data.source.shape[0]
    weight = np.ones(n_samples) if data.sample_weight is None else np.asarray(data.sample_weight, dtype=np.float64)
    parts = {}
    for name, features in blocks.items():
        own = np.flatnonzero(np.isin(used, features))
        outputs = np.asarray(data.source.columns(used[own]) @ coef[:, own].T)
        parts[name] = outputs - np.average(outputs, axis=0, weights=weight)
    total = np.sum(list(parts.values()), axis=0) if parts else np.zeros((n_samples, 1))
    variance = float((weight[:, None] * total**2).sum())
    return {name: float((weight[:, None] * part * total).sum()) / variance for name, part in parts.items()} if variance else {}


def with_held_out(
    found: Sequence[BlockContribution],
    data: OpenedData,
    everything: HeldOut,
    assess: Callable[[OpenedData], HeldOut | None],
    *,
    paired: bool = True,
) -> tuple[BlockContribution, ...]:
    """Return contributions with the held-out scores of each block alone and of all others.

    Parameters
    ----------
    found : sequence of BlockContribution
        Contributions without held-out scores.
    data : OpenedData
        Data with at least two blocks.
    everything : HeldOut
        Held-out scores with all blocks.
    assess : callable
        Function that returns the same for other features; None if no feature varies.
    paired : bool, default=True
        Whether all scores are those of the same folds.
    """
    blocks = blocks_of(data.source)
    every = np.arange(data.source.shape[1])
    scores: dict[tuple[int, ...], HeldOut | None] = {}

    def assessed(features: np.ndarray) -> HeldOut | None:
        """Return the scores of some features. With two blocks, all but one are the other one."""
        key = int(features[0]), int(features[-1]), len(features)
        if key not in scores:
            source = some_features(data.source, features)
            scores[key] = assess(replace(data, X=source, source=source, feature_info={}))
        return scores[key]

    result = []
    for one in found:
        own = blocks[one.block]
        alone, without = assessed(own), assessed(np.setdiff1d(every, own))
        values: dict[str, Any] = {}
        if alone is not None:
            values |= {"alone": alone.value, "alone_interval": alone.interval}
        if without is not None:
            values |= {"without": without.value, "without_interval": without.interval}
            values |= _added(everything, without) if paired else {"adds": everything.value - without.value}
        result.append(replace(one, **values))
    return tuple(result)


def _added(everything: HeldOut, other: HeldOut) -> Record:
    """Return the difference of two held-out scores in the same folds, with its interval."""
    if not len(everything.folds) == len(other.folds) > 0:  # the quoted score is not that of the folds
        return {"adds": everything.value - other.value}
    differences = np.asarray(everything.folds, dtype=np.float64) - np.asarray(other.folds, dtype=np.float64)
    return {"adds": float(np.nanmean(differences)), "adds_interval": fold_interval(differences)}


def blocks_markup(blocks: Sequence[Content], score: str | None) -> Markup:
    """Return the table of the blocks, from their entries in ``result.json``."""
    heads = ["block", "features", "groups", "features in groups", "share of the model"]
    scored = score is not None and any(own["alone"] is not None or own["without"] is not None for own in blocks)
    heads += [f"held-out {score} alone", "without it", "it adds"] if scored else []
    rows = []
    for own in blocks:
        counts = (f"{own[name]:,}" for name in ("n_features", "n_groups", "n_members"))
        cells = [*counts, "–" if own["share"] is None else f"{own['share']:.0%}".replace("-", "−")]
        cells += [_with_interval(own, name) for name in ("alone", "without", "adds")] if scored else []
        rows.append(tag("tr", tag("td", tag("bdi", shortened(own["block"], _LETTERS))), *(tag("td", cell) for cell in cells)))
    head = tag("thead", tag("tr", *(tag("th", name) for name in heads)))
    note = (
        "The share is the covariance of a block's part of the model's output with the output, over its variance. Scores are "
        "those of the whole procedure with one block, and with all others. What a block adds is the mean difference over the "
        "folds, with its 95% interval."
    )
    return join([wide_table(head, rows), tag("p", note, class_="quiet")])


def _with_interval(own: Content, name: str) -> str:
    value, interval = own[name], own[f"{name}_interval"]
    if value is None:
        return "–"
    shown = f" ({interval[0]:.3g} to {interval[1]:.3g})" if interval and None not in interval else ""
    return f"{value:.3g}{shown}".replace("-", "−")
