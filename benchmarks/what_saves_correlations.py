"""What saves the correlations: the share of pairs that each bound excludes, dense and sparse, and its growth with m.

One fit per data set: 50 support features, ten per round, threshold 0.7, C = 1. The bounds are computed again from their
formulas, each alone, for all pairs of a support feature and a varying feature, with the dual variables of the fit. Two
statements of the papers are computed, too: a counterexample to TPAMI's Proposition 1, and ICML's Algorithm 2 as printed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _real import data_path, load
from _record import read_arguments, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import sparse

from coterie import GroupDiscoveryClassifier
from coterie.correlation import PearsonCorrelation
from coterie.data import Exemplar, FeatureView, as_source, open_features
from coterie.datasets import make_support_affiliated

N_SUPPORT, PER_ROUND, THRESHOLD = 50, 10, 0.7
PAGE = DOCS / "what-saves-correlations.md"
DENSE_SIZES = (1000, 4000, 16_000, 32_000)
# Dense features whose early end is decided together with one read, as in DenseSource.
BATCH = 32


class Data(NamedTuple):
    """A name, features (array or CSC) and labels of two classes."""

    name: str
    X: Any
    y: np.ndarray


def planted(n_features: int, seed: int) -> Data:
    """Return dense data with 12 groups of 38 true features, as in TPAMI section 5.2 but with 1,000 samples."""
    made = make_support_affiliated(1000, n_features, random_state=seed)
    return Data("planted groups", made.X, made.y)


def text(n_features: int | None, seed: int) -> Data:
    """Return some words of 20 Newsgroups at random (None: all), with the first ten groups against the others."""
    X, labels = load("20news_bigrams")
    X = sparse.csc_array(X)
    if n_features is not None:
        X = X[:, np.sort(np.random.default_rng(seed).permutation(X.shape[1])[:n_features])]
    return Data("20 Newsgroups", X, np.where(labels < np.median(labels), 1, -1))


def real(name: str) -> Data:
    """Return a data set whose largest class is compared with the others."""
    if name == "plink_eur":
        folder = data_path("plink_eur")
        data = open_features(folder / "EUR_subset.bed", phenotype=folder / "EUR_subset.pheno.covars")
        X = np.asarray(data.source.columns(np.arange(data.source.shape[1])), dtype=np.float32)
        values = np.asarray(data.y, dtype=float)
        return Data(name, X, np.where(values > np.median(values), 1, -1))
    X, labels = load(name)
    names, counts = np.unique(labels, return_counts=True)
    y = np.where(labels == names[counts.argmax()], 1, -1)
    return Data(name, sparse.csc_array(X) if sparse.issparse(X) else np.asarray(X, dtype=np.float64), y)


def excluded_shares(data: Data, n_threads: int) -> dict[str, Any]:
    """Return one row: the share of pairs of support and varying features that each bound excludes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GroupDiscoveryClassifier(
            N_SUPPORT, n_features_per_round=PER_ROUND, threshold=THRESHOLD, C=1.0, n_jobs=n_threads
        ).fit(data.X, data.y)
    view = FeatureView.of(as_source(data.X), n_threads=n_threads)
    supports, residual = model.support_features_, model.dual_coef_[0]
    products = np.asarray(data.X.T @ residual).ravel()
    varying = np.flatnonzero(view.moments.norm > 0)
    n_features, n_pairs = data.X.shape[1], len(varying) * len(supports)
    possible = n_features * (n_features - 1) // 2
    correlation = PearsonCorrelation(view)
    total = float(residual.sum())
    exemplar = Exemplar(products, total, float(np.sqrt(residual @ residual - total**2 / len(residual))))
    found = correlation.strong(supports, THRESHOLD, exemplar)
    evaluated = correlation.n_evaluated
    row = {
        "data": data.name,
        "samples x features": f"{data.X.shape[0]:,} x {n_features:,}",
        "pairs with a support feature / all": _share(n_pairs, possible),
        "Theorem 1": _share(theorem_1(view, products, supports, varying, residual), n_pairs),
        "angle": _share(angle(view, products, total, exemplar.norm, supports, varying), n_pairs),
    }
    if sparse.issparse(data.X):
        size, overlap, cauchy = sparse_bounds(data.X, view, correlation, supports, varying)
        row |= {"size": _share(size, n_pairs), "overlap": _share(overlap, n_pairs), "Cauchy-Schwarz": _share(cauchy, n_pairs)}
    else:
        row |= {"size": "", "overlap": "", "Cauchy-Schwarz": _share(early_end(view, supports, varying), n_pairs)}
    return row | {
        "left after all": _share(evaluated, n_pairs),
        "found": _share(len(found.feature), n_pairs),
        "evaluated by the fit / all": _share(model.n_correlations_evaluated_, possible),
    }


