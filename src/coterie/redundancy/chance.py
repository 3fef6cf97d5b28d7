r"""Relevance of the features: their scores on the scale of the redundancies, in excess of what chance reaches.

GRM prefers features that are correlated with no others, and features without any effect are the least correlated. Unless they
are excluded, they are selected where a few strong features make all other scores small in comparison. The *chance level* is
the relevance above which at most a share ``fdr`` of the features is expected to have no effect, as in the procedure of
Benjamini and Hochberg: the lowest level t with

.. math:: m\,P_0(t) \le \mathrm{fdr} \cdot \max(N(t), 1)

for N(t) of the m features at or above t, where :math:`P_0(t)` is the probability that a feature without effect reaches t. The
relevance is the excess over this level, so that features near it have little weight, and those below it have none.

:math:`P_0` is known for two scores: the share of variance between C classes has a beta distribution with parameters
(C - 1)/2 and (n - C)/2, and the squared correlation with a number one with 1/2 and (n - 2)/2 (equivalent to the F test). For
other scores that use labels it is estimated from permuted labels, pooled over the features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from coterie._warnings import ignored
from coterie.data.view import FeatureView
from coterie.inputs.targets import LoneClassWarning, class_codes
from coterie.inputs.types import TargetsLike
from coterie.methods import SCORES

# Levels at which features are counted. Counts of blocks of features can be added, wherever the blocks are.
_LEVELS = np.append(np.logspace(-12.0, 0.0, 12_000, endpoint=False), 1.0)
# Number of permutations of the labels for scores without a known distribution, and their seed.
N_PERMUTATIONS = 20
_SEED = 20260119


@dataclass(frozen=True)
class RelevanceScale:
    """Conversion of scores to relevances between 0 and 1.

    Attributes
    ----------
    form : {"ratio", "root", "share"}
        Relation of the score s to a share r of explained variance: s = r / (1 - r) (Fisher), s = √r (correlation), or r is
        proportional to s (all other scores).

    largest : float
        Score of relevance 1, for ``"share"``.

    level : float
        Chance level on the scale of r. It becomes the zero of the relevance.
    """

    form: str
    largest: float = 1.0
    level: float = 0.0

    @classmethod
    def of(cls, score_func: object, largest: float) -> RelevanceScale:
        """Return the scale of a score without a chance level, given the largest score."""
        name = score_func if isinstance(score_func, str) else ""
        return cls({"fisher": "ratio", "correlation": "root"}.get(name, "share"), largest)

    def share(self, scores: np.ndarray) -> np.ndarray:
        """Return the scores on the scale of r, without the chance level."""
        if self.form == "ratio":
            return np.asarray(scores / (1.0 + scores))
        if self.form == "root":
            return np.asarray(scores * scores)
        return np.asarray(scores / self.largest)

    def relevance(self, scores: np.ndarray) -> np.ndarray:
        """Return the relevances: the excess of r over the chance level, divided by its largest possible value."""
        if self.level >= 1.0:
            return np.zeros(len(scores))
        excess = np.maximum(self.share(scores) - self.level, 0.0)
        return np.asarray(excess / (1.0 - self.level))

    @property
    def chance_score(self) -> float:
        """Chance level on the scale of the scores."""
        if self.form == "ratio":
            return self.level / (1.0 - self.level) if self.level < 1.0 else np.inf
        return float(np.sqrt(self.level)) if self.form == "root" else self.level * self.largest


def relevance_of(
    scores: np.ndarray,
    p_values: np.ndarray | None,
    score_func: object,
    parameters: Mapping[str, Any],
    view: FeatureView,
    y: TargetsLike,
    usable: np.ndarray,
    fdr: float | None,
) -> tuple[np.ndarray, RelevanceScale]:
    """Return the relevances of all features and their scale, without a chance level if ``fdr`` is None or none is defined."""
    scale = RelevanceScale.of(score_func, float(scores.max()))
    if fdr is not None and has_chance_level(score_func):
        assert isinstance(score_func, str)
        n_usable = int(np.count_nonzero(usable))
        scale = at_chance_level(scale, score_func, parameters, view, y, scores, n_usable, fdr)
    elif fdr is not None and p_values is not None:
        chosen = _significant(p_values, usable, fdr) & (scores > 0.0)
        lowest = float(scale.share(scores[chosen]).min()) if chosen.any() else 1.0
        # Just below the lowest significant score, so that its feature remains a candidate.
        scale = replace(scale, level=(1.0 - 1e-9) * lowest if chosen.any() else 1.0)
        return np.where(chosen, scale.relevance(scores), 0.0), scale
    return scale.relevance(scores), scale


def has_chance_level(score_func: object) -> bool:
    """Return True if a score by name uses labels, so that its values without effect are defined."""
    return isinstance(score_func, str) and SCORES[score_func].supervised


def at_chance_level(
    scale: RelevanceScale,
    score_func: str,
    parameters: Mapping[str, Any],
    view: FeatureView,
    y: TargetsLike,
    scores: Any,
    n_usable: int,
    fdr: float,
) -> RelevanceScale:
    """Return the scale with the chance level of a supervised score.

    ``scores`` contains one score per feature, possibly on a cluster. ``n_usable`` is the number of features that are not
    constant.
    """
    if score_func in ("fisher", "correlation"):
        shares = known_shares(score_func, view.n_samples, y)
    else:
        shares = permuted_shares(scale, score_func, parameters, view, y) / n_usable
    return replace(scale, level=chance_level(_reached(view, scores, scale), n_usable * shares, fdr))


def chance_level(observed: np.ndarray, expected: np.ndarray, fdr: float) -> float:
    """Return the lowest of the levels above which the expected share of features without effect is at most ``fdr``.

    ``observed`` and ``expected`` contain the number of features that reach each level, and that would without any effect.
    """
    sufficient = np.flatnonzero(expected <= fdr * np.maximum(observed, 1))
    return float(_LEVELS[sufficient[0]]) if len(sufficient) else 1.0


def known_shares(score_func: str, n_samples: int, y: TargetsLike) -> np.ndarray:
    """Return the probabilities that a feature without effect reaches each level, for scores with a beta distribution."""
    n_classes = 2
    if score_func == "fisher":
        with ignored(LoneClassWarning):  # the score has issued the same warning
            n_classes = len(class_codes(y, n_samples, "fisher_score")[0])
    if n_samples <= n_classes:  # every feature explains all differences
        return np.ones(len(_LEVELS))
    return np.asarray(stats.beta.sf(_LEVELS, (n_classes - 1) / 2, (n_samples - n_classes) / 2))


def permuted_shares(
    scale: RelevanceScale, score_func: str, parameters: Mapping[str, Any], view: FeatureView, y: TargetsLike
) -> np.ndarray:
    """Return the mean number of features that reach each level with permuted labels."""
    labels, rng = np.asarray(y), np.random.default_rng(_SEED)
    total = np.zeros(len(_LEVELS))
    with ignored(LoneClassWarning):
        for _ in range(N_PERMUTATIONS):
            permuted = labels[rng.permutation(len(labels))]
            scores = SCORES[score_func].load()(view.source, permuted, **{"n_jobs": view.n_threads, **parameters})
            total += _reached(view, scores, scale)
    return total / N_PERMUTATIONS


def _reached(view: FeatureView, scores: Any, scale: RelevanceScale) -> np.ndarray:
    """Return the number of features whose scores reach each level."""
    parts = view.source.map_blocks(_counts, None, scores, scale)
    return np.cumsum(np.sum(parts, axis=0)[::-1])[::-1][1:]


def _counts(_: object, scores: np.ndarray, scale: RelevanceScale) -> np.ndarray:
    """Return the number of features of a block between successive levels."""
    shares = scale.share(np.maximum(scores, 0.0))
    return np.bincount(np.searchsorted(_LEVELS, shares, side="right"), minlength=len(_LEVELS) + 1)


def _significant(p_values: np.ndarray, usable: np.ndarray, fdr: float) -> np.ndarray:
    """Return a mask of the usable features that the procedure of Benjamini and Hochberg selects."""
    found = np.zeros(len(usable), dtype=bool)
    own = np.where(np.isnan(p_values), 1.0, np.clip(p_values, 0.0, 1.0))[usable]
    found[usable] = stats.false_discovery_control(own) <= fdr
    return found
