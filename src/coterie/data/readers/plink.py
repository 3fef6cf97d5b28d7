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
from coterie.bounds import open_regular
from coterie.data.errors import DataFileError, error_summary, missing_extra
from coterie.data.readers.genotypes import GenotypeReader, Sample, Variant, parse_position, split_lines, variant_name
from coterie.data.readers.reader import Block, Progress

# Value of bed-reader for a missing genotype in int8.
_MISSING = -127
_MAGIC = b"\x6c\x1b"
# Number of columns of .fam and .bim files.
_COLUMNS = 6


class PlinkReader(GenotypeReader):
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
    _sample_file = ".fam"

    def __init__(self, path: Path, *, dtype: Any = "int8", **options: Any) -> None:
        if np.dtype(dtype) not in (np.int8, np.float32):
            raise ValueError(f"dtype={dtype!r} must be 'int8' or 'float32'.")
        # Further columns of a .fam file, as some programs write them, cannot be told from misplaced ones without --pheno.
        self._extra_columns = options.get("phenotype") is not None or options.get("label") is False
        self._own_phenotype = str(path.with_suffix(".fam")), "column 6"
        super().__init__(path, **options)
        self.dtype = np.dtype(dtype)
        self._set_names()

    def _open_samples(self) -> list[Sample]:
        rows = _read_table(self.path.with_suffix(".fam"), "FID IID father mother sex phenotype", more=self._extra_columns)
        self._snps = _read_table(self.path.with_suffix(".bim"), "chromosome SNP centimorgan position allele allele")
        self._size = (len(rows), len(self._snps))
        self._check_bed()
        return [Sample(row[0], row[1], row[5]) for row in rows]

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

    def _set_names(self) -> None:
        bim = self.path.with_suffix(".bim")
        self._set_variants(
            [
                Variant(variant_name(row[1], row[0], row[3]), row[0], parse_position(row[3], bim, number), row[4], row[5])
                for number, row in enumerate(self._snps, start=1)
            ]
        )
        distances = _numbers(row[2] for row in self._snps)
        if distances is not None and distances.any():  # in most files all distances are 0, which means unknown
            self.feature_info["cm"] = distances

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        try:
            from bed_reader import open_bed
        except ImportError as error:
            raise missing_extra("Reading PLINK files", "bed-reader", "bio") from error
        n_samples, n_snps = self._size
        n_imputed = n_snps_imputed = 0
        width = max(1, n_values // max(1, n_samples))
        rows = slice(None) if len(self._keep) == n_samples else self._keep
        assert self.feature_names is not None
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
                for column in columns.tolist():
                    absent = block[:, column] == _MISSING
                    n_imputed += self._impute(block[:, column], absent, self.feature_names[start + column])
                n_snps_imputed += len(columns)
                if progress is not None:
                    progress(stop, n_snps, "reading SNPs")
                yield block
        self._note_imputed(n_imputed, n_snps_imputed)


def _read_table(path: Path, columns: str, *, more: bool = False) -> list[list[str]]:
    """Return the rows of a text file with six columns, or with further ones."""
    if not path.exists():
        raise FileNotFoundError(2, "A PLINK fileset requires a .bed, a .bim and a .fam file, but one is missing", str(path))
    rows = split_lines(path)
    for number, row in enumerate(rows, start=1):
        if len(row) < _COLUMNS or (len(row) > _COLUMNS and not more):
            advice = " Name the phenotype with phenotype= (--pheno)." if len(row) > _COLUMNS and path.suffix == ".fam" else ""
            raise DataFileError(
                f"the line has {len(row)} columns instead of {_COLUMNS} ({columns}).{advice}", path, line=number
            )
    if not rows:
        raise DataFileError("the file is empty. Check that it was written completely.", path)
    return rows


def _numbers(texts: Iterable[str]) -> np.ndarray | None:
    """Parse finite numbers; return None if a text is not a finite number."""
    try:
        values = np.array([float(text) for text in texts])
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None
