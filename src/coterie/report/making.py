"""A report from Python: of a fitted model and its data, of a comparison, or of a correlation profile."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coterie import __version__
from coterie.files import new_file
from coterie.inputs.opening import source_of, unwrapped
from coterie.markup import tag
from coterie.report.details import describe
from coterie.report.environment import fingerprint
from coterie.report.page import render
from coterie.report.result import DiscoveryResult
from coterie.report.side_pages import render_comparison, render_profile
from coterie.report.validation import held_out_of, task_of

_FRAME_HEIGHT = 640


class Report:
    """A page for people, which a notebook shows and :meth:`save` writes to a file.

    Attributes
    ----------
    html : str
        The whole page.
    path : Path or None
        Where it was saved last.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> import coterie
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = coterie.GroupDiscoveryClassifier(2, threshold=0.9).fit(X, y)
    >>> page = coterie.report(model, X, y)
    >>> page.save(Path(tempfile.mkdtemp()) / "report.html").name
    'report.html'
    """

    def __init__(self, html: str) -> None:
        self.html = html
        self.path: Path | None = None

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all; returns its path."""
        with new_file(path) as partial:
            partial.write_text(self.html, encoding="utf-8", errors="replace")
        self.path = Path(path)
        return self.path

    def _repr_html_(self) -> str:
        """The page in a frame of its own, which can do nothing but show itself and save what one asks for."""
        return str(
            tag(
                "iframe",
                srcdoc=self.html,
                sandbox="allow-scripts allow-downloads",
                width="100%",
                height=str(_FRAME_HEIGHT),
                title="Coterie report",
                style="border: 1px solid #ccc; border-radius: 4px; background: #fff",
            )
        )

    def __repr__(self) -> str:
        where = "not saved" if self.path is None else f"saved to {self.path}"
        return f"<Report, {len(self.html.encode('utf-8', 'replace')) / 1000:,.0f} kB, {where}>"


def report(
    model: Any,
    X: Any = None,
    y: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    sample_weight: Any = None,
    covariates: Any = None,
    name: str | None = None,
    label: str | None = None,
    image_shape: tuple[int, int] | None = None,
    image_order: str = "C",
    feature_info: Mapping[str, Any] | None = None,
    command: str | None = None,
) -> Report:
    """Make a page that tells what predicts what, how well, and which groups are real.

    Parameters
    ----------
    model : fitted group-discovery estimator, Comparison or CorrelationProfile
        What to report. Held-out scores are in a report of an estimator ``...CV(nested=True)``, confidences in one of a
        model that :func:`coterie.group_confidence` was called for.

    X : {array-like, sparse matrix, data frame, FeatureSource, path, Dataset, Store} of shape (n_samples, n_features)
        The data of its fit; not needed for a comparison or a profile.

    y : array-like of shape (n_samples,), default=None
        Their labels or targets; None takes those that a path, data set or store has.

    path : path, default=None
        Where to save the page, too.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples in the fit.

    covariates : array-like or data frame of shape (n_samples, n_covariates), default=None
        The covariates of the fit, if there were any; None takes those of a data set or store.

    name : str, default=None
        What the data are called; by default the name of their file.

    label : str, default=None
        What was predicted; by default the name of ``y``, if it has one.

    image_shape : (int, int), default=None
        Rows and columns of the image whose pixels the features are: the report has a map of them.

    image_order : {"C", "F"}, default="C"
        Whether pixels are numbered along the rows, or down the columns.

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
    if hasattr(model, "summary_rows"):  # a Comparison, which lies in a later layer
        made = Report(render_comparison(comparison_content(model, name or "", command)))
    elif hasattr(model, "share_at_least"):
        made = Report(render_profile(profile_content(model, name or "", command)))
    else:
        made = Report(render(_discovery(
            model, X, y, sample_weight, covariates, name, label, image_shape, image_order, feature_info, command
        ).to_dict() | {"files": []}))  # fmt: skip
    if path is not None:
        made.save(path)
    return made


def comparison_content(found: Any, path: str, command: str | None = None) -> dict[str, Any]:
    """What the page of a comparison shows."""
    return {
        "path": path,
        "command": command,
        "scoring": found.scoring,
        "n_features_in": found.n_features_in,
        "interrupted": found.interrupted,
        "rows": found.summary_rows(),
        **_stamp(),
    }


def profile_content(found: Any, path: str, command: str | None = None) -> dict[str, Any]:
    """What the page of a profile shows."""
    return {**found.to_dict(), "path": path, "command": command, **_stamp()}


def _stamp() -> dict[str, str]:
    """Who has written a page, and when."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"written_by": f"coterie {__version__}", "written_at": now}


def _discovery(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    covariates: Any,
    name: str | None,
    label: str | None,
    image_shape: tuple[int, int] | None,
    image_order: str,
    feature_info: Mapping[str, Any] | None,
    command: str | None,
) -> DiscoveryResult:
    """The model with all that the data say about it."""
    if X is None:
        raise ValueError("A report of a model needs the data of its fit: coterie.report(model, X, y).")
    label = label if label is not None else _name_of(y)
    found = unwrapped(X, y)
    if name is None:
        name = "the data" if found.origin is None else Path(found.origin.path).name
    if feature_info is None:
        feature_info = {} if found.origin is None else found.origin.feature_info
    covariates = found.covariates if covariates is None else covariates
    X, y = found.X, found.y
    details = describe(model, X, y, sample_weight, image_shape=image_shape, image_order=image_order)
    source, task = source_of(X), task_of(model)
    more = {"covariates": covariates} if hasattr(model, "covariate_names_") else {}
    baseline = "covariates alone" if more else "constant"
    score = None if task == "one-class" else float(model.score(X, y, sample_weight=sample_weight, **more))
    n_samples, n_features = source.shape
    data = {"path": name, "samples": n_samples, "features": n_features, "fingerprint": fingerprint(source, y)}
    return DiscoveryResult(
        model,
        data,
        task,
        score=score,
        feature_info={str(key): values for key, values in feature_info.items()},
        held_out=held_out_of(model, X, y, score, baseline),
        target=target_of(y, task, label),
        details=details,
        command=command if command is not None else repr(model),
    )


def _name_of(y: Any) -> str | None:
    """The name of a series, or the word that names a column."""
    name = y if isinstance(y, str) else getattr(y, "name", None)
    return None if name is None else str(name)


def target_of(y: Any, task: str, label: str | None) -> dict[str, Any]:
    """What was predicted: its name, and how many samples each class has."""
    if task == "one-class" or y is None:
        return {}
    if task == "regression":
        return {"label": label, "classes": None}
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    found = zip(labels.tolist(), counts.tolist(), strict=True)
    return {"label": label, "classes": {str(name): count for name, count in found}}
