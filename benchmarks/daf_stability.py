"""Default stopping rule of DAF: probes, stability, and selected features shared by runs with different seeds.

The constants of the rule were chosen on the sets of ``choice`` and on Madelon with the splits of seed 0. The sets of
``report`` and Madelon with other splits had no part in it. Each fit is written to the results at once, and a repeated run
continues after the last one. Tables go to docs/evidence/ranking-evidence.md.
"""

from __future__ import annotations

import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from _ranking import INFORMATIVE, PAGE, halves, load, wide
from _record import RESULTS, caption, read_arguments
from _tables import markdown_table, print_table, replace_section
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from coterie import DependencyAwareSelector

CHOICE = ("khan", "su", "gravier", "christensen")
REPORT = ("glioma", "shipp", "duke", "chowdary", "gordon")
N_SELECTED = 10
# The default until 2026-11-18.
FORMER = {"min_coverage": 300, "min_stability": None, "n_probes": 20_000}
REPORT_SEED = 1

Row = dict[str, Any]


class Fit(NamedTuple):
    """A fit: data set, seed or split, rule, and the function that makes the data."""

    data: str
    number: int
    rule: str
    options: dict[str, Any]
    make: Callable[[], tuple[np.ndarray, np.ndarray]]


def standardised(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all samples of a wide set with standardised features."""
    X, y = wide(name)
    return StandardScaler().fit_transform(X), y


def random_labels(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features without any relation to the labels."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((100, 1000)), rng.permutation(np.repeat([0, 1], 50))


def madelon(split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a training half of Madelon."""
    part = next(itertools.islice(halves(*load("madelon"), 5, REPORT_SEED, standardise=True), split, None))
    return part.X, part.y


def wide_fits(names: tuple[str, ...]) -> Iterator[Fit]:
    """Yield the fits of wide sets: two seeds, with the present and the former default."""
    for rule, name, seed in itertools.product(("default", "former"), names, (0, 1)):
        options = {"random_state": seed, "n_features_to_select": N_SELECTED, **(FORMER if rule == "former" else {})}
        yield Fit(name, seed, rule, options, lambda name=name: standardised(name))


def madelon_fits() -> Iterator[Fit]:
    """Yield the fits of the five splits of Madelon."""
    for rule, split in itertools.product(("default", "former"), range(5)):
        options = {"random_state": split, "n_features_to_select": 20, **(FORMER if rule == "former" else {})}
        yield Fit("madelon", split, rule, options, lambda split=split: madelon(split))


def noise_fits() -> Iterator[Fit]:
    """Yield the fits of random labels."""
    for seed in (0, 1):
        options = {"random_state": seed, "n_features_to_select": N_SELECTED}
        yield Fit("random labels", seed, "default", options, lambda: random_labels(0))


PARTS: dict[str, Callable[[], Iterator[Fit]]] = {
    "choice": lambda: wide_fits(CHOICE),
    "report": lambda: wide_fits(REPORT),
    "madelon": madelon_fits,
    "noise": noise_fits,
}


def fitted(fit: Fit, quick: bool) -> Row:
    """Return the result of a fit."""
    X, y = fit.make()
    options = {**fit.options, "n_probes": 200} if quick else fit.options
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = DependencyAwareSelector("knn", **options).fit(X, y)
    return {
        "data": fit.data,
        "number": fit.number,
        "rule": fit.rule,
        "features": X.shape[1],
        "probes": model.n_probes_,
        "seconds": time.process_time() - start,
        "stopped by": model.stopped_by_,
        "expected": model.stability_.expected,
        "halves": model.stability_.halves,
        "warned": any("Low stability" in str(one.message) for one in caught),
        "selected": model.support_features_.tolist(),
    }


def measured(part: str, options: Any) -> list[Row]:
    """Return the results of all fits of a part. Fits with results from the same source are not repeated."""
    path = RESULTS / f"daf_stability-{part}{'-quick' if options.quick else ''}.jsonl"
    RESULTS.mkdir(exist_ok=True)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [row for row in map(json.loads, lines) if row.pop("source") == options.source]
    for fit in PARTS[part]():
        if not any((row["data"], row["number"], row["rule"]) == fit[:3] for row in rows):
            rows.append(fitted(fit, options.quick))
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**rows[-1], "source": options.source}) + "\n")
            print({name: value for name, value in rows[-1].items() if name != "selected"}, flush=True)
    return rows


def table_of(rows: list[Row]) -> list[Row]:
    """Return one row per data set and rule."""
    table = []
    for key in dict.fromkeys((row["data"], row["rule"]) for row in rows):
        mine = [row for row in rows if (row["data"], row["rule"]) == key]
        line: Row = {"data": key[0], "features": mine[0]["features"], "rule": key[1]}
        if key[0] == "madelon":
            found = [len(np.intersect1d(row["selected"], INFORMATIVE)) for row in mine]
            line["informative of 20, by split"] = " ".join(map(str, found))
        else:
            both = [row["selected"] for row in mine[:2]]
            line["shared by two seeds, of 10"] = len(np.intersect1d(*both)) if len(both) == 2 else None
        line["stability"] = " ".join(f"{min(row['expected'], row['halves']):.2f}" for row in mine)
        line["probes"] = " ".join(f"{row['probes']:,}" for row in mine)
        line["stopped by"] = " ".join(dict.fromkeys(row["stopped by"] for row in mine))
        line["processor seconds"] = f"{np.mean([row['seconds'] for row in mine]):.0f}"
        line["warned"] = (
            "yes" if all(row["warned"] for row in mine) else "once" if any(row["warned"] for row in mine) else "no"
        )
        table.append(line)
    return table


def main() -> None:
    options = read_arguments(__doc__, parts=tuple(PARTS))
    for part in PARTS:
        if options.only in (None, part):
            table = table_of(measured(part, options))
            print_table(part, table)
            if not options.quick:
                replace_section(PAGE, f"stability {part}", f"{caption()}\n\n{markdown_table(table)}")


if __name__ == "__main__":
    main()