def _share(part: int, whole: int) -> str:
    share = part / whole
    return "0" if part == 0 else f"{share:.1e}" if share < 1e-3 else f"{share:.4f}"


def theorem_1(view: FeatureView, scores: np.ndarray, supports: np.ndarray, varying: np.ndarray, residual: np.ndarray) -> int:
    """Return the number of pairs whose scores differ by more than the bound of TPAMI's Theorem 1."""
    n, tau = len(residual), 1.0 - THRESHOLD
    mean, sigma, count = view.moments.mean[varying], view.moments.scale[varying], 0
    for z in supports:
        spread, level = view.moments.scale[z], view.moments.mean[z]
        squares = (sigma - spread) ** 2 + (mean - level) ** 2 + 2 * tau * sigma * spread
        bound = np.sqrt(n * squares) * np.linalg.norm(residual)
        count += int((np.abs(np.abs(scores[varying]) - abs(scores[z])) > bound).sum())
    return count


def angle(
    view: FeatureView, scores: np.ndarray, shift: float, length: float, supports: np.ndarray, varying: np.ndarray
) -> int:
    """Return the number of pairs whose angles to the dual variables differ by more than arccos(threshold)."""
    moments = view.moments
    r = np.abs(scores - shift * moments.mean)[varying] / (moments.norm[varying] * length)
    own = np.abs(scores - shift * moments.mean)[supports] / (moments.norm[supports] * length)
    angles, centre = np.arccos(np.clip(r, 0, 1)), np.arccos(np.clip(own, 0, 1))
    return sum(int((np.abs(angles - one) > np.arccos(THRESHOLD)).sum()) for one in centre)


def sparse_bounds(
    X: sparse.csc_array, view: FeatureView, correlation: PearsonCorrelation, supports: np.ndarray, varying: np.ndarray
) -> tuple[int, int, int]:
    """Return the numbers of pairs that size, overlap, and the bound by shares (Cauchy-Schwarz) exclude."""
    query, moments, n = correlation.query(supports, THRESHOLD), view.moments, X.shape[0]
    stored = np.diff(X.indptr)[varying]
    size = sum(int((stored < fewest).sum()) for fewest in query.fewest)
    pattern = sparse.csc_array((np.ones(X.nnz, dtype=np.float32), X.indices, X.indptr), shape=X.shape)
    overlap = 0
    for z in supports:
        common = np.asarray((pattern.T @ pattern[:, [z]]).todense()).ravel()[varying] > 0
        disjoint = n * np.abs(moments.mean[varying] * moments.mean[z]) / (moments.norm[varying] * moments.norm[z])
        overlap += int((~common & (disjoint < THRESHOLD)).sum())
    share = np.asarray(pattern.T @ query.by_sample.shares.astype(np.float64)).ravel()[varying]
    squares = moments.norm[varying] ** 2
    reached = share * (squares + n * moments.mean[varying] ** 2) >= squares
    return size, overlap, int((~reached).sum()) * len(supports)


