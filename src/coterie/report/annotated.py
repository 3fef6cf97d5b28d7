"""Groups written to an AnnData object or file in scanpy's format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import false_discovery_control

from coterie._parameters import OneOf, check
from coterie._warnings import ignored
from coterie.data.opening import open_features
from coterie.estimators.base import GroupDiscovery, task_of
from coterie.groups import FeatureGroups
from coterie.groups.columns import Record
from coterie.metrics.class_statistics import ClassStatistics, class_statistics
from coterie.report.result import Discovery

if TYPE_CHECKING:
    from anndata import AnnData

ANNOTATED = "annotated.h5ad"


def annotate(
    adata: AnnData,
    found: GroupDiscovery | Discovery,
    groupby: str | None = None,
    *,
    key: str = "coterie",
    layer: str | None = None,
    use_raw: bool | None = None,
    keep: str = "groups",
) -> AnnData:
    """Write the groups to ``var`` and ``uns`` of an AnnData object, in place and in scanpy's format.

    ``var["support"]`` marks support features, ``var["group"]`` is the number of the group (0 for none), and
    ``var["correlation"]`` is the correlation with the support feature. ``uns[key]`` has task, parameters and summary.

    With ``groupby``, ``var["marks"]`` of a classifier is the class that a support feature marks, and ``uns[key]`` has the
    entries of ``scanpy.tl.rank_genes_groups``. Scanpy's functions accept it:
    ``sc.pl.rank_genes_groups_dotplot(adata, key="coterie")``, ``sc.get.rank_genes_groups_df(adata, None, key="coterie")``.

    Parameters
    ----------
    adata : AnnData
        Training data of the model.
    found : fitted group-discovery estimator or Discovery
        Object with the groups.
    groupby : str, default=None
        Column of ``obs`` with the classes.
    key : str, default="coterie"
        Key in ``uns``.
    layer : str, default=None
        Layer that the model was fitted to: None for X, ``"raw"`` for ``adata.raw``.
    use_raw : bool, default=None
        Whether to compute means, fold changes and p-values from ``adata.raw``. None, as in scanpy, uses it if it exists and
        no layer is given. (X is often scaled, and fold changes of scaled values are meaningless.)
    keep : {"groups", "support"}, default="groups"
        Features to rank per class: all members of the groups, or support features only.

    Returns
    -------
    adata : AnnData
        The same object.

    Notes
    -----
    The ``scores`` are contributions to the difference between the mean decision value of a class and that of the rest:
    signed weight for the class times absolute difference of the feature's means. The weight of an affiliated feature is that
    of its support feature times their correlation, both standardised. A score is positive if the feature is higher in the
    class (its *presence* marks the class), negative if it is lower (its *absence* does), and 0 if weight and difference have
    opposite signs (the feature corrects for others). Features are listed in the order presence, no score, absence, which the
    entry ``marks_by`` states.

    The ``logfoldchanges`` are those of :func:`coterie.class_statistics`. ``pvals`` are p-values of Welch's t-test per feature,
    and ``pvals_adj`` are corrected for all features (Benjamini and Hochberg), as with scanpy's ``method="t-test"``. The same
    caveat applies: cells are not independent samples. The p-values do not account for the selection of the groups; see
    :func:`coterie.group_confidence`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from anndata import AnnData
    >>> from coterie import GroupDiscoveryClassifier
    >>> from coterie.report import annotate
    >>> X = np.random.default_rng(0).poisson(2.0, (60, 5)).astype(np.float32)
    >>> kind = np.where(X[:, 3] > 2, "B", "T")
    >>> adata = AnnData(np.log1p(X), obs=pd.DataFrame({"kind": kind}, index=[f"c{i}" for i in range(60)]))
    >>> model = GroupDiscoveryClassifier(2).fit(adata, "kind")
    >>> annotate(adata, model, "kind").var["support"].tolist()[3]
    True
    >>> adata.uns["coterie"]["names"]["B"][0]
    '3'
    """
    check("keep", keep, OneOf("groups", "support"))
    result = found if isinstance(found, Discovery) else Discovery(found, {}, task_of(found))
    groups = _named(result.model.groups_, adata, layer, result.model.n_features_in_)
    columns = _var_columns(adata, groups)
    content = result.to_dict()
    facts: Record = {
        "written_by": content["written_by"],
        "task": content["task"],
        "parameters": json.dumps(content["parameters"]),
        "summary": json.dumps(content["summary"]),
    }
    if groupby is not None:
        if groups.classes is None:
            raise ValueError(
                f"groupby={groupby!r} requires a classifier. {type(result.model).__name__} has no classes: omit groupby."
            )
        raw = _takes_raw(adata, layer, use_raw)
        facts |= _ranked(adata, groups, groupby, layer, raw, keep)
    else:
        del columns["marks"]
    for name, values in columns.items():
        adata.var[name] = values
    adata.uns[key] = facts
    return adata


def classes_in(
    adata: AnnData, found: GroupDiscovery | Discovery, groupby: str, *, layer: str | None = None, use_raw: bool | None = None
) -> ClassStatistics:
    """Return statistics of the groups' features per class, from the same values as :func:`annotate`."""
    raw = _takes_raw(adata, layer, use_raw)
    data = open_features(adata, label=groupby, layer="raw" if raw else layer, missing_labels="drop")
    model = found.model if isinstance(found, Discovery) else found
    return class_statistics(data, None, _named(model.groups_, adata, layer, model.n_features_in_))


