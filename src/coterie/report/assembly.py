"""From a fitted model and its data to a :class:`Discovery`; reports of models, comparisons and correlation profiles."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.pipeline import Pipeline

from coterie.correlation.profile import CorrelationProfile
from coterie.data.dataset import Dataset
from coterie.data.source import FeatureSource
from coterie.data.store import Store
from coterie.effects import group_effects
from coterie.estimators.base import GroupDiscovery, task_of
from coterie.estimators.documentation import documented
from coterie.groups.columns import Content, Record
from coterie.inputs.naming import named as with_names
from coterie.inputs.opening import NamedColumns, source_of, unwrap
from coterie.inputs.pipeline import before_last
from coterie.inputs.survival import survival_records
from coterie.inputs.types import (
    ClientLike,
    CovariatesLike,
    FeaturesLike,
    NamesLike,
    SampleGroupsLike,
    SamplesLike,
    TargetsLike,
    WeightsLike,
)
from coterie.report.blocks import block_contributions
from coterie.report.details import describe
from coterie.report.held_out import held_out_of
from coterie.report.result import Discovery, Report
from coterie.report.side_pages import comparison_page, profile_page

if TYPE_CHECKING:
    from coterie.comparison.result import Comparison

# Largest number of entries that a digest covers completely; for larger data it covers _COLUMNS columns.
_ENTRIES = 50_000_000
_COLUMNS = 256


@dataclass(frozen=True, eq=False)
class OpenedData:
    """Data of a discovery, opened once: ``X`` as estimators take it, ``source`` as a :class:`FeatureSource`."""

    X: FeaturesLike
    y: TargetsLike
    sample_weight: SamplesLike
    covariates: CovariatesLike
    offset: SamplesLike
    groups: SamplesLike
    source: FeatureSource
    feature_info: Content
    label: str | None  # name of ``y``
    about: Record  # path, format, size, digest and notes
    other_columns: Mapping[str, np.ndarray]  # columns that are not features, as codes


def open_data(
    X: FeaturesLike,
    y: TargetsLike = None,
    *,
    sample_weight: WeightsLike = None,
    covariates: CovariatesLike = None,
    offset: SamplesLike = None,
    groups: SampleGroupsLike = None,
    feature_names: NamesLike = None,
    feature_info: Content | None = None,
    name: str | None = None,
    label: str | None = None,
    reader: str | None = None,
    client: ClientLike = None,
) -> OpenedData:
    """Open features and labels given in any form. For the parameters see :func:`report`.

    ``reader`` is the name of the reading function, if it can work on the cluster of a client.
    """
    label = _name_of(y) if label is None else label
    named = NamedColumns.of(covariates, sample_weight)
    covariates = None if named.covariates else covariates
    found = unwrap(X, y, groups=groups, reader=reader, client=client, named=named)
    sample_weight = found.sample_weight if sample_weight is None or isinstance(sample_weight, str) else sample_weight
    origin = found.origin
    about: Record = {"path": name if name is not None else "the data" if origin is None else str(origin.path)}
    if origin is not None:
        about["format"] = "store" if isinstance(origin, Store) else origin.format
    if feature_info is None:
        feature_info = {} if origin is None else origin.feature_info
    source = source_of(found.X)
    if feature_names is not None:
        source = with_names(source, feature_names)
    features = found.X if feature_names is None else source
    about |= {"samples": source.shape[0], "features": source.shape[1], "fingerprint": data_digest(source, found.y)}
    if origin is not None and origin.notes:
        about["notes"] = origin.notes
    covariates = found.covariates if covariates is None else covariates
    info = {str(key): values for key, values in feature_info.items()}
    groups = found.sample_groups if groups is None or isinstance(groups, str) else groups
    others = origin.other_columns if isinstance(origin, Dataset) else {}
    return OpenedData(features, found.y, sample_weight, covariates, offset, groups, source, info, label, about, others)


def assemble(
    model: GroupDiscovery, data: OpenedData, image_shape: tuple[int, int] | None = None, image_order: str = "C", **known: Any
) -> Discovery:
    """Return the discovery of a model fitted on ``data``; ``known`` are further fields of :class:`Discovery`."""
    if task_of(model) == "survival":
        data = replace(data, y=survival_records(data.y))
    details = describe(model, data.X, data.y, data.sample_weight, image_shape=image_shape, image_order=image_order)
    task, score = task_of(model), _training_score(model, data)
    if task != "one-class":
        found = group_effects(
            model,
            data.X,
            data.y,
            data.sample_weight,
            covariates=data.covariates,
            offset=data.offset,
            groups=data.groups,
        )
        model = found.attach_to(copy.copy(model))  # the model of the user is not changed
    about = data.about | ({"covariates": model.covariate_names_.tolist()} if hasattr(model, "covariate_names_") else {})
    about |= {"sample_groups": model.n_sample_groups_} if hasattr(model, "n_sample_groups_") else {}
    return Discovery(
        model,
        about,
        task,
        training_score=score,
        feature_info=data.feature_info,
        held_out=held_out_of(model, data, score, baseline_of(model)),
        target=target_of(data.y, task, data.label, getattr(model, "target_names_", None)),
        details=details,
        **{"blocks": block_contributions(model, data), **known},
    )


def baseline_of(model: GroupDiscovery) -> str:
    """Return the name of the prediction that held-out scores are compared with."""
    known = [("covariates", "covariate_names_"), ("offset", "offset_coef_")]
    parts = [name for name, attribute in known if hasattr(model, attribute)]
    return f"{' and '.join(parts)} alone" if parts else "constant"


def _training_score(model: GroupDiscovery, data: OpenedData) -> float | None:
    """Return accuracy, R² or concordance index on the training data, or None for a one-class model."""
    if task_of(model) == "one-class":
        return None
    more: dict[str, Any] = {"covariates": data.covariates} if hasattr(model, "covariate_names_") else {}
    more |= {"offset": data.offset} if hasattr(model, "offset_coef_") else {}
    return float(model.score(data.X, data.y, sample_weight=data.sample_weight, **more))


@documented
def report(
    model: GroupDiscovery | Pipeline | Comparison | CorrelationProfile,
    X: FeaturesLike | None = None,
    y: TargetsLike = None,
    path: str | os.PathLike[str] | None = None,
    *,
    sample_weight: SamplesLike = None,
    covariates: CovariatesLike = None,
    offset: SamplesLike = None,
    groups: SampleGroupsLike = None,
    name: str | None = None,
    label: str | None = None,
    image_shape: tuple[int, int] | None = None,
    image_order: str = "C",
    feature_info: Content | None = None,
    command: str | None = None,
    samples: bool = True,
) -> Report:
    """Create an HTML report of a fitted model, a comparison or a correlation profile.

    Parameters
    ----------
    model : fitted group-discovery estimator, Pipeline, Comparison or CorrelationProfile
        Object to report. A pipeline has such an estimator as its last step, and X is the data of its first step. The report
        shows held-out scores of an estimator ``...CV(nested=True)``, and confidences that
        :func:`coterie.group_confidence` computed and ``attach_to`` added. A comparison or a profile needs no data.

    %(fitted_data)s

    path : path, default=None
        File to save the page to.

    %(about_data)s

    feature_info : mapping of str to array-like of shape (n_features,), default=None
        Annotations of the features. With ``chromosome`` and ``position`` the report shows the genome. By default the
        annotations of the path or data set.

    command : str, default=None
        Command or call that repeats the result; by default the estimator with its parameters.

    samples : bool, default=True
        Whether the page may have values of single samples; see :meth:`coterie.Discovery.report`.

    Returns
    -------
    report : Report
        Page that a notebook displays.

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
    elif hasattr(model, "summary_rows"):  # a Comparison, which belongs to a higher layer
        made = Report(comparison_page(cast("Comparison", model), name or "", command))
    else:
        if X is None:
            raise ValueError("The report of a model requires its training data. Call coterie.report(model, X, y).")
        if isinstance(model, Pipeline):
            model, X = before_last(model, X)
        data = open_data(
            X, y, sample_weight=sample_weight, covariates=covariates, offset=offset, groups=groups, feature_info=feature_info,
            name=name, label=label,
        )  # fmt: skip
        command = repr(model) if command is None else command
        return assemble(cast("GroupDiscovery", model), data, image_shape, image_order, command=command).report(
            path, samples=samples
        )
    if path is not None:
        made.save(path)
    return made


