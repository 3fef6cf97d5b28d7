"""The result of a replication, as tables, text and plain values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from coterie.groups.columns import Record, data_frame, plain
from coterie.markup import Markup, notebook_table, tag
from coterie.report.judgement import MAY_PREDICT, PREDICTS, interval_text

if TYPE_CHECKING:
    import pandas as pd

    from coterie.inputs.substitution import Substitutes

REPLICATED, NOT_REPLICATED, OPPOSITE = "replicated", "not replicated", "opposite direction"
ABSENT, NOT_TESTED = "no member present", "not tested"
_MAX_ROWS = 25
# Columns of the tables, with their titles and format specifications.
COLUMNS = {
    "group": ("group", ""),
    "feature": ("support feature", ""),
    "representative": ("tested feature", ""),
    "first_effect": ("first effect", "+.3g"),
    "effect": ("effect", "+.3g"),
    "p_value": ("p-value", ".2g"),
    "adjusted_p_value": ("adjusted", ".2g"),
    "status": ("result", ""),
    "coherence": ("mean |r|", ".2f"),
    "first_coherence": ("first", ".2f"),
}


@dataclass(frozen=True)
class GroupReplication:
    """What a second cohort shows about one group.

    Attributes
    ----------
    group : int
        Number of the group in the first cohort, from 1.
    feature : str or int
        Name (or index) of the support feature.
    representative : str, int or None
        Feature that is tested: the support feature or, if it is absent or constant, the member that is most correlated with it
        in the first cohort. None if the second cohort has no member that varies.
    correlation : float
        Correlation of the representative with the support feature in the first cohort.
    status : {"replicated", "not replicated", "opposite direction", "not tested", "no member present"}
        ``"opposite direction"`` means an effect of the opposite sign that is significant at the same level.
    outcome : str or None
        Class, or one of several targets, that the effect is on: that of the largest effect in the first cohort.
    first_effect : float or None
        Effect in the first cohort, per standard deviation of the support feature.
    effect, low, high : float or None
        Effect in the second cohort with its 95 % interval, per standard deviation of the representative there. Its sign is
        that for larger values of the support feature.
    p_value, adjusted_p_value : float or None
        One-sided p-value for an effect in the direction of the first cohort, alone and adjusted for all tested groups.
    n_members, n_present : int
        Number of members, and of those that vary in the second cohort.
    first_coherence, coherence : float or None
        Mean absolute correlation of the other present members with the representative, in both cohorts. That of the first
        cohort refers to the support feature. None for groups without other present members.
    shift : float or None
        Difference of the means of the representative between the cohorts, in its standard deviations in the first one.
    members : tuple of dict
        Name of each member, its correlation with the support feature in the first cohort (``first_correlation``), and with
        the representative in the second one (``correlation``; None for absent members).
    """

    group: int
    feature: str | int
    representative: str | int | None
    correlation: float
    status: str
    outcome: str | None
    first_effect: float | None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    adjusted_p_value: float | None = None
    n_members: int = 1
    n_present: int = 0
    first_coherence: float | None = None
    coherence: float | None = None
    shift: float | None = None
    members: tuple[Record, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class ScoreReplication:
    """Score of the model on the second cohort, beside the held-out score of the first one.

    Attributes
    ----------
    score : str
        Name of the score, as in the first cohort.
    value : float
        The score on the second cohort.
    interval : tuple of float or None
        Its 95 % interval.
    constant : float
        Score of the baseline on the second cohort: the best constant prediction, or the model with the mean of all features.
    baseline : str
        ``"constant"``, or the part of the model that the features are compared with, such as ``"covariates alone"``.
    prediction : {"predicts", "may predict", "does not predict"}
        Whether the interval lies above the baseline.
    first_value, first_interval : float or None, tuple of float or None
        Held-out score of the first cohort, if it is known.
    figures : dict
        All scores on the second cohort by name, with ``value``, ``interval`` and ``constant``.
    """

    score: str
    value: float
    interval: tuple[float, float] | None
    constant: float
    baseline: str
    prediction: str
    first_value: float | None
    first_interval: tuple[float, float] | None
    figures: dict[str, Record] = field(default_factory=dict, repr=False)

    @property
    def sentence(self) -> str:
        """A sentence about the prediction."""
        known = "" if self.first_value is None else f"; first cohort, held-out: {self.first_value:.3g}"
        figures = (
            f"{self.score} {self.value:.3g}{interval_text(self.interval, 0.95)}, {self.baseline} {self.constant:.3g}{known}."
        )
        if self.prediction == PREDICTS:
            return f"The model predicts the second cohort: {figures}"
        if self.prediction == MAY_PREDICT:
            return f"The model may predict the second cohort, but the interval includes the baseline: {figures}"
        return f"The model does not predict the second cohort better than the baseline: {figures}"


class Replication(Sequence[GroupReplication]):
    """Result of :meth:`coterie.Discovery.replicate`: a sequence with one entry per group.

    Attributes
    ----------
    score : ScoreReplication or None
        Score of the model on the second cohort. None if it is undefined.
    substitutes : Substitutes or None
        Members that stand for absent features in the prediction; None without a prediction.
    n_samples : int
        Number of samples of the second cohort with positive weight.
    error_rate : {"fwer", "fdr"}
        Kind of error that is controlled: family-wise (Holm) or false discovery rate (Benjamini and Hochberg).
    level : float
        Its level.
    joint : bool
        Whether all groups were tested in one regression. Otherwise each was tested alone, given the covariates.
    notes : tuple of str
        Sentences about limits of the result.

    See Also
    --------
    coterie.Discovery.replicate : Computes a replication.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 30))
    >>> y = 2 * X[:, 4] - 2 * X[:, 7] + rng.standard_normal(300)
    >>> first = coterie.discover(X[:200], y[:200], max_features_to_select=4, n_pairs=5)
    >>> replication = first.replicate(X[200:], y[200:])
    >>> replication
    Replication: both tested groups are replicated at a family-wise error rate of 5% (100 samples).
    The model predicts the second cohort: R² ...
    >>> [(group.feature, group.status) for group in replication if group.p_value is not None]
    [(4, 'replicated'), (7, 'replicated')]
    >>> replication.to_frame().shape[0] == len(first.groups)
    True
    """

    def __init__(
        self,
        groups: Sequence[GroupReplication],
        score: ScoreReplication | None,
        substitutes: Substitutes | None,
        *,
        n_samples: int,
        error_rate: str,
        level: float,
        joint: bool,
        notes: Sequence[str] = (),
    ) -> None:
        self._groups = tuple(groups)
        self.score, self.substitutes, self.n_samples = score, substitutes, n_samples
        self.error_rate, self.level, self.joint, self.notes = error_rate, level, joint, tuple(notes)

    def __getitem__(self, index: Any) -> Any:
        return self._groups[index]

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def replicated(self) -> list[GroupReplication]:
        """The groups that are replicated."""
        return [group for group in self if group.status == REPLICATED]

    @property
    def tested(self) -> list[GroupReplication]:
        """The groups that were tested."""
        return [group for group in self if group.p_value is not None]

    @property
    def judgement(self) -> str:
        """Sentences about groups and prediction."""
        parts = [f"{self._sentence[0].upper()}{self._sentence[1:]}."]
        return " ".join([*parts, *([] if self.score is None else [self.score.sentence]), *self.notes])

    @property
    def _sentence(self) -> str:
        kind = "family-wise error" if self.error_rate == "fwer" else "false discovery"
        level = f"replicated at a {kind} rate of {100 * self.level:.3g}% ({self.n_samples:,} samples)"
        n_tested, n_found = len(self.tested), len(self.replicated)
        if not n_tested:
            return f"no group could be tested ({self.n_samples:,} samples)"
        if n_tested == 1:
            return f"the tested group is {'' if n_found else 'not '}{level}"
        if n_found == n_tested:
            return f"{'both' if n_tested == 2 else f'all {n_tested:,}'} tested groups are {level}"
        counted = f"{n_found:,}" if n_found else "none"
        return f"{counted} of {n_tested:,} tested groups {'is' if n_found <= 1 else 'are'} {level}"

    def rows(self) -> list[Record]:
        """Return one dictionary per group, with the columns of :meth:`to_frame`."""
        return [{name: value for name, value in asdict(group).items() if name != "members"} for group in self]

    def member_rows(self) -> list[Record]:
        """Return one dictionary per member of a group: its correlations in both cohorts."""
        return [{"group": group.group, **member} for group in self for member in group.members]

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with one row per group. Its columns are the attributes of :class:`GroupReplication`."""
        names = [name for name in GroupReplication.__dataclass_fields__ if name != "members"]
        return data_frame(self.rows(), names)

    def to_dict(self) -> Record:
        """Return everything as plain values (None for NaN), as in ``replication.json``."""
        return plain(
            {
                "judgement": self.judgement,
                "n_samples": self.n_samples,
                "error_rate": self.error_rate,
                "level": self.level,
                "joint": self.joint,
                "notes": list(self.notes),
                "score": None if self.score is None else {**asdict(self.score), "sentence": self.score.sentence},
                "substitutes": None if self.substitutes is None else self.substitutes.to_dict(),
                "groups": [asdict(group) for group in self],
            }
        )

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and cells of the table for display: the columns with any value."""
        rows = self.rows()
        kept = [name for name in COLUMNS if any(row[name] is not None for row in rows)]
        cells = [["–" if row[name] is None else format(row[name], COLUMNS[name][1]) for name in kept] for row in rows]
        return [COLUMNS[name][0] for name in kept], cells

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> list[str]:
        """Write a folder with ``replication.csv``, ``members.csv`` and ``replication.json``.

        Parameters
        ----------
        folder : path
            Folder. It is created only when all files are complete.
        overwrite : bool, default=False
            Whether to replace the folder of an earlier replication.

        Returns
        -------
        files : list of str
            Names of the files.
        """
        from coterie.replication.folder import write_replication

        return write_replication(folder, self, overwrite=overwrite)

    def __repr__(self) -> str:
        lines = [f"Replication: {self._sentence}."]
        lines += [] if self.score is None else [self.score.sentence]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        titles, cells = self.table()
        right = [bool(COLUMNS[name][1]) for name in COLUMNS if COLUMNS[name][0] in titles]
        table = notebook_table("Groups", titles, cells[:_MAX_ROWS], n_rows=len(self), most=_MAX_ROWS, right=right)
        return str(
            tag("div", tag("p", tag("strong", "Replication")), tag("p", self.judgement), Markup(table), class_="coterie")
        )
