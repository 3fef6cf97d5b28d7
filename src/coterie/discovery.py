"""The whole procedure: choice by validation, held-out score, confidence of the groups, judgement."""

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

from coterie._parameters import Boolean, Integer, OneOf, check_parameters
from coterie._warnings import RecordedWarning, recorded
from coterie.confidence.estimation import group_confidence
from coterie.data.source import FeatureSource
from coterie.data.view import FeatureView, mostly_zero
from coterie.estimators.base import GroupDiscovery
from coterie.estimators.documentation import documented
from coterie.inputs.targets import task_of
from coterie.inputs.types import ClientLike, CovariatesLike, FeaturesLike, NamesLike, RandomStateLike, SamplesLike, TargetsLike
from coterie.interruption import stop_requested
from coterie.methods import DISCOVERY, DISCOVERY_CV, load
from coterie.report.assembly import OpenedData, assemble, baseline_of, open_data
from coterie.report.details import check_image
from coterie.report.judgement import HeldOut, score_name
from coterie.report.result import Discovery
from coterie.selection import features_of_share

# Parameters by name, with values of any kind.
Settings: TypeAlias = Mapping[str, Any]
TASKS = ("auto", *DISCOVERY)
# Features up to which a fit without validation continues to convergence by default.
FEW_FEATURES = 100
# Values of C to choose from; more take longer and seldom choose better.
_N_PENALTIES = 5
# Default number of folds of the validated estimators.
_N_FOLDS = 5
# Samples and values up to which models on whole groups, each of which needs its own fit, are candidates as well.
_MAX_SAMPLES = 2000
_MAX_VALUES = 10**8
# Samples of a class below which it cannot be held out twice, and below which a caution is given.
_FEWEST, _TINY = 3, 10
# Ratio of the largest to the smallest standard deviation above which scales count as very different.
_SCALES_APART = 100.0


class ParameterError(ValueError):
    """A parameter of :func:`discover` that is wrong, or does not go with another one.

    Attributes
    ----------
    parameters : tuple of str
        Names of the parameters in the message, for programs that call them otherwise. The message begins with the first name
        or mentions a parameter as ``name=value``.
    """

    def __init__(self, message: str, *parameters: str) -> None:
        super().__init__(message)
        self.parameters = parameters


