"""``coterie discover``: groups of features in a file, written to a folder with a report."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from coterie.cli.blocks import BlockOptions, show_blocks
from coterie.cli.columns import opening_options, with_labels
from coterie.cli.data import Cluster, DataOptions, DataPath, settle_task, stem
from coterie.cli.offset import OffsetOptions
from coterie.cli.options import option
from coterie.cli.output import Console, command_line
from coterie.cli.parameters import Settings, parameter_options, parse_value
from coterie.cli.survival import SurvivalOptions
from coterie.interruption import stopping_gracefully
from coterie.methods import DISCOVERY, DISCOVERY_CV, DISCOVERY_DEFAULTS

if TYPE_CHECKING:
    import numpy as np

    from coterie import Discovery
    from coterie.data import Dataset
    from coterie.estimators.base import GroupDiscovery
    from coterie.groups.columns import Column

_GENETICS = "Genetics"
_VALIDATION, _SEARCH = "Validation", "Group discovery"
_SHOWN_GROUPS = 20
_SMALLEST_GAP = 1e-12
_SHOWN_MEMBERS = 4
# Units of the effects.
_EFFECTS = {"classification": "log-odds", "regression": "change of the target", "survival": "log hazard ratio"}

DiscoverTask = Annotated[
    str,
    option(
        "Data",
        "Kind of prediction: auto (by the labels), classification, regression, counts (--exposure), survival (with --time and "
        "--event), or one-class. For one-class, labels 1 (normal) and -1 (outlier) allow validation. Others are not used.",
        "--task -t",
        common=True,
    ),
]
Validation = Annotated[
    Settings,
    parameter_options(
        "coterie.discovery:discover",
        panels={_VALIDATION: ("fast", "n_pairs", "n_permutations", "fdr")},
        common=("fast", "fdr"),
        texts={"fast": "Fit once with given settings, without validation and confidences."},
        defaults_of="coterie.confidence.estimation:group_confidence",
    ),
]
Parameters = Annotated[
    Settings,
    parameter_options(
        *DISCOVERY_CV.values(),
        *DISCOVERY.values(),
        panels={
            "": ("verbose", "nested", "compatibility"),
            _VALIDATION: (
                "max_features_to_select",
                "min_features_to_select",
                "n_features_to_select",
                "Cs",
                "C",
                "thresholds",
                "rule",
                "cv",
                "scoring",
            ),
            _SEARCH: "*",
        },
        common=("max_features_to_select", "threshold", "scoring"),
        texts={
            "n_features_to_select": "Number of support features, or their fraction of all features. auto continues until the "
            "objective no longer changes.",
            "max_features_to_select": "Largest number of support features to choose.",
            "min_features_to_select": "Smallest number of support features to choose.",
            "threshold": "Smallest absolute correlation of two features of the same group.",
            "affiliates": "Affiliated features: complete for all correlated features, ranked for those encountered during the "
            "search only.",
            "n_features_per_round": "Number of support features selected per round.",
            "n_bins": "Number of bins per feature, for --correlation su.",
            "rule": "Choose the best mean score, or the fewest features within one standard error of it.",
            "cv_part": "Samples from which a fold of --embedded-cv proposes features: all others, or its own.",
            "max_rounds": "Largest number of rounds.",
            "tol": "Relative tolerance of the solver.",
            "C": "Weight of the loss.",
            "Cs": "Values of C to choose from, or their number.",
            "thresholds": "Thresholds to choose from.",
            "predict_with": "Features that predict: the support features, or whole groups. Of support,groups, validation "
            "chooses. auto: groups for classes and survival, both for numbers, support for one class; support for more than "
            "2,000 samples.",
            "contamination": "Share of the normal samples to reject (one-class), at most 0.5.",
            "threshold_rule": "Threshold (one-class): the quantile at --contamination of training samples or, with --fast, of "
            "held_out ones, or the margin of the papers.",
            "loss": "Loss function: squared_hinge or logistic for classes; squared, huber, quantile, poisson or gamma for "
            "numbers.",
            "quantile": "Quantile that --loss quantile predicts, such as 0.9. The default is the median.",
            "ties": "Rule for tied event times: breslow or efron.",
            "reuse_features": "Allow a round to select features of earlier rounds again.",
            "fit_intercept": "Fit no intercept.",
            "scale_targets": "Use several labels as they are. Otherwise their units have no effect on the selected features.",
            "standardize": "Divide features by their standard deviation. auto: yes, but validation chooses if at least nine "
            "of ten values are zero.",
            "class_weight": 'Weights of the classes, such as {"case": 2, "control": 1}, or balanced.',
            "equal_classes": "Give each of more than two classes an equal share in the choice of features.",
            "cv": "Number of folds; with --fast, of embedded cross-validation.",
            "scoring": "Score to validate with: a name of scikit-learn. The default is roc_auc or balanced_accuracy if a "
            "class is rare.",
            "embedded_cv": "Number of folds of embedded cross-validation, which the papers use to select features.",
            "fixed_features": "Features that are always support features: names or indices, or @file with one per line.",
            "correlation": "Measure of correlation; none for no groups.",
            "representative": "Support feature of a group: the one with the best score, or the medoid.",
            "keep": "Features that the saved model returns from transform: support features or whole groups.",
            "n_jobs": "Number of threads; does not change the result.",
            "random_state": "Seed of folds, half-samples and permutations.",
        },
        defaults={
            **DISCOVERY_DEFAULTS,
            "Cs": "3; 4 for regression; 4 for survival; 10 for one-class",
            "n_features_to_select": "chosen by validation; with --fast 100, or auto for up to 100 features",
            "C": "chosen by validation; auto with --fast, 1.0 for one-class",
            "thresholds": "the value of --threshold",
            "loss": "squared_hinge; squared for regression; poisson for counts",
            "class_weight": "none",
            "scoring": "accuracy; r2 for regression; concordance_index for survival; balanced_accuracy for one-class",
            "embedded_cv": "none",
            "fixed_features": "none",
            "max_rounds": "no limit",
            "n_jobs": "all cores",
            "random_state": 0,
        },
    ),
]


def discover(
    data: DataPath,
    *,
    options: DataOptions,
    task: DiscoverTask = "auto",
    survival: SurvivalOptions,
    blocks: BlockOptions,
    parameters: Parameters,
    validation: Validation,
    genetics: Genetics,
    offsets: OffsetOptions,
    cluster: Cluster,
    output: Annotated[
        Path | None,
        option(
            "Output",
            "Folder for the results.",
            "--output -o",
            common=True,
            metavar="FOLDER",
            default="name of the data with -groups",
        ),
    ] = None,
    model: Annotated[Path | None, option("Output", "Also save the model to this file.", "--model -m", metavar="FILE")] = None,
    overwrite: Annotated[bool, option("Output", "Replace existing results.", "--overwrite", common=True)] = False,
    no_samples: Annotated[
        bool,
        option(
            "Output",
            "Leave values of single samples out of all files, for confidential data. Figures show means and shares only, and "
            "annotated.h5ad is not written.",
            "--no-samples",
        ),
    ] = False,
    image_shape: Annotated[
        str | None,
        option(
            "Output",
            "Size of the images whose pixels are the features. The report then has a map of them.",
            metavar="ROWS,COLUMNS",
        ),
    ] = None,
    console: Console,
) -> None:
    """Find groups of features that predict the labels, validate them, and write a folder with a report.

    Cross-validation chooses the number of features and all settings that are not given. The reported score is that of the
    whole procedure on held-out samples. The confidence of a group is the share of half-samples in which it is found again.

    The folder contains report.html, groups.csv (one row per feature), result.json and model.coterie (for coterie predict).
    Classification adds classes.csv, genotypes add groups.clumps, and AnnData adds annotated.h5ad. Ctrl-C ends the search
    after the current round and keeps the groups found so far.

    Examples:
        - coterie discover genes.csv --label diagnosis
        - coterie discover genes.csv --label diagnosis -o results --max-features-to-select 60
        - coterie discover data.svm --n-features-to-select 50 --C 1 --fast
        - coterie discover tumours.csv --time days --event died
        - coterie discover plants.csv --label height --label yield
        - coterie discover cohort.bed --pheno pheno.txt --pheno-name HEIGHT --covar pcs.txt --covar-name AGE,PC1-PC10
        - coterie discover visits.csv --label visits --task counts --exposure months
        - coterie discover cells.h5ad --label disease --sample-groups donor
        - coterie discover cohort.bed --chromosome 7 --polygenic-offset -o chromosome-7
        - coterie discover rna.csv --label diagnosis --block protein=protein.csv
        - coterie discover digits.npz --image-shape 28,28
        - coterie discover shared/x.store --dask tcp://scheduler:8786
    """
    folder = output if output is not None else Path(f"{stem(data)}-groups")
    from coterie.discovery import check_settings, task_by_loss, validates
    from coterie.files import claimed, claimed_files
    from coterie.inputs.targets import settle_by_labels
    from coterie.persistence import save
    from coterie.report.confidential import without_samples
    from coterie.report.folder import check_output, write_result

    with claimed(folder), claimed_files(model):
        check_output(folder, overwrite=overwrite)
        task = survival.settle(task_by_loss(task, parameters), options.labels)
        check_settings(task, parameters, **validation)  # before the data, which may take long to read
        genetics.check()
        offsets.check(cluster.dask is not None)
        shape = _image_shape(image_shape)
        used = survival.data_options(options, data) if task == "survival" else opening_options(options, data)
        with cluster.opened(data, used, console, adjusts=True, validates=True, weighs=True) as opened:
            labelled = survival.with_targets(opened, data, used) if task == "survival" else with_labels(opened, data, options)
            labelled = blocks.joined(labelled, data, options, console)
            settled = settle_task(task, labelled.y, data)
            if task == "auto" and labelled.y is not None:
                settled = settle_by_labels(labelled.y, labelled.sample_groups).task
            dataset, offset = offsets.apply(labelled, settled, console, parameters.get("n_jobs"))
            parameters = genetics.with_distance(_with_labels(parameters, dataset), dataset)
            if settled == "one-class" and validates(settled, dataset.y, parameters, fast=validation.get("fast", False)):
                console.note("The model is fitted to samples labelled 1. Samples labelled -1 are outliers for validation.")
            label = ", ".join(options.labels) if options.labels else used.label
            about = {"task": task, "label": label, "image_shape": shape, "offset": offset}
            result, code = run(dataset, console, **about, **validation, **parameters)
            genetics.add_association(result.model, dataset, settled, offset)
            if no_samples:
                result = without_samples(result)
            with console.collecting_warnings():
                files = write_result(
                    folder,
                    result,
                    overwrite=overwrite,
                    extras=partial(write_extras, dataset=dataset, result=result, genetics=genetics, samples=not no_samples),
                )
            if model is not None:
                save(result.model, model)
    show_groups(result, console)
    show_blocks(result, console)
    console.show(f"Written to {folder}: {', '.join(files)}.")
    console.result({"output": str(folder), "files": files, **result.to_dict()})
    if code:
        raise typer.Exit(code)


def run(dataset: Dataset, console: Console, **settings: Any) -> tuple[Discovery, int]:
    """Return the discovery in a data set and the exit code. A signal ends the search early and keeps its groups so far."""
    import coterie

    if settings.get("random_state", 0) is None:  # the same command must give the same result
        del settings["random_state"]
    with console.collecting_warnings(), stopping_gracefully(console.note) as request:
        found = coterie.discover(dataset, verbose=console.verbose, **settings)
    if found.interrupted and found.confidence is None and not settings.get("fast") and settings.get("n_pairs") != 0:
        console.note("Confidences were not estimated because the command was stopped.")
    texts = dict.fromkeys([*console.warnings, *found.warnings])  # the console also has those of opening the data
    found = replace(found, command=command_line() or found.command, warnings=tuple(texts))
    return found, 0 if request.signal is None else 128 + request.signal


def _image_shape(text: str | None) -> tuple[int, ...] | None:
    """Return the rows and columns of the images whose pixels are the features."""
    sizes = None if text is None else parse_value(text)
    if text is not None and not isinstance(sizes, list):
        raise ValueError(f"--image-shape {text} must be rows and columns separated by a comma, such as 28,28.")
    return None if sizes is None else tuple(sizes)


def _with_labels(parameters: Settings, dataset: Dataset) -> Settings:
    """Return parameters with class weights by label. Keys are text in JSON, but labels may be numbers."""
    weights = parameters.get("class_weight")
    if not isinstance(weights, dict) or dataset.y is None:
        return parameters
    labels = {str(label): label for label in dict.fromkeys(dataset.y.tolist())}
    return {**parameters, "class_weight": {labels.get(key, key): weight for key, weight in weights.items()}}


def write_extras(folder: Path, dataset: Dataset, result: Discovery, genetics: Genetics, *, samples: bool = True) -> None:
    """Write the additional files for classes, PLINK and AnnData. Without ``samples``, no file has values of single samples."""
    from coterie.report.confidential import FEWEST

    if "chromosome" in dataset.feature_info:  # PLINK, or a store made from it
        from coterie.report.table import CLUMPS, write_clumps

        write_clumps(folder / CLUMPS, result, **genetics.windows)
    if not samples and min((result.target.get("classes") or {"": FEWEST}).values()) < FEWEST:
        return  # the mean of a class with one sample is its value
    if dataset.format == "h5ad":
        _write_cells(folder, dataset, result, samples=samples)
    elif result.model.groups_.classes is not None:
        from coterie import class_statistics
        from coterie.report.table import CLASSES, write_classes

        write_classes(folder / CLASSES, class_statistics(dataset, None, result.model))


def _write_cells(folder: Path, dataset: Dataset, result: Discovery, *, samples: bool) -> None:
    """Write a copy of an AnnData file with the groups, and the table of classes (from ``raw`` where scanpy would use it).

    The copy contains the samples.
    """
    from coterie.report.annotated import ANNOTATED, classes_in, read_quietly, write_annotated
    from coterie.report.table import CLASSES, write_classes

    adata, layer = read_quietly(Path(dataset.path)), dataset.notes.get("layer")
    if result.model.groups_.classes is not None:
        write_classes(folder / CLASSES, classes_in(adata, result, str(result.target["label"]), layer=layer))
    if samples:
        write_annotated(folder / ANNOTATED, adata, result, layer=layer)


@dataclass(frozen=True)
class Genetics:
    """Options for genotypes: distance within groups, association of single features, and windows of clumps."""

    max_distance: Annotated[
        float | None,
        option(
            _GENETICS,
            "Largest distance (kb) of a SNP from the support SNP of its group, on the same chromosome. SNPs beyond it do not "
            "join the group, however correlated they are.",
            metavar="KB",
            default="no limit",
        ),
    ] = None

    association: Annotated[
        bool | None,
        option(
            _GENETICS,
            "Add effect and p-value of each single feature in the groups, adjusted for the covariates.",
            "--association/--no-association",
            default="on for PLINK data",
        ),
    ] = None
    clump_kb: Annotated[
        float, option(_GENETICS, "Largest distance (kb) from the support SNP in groups.clumps.", default="250")
    ] = 250.0
    clump_r2: Annotated[
        float | None,
        option(_GENETICS, "Smallest r² with the support SNP in groups.clumps.", default="the whole group"),
    ] = None
    clump_p2: Annotated[
        float, option(_GENETICS, "Upper limit of the p-values in column SP2 of groups.clumps.", default="1")
    ] = 1.0

    @property
    def windows(self) -> Settings:
        """Arguments of :meth:`coterie.FeatureGroups.clumps`."""
        return {"kb": self.clump_kb, "r2": self.clump_r2, "p2": self.clump_p2}

    def check(self) -> None:
        """Raise a ``ValueError`` for values out of range, before the data are read."""
        for name, value, highest in (
            ("max-distance", self.max_distance, None),
            ("clump-kb", self.clump_kb, None),
            ("clump-r2", self.clump_r2, 1.0),
            ("clump-p2", self.clump_p2, 1.0),
        ):
            if value is not None and (not 0 <= value < math.inf or (highest is not None and value > highest)):
                raise ValueError(f"--{name} {value:g} must be at least 0{' and at most 1' if highest else ''}.")

    def with_distance(self, parameters: Settings, dataset: Dataset) -> Settings:
        """Return the parameters with the largest distance within a group, if the option is given."""
        if self.max_distance is None:
            return parameters
        missing = [name for name in ("chromosome", "position") if name not in dataset.feature_info]
        if missing:
            raise ValueError(
                f"--max-distance requires the {missing[0]} of each feature, which {dataset.path} does not have. Use PLINK "
                "files or a store made from them, or remove --max-distance."
            )
        import numpy as np

        from coterie import ChromosomeDistance

        chromosome, position = (np.asarray(dataset.feature_info[name]) for name in ("chromosome", "position"))
        return {**parameters, "compatibility": ChromosomeDistance(chromosome, position, 1000.0 * self.max_distance)}

    def add_association(self, model: GroupDiscovery, dataset: Dataset, task: str, offset: np.ndarray | None) -> None:
        """Add effects and p-values to the groups of a fitted model, if the options and the task allow it."""
        numeric = task == "regression" and not hasattr(model, "target_names_")
        possible = numeric or (task == "classification" and len(model.classes_) == 2)
        if self.association and not possible:
            raise ValueError("--association requires two classes or one numeric target. Remove --association.")
        if not possible or not (self.association if self.association is not None else "chromosome" in dataset.feature_info):
            return
        from coterie import association

        kind = "linear" if task == "regression" else "logistic"
        model.groups_ = association(dataset, features=model.groups_, offset=offset, model=kind).attach(model.groups_)


def show_groups(result: Discovery, console: Console) -> None:
    """Print the groups as a table, the main figures (unless the command is quiet) and, last, the judgement."""
    from coterie.groups.columns import reading_table

    groups = result.groups
    columns, rows = reading_table("terminal", groups[:_SHOWN_GROUPS], result.context)
    table = Table(title="Groups, in order of discovery", title_justify="left")
    for column in columns:
        # Places are aligned like numbers, so that positions line up.
        right = column.numeric or column.name == "place"
        table.add_column(column.title, justify="right" if right else "left", overflow="ellipsis" if right else "fold")
    for row in rows:
        table.add_row(*(_cell(column, value) for column, value in zip(columns, row, strict=True)))
    console.show(table)
    if len(groups) > _SHOWN_GROUPS:
        console.show(f"… and {len(groups) - _SHOWN_GROUPS:,} more groups in groups.csv.")
    if any(column.name == "p_value" for column in columns):
        console.show("P-values are those of single features on the samples that selected them. They are too small for a test.")
    if not console.quiet:
        console.show(_figures(result))
    if result.judgement:
        console.show(result.judgement)
    else:
        console.show("Scores are from the training data only. Run without --fast for held-out scores and confidences.")


def _figures(result: Discovery) -> Table:
    """Return the most important figures as a table of two columns. All figures are in result.json and in the report."""
    from coterie.report.judgement import figure_text, interval_text

    facts: dict[str, str] = {}
    held_out, model = result.held_out, result.model
    if held_out is not None:
        facts[f"held-out {held_out.score}"] = (
            f"{figure_text(held_out.value)}{interval_text(held_out.interval, held_out.level)}"
        )
        facts[f"baseline ({held_out.baseline})"] = figure_text(held_out.constant)
    elif result.training_score is not None:
        name = next((name for name in result.summary if name.endswith("on the training data")), "training score")
        facts[name] = figure_text(result.training_score)
    if any(group.effect is not None for group in result.groups) and result.task in _EFFECTS:
        unit = "log rate ratio" if any(group.rate_ratio is not None for group in result.groups) else _EFFECTS[result.task]
        facts["effect"] = f"{unit} per standard deviation{_of_class(result)}"
    n_features = sum(map(len, result.groups))
    facts["groups"] = f"{len(result.groups):,} with {n_features:,} feature{'s' * (n_features != 1)}"
    facts["C"] = f"{model.C_:.4g}"
    # Smaller gaps are rounding errors, whose digits differ between processors.
    gap = model.dual_gap_
    facts["relative duality gap"] = f"< {_SMALLEST_GAP:.0e}" if gap < _SMALLEST_GAP else f"{gap:.1e}"
    if not math.isnan(result.seconds):
        facts["seconds"] = f"{result.seconds:.3g}"
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in facts.items():
        table.add_row(Text(name), Text(value))
    return table


def _of_class(result: Discovery) -> str:
    """Return the class or the direction that positive effects favour."""
    classes = result.model.classes_.tolist() if result.task == "classification" else []
    if len(classes) == 2:
        return f", positive for {classes[1]}"
    if len(classes) > 2:
        return ", of the class with the largest one"
    return ", positive for earlier events" if result.task == "survival" else ""


def _cell(column: Column, value: Any) -> Text:
    """Return a cell as ``Text``, so that markup in names is shown as it is."""
    if column.kind == "members":
        from coterie.groups.columns import listed

        names, correlation = value
        return Text(listed(names, correlation, _SHOWN_MEMBERS))
    return Text(column.text(value))
