"""Comparison with an earlier version: the same tasks in turn, each version in its own process, best times and ratio.

    git worktree add /tmp/before REVISION
    python benchmarks/versions.py --before /tmp/before/src

Each version has a process that imports it, makes the data, runs every task once to compile, and then waits for its turns.
The tasks cover each part of the package and use public names that both versions have. Writes docs/evidence/versions.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

TASKS: dict[str, Callable[[int, Path], Callable[[], Any]]] = {}


def task(name: str) -> Callable[[Any], Any]:
    """Register a function of the number of threads and a folder that makes the data and returns the function to time."""

    def register(make: Any) -> Any:
        TASKS[name] = make
        return make

    return register


def _fit(X: Any, y: Any, n_features: int, threads: int, **settings: Any) -> Callable[[], Any]:
    from coterie import GroupDiscoveryClassifier

    return lambda: GroupDiscoveryClassifier(n_features, C=1.0, n_jobs=threads, **settings).fit(X, y)


def _shape(name: str, **options: Any) -> tuple[Any, Any]:
    from coterie.datasets import make_big_dimensional

    data = make_big_dimensional(name, random_state=0, **options)
    return data.X, data.y


def _planted(n_samples: int = 2048, n_features: int = 10_000) -> tuple[Any, Any]:
    from coterie.datasets import make_support_affiliated

    data = make_support_affiliated(n_samples, n_features, random_state=0)
    return data.X, data.y


def _real(name: str) -> tuple[Any, Any]:
    from _real import load

    return load(name)


@task("fit: news20 shape, 100 features")
def _(threads: int, _: Path) -> Any:
    return _fit(*_shape("news20"), 100, threads, n_features_per_round=10, standardize=False)


@task("fit: news20 shape, 500 features")
def _(threads: int, _: Path) -> Any:
    return _fit(*_shape("news20"), 500, threads, n_features_per_round=10, standardize=False)


@task("fit: TPAMI data, 20 features")
def _(threads: int, _: Path) -> Any:
    return _fit(*_planted(), 20, threads)


@task("fit: psoriasis shape x 0.3, 20 features")
def _(threads: int, _: Path) -> Any:
    return _fit(*_shape("psoriasis", scale=0.3), 20, threads, standardize=False)


@task("fit: usps, ten classes, 50 features")
def _(threads: int, _: Path) -> Any:
    return _fit(*_real("usps"), 50, threads)


@task("fit: mfeat, symmetrical uncertainty, 30 features")
def _(threads: int, _: Path) -> Any:
    return _fit(*_real("mfeat"), 30, threads, correlation="su", threshold=0.6)


@task("fit: coil20, twenty classes, symmetrical uncertainty, 50 features")
def _(threads: int, _: Path) -> Any:
    return _fit(*_real("coil20"), 50, threads, correlation="su", threshold=0.6)


@task("fit: wide-dense, 20 features, ten per round")
def _(threads: int, _: Path) -> Any:
    from wide_dense import make_blocks

    data = make_blocks(2000, 1000, 20, 0.9, 1.0, 0)
    return _fit(data.X, data.y, 20, threads, n_features_per_round=10, standardize=False)  # sequential passes by feature


@task("fit: one class, TPAMI data, 20 features")
def _(threads: int, _: Path) -> Any:
    from coterie import GroupDiscoveryOneClass

    X, _y = _planted()
    return lambda: GroupDiscoveryOneClass(20, n_jobs=threads).fit(abs(X))


@task("fit: regression, TPAMI data, 20 features")
def _(threads: int, _: Path) -> Any:
    from coterie import GroupDiscoveryRegressor

    X, y = _planted()
    return lambda: GroupDiscoveryRegressor(20, C=1.0, n_jobs=threads).fit(X, X[:, :30].sum(axis=1) + y)


@task("cross-validation: shipp, defaults, 30 features")
def _(threads: int, _: Path) -> Any:
    from coterie import GroupDiscoveryClassifierCV

    X, y = _real("shipp")
    return lambda: GroupDiscoveryClassifierCV(30, random_state=0, n_jobs=threads).fit(X, y)


@task("cross-validation: news20 shape x 0.3, 5 folds x 10 C, 50 features")
def _(threads: int, _: Path) -> Any:
    from coterie import GroupDiscoveryClassifierCV

    X, y = _shape("news20", scale=0.3)
    same = {"n_features_per_round": 10, "standardize": False, "random_state": 0, "n_jobs": threads}
    return lambda: GroupDiscoveryClassifierCV(50, Cs=10, cv=5, **same).fit(X, y)


def _survival_times() -> tuple[Any, Any, Any]:
    """Return features with a common factor, survival times with half of them censored, and the log hazard with noise."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3000))
    X[:, :300] += rng.standard_normal((200, 1))
    risk = (X[:, :5].sum(axis=1) + X[:, 1000:1003].sum(axis=1)) / 3
    times, censoring = rng.exponential(np.exp(-risk)), rng.exponential(2.0, 200)
    y = np.column_stack([np.minimum(times, censoring), times <= censoring])
    return X, y, risk + rng.standard_normal(200)


