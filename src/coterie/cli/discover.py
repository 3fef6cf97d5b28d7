"""``coterie discover``: groups of features in a file, and a folder with all about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from coterie.cli.data import Cluster, DataOptions, DataPath, Task, settle_task, stem
from coterie.cli.options import option
from coterie.cli.output import Console, command_line
from coterie.cli.parameters import Settings, parameter_options, parse_value
from coterie.interruption import stopping_gracefully
from coterie.methods import DISCOVERY, DISCOVERY_CV

if TYPE_CHECKING:
    from coterie import Discovery
    from coterie.data import Dataset
    from coterie.estimators.base import GroupDiscovery
    from coterie.groups.columns import Column

Validation = Annotated[
    Settings,
    parameter_options(
        "coterie.discovery:discover",
        only=("fast", "n_pairs", "n_permutations"),
        defaults="coterie.confidence.estimation:group_confidence",
        panel="Validation",
    ),
]
Parameters = Annotated[
    Settings,
    parameter_options(*DISCOVERY.values(), *DISCOVERY_CV.values(), skip=("verbose", "nested"), panel="Group discovery"),
]
_PANEL = "Genetics"
_SHOWN_GROUPS = 20
_SHOWN_MEMBERS = 4


def discover(
    data: DataPath,
    *,
    output: Annotated[
        Path | None, option("Output", "Folder for the results; by default the data's name with -groups.", "--output -o")
    ] = None,
    task: Task = "auto",
    options: DataOptions,
    cluster: Cluster,
    model: Annotated[Path | None, option("Output", "Save the model to this file, too.", "--model -m")] = None,
    overwrite: Annotated[bool, option("Output", "Replace results that are there already.", "--overwrite")] = False,
    image_shape: Annotated[
        str | None,
        option(
            "Output",
            "The features are the pixels of images of this size: report.html has a map of them.",
            metavar="ROWS,COLUMNS",
        ),
    ] = None,
    genetics: Genetics,
    validation: Validation,
    console: Console,
    parameters: Parameters,
) -> None:
    """Find support features and their groups, tell whether they predict and which are real, and write a folder with it all.

    Cross-validation (--cv, 5 folds) chooses the number of features, C, and what else you have not said; the score reported is
    that of the whole procedure on samples it has not seen. The confidence of a group is the share of half-samples in which it
    is found again. --fast does one fit with given settings, judged by its training data alone; --cv is then the papers'
    embedded cross-validation. The folder has groups.csv (one row per feature), result.json, model.coterie (for coterie
    predict), report.html, for classes classes.csv (means, fold changes and detection rates of each feature by class), for SNPs
    groups.clumps, for AnnData a copy with the groups in var and uns (in scanpy's form). Ctrl-C ends the search after the
    current round and keeps what has been found.

    Examples:
        coterie discover data.svm
        coterie discover genes.csv --label diagnosis -o results --max-features-to-select 60
        coterie discover data.svm --n-features-to-select 50 --C 1 --fast
        coterie discover cohort.bed --pheno pheno.txt --pheno-name HEIGHT --covar pcs.txt --covar-name AGE,PC1-PC10
        coterie discover cells.h5ad --label bulk_labels --task classification
        coterie discover digits.npz --image-shape 28,28
        coterie discover shared/x.store --dask tcp://scheduler:8786
    """
    folder = output if output is not None else Path(f"{stem(data)}-groups")
    from coterie.discovery import check_settings, validates
    from coterie.files import claimed, claimed_files
    from coterie.persistence import save
    from coterie.report.folder import check_output, write_result

    with claimed(folder), claimed_files(model):
        check_output(folder, overwrite=overwrite)
        check_settings(task, parameters, **validation)  # before the data, which may take long to read
        genetics.check()
        shape = _image_shape(image_shape)
        with cluster.opened(data, options, console, adjusts=True) as dataset:
            settled = settle_task(task, dataset.y, data)
            parameters = _with_labels(parameters, dataset)
            if settled == "one-class" and validates(settled, dataset.y, parameters, fast=validation.get("fast", False)):
                console.note("Samples labelled 1 are learnt from, those labelled -1 are outliers to judge by.")
            result, code = run(
                dataset, console, task=settled, label=options.label, image_shape=shape, **validation, **parameters
            )
            genetics.add_association(result.model, dataset, settled)
            with console.collecting_warnings():
                files = write_result(
                    folder,
                    result,
                    overwrite=overwrite,
                    extras=partial(write_extras, dataset=dataset, result=result, genetics=genetics),
                )
            if model is not None:
                save(result.model, model)
    show_groups(result, console)
    console.show(f"Written to {folder}: {', '.join(files)}.")
    console.result({"output": str(folder), "files": files, **result.to_dict()})
    if code:
        raise typer.Exit(code)


def run(dataset: Dataset, console: Console, **settings: Any) -> tuple[Discovery, int]:
    """The discovery in a data set, and the exit code; a signal ends the search early, and what has been found is kept."""
    import coterie

    if settings.get("random_state", 0) is None:  # the same command gives the same result
        del settings["random_state"]
    with console.collecting_warnings(), stopping_gracefully(console.note) as request:
        found = coterie.discover(dataset, verbose=console.verbose, **settings)
    if found.interrupted and found.confidence is None and not settings.get("fast") and settings.get("n_pairs") != 0:
        console.note("The confidences were left out.")
    said = dict.fromkeys([*console.warnings, *found.warnings])  # also those of opening the data
    found = replace(found, command=command_line() or found.command, warnings=tuple(said))
    return found, 0 if request.signal is None else 128 + request.signal


def _image_shape(text: str | None) -> tuple[int, ...] | None:
    """Rows and columns of the images whose pixels the features are."""
    sizes = None if text is None else parse_value(text)
    if text is not None and not isinstance(sizes, list):
        raise ValueError(f"--image-shape {text!r} must be rows and columns with a comma between, such as 28,28.")
    return None if sizes is None else tuple(sizes)


def _with_labels(parameters: Settings, dataset: Dataset) -> Settings:
    """Weights of classes under the labels themselves: JSON has text for keys, labels may be numbers."""
    weights = parameters.get("class_weight")
    if not isinstance(weights, dict) or dataset.y is None:
        return parameters
    labels = {str(label): label for label in dict.fromkeys(dataset.y.tolist())}
    return {**parameters, "class_weight": {labels.get(key, key): weight for key, weight in weights.items()}}


def write_extras(folder: Path, dataset: Dataset, result: Discovery, genetics: Genetics) -> None:
    """What users of classes, PLINK and AnnData expect on top."""
    if "chromosome" in dataset.feature_info:  # PLINK, or a store made of it
        from coterie.report.table import CLUMPS, write_clumps

        write_clumps(folder / CLUMPS, result, **genetics.windows)
    if dataset.format == "h5ad":
        _write_cells(folder, dataset, result)
    elif result.model.groups_.classes is not None:
        from coterie import class_statistics
        from coterie.report.table import CLASSES, write_classes

        write_classes(folder / CLASSES, class_statistics(dataset, None, result.model))


def _write_cells(folder: Path, dataset: Dataset, result: Discovery) -> None:
    """A copy of an AnnData file with the groups in it, and the table of classes, from ``raw`` where scanpy would take it."""
    from coterie.report.annotated import ANNOTATED, classes_in, read_quietly, write_annotated
    from coterie.report.table import CLASSES, write_classes

    adata, layer = read_quietly(Path(dataset.path)), dataset.notes.get("layer")
    if result.model.groups_.classes is not None:
        write_classes(folder / CLASSES, classes_in(adata, result, str(result.target["label"]), layer=layer))
    write_annotated(folder / ANNOTATED, adata, result, layer=layer)


@dataclass(frozen=True)
class Genetics:
    """Options for genotypes: the association of single features, and the windows of clumps."""

    association: Annotated[
        bool | None,
        option(
            _PANEL,
            "Effect and p-value of each feature of the groups by itself, beside the covariates; the default for PLINK.",
            "--association/--no-association",
        ),
    ] = None
    clump_kb: Annotated[float, option(_PANEL, "groups.clumps: SNPs within so many kb of the support SNP.")] = 250.0
    clump_r2: Annotated[
        float | None,
        option(_PANEL, "groups.clumps: SNPs with at least this r² to the support SNP; the whole group by default."),
    ] = None
    clump_p2: Annotated[float, option(_PANEL, "groups.clumps: SNPs listed in SP2 have a smaller p-value.")] = 1.0

    @property
    def windows(self) -> Settings:
        """For :meth:`coterie.FeatureGroups.clumps`."""
        return {"kb": self.clump_kb, "r2": self.clump_r2, "p2": self.clump_p2}

    def check(self) -> None:
        """Refuse windows that are none, before anything is read."""
        for name, value, most in (("kb", self.clump_kb, None), ("r2", self.clump_r2, 1.0), ("p2", self.clump_p2, 1.0)):
            if value is not None and (value < 0 or (most is not None and value > most)):
                raise ValueError(f"--clump-{name} {value:g} must be at least 0{' and at most 1' if most else ''}.")

    def add_association(self, model: GroupDiscovery, dataset: Dataset, task: str) -> None:
        """Let the groups of a fitted model have effects and p-values, where they are wanted and there are any."""
        possible = task == "regression" or (task == "classification" and len(model.classes_) == 2)
        if self.association and not possible:
            raise ValueError("--association needs two classes or numbers to predict; leave it out.")
        if not possible or not (self.association if self.association is not None else "chromosome" in dataset.feature_info):
            return
        from coterie import association

        kind = "linear" if task == "regression" else "logistic"
        model.groups_ = association(dataset, features=model.groups_, model=kind).attach(model.groups_)


def show_groups(result: Discovery, console: Console) -> None:
    """The groups as a table, and the main figures."""
    from coterie.groups.columns import reading_table

    groups = result.groups
    columns, rows = reading_table("terminal", groups[:_SHOWN_GROUPS], result.context)
    table = Table(title="Groups, in order of discovery", title_justify="left")
    for column in columns:
        # Places are aligned like numbers, so that positions stand below each other.
        right = column.numeric or column.name == "place"
        table.add_column(column.title, justify="right" if right else "left", overflow="ellipsis" if right else "fold")
    for row in rows:
        table.add_row(*(_cell(column, value) for column, value in zip(columns, row, strict=True)))
    console.show(table)
    if len(groups) > _SHOWN_GROUPS:
        console.show(f"… and {len(groups) - _SHOWN_GROUPS:,} more groups in groups.csv.")
    if any(column.name == "p_value" for column in columns):
        console.show("P-values are those of single features, from the same samples that chose them: too small to be tests.")
    if result.judgement:
        console.show(result.judgement)
    else:
        console.show("Figures of the training data alone; without --fast, held-out scores and confidences tell what holds.")
    console.show("; ".join(f"{words}: {_figure(value)}" for words, value in result.summary.items() if value is not None))


def _cell(column: Column, value: Any) -> Text:
    """A cell without markup, whatever is in the names."""
    if column.kind == "members":
        from coterie.groups.columns import listed

        names, correlation = value
        return Text(listed(names, correlation, _SHOWN_MEMBERS))
    return Text(column.text(value))


def _figure(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
