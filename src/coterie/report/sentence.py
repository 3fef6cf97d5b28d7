"""The first lines of a report: what was predicted from what, how well, what was found, and what to be careful about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from coterie.markup import Markup, join, shortened, tag, text
from coterie.report.judgement import of_groups, predicts, shortcoming

_SHOWN_CLASSES = 8
_SHOWN_LETTERS = 60


def number(value: Any) -> str:
    """A figure as people write it."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def file_name(content: Mapping[str, Any]) -> str:
    """The name of the data without the folders."""
    path = str(content["data"].get("path") or "")
    return PurePath(path).name or path or "data"


def title(content: Mapping[str, Any]) -> str:
    """What the page is about, in a line."""
    label = (content.get("target") or {}).get("label")
    if content["task"] == "one-class":
        return f"What is typical of {shortened(file_name(content), _SHOWN_LETTERS)}"
    what = shortened(label, _SHOWN_LETTERS) if label else "the label" if content["task"] == "classification" else "the target"
    return f"What predicts {what} in {shortened(file_name(content), _SHOWN_LETTERS)}"


def lead(content: Mapping[str, Any]) -> list[Markup]:
    """One or two sentences: target, data, held-out score, groups."""
    return [part for part in (_prediction(content), _findings(content)) if part]


def cautions(content: Mapping[str, Any]) -> list[str]:
    """What a careful reader should bear in mind, if anything; first what weighs most."""
    found = []
    held_out, confidence = content.get("held_out"), content.get("confidence")
    if held_out is None and confidence is None:
        found.append(
            "These are figures of the training data alone: whether the groups predict other data, and which of them are real, "
            "was not looked at."
        )
    elif held_out is not None and not predicts(held_out["mean"], held_out["error"], held_out["constant"]):
        found.append(f"On held-out samples the groups {shortcoming(held_out)}. Do not read anything into them.")
    if confidence is not None and not confidence.get("n_permutations") and content["task"] != "one-class":
        found.append("Labels were not shuffled, so the confidence that groups reach by chance is unknown.")
    if content.get("interrupted"):
        found.append("The search was ended early by a signal; these are the groups found until then.")
    said = "On held-out samples the model is no better than"
    return [*found, *(warning for warning in content.get("warnings", ()) if said not in warning or not found)]


def _prediction(content: Mapping[str, Any]) -> Markup:
    target, data, held_out = content.get("target") or {}, content["data"], content.get("held_out")
    samples, features = data.get("samples"), data.get("features")
    size = f"{number(samples)} samples × {number(features)} features" if samples and features else "the features"
    source = join([size, " of ", tag("bdi", shortened(file_name(content), _SHOWN_LETTERS))])
    if content["task"] == "one-class":
        start = join(["Typical samples are told from others by ", source])
    else:
        fallback = "The class" if content["task"] == "classification" else "The target"
        name = tag("strong", tag("bdi", shortened(target.get("label") or fallback, _SHOWN_LETTERS)))
        start = join([name, _counts(target, content), " is predicted from ", source])
    if held_out is None:
        training = _training(content)
        return join([start, f"; {training}." if training else "."])
    mean = tag("strong", with_error(held_out["mean"], held_out["error"]))
    # Results with covariates have a baseline of another name than a constant.
    alone = held_out.get("baseline") or "constant"
    who = "a constant prediction has" if alone == "constant" else f"{alone} have"
    constant = f"; {who} {_score(held_out['constant'])}" if held_out["constant"] is not None else ""
    trained = f" (training: {_score(held_out['training'])})" if held_out["training"] is not None else ""
    return join([start, f" with a held-out {held_out['score']} of ", mean, constant, trained, "."])


def with_error(mean: float, error: float | None) -> str:
    """A mean and its error with as many decimals as the error is worth.

    Examples
    --------
    >>> from coterie.report.sentence import with_error
    >>> with_error(0.9672, 0.0051), with_error(0.9, None), with_error(0.512, 0.13)
    ('0.967 ± 0.005', '0.900', '0.51 ± 0.13')
    """
    if error is None or np.isnan(error):
        return f"{mean:.3f}".replace("-", "−")
    decimals = 2 if error >= 0.095 else 3
    return f"{mean:.{decimals}f} ± {error:.{decimals}f}".replace("-", "−")


def _score(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def _counts(target: Mapping[str, Any], content: Mapping[str, Any]) -> Markup:
    """The classes with their counts, or the range of a trait, in brackets."""
    classes = target.get("classes")
    if classes:
        shown = list(classes.items())[:_SHOWN_CLASSES]
        more = [f"{len(classes) - len(shown)} more classes"] if len(classes) > len(shown) else []
        parts = [join([tag("bdi", shortened(name, 40)), f" {number(count)}"]) for name, count in shown]
        return join([" (", join([*parts, *more], ", "), ")"])
    trait = (content.get("pictures") or {}).get("trait")
    if trait:
        return text(f" (mean {_score(trait['mean'])}, standard deviation {_score(trait['sd'])})")
    return Markup("")


def _training(content: Mapping[str, Any]) -> str:
    """The training score, called by its name."""
    for words, value in content["summary"].items():
        if words.endswith("on the training data") and value is not None:
            return f"{words}: {value:.3g}"
    return ""


def _findings(content: Mapping[str, Any]) -> Markup:
    """How many groups there are, and how sure they are."""
    n_groups, n_features = len(content["groups"]), sum(group["size"] for group in content["groups"])
    count = f"{number(n_groups)} group{'s' * (n_groups != 1)}"
    said = of_groups(content.get("confidence"))
    head = join(["Found: ", tag("strong", count), f" with {number(n_features)} feature{'s' * (n_features != 1)} in all. "])
    return join([head, said])
