"""Nominal and realised shares of false groups, on five kinds of data sets without and with signal.

For levels of ``false_share`` and for cuts of the confidence, the share and the number of false groups among those reported
are compared with the nominal ones. On data without signal, every group is false.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _calibration_data import KINDS, DataSet
from _models import warnings_counted
from _record import read_arguments, write_results
from _tables import DOCS, FIGURES, columns, markdown_table, print_table, replace_section
from _truth import is_found, is_true, linked, members_of

from coterie import GroupDiscoveryClassifier, group_confidence
from coterie.confidence.result import shah_samworth
from coterie.plots.canvas import BLACK, GREY, new_figure, style

LEVELS = (0.05, 0.1, 0.2, 0.5)
CUTS = (0.5, 0.7, 0.9)
N_FEATURES = 12
N_PAIRS, N_PERMUTATIONS = 25, 5


@dataclass(frozen=True)
class Run:
    """One data set: its groups, and the confidences with permuted labels."""

    kind: str
    signal: bool
    confidence: np.ndarray
    false_share: np.ndarray
    true: np.ndarray
    linked: np.ndarray
    permuted: tuple[np.ndarray, ...]
    n_usable: int
    n_planted: int
    found: int
    seconds: float

    def expected(self, cut: float) -> float:
        """Return the mean number of groups at this confidence with permuted labels."""
        return float(np.mean([np.count_nonzero(values >= cut - 1e-9) for values in self.permuted]))

    def bound(self, cut: float) -> float:
        """Return Shah and Samworth's bound on the number of false features at this confidence."""
        return float(shah_samworth(np.array([cut]), N_FEATURES, self.n_usable, N_PAIRS)[0])


def run(kind: str, data: DataSet, seed: int, threads: int) -> Run:
    """Fit, estimate confidences with permuted labels, and compare the groups with the planted ones."""
    began = time.perf_counter()
    model = GroupDiscoveryClassifier(N_FEATURES, C=1.0, standardize=data.standardize, n_jobs=threads)
    with warnings_counted():
        model.fit(data.X, data.y)
        result = group_confidence(
            model, data.X, data.y, n_pairs=N_PAIRS, n_permutations=N_PERMUTATIONS, random_state=seed, n_jobs=threads
        )
    found = members_of(model.groups_)
    return Run(
        kind=kind,
        signal=bool(data.planted),
        confidence=result.confidence,
        false_share=result.false_share,
        true=is_true(found, data.planted),
        linked=linked(data.X, np.array([group.support for group in model.groups_]), data.supports),
        permuted=result.permuted,
        n_usable=result.n_features,
        n_planted=len(data.planted),
        found=int(is_found(data.planted, found).sum()),
        seconds=time.perf_counter() - began,
    )


