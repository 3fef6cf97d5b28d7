"""TPAMI Fig. 3: the groups that each grouping method finds in the synthetic data, and the true ones.

``make_support_affiliated`` in the size of the paper (2,048 x 10,000; 12 support features, 38 true ones). GDM selects 12
support features (C = 10, one per round). The other methods select as many features as there are true ones, with their
defaults. A true feature is named by its group: S3 is the support feature of the third group, 3a and 3b are affiliated with
it. Other features are numbered. The success hits are given as right support / right affiliated / wrong features. Writes a
section of docs/evidence/paper-comparisons.md and docs/evidence/figures/group-graphs.png.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from _models import warnings_counted
from _record import read_arguments, write_results
from _tables import DOCS, FIGURES, markdown_table, print_table, replace_section

from coterie import FeatureGroups
from coterie.comparison.trial import selector_named
from coterie.datasets import make_support_affiliated
from coterie.metrics import group_recovery, success_hits
from coterie.plots import group_graph
from coterie.plots.canvas import new_figure

N_SUPPORT, N_TRUE = 12, 38


class Entry(NamedTuple):
    """A method, its name and success hits in the paper, and its setting."""

    method: str
    name: str
    paper: str
    setting: dict[str, Any]


ENTRIES = (
    Entry("gdm", "GDM", "86.8 %", {"n_features_to_select": N_SUPPORT, "C": 10.0, "n_features_per_round": 1}),
    Entry("gflasso", "GFlasso", "71.1 %", {"n_features_to_select": N_TRUE}),
    Entry("ncfgs", "ncFGS", "60.5 %", {"n_features_to_select": N_TRUE}),
    Entry("nctfgs", "ncTFGS", "52.6 %", {"n_features_to_select": N_TRUE}),
    Entry("oscar", "OSCAR", "50.0 %", {"n_features_to_select": N_TRUE}),
)


def true_names(groups: FeatureGroups) -> dict[int, str]:
    """Return the names of the true features: S3 for the support feature of the third group, 3a, 3b, … for its others."""
    names = {}
    for number, group in enumerate(groups, start=1):
        names[group.support] = f"S{number}"
        names |= {int(j): f"{number}{chr(ord('a') + place)}" for place, j in enumerate(group.affiliated)}
    return names


def named(groups: FeatureGroups, names: dict[int, str]) -> FeatureGroups:
    return FeatureGroups([replace(group, names=tuple(names.get(int(j), str(j)) for j in group.members)) for group in groups])


def draw(panels: dict[str, FeatureGroups], truth: FeatureGroups) -> None:
    """Draw one panel per method, three per row, each large enough for its names."""
    sizes = [group_graph(groups, max_groups=100).get_size_inches() for groups in panels.values()]
    n_rows = -(-len(panels) // 3)
    widths = [max(size[0] for size in sizes[column::3]) for column in range(3)]
    heights = [0.3 + max(size[1] for size in sizes[3 * row : 3 * row + 3]) for row in range(n_rows)]  # two lines of legend
    figure = new_figure(sum(widths), sum(heights))
    grid = figure.add_gridspec(n_rows, 3, width_ratios=widths, height_ratios=heights)
    for place, (title, groups) in enumerate(panels.items()):
        ax = figure.add_subplot(grid[place // 3, place % 3])
        group_graph(groups, max_groups=100, truth=truth, ax=ax, title=title)
        ax.set_anchor("N")
    figure.savefig(FIGURES / "group-graphs.png", dpi=90)


def main() -> None:
    options = read_arguments(__doc__)
    shape = (512, 1500) if options.quick else (2048, 10_000)
    data = make_support_affiliated(*shape, random_state=options.seed)
    X, names = np.asfortranarray(data.X), true_names(data.groups)
    panels = {f"truth: {N_SUPPORT} groups, {N_TRUE} features": named(data.groups, names)}
    rows = []
    with warnings_counted() as unconverged:
        for entry in ENTRIES:
            began = time.perf_counter()
            found = selector_named(entry.method).set_params(**entry.setting).fit(X, data.y).groups_
            seconds = time.perf_counter() - began
            hits, share = success_hits(data.groups, found), group_recovery(data.groups, found)
            panels[f"{entry.name}: {hits} (right support / affiliated / wrong), {share:.1%}"] = named(found, names)
            row = {"method": entry.name, "groups": len(found), "with affiliated": sum(len(group) > 1 for group in found)}
            row |= {"features": len(found.members), "support / affiliated / wrong": str(hits)}
            rows.append(row | {"success hits": f"{share:.1%}", "paper": entry.paper, "s": seconds})
    print_table(f"TPAMI Fig. 3: {shape[0]:,} x {shape[1]:,}, seed {options.seed}", rows)
    write_results("group_graphs", options, rows=rows, warnings=len(unconverged))
    if not options.quick:
        draw(panels, data.groups)
        picture = "![groups of each method](figures/group-graphs.png)"
        replace_section(DOCS / "paper-comparisons.md", "group graphs", f"{picture}\n\n{markdown_table(rows)}")


if __name__ == "__main__":
    main()
