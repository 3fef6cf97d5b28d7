"""Base class of the readers of genotypes: variants as features, and phenotypes, covariates and groups from other files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coterie.bounds import require_memory
from coterie.data.covariates import CovariateFile, is_missing_code, read_covariate_file, read_sample_table
from coterie.data.errors import DataFileError
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.columns import suggest_names
from coterie.data.readers.reader import Reader, group_labels, labelled_samples, parse_labels

_CASE_CONTROL = frozenset(["-9", "0", "1", "2"])
# Memory per byte of a table: a line of 30 bytes becomes a list of six strings.
_MEMORY_PER_BYTE = 20


class Sample(NamedTuple):
    """A sample: family, name, and phenotype ("" for none). Files without families have None."""

    fid: str | None
    iid: str
    phenotype: str = ""

    @property
    def name(self) -> str:
        """Name with the family."""
        return self.iid if self.fid is None else f"{self.fid}:{self.iid}"


class Variant(NamedTuple):
    """Place and alleles of a variant, whose dosage is that of ``allele_1``."""

    name: str
    chromosome: str
    position: int
    allele_1: str
    allele_2: str


class GenotypeReader(Reader):
    """Base class of the readers of genotypes, which yield blocks of variants for the samples ``_keep``.

    A subclass defines :meth:`_open_samples`, and its docstring repeats the parameters.

    Parameters
    ----------
    path : Path
        Main file.
    label, phenotype, missing, missing_labels, covariates, covariate_names, sample_groups
        As for :class:`coterie.data.readers.plink.PlinkReader`.
    """

    by = "features"
    # File with phenotypes of its own, and the column, for messages.
    _own_phenotype = "", ""
    # Kind of the file that names the samples, for messages.
    _sample_file = ""

    def __init__(
        self,
        path: Path,
        *,
        label: Any = None,
        phenotype: Any = None,
        missing: str = "mean",
        missing_labels: str = "drop",
        covariates: Any = None,
        covariate_names: Any = None,
        sample_groups: Any = None,
    ) -> None:
        super().__init__(path)
        if missing not in ("mean", "error"):
            raise ValueError(f"missing={missing!r} must be 'mean' or 'error'.")
        self._policy = missing
        self._samples = self._open_samples()
        self._keep = np.arange(len(self._samples))
        if label is not False:
            self._set_phenotype(label, phenotype, missing_labels)
        if covariates is not None:
            if covariate_names is None:
                covariate_names = _names_without(covariates, phenotype, label, sample_groups)
            self._set_covariates(read_covariate_file(covariates, covariate_names), missing_labels)
        elif covariate_names is not None:
            raise ValueError("covariate_names= requires a covariate file. Pass it as covariates=.")
        if sample_groups is not None and sample_groups is not False:
            self._set_groups(str(sample_groups), [Path(file) for file in (phenotype, covariates) if file is not None])
        samples = [self._samples[i] for i in self._keep]
        unique = len({sample.iid for sample in samples}) == len(samples)
        self.sample_names = PackedStrings.pack(sample.iid if unique else sample.name for sample in samples)

    def _open_samples(self) -> list[Sample]:
        """Check the files and return their samples."""
        raise NotImplementedError

    def _keys(self, samples: list[Sample], rows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return FID and IID of some samples in a file with these rows.

        Without families in the data or in the file, samples are matched by an IID that is unique in the other.
        """
        rows = list(rows)
        if rows and not any(fid for fid, _ in rows):
            repeated = [iid for iid, count in Counter(sample.iid for sample in self._samples).items() if count > 1]
            if repeated:
                raise DataFileError(
                    f"{len(repeated)} IID(s), such as {repeated[0]!r}, occur in several families. The files of phenotypes and "
                    "covariates require the column FID.",
                    self.path,
                )
            return [("", sample.iid) for sample in samples]
        if all(sample.fid is not None for sample in samples):
            return [(str(sample.fid), sample.iid) for sample in samples]
        known: dict[str, list[str]] = {}
        for fid, iid in rows:
            known.setdefault(iid, []).append(fid)
        return [(found[0], iid) if len(found := known.get(iid, [])) == 1 else ("", iid) for _, iid, _ in samples]

    def _set_phenotype(self, label: Any, phenotype: Any, policy: str) -> None:
        if phenotype is None:
            if label is not None:
                raise ValueError(f"label={label!r} requires a phenotype file. Pass it as phenotype=.")
            path, what = Path(self._own_phenotype[0]), self._own_phenotype[1]
            texts = [sample.phenotype for sample in self._samples]
        else:
            path = Path(phenotype)
            texts, what = self._phenotypes(path, label)
        absent = np.array([is_missing_code(text) for text in texts])
        if set(texts) <= _CASE_CONTROL:
            absent |= np.array([text == "0" for text in texts])
        if absent.all() and phenotype is None:  # no phenotypes
            return
        self._keep = labelled_samples(absent, policy, path, what)
        self.labels = parse_labels([texts[i] for i in self._keep])
        if absent.any():
            self.notes["samples_without_phenotype_dropped"] = int(absent.sum())

    def _phenotypes(self, path: Path, label: Any) -> tuple[list[str], str]:
        """Return the phenotype of each sample ("" if it has none) from a file with FID, IID and phenotypes."""
        table = read_sample_table(path, split_lines(path), "phenotype")
        column = _phenotype_column(label, table.names, path)
        found = {sample: row[column] for sample, row in table.rows.items()}
        texts = [found.get(key, "") for key in self._keys(self._samples, table.rows)]
        if not any(texts):
            raise DataFileError(f"no pair of FID and IID in this file matches a sample of the {self._sample_file} file.", path)
        return texts, f"column {table.names[column]!r}"

    def _set_covariates(self, file: CovariateFile, policy: str) -> None:
        samples = self._keys([self._samples[i] for i in self._keep], file.rows)
        texts, absent = file.select(samples)
        if absent.any():
            without = [iid for (_, iid), missing in zip(samples, absent.tolist(), strict=True) if missing]
            shown = ", ".join(without[:5]) + (", …" if len(without) > 5 else "")
            if policy == "error":
                raise DataFileError(
                    f"covariates are missing for {len(without)} of {len(samples)} samples: {shown}. Drop them with "
                    "missing_labels='drop' or complete the covariates.",
                    file.path,
                )
            self.notes["samples_without_covariates_dropped"] = f"{len(without)} ({shown})"
            kept = np.flatnonzero(~absent)
            self._keep = self._keep[kept]
            self.labels = None if self.labels is None else self.labels[kept]
            texts = [texts[i] for i in kept]
        self.covariates = file.parse(texts)

    def _set_groups(self, column: str, files: list[Path]) -> None:
        """Set the sample groups of the samples that remain."""
        samples = [self._samples[i] for i in self._keep]
        families = all(sample.fid is not None for sample in samples)
        if column == "FID" and families:
            self.sample_groups = group_labels([sample.fid for sample in samples], self.path, "column FID")
            return
        known = ["FID"] if families else []
        for file in files:
            table = read_sample_table(file, split_lines(file), "column", "COV")
            keys = self._keys(samples, table.rows)
            if column == "FID":
                self.sample_groups = group_labels([fid for fid, _ in keys], file, "column FID")
                return
            if column in table.names:
                place, empty = table.names.index(column), [""] * len(table.names)
                texts = [table.rows.get(key, empty)[place] for key in keys]
                texts = ["" if is_missing_code(text) else text for text in texts]
                self.sample_groups = group_labels(texts, file, f"column {column!r}")
                return
            known += table.names
        hint = "" if files else " Pass phenotype= or covariates= for columns of these files."
        raise DataFileError(f"sample_groups={column!r}: column not found. {suggest_names(column, known)}{hint}", self.path)

    def _set_variants(self, variants: list[Variant]) -> None:
        """Set the names and annotations of the features."""
        self.feature_names = PackedStrings.pack(variant.name for variant in variants)
        self.feature_info = {
            "chromosome": PackedStrings.pack(variant.chromosome for variant in variants),
            "position": np.array([variant.position for variant in variants], dtype=np.int64),
            "allele_1": PackedStrings.pack(variant.allele_1 for variant in variants),
            "allele_2": PackedStrings.pack(variant.allele_2 for variant in variants),
        }

    def _impute(self, genotypes: np.ndarray, absent: np.ndarray, name: str) -> int:
        """Replace missing genotypes by the mean (in int8, the nearest genotype) and return their number."""
        if self._policy == "error":
            sample = int(np.argmax(absent))
            raise DataFileError(
                f"{int(absent.sum())} genotype(s) of SNP {name!r} are missing. The first is in sample {sample}. Impute them, "
                "for instance with missing='mean'.",
                self.path,
            )
        known = genotypes[~absent]
        mean = float(known.mean(dtype=np.float64)) if len(known) else 0.0
        genotypes[absent] = np.floor(mean + 0.5) if genotypes.dtype == np.int8 else mean
        return int(absent.sum())

    def _note_imputed(self, n_genotypes: int, n_variants: int) -> None:
        if n_genotypes:
            self.notes["missing_genotypes_imputed"] = n_genotypes
            self.notes["snps_with_missing_genotypes"] = n_variants


