"""Simulated data with known informative features, for error_control.py.

Every design is a function of a seed and options that returns a :class:`Design`. The same seed gives the same data.

Stabl's protocol (Hédou et al., Nature Biotechnology 2024), from its published script: 1,000 features of which 25 are
informative. Latent columns U of the informative features are equicorrelated. Their weights are uniform on [-10, 10]. The
linear predictor of U is standardised, and noise of standard deviation 1/2 is added (``snr=2``, a ratio of standard
deviations). The binary label is the sign of the sum. With normal marginals the observed informative feature is 2 U plus
standard normal noise, so that correlations are 0.8 times those of U. With other marginals U itself is observed, after the
quantile transform of each column. Differences from the script: weights are drawn with each seed instead of once, and normal
features have unit variance. ``blur=0`` observes U itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse, stats

from coterie.datasets import make_big_dimensional

CORRELATIONS = {"no": 0.0, "low": 0.2, "medium": 0.5, "high": 0.7}
SIZES = (100, 300, 1000)
ALL_SIZES = (50, 75, 100, 150, 200, 300, 400, 600, 800, 1000)
TASKS = ("binary", "regression")
NO_FEATURES = np.zeros(0, dtype=np.int64)
NB_SHAPE, NB_MEAN, ZERO_SHARE = 2.0, 10.0, 0.3


@dataclass(frozen=True)
class Design:
    """Data of one draw. With ``linked``, a group is also true if its support correlates with an informative feature."""

    X: Any
    y: np.ndarray
    informative: np.ndarray
    task: str
    groups: np.ndarray | None = None
    covariates: np.ndarray | None = None
    linked: bool = False


@dataclass(frozen=True)
class Entry:
    """A design of the benchmark: its function of the seed, its part, and the published cell it corresponds to."""

    make: Callable[[int], Design]
    part: str
    cell: tuple[str, str, int, str] | None = None

    @property
    def null(self) -> bool:
        """Whether no feature is informative."""
        return self.part == "null"

    @property
    def large(self) -> bool:
        """Whether the data need gigabytes of memory."""
        return self.part == "large"


def _unit(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(axis=0)) / values.std(axis=0)


def _equicorrelated(rng: np.random.Generator, n_samples: int, n_features: int, r: float) -> np.ndarray:
    common = rng.standard_normal((n_samples, 1))
    return np.sqrt(r) * common + np.sqrt(1 - r) * rng.standard_normal((n_samples, n_features))


def _negative_binomial(u: np.ndarray) -> np.ndarray:
    """Return the quantiles of a negative binomial distribution, by a table of its distribution function."""
    table = stats.nbinom.cdf(np.arange(500), NB_SHAPE, NB_SHAPE / (NB_SHAPE + NB_MEAN))
    return np.searchsorted(table, u).astype(np.float64)


def transform_marginals(z: np.ndarray, distribution: str) -> np.ndarray:
    """Return standard normal columns with another marginal distribution (Gaussian copula).

    ``"NB"`` is negative binomial, ``"ZINB"`` the same with 30 % more zeros, ``"ZI"`` normal with the lowest 30 % at one value.
    """
    if distribution == "normal":
        return z
    u = stats.norm.cdf(z)
    if distribution == "ZI":
        return np.maximum(z, stats.norm.ppf(ZERO_SHARE))
    if distribution == "NB":
        return _negative_binomial(u)
    return _negative_binomial(np.clip((u - ZERO_SHARE) / (1 - ZERO_SHARE), 0.0, None))


def _outcome(signal: np.ndarray, noise: np.ndarray, task: str) -> np.ndarray:
    y = signal + noise
    return (y > np.median(y)).astype(np.int64) if task == "binary" else y


def stabl(
    seed: int,
    *,
    n_samples: int = 300,
    n_features: int = 1000,
    n_informative: int = 25,
    correlation: float = 0.0,
    task: str = "binary",
    distribution: str = "normal",
    snr: float = 2.0,
    blur: float = 0.5,
) -> Design:
    """Return data of Stabl's protocol; ``blur`` is the noise of an observed normal feature, relative to U."""
    rng = np.random.default_rng([seed, 1])
    latent = transform_marginals(_equicorrelated(rng, n_samples, n_informative, correlation), distribution)
    rest = transform_marginals(rng.standard_normal((n_samples, n_features - n_informative)), distribution)
    signal = _unit(_unit(latent) @ rng.uniform(-10, 10, n_informative))
    y = signal + rng.standard_normal(n_samples) / snr
    if distribution == "normal":
        latent = (latent + blur * rng.standard_normal(latent.shape)) / np.sqrt(1 + blur**2)
    X, informative = _shuffled(rng, np.hstack([latent, rest]), np.arange(n_informative))
    return Design(X, (y > 0).astype(np.int64) if task == "binary" else y, informative, task)


