"""The result of a discovery, its report page and its result folder."""

from __future__ import annotations

import datetime
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie import __version__
from coterie.cautions.caution import Caution
from coterie.confidence.result import GroupConfidence
from coterie.estimators.base import GroupDiscovery
from coterie.files import new_file
from coterie.groups import FeatureGroups
from coterie.groups.columns import Content, Context, Record, data_frame, flat_table, plain, records
from coterie.groups.feature_groups import groups_html
from coterie.markup import Markup, tag
from coterie.persistence import model as models
from coterie.report.blocks import BlockContribution
from coterie.report.confidential import without_samples
from coterie.report.details import GroupDetails, context_of, genome_of
from coterie.report.folder import FORMAT, MODEL, RESULT, VERSION, read_result, write_result
from coterie.report.held_out import HeldOut, score_curve
from coterie.report.judgement import FDR, Verdict, judge
from coterie.report.methods_text import methods_text
from coterie.report.new_samples import NewSamples
from coterie.report.page import render

if TYPE_CHECKING:
    import pandas as pd

_FRAME_HEIGHT = 640
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
_UNVALIDATED = "Training figures only: neither held-out scores nor confidences were computed."
# Attributes of a fitted model that the summary shows, with their names there.
_FACTS = {
    # Chosen by validation, if there was any.
    "best_score_": "validated score",
    "C_": "C",
    "threshold_": "threshold",
    "predict_with_": "predicts with",
    "n_rounds_": "rounds",
    "converged_at_": "round that reached the optimum over all admissible sets",
    "objective_": "objective",
    "dual_gap_": "relative duality gap of the weights, given the blocks",
    "lower_bound_": "lower bound of the optimum over all admissible sets",
    "upper_bound_": "upper bound of the optimum over all admissible sets",
    "n_correlations_evaluated_": "correlations evaluated",
    "n_correlations_possible_": "correlations possible",
    "n_passes_": "passes over the data",
}


