"""Options for offsets: a file, or a polygenic offset made from the genotypes, and the chromosome to analyse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from coterie.cli.options import option
from coterie.cli.output import Console

if TYPE_CHECKING:
    import numpy as np

    from coterie.data import Dataset

_PANEL = "Genetics"


@dataclass(frozen=True)
class OffsetFile:
    """Options of commands that read an offset."""

    offset: Annotated[
        Path | None,
        option(
            _PANEL,
            "File with an offset per sample, which the model takes into account: predictions of REGENIE (.loco; see "
            "--chromosome), lines with FID, IID and offset, or one number per line in the order of the samples.",
            metavar="FILE",
        ),
    ] = None
    chromosome: Annotated[
        str | None,
        option(_PANEL, "Chromosome to analyse, which also selects its line of a .loco file.", metavar="NAME", default="all"),
    ] = None

    exposure: Annotated[
        str | None,
        option(
            _PANEL,
            "Column of the data with the exposure of each sample, such as a time at risk (--task counts). Its logarithm is "
            "the offset, and it is not a feature.",
            metavar="COLUMN",
        ),
    ] = None

    def _exposed(self, dataset: Dataset) -> tuple[Dataset, np.ndarray]:
        """Return the data without the column of exposures, and the offset that stands for them."""
        import numpy as np

        from coterie.data.opening import with_features
        from coterie.inputs.offsets import log_exposure

        source, names = dataset.source, dataset.source.feature_names
        place = next((j for j, name in enumerate(names or ()) if name == self.exposure), None)
        if place is None:
            raise ValueError(f"--exposure {self.exposure}: the data have no numeric column of this name.")
        column = source.columns(np.array([place]))
        values = np.asarray(column if isinstance(column, np.ndarray) else column.toarray(), dtype=np.float64)[:, 0]
        narrowed = with_features(dataset, np.delete(np.arange(source.shape[1]), place))
        return replace(narrowed, notes={**narrowed.notes, "exposure": str(self.exposure)}), log_exposure(values)

    def _values_in_file(self, dataset: Dataset) -> np.ndarray | None:
        """Return the offset of the samples of the (narrowed) data; None without a file."""
        if self.offset is None:
            return None
        from coterie.data import read_offset_file

        names = list(dict.fromkeys(map(str, dataset.feature_info.get("chromosome", ()))))
        chromosome = self.chromosome if self.chromosome is not None else names[0] if len(names) == 1 else None
        return read_offset_file(self.offset, dataset.sample_names, dataset.shape[0], chromosome)

    def for_prediction(self, estimator: Any, dataset: Dataset) -> dict[str, Any]:
        """Return the argument ``offset`` for a fitted model."""
        fitted = hasattr(estimator, "offset_coef_")
        if fitted and self.exposure is not None:
            return {"offset": self._exposed(dataset)[1]}
        if not fitted and self.exposure is not None:
            raise ValueError("The model was fitted without an exposure. Remove --exposure.")
        if not fitted and self.offset is not None:
            raise ValueError("The model was fitted without an offset. Remove --offset.")
        if fitted and self.offset is None:
            raise ValueError("The model was fitted with an offset. Pass that of the new samples with --offset or --exposure.")
        return {"offset": self._values_in_file(dataset)} if fitted else {}


@dataclass(frozen=True)
class OffsetOptions(OffsetFile):
    """Options of commands that fit a model with an offset."""

    polygenic_offset: Annotated[
        bool,
        option(
            _PANEL,
            "Account for relatives, populations and polygenic background: each sample has as offset what the other samples "
            "predict for it by a ridge regression on all SNPs. With --chromosome, on those of all other chromosomes.",
            "--polygenic-offset",
        ),
    ] = False

    def check(self, on_cluster: bool) -> None:
        """Raise a ``ValueError`` for options that cannot be combined, before the data are read."""
        if self.offset is not None and self.polygenic_offset:
            raise ValueError("--polygenic-offset and --offset cannot be combined. Remove one of them.")
        if self.exposure is not None and (self.offset is not None or self.polygenic_offset):
            raise ValueError("--exposure and another offset cannot be combined. Remove one of them.")
        local = {
            "--polygenic-offset": self.polygenic_offset,
            "--chromosome": self.chromosome is not None,
            "--exposure": self.exposure is not None,
        }
        for name, given in local.items():
            if given and on_cluster:
                raise ValueError(f"{name} needs all features in this process. Remove --dask.")

    def apply(
        self, dataset: Dataset, task: str, console: Console, n_jobs: int | None = None
    ) -> tuple[Dataset, np.ndarray | None]:
        """Return the data of the chosen chromosome, and the offset of the samples."""
        for name, given in (("--polygenic-offset", self.polygenic_offset), ("--offset", self.offset is not None)):
            if given and task == "one-class":
                raise ValueError(f"{name} cannot be used with --task one-class. Remove it.")
        if self.exposure is not None and task != "counts":
            raise ValueError(f"--exposure requires --task counts, not {task}.")
        if self.exposure is not None:
            return self._exposed(dataset)
        several = dataset.y is not None and (
            len(dataset.y.shape) > 1 or (task == "classification" and len(set(dataset.y.tolist())) > 2)
        )
        if self.polygenic_offset and (several or task == "survival"):
            raise ValueError("--polygenic-offset requires two classes or one numeric trait (--task regression).")
        narrowed = dataset if self.chromosome is None else _of_chromosome(dataset, self.chromosome)
        if self.polygenic_offset:
            return self._with_polygenic(dataset, narrowed, console, n_jobs)
        values = self._values_in_file(narrowed)
        if values is None:
            return narrowed, None
        return replace(narrowed, notes={**narrowed.notes, "offset": str(self.offset)}), values

    def _with_polygenic(
        self, dataset: Dataset, narrowed: Dataset, console: Console, n_jobs: int | None
    ) -> tuple[Dataset, np.ndarray]:
        """Return the data with a note, and the polygenic offset."""
        import numpy as np

        from coterie import polygenic_offset
        from coterie.data.offset_file import chromosome_key

        if "chromosome" not in dataset.feature_info:
            raise ValueError("--polygenic-offset requires genotypes: PLINK data (.bed), or a store made from them.")
        names = list(dict.fromkeys(map(str, dataset.feature_info["chromosome"])))
        chosen = [name for name in names if self.chromosome and chromosome_key(name) == chromosome_key(self.chromosome)]
        if chosen and len(names) == len(chosen):
            raise ValueError("--polygenic-offset with --chromosome requires SNPs of other chromosomes in the data.")
        found = polygenic_offset(dataset, leave_out=chosen, n_jobs=n_jobs)
        values = found.of(chosen[0]) if chosen else found.whole
        scope = f"without chromosome {chosen[0]}" if chosen else "all chromosomes"
        note = f"polygenic, {scope}, heritability {found.heritability:.2g}"
        console.note(f"--polygenic-offset: {scope}, heritability {found.heritability:.2g}")
        if not np.any(values):
            console.note("--polygenic-offset: the SNPs explain nothing of the trait beyond single loci. The offset is 0.")
        return replace(narrowed, notes={**narrowed.notes, "offset": note}), values


def _of_chromosome(dataset: Dataset, chromosome: str) -> Dataset:
    """Return the data with the features of one chromosome."""
    import numpy as np

    from coterie.data.offset_file import chromosome_key
    from coterie.data.opening import with_features

    names = [str(name) for name in dataset.feature_info.get("chromosome", ())]
    if not names:
        raise ValueError("--chromosome requires genotypes: PLINK data (.bed), or a store made from them.")
    kept = np.flatnonzero([chromosome_key(name) == chromosome_key(chromosome) for name in names])
    if not len(kept):
        raise ValueError(
            f"--chromosome {chromosome}: the data have no such SNPs. They have {', '.join(dict.fromkeys(names))}."
        )
    return with_features(dataset, kept)
