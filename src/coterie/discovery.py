"""The whole procedure: choice of settings by validation, held-out score, confidence of the groups, judgement."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from coterie._parameters import PENALTY, Boolean, Fraction, Integer, OneOf, ParameterError, check, check_parameters
from coterie._warnings import RecordedWarning, recorded
from coterie.cautions import AboutSamples, Caution, find_cautions
from coterie.confidence.estimation import group_confidence
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView
from coterie.estimators.base import GroupDiscovery
from coterie.estimators.documentation import documented
from coterie.inputs.offsets import log_exposure
from coterie.inputs.sample_groups import read_sample_groups
from coterie.inputs.survival import survival_records
from coterie.inputs.targets import SettledTask, settle_by_labels
from coterie.inputs.types import (
    ClientLike,
    CovariatesLike,
    FeaturesLike,
    NamesLike,
    RandomStateLike,
    SampleGroupsLike,
    SamplesLike,
    TargetsLike,
    WeightsLike,
)
from coterie.interruption import stop_requested
from coterie.methods import DISCOVERY, DISCOVERY_CV, DISCOVERY_DEFAULTS, TASK_SETTINGS, load
from coterie.report.assembly import OpenedData, assemble, baseline_of, open_data
from coterie.report.blocks import BlockContribution, block_contributions, with_held_out
from coterie.report.details import check_image
from coterie.report.held_out import HeldOut, held_out_of
from coterie.report.judgement import FDR, judge
from coterie.report.result import Discovery
from coterie.selection import features_of_share
from coterie.solver.losses import LOSSES

# Parameters by name, with values of any kind.
Settings: TypeAlias = Mapping[str, Any]
TASKS = ("auto", *DISCOVERY)
# Number of features up to which a fit without validation continues to convergence by default.
FEW_FEATURES = 100
# Default number of folds of the validated estimators.
_N_FOLDS = 5
# Smallest number of samples of a class for nested validation.
_MIN_CLASS_SIZE = 3
# Task of a loss by the kind of its targets.
_TASK_OF_TARGETS = {"classes": "classification", "numbers": "regression"}
# Ratio of the largest to the smallest standard deviation above which scales count as very different.
_MAX_SCALE_RATIO = 100.0


@documented
def discover(
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    sample_weight: WeightsLike = None,
    groups: SampleGroupsLike = None,
    covariates: CovariatesLike = None,
    offset: SamplesLike = None,
    exposure: SamplesLike = None,
    feature_names: NamesLike = None,
    task: str = "auto",
    fast: bool = False,
    n_pairs: int | None = None,
    n_permutations: int | None = None,
    fdr: float = FDR,
    name: str | None = None,
    label: str | None = None,
    image_shape: tuple[int, int] | None = None,
    image_order: str = "C",
    random_state: RandomStateLike = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
    client: ClientLike = None,
    **parameters: Any,
) -> Discovery:
    """Find groups of features, measure their held-out score, and estimate the confidence of each group.

    Cross-validation chooses the number of features, C, and the other settings that are not given. The score of the whole
    procedure is measured on held-out samples (nested cross-validation). The search is repeated on half-samples to estimate the
    confidence of each group. Tests give its p-value and its q-value. ``coterie discover`` runs this function.

    Parameters
    ----------
    X : {array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
        The features. Text columns of a data frame are encoded as by :func:`coterie.data.open_features`, which has options for
        it. The model then predicts from such frames.

    y : array-like of shape (n_samples,) or (n_samples, n_targets), or str, default=None
        Labels or targets. Several columns are several numeric targets; for survival times, they are two or three columns, or a
        structured array (see :meth:`coterie.GroupDiscoverySurvival.fit`). For data frames, AnnData and files, also the name of
        a column. None uses those of a path, data set or store.

    sample_weight : array-like of shape (n_samples,) or str, default=None
        Non-negative weights of the samples, or the name of their column. None uses those of a data set.

    groups : array-like of shape (n_samples,) or str, default=None
        Sample groups: labels of samples that belong together, such as the donor of a cell or the patient of a visit. Folds,
        half-samples and permutations keep them together. A string is the name of a column, for a data frame, an AnnData
        object (``obs``) or a path. None uses those of a data set or store.

    covariates : array-like or data frame of shape (n_samples, n_covariates), or list of str, default=None
        Covariates, for which the model adjusts and which are never selected, or the names of their columns. None uses those of
        a data set or store.

    offset : array-like of shape (n_samples,), default=None
        Number per sample that the model takes into account, such as a polygenic prediction
        (:func:`coterie.polygenic_offset`). For numbers its weight is 1. For classes its weight is fitted.

    exposure : array-like of shape (n_samples,), default=None
        Positive exposure of each sample, such as a time at risk, for ``task="counts"``. Its logarithm is the offset.

    feature_names : array-like of str, callable or transformer, default=None
        Names of the features, for data without names; or the fitted transformer that made X, such as a vectorizer.

    task : {"auto", "classification", "regression", "counts", "survival", "one-class"}, default="auto"
        Kind of prediction. ``"auto"`` decides by the name of a loss, then by the labels: text, booleans and integers that
        repeat are classes, and a structured array contains survival times; a warning states if integers could also be a
        quantity. ``"counts"`` is regression with ``loss="poisson"``. For ``"one-class"``, labels 1 (normal) and -1 (outlier)
        allow validation; other labels are not used.

    fast : bool, default=False
        Fit once with given settings, without validation and confidences.

    n_pairs : int, default=that of :func:`coterie.group_confidence`
        Number of half-sample pairs used for confidences; 0 for none.

    n_permutations : int, default=that of :func:`coterie.group_confidence`
        Number of label permutations used to estimate the share of false groups at each confidence. q-values need none.

    fdr : float, default=0.1
        False discovery rate: groups with a q-value of at most this level are selected.

    %(about_data)s

    random_state : int, RandomState instance or None, default=0
        Seed of folds, half-samples and permutations.

    n_jobs : int, default=None
        Number of threads or processes, as for the estimators.

    verbose : int, default=0
        Show progress: a bar on a terminal, plain lines otherwise.

    client : distributed.Client, default=None
        Client of a Dask cluster whose workers hold the features of X. X must then be a store or a Dask array.

    **parameters
        Parameters of :class:`coterie.GroupDiscoveryClassifierCV` (or the estimator of another task), for instance
        ``max_features_to_select`` or ``scoring``. Given values are fixed and not chosen by validation, for instance
        ``n_features_to_select=20`` or ``C=1``. With ``fast=True``, parameters of :class:`coterie.GroupDiscoveryClassifier`.

    Returns
    -------
    discovery : Discovery
        Fitted model, groups with confidences, held-out scores, judgement and warnings, with methods ``report``, ``save``
        and ``to_frame``.

    Raises
    ------
    ValueError
        If a parameter is invalid, or cannot be combined with the task or with ``fast``.

    See Also
    --------
    coterie.GroupDiscoveryClassifierCV : The estimator only.
    coterie.group_confidence : The confidences only.

    Notes
    -----
    One default differs from those of the estimators: the fewest features within one standard error of the best are chosen
    (``rule="one_se"``), so that groups stand out. ``rule="auto"`` chooses the model that predicts best. With
    ``fast=True``, or without labels for validation, a search in at most 100 features continues to convergence unless
    ``n_features_to_select`` is given.

    Ctrl-C during the fit raises ``KeyboardInterrupt``. During the estimation of confidences, the completed half-samples are
    kept.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import coterie
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> discovery = coterie.discover(X, y, max_features_to_select=5, n_pairs=5, n_permutations=1)
    >>> discovery.held_out.mean > 0.9
    True
    >>> discovery.groups[0].names[0]
    'worst concave points'
    >>> discovery.report()
    <Report, ... kB, not saved>
    """
    settings = {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose, **parameters}
    task = task_by_loss(task, settings)
    check_settings(task, settings, fast=fast, n_pairs=n_pairs, n_permutations=n_permutations, fdr=fdr)
    if exposure is not None:
        offset = _offset_of(exposure, offset, task)
    with recorded(UserWarning) as opening:
        data = open_data(
            X, y, sample_weight=sample_weight, covariates=covariates, offset=offset, groups=groups,
            feature_names=feature_names, name=name, label=label, reader="discover", client=client,
        )  # fmt: skip
    if image_shape is not None:
        check_image(image_shape, image_order, data.source.shape[1])
    task, note = _settled(task, data)
    if task == "survival":
        data = replace(data, y=survival_records(data.y))
    began = time.perf_counter()
    reported = _ReportedWarnings()
    reported.warn(opening)
    reported.warn([note] if note else [])
    cautions = _cautions(data, task)
    reported.warn([caution.text for caution in cautions] + _warnings_about_data(data, settings))
    with recorded(UserWarning, RuntimeWarning) as caught:
        model = _fitted(data, task, settings, fast)
    reported.warn(caught)
    reported.warn(_warnings_about_score(model, data))
    with recorded(UserWarning, RuntimeWarning) as caught:
        if not fast and n_pairs != 0 and not stop_requested():
            _add_confidence(model, data, n_pairs, n_permutations, fdr)
        blocks = _blocks(model, data, task, settings)
        seconds, interrupted = time.perf_counter() - began, stop_requested()
        seed = None if random_state == 0 else random_state
        command = _call(
            task=task,
            fast=fast or None,
            n_pairs=n_pairs,
            n_permutations=n_permutations,
            fdr=None if fdr == FDR else fdr,
            random_state=seed,
            **parameters,
        )
        facts = {"seconds": seconds, "interrupted": interrupted, "command": command, "fdr": float(fdr)}
        found = assemble(model, data, image_shape, image_order, blocks=blocks, **facts)
    reported.warn(caught)
    return replace(found, warnings=tuple(reported.texts), cautions=tuple(cautions))


def check_settings(
    task: str,
    parameters: Settings,
    *,
    fast: bool = False,
    n_pairs: int | None = None,
    n_permutations: int | None = None,
    fdr: float = FDR,
) -> None:
    """Raise the errors of :func:`discover` that do not depend on data."""
    if task not in TASKS:
        raise ParameterError(f"task={task!r} must be one of {', '.join(TASKS)}.", "task")
    for name, value, rule in (
        ("fast", fast, Boolean()),
        ("n_pairs", n_pairs, Integer(0) | OneOf(None)),
        ("n_permutations", n_permutations, Integer(0) | OneOf(None)),
        ("fdr", fdr, Fraction()),
    ):
        check(name, value, rule)
    supposed = "classification" if task == "auto" else task
    number = parameters.get("n_features_to_select")
    plain = fast or number == "auto" or (supposed == "one-class" and not _requests_validation(parameters))
    if isinstance(number, str) and number not in ("auto", "cv"):
        raise ParameterError(
            f"n_features_to_select={number!r} must be a whole number, a fraction, 'auto' or 'cv'.", "n_features_to_select"
        )
    if number == "cv" and plain:
        raise ParameterError(
            "n_features_to_select='cv' requires validation, which fast=True skips. Pass a number or 'auto', or remove "
            "fast=True.",
            "n_features_to_select",
            "fast",
        )
    if "C" in parameters and parameters["C"] != "auto":  # the validated estimator would report it as an entry of Cs
        check("C", parameters["C"], PENALTY)
    if not plain and number not in (None, "cv"):
        check_parameters(_estimator(DISCOVERY[supposed], {"n_features_to_select": number}, supposed, fast=fast))
    chosen = parameters if plain else _searched(parameters, 1000)
    check_parameters(_estimator((DISCOVERY if plain else DISCOVERY_CV)[supposed], chosen, supposed, fast=fast))


def task_by_loss(task: str, parameters: Settings) -> str:
    """Return the task; for ``"auto"``, the one of the loss, if its name is given."""
    loss = parameters.get("loss")
    if task != "auto" or not isinstance(loss, str):
        return task
    return next((own for kind, own in _TASK_OF_TARGETS.items() if loss in LOSSES[kind]), task)


def validates(task: str, y: TargetsLike, parameters: Settings, *, fast: bool = False) -> bool:
    """Return True if settings are chosen by validation. With one class, this requires enough outliers for every fold."""
    if fast or parameters.get("n_features_to_select") == "auto":
        return False
    if task != "one-class":
        return True
    if y is None or np.asarray(y).dtype.kind not in "if":
        return False
    labels, counts = np.unique(y, return_counts=True)
    return labels.tolist() == [-1, 1] and bool(min(counts) >= _n_folds(parameters))


def _n_folds(parameters: Settings) -> int:
    """Return the number of folds, or the smallest one if the folds are given by a splitter."""
    folds = parameters.get("cv", _N_FOLDS)
    return int(folds) if isinstance(folds, Integral) else _MIN_CLASS_SIZE


def scales_differ(source: FeatureSource) -> bool:
    """Return True if dense features have very different scales."""
    if source.is_sparse:
        return False
    lowest, highest = zip(*FeatureView.of(source).map_blocks(_scales), strict=True)
    return bool(max(highest) > _MAX_SCALE_RATIO * min(lowest))


def _scales(view: FeatureView) -> tuple[float, float]:
    """Return the smallest and the largest standard deviation above 0; infinity and 0 if all features are constant."""
    scale = view.moments.scale
    return float(scale.min(initial=np.inf, where=scale > 0)), float(scale.max(initial=0.0))


def _offset_of(exposure: SamplesLike, offset: SamplesLike, task: str) -> np.ndarray:
    """Return the offset that stands for an exposure."""
    if task != "counts":
        raise ParameterError(f"exposure requires task='counts', got task={task!r}.", "exposure", "task")
    if offset is not None:
        raise ParameterError(
            "exposure and offset cannot be combined. Add the logarithm of the exposure to the offset.", "exposure"
        )
    return log_exposure(exposure)


def _settled(task: str, data: OpenedData) -> SettledTask:
    """Return the task; for ``"auto"``, the one that the labels imply, with a note."""
    if task == "one-class":
        if data.covariates is not None:
            raise ParameterError(
                "covariates cannot be used with task='one-class'. Leave out the covariates.", "covariates", "task"
            )
        if data.offset is not None:
            raise ParameterError("offset cannot be used with task='one-class'. Leave out the offset.", "offset", "task")
        return SettledTask(task, "")
    if data.y is None:
        raise ParameterError("y is None and the data have no labels. Pass y, or use task='one-class'.", "task")
    groups = None if data.groups is None else np.asarray(data.groups)
    return settle_by_labels(np.asarray(data.y), groups) if task == "auto" else SettledTask(task, "")


def _fitted(data: OpenedData, task: str, settings: Settings, fast: bool) -> GroupDiscovery:
    """Return the fitted estimator, with settings chosen by validation if possible."""
    choose = validates(task, data.y, settings, fast=fast)
    model = _validated(data, task, settings) if choose else _plain(data, task, settings)
    options = {} if task == "one-class" else {"covariates": data.covariates, "offset": data.offset}
    options |= {} if task == "one-class" and not choose else {"groups": data.groups}
    return model.fit(data.X, data.y, data.sample_weight, **options)


def _plain(data: OpenedData, task: str, settings: Settings) -> GroupDiscovery:
    """Return the estimator with given settings."""
    if settings.get("n_features_to_select") == "cv":
        raise ParameterError(
            f"n_features_to_select='cv' with task='one-class' requires labels 1 and -1, with at least {_n_folds(settings)} "
            "samples of each.",
            "n_features_to_select",
            "task",
        )
    model = _estimator(DISCOVERY[task], settings, task, fast=True)
    if "n_features_to_select" not in settings and data.source.shape[1] <= FEW_FEATURES:
        model.set_params(n_features_to_select="auto")  # the default exceeds the number of features
    return model


def _validated(data: OpenedData, task: str, settings: Settings) -> GroupDiscovery:
    """Return the estimator that chooses the settings that are not given."""
    # The fewest features within one standard error of the best: if nearly all are chosen, no group stands out.
    chosen = {**DISCOVERY_DEFAULTS, **_searched(settings, data.source.shape[1])}
    model = _estimator(DISCOVERY_CV[task], chosen, task, fast=False)
    smallest = _smallest_class(data, task)
    if "cv" not in chosen and data.groups is not None:
        model.set_params(cv=int(np.clip(smallest, 2, _N_FOLDS)))  # Every class remains in the training part of each fold.
    folds = model.cv if isinstance(model.cv, Integral) else _MIN_CLASS_SIZE
    if "nested" not in chosen and smallest >= _MIN_CLASS_SIZE and int(folds) >= _MIN_CLASS_SIZE:
        model.set_params(nested=True)
    return model


def _smallest_class(data: OpenedData, task: str) -> int:
    """Return the number of samples, or of sample groups, of the rarest class or with an event; that of all for numbers."""
    n_samples = data.source.shape[0]
    units = np.arange(n_samples) if data.groups is None else read_sample_groups(data.groups, n_samples)
    if task == "survival":
        return len(np.unique(units[np.asarray(data.y)["event"]]))
    labels = np.zeros(n_samples) if task in ("regression", "counts") else np.asarray(data.y)
    return min(len(np.unique(units[labels == label])) for label in np.unique(labels))


def _searched(settings: Settings, n_features: int) -> dict[str, Any]:
    """Return the parameters of the validated estimator; given values are the only candidates."""
    chosen = dict(settings)
    number = chosen.pop("n_features_to_select", "cv")
    if number != "cv":
        size = number if isinstance(number, Integral) else features_of_share(number, n_features)
        chosen |= {"min_features_to_select": size, "max_features_to_select": size}
    if (C := chosen.pop("C", "auto")) != "auto":
        chosen["Cs"] = [C]
    return chosen


def _requests_validation(parameters: Settings) -> bool:
    """Return True if a parameter is given that the plain one-class estimator lacks."""
    unknown = set(parameters) - set(_names(DISCOVERY["one-class"]))
    return parameters.get("n_features_to_select") == "cv" or bool(unknown)


def _estimator(place: str, parameters: Settings, task: str, *, fast: bool) -> GroupDiscovery:
    """Return the estimator with these parameters, all of which it must have."""
    for foreign in sorted(set(parameters) - set(_names(place))):
        if fast and foreign in _names(DISCOVERY_CV[task]):
            one_class = " Validation with task='one-class' requires labels 1 and -1, with as many samples of each as folds."
            raise ParameterError(
                f"{foreign} only applies to validation, which fast=True and n_features_to_select='auto' skip."
                f"{one_class if task == 'one-class' else ''} Omit it, or allow validation.",
                foreign,
                "fast",
                "n_features_to_select",
                "task",
            )
        known = dict.fromkeys(name for other in (*DISCOVERY.values(), *DISCOVERY_CV.values()) for name in _names(other))
        if foreign not in known:
            near = get_close_matches(foreign, known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"discover() got an unexpected keyword argument {foreign!r}.{hint}")
        raise ParameterError(f"{foreign} cannot be used with task={task!r}. Omit it.", foreign, "task")
    fixed = TASK_SETTINGS.get(task, {})
    for name, value in fixed.items():
        if parameters.get(name, value) != value:
            raise ParameterError(f"{name}={parameters[name]!r} cannot be used with task={task!r}. Omit it.", name, "task")
    return load(place)(**{**parameters, **fixed})


def _names(place: str) -> list[str]:
    """Return the names of the parameters of an estimator."""
    return list(inspect.signature(load(place)).parameters)


def _add_confidence(
    model: GroupDiscovery, data: OpenedData, n_pairs: int | None, n_permutations: int | None, fdr: float
) -> None:
    """Add the confidences to the groups of the model; none if a signal came before the first half-sample was done."""
    given = {"n_pairs": n_pairs, "n_permutations": n_permutations}
    counts: dict[str, Any] = {name: count for name, count in given.items() if count is not None}
    try:
        result = group_confidence(
            model,
            data.X,
            data.y,
            data.sample_weight,
            covariates=data.covariates,
            offset=data.offset,
            groups=data.groups,
            random_state=model.random_state,
            n_jobs=model.n_jobs,
            verbose=model.verbose,
            **counts,
        )
    except KeyboardInterrupt:
        if not stop_requested():
            raise
        return
    result.attach_to(model)
    model.groups_ = model.groups_.marked(fdr)


def _blocks(model: GroupDiscovery, data: OpenedData, task: str, settings: Settings) -> tuple[BlockContribution, ...]:
    """Return what each block contributes, with held-out scores if those of all blocks are known."""
    found = block_contributions(model, data)
    held_out = held_out_of(model, data, baseline=baseline_of(model)) if found else None
    # Fixed features belong to one block, so that the others would be searched in another way.
    if len(found) < 2 or held_out is None or settings.get("fixed_features") is not None or stop_requested():
        return found

    def assess(part: OpenedData) -> HeldOut | None:
        if not part.source.moments().n_varying:
            return None
        other = _fitted(part, task, settings, False)
        return held_out_of(other, part, baseline=baseline_of(other))

    paired = isinstance(settings["random_state"], Integral)  # otherwise every fit draws folds of its own
    try:
        with recorded(UserWarning, RuntimeWarning):  # about models that are not part of the result
            return with_held_out(found, data, held_out, assess, paired=paired)
    except KeyboardInterrupt:
        if not stop_requested():
            raise
        return found


def _cautions(data: OpenedData, task: str) -> list[Caution]:
    """Return the cautions about the data. Survival times are treated like numbers."""
    survival = task == "survival"
    about = AboutSamples(
        np.asarray(data.y)["time"] if survival else data.y,
        "regression" if task in ("counts", "survival") else task,
        groups=data.groups,
        covariates=data.covariates,
        columns=data.other_columns,
        offset=data.offset is not None,
        is_genetic="chromosome" in data.feature_info,
    )
    return find_cautions(data.source, about)


def _warnings_about_data(data: OpenedData, settings: Settings) -> list[str]:
    """Return a warning about very different scales."""
    found = []
    if settings.get("standardize", True) is False and scales_differ(data.source):
        found.append(
            "The features have very different scales, so features with large values are preferred. standardize=True scales "
            "all features to unit variance."
        )
    return found


def _warnings_about_score(model: GroupDiscovery, data: OpenedData) -> list[str]:
    """Return a warning if the held-out score may be no better than that of the baseline."""
    held_out = held_out_of(model, data, baseline=baseline_of(model))
    warning = "" if held_out is None else judge(held_out.to_dict(), None).warning
    return [warning] if warning else []


def _call(**given: object) -> str:
    """Return the call that repeats a discovery."""
    changed = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    return f"coterie.discover({', '.join(['X', 'y', *changed])})"


class _ReportedWarnings:
    """The warnings of a discovery: each is raised once, in the frame of the caller of :func:`discover`, and kept as text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def warn(self, messages: Iterable[str | RecordedWarning]) -> None:
        """Raise warnings that are new. Only :func:`discover` itself may call this method, because of ``stacklevel``."""
        for one in messages:
            category, message = one if isinstance(one, RecordedWarning) else (UserWarning, one)
            text = " ".join(message.split())
            if text not in self.texts:
                self.texts.append(text)
                warnings.warn(message, category, stacklevel=3)
