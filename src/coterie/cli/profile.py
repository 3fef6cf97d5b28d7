"""``coterie profile``: how the correlations of all pairs of features are distributed."""

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
    pairs: Annotated[int | None, option(None, "Draw so many pairs at random instead of counting all.")] = None,
    bins: Annotated[str, option(None, "Number of bins, or edges such as 0,0.5,0.7,1.")] = "10",
    confidence: Annotated[float, option(None, "Confidence of the limits of a sample.")] = 0.95,
    random_state: Annotated[int | None, option(None, "Seed of the drawing.")] = None,
    n_jobs: Annotated[int | None, option(None, "Number of threads; all cores by default.")] = None,
    png: Annotated[Path | None, option("Output", "Draw the profile to this file (.png, .svg, .pdf).")] = None,
    html: Annotated[Path | None, option("Output", "Write a page to read to this file (.html).")] = None,
    csv: Annotated[Path | None, option("Output", "Write the bins to this file.")] = None,
    options: DataOptions,
    cluster: Cluster,
    console: Console,
) -> None:
    """Count the absolute correlations of all pairs of features, exactly, or of pairs drawn at random.

    Examples:
        coterie profile data.svm
        coterie profile cohort.bed --png profile.png --html profile.html
        coterie profile huge.store --pairs 1000000 --bins 0,0.5,0.7,0.9,1
        coterie profile shared/x.store --dask tcp://scheduler:8786
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
