"""``coterie profile``: distribution of the correlations of all pairs of features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from coterie.cli.data import Cluster, DataOptions, DataPath
from coterie.cli.options import option
from coterie.cli.output import Console, command_line
from coterie.cli.parameters import parse_value


def profile(
    data: DataPath,
    *,
    pairs: Annotated[
        int | None, option(None, "Number of random pairs to sample, in place of all pairs.", common=True, min=1)
    ] = None,
    bins: Annotated[str, option(None, "Number of bins, or edges such as 0,0.5,0.7,1.", common=True)] = "10",
    confidence: Annotated[float, option(None, "Confidence level of the limits, with --pairs.")] = 0.95,
    random_state: Annotated[int | None, option(None, "Seed of the sample of pairs.", default="random")] = None,
    n_jobs: Annotated[int | None, option(None, "Number of threads.", default="all cores")] = None,
    png: Annotated[
        Path | None,
        option("Output", "File for a figure of the profile (.png, .svg, .pdf).", common=True, metavar="FILE"),
    ] = None,
    html: Annotated[Path | None, option("Output", "File for a report (.html).", common=True, metavar="FILE")] = None,
    csv: Annotated[Path | None, option("Output", "File for a table of the bins.", common=True, metavar="FILE")] = None,
    options: DataOptions,
    cluster: Cluster,
    console: Console,
) -> None:
    """Count the absolute correlations of all pairs of features exactly, or estimate the counts from random pairs.

    Examples:
        - coterie profile data.svm
        - coterie profile cohort.bed --png profile.png --html profile.html
        - coterie profile huge.store --pairs 1000000 --bins 0,0.5,0.7,0.9,1
        - coterie profile shared/x.store --dask tcp://scheduler:8786
    """
    from coterie.correlation.profile import correlation_profile
    from coterie.files import claimed_files, new_file
    from coterie.report import report
    from coterie.report.table import write_csv

    with claimed_files(png, csv, html):
        with cluster.opened(data, options, console) as dataset:
            found = correlation_profile(
                dataset.source,
                n_pairs=pairs,
                bins=parse_value(bins),
                confidence=confidence,
                n_jobs=n_jobs,
                random_state=random_state,
                verbose=console.verbose,
            )
        if csv is not None:
            write_csv(csv, found.rows())
        if png is not None:
            figure = found.plot(title=data.name)
            with new_file(png) as partial:
                figure.savefig(partial, format=png.suffix.lstrip(".") or "png", dpi=150)
        if html is not None:
            report(found, name=data.name, command=command_line(), path=html)
    console.show(found.text())
    for file in (csv, png, html):
        if file is not None:
            console.show(f"Written: {file}")
    console.result(found.to_dict())
