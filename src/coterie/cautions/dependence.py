"""Samples that belong together: tight clusters of rows whose labels cannot be predicted from other clusters.

A model that is validated on random folds can recognise the cluster of a held-out sample and repeat its label. This shows as a
difference: predictions by ridge regression are good if single samples are left out, and poor if whole clusters are. Clusters
of independent samples, such as subtypes of a disease, do not have this difference, because their labels follow from features
that the clusters share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from coterie.cautions.caution import DEPENDENT, DUPLICATES, Caution, percent
from coterie.cautions.sampling import DrawnRows, unit_rows
from coterie.order import SEED

# Smallest numbers of rows, of clusters, and of clusters per class. With fewer clusters, subtypes of two classes look the same.
_MIN_ROWS, _MIN_CLUSTERS, _MIN_CLUSTERS_PER_CLASS = 12, 6, 3
# Ratio of the numbers of clusters that are tried.
_CUT_RATIO = 1.15
# A row is in a tight cluster if its similarity to the next cluster is at most half that to its own, both above the average.
# Smallest share of such rows.
_MIN_MARGIN, _MIN_TIGHT = 0.5, 0.7
# Difference of that share up to which the larger number of clusters is preferred.
_TIGHT_TIE = 0.05
# Smallest correlation of the predictions with the labels if single samples are left out, and largest share of it that
# remains if clusters are left out.
_MIN_CORRELATION, _MAX_REMAINING = 0.3, 0.4
# Numbers of principal components that are removed in further searches, if each explains less than this share of the labels.
_N_COMPONENTS, _MAX_UNRELATED = (1, 2, 3, 5, 8, 12), 0.2
# Penalty of the ridge regression relative to the squared norm of a row, and variance of its intercept.
_PENALTY, _INTERCEPT = 1.0, 100.0
# Distance of two rows, relative to their norm, up to which they are equal; smallest share of such rows for a warning; smallest
# number of nonzeros of a row in sparse data.
_EQUAL, _MIN_DUPLICATES, _MIN_NONZEROS = 1e-5, 0.02, 10


class Dependence(NamedTuple):
    """Tight clusters: their number, and the correlations of the predictions, leaving out samples and clusters."""

    n_clusters: int
    by_sample: float
    by_cluster: float


def find_dependence(part: DrawnRows, targets: np.ndarray, n_classes: int) -> Dependence | None:
    """Return the clusters of rows that belong together; None if there are none.

    Parameters
    ----------
    part : DrawnRows
        Rows to compare.
    targets : ndarray of shape (n_rows, n_outputs)
        Centred labels of these rows: indicators of the classes, or numbers.
    n_classes : int
        Number of classes; 1 for numbers.
    """
    values = part.standardized()
    fewest = max(_MIN_CLUSTERS, _MIN_CLUSTERS_PER_CLASS * n_classes)
    if len(values) < max(_MIN_ROWS, 2 * fewest) or not values.shape[1]:
        return None
    found = _in_values(values, targets, fewest)
    for simpler in _without_structure(values, targets) if found is None else ():
        found = found or _in_values(simpler, targets, fewest)
    return found


def _without_structure(values: np.ndarray, targets: np.ndarray) -> Iterator[np.ndarray]:
    """Yield values without the first principal components, more of them each time, up to one that is related to the labels.

    The components may be types of cells, of which every donor has all.
    """
    vectors = np.linalg.eigh(values @ values.T)[1][:, ::-1][:, : _N_COMPONENTS[-1]]
    shares = ((vectors.T @ targets) ** 2 / np.maximum((targets**2).sum(axis=0), 1e-300)).max(axis=1)
    for number in _N_COMPONENTS:
        if shares[:number].max() >= _MAX_UNRELATED:
            return
        yield np.asarray(values - vectors[:, :number] @ (vectors[:, :number].T @ values))


def _in_values(values: np.ndarray, targets: np.ndarray, fewest: int) -> Dependence | None:
    """Return the tight clusters of rows in their values; None if there are none."""
    directions = unit_rows(values)
    n_rows = len(directions)
    similarity = directions @ directions.T
    inverse = np.linalg.inv(similarity + _INTERCEPT + _PENALTY * np.eye(n_rows))
    weights = inverse @ targets
    by_sample = _correlation(targets, targets - weights / np.diag(inverse)[:, None])
    if by_sample < _MIN_CORRELATION:
        return None
    cuts = _cuts(similarity, fewest)
    tight = np.array([_share_of_tight(similarity, clusters) for clusters in cuts])
    if not len(tight) or tight.max() < _MIN_TIGHT:
        return None
    clusters = cuts[int(np.flatnonzero(tight >= tight.max() - _TIGHT_TIE)[-1])]
    by_cluster = _correlation(targets, _left_out(inverse, weights, targets, clusters))
    if by_cluster > _MAX_REMAINING * by_sample:
        return None
    return Dependence(int(clusters.max()) + 1, by_sample, by_cluster)


def _cuts(similarity: np.ndarray, fewest: int) -> list[np.ndarray]:
    """Return clusterings of the rows by average linkage, with at least ``fewest`` clusters and two rows per cluster."""
    distance = np.maximum(1.0 - (similarity + similarity.T) / 2, 0.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average")
    highest = len(similarity) / 1.5
    counts = fewest * _CUT_RATIO ** np.arange(1 + int(np.log(highest / fewest) / np.log(_CUT_RATIO)))
    found = {}
    for count in np.unique(np.rint(counts).astype(int)).tolist():
        clusters = fcluster(tree, count, "maxclust") - 1
        if clusters.max() + 1 >= fewest:
            found[int(clusters.max()) + 1] = clusters
    return [found[count] for count in sorted(found)]


def _share_of_tight(similarity: np.ndarray, clusters: np.ndarray) -> float:
    """Return the share of rows that are much more similar to their own cluster than to any other."""
    rows, sizes = np.arange(len(clusters)), np.bincount(clusters)
    indicator = (clusters[:, None] == np.arange(len(sizes))).astype(np.float64)
    sums = similarity @ indicator
    own = (sums[rows, clusters] - np.diag(similarity)) / np.maximum(sizes[clusters] - 1, 1)
    other = (sums.sum(axis=1) - sums[rows, clusters]) / (len(rows) - sizes[clusters])
    means = sums / sizes
    means[rows, clusters] = -np.inf
    margin = own - means.max(axis=1) >= _MIN_MARGIN * (own - other)
    return float((margin & (own > other) & (sizes[clusters] > 1)).mean())


def _left_out(inverse: np.ndarray, weights: np.ndarray, targets: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return the predictions of ridge regression for each cluster from all other clusters."""
    result = np.empty_like(targets)
    for cluster in range(int(clusters.max()) + 1):
        rows = np.flatnonzero(clusters == cluster)
        result[rows] = targets[rows] - np.linalg.solve(inverse[np.ix_(rows, rows)], weights[rows])
    return result