@task("cross-validation: survival times, 200 x 3,000, 5 C, 30 features")
def _(threads: int, _: Path) -> Any:
    from coterie import GroupDiscoverySurvivalCV

    X, y, _target = _survival_times()
    return lambda: GroupDiscoverySurvivalCV(30, Cs=5, random_state=0, n_jobs=threads).fit(X, y)


@task("cross-validation: numbers, 200 x 3,000, 5 C, 30 support features")
def _(threads: int, _: Path) -> Any:
    from coterie import GroupDiscoveryRegressorCV

    X, _y, target = _survival_times()
    settings = {"Cs": 5, "predict_with": "support", "random_state": 0}
    return lambda: GroupDiscoveryRegressorCV(30, n_jobs=threads, **settings).fit(X, target)


@task("confidence: TPAMI data, 10 pairs, 1 permutation")
def _(threads: int, _: Path) -> Any:
    from coterie import group_confidence

    X, y = _planted()
    model = _fit(X, y, 20, threads)()
    return lambda: group_confidence(model, X, y, n_pairs=10, n_permutations=1, random_state=0, n_jobs=threads)


def _two_classes(name: str) -> tuple[Any, Any]:
    import numpy as np

    if name == "colon shape":  # 62 samples x 2,000 features with a common factor and noisy labels
        rng = np.random.default_rng(0)
        X = rng.standard_normal((62, 2000))
        X[:, :200] += 1.5 * rng.standard_normal((62, 1))
        return X, (X[:, :5].sum(axis=1) + X[:, 500:503].sum(axis=1) + 2.0 * rng.standard_normal(62) > 0).astype(int)
    X, y = _real(name)
    return np.asarray(X, dtype=np.float64), (y == np.unique(y)[0]).astype(int)


def _validated_fit(data: str, threads: int) -> Callable[[], Any]:
    from coterie import GroupDiscoveryClassifierCV

    X, y = _two_classes(data)
    kinds = ["support", "groups"]
    return lambda: GroupDiscoveryClassifierCV(60, Cs=5, nested=True, predict_with=kinds, random_state=0, n_jobs=threads).fit(
        X, y
    )


def _separable(threads: int) -> Callable[[], Any]:
    """Return a validated fit of separable classes, with values of C like those of LogisticRegressionCV."""
    from coterie import GroupDiscoveryClassifierCV

    X, y = _two_classes("su")
    settings = {"Cs": [1e-4, 1e-2, 1.0, 1e2, 1e4], "nested": True, "predict_with": "support", "random_state": 0}
    return lambda: GroupDiscoveryClassifierCV(60, n_jobs=threads, **settings).fit(X, y)


def _logistic(data: str) -> Callable[[], Any]:
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.preprocessing import StandardScaler

    X, y = _two_classes(data)
    X = StandardScaler().fit_transform(X)
    return lambda: LogisticRegressionCV(Cs=8, l1_ratios=(1.0,), solver="liblinear", cv=5, random_state=0).fit(X, y)


def _discover(data: str, threads: int) -> Callable[[], Any]:
    import coterie

    X, y = _real(data)
    return lambda: coterie.discover(X, y, random_state=0, n_jobs=threads)


for _data in ("colon shape", "shipp", "su"):
    for _threads in (1, 2):
        TASKS[f"nested scores: {_data}, support and groups, {_threads} thread{'s'[: _threads - 1]}"] = (
            lambda _, __, data=_data, threads=_threads: _validated_fit(data, threads)
        )
    TASKS[f"nested scores: {_data}, LogisticRegressionCV(l1, 8 C)"] = lambda _, __, data=_data: _logistic(data)
