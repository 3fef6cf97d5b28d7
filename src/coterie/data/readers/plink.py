"""PLINK 1 genotypes (.bed with .bim and .fam), read by bed-reader, with one byte per genotype.

Missing genotypes are replaced by the mean of their SNP. In int8, the mean is rounded to the *nearest genotype* (0, 1 or 2).
With ``dtype="float32"`` the mean is exact, at four times the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from coterie._numba import thread_count
from coterie.bounds import open_regular, require_memory
from coterie.data.covariates import CovariateFile, is_missing_code, read_covariate_file, read_sample_table
from coterie.data.errors import DataFileError, error_summary, missing_extra
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.columns import suggest_names
from coterie.data.readers.reader import Block, Progress, Reader, group_labels, labelled_samples, parse_labels

# Value of bed-reader for a missing genotype in int8.
_MISSING = -127
_MAGIC = b"\x6c\x1b"
_CASE_CONTROL = frozenset(["-9", "0", "1", "2"])
# Memory per byte of a table: a line of 30 bytes becomes a list of six strings.
_MEMORY_PER_BYTE = 20


class PlinkReader(Reader):
    """Reader of PLINK 1 binary filesets. Genotypes count the first allele of the .bim file, as in PLINK.

    Parameters
    ----------
    path : Path
        .bed file, with the .bim and .fam files in the same folder.
    label : str, int, False or None
        Column of the phenotype file, by name or by position after FID and IID (default: the first). False: no labels.
    phenotype : path-like, optional
        File with FID, IID and phenotypes, with or without a header. By default the sixth column of the .fam file.
    missing : {"mean", "error"}, default="mean"
        Treatment of missing genotypes.
    dtype : {"int8", "float32"}, default="int8"
        Type of the genotypes. In int8, the mean is rounded to the nearest genotype.
    missing_labels : {"drop", "error"}, default="drop"
        Treatment of samples whose phenotype or a covariate is missing. Missing values are NA and -9, and 0 if all phenotypes
        are 0, 1, 2 or -9.
    covariates : path-like, optional
        File with FID, IID and covariates, with or without a header, in any order. Text columns are read as categories.
    covariate_names : str or sequence of str, optional
        Columns of ``covariates`` to use. A string lists names separated by commas, and may contain ranges such as
        ``PC1-PC10``. By default all columns, except the phenotype and the sample groups if they are in the same file.
    sample_groups : str, optional
        Sample groups: ``"FID"`` for the families of the .fam file, or a column of the phenotype or of the covariate file.
    """

    format = "plink"
    by = "features"

    def __init__(
        self,
        path: Path,
        *,
        label: Any = None,
        phenotype: Any = None,
        missing: str = "mean",
        dtype: Any = "int8",
        missing_labels: str = "drop",
        covariates: Any = None,
        covariate_names: Any = None,
        sample_groups: Any = None,
    ) -> None:
        super().__init__(path)
        if missing not in ("mean", "error"):
            raise ValueError(f"missing={missing!r} must be 'mean' or 'error'.")
        if np.dtype(dtype) not in (np.int8, np.float32):
            raise ValueError(f"dtype={dtype!r} must be 'int8' or 'float32'.")
        self.dtype = np.dtype(dtype)
        self._policy = missing
        self._samples = _read_table(path.with_suffix(".fam"), 6, "FID IID father mother sex phenotype")
        snps = _read_table(path.with_suffix(".bim"), 6, "chromosome SNP centimorgan position allele allele")
        self._size = (len(self._samples), len(snps))
        self._check_bed()
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
        self._set_names(snps)

    def _check_bed(self) -> None:
        """Check that the size agrees with the .fam and .bim files; otherwise the wrong genotypes would be read."""
        n_samples, n_snps = self._size
        with open_regular(self.path) as file:
            start = file.read(3)
        if start[:2] != _MAGIC:
            raise DataFileError("the file does not begin like a PLINK .bed file.", self.path)
        if start[2:] != b"\x01":
            message = "the genotypes are stored by sample. Create the file again with PLINK of 2008 or later."
            raise DataFileError(message, self.path)
        size, expected = self.path.stat().st_size, 3 + -(-n_samples // 4) * n_snps
        if size != expected:
            what = "truncated" if size < expected else "too long"
            raise DataFileError(
                f"the file is {what}: {size} bytes instead of {expected} for {n_samples} samples (.fam) and {n_snps} SNPs "
                "(.bim).",
                self.path,
            )

    def _set_names(self, snps: list[list[str]]) -> None:
        bim = self.path.with_suffix(".bim")
        positions = np.empty(len(snps), dtype=np.int64)
        for number, row in enumerate(snps, start=1):
            try:
                positions[number - 1] = int(row[3])
            except (ValueError, OverflowError) as error:
                raise DataFileError(f"the position {row[3]!r} is not an integer.", bim, line=number) from error
        self.feature_names = PackedStrings.pack(row[1] if row[1] != "." else f"{row[0]}:{row[3]}" for row in snps)
        self.feature_info = {
            "chromosome": PackedStrings.pack(row[0] for row in snps),
            "position": positions,
            "allele_1": PackedStrings.pack(row[4] for row in snps),
            "allele_2": PackedStrings.pack(row[5] for row in snps),
        }
        distances = _numbers(row[2] for row in snps)
        if distances is not None and distances.any():  # in most files all distances are 0, which means unknown
            self.feature_info["cm"] = distances
        samples = [self._samples[i] for i in self._keep]
        unique = len({sample[1] for sample in samples}) == len(samples)
        self.sample_names = PackedStrings.pack(sample[1] if unique else f"{sample[0]}:{sample[1]}" for sample in samples)

    def _set_phenotype(self, label: Any, phenotype: Any, policy: str) -> None:
        if phenotype is None:
            if label is not None:
                raise ValueError(f"label={label!r} requires a phenotype file. Pass it as phenotype=.")
            path, what = self.path.with_suffix(".fam"), "column 6"
            texts = [row[5] for row in self._samples]
        else:
            path = Path(phenotype)
            texts, what = _phenotypes(path, self._samples, label)
        absent = np.array([is_missing_code(text) for text in texts])
        if set(texts) <= _CASE_CONTROL:
            absent |= np.array([text == "0" for text in texts])
        if absent.all() and phenotype is None:  # a .fam file without phenotypes
            return
        self._keep = labelled_samples(absent, policy, path, what)
        self.labels = parse_labels([texts[i] for i in self._keep])
        if absent.any():
            self.notes["samples_without_phenotype_dropped"] = int(absent.sum())

    def _set_covariates(self, file: CovariateFile, policy: str) -> None:
        samples = [(self._samples[i][0], self._samples[i][1]) for i in self._keep]
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
        if column == "FID":
            fam = self.path.with_suffix(".fam")
            self.sample_groups = group_labels([sample[0] for sample in samples], fam, "column FID")
            return
        known = ["FID"]
        for file in files:
            table = read_sample_table(file, _split_lines(file), "column", "COV")
            if column in table.names:
                place, empty = table.names.index(column), [""] * len(table.names)
                texts = [table.rows.get((sample[0], sample[1]), empty)[place] for sample in samples]
                texts = ["" if is_missing_code(text) else text for text in texts]
                self.sample_groups = group_labels(texts, file, f"column {column!r}")
                return
            known += table.names
        hint = "" if files else " Pass phenotype= or covariates= for columns of these files."
        raise DataFileError(f"sample_groups={column!r}: column not found. {suggest_names(column, known)}{hint}", self.path)

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        try:
            from bed_reader import open_bed
        except ImportError as error:
            raise missing_extra("Reading PLINK files", "bed-reader", "bio") from error
        n_samples, n_snps = self._size
        n_imputed = n_snps_imputed = 0
        width = max(1, n_values // max(1, n_samples))
        rows = slice(None) if len(self._keep) == n_samples else self._keep
        with open_bed(self.path, iid_count=n_samples, sid_count=n_snps, num_threads=thread_count()) as bed:
            for start in range(0, n_snps, width):
                stop = min(start + width, n_snps)
                try:
                    block = bed.read(index=(rows, slice(start, stop)), dtype="int8", order="F")
                except Exception as error:  # bed-reader has its own exception types
                    message = f"bed-reader cannot read the file ({error_summary(error)})."
                    raise DataFileError(message, self.path) from error
                columns = np.flatnonzero((block == _MISSING).any(axis=0))
                block = block.astype(self.dtype, copy=False)
                for column in columns:
                    n_imputed += self._impute(block[:, column], start + int(column))
                n_snps_imputed += len(columns)
                if progress is not None:
                    progress(stop, n_snps, "reading SNPs")
                yield block
        if n_imputed:
            self.notes["missing_genotypes_imputed"] = n_imputed
            self.notes["snps_with_missing_genotypes"] = n_snps_imputed

    def _impute(self, genotypes: np.ndarray, snp: int) -> int:
        """Replace missing genotypes by the mean (in int8, the nearest genotype) and return their number."""
        absent = genotypes == _MISSING
        assert self.feature_names is not None
        if self._policy == "error":
            sample = int(np.argmax(absent))
            raise DataFileError(
                f"{int(absent.sum())} genotype(s) of SNP {self.feature_names[snp]!r} are missing. The first is in sample "
                f"{sample}. Impute them, for instance with missing='mean'.",
                self.path,
            )
        known = genotypes[~absent]
        mean = float(known.mean(dtype=np.float64)) if len(known) else 0.0
        genotypes[absent] = np.floor(mean + 0.5) if self.dtype == np.int8 else mean
        return int(absent.sum())


def _read_table(path: Path, n_columns: int, columns: str) -> list[list[str]]:
    """Return the rows of a text file with a fixed number of columns."""
    if not path.exists():
        raise FileNotFoundError(2, "A PLINK fileset requires a .bed, a .bim and a .fam file, but one is missing", str(path))
    rows = _split_lines(path)
    for number, row in enumerate(rows, start=1):
        if len(row) != n_columns:
            raise DataFileError(f"the line has {len(row)} columns instead of {n_columns} ({columns}).", path, line=number)
    if not rows:
        raise DataFileError("the file is empty. Check that it was written completely.", path)
    return rows


def _split_lines(path: Path) -> list[list[str]]:
    require_memory(_MEMORY_PER_BYTE * path.stat().st_size, path, "the table")
    return [line.split() for line in read_lines(path)]


def _numbers(texts: Iterable[str]) -> np.ndarray | None:
    """Parse finite numbers; return None if a text is not a finite number."""
    try:
        values = np.array([float(text) for text in texts])
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _phenotypes(path: Path, samples: list[list[str]], label: Any) -> tuple[list[str], str]:
    """Return the phenotype of each sample ("" if it has none) from a file with FID, IID and phenotypes."""
    table = read_sample_table(path, _split_lines(path), "phenotype")
    column = _phenotype_column(label, table.names, path)
    found = {sample: row[column] for sample, row in table.rows.items()}
    texts = [found.get((sample[0], sample[1]), "") for sample in samples]
    if not any(texts):
        raise DataFileError("no pair of FID and IID in this file matches a sample of the .fam file.", path)
    return texts, f"column {table.names[column]!r}"


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
