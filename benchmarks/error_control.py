"""False discovery rate, power, Jaccard index and time of methods that select groups or features at a target rate of 0.1.

The data are simulated, with known informative features (_error_designs.py). Seeds 0 to 99 ("choose") may be used to decide on
settings of Coterie. Seeds from 1000 on ("report") are for published figures and must not be used for any decision.

A found group is true if it contains an informative feature. In designs with linkage (AR(1), genotypes, latent factors) it is
also true if its support feature has an absolute correlation of at least 0.7 with an informative one. The Jaccard index is that
of Stabl: an informative feature counts as found if a selected group contains it, and a group without any counts as one false
feature. "J, support" counts the support features alone. In null designs the mean false share is the share of data sets with
any selection. SuSiE's credible sets and the family-wise selection have their own levels. Methods without covariates get
features and outcome adjusted for the covariates by least squares.

Every design, method and seed adds a line to results/error_control.jsonl. Lines of the same design, method and source are not
run again. A method that is not installed is reported as missing. Seconds are processor seconds. The peak is the increase of
the resident memory of this process, where the system can reset it. Set OMP_NUM_THREADS=1 for comparable times.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from _error_designs import DESIGNS, Design, design_digest
from _fresh_process import _peak_memory, _reset_peak
from _real import find_data
from _record import RESULTS, _version, source_digest, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from _truth import _correlation
from scipy import sparse
from sklearn.linear_model import LogisticRegression, RidgeCV, lasso_path
from sklearn.preprocessing import StandardScaler

import coterie

FDR, FWER, LINK = 0.1, 0.05, 0.7
# Features of the model. p-values and q-values do not depend on it; the confidences of more features take longer.
N_MODEL = 20
FIRST_SEED = {"choose": 0, "report": 1000}
N_CHOOSE = 100
PARTS = ("stabl", "marginals", "stabl-all", "eight", "proxies", "null", "large")
DEFAULT_PARTS = ("stabl", "eight", "proxies", "null")
QUICK_DESIGNS = ("stabl normal binary medium 300", "proxies 0.6 regression")

Group = tuple[int, np.ndarray]  # the support feature and all members
_LAST: dict[str, Any] = {}  # the last result of run_coterie
Line = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A method: its selection from a design with a seed, and the package it belongs to."""

    run: Callable[[Design, int], list[Group]]
    package: str = "coterie"

    @property
    def source(self) -> str:
        """Digest of Coterie's source, or the version of another package."""
        return source_digest() if self.package == "coterie" else f"{self.package} {_version(self.package)}"


class NotApplicableError(Exception):
    """A method cannot be used with a design, for example with sparse features."""


def _estimator(design: Design, **parameters: Any) -> Any:
    """Return a plain estimator for the task, with default settings unless given."""
    names = {"binary": coterie.GroupDiscoveryClassifier, "regression": coterie.GroupDiscoveryRegressor}
    return names[design.task](**parameters)


def _confidence(design: Design, seed: int, n_permutations: int = 0, **parameters: Any) -> tuple[Any, Any]:
    """Return a fitted model and the confidence of its groups."""
    given = {"covariates": design.covariates, "groups": design.groups}
    model = _estimator(design, **parameters).fit(design.X, design.y, **_given(design, "covariates", "groups"))
    return model, coterie.group_confidence(
        model, design.X, design.y, n_permutations=n_permutations, random_state=seed, **given
    )


def _given(design: Design, *names: str) -> dict[str, Any]:
    """Return those attributes of a design that are not None."""
    return {name: value for name in names if (value := getattr(design, name)) is not None}


def _pairs(groups: Iterable[Any]) -> list[Group]:
    """Return the support and the members of feature groups."""
    return [(int(group.support), np.asarray(group.members)) for group in groups]


def run_coterie(design: Design, seed: int, levels: dict[str, float], **parameters: Any) -> list[Group]:
    """Select groups of a plain estimator by their confidence, at the levels given to ``select``."""
    key = (id(design), seed, *sorted(parameters.items()))
    if _LAST.get("key") != key:  # several levels of one draw share the computation, so only the first one is timed
        _LAST.update(key=key, design=design, found=_confidence(design, seed, **parameters)[1])
    return _pairs(_LAST["found"].select(**levels))