class Report:
    """Report page, displayed by notebooks and written to a file by :meth:`save`.

    Attributes
    ----------
    html : str
        HTML of the page.
    path : Path or None
        File that it was last saved to.

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
        """Write the page to a file atomically and return its path."""
        with new_file(path) as partial:
            partial.write_text(self.html, encoding="utf-8", errors="replace")
        self.path = Path(path)
        return self.path

    def _repr_html_(self) -> str:
        """Return the page in a sandboxed frame that allows only scripts and downloads."""
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


def writer() -> str:
    """Return name and version of the program that writes results."""
    return f"coterie {__version__}"


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Return the versions of Python, Coterie and its numerical dependencies."""
    found = {"coterie": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # on the path without being installed
            continue
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Discovery(NewSamples):
    """Result of :func:`coterie.discover`: fitted model, held-out scores, confidences and judgement.

    Attributes
    ----------
    model : estimator
        A fitted :class:`coterie.GroupDiscoveryClassifier` or a related estimator.
    data : mapping
        Description of the data: path, format, numbers of samples and features, digest (``fingerprint``), notes.
    task : str
        ``"classification"``, ``"regression"``, ``"survival"`` or ``"one-class"``.
    seconds : float
        Time of the fit and the confidences.
    training_score : float or None
        Score on the training data: accuracy, or R² for a regression.
    warnings : tuple of str
        Warnings raised during the discovery.
    interrupted : bool
        Whether a signal ended the search early.
    cautions : tuple of Caution
        Properties of the data that can make results wrong, with ``kind`` and ``text``. Their texts are also warnings.
    feature_info : mapping
        Annotations of the features, such as chromosome and position of a SNP.
    held_out : HeldOut or None
        Held-out scores of the whole procedure, if they were computed.
    target : mapping
        Predicted quantity: its name (``label``) and the number of samples per class (``classes``).
    details : GroupDetails or None
        Statistics of the groups in the data, from :func:`coterie.report.describe`.
    command : str or None
        Command or call that repeats the discovery.
    genome : list of dict or None
        Chromosomes with their range of positions; by default from ``feature_info``.
    fdr : float
        False discovery rate of the judgement.
    blocks : tuple of BlockContribution
        What each block contributes, for several matrices; empty for one.
    written_by, written_at : str
        Program and time of the discovery.
    versions : mapping
        Versions of Python and of the packages used.

    See Also
    --------
    coterie.discover : Run a discovery.
    coterie.load : Load a saved discovery.

    Examples
    --------
    >>> import coterie
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(400, 60, n_support=3, n_true=7, random_state=0)
    >>> discovery = coterie.discover(data.X, data.y, n_features_to_select=3, C=1.0, n_pairs=5, n_permutations=1)
    >>> discovery
    Discovery: 3 groups with 7 features (classification, 400 samples x 60 features)
    Held-out accuracy ...
    >>> discovery.summary["groups"], discovery.summary["features in groups"]
    (3, 7)
    >>> discovery.to_frame()["role"].tolist()[:2]
    ['support', 'affiliated']
    """

    model: GroupDiscovery
    data: Content
    task: str
    seconds: float = math.nan
    training_score: float | None = None
    warnings: Sequence[str] = ()
    interrupted: bool = False
    cautions: Sequence[Caution] = ()
    feature_info: Content = field(default_factory=dict)
    held_out: HeldOut | None = None
    target: Content = field(default_factory=dict)
    details: GroupDetails | None = None
    command: str | None = None
    genome: list[Record] | None = None
    fdr: float = FDR
    blocks: Sequence[BlockContribution] = ()
    written_by: str = field(default_factory=writer)
    written_at: str = field(default_factory=now)
    versions: Mapping[str, str] = field(default_factory=versions)

    @property
    def groups(self) -> FeatureGroups:
        """Groups, with their confidences if these were computed."""
        groups: FeatureGroups = self.model.groups_
        return groups

    @property
    def confidence(self) -> GroupConfidence | None:
        """Confidences of the groups, or None if they were not computed."""
        return getattr(self.model, "confidence_", None)

    def select(self, *, fdr: float | None = None, fwer: float | None = None) -> FeatureGroups:
        """Return the groups that are real at a stated error rate; see :meth:`coterie.GroupConfidence.select`.

        Parameters
        ----------
        fdr : float, default=None
            False discovery rate: the expected share of false groups among those returned.

        fwer : float, default=None
            Family-wise error rate: the probability that any returned group is false.

        Returns
        -------
        groups : FeatureGroups
            Groups at this rate. The model may lack some of them. ``discovery.groups.select(fdr=0.1)`` returns those of the
            model.

        Raises
        ------
        ValueError
            If the evidence was not computed (``fast=True``, ``n_pairs=0``, one class), or not exactly one rate is given.

        Examples
        --------
        >>> import numpy as np
        >>> import coterie
        >>> X = np.random.default_rng(0).standard_normal((80, 30))
        >>> y = 3 * X[:, 4] - 2 * X[:, 7] + np.random.default_rng(1).standard_normal(80)
        >>> found = coterie.discover(X, y, max_features_to_select=4, n_pairs=5)
        >>> sorted(group.support for group in found.select(fdr=0.1))
        [4, 7]
        """
        if self.confidence is None:
            raise ValueError(
                "The groups have no p-values and q-values, because half-samples were left out (fast=True or n_pairs=0)."
            )
        return self.confidence.select(fdr=fdr, fwer=fwer)

    @property
    def judgement(self) -> str:
        """One or two sentences: do the groups predict, and how many are significant? Empty with ``fast=True``.

        Groups that the model does not use are not counted.
        """
        return self.verdict.sentence

    @property
    def verdict(self) -> Verdict:
        """The judgement by its parts: do the groups predict, and how many are significant?"""
        held_out = None if self.held_out is None else plain(self.held_out.to_dict())
        return judge(held_out, self._confidence_content(), [caution.to_dict() for caution in self.cautions])

    def _confidence_content(self) -> Record | None:
        if self.confidence is None:
            return None
        content: Record = plain(self.confidence.to_dict())
        # Groups that the model does not use are no findings, so the judgement does not count them.
        known = zip(content["confidence"], self.groups, strict=True)
        return content | {"confidence": [value if group.used else None for value, group in known], "fdr": self.fdr}

    @property
    def summary(self) -> Record:
        """Main figures by name."""
        facts: Record = {"groups": len(self.groups), "features in groups": sum(len(group) for group in self.groups)}
        unused = sum(not group.used for group in self.groups)
        facts |= {"groups that the model does not use": unused} if unused else {}
        if self.held_out is not None:
            facts |= _held_out_facts(self.held_out)
        if self.training_score is not None:
            facts[_training_words(self.task)] = self.training_score
        facts |= {words: getattr(self.model, name) for name, words in _FACTS.items() if hasattr(self.model, name)}
        if not math.isnan(self.seconds):
            facts["seconds"] = round(self.seconds, 3)
        return facts

    @property
    def rounds(self) -> list[Record]:
        """One dictionary per round, with its numbers and its features."""
        return [
            {name: value for name, value in vars(entry).items() if not isinstance(value, np.ndarray) or name == "features"}
            for entry in self.model.history_
        ]

    @property
    def validation(self) -> Record | None:
        """Held-out scores, and training scores where known, by number of features."""
        curve = score_curve(self.model)
        if curve is None:
            return None
        curve["training"] = None if self.details is None else self.details.training
        curve["constant"] = None if self.held_out is None else self.held_out.constant
        return curve

    def to_dict(self) -> Record:
        """Return the content of ``result.json``: everything but the model's arrays, as plain values (None for NaN)."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": self.written_by,
            "written_at": self.written_at,
            "data": dict(self.data),
            "task": self.task,
            "target": {"label": None, "classes": None, **self.target},
            "judgement": self.judgement,
            "verdict": self.verdict.to_dict(),
            "held_out": None if self.held_out is None else self.held_out.to_dict(),
            "validation": self.validation,
            "confidence": self._confidence_content(),
            "estimator": type(self.model).__name__,
            "parameters": self.model.get_params(deep=False),
            "summary": self.summary,
            "warnings": list(self.warnings),
            "cautions": [caution.to_dict() for caution in self.cautions],
            "interrupted": self.interrupted,
            "command": self.command,
            "methods": self.methods_text(),
            "versions": self.versions,
            "groups": records(self.groups, self.context),
            "pictures": None if self.details is None else _pictures(self.details),
            "genome": genome_of(self.feature_info) if self.genome is None else self.genome,
            "rounds": self.rounds,
            "blocks": [block.to_dict() for block in self.blocks],
        }
        return plain(content)

    def table(self) -> tuple[list[str], list[Record]]:
        """Return the column names and the rows of ``groups.csv``: one row per feature.

        In addition to ``groups.rows()``: the direction as text, effect and mean of the support feature per class, and
        statistics of the features that the groups do not hold.
        """
        return flat_table(self.groups, self.context)

    @property
    def context(self) -> Context:
        """Information that the columns show beyond the groups themselves."""
        return context_of(self.model, self.task, self.details, self.feature_info)

    def to_frame(self) -> pd.DataFrame:
        """Return ``groups.csv`` as a pandas data frame: one row per feature. Requires ``pip install coterie[tabular]``."""
        columns, rows = self.table()
        return data_frame(rows, columns)

    def report(self, path: str | os.PathLike[str] | None = None, *, samples: bool = True) -> Report:
        """Create the report page, which a notebook displays.

        Parameters
        ----------
        path : path, default=None
            File to save the page to.
        samples : bool, default=True
            Whether the page may have values of single samples. Set it to False for confidential data: figures then show
            means and shares of at least five samples only.

        Returns
        -------
        report : coterie.report.Report
        """
        shown = self if samples else without_samples(self)
        made = Report(render(shown.to_dict() | {"files": []}))
        if path is not None:
            made.save(path)
        return made

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False, samples: bool = True) -> list[str]:
        """Write a result folder, which :func:`coterie.load` reads.

        Parameters
        ----------
        folder : path
            Folder for ``groups.csv``, ``result.json``, ``model.coterie``, ``methods.txt`` and ``report.html``. It is created
            only when all files are complete.
        overwrite : bool, default=False
            Whether to replace an existing result.
        samples : bool, default=True
            Whether the files may have values of single samples, as for :meth:`report`. With False, the saved model also
            lacks the held-out predictions.

        Returns
        -------
        files : list of str
            Names of the files.
        """
        return write_result(folder, self if samples else without_samples(self), overwrite=overwrite)

    def methods_text(self) -> str:
        """Return a paragraph for the methods section of a paper, with settings, seed, versions and references.

        ``result.json`` (entry ``methods``) and ``methods.txt`` of a result folder contain it.

        Returns
        -------
        text : str
            A paragraph, and a list of numbered references.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> import coterie
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> coterie.discover(X, y, n_features_to_select=3, threshold=0.9, fast=True).methods_text().splitlines()[0]
        "Group discovery [1][2], as implemented in Coterie [3], was applied to 569 samples with 30 features. It finds ..."
        """
        return methods_text(self)

    def _kind(self) -> str:
        size = [f"{self.data[name]:,} {name}" for name in ("samples", "features") if name in self.data]
        return ", ".join(filter(None, [self.task, " x ".join(size)]))

    def __repr__(self) -> str:
        n_groups, n_features = len(self.groups), sum(len(group) for group in self.groups)
        found = f"{n_groups:,} group{'s' * (n_groups != 1)} with {n_features:,} feature{'s' * (n_features != 1)}"
        return f"Discovery: {found} ({self._kind()})\n{self.judgement or _UNVALIDATED}"

    def _repr_html_(self) -> str:
        warned = tag("ul", *(tag("li", warning) for warning in self.warnings)) if self.warnings else None
        lines = tag("p", tag("strong", f"Discovery ({self._kind()})")), tag("p", self.judgement or _UNVALIDATED)
        return str(tag("div", *lines, warned, Markup(groups_html(self.groups, self.context)), class_="coterie"))


def load(path: str | os.PathLike[str], *, max_features: int | None = None) -> Any:
    """Load a saved estimator or discovery. No code from the file is executed.

    Parameters
    ----------
    path : path
        A file written by :func:`coterie.save`, or a folder written by :meth:`Discovery.save` or ``coterie discover``.
    max_features : int, optional
        Largest number of features accepted in a model file. The default is the number of values in the file, and at least
        2**25, so that a damaged number cannot cause arrays that exceed memory. Only models of more features that were saved
        with ``content="prediction"`` need it.

    Returns
    -------
    found : estimator or Discovery
        Object with the same parameters, attributes and predictions, bit for bit. The samples shown in a report and the
        correlations of its heat maps have the number of digits that ``result.json`` stores.

    Raises
    ------
    ValueError
        If the file is damaged, is not a model, or was written by a later version of Coterie that this one cannot read.

    See Also
    --------
    save : Save an estimator.

    Examples
    --------
    >>> import coterie
    >>> coterie.load("no-such-model.coterie")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    folder = Path(path)
    if not folder.is_dir():
        return models.load(path, max_features=max_features)
    content, model = read_result(folder), read_result(folder, model=True)
    try:
        return _discovery_from(content, model)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / RESULT} is damaged or does not match {MODEL} in the same folder ({error}).") from error