def reported(runs: Sequence[Run], choose: Any) -> dict[str, Any]:
    """Summarise the groups that ``choose`` reports: number, false ones, and mean share of false ones per data set."""
    kept = [choose(one) for one in runs]
    n_false = np.array([np.count_nonzero(keep & ~one.true) for keep, one in zip(kept, runs, strict=True)])
    n_kept = np.array([np.count_nonzero(keep) for keep in kept])
    near = sum(np.count_nonzero(keep & ~one.true & one.linked) for keep, one in zip(kept, runs, strict=True))
    shares = n_false / np.maximum(n_kept, 1)
    return {
        "reported": int(n_kept.sum()),
        "false": int(n_false.sum()),
        "linked": int(near),
        "false per data set": float(n_false.mean()),
        "mean share": float(shares.mean()),
        "error": float(shares.std(ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else float("nan"),
        "sets with a false group": f"{np.count_nonzero(n_false)}/{len(runs)}",
    }


def level_rows(runs: Sequence[Run], levels: Sequence[float] = LEVELS) -> list[dict[str, Any]]:
    """Return rows of the groups with an estimated false share of at most each level."""
    rows = []
    for title, mine in _parts(runs):
        for level in levels:
            row = reported(mine, lambda one, level=level: one.false_share <= level + 1e-12)
            # The realised share has a standard error. It is called too optimistic only if two of them above the level.
            late = row["mean share"] - 2 * np.nan_to_num(row["error"]) > level
            rows.append({**title, "level": level, **row, "verdict": _verdict(row["mean share"], level, late)})
    return rows


def cut_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return rows of the groups with a confidence of at least each cut: false groups, and the number expected from
    permuted labels.
    """
    rows = []
    for title, mine in _parts(runs):
        for cut in CUTS:
            row = reported(mine, lambda one, cut=cut: one.confidence >= cut - 1e-9)
            expected = float(np.mean([one.expected(cut) for one in mine]))
            bound = float(np.mean([one.bound(cut) for one in mine]))
            rows.append({**title, "confidence": cut, "expected": expected, "Shah-Samworth": bound, **row})
    return rows


def shares_by_level(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per kind of data and one column per level: the mean share of false groups ± its standard error."""
    table: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        cells = table.setdefault((row["signal"], row["data"]), {"signal": row["signal"], "data": row["data"]})
        cells[f"level {row['level']:g}"] = f"{row['mean share']:.3f} ± {row['error']:.3f}" if row["false"] else "0"
    return list(table.values())


def numbers_by_cut(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per kind of data and one column per cut: false groups per data set / number expected."""
    bound = {"signal": "", "data": "bound of Shah and Samworth"}
    table: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        cut = f"confidence {row['confidence']:g}"
        bound[cut] = "" if np.isnan(row["Shah-Samworth"]) else f"{row['Shah-Samworth']:.3f}"
        cells = table.setdefault((row["signal"], row["data"]), {"signal": row["signal"], "data": row["data"]})
        cells[cut] = f"{row['false per data set']:.2f} / {row['expected']:.2f}" if row["false"] or row["expected"] else "0"
        if row["confidence"] == CUTS[-1]:
            cells[f"sets with a false group, {CUTS[-1]:g}"] = row["sets with a false group"]
            cells[f"reported, false, linked, {CUTS[-1]:g}"] = f"{row['reported']}, {row['false']}, {row['linked']}"
    names = list(next(iter(table.values())))
    return columns([*table.values(), bound], *names)


def _verdict(share: float, level: float, late: bool) -> str:
    return "kept" if share <= level else "TOO OPTIMISTIC" if late else "above, within error"


def _parts(runs: Sequence[Run]) -> list[tuple[dict[str, Any], list[Run]]]:
    """Return the runs without and with signal, of all kinds together and of each kind."""
    result = []
    for signal in (False, True):
        for kind in ["all", *dict.fromkeys(one.kind for one in runs)]:
            mine = [one for one in runs if one.signal == signal and kind in ("all", one.kind)]
            result.append(({"signal": "yes" if signal else "no", "data": kind, "sets": len(mine)}, mine))
    return [(title, mine) for title, mine in result if mine]


def power_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the numbers of planted groups that are found, and that are reported at each level."""
    rows = []
    for title, mine in _parts([one for one in runs if one.signal]):
        row = {**title, "planted": sum(one.n_planted for one in mine), "found": sum(one.found for one in mine)}
        for level in LEVELS:
            row[f"true, false share <= {level}"] = sum(int((one.true & (one.false_share <= level)).sum()) for one in mine)
        for cut in CUTS:
            row[f"true, confidence >= {cut}"] = sum(int((one.true & (one.confidence >= cut - 1e-9)).sum()) for one in mine)
        rows.append(row | {"median s": float(np.median([one.seconds for one in mine]))})
    return rows


def draw(runs: Sequence[Run]) -> None:
    """Draw the realised against the nominal share (left), and realised against expected numbers at many cuts (right)."""
    figure = new_figure(10.5, 4.4)
    left, right = figure.subplots(1, 2)
    levels = np.linspace(0.02, 1.0, 50)
    left.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    right.plot([0.01, N_FEATURES], [0.01, N_FEATURES], color=GREY, linewidth=1)
    for number, kind in enumerate(dict.fromkeys(one.kind for one in runs)):
        look = style(number)
        for signal, line in ((True, "-"), (False, ":")):
            mine = [one for one in runs if one.kind == kind and one.signal == signal]
            shares = [reported(mine, lambda one, level=level: one.false_share <= level)["mean share"] for level in levels]
            label = kind if signal else f"{kind}, no signal"
            left.plot(levels, shares, color=look.color, linestyle=line, label=label)
            cuts = np.arange(0.1, 1.01, 0.1)
            expected = [np.mean([one.expected(cut) for one in mine]) for cut in cuts]
            came = [np.mean([np.count_nonzero((one.confidence >= cut - 1e-9) & ~one.true) for one in mine]) for cut in cuts]
            filled = {"markerfacecolor": look.color if signal else "white", "markeredgecolor": look.color, "markersize": 5}
            right.plot(np.maximum(expected, 0.01), np.maximum(came, 0.01), look.marker, **filled)
    left.set(xlabel="level: false_share at most", ylabel="realised share of false groups", xlim=(0, 1), ylim=(0, 1))
    right.set(xlabel="groups with permuted labels (0 drawn at 0.01)", ylabel="false groups (0 drawn at 0.01)")
    right.set(xscale="log", yscale="log")
    right.text(0.03, 0.95, "one mark per cut, 0.1 to 1; hollow: no signal", transform=right.transAxes, color=BLACK, fontsize=8)
    figure.legend(loc="outside lower center", ncols=5, fontsize=7)
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / "confidence-calibration.png", dpi=100)


def main() -> None:
    options = read_arguments(__doc__)
    shape = (200, 600) if options.quick else (250, 1500)
    n_sets = 1 if options.quick else 10
    runs = []
    for number, (kind, make) in enumerate(KINDS.items()):
        for signal in (False, True):
            for seed in range(options.seed + 10_000 * (number + 1), options.seed + 10_000 * (number + 1) + n_sets):
                own = 2 * seed + signal  # own features with and without signal: 100 data sets, not 50
                data = make(own, shape)
                runs.append(run(kind, data if signal else data.without_signal(own), own, options.threads))
        print(f"{kind}: done, last run {runs[-1].seconds:.1f} s", flush=True)
    levels, cuts, power = level_rows(runs), cut_rows(runs), power_rows(runs)
    print_table(f"Nominal and realised share of false groups, {shape[0]} x {shape[1]:,}, {N_FEATURES} requested", levels)
    print_table("Groups by confidence, and the numbers expected from permuted labels and from the bound", cuts)
    print_table("Planted groups", power)
    details = [vars(one) for one in runs]
    write_results("confidence_calibration", options, levels=levels, cuts=cuts, power=power, details=details)
    if not options.quick:
        draw(runs)
        names = [name for name in power[0] if name not in ("signal", "sets", "median s")]
        shown = [shares_by_level(levels), numbers_by_cut(cuts), columns(power, *names)]
        replace_section(DOCS / "confidence-evidence.md", "calibration", "\n".join(markdown_table(rows) for rows in shown))


if __name__ == "__main__":
    main()
