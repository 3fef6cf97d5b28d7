"""All features by score, ties in a way that does not depend on the order of the columns."""

from __future__ import annotations

import numpy as np

from coterie.data.source import FeatureSource
from coterie.order import TIE

# Fingerprints that differ by less than this part are those of equal columns.
_EQUAL = 1e-9


def by_score(source: FeatureSource, scores: np.ndarray, features: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """Some features, best score first; the tied ones by the content of their columns, then by name or position.

    Scores closer than 1e-10 of the best are tied. The content of a column is its product with one fixed random vector,
    taken for all tied features in one pass: word counts have ties by the thousand.
    """
    order = features[np.argsort(-scores[features], kind="stable")]
    level = _levels(scores[order], TIE * float(scores.max(initial=0.0)))
    tied = np.flatnonzero((np.bincount(level) > 1)[level])
    if not len(tied):
        return order
    mine, level = order[tied], level[tied]
    probe = np.random.default_rng(20150427).standard_normal((source.shape[0], 1))
    prints = source.products(probe, features=mine, n_threads=n_threads)[:, 0]
    place = np.lexsort((-prints, level))
    mine, level, prints = mine[place], level[place], prints[place]
    apart = np.diff(prints, prepend=np.inf) < -_EQUAL * np.abs(prints)
    apart[1:] |= np.diff(level) > 0
    same = np.cumsum(apart)
    names = source.feature_names
    last = mine if names is None else np.array([str(names[j]) for j in mine])
    order[tied] = mine[np.lexsort((last, same))]
    return order


def _levels(falling: np.ndarray, tie: float) -> np.ndarray:
    """Number of the level of each of some falling scores; scores of one level differ from the next by no more than a tie."""
    if not len(falling):
        return np.empty(0, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(falling[:-1] - falling[1:] > tie)])