for _threads in (1, 2):
    TASKS[f"nested scores: su, C from 1e-4 to 1e4, {_threads} thread{'s'[: _threads - 1]}"] = lambda _, __, threads=_threads: (
        _separable(threads)
    )
for _data in ("shipp", "gravier", "gordon"):
    TASKS[f"discover: {_data}, one thread"] = lambda _, __, data=_data: _discover(data, 1)


@task("discover: pbmc68k_reduced, ten classes, one thread")
def _(_: int, __: Path) -> Any:
    import anndata
    import numpy as np
    from _real import find_data

    import coterie

    cells = anndata.read_h5ad(find_data("pbmc68k_reduced.h5ad"))
    X, y = np.asarray(cells.X, dtype=np.float64), cells.obs["bulk_labels"].to_numpy().astype(str)
    return lambda: coterie.discover(X, y, random_state=0, n_jobs=1)


for _data in ("gordon", "shipp", "gravier"):

    @task(f"confidence: {_data}, 25 pairs without permutations, 20 features, one thread")
    def _(_: int, __: Path, data: str = _data) -> Any:
        from coterie import GroupDiscoveryClassifier, group_confidence

        X, y = _two_classes(data)
        model = GroupDiscoveryClassifier(20, C=1.0, n_jobs=1).fit(X, y)
        return lambda: group_confidence(model, X, y, n_pairs=25, n_permutations=0, random_state=0, n_jobs=1)

    @task(f"fit: {_data}, 20 features, one thread")
    def _(_: int, __: Path, data: str = _data) -> Any:
        return _fit(*_two_classes(data), 20, 1)


@task("embedded cross-validation: TPAMI data, 5 folds")
def _(threads: int, _: Path) -> Any:
    return _fit(*_planted(), 20, threads, cv=5, random_state=0)


@task("GRM: Fisher's score, 2,000 of 7,129 genes")
def _(_: int, __: Path) -> Any:
    from coterie import GlobalRedundancySelector

    X, y = _real("shipp")
    return lambda: GlobalRedundancySelector("fisher", n_features_to_select=50, n_candidates=2000, solution="weights").fit(X, y)


@task("DAF: 3-NN, 300 probes, madelon")
def _(threads: int, _: Path) -> Any:
    from coterie import DependencyAwareSelector

    X, y = _real("madelon")
    settings = {"n_probes": 300, "min_coverage": None, "random_state": 0, "n_jobs": threads}
    return lambda: DependencyAwareSelector("knn", **settings).fit(X, y)


@task("filters: variance, Fisher, LGD, information gain, ReliefF, Laplacian, mfeat")
def _(_: int, __: Path) -> Any:
    from coterie import filters

    X, y = _real("mfeat")
    names = ("variance_score", "fisher_score", "lgd_score", "information_gain_score", "relieff_score", "laplacian_score")
    return lambda: [getattr(filters, name)(X, y) for name in names]


@task("mRMR: 30 of 649 features, mfeat")
def _(_: int, __: Path) -> Any:
    from coterie.baselines import MRMRSelector

    X, y = _real("mfeat")
    return lambda: MRMRSelector(30).fit(X, y)


@task("groups without labels: TPAMI data")
def _(threads: int, _: Path) -> Any:
    from coterie import CorrelationGroups

    X, _y = _planted()
    return lambda: CorrelationGroups(n_jobs=threads).fit(X)


@task("profile: 4,000 features")
def _(threads: int, _: Path) -> Any:
    from coterie import correlation_profile

    X, _y = _planted(1000, 4000)
    return lambda: correlation_profile(X, n_jobs=threads)


@task("files: LIBSVM text of 30 MB to a store, opened and fitted")
def _(threads: int, folder: Path) -> Any:
    from sklearn.datasets import dump_svmlight_file

    from coterie.data import convert, open_store

    X, y = _shape("news20", scale=0.6)
    text, store = folder / "x.svm", folder / f"{os.getpid()}.store"
    dump_svmlight_file(X.tocsr(), y, str(text))

    def job() -> Any:
        convert(text, store, overwrite=True)
        data = open_store(store)
        return _fit(data.source, data.y, 20, threads, standardize=False)()

    return job