@documented
def discover(
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    sample_weight: SamplesLike = None,
    groups: SamplesLike = None,
    covariates: CovariatesLike = None,
    feature_names: NamesLike = None,
    task: str = "auto",
    fast: bool = False,
    n_pairs: int | None = None,
    n_permutations: int | None = None,
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
    """Find groups of features, measure whether they predict, and estimate which of them are real.

    Cross-validation chooses the number of features, C, and the other settings that are not given. The score of the whole
    procedure is measured on samples that had no part in it (nested cross-validation), and the search is repeated on
    half-samples and with shuffled labels to estimate the confidence of each group. ``coterie discover`` runs this function.

    Parameters
    ----------
    X : {array-like, sparse, data frame, AnnData, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
        The features.

    y : array-like of shape (n_samples,) or str, default=None
        Labels or targets; of AnnData and files also the name of a column. None takes those of a path, data set or store.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the samples.

    groups : None
        Groups of samples that belong together, such as the donors of cells. Not supported yet: anything but None is refused.

    covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
        Covariates that are accounted for and never discovered. None takes those of a data set or store.

    feature_names : array-like of str or callable, default=None
        Names of the features, for data without names.

    task : {"auto", "classification", "regression", "one-class"}, default="auto"
        What to predict. ``"auto"`` decides by the labels: text, booleans and whole numbers that repeat are classes. For
        ``"one-class"``, labels 1 (normal) and -1 (outlier) serve to validate; others are not used.

    fast : bool, default=False
        One fit with given settings: no validation, no confidences.

    n_pairs : int, default=that of group_confidence
        Number of half-sample pairs used for confidences; 0 for none.

    n_permutations : int, default=that of group_confidence
        Number of label permutations used to estimate the false discovery rate.

    %(about_data)s

    random_state : int, RandomState instance or None, default=0
        Seed of folds, half-samples and permutations.

    n_jobs : int, default=None
        Number of threads or processes, as for the estimators.

    verbose : int, default=0
        Show progress: a bar on a terminal, lines elsewhere.

    client : distributed.Client, default=None
        Client of a Dask cluster whose workers hold the features of X, which must then be a store or a Dask array.

    **parameters
        Parameters of :class:`coterie.GroupDiscoveryClassifierCV` (or the estimator of another task), for instance
        ``max_features_to_select`` or ``scoring``. What is given is not searched: ``n_features_to_select=20`` and ``C=1`` are
        then the only candidates. With ``fast=True`` those of :class:`coterie.GroupDiscoveryClassifier`.

    Returns
    -------
    discovery : Discovery
        The fitted model, groups with confidences, held-out scores, judgement and warnings, with methods ``report``, ``save``
        and ``to_frame``.

    Raises
    ------
    ValueError
        If a parameter is wrong, or does not go with the task or with ``fast``.

    See Also
    --------
    coterie.GroupDiscoveryClassifierCV : The estimator alone.
    coterie.group_confidence : The confidences alone.

    Notes
    -----
    The fewest features within one standard error of the best score are chosen (``rule="one_se"``), of five values of C
    (``Cs=5``). Models on whole groups are candidates for dense data of up to 2,000 samples and 10⁸ values
    (``predict_with=["support", "groups"]``). With ``fast=True``, or without labels to validate with, a search in at most 100
    features continues to convergence unless ``n_features_to_select`` is given.

    Ctrl-C during the fit raises ``KeyboardInterrupt``; during the confidences, the half-samples that are done are kept.

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
    if groups is not None:
        raise ParameterError(
            "groups is not supported yet by discover: samples that belong together would be split between folds. Leave it "
            "out, or pass one sample per group, such as the mean.",
            "groups",
        )
    settings = {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose, **parameters}
    check_settings(task, settings, fast=fast, n_pairs=n_pairs, n_permutations=n_permutations)
    data = open_data(
        X, y, sample_weight=sample_weight, covariates=covariates, feature_names=feature_names,
        name=name, label=label, reader="discover", client=client,
    )  # fmt: skip
    if image_shape is not None:
        check_image(image_shape, image_order, data.source.shape[1])
    task = _settled(task, data)
    began = time.perf_counter()
    said = _Said()
    said.warn(_cautions_about_data(data, task, settings))
    with recorded(UserWarning, RuntimeWarning) as caught:
        model = _fitted(data, task, settings, fast)
    said.warn(caught)
    said.warn(_cautions_about_score(model))
    with recorded(UserWarning, RuntimeWarning) as caught:
        if not fast and n_pairs != 0 and not stop_requested():
            _add_confidence(model, data, n_pairs, n_permutations)
        seconds, interrupted = time.perf_counter() - began, stop_requested()
        seed = None if random_state == 0 else random_state
        command = _call(
            task=task, fast=fast or None, n_pairs=n_pairs, n_permutations=n_permutations, random_state=seed, **parameters
        )
        found = assemble(model, data, image_shape, image_order, seconds=seconds, interrupted=interrupted, command=command)
    said.warn(caught)
    return replace(found, warnings=tuple(said.texts))


def check_settings(
    task: str,
    parameters: Settings,
    *,
    fast: bool = False,
    n_pairs: int | None = None,
    n_permutations: int | None = None,
) -> None:
    """Raise what :func:`discover` would, without data; the parameters mean the same for every task."""
    if task not in TASKS:
        raise ParameterError(f"task={task!r} must be one of {', '.join(TASKS)}.", "task")
    for name, value, rule in (
        ("fast", fast, Boolean()),
        ("n_pairs", n_pairs, Integer(0) | OneOf(None)),
        ("n_permutations", n_permutations, Integer(0) | OneOf(None)),
    ):
        if not rule.allows(value):
            raise ParameterError(f"{name}={value!r} must be {rule.description(value)}.", name)
    supposed = "classification" if task == "auto" else task
    number = parameters.get("n_features_to_select")
    plain = fast or number == "auto" or (supposed == "one-class" and not _requests_validation(parameters))
    if isinstance(number, str) and number not in ("auto", "cv"):
        raise ParameterError(
            f"n_features_to_select={number!r} must be a number, a fraction, auto or cv.", "n_features_to_select"
        )
    if number == "cv" and plain:
        raise ParameterError(
            "n_features_to_select='cv' does not go with fast=True; give a number or auto.", "n_features_to_select", "fast"
        )
    if not plain and number not in (None, "cv"):
        check_parameters(_estimator(DISCOVERY[supposed], {"n_features_to_select": number}, supposed, fast=fast))
    chosen = parameters if plain else _searched(parameters, 1000)
    check_parameters(_estimator((DISCOVERY if plain else DISCOVERY_CV)[supposed], chosen, supposed, fast=fast))


def validates(task: str, y: TargetsLike, parameters: Settings, *, fast: bool = False) -> bool:
    """Whether settings are chosen by validation; with one class this takes outliers to judge by, enough for every fold."""
    if fast or parameters.get("n_features_to_select") == "auto":
        return False
    if task != "one-class":
        return True
    if y is None or np.asarray(y).dtype.kind not in "if":
        return False
    labels, counts = np.unique(y, return_counts=True)
    folds = parameters.get("cv", _N_FOLDS)
    return labels.tolist() == [-1, 1] and bool(min(counts) >= (folds if isinstance(folds, Integral) else _FEWEST))


def scales_apart(source: FeatureSource) -> bool:
    """Whether dense features have such different scales that what depends on them must be said."""
    if source.is_sparse:
        return False
    lowest, highest = zip(*FeatureView.of(source).map_blocks(_scales), strict=True)
    return bool(max(highest) > _SCALES_APART * min(lowest))


def _scales(view: FeatureView) -> tuple[float, float]:
    """The smallest and the largest standard deviation above 0; infinite and 0 where there is none."""
    scale = view.moments.scale
    return float(scale.min(initial=np.inf, where=scale > 0)), float(scale.max(initial=0.0))


def _settled(task: str, data: OpenedData) -> str:
    """The task itself; for ``"auto"`` by the kind of labels."""
    if task == "one-class":
        if data.covariates is not None:
            raise ParameterError("covariates has no meaning for task='one-class'; leave it out.", "covariates", "task")
        return task
    if data.y is None:
        raise ParameterError("y is None, and the data have no labels. Pass y, or use task='one-class'.", "task")
    return task_of(np.asarray(data.y)) if task == "auto" else task


def _fitted(data: OpenedData, task: str, settings: Settings, fast: bool) -> GroupDiscovery:
    """The fitted estimator, its settings chosen by validation where that is possible."""
    choose = validates(task, data.y, settings, fast=fast)
    model = _validated(data, task, settings) if choose else _plain(data, task, settings)
    more = {} if task == "one-class" else {"covariates": data.covariates}
    return model.fit(data.X, data.y, data.sample_weight, **more)


def _plain(data: OpenedData, task: str, settings: Settings) -> GroupDiscovery:
    """The estimator with given settings."""
    if settings.get("n_features_to_select") == "cv":
        raise ParameterError(
            "n_features_to_select='cv' needs labels 1 and -1, of each as many as folds, for task='one-class'.",
            "n_features_to_select",
            "task",
        )
    model = _estimator(DISCOVERY[task], settings, task, fast=True)
    if "n_features_to_select" not in settings and data.source.shape[1] <= FEW_FEATURES:
        model.set_params(n_features_to_select="auto")  # the default is more than there are
    return model


def _validated(data: OpenedData, task: str, settings: Settings) -> GroupDiscovery:
    """The estimator that chooses what is not given."""
    n_samples, n_features = data.source.shape
    # The fewest features within the error of the best: where nearly all are chosen, no group can stand out.
    chosen = {"rule": "one_se", "Cs": _N_PENALTIES, **_searched(settings, n_features)}
    few = n_samples <= _MAX_SAMPLES and n_samples * n_features <= _MAX_VALUES
    if "predict_with" not in chosen and few and not mostly_zero(data.source):
        chosen["predict_with"] = ["support", "groups"]
    model = _estimator(DISCOVERY_CV[task], chosen, task, fast=False)
    smallest = n_samples if task == "regression" else min(np.unique(np.asarray(data.y), return_counts=True)[1])
    folds = model.cv if isinstance(model.cv, Integral) else _FEWEST
    if "nested" not in chosen and smallest >= _FEWEST and int(folds) >= _FEWEST:
        model.set_params(nested=True)
    return model


def _searched(settings: Settings, n_features: int) -> dict[str, Any]:
    """Parameters of the estimator with a choice: what is given is the only candidate."""
    chosen = dict(settings)
    number = chosen.pop("n_features_to_select", "cv")
    if number != "cv":
        size = number if isinstance(number, Integral) else features_of_share(number, n_features)
        chosen |= {"min_features_to_select": size, "max_features_to_select": size}
    if "C" in chosen:
        chosen["Cs"] = [chosen.pop("C")]
    return chosen


def _requests_validation(parameters: Settings) -> bool:
    """Whether a parameter is given that the plain estimator of one class does not have."""
    unknown = set(parameters) - set(_names(DISCOVERY["one-class"]))
    return parameters.get("n_features_to_select") == "cv" or bool(unknown)


def _estimator(place: str, parameters: Settings, task: str, *, fast: bool) -> GroupDiscovery:
    """The estimator with these parameters, all of which it must have."""
    for foreign in sorted(set(parameters) - set(_names(place))):
        if fast and foreign in _names(DISCOVERY_CV[task]):
            where = ", or without labels 1 and -1" if task == "one-class" else ""
            raise ParameterError(
                f"{foreign} belongs to the validation, which there is none of with fast=True or auto{where}; leave it out.",
                foreign,
                "fast",
            )
        known = dict.fromkeys(name for other in (*DISCOVERY.values(), *DISCOVERY_CV.values()) for name in _names(other))
        if foreign not in known:
            near = get_close_matches(foreign, known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"discover() got an unexpected keyword argument {foreign!r}.{hint}")
        raise ParameterError(f"{foreign} has no meaning for task={task!r}; leave it out.", foreign, "task")
    return load(place)(**parameters)


def _names(place: str) -> list[str]:
    """Names of the parameters of an estimator."""
    return list(inspect.signature(load(place)).parameters)


def _add_confidence(model: GroupDiscovery, data: OpenedData, n_pairs: int | None, n_permutations: int | None) -> None:
    """Attach the confidences to the groups of the model; none where a signal came before the first was known."""
    given = {"n_pairs": n_pairs, "n_permutations": n_permutations}
    counts: dict[str, Any] = {name: count for name, count in given.items() if count is not None}
    try:
        result = group_confidence(
            model,
            data.X,
            data.y,
            data.sample_weight,
            covariates=data.covariates,
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


def _cautions_about_data(data: OpenedData, task: str, settings: Settings) -> list[str]:
    """What makes a result doubtful, whatever is computed."""
    found = []
    if task == "classification":
        labels, counts = np.unique(np.asarray(data.y), return_counts=True)
        tiny = [f"{label} ({count})" for label, count in zip(labels.tolist(), counts.tolist(), strict=True) if count < _TINY]
        if tiny:
            shown = ", ".join(tiny[:5]) + (", …" if len(tiny) > 5 else "")
            found.append(f"Classes with few samples: {shown}. Little can be said about them.")
    if settings.get("standardize", True) is False and scales_apart(data.source):
        found.append(
            "The features have very different scales, and large ones are preferred; standardize=True gives all the same."
        )
    return found


def _cautions_about_score(model: GroupDiscovery) -> list[str]:
    """Whether held-out samples are predicted no better than without the features."""
    if not hasattr(model, "nested_scores_"):
        return []
    baseline = baseline_of(model)
    constant = float(model.constant_scores_.mean())
    if HeldOut(score_name(model), model.nested_scores_.tolist(), constant, float("nan"), baseline).predicts:
        return []
    words = "a constant prediction" if baseline == "constant" else "one of the covariates alone"
    return [f"On held-out samples the model is no better than {words}."]


def _call(**given: object) -> str:
    """The call that repeats a discovery."""
    changed = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    return f"coterie.discover({', '.join(['X', 'y', *changed])})"


class _Said:
    """The warnings of a discovery: raised once each, in the frame that has called :func:`discover`, and kept as text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def warn(self, messages: Iterable[str | RecordedWarning]) -> None:
        """Raise some warnings; to be called by :func:`discover` itself."""
        for one in messages:
            category, message = one if isinstance(one, RecordedWarning) else (UserWarning, one)
            text = " ".join(message.split())
            if text not in self.texts:
                self.texts.append(text)
                warnings.warn(message, category, stacklevel=3)
