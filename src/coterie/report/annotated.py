"""Groups written back into an AnnData file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from coterie.report.result import DiscoveryResult
from coterie.report.validation import task_of

ANNOTATED = "annotated.h5ad"


def annotate(adata: Any, found: Any) -> Any:
    """Write the groups into ``var`` and ``uns`` of an AnnData object, in place.

    ``var["support"]`` says whether a feature is a support feature, ``var["group"]`` is the number of its group (0: none),
    ``var["correlation"]`` its correlation with the support feature; ``uns["coterie"]`` has task, parameters and summary.

    Parameters
    ----------
    adata : AnnData
        The data that the model was fitted to.
    found : fitted group-discovery estimator or DiscoveryResult
        The groups.

    Returns
    -------
    adata : AnnData
        The same object.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from coterie import GroupDiscoveryClassifier
    >>> from coterie.report import annotate
    >>> adata = AnnData(np.random.default_rng(0).standard_normal((30, 5)))
    >>> model = GroupDiscoveryClassifier(2).fit(adata.X, adata.X[:, 3] > 0)
    >>> annotate(adata, model).var["support"].tolist()[3]
    True
    """
    result = found if isinstance(found, DiscoveryResult) else DiscoveryResult(found, {}, task_of(found))
    n_features = result.model.n_features_in_
    if adata.n_vars != n_features:
        raise ValueError(f"The AnnData object has {adata.n_vars} variables, but the model has seen {n_features} features.")
    support, group = np.zeros(n_features, dtype=bool), np.zeros(n_features, dtype=np.int64)
    correlation = np.full(n_features, np.nan)
    for number, members in enumerate(result.model.groups_, start=1):
        support[members.support] = True
        group[members.members] = number
        correlation[members.support] = 1.0
        correlation[members.affiliated] = members.correlation
    adata.var["support"], adata.var["group"], adata.var["correlation"] = support, group, correlation
    content = result.to_dict()
    adata.uns["coterie"] = {
        "written_by": content["written_by"],
        "task": content["task"],
        "parameters": json.dumps(content["parameters"]),
        "summary": json.dumps(content["summary"]),
    }
    return adata


def write_annotated(path: Path, source: Path, result: DiscoveryResult) -> None:
    """Write a copy of an .h5ad file with the groups in it."""
    try:
        import anndata
    except ImportError as error:
        raise ImportError("AnnData files need anndata: pip install 'coterie[bio]'.") from error
    annotate(anndata.read_h5ad(source), result).write_h5ad(path)