@task("files: CSV of 4,000 x 500 read")
def _(_: int, folder: Path) -> Any:
    import numpy as np

    from coterie.data import open_features

    X, y = _planted(4000, 500)
    names = ",".join(["y", *(f"f{j}" for j in range(X.shape[1]))])
    np.savetxt(folder / "x.csv", np.column_stack([y, X]), delimiter=",", header=names, comments="", fmt="%.6g")
    return lambda: open_features(folder / "x.csv", label="y")


@task("cluster: a store of the news20 shape x 0.3 on two workers, 20 features")
def _(_: int, folder: Path) -> Any:
    from dask.distributed import Client, LocalCluster

    from coterie.datasets import make_big_dimensional

    store = folder / f"{os.getpid()}-cluster.store"
    y = make_big_dimensional("news20", scale=0.3, random_state=0, path=store).y
    client = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))

    def job() -> Any:
        from coterie import GroupDiscoveryClassifier

        return GroupDiscoveryClassifier(20, C=1.0, n_features_per_round=5, standardize=False).fit(str(store), y, client=client)

    return job


@task("saved model: written and read, 300 groups")
def _(threads: int, folder: Path) -> Any:
    from coterie import load, save

    model = _fit(*_shape("news20", scale=0.3), 300, threads, n_features_per_round=30, standardize=False)()

    def job() -> Any:
        save(model, folder / f"{os.getpid()}.coterie")
        return load(folder / f"{os.getpid()}.coterie")

    return job


def serve() -> None:
    """Serve as the process of a version: read the name of a task per line, and write its seconds."""
    threads = int(sys.argv[2])
    ready: dict[str, Callable[[], Any]] = {}
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of the tasks must not reach the replies
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            name = line.rstrip("\n")
            try:
                if name not in ready:
                    ready.clear()  # keep the data of one task at a time
                    ready[name] = TASKS[name](threads, Path(folder))
                    ready[name]()
                    answer = "ready"
                else:
                    began = time.perf_counter()
                    ready[name]()
                    answer = repr(time.perf_counter() - began)
            except Exception as error:  # for example a name that the earlier version does not have
                answer = f"failed: {type(error).__name__}: {error}".replace("\n", " ")
            out.write(answer + "\n")
            out.flush()


def send_request(process: Any, name: str) -> str:
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return str(process.stdout.readline().rstrip("\n"))


def main() -> None:
    from _record import source_digest, write_results
    from _tables import DOCS, markdown_table, print_table, replace_section

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--before", type=Path, required=True, help="folder `src` of the earlier version")
    parser.add_argument("--name", default="", help="name of the earlier version in the table")
    parser.add_argument("--only", default="", help="run only tasks whose names contain this text")
    parser.add_argument("--repeats", type=int, default=5, help="number of timed runs (default 5)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of Coterie (default: all cores)")
    options = parser.parse_args()
    options.source, options.quick = source_digest(), False
    sources = {"before": options.before, "now": Path(__file__).resolve().parents[1] / "src"}
    processes = {
        version: subprocess.Popen(
            [sys.executable, __file__, "--serve", str(options.threads)],
            env=os.environ | {"PYTHONPATH": str(source.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for version, source in sources.items()
    }
    rows: list[dict[str, Any]] = []
    for name in TASKS:
        if options.only not in name:
            continue
        first = {version: send_request(process, name) for version, process in processes.items()}
        failed = [f"{version}: {answer}" for version, answer in first.items() if answer != "ready"]
        if failed:
            rows.append({"task": name, "before, s": None, "now, s": None, "now / before": "; ".join(failed)})
            continue
        took: dict[str, list[float]] = {version: [] for version in processes}
        for _ in range(options.repeats):
            for version, process in processes.items():
                took[version].append(float(send_request(process, name)))
        before, now = (min(took[version]) for version in ("before", "now"))
        rows.append({"task": name, "before, s": before, "now, s": now, "now / before": f"{now / before:.2f}"})
        print(rows[-1], flush=True)
    for process in processes.values():
        process.stdin.close()
        process.wait()
    print_table(f"This version compared with {options.name or options.before}", rows)
    write_results("versions", options, rows=rows)
    if not options.only:
        replace_section(DOCS / "versions.md", "versions", markdown_table(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve()
    else:
        main()
