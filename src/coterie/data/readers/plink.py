"""PLINK 1 genotypes: .bed with .bim and .fam, read by bed-reader, one byte a genotype.

Missing genotypes take the mean of their SNP. In one byte that is the *nearest genotype* to the mean (0, 1 or 2), so that
the matrix stays int8; ``dtype="float32"`` has the exact mean, for four times the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from coterie._numba import thread_count
from coterie.bounds import open_regular, require_memory
from coterie.data.covariates import CovariateFile, is_absent, read_covariate_file, read_sample_table
from coterie.data.errors import DataFileError, in_one_line, missing_extra
from coterie.data.names import PackedStrings
from coterie.data.readers.byte_stream import read_lines
from coterie.data.readers.reader import Block, Progress, Reader, missing_labels, parse_labels

# bed-reader's int8 for a missing genotype.
_MISSING = -127
_MAGIC = b"\x6c\x1b"
_CASE_CONTROL = frozenset(["-9", "0", "1", "2"])
# Bytes in memory for a byte of a table: a line of 30 becomes a list of six strings.
_WORD_BYTES = 20


class PlinkReader(Reader):
    """Reads a PLINK 1 binary fileset; genotypes count the first allele of the .bim file, as PLINK does.

    Parameters
    ----------
    path : Path
        The .bed file; .bim and .fam lie beside it.
    label : str, int, False or None
        Column of the phenotype file, by name or by position after FID and IID (default: the first). False: no labels.
    phenotype : path-like, optional
        File with FID, IID and phenotypes, with or without a header. By default the sixth column of the .fam file.
    missing : {"mean", "error"}, default="mean"
        What to do with missing genotypes.
    dtype : {"int8", "float32"}, default="int8"
        Type of the genotypes; in int8 the mean is rounded to the nearest genotype.
    missing_labels : {"drop", "error"}, default="drop"
        What to do with samples whose phenotype (or a covariate) is missing (NA, -9; also 0 where all are 0, 1, 2 or -9).
    covariates : path-like, optional
        File with FID, IID and covariates, with or without a header, in any order. Text is taken for categories.
    covariate_names : str or sequence of str, optional
        Which of its columns: names separated by commas, ranges as ``PC1-PC10``. All by default, but for the phenotype where
        that is in the same file.
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
            self._take_phenotype(label, phenotype, missing_labels)
        if covariates is not None:
            if covariate_names is None and phenotype is not None and label is not False:
                covariate_names = _others(covariates, phenotype, label)
            self._take_covariates(read_covariate_file(covariates, covariate_names), missing_labels)
        elif covariate_names is not None:
            raise ValueError("covariate_names= names columns of a file of covariates; give it with covariates=.")
        self._take_names(snps)

    def _check_bed(self) -> None:
        """The size must be that of the .fam and .bim files: a short file would be read as other genotypes."""
        n_samples, n_snps = self._size
        with open_regular(self.path) as file:
            start = file.read(3)
        if start[:2] != _MAGIC:
            raise DataFileError("it does not begin like a PLINK .bed file.", self.path)
        if start[2:] != b"\x01":
            raise DataFileError("its genotypes are stored by sample. Make it again with a PLINK of 2008 or later.", self.path)
        size, expected = self.path.stat().st_size, 3 + -(-n_samples // 4) * n_snps
        if size != expected:
            what = "truncated" if size < expected else "too long"
            raise DataFileError(
                f"it is {what}: {size} bytes instead of {expected} for {n_samples} samples (.fam) and {n_snps} SNPs (.bim).",
                self.path,
            )

    def _take_names(self, snps: list[list[str]]) -> None:
        bim = self.path.with_suffix(".bim")
        positions = np.empty(len(snps), dtype=np.int64)
        for number, row in enumerate(snps, start=1):
            try:
                positions[number - 1] = int(row[3])
            except (ValueError, OverflowError) as error:
                raise DataFileError(f"the position {row[3]!r} is not a whole number.", bim, line=number) from error
        self.feature_names = PackedStrings.pack(row[1] if row[1] != "." else f"{row[0]}:{row[3]}" for row in snps)
        self.feature_info = {
            "chromosome": PackedStrings.pack(row[0] for row in snps),
            "position": positions,
            "allele_1": PackedStrings.pack(row[4] for row in snps),
            "allele_2": PackedStrings.pack(row[5] for row in snps),
        }
        distances = _numbers(row[2] for row in snps)
        if distances is not None and distances.any():  # most files have zeros for "not known"
            self.feature_info["cm"] = distances
        people = [self._samples[i] for i in self._keep]
        unique = len({person[1] for person in people}) == len(people)
        self.sample_names = PackedStrings.pack(person[1] if unique else f"{person[0]}:{person[1]}" for person in people)

    def _take_phenotype(self, label: Any, phenotype: Any, policy: str) -> None:
        if phenotype is None:
            if label is not None:
                raise ValueError(f"label={label!r} names a column of a phenotype file; give it with phenotype=.")
            path, what = self.path.with_suffix(".fam"), "column 6"
            texts = [row[5] for row in self._samples]
        else:
            path = Path(phenotype)
            texts, what = _phenotypes(path, self._samples, label)
        absent = np.array([is_absent(text) for text in texts])
        if set(texts) <= _CASE_CONTROL:
            absent |= np.array([text == "0" for text in texts])
        if absent.all() and phenotype is None:  # a .fam file without phenotypes
            return
        self._keep = missing_labels(absent, policy, path, what)
        self.labels = parse_labels([texts[i] for i in self._keep])
        if absent.any():
            self.notes["samples_without_phenotype_dropped"] = int(absent.sum())

    def _take_covariates(self, file: CovariateFile, policy: str) -> None:
        people = [(self._samples[i][0], self._samples[i][1]) for i in self._keep]
        texts, absent = file.of(people)
        if absent.any():
            without = [iid for (_, iid), gone in zip(people, absent.tolist(), strict=True) if gone]
            shown = ", ".join(without[:5]) + (", …" if len(without) > 5 else "")
            if policy == "error":
                raise DataFileError(
                    f"{len(without)} of {len(people)} samples have no covariates, or not all of them: {shown}. Drop them with "
                    "missing_labels='drop', or complete them.",
                    file.path,
                )
            self.notes["samples_without_covariates_dropped"] = f"{len(without)} ({shown})"
            kept = np.flatnonzero(~absent)
            self._keep = self._keep[kept]
            self.labels = None if self.labels is None else self.labels[kept]
            texts = [texts[i] for i in kept]
        self.covariates = file.parsed(texts)

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
                except Exception as error:  # of bed-reader's own kinds
                    raise DataFileError(f"bed-reader cannot read it ({in_one_line(error)}).", self.path) from error
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
        """Put the mean (in int8: the nearest genotype) where genotypes are missing; returns how many were."""
        absent = genotypes == _MISSING
        assert self.feature_names is not None
        if self._policy == "error":
            sample = int(np.argmax(absent))
            raise DataFileError(
                f"{int(absent.sum())} genotype(s) of SNP {self.feature_names[snp]!r} are missing, the first in sample "
                f"{sample}. Impute them, or let missing='mean' do it.",
                self.path,
            )
        known = genotypes[~absent]
        mean = float(known.mean(dtype=np.float64)) if len(known) else 0.0
        genotypes[absent] = np.floor(mean + 0.5) if self.dtype == np.int8 else mean
        return int(absent.sum())


def _read_table(path: Path, n_columns: int, columns: str) -> list[list[str]]:
    """Rows of a text file with a fixed number of columns."""
    if not path.exists():
        raise FileNotFoundError(2, "a PLINK fileset has a .bed, a .bim and a .fam file, but there is no such file", str(path))
    rows = _split_lines(path)
    for number, row in enumerate(rows, start=1):
        if len(row) != n_columns:
            raise DataFileError(f"the line has {len(row)} columns instead of {n_columns} ({columns}).", path, line=number)
    if not rows:
        raise DataFileError("the file is empty.", path)
    return rows


def _split_lines(path: Path) -> list[list[str]]:
    require_memory(_WORD_BYTES * path.stat().st_size, path, "the table")
    return [line.split() for line in read_lines(path)]


def _numbers(texts: Iterable[str]) -> np.ndarray | None:
    """Finite numbers, or None where one of the texts is none."""
    try:
        values = np.array([float(text) for text in texts])
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def _phenotypes(path: Path, samples: list[list[str]], label: Any) -> tuple[list[str], str]:
    """The phenotype of each sample ("" where it has none) from a file with FID, IID and phenotypes."""
    table = read_sample_table(path, _split_lines(path), "phenotype")
    column = _phenotype_column(label, table.names, path)
    found = {sample: row[column] for sample, row in table.rows.items()}
    texts = [found.get((sample[0], sample[1]), "") for sample in samples]
    if not any(texts):
        raise DataFileError("none of its FID and IID is in the .fam file.", path)
    return texts, f"column {table.names[column]!r}"


def _others(covariates: Any, phenotype: Any, label: Any) -> list[str] | None:
    """All columns but the phenotype, where both are in one file with a header."""
    path = Path(covariates)
    if not path.exists() or not path.samefile(phenotype):
        return None
    names = read_covariate_file(path).names
    return [name for place, name in enumerate(names) if place != _phenotype_column(label, names, path)]


def _phenotype_column(label: Any, names: list[str], path: Path) -> int:
    if label is None:
        return 0
    if isinstance(label, (int, np.integer)) and -len(names) <= label < len(names):
        return int(label) % len(names)
    if label in names:
        return names.index(label)
    raise DataFileError(f"there is no phenotype {label!r}; there are {', '.join(names)}.", path, line=1)