def run_false_share(design: Design, seed: int, **parameters: Any) -> list[Group]:
    """Return groups with an estimated false share of at most 0.1 and a confidence above 0.5."""
    model, result = _confidence(design, seed, n_permutations=5, **parameters)
    rows = zip(model.groups_, result.false_share, result.confidence, strict=True)
    return _pairs(group for group, share, confidence in rows if share <= FDR and confidence > 0.5)


def run_discover(design: Design, seed: int) -> list[Group]:
    """Return the groups that the validated procedure selects."""
    given = _given(design, "covariates", "groups")
    task = "classification" if design.task == "binary" else "regression"
    return _pairs(coterie.discover(design.X, design.y, task=task, random_state=seed, **given).select(fdr=FDR))


def adjusted(design: Design) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised dense features and a float outcome, both adjusted for covariates by least squares."""
    if sparse.issparse(design.X) and np.prod(design.X.shape) > 1e8:
        raise NotApplicableError("dense features only")
    X = design.X.toarray() if sparse.issparse(design.X) else np.asarray(design.X)
    X, y = X.astype(np.float64), design.y.astype(np.float64)
    if design.covariates is not None:
        basis = np.linalg.qr(np.column_stack([np.ones(len(y)), design.covariates]))[0]
        X, y = X - basis @ (basis.T @ X), y - basis @ (basis.T @ y)
    return StandardScaler().fit_transform(X), y


def _single(features: Iterable[int]) -> list[Group]:
    """Return single features as groups."""
    return [(int(j), np.array([int(j)])) for j in features]


def run_trex(design: Design, seed: int, **options: Any) -> list[Group]:
    """Return the features that T-Rex selects; labels of two classes are used as numbers."""
    from trexselector import trex

    X, y = adjusted(design)
    varying = np.flatnonzero(X.std(axis=0) > 0)
    found = trex(X[:, varying], y - y.mean(), tFDR=FDR, seed=seed, verbose=False, **options)
    return _single(varying[np.asarray(found["selected_var"], dtype=int)])


def run_trex_gvs(design: Design, seed: int) -> list[Group]:
    """Return the features that T-Rex with grouped variables selects.

    The ridge penalty is given, because the package chooses it by an attribute that scikit-learn has removed.
    """
    X, y = adjusted(design)
    alpha = float(RidgeCV(alphas=np.logspace(-3, 6, 40)).fit(X, y).alpha_)
    return run_trex(design, seed, method="trex+GVS", lambda_2_lars=alpha / 2)


def run_ipss(design: Design, seed: int) -> list[Group]:
    """Return the features that IPSS selects with L1-penalised models; it draws from NumPy's global state."""
    from ipss import ipss

    X, y = adjusted(design)
    np.random.seed(seed)  # noqa: NPY002
    binary = design.task == "binary" and design.covariates is None
    options = {"selector": "l1", "target_fdr": FDR, "n_jobs": 1, "force_regression": not binary}
    return _single(ipss(X, y.astype(int) if binary else y, **options)["selected_features"])


def run_susie(design: Design, seed: int) -> list[Group]:
    """Return SuSiE's 95 % credible sets of up to 30 effects; the support is the feature of the largest probability."""
    from pysusie import susie, susie_get_pip

    if design.task != "regression":
        raise NotApplicableError("regression only")
    X, y = adjusted(design)
    fit = susie(X, y, L=30, coverage=0.95)
    found, probability = fit["sets"]["cs"], np.asarray(susie_get_pip(fit))
    sets = [np.asarray(members, dtype=int) for members in (found.values() if isinstance(found, dict) else found or [])]
    return [(int(members[np.argmax(probability[members])]), members) for members in sets]


def run_knockoffs(design: Design, seed: int) -> list[Group]:
    """Return the features that Gaussian model-X knockoffs with the lasso select (hidimstat)."""
    from hidimstat import ModelXKnockoff

    X, y = adjusted(design)
    model = ModelXKnockoff(random_state=seed, n_jobs=1)
    model.fit_importance(X, y - y.mean())
    return _single(np.flatnonzero(np.asarray(model.fdr_selection(FDR)) > 0))