def read_quietly(path: Path) -> AnnData:
    """Read an AnnData file without anndata's warnings about old file versions."""
    try:
        import anndata
    except ImportError as error:
        raise ImportError("AnnData files require anndata. Install it with: pip install 'coterie[bio]'.") from error
    with ignored():
        return anndata.read_h5ad(path)


def write_annotated(path: Path, adata: AnnData, result: Discovery, *, layer: str | None = None) -> None:
    """Add the groups to an AnnData object and write it to a file."""
    classes = result.model.groups_.classes
    label = result.target.get("label") if classes is not None else None
    annotate(adata, result, label, layer=layer)
    with ignored():
        adata.write_h5ad(path)


def _takes_raw(adata: AnnData, layer: str | None, use_raw: bool | None) -> bool:
    if use_raw and adata.raw is None:
        raise ValueError("use_raw=True, but the AnnData object has no raw. Omit use_raw.")
    if use_raw and layer not in (None, "raw"):
        raise ValueError(f"use_raw=True and layer={layer!r} exclude each other. Omit one of them.")
    if layer == "raw":
        return adata.raw is not None and use_raw is not False
    return bool(use_raw) if use_raw is not None else adata.raw is not None and layer is None


def _named(groups: FeatureGroups, adata: AnnData, layer: str | None, n_features: int) -> FeatureGroups:
    """Return the groups with names: their own, or the variable names of the layer."""
    if all(group.names is not None for group in groups):
        return groups
    names = adata.raw.var_names if layer == "raw" and adata.raw is not None else adata.var_names
    if len(names) != n_features:
        raise ValueError(
            f"The AnnData object has {len(names)} variables, but the model was fitted with {n_features} features. "
            "Pass the training data of the model."
        )
    return FeatureGroups([replace(group, names=tuple(str(names[j]) for j in group.members)) for group in groups])


def _var_columns(adata: AnnData, groups: FeatureGroups) -> dict[str, np.ndarray]:
    """Return the new columns of ``var``. Features that only ``raw`` has are omitted."""
    where = {str(name): j for j, name in enumerate(adata.var_names)}
    if len(groups) and not any(name in where for group in groups for name in group.names or ()):
        raise ValueError(
            "No feature of the groups is a variable of the AnnData object. Pass the object that the model was fitted to."
        )
    columns: dict[str, np.ndarray] = {
        "support": np.zeros(adata.n_vars, dtype=bool),
        "group": np.zeros(adata.n_vars, dtype=np.int64),
        "correlation": np.full(adata.n_vars, np.nan),
        "marks": np.full(adata.n_vars, "", dtype=object),
    }
    for number, group in enumerate(groups, start=1):
        for position, name in enumerate(group.names or ()):
            place = where.get(name)
            if place is None:
                continue
            columns["support"][place], columns["group"][place] = position == 0, number
            columns["correlation"][place] = 1.0 if position == 0 else group.correlation[position - 1]
            columns["marks"][place] = "" if position or group.marks is None else str(group.marks)
    return columns


