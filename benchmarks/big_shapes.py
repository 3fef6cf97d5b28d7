"""TPAMI 2016, Table 3 and Figs 4 to 7, ICML 2012, Figs 3 to 5, on the shapes of kdd2010 and webspam, from stores.

The real data are not available; ``make_big_dimensional`` makes data of their size with 20 planted groups. The training
samples are those of TPAMI Table 3 (19,264,097 x 29,890,095 and 280,000 x 16,609,143) or, with ``--icml``, as many as in the
ICML paper (10,000 and 80,000). The numbers of test samples are those of the papers. One fit of 100 features, ten per round,
gives all numbers of features. The row of a method that cannot run gives the reason. Stores are created in ``--folder``
unless they exist (kdd2010: 2 x 4 GB, webspam: 2 x 10 GB) and are kept. ``--scale`` reduces all sizes. Writes sections of
docs/evidence/paper-comparisons.md and docs/evidence/figures unless scaled.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from _big_stores import SHAPES, Split, big_split, measure_cost
from _fresh_process import run_in_child
from _models import fit_l1_svm, tune, warnings_counted
from _record import source_digest, write_results
from _tables import DOCS, FIGURES, columns, markdown_table, print_table, replace_section
from scipy import sparse
from sklearn.svm import LinearSVC, l1_min_c

from coterie import GroupDiscoveryClassifier
from coterie.metrics import group_recovery, redundancy_rate, success_hits
from coterie.plots import affiliated_counts
from coterie.solver.design import Rows

SIZES = tuple(range(10, 101, 10))
SHOWN = (10, 20, 50, 100)
FEATURES_PER_ROUND = 10
METHODS: dict[str, dict[str, Any]] = {
    "GDM-PCC": {},
    "GDM-SU": {"correlation": "su", "threshold": 0.6},
    "FGM": {"correlation": None},
}
# liblinear stores a nonzero in a node of 16 bytes. The CSR rows (float64, 32-bit indices) are held by the child process and by
# this one.
_LIBLINEAR_BYTES = 16 + 2 * 12
_M2 = "all pairs of {m:,} features, {pairs:.1e} correlations"
_NOT_RUN = {
    "SVM-RFE": "{times} trainings on the features that are left, the first on all {m:,}, each as costly as the L1-SVM's",
    "mRMR, FCBF": "one pass over all features per selected feature; data {smaller:.0f} times smaller took over 200 s",
    "RCFS": f"clusters all features: {_M2}",
    "ReliefF": "distances between all pairs of {n:,} samples: {samples:.1e}",
    "GFlasso, ncFGS, ncTFGS": f"the correlation graph: {_M2}",
    "OSCAR": "hundreds of steps along its path, each with two passes and a sort of {m:,} coefficients",
}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", choices=tuple(SHAPES), default=None, help="shape to run (default: both)")
    parser.add_argument("--icml", action="store_true", help="use the numbers of training samples of the ICML paper")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of samples, features and nonzeros (default 1)")
    parser.add_argument("--quick", action="store_true", help="same as --scale 0.0005 with a temporary --folder")
    parser.add_argument("--folder", type=Path, default=None, help="folder of the stores (default: current folder)")
    parser.add_argument("--methods", default=",".join(METHODS), help="Coterie's methods to run, separated by commas")
    parser.add_argument("--n-features", type=int, default=SIZES[-1], help="number of support features (default 100)")
    parser.add_argument(
        "--limit", type=float, default=3600.0, help="time limit of all L1-SVM fits in seconds (paper: one hour)"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of Coterie (default 1)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.source, options.icml_words = source_digest(), "-icml" if options.icml else ""
    if options.quick:
        options.scale = 0.0005
    return options


def with_equal_rows_merged(X: sparse.csc_array, y: np.ndarray) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """Return rows, labels and weights of an equivalent problem in which equal rows with equal labels are merged.

    This reduces millions of rows to thousands.
    """
    rows = Rows(np.unique(y, return_inverse=True)[1])
    rows.refine(X)
    return sparse.csr_array(X.tocsr()[rows.first]), y[rows.first], rows.sums(np.ones(len(y)))


def judged(data: Split, features: np.ndarray) -> float:
    """Return the test accuracy of a linear SVM on the selected features."""
    chosen = np.sort(features)
    X, y, weights = with_equal_rows_merged(data.train.columns(chosen).astype(np.float64), data.y_train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearSVC(C=1.0, dual=False, random_state=0).fit(X, y, sample_weight=weights)
    return float(model.score(data.test.columns(chosen).tocsr().astype(np.float64), data.y_test))


def ours(name: str, data: Split, options: argparse.Namespace) -> tuple[dict[str, Any], Any]:
    model = GroupDiscoveryClassifier(
        options.n_features,
        C=1.0,
        n_features_per_round=FEATURES_PER_ROUND,
        standardize=False,
        n_jobs=options.threads,
        verbose=1,
        **METHODS[name],
    )
    with measure_cost() as cost:
        model.fit(data.train, data.y_train)
    features = model.support_features_
    sizes = [size for size in SIZES if size <= len(features)]
    curve = {size: judged(data, features[:size]) for size in sizes}
    last = data.train.columns(np.sort(features))
    row = {
        "method": name,
        **{f"accuracy, {size}": f"{curve[size]:.3f}" if size in curve else "–" for size in SHOWN},
        "redundancy": f"{redundancy_rate(last.astype(np.float64)):.4f}",
        "affiliated": len(model.groups_.members) - len(features),
        "success hits": str(success_hits(data.groups, model.groups_)),
        "recovery": f"{group_recovery(data.groups, model.groups_):.3f}",
        "pairs evaluated": f"{model.n_correlations_evaluated_:,}",
        "passes": f"{model.n_passes_:.1f}",
        "seconds": f"{cost.seconds:.1f}",
        "GB beside the store": "" if cost.memory is None else f"{cost.memory / 1e9:.2f}",
        "notes": "",
    }
    return row | {"curve": curve, "rounds": model.n_rounds_}, model


def l1_svm(data: Split, n_values: int, options: argparse.Namespace) -> dict[str, Any]:
    """Tune the L1-SVM to 100 features, if its copies of the data fit into memory."""
    needed, there = n_values * _LIBLINEAR_BYTES, psutil.virtual_memory().available
    row: dict[str, Any] = {"method": "L1-SVM"}
    if needed > 0.9 * there:
        return row | {"notes": f"not run: needs {needed / 1e9:.0f} GB for its copies, {there / 1e9:.0f} GB are free"}
    X = data.train.columns(np.arange(data.train.shape[1])).tocsr().astype(np.float64)
    run = run_in_child(partial(_tuned, n_features=options.n_features, limit=options.limit), X, data.y_train, 2 * options.limit)
    if run.features is None:
        return row | {"notes": run.failure or f"not finished after {2 * options.limit:.0f} s"}
    features = np.asarray(run.features)
    row |= {f"accuracy, {options.n_features}": f"{judged(data, features):.3f}" if len(features) else "–"}
    row |= {"redundancy": f"{redundancy_rate(data.train.columns(np.sort(features)).astype(np.float64)):.4f}"}
    row |= {"success hits": str(success_hits(data.groups, features)), "seconds": f"{run.seconds:.1f}"}
    memory = "" if run.peak_increase is None else f"{run.peak_increase / 1e9:.2f}"
    return row | {"GB beside the store": memory, "notes": f"{len(features)} features; seconds of all trainings"}


def _tuned(X: Any, y: np.ndarray, n_features: int, limit: float) -> Any:
    return tune(fit_l1_svm, X, y, n_features, 2.0 * l1_min_c(X, y, loss="squared_hinge"), max_seconds=limit).model


def rows_not_run(data: Split, n_values: int, icml: bool) -> list[dict[str, Any]]:
    """Return the rows of methods that are not run, with the reason.

    With the few samples of the ICML paper they could run, but for hours.
    """
    n, m = data.train.shape
    if icml:
        return [{"method": method, "notes": "not run with so few samples"} for method in _NOT_RUN]
    facts = {"n": n, "m": m, "pairs": m * (m - 1) / 2, "samples": n * (n - 1) / 2}
    facts |= {"smaller": n_values / 7.9e6}
    facts |= {"times": max(1, int(np.log2(m / SIZES[-1])))}
    return [{"method": method, "notes": words.format(**facts)} for method, words in _NOT_RUN.items()]


def main() -> None:
    options = read_options()
    with tempfile.TemporaryDirectory() as temporary, warnings_counted():
        folder = Path(temporary) if options.quick else options.folder or Path()
        for name in [options.only] if options.only else list(SHAPES):
            with measure_cost() as making:
                data = big_split(folder, name, options.scale, options.icml, options.seed)
            n, m = data.train.shape
            words = f"{name} shape: {n:,} training samples, {len(data.y_test):,} test samples, {m:,} features"
            print(f"\n{words}; stores ready after {making.seconds:.0f} s", flush=True)
            rows, models, key = [], {}, f"big {name}{options.icml_words}"
            for method in options.methods.split(","):
                row, models[method] = ours(method, data, options)
                rows.append(row)
                print_table(f"{words}: latest row", table(rows[-1:]))
                write_results(
                    key.replace(" ", "_"), options, words=words, rows=rows
                )  # a run is long, so finished rows are saved
            n_values = sum(int(block.nnz) for _, block in data.train.blocks(200_000))
            rows += [l1_svm(data, n_values, options), *rows_not_run(data, n_values, options.icml)]
            print_table(words, table(rows))
            write_results(key.replace(" ", "_"), options, words=words, rows=rows)
            if options.scale == 1.0:
                write_page(key, words, f"{name} shape, {n:,} samples", rows, models)


def table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without the points of the curves, which only go to the file of results."""
    names = [name for name in rows[0] if name not in ("curve", "rounds")]
    return [{name: row.get(name) for name in names} for row in rows]


def write_page(key: str, words: str, title: str, rows: list[dict[str, Any]], models: dict[str, Any]) -> None:
    path = FIGURES / f"{key.replace(' ', '-')}-affiliated.png"
    affiliated_counts({name: model for name, model in models.items() if name != "FGM"}, title=title).savefig(path, dpi=100)
    names = [name for name in table(rows)[0] if name not in ("redundancy", "affiliated", "pairs evaluated", "passes")]
    text = markdown_table(columns([row for row in rows if row["method"] not in _NOT_RUN], *names))  # listed once on the page
    replace_section(DOCS / "paper-comparisons.md", key, f"{words}.\n\n{text}\n![{path.stem}](figures/{path.name})")


if __name__ == "__main__":
    main()
