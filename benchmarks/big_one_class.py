"""TPAMI 2016, Table 4, on the shapes of kdd2010 and webspam: one-class discovery from stores, beside one-class SVMs.

The data are those of ``big_shapes.py``, reduced by ``--scale``. Models learn from the positive training samples and are tested
on all test samples. As in the paper, there are 100 support features, ten per round, and half of the samples are to be
accepted. LIBSVM's one-class SVM has a time limit, its linear kernel is that of the paper. The accuracy is that of the rule
"accepted samples are positive", balanced over the classes. Writes a section of docs/evidence/one-class-evidence.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _big_stores import SHAPES, Split, big_split, measure_cost
from _fresh_process import run_in_child
from _record import source_digest, write_results
from _tables import DOCS, markdown_table, print_table, replace_section
from scipy import sparse
from sklearn.linear_model import SGDOneClassSVM
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.svm import OneClassSVM

from coterie import GroupDiscoveryOneClass
from coterie.data import open_store, write_store

N_FEATURES, PER_ROUND, SHARE = 100, 10, 0.5
_FEATURES_PER_BLOCK = 200_000


def positives(data: Split, path: Path) -> Any:
    """Return a store of the positive training samples; create it if it does not exist."""
    if not path.exists():
        rows = np.flatnonzero(data.y_train == data.y_train.max())
        blocks = (block.tocsr()[rows].tocsc() for _, block in data.train.blocks(_FEATURES_PER_BLOCK))
        write_store(path, blocks, by="features")
    return open_store(path).source


def scores(y: np.ndarray, accepted: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
    """Return the columns of the table that judge test outputs."""
    positive = y == y.max()
    return {
        "balanced accuracy": f"{balanced_accuracy_score(positive, accepted == 1):.3f}",
        "ROC AUC": f"{roc_auc_score(positive, outputs):.3f}",
        "positives accepted": f"{(accepted[positive] == 1).mean():.2f}",
    }


def ours(data: Split, train: Any, rule: str, threads: int) -> dict[str, Any]:
    model = GroupDiscoveryOneClass(
        N_FEATURES, C=1.0, n_features_per_round=PER_ROUND, threshold_rule=rule, contamination=SHARE, n_jobs=threads
    )
    with measure_cost() as cost:
        model.fit(train)
    return {
        "method": f"GDM-OC, {rule}",
        "features": len(model.support_features_),
        **scores(data.y_test, model.predict(data.test), model.decision_function(data.test)),
        "s": f"{cost.seconds:.1f}",
    }


def judged(make: Callable[[], Any], X: sparse.csr_array, y: np.ndarray) -> dict[str, Any]:
    """Return the columns of a one-class SVM. Training samples have the label -1."""
    train, test = y == -1, np.flatnonzero(y != -1)
    began = time.perf_counter()
    model = make().fit(X[np.flatnonzero(train)])
    seconds = time.perf_counter() - began
    return {**scores(y[test], model.predict(X[test]), model.decision_function(X[test])), "s": f"{seconds:.1f}"}


def _same(result: dict[str, Any]) -> dict[str, Any]:
    return result


def peer(name: str, make: Callable[[], Any], data: Split, train: Any, limit: float) -> dict[str, Any]:
    """Return the row of a one-class SVM on all features, with rows of length 1."""
    every = np.arange(train.shape[1])
    X = sparse.csr_array(sparse.vstack([source.columns(every).tocsr() for source in (train, data.test)]), dtype=np.float64)
    X.data /= np.repeat(np.sqrt(np.maximum(np.add.reduceat(X.data**2, X.indptr[:-1]), 1e-300)), np.diff(X.indptr))
    y = np.append(np.full(train.shape[0], -1), (data.y_test == data.y_test.max()).astype(int))
    run = run_in_child(partial(judged, make), X, y, limit, summarize=_same)
    missing = dict.fromkeys(("balanced accuracy", "ROC AUC", "positives accepted"), "–")
    found = run.features or {**missing, "s": run.failure or f"more than {limit:.0f}"}
    return {"method": name, "features": train.shape[1], **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", choices=tuple(SHAPES), default=None, help="shape to run (default: both)")
    parser.add_argument("--scale", type=float, default=0.1, help="factor of samples, features and nonzeros (default 0.1)")
    parser.add_argument("--quick", action="store_true", help="same as --scale 0.0005")
    parser.add_argument("--folder", type=Path, default=None, help="folder of the stores (default: a temporary one)")
    parser.add_argument("--limit", type=float, default=600.0, help="time limit of each one-class SVM in seconds")
    parser.add_argument("--threads", type=int, default=1, help="threads of Coterie (default 1)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.source, options.scale = source_digest(), 0.0005 if options.quick else options.scale
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = options.folder or Path(temporary)
        for name in [options.only] if options.only else list(SHAPES):
            data = big_split(folder, name, options.scale, False, options.seed)
            train = positives(data, folder / f"{name}-{options.scale:g}-{options.seed}-positives.store")
            n, m = train.shape
            words = f"{name} shape times {options.scale:g}: {n:,} training samples of one class, {m:,} features"
            rows = [ours(data, train, rule, options.threads) for rule in ("quantile", "margin")]
            for title, make in (
                ("SGDOneClassSVM", partial(SGDOneClassSVM, nu=SHARE, random_state=0)),
                ("OneClassSVM, linear", partial(OneClassSVM, kernel="linear", nu=SHARE)),
            ):
                rows.append(peer(title, make, data, train, options.limit))
                print(rows[-1], flush=True)
            print_table(words, rows)
            write_results(f"big_one_class_{name}", options, words=words, rows=rows)
            if not options.quick:
                replace_section(DOCS / "one-class-evidence.md", f"big one class {name}", f"{words}.\n\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
