"""A discovery with all that is worth telling about it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie import __version__
from coterie.groups.columns import flat_table, records
from coterie.report.details import GroupDetails, context_of, genome_of
from coterie.report.environment import versions
from coterie.report.judgement import HeldOut, judgement
from coterie.report.validation import score_curve

FORMAT = "coterie result"
VERSION = 1
# The attributes of a fitted model that go into the summary, with the words for people.
_FACTS = {
    # What validation has chosen, where it has
    "best_score_": "validated score",
    "C_": "C",
    "threshold_": "threshold",
    "predict_with_": "predicts with",
    "n_rounds_": "rounds",
    "converged_at_": "optimum over all admissible sets reached in round",
    "objective_": "objective",
    "dual_gap_": "relative gap of the weights, given the blocks (certified)",
    "lower_bound_": "optimum over all admissible sets, at least",
    "upper_bound_": "optimum over all admissible sets, at most",
    "n_correlations_evaluated_": "correlations evaluated",
    "n_correlations_possible_": "correlations possible",
    "n_passes_": "passes over the data",
}


@dataclass(frozen=True)
class DiscoveryResult:
    """A fitted group-discovery model and where it came from.

    Attributes
    ----------
    model : estimator
        A fitted :class:`coterie.GroupDiscoveryClassifier` or one of its kin.
    data : mapping
        About the data: path, format, numbers of samples and features, notes.
    task : str
        ``"classification"``, ``"regression"`` or ``"one-class"``.
    seconds : float
        Time of the fit.
    score : float or None
        Score on the training data: accuracy, or R² for a regression.
    warnings : sequence of str
        What was warned of.
    interrupted : bool
        Whether a signal ended the fit early.
    feature_info : mapping
        More about each feature, such as the chromosome and the position of a SNP.
    held_out : HeldOut or None
        Scores on samples that were not seen, if they were measured.
    target : mapping
        What was predicted: ``label``, its name, and ``classes``, the number of samples of each.
    details : GroupDetails or None
        What the data say about the groups, from :func:`coterie.report.describe`.
    command : str or None
        What makes the result again.

    Examples
    --------
    >>> from coterie import GroupDiscoveryClassifier
    >>> from coterie.datasets import make_support_affiliated
    >>> from coterie.report import DiscoveryResult
    >>> data = make_support_affiliated(400, 60, n_support=3, n_true=7, random_state=0)
    >>> model = GroupDiscoveryClassifier(3, n_features_per_round=1).fit(data.X, data.y)
    >>> result = DiscoveryResult(model, {"path": "synthetic"}, "classification")
    >>> result.summary["groups"], result.summary["features in groups"]
    (3, 7)
    """

    model: Any
    data: Mapping[str, Any]
    task: str
    seconds: float = math.nan
    score: float | None = None
    warnings: Sequence[str] = ()
    interrupted: bool = False
    feature_info: Mapping[str, Any] = field(default_factory=dict)
    held_out: HeldOut | None = None
    target: Mapping[str, Any] = field(default_factory=dict)
    details: GroupDetails | None = None
    command: str | None = None

    @property
    def confidence(self) -> dict[str, Any] | None:
        """The confidences of the groups as plain values, if they were computed."""
        known = getattr(self.model, "confidence_", None)
        return None if known is None else plain(known.to_dict())

    @property
    def judgement(self) -> str:
        """What a careful reader should think, in a sentence or two."""
        return judgement(None if self.held_out is None else self.held_out.to_dict(), self.confidence)

    @property
    def summary(self) -> dict[str, Any]:
        """The main figures, by the words for them."""
        groups = self.model.groups_
        facts: dict[str, Any] = {"groups": len(groups), "features in groups": sum(len(group) for group in groups)}
        if self.held_out is not None:
            facts[f"{self.held_out.score} on held-out samples"] = self.held_out.mean
            facts["its standard error"] = self.held_out.error
            alone = "a constant prediction" if self.held_out.baseline == "constant" else f"the {self.held_out.baseline}"
            facts[f"{self.held_out.score} of {alone}"] = self.held_out.constant
        if self.score is not None:
            facts["R² on the training data" if self.task == "regression" else "accuracy on the training data"] = self.score
        facts |= {words: getattr(self.model, name) for name, words in _FACTS.items() if hasattr(self.model, name)}
        if not math.isnan(self.seconds):
            facts["seconds"] = round(self.seconds, 3)
        return facts

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """One dictionary a round: the figures, not the arrays."""
        return [
            {name: value for name, value in vars(entry).items() if not isinstance(value, np.ndarray) or name == "features"}
            for entry in self.model.history_
        ]

    def to_dict(self) -> dict[str, Any]:
        """All but the model's arrays, as plain values for JSON (which has no NaN: None stands for it)."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"coterie {__version__}",
            "written_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "data": dict(self.data),
            "task": self.task,
            "target": {"label": None, "classes": None, **self.target},
            "judgement": self.judgement,
            "held_out": None if self.held_out is None else self.held_out.to_dict(),
            "validation": self.validation,
            "confidence": self.confidence,
            "estimator": type(self.model).__name__,
            "parameters": self.model.get_params(deep=False),
            "summary": self.summary,
            "warnings": list(self.warnings),
            "interrupted": self.interrupted,
            "command": self.command,
            "versions": versions(),
            "groups": records(self.model.groups_, context_of(self.model, self.task, self.details, self.feature_info)),
            "pictures": None if self.details is None else _pictures(self.details),
            "genome": genome_of(self.feature_info),
            "rounds": self.rounds,
        }
        return plain(content)

    def table(self) -> tuple[list[str], list[dict[str, Any]]]:
        """The names of the columns and the rows of ``groups.csv``: one per feature, with all that is known of it.

        On top of ``groups_.rows()``: the direction in words, the effect and the mean of the support feature in each class, and
        what the data know of the features where the groups do not say it.
        """
        return flat_table(self.model.groups_, context_of(self.model, self.task, self.details, self.feature_info))

    @property
    def validation(self) -> dict[str, Any] | None:
        """Scores against the number of features: held out, and on the training data where they are known."""
        curve = score_curve(self.model)
        if curve is None:
            return None
        curve["training"] = None if self.details is None else self.details.training
        curve["constant"] = None if self.held_out is None else self.held_out.constant
        return curve


def _pictures(details: GroupDetails) -> dict[str, Any]:
    """What only pictures need: values of some samples, and the image."""
    return {
        "classes": details.classes,
        "trait": details.trait,
        "samples": details.samples,
        "target": details.target,
        "values": [[_rounded(value) for value in row] for row in details.values.tolist()],
        "image": details.image,
    }


def plain(value: Any) -> Any:
    """Values that JSON has; anything else as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _rounded(value: float) -> float:
    """Four digits, which no picture shows more of."""
    return float(f"{value:.4g}")
