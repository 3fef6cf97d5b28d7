"""``coterie demo``: discovery on synthetic data with known groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from coterie.cli.discover import run
from coterie.cli.options import option
from coterie.cli.output import Console
from coterie.cli.parameters import Settings

if TYPE_CHECKING:
    from sklearn.utils import Bunch

    from coterie import Discovery

# More features than true ones, so that some groups are false and must get a low confidence.
_SETTINGS: Settings = {
    "task": "classification",
    "n_features_to_select": 16,
    "C": 10.0,
    "cv": 3,
    "n_pairs": 10,
    "n_permutations": 1,
}


def demo(
    *,
    seed: Annotated[int, option(None, "Seed of the synthetic data.", common=True, min=0)] = 1,
    n_features: Annotated[int, option(None, "Number of features.", common=True, min=38)] = 10_000,
    output: Annotated[
        Path,
        option(
            None,
            "Folder for the results. Existing results are replaced.",
            "--output -o",
            common=True,
            metavar="FOLDER",
        ),
    ] = Path("coterie-demo"),
    console: Console,
) -> None:
    """Discover groups in synthetic data (TPAMI 2016, section 5.2) and compare them with the true groups.

    Examples:
        - coterie demo
        - coterie demo --seed 3 -o demo-3
    """
    from coterie.data import Dataset, as_source
    from coterie.datasets import make_support_affiliated
    from coterie.files import claimed
    from coterie.metrics import group_recovery
    from coterie.report.folder import check_output, write_result

    with claimed(output):
        check_output(output, overwrite=True)
        data = make_support_affiliated(n_features=n_features, random_state=seed)
        console.show(
            f"Synthetic data: {len(data.y):,} samples, {n_features:,} features. {len(data.groups)} groups of "
            f"{len(data.groups.members)} features determine the class. The other features are noise."
        )
        dataset = Dataset(as_source(data.X), data.y, format="synthetic", path=Path(f"make_support_affiliated, seed {seed}"))
        result, code = run(dataset, console, **_SETTINGS)
        recovery = group_recovery(data.groups, result.model.groups_)
        files = write_result(output, result, overwrite=True)
    console.show(_table(result, data))
    _show_quality(result, data, recovery, console)
    console.show(f"Written to {output}: {', '.join(files)}.")
    console.result({"output": str(output), "files": files, "recovery": recovery, **result.to_dict()})
    if code:
        raise typer.Exit(code)


def _show_quality(result: Discovery, data: Bunch, recovery: float, console: Console) -> None:
    """Print the judgement, the recovery, the missed groups and the optimality gap."""
    model = result.model
    found = {group.support for group in model.groups_}
    missed = [
        f"{group.support} (weight {weight:+.2f})"
        for group, weight in zip(data.groups, data.weights, strict=True)
        if group.support not in found
    ]
    if result.judgement:
        console.show(result.judgement)
    console.show(f"Recovery: {recovery:.1%} of the true features were found in the correct group and role.")
    if missed:
        console.show(f"Not found: {', '.join(missed)}.")
    console.show(
        f"Relative optimality gap of the weights for these features: {model.dual_gap_:.1e}. Correlations evaluated: "
        f"{model.n_correlations_evaluated_:,} of {model.n_correlations_possible_:,}. Time: {result.seconds:.1f} s."
    )


def _table(result: Discovery, data: Bunch) -> Table:
    """Return a table with one row per group found, compared with the true groups."""
    truth = {
        int(feature): (group, weight)
        for group, weight in zip(data.groups, data.weights, strict=True)
        for feature in group.members
    }
    table = Table(title="Groups, in order of discovery", title_justify="left")
    table.add_column("confidence", justify="right")
    table.add_column("support", justify="right")
    table.add_column("affiliated (correlation)")
    table.add_column("weight", justify="right")
    table.add_column("truth")
    for group in result.model.groups_:
        affiliated = ", ".join(f"{j} ({r:+.2f})" for j, r in zip(group.affiliated, group.correlation, strict=True))
        verdict = "false: noise"
        if group.support in truth:
            true_group, weight = truth[group.support]
            complete = set(true_group.members) == set(group.members)
            role = "true" if true_group.support == group.support else "affiliated feature of a true group"
            verdict = f"{role}{'' if complete else ', incomplete'} (true weight {weight:+.2f})"
        confidence = "" if group.confidence is None else f"{group.confidence:.2f}"
        table.add_row(
            confidence, str(group.support), affiliated or "–", f"{group.weight:+.4f}" if group.weight else "0", verdict
        )
    return table