def _name_of(y: TargetsLike) -> str | None:
    """Return the name of a series, or the column name that ``y`` is."""
    name = y if isinstance(y, str) else getattr(y, "name", None)
    return None if name is None else str(name)


def target_of(y: TargetsLike, task: str, label: str | None, targets: np.ndarray | None = None) -> Record:
    """Return the name of the target, the names of several targets, and the number of samples per class.

    For survival times, the numbers of events and, with entry times, of delayed entries take the place of the classes.
    """
    if task == "one-class" or y is None:
        return {}
    if targets is not None:
        return {"label": ", ".join(targets) if label is None else label, "classes": None, "targets": targets.tolist()}
    if task == "regression":
        return {"label": label, "classes": None}
    if task == "survival":
        records = np.asarray(y)
        delayed = {"delayed": int((records["entry"] > 0.0).sum())} if "entry" in (records.dtype.names or ()) else {}
        return {"label": label, "classes": None, "events": int(records["event"].sum()), **delayed}
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    found = zip(labels.tolist(), counts.tolist(), strict=True)
    return {"label": label, "classes": {str(name): count for name, count in found}}


def data_digest(source: FeatureSource, y: TargetsLike = None) -> str:
    """Return a short digest of features and labels that does not depend on file format or data type.

    The digest of large data covers columns at regular steps.
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