def _shuffled(rng: np.random.Generator, X: np.ndarray, informative: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shuffle the columns, so that no method profits from their order."""
    order = rng.permutation(X.shape[1])
    return np.asfortranarray(X[:, order]), np.sort(np.argsort(order)[informative])


def _few_effects(rng: np.random.Generator, X: np.ndarray, informative: np.ndarray) -> np.ndarray:
    """Return a signal of unit variance with weights of random sign and absolute values from 0.75 to 1.25."""
    weights = rng.uniform(0.75, 1.25, len(informative)) * rng.choice([-1.0, 1.0], len(informative))
    return _unit(_unit(X[:, informative]) @ weights)


def _spread(rng: np.random.Generator, n_features: int, n_informative: int) -> np.ndarray:
    """Return informative positions, one in each of as many equal stretches of the features."""
    width = n_features // n_informative
    return np.arange(n_informative) * width + rng.integers(width // 4, 3 * width // 4, n_informative)


def _ar1(rng: np.random.Generator, n_samples: int, n_features: int, r: float) -> np.ndarray:
    X = rng.standard_normal((n_samples, n_features))
    for j in range(1, n_features):
        X[:, j] = r * X[:, j - 1] + np.sqrt(1 - r * r) * X[:, j]
    return X


def _genotypes(rng: np.random.Generator, n_samples: int, n_features: int, block: int = 10) -> np.ndarray:
    """Return 0, 1, 2 in blocks: along each haplotype an allele copies its left neighbour with probability 0.9."""
    frequency = np.repeat(rng.uniform(0.15, 0.5, -(-n_features // block)), block)[:n_features]
    alleles = rng.random((2, n_samples, n_features)) < frequency
    copied = rng.random((2, n_samples, n_features)) < 0.9
    for j in range(1, n_features):
        if j % block:
            alleles[:, :, j] = np.where(copied[:, :, j], alleles[:, :, j - 1], alleles[:, :, j])
    return alleles.sum(axis=0).astype(np.float64)


def _latent_factors(rng: np.random.Generator, n_samples: int, n_features: int, n_factors: int = 10) -> np.ndarray:
    loadings = rng.standard_normal((n_factors, n_features)) / np.sqrt(n_factors)
    return rng.standard_normal((n_samples, n_factors)) @ loadings + rng.standard_normal((n_samples, n_features))


def few(
    seed: int,
    *,
    kind: str = "independent",
    task: str = "regression",
    n_samples: int = 250,
    n_features: int = 600,
    n_informative: int = 5,
    snr: float = 1.0,
    tails: bool = False,
    flipped: float = 0.0,
) -> Design:
    """Return data with few strong effects; ``snr`` is the ratio of the standard deviations of signal and noise.

    ``kind`` is the dependence of the features. ``tails`` draws t3 noise. ``flipped`` is the share of labels that are inverted.
    """
    rng = np.random.default_rng([seed, 2])
    makers: dict[str, Callable[..., np.ndarray]] = {
        "independent": partial(_ar1, r=0.0),
        "ar": partial(_ar1, r=0.8),
        "genotypes": _genotypes,
        "latent": _latent_factors,
    }
    X = makers[kind](rng, n_samples, n_features)
    informative = _spread(rng, n_features, n_informative)
    noise = rng.standard_t(3, n_samples) / np.sqrt(3) if tails else rng.standard_normal(n_samples)
    y = _outcome(_few_effects(rng, X, informative), noise / snr, task)
    if flipped:
        y = np.where(rng.random(n_samples) < flipped, 1 - y, y)
    return Design(X, y, informative, task, linked=kind != "independent")


def proxies(
    seed: int, *, r: float = 0.6, n_proxies: int = 5, task: str = "regression", n_samples: int = 250, n_features: int = 600
) -> Design:
    """Return data whose five informative features have proxies at correlation r; proxies are false discoveries."""
    rng = np.random.default_rng([seed, 3])
    X, n_informative = rng.standard_normal((n_samples, n_features)), 5
    for j in range(n_informative):
        near = n_informative + j * n_proxies + np.arange(n_proxies)
        X[:, near] = r * X[:, [j]] + np.sqrt(1 - r * r) * X[:, near]
    y = _outcome(_few_effects(rng, X, np.arange(n_informative)), rng.standard_normal(n_samples), task)
    X, informative = _shuffled(rng, X, np.arange(n_informative))
    return Design(X, y, informative, task)


def batch(seed: int, *, task: str = "regression", n_samples: int = 250, n_features: int = 600) -> Design:
    """Return data of four batches that shift half of the features and the outcome; the batches are covariates."""
    rng = np.random.default_rng([seed, 4])
    X, number = rng.standard_normal((n_samples, n_features)), rng.integers(4, size=n_samples)
    informative = _spread(rng, n_features, 5)
    signal = _few_effects(rng, X, informative)
    shifted = rng.permutation(n_features)[: n_features // 2]
    X[:, shifted] += rng.standard_normal((4, len(shifted)))[number]
    y = _outcome(signal + np.array([-1.5, -0.5, 0.5, 1.5])[number], rng.standard_normal(n_samples), task)
    return Design(X, y, informative, task, covariates=(number[:, None] == np.arange(1, 4)).astype(np.float64))


def null(seed: int, *, kind: str = "dense", task: str = "binary", n_samples: int = 200, n_features: int = 1000) -> Design:
    """Return features of some kind with an outcome that does not depend on them."""
    rng = np.random.default_rng([seed, 5])
    shape = n_samples, n_features
    makers: dict[str, Callable[[], Any]] = {
        "dense": lambda: rng.standard_normal(shape),
        "correlated": lambda: _ar1(rng, *shape, r=0.9),
        "counts": lambda: _negative_binomial(rng.random(shape)),
        "genotypes": lambda: _genotypes(rng, *shape),
        "text": lambda: _text_like(rng, *shape),
    }
    X = makers[kind]()
    y = rng.permutation(np.arange(n_samples) % 2) if task == "binary" else rng.standard_normal(n_samples)
    return Design(X, y, NO_FEATURES, task)


def _text_like(rng: np.random.Generator, n_samples: int, n_features: int) -> Any:
    """Return counts of words whose shares of the documents follow a power law, as a CSR array."""
    share = np.maximum(0.5 / np.arange(1, n_features + 1) ** 0.7, 3 / n_samples)
    counts = rng.poisson(-np.log1p(-share), (n_samples, n_features)).astype(np.float64)
    return sparse.csr_array(counts)


def large(seed: int, *, shape: str = "psoriasis", n_samples: int = 1000, n_features: int = 1_000_000) -> Design:
    """Return planted groups among a million features: int8 genotypes, or a sparse array in the shape of news20."""
    data = make_big_dimensional(shape, n_samples=n_samples, n_features=n_features, random_state=seed)
    informative = np.sort([group.support for group in data.groups])
    return Design(data.X, np.asarray(data.y), informative, "binary", linked=True)


def _stabl_entries() -> dict[str, Entry]:
    entries = {}
    for distribution in ("normal", "NB", "ZINB", "ZI"):
        for task in TASKS:
            for level, r in CORRELATIONS.items():
                for n in ALL_SIZES:
                    make = partial(stabl, n_samples=n, correlation=r, task=task, distribution=distribution)
                    part = ("stabl" if distribution == "normal" else "marginals") if n in SIZES else "stabl-all"
                    entries[f"stabl {distribution} {task} {level} {n}"] = Entry(make, part, (distribution, level, n, task))
    return entries


def _few_entries() -> dict[str, Entry]:
    makers = {
        "AR(1)": partial(few, kind="ar"),
        "proxies": partial(proxies, r=0.6),
        "genotypes": partial(few, kind="genotypes"),
        "latent factors": partial(few, kind="latent"),
        "t3 noise": partial(few, tails=True),
        "label noise": partial(few, task="binary", flipped=0.2),
        "batch": batch,
    }
    entries = {name: Entry(make, "eight") for name, make in makers.items()}
    entries["null"] = Entry(partial(null, task="regression", n_samples=250, n_features=600), "null")
    return entries


def _proxy_entries() -> dict[str, Entry]:
    cells = [(r, task) for task in TASKS for r in (0.5, 0.6, 0.69)]
    return {f"proxies {r} {task}": Entry(partial(proxies, r=r, task=task), "proxies") for r, task in cells}


def _null_entries() -> dict[str, Entry]:
    makers = {kind: partial(null, kind=kind) for kind in ("dense", "correlated", "counts", "genotypes")}
    makers["small"] = partial(null, n_features=30)
    makers["text"] = partial(null, kind="text", n_features=2000)
    return {f"null {kind}": Entry(make, "null") for kind, make in makers.items()}


def _large_entries() -> dict[str, Entry]:
    return {
        "large SNPs": Entry(partial(large, shape="psoriasis"), "large"),
        "large sparse": Entry(partial(large, shape="news20", n_samples=20_000, n_features=1_600_000), "large"),
    }


DESIGNS: dict[str, Entry] = {
    **_stabl_entries(),
    **_few_entries(),
    **_proxy_entries(),
    **_null_entries(),
    **_large_entries(),
}


def design_digest(name: str) -> str:
    """Return a short digest of the name and options of a design and, unless it is large, of its data with seed 0."""
    make = DESIGNS[name].make
    options = sorted(make.keywords.items()) if isinstance(make, partial) else []
    digest = hashlib.sha256(repr((name, options)).encode())
    if not DESIGNS[name].large:
        data = make(0)
        X = data.X.toarray() if sparse.issparse(data.X) else data.X
        for part in (X, data.y, data.informative, data.covariates):
            digest.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:12]