def _discovery_from(content: Content, model: GroupDiscovery) -> Discovery:
    """Return the discovery of a ``result.json`` and its model."""
    summary = content["summary"]
    return Discovery(
        model,
        content["data"],
        content["task"],
        summary.get("seconds", math.nan),
        summary.get(_training_words(content["task"])),
        tuple(content["warnings"]),
        content["interrupted"],
        tuple(Caution(one["kind"], one["text"]) for one in content.get("cautions", ())),
        held_out=None if content["held_out"] is None else HeldOut.from_dict(content["held_out"]),
        target=content["target"],
        details=_details_from(content),
        command=content["command"],
        genome=content["genome"],
        fdr=(content["confidence"] or {}).get("fdr") or FDR,
        blocks=tuple(map(BlockContribution.from_dict, content.get("blocks", ()))),
        written_by=content["written_by"],
        written_at=content["written_at"],
        versions=content["versions"],
    )


def _details_from(content: Content) -> GroupDetails | None:
    """Return the group details that a ``result.json`` contains."""
    pictures, groups = content["pictures"], content["groups"]
    if pictures is None:
        return None
    statistics = [group["statistics"] for group in groups if group["statistics"] is not None]
    return GroupDetails(
        scale=np.empty(0),
        classes=pictures["classes"],
        statistics=statistics or None,
        levels=[group["levels"] for group in groups],
        correlations=[_matrix_from(group["correlations"]) for group in groups],
        samples=np.array(pictures["samples"], dtype=np.int64),
        values=np.array(pictures["values"], dtype=np.float64),
        target=np.array(pictures["target"]),
        training=(content["validation"] or {}).get("training"),
        image=pictures["image"],
        trait=pictures["trait"],
    )


