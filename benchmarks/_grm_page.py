"""Measured sections of docs/evidence/grm-tables.md; protocol and results are written by hand around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _grm_paper import MOVES, NAMES, PAPER, SUBSTITUTES, WITHOUT_GRM
from _record import caption
from _tables import DOCS, markdown_table, replace_section

from coterie.plots.canvas import new_figure

MEASURES = ("linear SVM", "kNN", "redundancy")
# A cell is marked if its redundancy exceeds the paper's by more than the first number, or if its accuracy is below the
# paper's by more than the second, in points.
_REDUNDANCY_TOLERANCE, _ACCURACY_TOLERANCE = 0.03, 3.0
Results = Mapping[str, Any]


def write_page(
    everything: Results,
    shapes: Results,
    correct_moves: Results,
    strengths: Sequence[float],
    factors: Sequence[int | str | None],
) -> None:
    """Replace the measured sections of docs/evidence/grm-tables.md and draw docs/evidence/grm-candidates.png."""
    page, factor = DOCS / "grm-tables.md", "default"
    parts = []
    results = {name: found for name, found in everything.items() if name in PAPER}
    unsupervised = ("laplacian", "laplacian, full", "lgd", "lgd among samples", "mcfs", "relieff 20 %")
    supervised = ("relieff", "fisher", "information_gain", "mid", "miq")
    for scores, numbers in ((unsupervised, (2, 3, 4)), (supervised, (5, 6, 7))):
        for measure, number in enumerate(numbers):
            table = markdown_table([_row_of(name, results[name], scores, measure, factor) for name in results])
            parts.append(f"### Table {number}: {MEASURES[measure]}\n\n{table.strip()}")
    counts = markdown_table([_counts_row(name, results[name], factor) for name in results])
    lost, total = (sum(counted) for counted in zip(*(_lost(results[name], factor) for name in results), strict=True))
    counts += f"\nAll data sets: accuracy lower with GRM in {lost} of {total} cells.\n"
    substitutes = markdown_table([_substitute_row(name, everything[name], shapes[name], factor) for name in SUBSTITUTES])
    moves = markdown_table([_moves_row(name, correct_moves[name], strengths) for name in correct_moves])
    candidates = markdown_table([_candidates_row(results, str(factor)) for factor in factors])
    for name, text in {
        "tables": "\n\n".join(parts),
        "counts": counts,
        "substitutes": substitutes,
        "table 8": moves,
        "candidates": candidates,
    }.items():
        replace_section(page, name, f"{caption()}\n\n{text}")
    _draw(results, factors, DOCS / "grm-candidates.png")
    print("Written: docs/evidence/grm-tables.md, docs/evidence/grm-candidates.png")


def _cell(found: Sequence[float], measure: int) -> str:
    return f"{found[measure]:.3f}" if measure == 2 else f"{found[measure]:.1f}"


def _row_of(name: str, by_score: Results, scores: Sequence[str], measure: int, factor: str) -> dict[str, str]:
    """Return a row of one of the paper's tables: our value, and the paper's in brackets.

    Bold: worse than the paper. †: less accurate with GRM than without.
    """
    row = {"": name}
    for score in scores:
        for prefix, found, theirs in _forms(name, score, by_score, factor):
            paper = f" ({_cell(theirs, measure)})" if theirs[measure] is not None else ""
            ours = _cell(found, measure)
            ours = f"**{ours}**" if _worse_than_paper(found, theirs, measure) else ours
            mark = "†" if prefix and _worse_than_score(found, by_score[score]["1"], measure) else ""
            row[prefix + NAMES[score]] = ours + mark + paper
    return row


def _worse_than_paper(ours: Sequence[float], theirs: Any, measure: int) -> bool:
    if theirs[measure] is None:
        return False
    return (
        ours[2] > theirs[2] + _REDUNDANCY_TOLERANCE if measure == 2 else ours[measure] < theirs[measure] - _ACCURACY_TOLERANCE
    )


def _worse_than_score(refined: Sequence[float], alone: Sequence[float], measure: int) -> bool:
    return measure < 2 and round(refined[measure], 1) < round(alone[measure], 1)


def _counts_row(name: str, by_score: Results, factor: str) -> dict[str, str]:
    """Count the cells of one data set in which GRM gains, loses, or is worse than the paper."""
    pairs = [(found[factor], found["1"]) for score, found in by_score.items() if score not in WITHOUT_GRM]
    forms = [form for score in by_score for form in _forms(name, score, by_score, factor)]
    lower = sum(refined[2] < alone[2] for refined, alone in pairs)
    lost = _lost(by_score, factor)[0]
    short = sum(_worse_than_paper(ours, theirs, measure) for _, ours, theirs in forms for measure in (0, 1))
    high = sum(_worse_than_paper(ours, theirs, 2) for _, ours, theirs in forms)
    return {
        "data": name,
        "redundancy lower with GRM": f"{lower} of {len(pairs)}",
        "accuracy lower with GRM (†)": f"{lost} of {2 * len(pairs)}",
        f"accuracy more than {_ACCURACY_TOLERANCE:g} points below the paper": str(short),
        f"redundancy more than {_REDUNDANCY_TOLERANCE:g} above the paper": str(high),
    }


def _lost(by_score: Results, factor: str) -> tuple[int, int]:
    """Return the number of accuracies that are lower with GRM, and the number of all."""
    pairs = [(found[factor], found["1"]) for score, found in by_score.items() if score not in WITHOUT_GRM]
    lost = sum(_worse_than_score(refined, alone, measure) for refined, alone in pairs for measure in (0, 1))
    return lost, 2 * len(pairs)


def _substitute_row(name: str, by_score: Results, shape: Sequence[int], factor: str) -> dict[str, str]:
    """Return a row with mean accuracy and redundancy of each score, alone and with GRM."""
    file, theirs, what = SUBSTITUTES[name]
    row = {"paper": f"{name} ({theirs})", "here": f"{file}, {what} ({', '.join(f'{n:,}' for n in shape)})"}
    for score, found in by_score.items():
        if score in WITHOUT_GRM:
            continue
        alone, refined = found["1"], found[factor]
        before, after = ((one[0] + one[1]) / 2 for one in (alone, refined))
        mark = "†" if round(after, 1) < round(before, 1) else ""
        row[NAMES[score]] = f"{before:.1f} → {after:.1f}{mark}; {alone[2]:.3f} → {refined[2]:.3f}"
    return row


def _forms(name: str, score: str, by_score: Results, factor: str) -> Iterator[tuple[str, Sequence[float], Any]]:
    """Yield a method without GRM and, if possible, with GRM: prefix, our figures, the paper's."""
    found = by_score[score]
    yield "", found["1"], PAPER[name][score][0]
    if score not in WITHOUT_GRM:
        yield "G", found[factor], PAPER[name][score][1]


