"""Measure a page of docs/evidence again: run its scripts one after the other, and date the page.

    make evidence NAME=family
    python benchmarks/evidence.py --list
    python benchmarks/evidence.py --stamp family "2026-11-17"   only set the date, for tables that were copied by hand

If a script fails or its data are missing, the run ends without changing the date. Most scripts write their tables into the
page; those of pages marked "by hand" print them.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from _tables import DOCS

HERE = Path(__file__).resolve().parent
WRAP = DOCS.parent / "scripts" / "pages.py"


class Page(NamedTuple):
    """Command lines of the scripts that measure a page, relative to this folder."""

    scripts: tuple[str, ...]
    by_hand: bool = False


PAGES = {
    "benchmarks": Page(
        ("wide_dense.py", "wide_sparse.py", "news20.py", "synthetic_12.py", "cold_start.py", "daf_probes.py"), by_hand=True
    ),
    "big-shapes": Page(("big_cost.py --folder .", "big_cost.py --growth")),
    "cautions": Page(("cautions.py",)),
    "choice-of-settings": Page(("choice_of_settings.py", "rare_classes.py")),
    "cluster-cost": Page(("cluster_cost.py",), by_hand=True),
    "cluster-faults": Page(("cluster_faults.py",)),
    "confidence-evidence": Page(
        ("confidence_truth.py", "confidence_calibration.py", "confidence_cost.py", "confidence_peers.py")
    ),
    "correlation-groups-evidence": Page(("correlation_groups.py --limit 15",), by_hand=True),
    "correlation-profile-evidence": Page(("figure_1.py", "all_pairs.py"), by_hand=True),
    "error-control": Page(
        ("error_control.py --seeds report --page", "error_bounds.py", "member_sets.py --page", "effect_intervals.py")
    ),
    "examples": Page(
        tuple(f"../examples/{name}.py" for name in ("faces", "digits", "text", "snps", "single_cells")), by_hand=True
    ),
    "families": Page(("families.py",), by_hand=True),
    "family": Page(
        (
            "uncertainty.py",
            "reuse.py",
            "embedded_cv.py",
            "classes.py",
            "regression.py",
        )
    ),
    "growth": Page(("growth.py", "layouts.py")),
    "grm-mrmr": Page(("grm_mrmr.py",)),
    "grm-tables": Page(("grm_tables.py", "grm_figures.py")),
    "marker-genes-evidence": Page(("marker_genes.py", "class_shares.py")),
    "one-class-evidence": Page(
        (
            "one_class.py",
            "one_class_threshold.py",
            "one_class_rule.py",
            "snp_one_class.py",
            "one_class_validated.py",
            "big_one_class.py",
        )
    ),
    "paper-comparisons": Page(
        (
            "tpami_table_2.py",
            "group_graphs.py",
            "icml_figure_1.py",
            "icml_figures.py",
            "tpami_figures.py",
            "snp_figures.py",
            "big_shapes.py",
        )
    ),
    "paper-daf": Page(()),
    "paper-gdm": Page(()),
    "paper-grm": Page(()),
    "outcomes-evidence": Page(("outcomes.py", "quantiles.py"), by_hand=True),
    "pitfalls": Page(("pitfalls.py",)),
    "plain-estimators": Page(("plain_estimators.py",)),
    "plink-clump-evidence": Page(("plink_clump.py",)),
    "probabilities-evidence": Page(("probabilities.py",)),
    "ranking-evidence": Page(
        (
            "daf_madelon.py --slow --splits 5",
            "daf_curves.py --slow",
            "daf_adaptive.py",
            "daf_stability.py",
            "daf_wide.py",
        )
    ),
    "redundancy-evidence": Page(("grm_scale.py", "grm_rules.py"), by_hand=True),
    "replication": Page(("replication.py --page",)),
    "report-evidence": Page(("report_evidence.py",)),
    "score-intervals-evidence": Page(("score_intervals.py",)),
    "store-evidence": Page(("libsvm_text.py", "same_groups.py"), by_hand=True),
    "substitutes": Page(("substitutes.py --rules --page", "substitutes.py --page")),
    "survival-evidence": Page(("survival.py", "cox_references.py"), by_hand=True),
    "validated-evidence": Page(("validated.py",)),
    "what-saves-correlations": Page(("what_saves_correlations.py",)),
    "tables-evidence": Page(("table_categories.py",)),
    "versions": Page(("versions.py --before ../before/src",)),
}


def stamped(text: str, name: str, date: str) -> str:
    """Return the page with a line below the title that gives date and scripts of the measurement."""
    page = PAGES[name]
    scripts = ", ".join(f"`benchmarks/{script}`".replace("benchmarks/../", "") for script in page.scripts)
    how = f"by {scripts}" if scripts else "by hand, without a script"
    again = f" `make evidence NAME={name}` runs it again." if scripts else ""
    kept = " The tables are copied from the output." if page.by_hand and scripts else ""
    line = f"<!-- measured -->\n*Measured {date} {how}.{again}{kept}*\n<!-- end measured -->\n"
    if "<!-- measured -->\n" in text:
        return re.sub(r"<!-- measured -->\n.*?<!-- end measured -->\n", lambda _: line, text, count=1, flags=re.DOTALL)
    title, rest = text.split("\n", 1)
    return f"{title}\n\n{line}\n{rest.lstrip()}"


def stamp(name: str, date: str) -> None:
    """Set the date of a page."""
    path = DOCS / f"{name}.md"
    path.write_text(stamped(path.read_text(encoding="utf-8"), name, date), encoding="utf-8")
    subprocess.run([sys.executable, str(WRAP), "wrap", str(path)], check=True)


def measure(name: str) -> None:
    """Run the scripts of a page, then date it."""
    if not PAGES[name].scripts:
        sys.exit(f"{name}.md was measured by hand. No script can measure it again.")
    for line in PAGES[name].scripts:
        print(f"== {line}", flush=True)
        script, *options = line.split()
        subprocess.run([sys.executable, str((HERE / script).resolve()), *options], check=True)
    stamp(name, datetime.datetime.now(datetime.UTC).date().isoformat())


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", choices=[*PAGES, "all"], help="page of docs/evidence to measure")
    parser.add_argument("--list", action="store_true", help="list pages and their scripts")
    parser.add_argument("--stamp", nargs=2, metavar=("NAME", "DATE"), help="set the date of a page without measuring")
    options = parser.parse_args()
    if options.stamp:
        stamp(*options.stamp)
    elif options.list or options.name is None:
        for name, page in PAGES.items():
            print(f"{name}: {', '.join(page.scripts) or 'by hand'}{' (prints)' if page.by_hand and page.scripts else ''}")
    else:
        for name in PAGES if options.name == "all" else [options.name]:
            measure(name)


if __name__ == "__main__":
    main()