def _ranked(adata: AnnData, groups: FeatureGroups, groupby: str, layer: str | None, raw: bool, keep: str) -> Record:
    """Return the entries of ``scanpy.tl.rank_genes_groups`` for the members of the groups."""
    seen = open_features(adata, label=groupby, layer=layer, missing_labels="drop")
    shown = open_features(adata, label=groupby, layer="raw", missing_labels="drop") if raw and layer != "raw" else seen
    everything = class_statistics(shown)  # p-values are corrected for all features
    members = class_statistics(shown, None, groups)
    assert members.is_support is not None
    assert members.names is not None
    chosen = np.flatnonzero(members.is_support) if keep == "support" else np.arange(len(members.features))
    own = class_statistics(seen, None, groups)
    scores, higher = _scores(groups, own)[chosen], np.nan_to_num(own.effect)[chosen]
    features, names = members.features[chosen], np.array(members.names, dtype=object)[chosen]
    p_values = np.nan_to_num(everything.p_value, nan=1.0)
    adjusted = false_discovery_control(p_values, axis=0)
    labels = [str(label) for label in everything.classes]
    # Presence, then no score, then absence. Features without a score are ordered by the difference of their means, then by
    # name.
    orders = [np.lexsort((names.astype(str), -higher[:, c] * (scores[:, c] == 0), -scores[:, c])) for c in range(len(labels))]
    marks = np.array(["absence", "", "presence"], dtype=object)[np.sign(scores).astype(np.int64) + 1]

    def records(values: np.ndarray, kind: str) -> np.ndarray:
        made = np.empty(len(chosen), dtype=[(label, kind) for label in labels])
        for c, label in enumerate(labels):
            made[label] = (values if values.ndim == 1 else values[:, c])[orders[c]]
        return made.view(np.recarray)

    result = {
        "params": {
            "groupby": groupby,
            "reference": "rest",
            "method": "coterie",
            "use_raw": raw,
            "corr_method": "benjamini-hochberg",
            **({} if layer is None or raw else {"layer": layer}),
        },
        "names": records(names, "O"),
        "scores": records(scores, "float32"),
        "marks_by": records(marks, "O"),
        "logfoldchanges": records(members.log_fold_change[chosen], "float32"),
        "pvals": records(p_values[features], "float64"),
        "pvals_adj": records(adjusted[features], "float64"),
    }
    if not any("/" in label for label in labels):  # AnnData files treat "/" as a path separator
        result |= _shares(members, chosen, labels)
    return result


def _shares(members: ClassStatistics, chosen: np.ndarray, labels: list[str]) -> Record:
    """Return detection rates in the format of scanpy's ``pts=True``."""
    import pandas as pd

    index = pd.Index(np.array(members.names, dtype=object)[chosen])
    return {
        "pts": pd.DataFrame(members.detected[chosen], index=index, columns=labels),
        "pts_rest": pd.DataFrame(members.detected_rest[chosen], index=index, columns=labels),
    }


def _scores(groups: FeatureGroups, seen: ClassStatistics) -> np.ndarray:
    """Return each feature's contribution to the decision value of a class against the rest, with the sign of its weight.

    The contribution of a support feature is its weight times the difference of its means. An affiliated feature has the
    weight of its support feature times their correlation, both features standardised. If weight and difference have opposite
    signs (the feature corrects for others), the contribution is 0.
    """
    weights = groups.class_weights
    assert weights is not None
    assert seen.is_support is not None
    assert seen.group is not None
    n = seen.counts.astype(np.float64)
    overall = seen.mean @ n / n.sum()
    scatter = np.nan_to_num(seen.variance) * (n - 1.0) + n * (seen.mean - overall[:, None]) ** 2
    spread = np.sqrt(scatter.sum(axis=1) / n.sum())
    correlation = np.nan_to_num(np.concatenate([np.append(1.0, group.correlation) for group in groups]))
    of_support = np.nan_to_num(weights) * spread[seen.is_support][:, None]
    own = of_support[seen.group - 1] * correlation[:, None]
    difference = np.divide(seen.mean - seen.mean_rest, spread[:, None], out=np.zeros_like(own), where=spread[:, None] > 0.0)
    return np.where(own * difference > 0.0, own * np.abs(difference), 0.0)