def _moves_row(name: str, by_score: Results, strengths: Sequence[float]) -> dict[str, str]:
    """Return the rates for all strengths, one cell per score, and the paper's rates."""
    powers = " / ".join(f"{strength:g}" for strength in strengths)
    row = {"": name}
    for label, rates in zip(("Var", "Lap", "LGD"), by_score.values(), strict=True):
        row[f"{label}, γ = {powers}"] = " / ".join(f"{rate:.3f}" for rate in rates)
    return row | {"paper: Var / Lap / LGD": " / ".join(f"{rate:.3f}" for rate in MOVES[name]) if name in MOVES else "–"}


def _candidates_row(results: Results, factor: str) -> dict[str, str]:
    """Return means over the scores for one number of candidates."""
    words = {
        "1": "score alone", "None": "all", "auto": "5 × 20, growing", "default": "default: 5 × 20, growing, chance level",
    }  # fmt: skip
    row, means = {"candidates": words.get(factor, f"{factor} × 20")}, []
    for name, by_method in results.items():
        by_score = {score: found for score, found in by_method.items() if score not in WITHOUT_GRM}
        rows = [found[factor] for found in by_score.values() if factor in found]
        row[name] = _triple(np.mean(rows, axis=0)) if rows else "–"
        full = [
            found.get(factor, found["None"]) for found in by_score.values()
        ]  # a pool larger than the data has all features
        means.append(np.mean(full, axis=0))
    return row | {"mean": f"**{_triple(np.mean(means, axis=0))}**"}


def _triple(means: np.ndarray) -> str:
    return " / ".join(_cell(means, measure) for measure in range(3))


def _draw(results: Results, factors: Sequence[int | str | None], path: Path) -> None:
    """Draw accuracy and redundancy against the number of candidates, means over the scores."""
    figure = new_figure(9, 3)
    axes = figure.subplots(1, 3)
    for measure, axis in enumerate(axes):
        for name, by_method in results.items():
            points = []
            for place, factor in enumerate(map(str, factors)):
                rows = [one[factor][measure] for score, one in by_method.items() if factor in one and score not in WITHOUT_GRM]
                if rows:
                    points.append((place, np.mean(rows)))
            axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
        axis.set_title(MEASURES[measure], fontsize=9)
        axis.set_xticks(
            range(len(factors)),
            ["score\nalone", *[f"{f}×" if isinstance(f, int) else str(f) for f in factors[1:-1]], "all"],
            fontsize=7,
        )
        axis.tick_params(axis="y", labelsize=7)
    axes[0].legend(fontsize=6)
    figure.savefig(path, dpi=80)