def _correlation(targets: np.ndarray, predictions: np.ndarray) -> float:
    """Return the correlation of targets and predictions over all outputs."""
    size = np.sqrt((targets**2).sum() * (predictions**2).sum())
    return float((targets * predictions).sum() / size) if size > 0 else 0.0


def dependence_caution(found: Dependence) -> Caution:
    """Return the caution about tight clusters."""
    return Caution(
        DEPENDENT,
        f"Samples form {found.n_clusters} tight clusters, and their labels are predicted within clusters only: a linear model "
        f"has a correlation of {found.by_sample:.2f} with the labels if single samples are left out, "
        f"{found.by_cluster:.2f} if clusters are. If samples belong together (rows of a patient, cells of a donor, a batch), "
        "pass their sample groups (groups=, --sample-groups). Otherwise scores and confidences are too good.",
    )


def share_of_duplicates(part: DrawnRows, *, is_sparse: bool) -> float:
    """Return the share of rows that equal another row, beyond the share expected if features were independent."""
    values = part.values.astype(np.float64)
    if is_sparse:
        values = values[(values != 0).sum(axis=1) >= _MIN_NONZEROS]
    if len(values) < _MIN_ROWS or not values.shape[1]:
        return 0.0
    shuffled = np.random.default_rng(SEED).permuted(values, axis=0)
    return (_n_equal(values) - _n_equal(shuffled)) / len(part.rows)


def _n_equal(values: np.ndarray) -> int:
    """Return the number of rows that nearly equal another row, up to the scale of the features."""
    scale = np.maximum(values.std(axis=0), 1e-300)
    contents = (values / scale) @ np.random.default_rng(SEED).standard_normal((values.shape[1], 2))
    unit = _EQUAL * np.sqrt(values.shape[1])
    _, which, counts = np.unique(np.rint(contents / unit), axis=0, return_inverse=True, return_counts=True)
    return int((counts[which.ravel()] > 1).sum())


def duplicates_caution(share: float) -> Caution | None:
    """Return the caution about duplicate rows, if they are many."""
    if share < _MIN_DUPLICATES:
        return None
    return Caution(
        DUPLICATES,
        f"About {percent(share)} of the samples equal another sample. If they are in the training and in the held-out part, "
        "scores are too good. Remove duplicates, or pass sample groups that keep them together (groups=, --sample-groups).",
    )
