"""``coterie convert``: conversion of a data file to a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.data import Cluster, DataOptions, DataPath
from coterie.cli.options import option
from coterie.cli.output import Console
from coterie.progress import StepProgress


def convert(
    data: DataPath,
    store: Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the new store.", show_default=False)],
    *,
    options: DataOptions,
    memory: Annotated[
        str | None,
        option("Output", "Memory limit, such as 500M or 4G.", "--memory-limit --memory", common=True, metavar="SIZE"),
    ] = None,
    overwrite: Annotated[bool, option("Output", "Replace an existing store.", "--overwrite", common=True)] = False,
    cluster: Cluster,
    console: Console,
) -> None:
    """Convert a data file to a store, which opens quickly and need not fit into memory.

    Examples:
        - coterie convert news20.svm.bz2 news20.store
        - coterie convert cohort.bed cohort.store --phenotype pheno.txt --memory-limit 4G
        - coterie convert shared/huge.svm shared/huge.store --dask tcp://scheduler:8786
    """
    from coterie._parameters import read_size
    from coterie.data import convert as convert_file
    from coterie.data import open_features
    from coterie.files import claimed

    if options.impute is not None:
        raise ValueError(
            "--impute: a store keeps the measured values. Fill missing values before converting, or remove columns (--drop)."
        )
    arguments = options.arguments()
    with (
        claimed(store),
        cluster.client() as client,
        console.collecting_warnings(),
        StepProgress(console.verbose, "convert") as progress,
    ):
        path = (convert_file if client is None else cluster.converting(client))(
            data,
            store,
            overwrite=overwrite,
            memory_limit=None if memory is None else read_size(memory, "--memory-limit"),
            progress=progress.update,
            **arguments,
        )
    n_samples, n_features = open_features(path).source.shape
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    console.show(f"Written to {store}: {n_samples:,} samples, {n_features:,} features, {size / 1e6:,.1f} MB.")
    console.result({"store": str(store), "samples": n_samples, "features": n_features, "bytes": size})
