"""From a fitted model and its data to a :class:`Discovery`; reports of models, comparisons and correlation profiles."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from coterie.correlation.profile import CorrelationProfile
from coterie.data.source import FeatureSource
from coterie.data.store import Store
from coterie.estimators.base import GroupDiscovery
from coterie.estimators.documentation import documented
from coterie.groups.columns import Content, Record
from coterie.inputs.naming import named
from coterie.inputs.opening import source_of, unwrapped
from coterie.inputs.types import ClientLike, CovariatesLike, FeaturesLike, NamesLike, SamplesLike, TargetsLike
from coterie.report.details import describe
from coterie.report.judgement import held_out_of, task_of
from coterie.report.result import Discovery, Report
from coterie.report.side_pages import comparison_page, profile_page

if TYPE_CHECKING:
    from coterie.comparison.result import Comparison

# Entries of data that a fingerprint covers whole; larger data are known by a sample of their columns.
_ENTRIES = 50_000_000
_COLUMNS = 256


@dataclass(frozen=True, eq=False)
class OpenedData:
    """The data of a discovery, opened once; X as estimators take it, ``source`` as a :class:`FeatureSource`."""

    X: FeaturesLike
    y: TargetsLike
    sample_weight: SamplesLike
    covariates: CovariatesLike
    source: FeatureSource
    feature_info: Content
    label: str | None  # the name of ``y``
    about: Record  # path, format, size, fingerprint and notes


def open_data(
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    sample_weight: SamplesLike = None,
    covariates: CovariatesLike = None,
    feature_names: NamesLike = None,
    feature_info: Content | None = None,
    name: str | None = None,
    label: str | None = None,
    reader: str | None = None,
    client: ClientLike = None,
) -> OpenedData:
    """Open features and labels given in any form; see :func:`report` for the parameters.

    ``reader`` is the name of the function that reads, if it can work on the cluster of a client.
    """
    label = _name_of(y) if label is None else label
    found = unwrapped(X, y, reader=reader, client=client)
    origin = found.origin
    about: Record = {"path": name if name is not None else "the data" if origin is None else str(origin.path)}
    if origin is not None:
        about["format"] = "store" if isinstance(origin, Store) else origin.format
    if feature_info is None:
        feature_info = {} if origin is None else origin.feature_info
    source = source_of(found.X)
    if feature_names is not None:
        source = named(source, feature_names)
    features = found.X if feature_names is None else source
    about |= {"samples": source.shape[0], "features": source.shape[1], "fingerprint": data_digest(source, found.y)}
    if origin is not None and origin.notes:
        about["notes"] = origin.notes
    covariates = found.covariates if covariates is None else covariates
    info = {str(key): values for key, values in feature_info.items()}
    return OpenedData(features, found.y, sample_weight, covariates, source, info, label, about)


def assemble(
    model: GroupDiscovery, data: OpenedData, image_shape: tuple[int, int] | None = None, image_order: str = "C", **known: Any
) -> Discovery:
    """The discovery of a fitted model in the data of its fit; ``known`` are further fields of :class:`Discovery`."""
    details = describe(model, data.X, data.y, data.sample_weight, image_shape=image_shape, image_order=image_order)
    task, score = task_of(model), _training_score(model, data)
    return Discovery(
        model,
        data.about | ({"covariates": model.covariate_names_.tolist()} if hasattr(model, "covariate_names_") else {}),
        task,
        training_score=score,
        feature_info=data.feature_info,
        held_out=held_out_of(model, data.X, data.y, score, baseline_of(model)),
        target=target_of(data.y, task, data.label),
        details=details,
        **known,
    )


def baseline_of(model: GroupDiscovery) -> str:
    """The prediction that held-out scores are compared with."""
    return "covariates alone" if hasattr(model, "covariate_names_") else "constant"


def _training_score(model: GroupDiscovery, data: OpenedData) -> float | None:
    """Accuracy or R² of a fitted model on its training data; None for a model of one class."""
    if task_of(model) == "one-class":
        return None
    more = {"covariates": data.covariates} if hasattr(model, "covariate_names_") else {}
    return float(model.score(data.X, data.y, sample_weight=data.sample_weight, **more))


@documented
def report(
    model: GroupDiscovery | Comparison | CorrelationProfile,
    X: FeaturesLike | None = None,
    y: TargetsLike = None,
    path: str | os.PathLike[str] | None = None,
    *,
    sample_weight: SamplesLike = None,
    covariates: CovariatesLike = None,
    name: str | None = None,
    label: str | None = None,
    image_shape: tuple[int, int] | None = None,
    image_order: str = "C",
    feature_info: Content | None = None,
    command: str | None = None,
) -> Report:
    """Make a page that tells what predicts what, how well, and which groups are real.

    Parameters
    ----------
    model : fitted group-discovery estimator, Comparison or CorrelationProfile
        What to report. Held-out scores are in a report of an estimator ``...CV(nested=True)``, confidences in one of a
        model that :func:`coterie.group_confidence` was called for. A comparison or a profile needs no data.

    %(fitted_data)s

    path : path, default=None
        Where to save the page, too.

    %(about_data)s

    feature_info : mapping of str to array-like of shape (n_features,), default=None
        More about each feature: with ``chromosome`` and ``position`` the report has a picture of the genome. By default what
        a path or data set has.

    command : str, default=None
        What makes the result again, to be shown; by default the estimator with its parameters.

    Returns
    -------
    report : Report
        It shows itself in a notebook.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import coterie
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = coterie.GroupDiscoveryClassifier(4, threshold=0.9).fit(X, y)
    >>> coterie.report(model, X, y, name="breast cancer", label="diagnosis")
    <Report, ... kB, not saved>
    """
    if isinstance(model, CorrelationProfile):
        made = Report(profile_page(model, name or "", command))
    elif hasattr(model, "summary_rows"):  # a Comparison, which lies in a later layer
        made = Report(comparison_page(cast("Comparison", model), name or "", command))
    else:
        if X is None:
            raise ValueError("A report of a model needs the data of its fit: coterie.report(model, X, y).")
        data = open_data(
            X, y, sample_weight=sample_weight, covariates=covariates, feature_info=feature_info, name=name, label=label
        )
        command = repr(model) if command is None else command
        return assemble(cast("GroupDiscovery", model), data, image_shape, image_order, command=command).report(path)
    if path is not None:
        made.save(path)
    return made


def _name_of(y: TargetsLike) -> str | None:
    """The name of a series, or the word that names a column."""
    name = y if isinstance(y, str) else getattr(y, "name", None)
    return None if name is None else str(name)


def target_of(y: TargetsLike, task: str, label: str | None) -> Record:
    """What was predicted: its name, and how many samples each class has."""
    if task == "one-class" or y is None:
        return {}
    if task == "regression":
        return {"label": label, "classes": None}
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    found = zip(labels.tolist(), counts.tolist(), strict=True)
    return {"label": label, "classes": {str(name): count for name, count in found}}


def data_digest(source: FeatureSource, y: TargetsLike = None) -> str:
    """A short digest of features and labels: the same for the same data, whatever file or type they came from.

    Of large data, some columns at even steps stand for all.
    """
    n_samples, n_features = source.shape
    digest = hashlib.sha256(f"{n_samples} {n_features}".encode())
    n_columns = n_features if n_samples * n_features <= _ENTRIES else min(n_features, _COLUMNS)
    chosen = np.unique(np.linspace(0, n_features - 1, n_columns).round().astype(np.int64))
    step = max(1, _ENTRIES // 8 // max(1, n_samples))
    for start in range(0, len(chosen), step):
        columns = source.columns(chosen[start : start + step])
        values = np.asarray(columns if isinstance(columns, np.ndarray) else columns.toarray(), dtype=np.float64)
        digest.update((values + 0.0).tobytes(order="F"))  # no negative zeros
    if y is not None:
        digest.update("\0".join(str(label) for label in np.asarray(y).tolist()).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()[:16]
