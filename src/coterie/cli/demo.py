"""The demonstration: groups found in data whose groups are known."""

from __future__ import annotations

import time

from rich.console import Console
from rich.table import Table
from sklearn.utils import Bunch

from coterie.datasets import make_support_affiliated
from coterie.discovery.classifier import GroupDiscoveryClassifier
from coterie.metrics import group_recovery

_N_SELECTED = 16


def run_demo(seed: int, n_features: int = 10_000, console: Console | None = None) -> None:
    """Make the data, discover the groups, print them next to the truth.

    Parameters
    ----------
    seed : int
        Seed of the data.
    n_features : int, default=10000
        Number of features.
    console : rich.console.Console, optional
        Where to print.
    """
    console = console or Console()
    data = make_support_affiliated(n_features=n_features, random_state=seed)
    n_samples = len(data.y)
    console.print(
        f"Synthetic data: {n_samples:,} samples, {n_features:,} features; {len(data.groups)} groups with "
        f"{len(data.groups.members)} features decide the class, the rest is noise."
    )
    model = GroupDiscoveryClassifier(_N_SELECTED, n_features_per_round=1, C=10.0)
    began = time.perf_counter()
    model.fit(data.X, data.y)
    seconds = time.perf_counter() - began
    console.print(_table(model, data))
    found = {group.support for group in model.groups_}
    missed = [
        f"{group.support} (weight {weight:+.2f})"
        for group, weight in zip(data.groups, data.weights, strict=True)
        if group.support not in found
    ]
    recovery = group_recovery(data.groups, model.groups_)
    console.print(f"Recovery: {recovery:.1%} of the true features stand in their right group and role.")
    if missed:
        console.print(f"Not found: {', '.join(missed)}.")
    console.print(
        f"Training accuracy {model.score(data.X, data.y):.1%} with {_N_SELECTED} features; relative optimality gap "
        f"{model.dual_gap_:.1e}; {model.n_correlations_evaluated_:,} of {model.n_correlations_possible_:,} correlations "
        f"evaluated; {seconds:.1f} s."
    )


def _table(model: GroupDiscoveryClassifier, data: Bunch) -> Table:
    """One row a group: what was found, and whether it is true."""
    truth = {
        int(feature): (group, weight)
        for group, weight in zip(data.groups, data.weights, strict=True)
        for feature in group.members
    }
    table = Table(title="Groups, in order of discovery", title_justify="left")
    table.add_column("support", justify="right")
    table.add_column("affiliated (correlation)")
    table.add_column("weight", justify="right")
    table.add_column("truth")
    for group in model.groups_:
        affiliated = ", ".join(f"{j} ({r:+.2f})" for j, r in zip(group.affiliated, group.correlation, strict=True))
        verdict = "false: noise"
        if group.support in truth:
            true_group, weight = truth[group.support]
            complete = set(true_group.members) == set(group.members)
            role = "true" if true_group.support == group.support else "affiliated of a true one"
            verdict = f"{role}{'' if complete else ', incomplete'} (true weight {weight:+.2f})"
        table.add_row(str(group.support), affiliated or "–", f"{group.weight:+.4f}", verdict)
    return table