def _matrix_from(kept: Content | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Return members and correlation matrix, from the entries below the diagonal."""
    if kept is None:
        return None
    n_members = len(kept["members"])
    matrix = np.eye(n_members)
    matrix[np.tril_indices(n_members, k=-1)] = kept["below_diagonal"]
    return np.array(kept["members"], dtype=np.int64), np.tril(matrix) + np.tril(matrix, k=-1).T


def _held_out_facts(held_out: HeldOut) -> Record:
    """Return the held-out scores for the summary, the one that is quoted first."""
    facts: Record = {f"{held_out.score} on held-out samples": held_out.value}
    if held_out.interval is not None:
        facts[f"{held_out.level:.0%} interval"] = f"{held_out.interval[0]:.3g} to {held_out.interval[1]:.3g}"
    alone = "a constant prediction" if held_out.baseline == "constant" else f"the {held_out.baseline}"
    facts[f"{held_out.score} of {alone}"] = held_out.constant
    if held_out.reason:
        facts["score"] = held_out.reason
    return {f"{name} on held-out samples": figure["value"] for name, figure in held_out.figures.items()} | facts


def _training_words(task: str) -> str:
    """Return the name of the training score in the summary."""
    name = {"regression": "R²", "survival": "concordance index"}.get(task, "accuracy")
    return f"{name} on the training data"


def _pictures(details: GroupDetails) -> Record:
    """Return the data of the figures: values of some samples, and the image."""
    return {
        "classes": details.classes,
        "trait": details.trait,
        "samples": details.samples,
        "target": details.target,
        "values": [[_rounded(value) for value in row] for row in details.values.tolist()],
        "image": details.image,
    }


def _rounded(value: float) -> float:
    """Round to four digits, the resolution of the figures."""
    return float(f"{value:.4g}")
