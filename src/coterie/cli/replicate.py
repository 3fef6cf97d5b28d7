"""``coterie replicate``: which groups of a result hold in a second cohort."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from coterie.cli.blocks import BlockOptions
from coterie.cli.columns import model_columns, opening_options, with_labels
from coterie.cli.data import DataOptions, DataPath
from coterie.cli.offset import OffsetFile
from coterie.cli.options import option
from coterie.cli.output import Console
from coterie.cli.survival import SurvivalOptions

if TYPE_CHECKING:
    from coterie import Discovery, Replication

_PANEL = "Replication"
_SHOWN_GROUPS = 20


def replicate(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result folder of coterie discover.", show_default=False)],
    data: DataPath,
    *,
    output: Annotated[
        Path | None,
        option(
            "Output",
            "Folder for replication.csv (one row per group), members.csv and replication.json.",
            "--output -o",
            common=True,
            metavar="FOLDER",
        ),
    ] = None,
    overwrite: Annotated[bool, option("Output", "Replace existing results.", "--overwrite", common=True)] = False,
    fwer: Annotated[
        float | None,
        option(_PANEL, "Family-wise error rate (Holm).", common=True, default="0.05"),
    ] = None,
    fdr: Annotated[
        float | None,
        option(_PANEL, "False discovery rate (Benjamini and Hochberg), instead of --fwer.", common=True),
    ] = None,
    which: Annotated[
        str,
        option(
            _PANEL,
            "Groups to test: significant (in the first cohort), all (that the model uses), or auto (those that were "
            "significant, if there are any).",
            metavar="auto|significant|all",
        ),
    ] = "auto",
    joint: Annotated[
        bool | None,
        option(
            _PANEL,
            "Test all groups in one regression, or each alone.",
            "--joint/--alone",
            default="--joint if there are at least ten samples per group",
        ),
    ] = None,
    options: DataOptions,
    survival: SurvivalOptions,
    blocks: BlockOptions,
    offsets: OffsetFile,
    console: Console,
) -> None:
    """Test which groups of a result hold in a second cohort, and score its model there.

    Features are matched by name. If a support feature is absent, another member of its group is tested. The label is the one
    of the result unless --label names another column.

    Examples:
        - coterie replicate results second.csv -o replication
        - coterie replicate results second.bed --pheno second.txt --covar second.cov --fdr 0.1
    """
    from coterie.files import claimed
    from coterie.replication.folder import check_output, write_replication
    from coterie.replication.run import check_options

    level = "auto" if joint is None else joint
    check_options(which=which, joint=level, fwer=fwer, fdr=fdr)
    discovery = _discovery(result)
    with nullcontext() if output is None else claimed(output):
        if output is not None:
            check_output(output, overwrite=overwrite)
        found = _replicated(
            discovery, data, options, survival, blocks, offsets, console, which=which, joint=level, fwer=fwer, fdr=fdr
        )
        files = [] if output is None else write_replication(output, found, overwrite=overwrite)
    _show(found, console)
    if output is not None:
        console.show(f"Written to {output}: {', '.join(files)}.")
    console.result({"result": str(result), "data": str(data), **found.to_dict()})


def _discovery(path: Path) -> Discovery:
    """Return the discovery of a result folder."""
    import coterie

    if not path.exists():
        raise FileNotFoundError(f"Result folder {path} not found. Check the path.")
    if path.is_file():
        raise ValueError(f"{path} is a file, but coterie replicate requires a result folder of coterie discover.")
    found: Discovery = coterie.load(path)
    return found


def _replicated(
    discovery: Discovery,
    path: Path,
    options: DataOptions,
    survival: SurvivalOptions,
    blocks: BlockOptions,
    offsets: OffsetFile,
    console: Console,
    **settings: Any,
) -> Replication:
    """Open the second cohort, and return the replication."""
    import numpy as np

    model = discovery.model
    if options.impute is not None:
        raise ValueError("--impute applies to training only. A model trained with --impute fills missing values itself.")
    if discovery.task == "survival" and not survival.given:
        raise ValueError("The result is about survival times. Name their columns with --time and --event.")
    if options.labels is None and not survival.given and (labels := _labels(discovery)):
        options = replace(options, labels=labels)
        console.note(f"Label: {', '.join(labels)}, as in the first cohort. --label names another one.")
    others = [] if offsets.exposure is None else [offsets.exposure]
    read = np.union1d(model.prediction_features_, model.groups_.members)
    columns_of = partial(model_columns, model, read)
    own = columns_of(path, options, others=others, block=blocks.name_of(path))
    with_times = survival.settle("auto", options.labels) == "survival"
    used = survival.data_options(options, path) if with_times else opening_options(options, path)
    dataset = used.open(path, console, adjusts=True, validates=True, allow_missing=True, **own)
    dataset = survival.with_targets(dataset, path, used) if with_times else with_labels(dataset, path, options)
    dataset = blocks.joined(dataset, path, options, console, columns_of)
    if dataset.y is None:
        raise ValueError(f"{path} has no labels. Name them with --label.")
    known = offsets.for_prediction(model, dataset)
    with console.collecting_warnings():
        return discovery.replicate(dataset, **known, **settings)


def _labels(discovery: Discovery) -> list[str]:
    """Return the labels of the first cohort, if their names are known."""
    targets, label = discovery.target.get("targets"), discovery.target.get("label")
    return list(targets) if targets else [label] if isinstance(label, str) else []


def _show(found: Replication, console: Console) -> None:
    """Print the groups as a table and, last, the judgement."""
    from coterie.replication.result import COLUMNS

    titles, cells = found.table()
    right = {title for title, format in COLUMNS.values() if format}
    table = Table(title="Groups of the first cohort in the second one", title_justify="left")
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", overflow="fold")
    for row in cells[:_SHOWN_GROUPS]:
        table.add_row(*(Text(cell) for cell in row))
    console.show(table)
    if len(cells) > _SHOWN_GROUPS:
        console.show(f"… and {len(cells) - _SHOWN_GROUPS:,} more groups. All are written with --output.")
    console.show(found.judgement)