def early_end(view: FeatureView, supports: np.ndarray, varying: np.ndarray) -> int:
    """Return the number of pairs of dense features that are not read to their end."""
    source: Any = view.source
    query = PearsonCorrelation(view).query(supports, THRESHOLD)
    vectors, count = np.asarray(query.columns), 0
    for first in range(0, len(supports), BATCH):
        own = vectors[:, first : first + BATCH]
        head = source._head(own.T, THRESHOLD)
        tails = np.linalg.norm(own[head:], axis=0)
        for start in range(0, len(varying), 2000):
            features = varying[start : start + 2000]
            part = source.array[:head, features] - view.moments.mean[features]
            norm = view.moments.norm[features]
            rest = np.sqrt(np.maximum(norm**2 - (part**2).sum(axis=0), 0)) + 1e-7 * norm
            reaches = np.abs(part.T @ own[:head]) + rest[:, None] * tails >= THRESHOLD * norm[:, None]
            count += int((~reaches.any(axis=1)).sum()) * own.shape[1]
    return count


def counterexample() -> dict[str, Any]:
    """Return scores of two features with correlation -1, equal means and equal deviations, and the bound of Proposition 1."""
    y = np.repeat([1.0, -1.0], [30, 10])
    n, first = len(y), (y > 0).astype(float)
    second = 2 * first.mean() - first
    dual = y / n  # the first dual variables of the paper
    tau = 0.0
    spread, level = first.std() - second.std(), first.mean() - second.mean()
    bound = np.sqrt(n * (spread**2 + level**2 + 2 * tau * first.std() * second.std())) * np.linalg.norm(dual)
    return {
        "correlation": round(float(np.corrcoef(first, second)[0, 1]), 12),
        "difference of means": float(level),
        "difference of deviations": float(spread),
        "score of the first": round(float(abs(first @ dual)), 12),
        "score of the second": round(float(abs(second @ dual)), 12),
        "bound of Proposition 1 (τ = 0)": bound,
    }


def icml_round(data: Data, n_wanted: int) -> dict[str, Any]:
    """Return the number of support features of the first round of ICML's Algorithm 2, read as printed."""
    X = data.X.toarray() if sparse.issparse(data.X) else data.X
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / (X.std(axis=0) * np.sqrt(len(X)))  # mean 0, length 1, as the paper assumes
    dual = data.y / len(data.y)
    scores = np.abs(X.T @ dual)
    order = np.argsort(-scores, kind="stable")
    reach = np.sqrt(2 * (1 - THRESHOLD)) * np.linalg.norm(dual)
    k, found, visited = 0, [], 0
    while len(found) <= n_wanted and k < len(order):
        z = order[k]
        found.append(int(z))
        while k < len(order) - 1:
            k += 1
            visited += 1
            if scores[z] - reach > scores[order[k]]:
                break
        else:
            break  # the list of features has ended
    return {
        "data": data.name,
        "features": X.shape[1],
        "asked for": n_wanted,
        "support features": len(found),
        "features visited": visited,
        "largest score minus smallest, over the bound": float((scores.max() - scores.min()) / reach),
    }


def data_sets(quick: bool, seed: int) -> Iterator[Data]:
    """Yield all data sets, one at a time."""
    makers = [partial(planted, size, seed) for size in (DENSE_SIZES[:2] if quick else DENSE_SIZES)]
    if not quick:
        makers += [partial(real, name) for name in ("gisette_valid", "gordon", "su", "usps", "mnist_3v8", "plink_eur")]
        makers += [partial(real, name) for name in ("basehock", "dorothea")]
        makers += [partial(text, size, seed) for size in (16_000, 160_000, None)]
    for make in makers:
        yield make()


def main() -> None:
    """Run the benchmark and write the tables of the page."""
    options = read_arguments(__doc__)
    rows, rounds = [], []
    for data in data_sets(options.quick, options.seed):
        rows.append(excluded_shares(data, options.threads))
        print(rows[-1], flush=True)
        if data.X.shape[0] * data.X.shape[1] < 1e8:
            rounds.append(icml_round(data, PER_ROUND))
    facts = counterexample()
    print_table("share of pairs excluded", rows)
    print_table("ICML's Algorithm 2 as printed", rounds)
    print_table("counterexample", [facts])
    if not options.quick:
        replace_section(PAGE, "bounds", markdown_table(rows))
        replace_section(PAGE, "counterexample", markdown_table([facts]))
        replace_section(PAGE, "icml", markdown_table(rounds))
    write_results("what_saves_correlations", options, rows=rows, rounds=rounds, counterexample=facts)


if __name__ == "__main__":
    main()