def run_stability(design: Design, seed: int, n_halves: int = 50, n_first: int = 40, share: float = 0.9) -> list[Group]:
    """Return features among the first 40 of the L1 path in at least 90 % of 50 half-samples; no target rate."""
    X, y = adjusted(design)
    rng, counts = np.random.default_rng([seed, 9]), np.zeros(X.shape[1])
    for _ in range(n_halves):
        rows = rng.permutation(len(y))[: len(y) // 2]
        counts[_first_features(X[rows], y[rows], design, n_first)] += 1
    return _single(np.flatnonzero(counts >= share * n_halves))


def _first_features(X: np.ndarray, y: np.ndarray, design: Design, n_first: int) -> np.ndarray:
    """Return the features of the largest L1 model on a coarse path that has at most ``n_first`` features."""
    if design.task == "regression" or design.covariates is not None:
        paths = lasso_path(X - X.mean(axis=0), y - y.mean(), alphas=30, eps=0.05, max_iter=300)[1].T
    else:
        largest = np.abs(X.T @ (y - y.mean())).max()
        model = LogisticRegression(l1_ratio=1.0, solver="liblinear", max_iter=200)
        paths = np.array(
            [model.set_params(C=factor / largest).fit(X, y).coef_[0] for factor in (1.2, 1.6, 2.2, 3.0, 4.0, 6.0)]
        )
    fitting = [path for path in paths if np.count_nonzero(path) <= n_first]
    return np.flatnonzero(fitting[-1]) if fitting else np.zeros(0, dtype=int)


METHODS: dict[str, Method] = {
    "coterie": Method(partial(run_coterie, levels={"fdr": FDR}, n_features_to_select=N_MODEL)),
    "coterie, fwer": Method(partial(run_coterie, levels={"fwer": FWER}, n_features_to_select=N_MODEL)),
    "coterie, FDR 0.05": Method(partial(run_coterie, levels={"fdr": 0.05}, n_features_to_select=N_MODEL)),
    "coterie, FDR 0.2": Method(partial(run_coterie, levels={"fdr": 0.2}, n_features_to_select=N_MODEL)),
    "coterie, default call": Method(partial(run_coterie, levels={"fdr": FDR})),
    **{f"coterie, C={C:g}": Method(partial(run_coterie, levels={"fdr": FDR}, C=C)) for C in (0.003, 0.03, 1.0, 10.0)},
    "false_share": Method(run_false_share),
    "discover": Method(run_discover),
    "T-Rex": Method(run_trex, "trexselector"),
    "T-Rex+GVS": Method(run_trex_gvs, "trexselector"),
    "IPSS": Method(run_ipss, "ipss"),
    "SuSiE": Method(run_susie, "pysusie"),
    "knockoffs": Method(run_knockoffs, "hidimstat"),
    "L1 stability": Method(run_stability, "scikit-learn"),
}


def _links(design: Design, supports: Sequence[int]) -> np.ndarray:
    """Return for each support and each informative feature whether their absolute correlation is at least 0.7."""
    parts = [design.X[:, np.asarray(columns, dtype=int)] for columns in (supports, design.informative)]
    left, right = ((part.toarray() if sparse.issparse(part) else np.asarray(part)).astype(np.float64) for part in parts)
    return np.abs(_correlation(left, right)) >= LINK


def measure(design: Design, found: Sequence[Group]) -> dict[str, Any]:
    """Return the share of false groups, the power and the Jaccard indices of a selection."""
    causal = design.informative
    inside = np.array([np.isin(causal, members) for _, members in found], dtype=bool).reshape(len(found), len(causal))
    near = (
        inside | _links(design, [support for support, _ in found]) if design.linked and len(found) and len(causal) else inside
    )
    false = int((~near.any(axis=1)).sum())
    supports = {support for support, _ in found}
    covered, hits = int(inside.any(axis=0).sum()), len(supports & set(causal.tolist()))
    n_outside, n_all = int((~inside.any(axis=1)).sum()), max(1, len(causal))
    return {
        "selected": len(found),
        "false": false,
        "fdp": false / max(1, len(found)),
        "power": float(near.any(axis=0).mean()) if len(causal) else None,
        "jaccard": covered / (n_all + n_outside) if len(causal) else None,
        "jaccard_support": hits / (n_all + len(supports) - hits) if len(causal) else None,
        "largest": max((len(members) for _, members in found), default=0),
    }


@lru_cache(maxsize=1)
def _design(name: str, seed: int) -> Design:
    return DESIGNS[name].make(seed)


def run(name: str, method: str, seed: int) -> Line:
    """Run one method on one draw."""
    design = _design(name, seed)
    before, start = _reset_peak(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[method].run(design, seed)
    facts = {"cpu_s": time.process_time() - start, "peak_mb": max(0, _peak_memory() - before) / 1e6}
    return {**measure(design, found), **facts, "supports": [support for support, _ in found]}


def warm_up(methods: Iterable[str]) -> None:
    """Run the methods on toy data, so that no import or compilation is timed."""
    for name in ("null small", "stabl normal binary no 100", "proxies 0.6 regression", "null text"):
        for method in methods:
            if METHODS[method].package == "coterie":
                try:
                    run(name, method, 10_000)
                except Exception as error:  # reported again by the timed run
                    print(f"Warm-up of {method} on {name}: {type(error).__name__}: {error}")


def read_lines(path: Path, keys: dict[tuple[str, str], tuple[str, str]]) -> dict[tuple[str, str, int], Line]:
    """Return the earlier lines of the same designs and sources, by design, method and seed."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    good = [x for x in lines if keys.get((x["design"], x["method"])) == (x["digest"], x["source"])]
    return {(x["design"], x["method"], x["seed"]): x for x in good}


def seeds_of(name: str, options: argparse.Namespace) -> range:
    """Return the seeds of a design: more draws for null designs, one for large ones."""
    entry, first = DESIGNS[name], FIRST_SEED[options.seeds]
    n_draws = 1 if entry.large else options.null_draws if entry.null else options.draws
    return range(first, first + (min(n_draws, N_CHOOSE) if options.seeds == "choose" else n_draws))


def run_all(path: Path, options: argparse.Namespace) -> tuple[dict[tuple[str, str, int], Line], dict[str, str]]:
    """Run what is missing, draw by draw, and return all lines and the reasons of failures."""
    digests = {name: design_digest(name) for name in options.designs}
    sources = {method: METHODS[method].source for method in options.methods}
    keys = {(name, method): (digests[name], sources[method]) for name in digests for method in sources}
    found, failures = read_lines(path, keys), {}
    skipped: set[tuple[str, str]] = set()
    if not options.table:
        warm_up(options.methods)
    cells = [(name, seed) for name in options.designs for seed in seeds_of(name, options)]
    for name, seed in [] if options.table else sorted(cells, key=lambda cell: cell[1]):
        for method in options.methods:
            if (name, method, seed) in found or (name, method) in skipped:
                continue
            try:
                line = run(name, method, seed)
            except Exception as error:
                skipped.add((name, method))
                missing = isinstance(error, ImportError)
                failures[f"{method}, {name}"] = "missing" if missing else f"{type(error).__name__}: {error}"
                continue
            line |= {"design": name, "method": method, "seed": seed, "digest": digests[name], "source": sources[method]}
            found[name, method, seed] = line
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(f"{name:32} {method:18} {seed:5} {line['selected']:3} {line['fdp']:.2f} {line['cpu_s']:7.2f} s", flush=True)
    wanted = {(name, method, seed) for name, seed in cells for method in options.methods}
    return {key: line for key, line in found.items() if key in wanted}, failures


def published(cell: tuple[str, str, int, str] | None) -> dict[str, float] | None:
    """Return the published medians of Stabl (random permutations, lasso) in a cell, if there are any."""
    path = find_data("stabl_s2.csv")
    if cell is None or path is None:
        return None
    wanted = (*cell[:2], "RP", "Lasso", str(cell[2]), cell[3])
    names = ("Distribution", "Correlation", "Noise injection", "Base SRM", "Sample size", "Outcome")
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if tuple(row[name] for name in names) == wanted:
                return {"fdp": float(row["Reliability FDR median"]), "jaccard": float(row["Reliability JI median"])}
    return None


def _mean(lines: Sequence[Line], name: str) -> float | None:
    values = [line[name] for line in lines if line[name] is not None]
    return float(np.mean(values)) if values else None


def _with_error(values: Sequence[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3f} ± {error:.3f}"


def table_row(name: str, method: str, lines: Sequence[Line]) -> Line:
    """Return means over the draws of a design, and the medians of what Stabl publishes."""
    stabl = DESIGNS[name].cell is not None
    return {
        "design": name,
        "method": method,
        "draws": len(lines),
        "selected": _mean(lines, "selected"),
        "false share": _with_error([line["fdp"] for line in lines]),
        "power": _mean(lines, "power"),
        "Jaccard": _mean(lines, "jaccard"),
        "J, support": _mean(lines, "jaccard_support"),
        "median FDP": float(np.median([line["fdp"] for line in lines])) if stabl else None,
        "median J": float(np.median([line["jaccard"] for line in lines])) if stabl else None,
        "largest group": max(line["largest"] for line in lines),
        "CPU s": _mean(lines, "cpu_s"),
        "peak MB": max(line["peak_mb"] for line in lines),
    }


def design_rows(found: dict[tuple[str, str, int], Line], options: argparse.Namespace) -> list[Line]:
    """Return one row per design and method, with the published row of Stabl last."""
    rows: list[Line] = []
    for name in options.designs:
        for method in options.methods:
            lines = [line for key, line in found.items() if key[:2] == (name, method)]
            if lines:
                rows.append(table_row(name, method, lines))
        values = published(DESIGNS[name].cell)
        if values is not None:
            rows.append(
                {"design": name, "method": "Stabl RP, published", "median FDP": values["fdp"], "median J": values["jaccard"]}
            )
    return rows


def mean_rows(rows: Sequence[Line], options: argparse.Namespace) -> list[Line]:
    """Return means over the Stabl cells that all shown methods have been run on, one row per task and method."""
    methods = [method for method in options.methods if any(row["method"] == method for row in rows)]
    result = []
    for task in ("binary", "regression"):
        by = {(row["design"], row["method"]): row for row in rows if (cell := DESIGNS[row["design"]].cell) and cell[3] == task}
        shown = [method for method in methods if any(key[1] == method for key in by)]
        names = [name for name in options.designs if shown and all((name, method) in by for method in shown)]
        for method in [*shown, "Stabl RP, published"] if names else []:
            cells = [by[name, method] for name in names if (name, method) in by]
            if cells:
                result.append(_mean_row(task, method, cells))
    return result


def _mean_row(task: str, method: str, cells: Sequence[Line]) -> Line:
    row: Line = {"task": task, "method": method, "cells": len(cells)}
    own = "Jaccard" in cells[0]
    if own:
        shares = [float(cell["false share"].split()[0]) for cell in cells]
        row |= {"mean false share": float(np.mean(shares)), "largest false share": max(shares)}
        row |= {f"mean {name}": float(np.mean([cell[name] for cell in cells])) for name in ("power", "Jaccard", "J, support")}
        row["CPU s"] = float(np.mean([cell["CPU s"] for cell in cells]))
    row["mean of median FDP"] = float(np.mean([cell["median FDP"] for cell in cells]))
    row["mean of median J"] = float(np.mean([cell["median J"] for cell in cells]))
    return row


def _share(lines: Sequence[Line], name: str) -> str:
    """Return a mean with two digits, and the number of draws if it is not that of the table."""
    value = _mean(lines, name)
    return "–" if value is None else f"{value:.2f}"


def page_tables(found: dict[tuple[str, str, int], Line], options: argparse.Namespace) -> str:
    """Return the tables of the page: Stabl's cells, designs with dependent features, and designs without any effect."""
    by: dict[tuple[str, str], list[Line]] = {}
    for (name, method, _), line in found.items():
        by.setdefault((name, method), []).append(line)
    parts = [
        ("Stabl's protocol", ("stabl",), ("coterie", "T-Rex")),
        ("Dependent features and proxies", ("eight", "proxies"), ("coterie", "coterie, fwer", "T-Rex")),
        ("No effect", ("null",), ("coterie", "coterie, fwer", "coterie, FDR 0.05", "coterie, FDR 0.2", "T-Rex")),
    ]
    text = []
    for title, chosen, methods in parts:
        rows = [
            _page_row(name, [(method, by.get((name, method), [])) for method in methods])
            for name in options.designs
            if DESIGNS[name].part in chosen and by.get((name, "coterie"))
        ]
        if rows:
            text.append(f"**{title}**\n\n{markdown_table(rows)}")
    return "\n".join(text)


def _page_row(name: str, lines_of: Sequence[tuple[str, list[Line]]]) -> Line:
    """Return one row: the false share of each method and, where features are informative, its power or Jaccard index."""
    row: Line = {"design": name}
    entry = DESIGNS[name]
    for method, lines in lines_of:
        row[f"{method}: draws"] = str(len(lines)) if lines else "–"
        if entry.null:
            row[f"{method}: any"] = _share(lines, "fdp") if lines else "–"
            continue
        row[f"{method}: false share"] = _with_error([line["fdp"] for line in lines]) if lines else "–"
        index = "jaccard" if entry.cell else "power"
        row[f"{method}: {'Jaccard' if entry.cell else 'power'}"] = _share(lines, index) if lines else "–"
        if entry.cell:
            row[f"{method}: CPU s"] = f"{_mean(lines, 'cpu_s'):.1f}" if lines else "–"
    if entry.cell:
        medians = published(entry.cell)
        row["Stabl, published medians: false share"] = "–" if medians is None else f"{medians['fdp']:.2f}"
        row["Stabl, published medians: Jaccard"] = "–" if medians is None else f"{medians['jaccard']:.2f}"
    return row


def read_options() -> argparse.Namespace:
    """Parse the command line; designs are parts, names, or patterns with an asterisk."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--designs", nargs="+", default=None, help=f"parts ({', '.join(PARTS)}), names or patterns")
    parser.add_argument("--methods", nargs="+", default=None, help=f"names or patterns of: {'; '.join(METHODS)}")
    parser.add_argument("--draws", type=int, default=30, help="data sets per design (default 30)")
    parser.add_argument("--null-draws", type=int, default=100, help="data sets per null design (default 100)")
    parser.add_argument("--seeds", choices=tuple(FIRST_SEED), default="choose", help="seeds to decide with or to publish")
    parser.add_argument("--large", action="store_true", help="add the designs with a million features")
    parser.add_argument("--table", action="store_true", help="print the tables of earlier lines, run nothing")
    parser.add_argument("--page", action="store_true", help="write the tables of docs/evidence/error-control.md")
    parser.add_argument("--quick", action="store_true", help="two draws of two designs, unless designs are given")
    options = parser.parse_args()
    if options.quick:
        options.draws = options.null_draws = min(options.draws, 2)
    wanted = options.designs or (QUICK_DESIGNS if options.quick else DEFAULT_PARTS)
    wanted = [*wanted, "large"] if options.large else wanted
    parts = {name: entry.part for name, entry in DESIGNS.items()}
    options.designs = [name for name in DESIGNS if any(parts[name] == word or fnmatch(name, word) for word in wanted)]
    options.methods = [name for name in METHODS if any(fnmatch(name, word) for word in options.methods or ("*",))]
    if not options.designs or not options.methods:
        parser.error("No design or no method has this name.")
    options.source = source_digest()
    return options


def main() -> None:
    options = read_options()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"error_control{'-quick' if options.quick else ''}.jsonl"
    found, failures = run_all(path, options)
    rows = design_rows(found, options)
    means = mean_rows(rows, options)
    if any("draws" in row for row in rows):
        print_table(f"Target FDR {FDR}, seeds from {FIRST_SEED[options.seeds]}", rows)
    if means:
        print_table("Mean over the cells of Stabl's protocol", means)
    for name, reason in failures.items():
        print(f"Not run: {name}: {reason}")
    write_results("error_control", options, rows=rows, means=means, failures=failures)
    if options.page:
        replace_section(DOCS / "error-control.md", "tables", page_tables(found, options))


if __name__ == "__main__":
    main()
