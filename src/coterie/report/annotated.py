"""Groups written back into an AnnData object or file, in scanpy's form."""

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
from coterie.estimators.base import GroupDiscovery
from coterie.groups import FeatureGroups
from coterie.groups.columns import Record
from coterie.metrics.class_statistics import ClassStatistics, class_statistics
from coterie.report.judgement import task_of
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
    """Write the groups into ``var`` and ``uns`` of an AnnData object, in place, as scanpy's functions take them.

    ``var["support"]`` says whether a feature is a support feature, ``var["group"]`` is the number of its group (0: none),
    ``var["correlation"]`` its correlation with the support feature; ``uns[key]`` has task, parameters and summary. With
    ``groupby``, a classifier's ``var["marks"]`` says which class a support feature marks, and ``uns[key]`` has what
    ``scanpy.tl.rank_genes_groups`` would leave there, so that scanpy's own functions work on it:
    ``sc.pl.rank_genes_groups_dotplot(adata, key="coterie")``, ``sc.get.rank_genes_groups_df(adata, None, key="coterie")``.

    Parameters
    ----------
    adata : AnnData
        The data that the model was fitted to.
    found : fitted group-discovery estimator or Discovery
        The groups.
    groupby : str, default=None
        Column of ``obs`` with the classes.
    key : str, default="coterie"
        Where in ``uns`` to write.
    layer : str, default=None
        The layer that the model was fitted to; None for X, ``"raw"`` for ``adata.raw``.
    use_raw : bool, default=None
        Whether means, fold changes and p-values are those of ``adata.raw``; None, as in scanpy: if there is one and no layer
        was named. (X is often scaled there, and fold changes of scaled values mean nothing.)
    keep : {"groups", "support"}, default="groups"
        Which features are ranked for each class: all members of the groups, or support features alone.

    Returns
    -------
    adata : AnnData
        The same object.

    Notes
    -----
    The ``scores`` say how much of the gap between a class and the rest in the decision value a feature accounts for: its
    signed weight for the class times the absolute difference of its means. It is positive where the feature is higher in the
    class, negative where it is lower, 0 where weight and difference have opposite signs (the feature corrects for others). An
    affiliated feature has the weight of its support feature times their correlation (both standardised).

    The ``logfoldchanges`` are those of :func:`coterie.class_statistics`; ``pvals`` of Welch's t-test of each feature by
    itself, ``pvals_adj`` corrected (Benjamini and Hochberg) for all features, both as with scanpy's ``method="t-test"``
    and with its caveat: cells are no independent samples. They say nothing of the choice of the groups; for that, see
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
            raise ValueError(f"groupby={groupby!r} is for classifiers; a {type(result.model).__name__} has no classes.")
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
    """Statistics of the groups' features by class, from the values that :func:`annotate` takes them from."""
    raw = _takes_raw(adata, layer, use_raw)
    data = open_features(adata, label=groupby, layer="raw" if raw else layer, missing_labels="drop")
    model = found.model if isinstance(found, Discovery) else found
    return class_statistics(data, None, _named(model.groups_, adata, layer, model.n_features_in_))


def read_quietly(path: Path) -> AnnData:
    """An AnnData object from a file, without what anndata has to say of files of old versions."""
    try:
        import anndata
    except ImportError as error:
        raise ImportError("AnnData files need anndata: pip install 'coterie[bio]'.") from error
    with ignored():
        return anndata.read_h5ad(path)


def write_annotated(path: Path, adata: AnnData, result: Discovery, *, layer: str | None = None) -> None:
    """Write an AnnData object with the groups in it to a file."""
    classes = result.model.groups_.classes
    label = result.target.get("label") if classes is not None else None
    annotate(adata, result, label, layer=layer)
    with ignored():
        adata.write_h5ad(path)


def _takes_raw(adata: AnnData, layer: str | None, use_raw: bool | None) -> bool:
    if use_raw and adata.raw is None:
        raise ValueError("use_raw=True, but the AnnData object has no raw.")
    if use_raw and layer not in (None, "raw"):
        raise ValueError(f"use_raw=True does not go with layer={layer!r}; leave one of them out.")
    if layer == "raw":
        return adata.raw is not None and use_raw is not False
    return bool(use_raw) if use_raw is not None else adata.raw is not None and layer is None


def _named(groups: FeatureGroups, adata: AnnData, layer: str | None, n_features: int) -> FeatureGroups:
    """The groups with names: their own, or those of the layer that a model without names was fitted to."""
    if all(group.names is not None for group in groups):
        return groups
    names = adata.raw.var_names if layer == "raw" and adata.raw is not None else adata.var_names
    if len(names) != n_features:
        raise ValueError(f"The AnnData object has {len(names)} variables, but the model has seen {n_features} features.")
    return FeatureGroups([replace(group, names=tuple(str(names[j]) for j in group.members)) for group in groups])


def _var_columns(adata: AnnData, groups: FeatureGroups) -> dict[str, np.ndarray]:
    """The new columns of ``var``; features that it does not have (those of ``raw`` alone) are left out."""
    where = {str(name): j for j, name in enumerate(adata.var_names)}
    if len(groups) and not any(name in where for group in groups for name in group.names or ()):
        raise ValueError("None of the features in the groups is a variable of the AnnData object; was the model fitted to it?")
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
    """What ``scanpy.tl.rank_genes_groups`` would write, for the members of the groups."""
    seen = open_features(adata, label=groupby, layer=layer, missing_labels="drop")
    shown = open_features(adata, label=groupby, layer="raw", missing_labels="drop") if raw and layer != "raw" else seen
    everything = class_statistics(shown)  # of all features: p-values are corrected for all of them
    members = class_statistics(shown, None, groups)
    assert members.is_support is not None
    assert members.names is not None
    chosen = np.flatnonzero(members.is_support) if keep == "support" else np.arange(len(members.features))
    scores = _scores(groups, class_statistics(seen, None, groups))[chosen]
    features, names = members.features[chosen], np.array(members.names, dtype=object)[chosen]
    p_values = np.nan_to_num(everything.p_value, nan=1.0)
    adjusted = false_discovery_control(p_values, axis=0)
    labels = [str(label) for label in everything.classes]
    # The best first; what is equal, by name.
    orders = [np.lexsort((names.astype(str), -scores[:, c])) for c in range(len(labels))]

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
        "logfoldchanges": records(members.log_fold_change[chosen], "float32"),
        "pvals": records(p_values[features], "float64"),
        "pvals_adj": records(adjusted[features], "float64"),
    }
    if not any("/" in label for label in labels):  # which files of AnnData take for a path
        result |= _shares(members, chosen, labels)
    return result


def _shares(members: ClassStatistics, chosen: np.ndarray, labels: list[str]) -> Record:
    """Detection rates as scanpy's ``pts=True`` has them."""
    import pandas as pd

    index = pd.Index(np.array(members.names, dtype=object)[chosen])
    return {
        "pts": pd.DataFrame(members.detected[chosen], index=index, columns=labels),
        "pts_rest": pd.DataFrame(members.detected_rest[chosen], index=index, columns=labels),
    }


def _scores(groups: FeatureGroups, seen: ClassStatistics) -> np.ndarray:
    """How much of the gap between class and rest in the decision value each feature accounts for, with the sign of its weight.

    Of a support feature that is its weight times the difference of its means. An affiliated feature stands for its support
    feature as well as their correlation lets it: with that part of the weight, both features standardised. Where weight and
    difference have opposite signs (the feature corrects for others) it is 0.
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