def variant_name(name: str | None, chromosome: str, position: object) -> str:
    """Return the name of a variant, or its place if it has none."""
    return f"{chromosome}:{position}" if name in (None, ".", "") else str(name)


def parse_position(text: str, path: Path, line: int) -> int:
    """Return the position of a variant in a line of a file."""
    try:
        return int(text)
    except (ValueError, OverflowError) as error:
        raise DataFileError(f"the position {text!r} is not an integer.", path, line=line) from error


def split_lines(path: Path) -> list[list[str]]:
    """Return the words of the lines of a text file."""
    require_memory(_MEMORY_PER_BYTE * path.stat().st_size, path, "the table")
    return [line.split() for line in read_lines(path)]


def _names_without(covariates: Any, phenotype: Any, label: Any, sample_groups: Any) -> list[str] | None:
    """Return all columns except the phenotype and the sample groups if one is in the file of covariates; else None."""
    path = Path(covariates)
    if not path.exists():
        return None
    names = read_covariate_file(path).names
    others = {names.index(sample_groups)} if sample_groups in names else set()
    if phenotype is not None and label is not False and path.samefile(phenotype):
        others.add(_phenotype_column(label, names, path))
    return [name for position, name in enumerate(names) if position not in others] if others else None


def _phenotype_column(label: Any, names: list[str], path: Path) -> int:
    if label is None:
        return 0
    if isinstance(label, (int, np.integer)) and -len(names) <= label < len(names):
        return int(label) % len(names)
    if label in names:
        return names.index(label)
    raise DataFileError(f"phenotype {label!r} not found. The file has {', '.join(names)}.", path, line=1)
