"""The judgement: what held-out scores and half-samples show, decided by one function.

Sentence, warning, caution box, figures of the report and ``result.json`` all use :func:`judge`, so that they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from coterie.cautions.caution import DEPENDENT, DUPLICATES, IDENTIFIER, LEAK, RELATIVES, STRUCTURE
from coterie.groups.columns import Content, Record

# A group counts as found if its q-value is at most the false discovery rate, by default FDR. Results without q-values (one
# class, earlier versions) are judged by permutations: the estimated share of false groups is at most FDR and the confidence
# exceeds _HALF. Without permutations the confidence must be at least _ALWAYS, which guarantees nothing for features of unequal
# scale.
FDR, _HALF = 0.1, 0.5
_ALWAYS = 0.9
# Groups with a larger share of false groups are described as "about as frequent with permuted labels".
_CHANCE = 0.5
# Share of the varying features in groups above which permuted labels select the same groups.
_MOST_FEATURES = 0.5
# Cautions for which scores and confidences would be too good.
_TOO_GOOD = (DEPENDENT, DUPLICATES, IDENTIFIER, LEAK, RELATIVES, STRUCTURE)

PREDICTS, MAY_PREDICT, DOES_NOT_PREDICT = "predicts", "may predict", "does not predict"
FOUND, NOT_FOUND, UNDECIDED = "found again", "not found again", "undecided"


@dataclass(frozen=True)
class ScoreVerdict:
    """Whether the groups predict held-out samples better than the baseline.

    Attributes
    ----------
    prediction : str
        ``"predicts"`` if the interval of the score lies above the baseline, ``"may predict"`` if the score does but the
        interval includes the baseline, else ``"does not predict"``.
    score : str
        Name of the score.
    value : float
        The score.
    interval : tuple of float or None
        Its interval.
    level : float
        Stated coverage of the interval.
    constant : float
        Score of the baseline.
    baseline : str
        ``"constant"`` or ``"covariates alone"``.
    training : float or None
        Score on the training data, if known.
    reason : str
        Why this score is used, if it is not the usual one.
    """

    prediction: str
    score: str
    value: float
    interval: tuple[float, float] | None
    level: float
    constant: float
    baseline: str
    training: float | None
    reason: str

    @property
    def figure(self) -> str:
        """The score with its interval, as text."""
        return f"{figure_text(self.value)}{interval_text(self.interval, self.level)}"

    @property
    def sentence(self) -> str:
        """A sentence about the prediction."""
        trained = "" if self.training is None else f" (training {figure_text(self.training)})"
        figures = f"{self.score} {self.figure}, {self.baseline} {figure_text(self.constant)}{trained}."
        if self.prediction == PREDICTS:
            words = f"Held-out {figures}"
        elif self.prediction == MAY_PREDICT:
            words = f"The groups may predict better than {self.alone}, but the interval includes it: held-out {figures}"
        else:
            words = f"On held-out samples the groups predict no better than {self.alone}: {figures}"
        return f"{words} {self.reason}".rstrip()

    @property
    def warning(self) -> str:
        """The warning that the score may be or is no better than the baseline; empty if it is better."""
        if self.prediction == PREDICTS:
            return ""
        compared = "may be no better" if self.prediction == MAY_PREDICT else "is not better"
        reference = "a constant prediction" if self.baseline == "constant" else f"the {self.baseline}"
        return f"Held-out {self.score} {self.figure} {compared} than {reference} ({figure_text(self.constant)})."

    @property
    def alone(self) -> str:
        """The baseline, as text."""
        return "a constant" if self.baseline == "constant" else f"the {self.baseline}"


@dataclass(frozen=True)
class GroupsVerdict:
    """How many groups are found again in half-samples of the data.

    Attributes
    ----------
    reliability : str
        ``"found again"`` if at least one group is, ``"not found again"``, or ``"undecided"`` if permuted labels cannot tell
        groups apart because the groups contain most of the features.
    n_found, n_groups : int
        Number of groups that are found again, and of all groups with a confidence.
    confidence : float or None
        Smallest confidence of the groups that are found again.
    false_share : float or None
        Limit of the estimated share of false groups among them (the false discovery rate); None if it is unknown.
    chance : bool
        Whether the other groups are found about as often with permuted labels.
    n_features : int or None
        Number of features that vary.
    tested : bool
        Whether q-values decided; else half-samples and permuted labels.
    fdr : float
        False discovery rate at which q-values decided.
    """

    reliability: str
    n_found: int
    n_groups: int
    confidence: float | None
    false_share: float | None
    chance: bool
    n_features: int | None
    tested: bool = False
    fdr: float = FDR

    @property
    def sentence(self) -> str:
        """A sentence or two about the groups."""
        if self.tested:
            return self._tested_sentence
        if self.reliability == NOT_FOUND:
            if self.n_groups == 1:
                return "The group is not reliably found again in other samples."
            advice = "They are found about as often with permuted labels." if self.chance else "Inspect them one by one."
            return f"None of the {self.n_groups:,} groups is reliably found again in other samples. {advice}"
        if self.reliability == UNDECIDED:
            return (
                f"{self.n_features:,} features are too few for permuted labels to tell groups apart, because most of them are "
                "in the groups."
            )
        assert self.confidence is not None
        which = "The group" if self.n_groups == 1 else f"{self.n_found:,} of {self.n_groups:,} groups"
        how_often = f"{self.confidence:.0%}" if self.confidence >= 1.0 else f"at least {self.confidence:.0%}"
        found = f"{which} {'is' if self.n_found == 1 else 'are'} found again in {how_often} of the half-samples"
        level = "" if self.false_share is None else f" (false discovery rate at most {self.false_share:.0%})"
        if self.n_found == self.n_groups:
            return f"{found}{level}."
        rest = "are found about as often with permuted labels" if self.chance else "are less certain"
        return f"{found}{level}. The others {rest}."

    @property
    def _tested_sentence(self) -> str:
        level = f"significant at a false discovery rate of {100 * self.fdr:.3g}%"
        if self.n_groups == 1:
            return f"The group is {'' if self.n_found else 'not '}{level}."
        if not self.n_found:
            return f"None of the {self.n_groups:,} groups is {level}."
        if self.n_found == self.n_groups:
            return f"{'Both' if self.n_groups == 2 else f'All {self.n_groups:,}'} groups are {level}."
        verb = "is" if self.n_found == 1 else "are"
        return f"{self.n_found:,} of {self.n_groups:,} groups {verb} {level}. The others are less certain."


@dataclass(frozen=True)
class Verdict:
    """The judgement of a discovery.

    Attributes
    ----------
    score : ScoreVerdict or None
        Whether the groups predict; None without held-out scores.
    groups : GroupsVerdict or None
        Whether the groups are found again; None without confidences.
    doubts : tuple of str
        Kinds of the cautions for which both would be too good.
    """

    score: ScoreVerdict | None
    groups: GroupsVerdict | None
    doubts: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """One to four sentences; empty if nothing was assessed."""
        parts = [part.sentence for part in (self.score, self.groups) if part is not None]
        if parts and self.doubts:
            parts.append(f"These figures are too good if a caution applies: {', '.join(self.doubts)}.")
        return " ".join(parts)

    @property
    def warning(self) -> str:
        """The warning about the held-out score; empty if there is none."""
        return "" if self.score is None else self.score.warning

    @property
    def caution(self) -> str:
        """The caution about the prediction for the report; empty if the groups predict."""
        if self.score is None or self.score.prediction == PREDICTS:
            return ""
        if self.score.prediction == MAY_PREDICT:
            return (
                f"The groups may predict no better than {self.score.alone}: the interval of the held-out {self.score.score} "
                f"includes {figure_text(self.score.constant)}. Confirm them in other samples."
            )
        found = f"On held-out samples the groups predict no better than {self.score.alone}."
        if self.groups is None or not (self.groups.tested and self.groups.n_found):
            return f"{found} Do not interpret them."
        return (
            f"{found} A significant group can be associated with the target and still be of no use for predictions. Confirm "
            "the significant groups in other samples, and do not interpret the others."
        )

    def to_dict(self) -> Record:
        """Return the entry ``verdict`` of ``result.json``."""
        parts = (("score", self.score), ("groups", self.groups))
        own = {name: None if part is None else {**asdict(part), "sentence": part.sentence} for name, part in parts}
        return own | {"doubts": list(self.doubts)}


def judge(held_out: Content | None, confidence: Content | None, cautions: Sequence[Content] = ()) -> Verdict:
    """Judge the held-out scores and the confidences of a ``result.json``, given its cautions.

    Examples
    --------
    >>> from coterie.report import HeldOut, judge
    >>> verdict = judge(HeldOut("accuracy", [0.62, 0.54, 0.6], 0.5, 0.99).to_dict(), None)
    >>> verdict.score.prediction
    'may predict'
    >>> verdict.warning
    'Held-out accuracy 0.587 (95% interval 0.395 to 0.778) may be no better than a constant prediction (0.5).'
    """
    found = [caution["kind"] for caution in cautions if caution["kind"] in _TOO_GOOD]
    return Verdict(_judged_score(held_out), _judged_groups(confidence), tuple(dict.fromkeys(found)))


def judgement(held_out: Content | None, confidence: Content | None) -> str:
    """Return the sentences of :func:`judge`.

    Examples
    --------
    >>> from coterie.report import HeldOut, judgement
    >>> judgement(HeldOut("accuracy", [0.53, 0.52, 0.54], 0.4, 0.99).to_dict(), None)
    'Held-out accuracy 0.53 (95% interval 0.484 to 0.576), constant 0.4 (training 0.99).'
    """
    return judge(held_out, confidence).sentence


def interval_text(interval: tuple[float, float] | None, level: float) -> str:
    """Return an interval in brackets, with a space before; empty without interval.

    Examples
    --------
    >>> from coterie.report.judgement import interval_text
    >>> interval_text((0.9481, 0.9789), 0.95)
    ' (95% interval 0.948 to 0.979)'
    """
    if interval is None:
        return ""
    return f" ({level:.0%} interval {figure_text(interval[0])} to {figure_text(interval[1])})"


def figure_text(value: float) -> str:
    """Return a score with three digits, or 0 if it is less than half a thousandth.

    Examples
    --------
    >>> from coterie.report.judgement import figure_text
    >>> figure_text(0.98765), figure_text(-0.000267)
    ('0.988', '0')
    """
    return "0" if abs(value) < 5e-4 else f"{value:.3g}"


def _judged_score(held_out: Content | None) -> ScoreVerdict | None:
    if held_out is None:
        return None
    value, constant, training = (held_out[name] for name in ("value", "constant", "training"))
    bounds = held_out["interval"]
    interval = None if bounds is None or bounds[0] is None or bounds[1] is None else (float(bounds[0]), float(bounds[1]))
    value, constant = (np.nan if number is None else float(number) for number in (value, constant))
    lowest = value if interval is None else interval[0]
    prediction = PREDICTS if lowest > constant else MAY_PREDICT if value > constant else DOES_NOT_PREDICT
    known = training is not None and not np.isnan(training)  # unknown for a scorer that requires other data
    return ScoreVerdict(
        prediction,
        held_out["score"],
        value,
        interval,
        held_out["level"],
        constant,
        held_out["baseline"],
        float(training) if known else None,
        held_out["reason"],
    )


def _judged_groups(confidence: Content | None) -> GroupsVerdict | None:
    if confidence is None:
        return None
    values, share = (
        np.array([np.nan if value is None else value for value in confidence[name]], dtype=float)
        for name in ("confidence", "false_share")
    )
    judged = ~np.isnan(values)
    n_groups = int(judged.sum())
    if not n_groups:
        return None
    evidence = np.array([np.nan if value is None else value for value in confidence.get("q_value") or ()], dtype=float)
    if len(evidence) and not np.isnan(evidence[judged]).any():
        return _tested_groups(values, judged, evidence, confidence)
    permuted = confidence["n_permutations"] > 0
    few = (share <= FDR + 1e-9) & (values > _HALF)
    sure = judged & (few if permuted else values >= _ALWAYS - 1e-9)
    others = judged & ~sure
    n_found, n_features = int(sure.sum()), confidence.get("n_features")
    most = bool(permuted and n_features and sum(confidence.get("sizes", ())) > _MOST_FEATURES * n_features)
    return GroupsVerdict(
        FOUND if n_found else UNDECIDED if most else NOT_FOUND,
        n_found,
        n_groups,
        float(values[sure].min()) if n_found else None,
        FDR if n_found and permuted else None,
        bool(permuted and not most and others.any() and np.nanmedian(share[others]) > _CHANCE),
        n_features,
    )


def _tested_groups(values: np.ndarray, judged: np.ndarray, q_value: np.ndarray, confidence: Content) -> GroupsVerdict:
    """Return the verdict by q-values."""
    fdr = float(confidence.get("fdr") or FDR)
    sure = judged & (q_value <= fdr)
    n_found = int(sure.sum())
    return GroupsVerdict(
        FOUND if n_found else NOT_FOUND,
        n_found,
        int(judged.sum()),
        float(values[sure].min()) if n_found else None,
        fdr if n_found else None,
        False,
        confidence.get("n_features"),
        tested=True,
        fdr=fdr,
    )
