"""``coterie.compare``."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from contextlib import closing, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from coterie._parameters import Integer, Number, OneOf, Scoring, check, read_size
from coterie.comparison.journal import Journal, results_folder
from coterie.comparison.process import AnySchedule, Limits, Schedule, Unit
from coterie.comparison.result import Comparison, Row
from coterie.comparison.trial import (
    Gaps,
    MethodEntry,
    MethodsLike,
    TrialSettings,
    check_for_task,
    estimator_digest,
    read_methods,
)
from coterie.data.dataset import Dataset
from coterie.data.errors import is_address
from coterie.data.imputation import ImputedSource
from coterie.data.store.reading import Store, is_store, open_store
from coterie.data.store.writing import write_store
from coterie.files import temporary_folder
from coterie.inputs.folds import read_folds
from coterie.inputs.opening import source_of, unwrap
from coterie.inputs.placement import active_client, cluster_schedule
from coterie.inputs.sample_groups import read_sample_groups
from coterie.inputs.targets import class_codes, numeric_targets, task_of
from coterie.inputs.types import (
    ClientLike,
    FeaturesLike,
    FoldsLike,
    RandomStateLike,
    SampleGroupsLike,
    ScoringLike,
    TargetsLike,
)
from coterie.progress import RoundProgress

_SIZES = (5, 10, 20, 50, 100)


def compare(
    methods: MethodsLike,
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    groups: SampleGroupsLike = None,
    n_features: int | Iterable[int] | None = None,
    cv: FoldsLike = 5,
    task: str = "auto",
    classifier: str | BaseEstimator | None = None,
    scoring: ScoringLike = None,
    standardize: bool = False,
    share_fits: bool = True,
    time_limit: float | None = None,
    memory_limit: int | str | None = None,
    results: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    verbose: int = 0,
    client: ClientLike = None,
) -> Comparison:
    """Compare feature selection methods on the same folds.

    On each fold, every method selects features from the training samples only. A classifier is trained on the selected
    features of these samples and scored on the held-out samples. Each method runs in its own process. A method that fails,
    hangs or runs out of memory is reported as a row with that status.

    Parameters
    ----------
    methods : list of str or selector, dict of str to str or selector, "all", or None
        Names (``"gdm"``, ``"fgm"``, ``"grm"``, ``"daf"``, ``"mrmr"``, ``"mrmr-miq"``, ``"fcbf"``, ``"rcfs"``, ``"svm-rfe"``,
        ``"l1-svm"``, ``"oscar"``, ``"gflasso"``, ``"ncfgs"``, ``"nctfgs"``, ``"sffs"``, ``"bif"``, or a filter: ``"fisher"``,
        ``"relieff"``, ``"information_gain"``, ``"variance"``, ``"lgd"``, ``"laplacian"``, ``"mcfs"``), or any selector with
        ``fit``, ``get_support`` and a parameter ``n_features_to_select``, ``k`` or ``max_features``. The keys of a dictionary
        are names for its selectors. None selects some fast methods, ``"all"`` all methods. For a numeric y the names are
        ``"gdm"``, ``"fgm"``, ``"correlation"``, ``"grm"``, ``"daf"``, ``"mrmr"``, ``"mrmr-miq"``, ``"lasso"``, ``"sffs"``,
        ``"bif"`` and the unsupervised filters.

    X : {array-like, sparse matrix, data frame, AnnData, path, store, data set} of shape (n_samples, n_features)
        Data. They are passed to the processes once, as a memory-mapped store. Missing values of a result of
        :func:`coterie.imputed` are filled again from the training samples of each fold.

    y : array-like of shape (n_samples,), default=None
        Class labels or numbers. Not needed for files and stores that contain labels.

    groups : array-like of shape (n_samples,) or str, default=None
        Sample groups: samples that belong together, such as the cells of a donor. Folds consist of whole groups, and so do
        the folds that a method makes itself. A string is the name of a column, for an AnnData object (``obs``) or a path.
        None uses those of a data set or store.

    n_features : int or iterable of int, default=None
        Numbers of features to select; None for those of 5, 10, 20, 50 and 100 that X has.

    cv : int, splitter or iterable of (train, test), default=5
        Folds. An integer means shuffled folds, stratified by class. A splitter gets the sample groups.

    task : {"auto", "classification", "regression"}, default="auto"
        Kind of y. With ``"auto"``, numbers with fractions, and whole numbers with few repetitions, mean regression.

    classifier : {"linear_svm", "knn", "ridge"} or estimator, default=None
        Predictor that scores a selection. For classes: ``"linear_svm"`` (None) or ``"knn"``. For numbers: ``"ridge"`` (None;
        its penalty is chosen by leave-one-out) or ``"knn"``. These scale the selected features to unit variance on the
        training samples.

    scoring : str or callable, default=None
        Scikit-learn scorer for the column ``accuracy`` (for regression, the column with the name of the score). None means
        ``"accuracy"`` or ``"r2"``. For regression the root mean squared error is reported as well.

    standardize : bool, default=False
        Whether to scale the features to mean 0 and standard deviation 1 on the training samples before every method (sparse
        data are only scaled). Without it, methods get the data unchanged, and some depend on the units.

    share_fits : bool, default=True
        Whether to use one fit for all numbers of features where the selections are known to be the same (GDM, mRMR, filters,
        …). Then ``fit_seconds`` is the time of that fit. False measures each number separately.

    time_limit : float, default=None
        Seconds per fold of a method, for all numbers of features together.

    memory_limit : int or str, default=None
        Bytes (or text such as ``"2GB"``) for the process of a method and its children, without the mapped data.

    results : path, default=None
        Folder for finished rows. A later run with the same data and settings resumes the comparison. Methods and numbers of
        features can be added. Rows that exceeded a limit are repeated when the limits have changed.

    overwrite : bool, default=False
        Whether to replace a comparison in ``results``.

    n_jobs : int, default=None
        Number of processes at the same time; None means one. It affects only the times.

    random_state : int or RandomState instance, default=0
        Seed of the folds, and of every method whose own ``random_state`` is None.

    verbose : int, default=0
        Show progress.

    client : distributed.Client, default=None
        Client of a Dask cluster whose workers run the methods instead of ``n_jobs`` processes, with one task per method and
        fold. X must be a store that all workers can read. Each task starts the usual process with the limits. None uses the
        active client, if there is one and X is a store.

    Returns
    -------
    comparison : Comparison
        ``table`` (one row per method, number of features and fold), ``summary()`` (means over folds, and stability),
        ``selections``, ``plot()``.

    See Also
    --------
    coterie.baselines : Further selection methods.
    coterie.metrics.selection_stability : Stability of one selector over resampled data.

    Notes
    -----
    The columns of ``table`` are ``method``, ``n_features``, ``fold``, ``n_selected``, ``accuracy``, ``redundancy_rate``,
    ``squared_redundancy``, ``fit_seconds``, ``status`` and ``message``. Both redundancies are those of the training samples.
    The status is ``"ok"``, ``"failed"``, ``"timed out"`` or ``"out of memory"``. The message is the failure, or the first
    warning of the fit. Ctrl-C ends all processes and returns the finished rows.

    Examples
    --------
    >>> import coterie
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(200, 40, n_support=4, n_true=11, random_state=3)
    >>> comparison = coterie.compare(["gdm", "fisher"], data.X, data.y, n_features=[2, 4], cv=3)
    >>> comparison.table.shape
    (12, 10)
    >>> comparison.summary()[["method", "n_features", "n_ok"]]
       method  n_features  n_ok
    0     gdm           2     3
    1     gdm           4     3
    2  fisher           2     3
    3  fisher           4     3
    """
    limits = _read_limits(time_limit, memory_limit)
    jobs = 1 if n_jobs is None else effective_n_jobs(n_jobs)
    check("task", task, OneOf("auto", "classification", "regression"))
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    check_for_task(lambda some: read_methods(methods, seed, some), task)  # before the data, which may be slow to read
    with (
        nullcontext() if results is None else results_folder(results) as kept_in,
        temporary_folder(Path(tempfile.gettempdir()) / "coterie-compare") as scratch,
    ):
        store, labels, gaps, known_groups = _stored(X, y, groups, scratch)
        n_samples, n_columns = store.shape
        codes = None if known_groups is None else read_sample_groups(known_groups, n_samples)
        task = task_of(labels) if task == "auto" else task
        entries = read_methods(methods, seed, task)
        labels = _read_labels(labels, n_samples, task)
        scoring = scoring if scoring is not None else "r2" if task == "regression" else "accuracy"
        sizes = _read_sizes(n_features, n_columns)
        judge = _read_classifier(classifier, store.is_sparse, scoring, task)
        setting = TrialSettings(
            store.path,
            store.feature_names is not None and not store.is_sparse and find_spec("pandas") is not None,
            labels,
            read_folds(cv, labels, classifier=task == "classification", shuffle=True, random_state=random_state, groups=codes),
            judge,
            scoring,
            bool(standardize),
            bool(share_fits),
            task,
            gaps,
            codes,
        )
        journal = None
        if kept_in is not None:
            methods_digests = {entry.name: entry.digest for entry in entries}
            journal = Journal(kept_in, _digests(store, setting), methods_digests, limits, overwrite=overwrite)
        with closing(journal) if journal is not None else nullcontext():
            schedule = _schedule(setting, scratch, limits, jobs, store, client)
            found, interrupted = _run(schedule, entries, sizes, journal, verbose)
    place = {entry.name: number for number, entry in enumerate(entries)}
    rows = tuple(sorted((row for row, _ in found.values()), key=lambda row: (place[row.method], row.n_features, row.fold)))
    selections = {key: features for key, (row, features) in found.items() if row.status == "ok"}
    return Comparison(rows, selections, n_columns, interrupted, scoring if isinstance(scoring, str) else "score", task)


def _schedule(
    setting: TrialSettings, scratch: Path, limits: Limits, jobs: int, store: Store, client: ClientLike
) -> AnySchedule:
    """Return the scheduler: processes of this machine, or workers of a cluster."""
    own = Path(store.path).is_relative_to(scratch)  # a temporary store that workers cannot read
    if client is not None and own:
        raise ValueError(
            "compare with a client requires X to be a store, because workers must be able to read it. Write X to a store "
            "first (coterie.data.write_store or convert)."
        )
    if client is None and not own:
        client = active_client()
    if client is None:
        return Schedule(setting, scratch, limits, jobs)
    path = setting.store if is_address(setting.store) else os.path.abspath(setting.store)
    there = replace(setting, store=path)
    return cluster_schedule(there, str(store.header["header_crc32"]), limits, client)


def _run(
    schedule: AnySchedule, entries: list[MethodEntry], sizes: list[int], journal: Journal | None, verbose: int
) -> tuple[dict[tuple[str, int, int], tuple[Row, np.ndarray]], bool]:
    """Return all rows by method, number of features and fold, and whether Ctrl-C ended the run."""
    folds = range(len(schedule.setting.folds))
    wanted = [(entry.name, size, fold) for entry in entries for size in sizes for fold in folds]
    found = {key: journal.done[key] for key in wanted if key in journal.done} if journal is not None else {}
    units = []
    for entry in entries:
        for fold in folds:
            left = [size for size in sizes if (entry.name, size, fold) not in found]
            if left:
                units.append(Unit(entry, fold, left))
    with RoundProgress(len(wanted), int(verbose), "compare", unit="rows") as bar:

        def on_row(row: Row, features: np.ndarray) -> None:
            found[row.method, row.n_features, row.fold] = (row, features)
            if journal is not None:
                journal.add(row, features)
            words = f"{row.accuracy:.4g}" if row.status == "ok" else row.status
            bar.update(len(found), f"{row.method}, {row.n_features} features, fold {row.fold}: {words}")

        try:
            schedule.run(units, on_row)
        except KeyboardInterrupt:
            if not found:
                raise
            return found, True
    return found, False


def _read_labels(labels: np.ndarray, n_samples: int, task: str) -> np.ndarray:
    """Return the labels as classes or numbers."""
    if task == "regression":
        return numeric_targets(labels, n_samples, "compare")
    class_codes(labels, n_samples, "compare")  # raises an error for values that are not class labels
    return labels


def _stored(
    X: FeaturesLike, y: TargetsLike, groups: SampleGroupsLike, scratch: Path
) -> tuple[Store, np.ndarray, Gaps | None, Any]:
    """Return the data as a store (unchanged if they are one), the labels, the missing values and the sample groups."""
    gaps = None
    known: Any = None
    if isinstance(X, (str, os.PathLike)) and is_store(X):
        X = open_store(X)
    if isinstance(X, Dataset) and X.format == "store" and is_store(X.path):
        store, labels, known = open_store(X.path), X.y if y is None else y, X.sample_groups
    elif isinstance(X, Store):
        store, labels, known = X, X.y if y is None else y, X.sample_groups
    else:
        found = unwrap(X, y, groups=groups)
        labels, known = found.y, found.sample_groups
        groups = None if isinstance(groups, str) else groups
        source = source_of(found.X)
        if isinstance(source, ImputedSource) and len(source.gaps[0]):
            gaps = Gaps(*source.gaps, source.strategy)
        store = open_store(write_store(scratch / "data", source, feature_names=source.feature_names))
    if labels is None:
        raise ValueError("requires y to be passed, but the target y is None. Methods are compared by their prediction of y.")
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if isinstance(groups, str):
        raise ValueError(f"groups is the string {groups!r}. For a store, pass the sample groups themselves.")
    return store, labels, gaps, known if groups is None else groups


def _read_sizes(n_features: int | Iterable[int] | None, n_columns: int) -> list[int]:
    if n_features is None:
        return [size for size in _SIZES if size <= n_columns] or [n_columns]
    given = list(n_features) if isinstance(n_features, Iterable) and not isinstance(n_features, str) else [n_features]
    if not given:
        raise ValueError("n_features is empty. Give at least one number of features.")
    for size in given:
        check("n_features", size, Integer(1))
        if int(size) > n_columns:
            raise ValueError(f"n_features has {size}, but X has {n_columns} feature(s). Choose at most {n_columns}.")
    return sorted({int(size) for size in given})


def _read_limits(time_limit: float | None, memory_limit: int | str | None) -> Limits:
    if time_limit is not None:
        check("time_limit", time_limit, Number())
    if isinstance(memory_limit, str):
        memory_limit = read_size(memory_limit)
    if memory_limit is not None:
        check("memory_limit", memory_limit, Integer(1))
    return Limits(None if time_limit is None else float(time_limit), None if memory_limit is None else int(memory_limit))


def _read_classifier(
    classifier: str | BaseEstimator | None, is_sparse: bool, scoring: ScoringLike, task: str
) -> BaseEstimator:
    """Return the estimator. Named estimators scale the features (sparse features without centring)."""
    check("scoring", scoring, Scoring())
    if not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(f"scoring={scoring!r} must be a single score: the name of a scikit-learn score or a function.")
    known = _judges(task)
    if classifier is None:
        classifier = next(iter(known))
    if isinstance(classifier, str):
        if classifier not in known:
            raise ValueError(f"classifier={classifier!r} must be one of {', '.join(known)} for {task}, or an estimator.")
        return make_pipeline(StandardScaler(with_mean=not is_sparse), known[classifier])
    if not (hasattr(classifier, "fit") and hasattr(classifier, "get_params")) or isinstance(classifier, type):
        names = ", ".join(map(repr, known))
        raise ValueError(f"classifier={classifier!r} must be {names}, or a scikit-learn estimator.")
    if task == "regression" and is_classifier(classifier):
        raise ValueError(f"classifier={classifier!r} predicts classes, but y is numeric. Pass a regressor.")
    return clone(classifier)


def _judges(task: str) -> dict[str, BaseEstimator]:
    """Return the named predictors that can score a selection. The first one is the default."""
    if task == "regression":
        return {"ridge": RidgeCV(np.logspace(-3, 5, 17)), "knn": KNeighborsRegressor()}
    return {"linear_svm": LinearSVC(dual="auto", max_iter=10_000, random_state=0), "knn": KNeighborsClassifier()}


def _digests(store: Store, setting: TrialSettings) -> dict[str, str]:
    """Return digests of everything that the meaning of a row depends on."""
    arrays = {name: entry for name, entry in store.header["arrays"].items() if name in ("indptr", "indices", "values")}
    gaps = setting.gaps
    filled = [] if gaps is None else [joblib.hash(gaps.samples), joblib.hash(gaps.features), gaps.strategy]
    contents = {
        "data": [store.shape, sorted((name, entry["dtype"], entry["crc32"]) for name, entry in arrays.items()),
                 setting.y.dtype.str, joblib.hash(setting.y.tolist()), *filled],
        "folds": [(joblib.hash(train), joblib.hash(test)) for train, test in setting.folds]
                 + ([] if setting.groups is None else [joblib.hash(setting.groups)]),
        "judging": [estimator_digest(setting.classifier), joblib.hash(setting.scoring), setting.standardize,
                    setting.share_fits],
    }  # fmt: skip
    return {name: hashlib.blake2b(repr(content).encode(), digest_size=12).hexdigest() for name, content in contents.items()}
