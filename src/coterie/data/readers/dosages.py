"""Dosages of VCF files (by cyvcf2) and of PLINK 2 filesets (by pgenlib).

A dosage is the expected number of copies of the alternative allele, between 0 and 2. Variants with several alternative
alleles are left out and counted. With ``dtype="float32"``, dosages have the precision of the file. With ``dtype="uint8"``
they are rounded to the nearest hundredth and take one byte. Whole dosages are exact in all types.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from coterie.bounds import check_regular
from coterie.data.errors import DataFileError, missing_extra
from coterie.data.readers.byte_stream import ByteStream
from coterie.data.readers.genotypes import GenotypeReader, Sample, Variant, parse_position, split_lines, variant_name
from coterie.data.readers.reader import Block, Progress

# Units per copy of an allele in uint8.
HUNDREDTHS = 100
_TYPES = {"int8": 1, "uint8": HUNDREDTHS, "float32": 1}
# Value of pgenlib for a missing dosage.
_MISSING = -9
_MAX_DOSAGE = 2.0
# Words of the first line of a .psam file, and of the line of column names of a .pvar file.
_SAMPLE_COLUMNS, _VARIANT_COLUMNS = ("#FID", "#IID"), "#CHROM"
_PGEN_COLUMNS = ("#CHROM", "POS", "ID", "REF", "ALT")


class DosageReader(GenotypeReader):
    """Base class of the readers of dosages.

    Parameters
    ----------
    path : Path
        Main file.
    dtype : {"int8", "uint8", "float32"} or None, default=None
        Type of the dosages: whole numbers, hundredths, or numbers. None means int8 if the file has no dosages, else float32.
    **options
        As for :class:`coterie.data.readers.genotypes.GenotypeReader`.
    """

    def __init__(self, path: Path, *, dtype: Any = None, **options: Any) -> None:
        if dtype is not None and str(dtype) not in _TYPES:
            raise ValueError(f"dtype={dtype!r} must be one of {', '.join(_TYPES)}.")
        check_regular(path)
        super().__init__(path, **options)
        kind = str(dtype) if dtype is not None else "float32" if self._has_dosages() else "int8"
        self.dtype, self.units = np.dtype(kind), _TYPES[kind]

    def _has_dosages(self) -> bool:
        """Return True if the file may have dosages that are not whole."""
        raise NotImplementedError

    def _dosages(self) -> Iterator[tuple[Variant | None, np.ndarray]]:
        """Yield each variant with the dosages of all samples, NaN for missing ones; no variant for several alleles."""
        raise NotImplementedError

    def blocks(self, n_values: int, progress: Progress | None = None) -> Iterator[Block]:
        width = max(1, n_values // max(1, len(self._keep)))
        variants: list[Variant] = []
        columns: list[np.ndarray] = []
        n_skipped = n_imputed = n_variants_imputed = 0
        for variant, dosages in self._dosages():
            if variant is None:
                n_skipped += 1
                continue
            column = dosages[self._keep]
            absent = np.isnan(column)
            if absent.any():
                n_imputed += self._impute(column, absent, variant.name)
                n_variants_imputed += 1
            columns.append(self._stored(column, absent, variant))
            variants.append(variant)
            if len(columns) == width:
                yield np.asfortranarray(np.column_stack(columns))
                columns = []
                if progress is not None:
                    progress(len(variants), None, "reading variants")
        if columns:
            yield np.asfortranarray(np.column_stack(columns))
        self._set_variants(variants)
        if n_skipped:
            self.notes["multiallelic_variants_skipped"] = n_skipped
        self._note_imputed(n_imputed, n_variants_imputed)

    def _stored(self, dosages: np.ndarray, absent: np.ndarray, variant: Variant) -> np.ndarray:
        """Return the dosages of a variant in the type of the features."""
        assert self.dtype is not None
        if not ((dosages >= 0.0) & (dosages <= _MAX_DOSAGE + 1e-3)).all():
            wrong = float(dosages[np.argmax(~((dosages >= 0.0) & (dosages <= _MAX_DOSAGE + 1e-3)))])
            raise DataFileError(
                f"variant {variant.name!r} has the dosage {wrong:g}. Dosages must be between 0 and 2.", self.path
            )
        if self.dtype == np.float32:
            return dosages.astype(np.float32)
        found = np.floor(self.units * np.minimum(dosages, _MAX_DOSAGE) + 0.5)
        if self.units == 1 and (found[~absent] != dosages[~absent]).any():
            raise DataFileError(
                f"variant {variant.name!r} has dosages that are not whole. Use dtype='float32' or dtype='uint8'.", self.path
            )
        return found.astype(self.dtype)


class VcfReader(DosageReader):
    """Reader of VCF files (.vcf, .vcf.gz), read by cyvcf2. Dosages count the alternative allele.

    Parameters
    ----------
    path : Path
        File, plain or compressed by gzip or bgzip.
    field : {"auto", "DS", "GT"}, default="auto"
        Field of the samples: dosages (DS) or genotypes (GT). ``"auto"`` reads DS, and GT of the variants without DS. The
        genotype of a haploid sample counts twice, as in PLINK.
    dtype : {"int8", "uint8", "float32"}, optional
        Type: whole numbers, hundredths of a copy (rounded), or numbers. By default int8 for genotypes, float32 for dosages.
    label, phenotype, missing, missing_labels, covariates, covariate_names, sample_groups
        As for :class:`coterie.data.readers.plink.PlinkReader`. Samples are matched by IID, which must be unique in these
        files.
    """

    format = "vcf"
    _sample_file = "VCF"

    def __init__(self, path: Path, *, field: str = "auto", **options: Any) -> None:
        if field not in ("auto", "DS", "GT"):
            raise ValueError(f"field={field!r} must be one of auto, DS, GT.")
        self._field = field
        super().__init__(path, **options)

    def _open(self) -> Any:
        try:
            from cyvcf2 import VCF
        except ImportError as error:
            raise missing_extra("Reading VCF files", "cyvcf2", "dosage") from error
        with self._translate_errors():
            return VCF(str(self.path.resolve()))

    def _open_samples(self) -> list[Sample]:
        _require_end(self.path)
        names = self._open().samples
        if not names:
            raise DataFileError("the file has no samples, only variants. Genotypes are required.", self.path)
        return [Sample(None, str(name)) for name in names]

    def _has_dosages(self) -> bool:
        return self._field != "GT" and bool(self._open().contains("DS"))

    _damage_message = "the file is damaged or not a VCF file ({})."

    def _dosages(self) -> Iterator[tuple[Variant | None, np.ndarray]]:
        reader = iter(self._open())
        while True:
            with self._translate_errors():
                record = next(reader, None)
                if record is None:
                    return
                found: tuple[Variant | None, np.ndarray] = (None, np.empty(0))
                if len(record.ALT) == 1:
                    name = variant_name(record.ID, record.CHROM, record.POS)
                    variant = Variant(name, str(record.CHROM), int(record.POS), str(record.ALT[0]), str(record.REF))
                    found = variant, self._dosages_of(record, name)
            yield found

    def _dosages_of(self, record: Any, name: str) -> np.ndarray:
        """Return the dosages of a variant with one alternative allele."""
        if self._field != "GT" and "DS" in record.FORMAT:
            return np.asarray(record.format("DS")[:, 0], dtype=np.float64)
        if self._field == "DS" or "GT" not in record.FORMAT:
            known = "DS or GT" if self._field == "auto" else self._field
            raise DataFileError(f"variant {name!r} has no field {known}. Use field='auto', or drop the variant.", self.path)
        alleles = record.genotype.array()[:, :-1]  # -1 for missing alleles, -2 behind the alleles of a haploid sample
        called = (alleles >= 0).sum(axis=1)
        complete = (called > 0) & ~(alleles == -1).any(axis=1)
        return np.where(complete, _MAX_DOSAGE * (alleles == 1).sum(axis=1) / np.maximum(called, 1), np.nan)


class PgenReader(DosageReader):
    """Reader of PLINK 2 filesets (.pgen with .pvar and .psam), read by pgenlib. Dosages count the alternative allele.

    Parameters
    ----------
    path : Path
        .pgen file, with the .pvar and .psam files in the same folder.
    dtype : {"int8", "uint8", "float32"}, optional
        Type: whole numbers, hundredths of a copy (rounded), or numbers. By default float32, which has the precision of the
        file (1/16384).
    label, phenotype, missing, missing_labels, covariates, covariate_names, sample_groups
        As for :class:`coterie.data.readers.plink.PlinkReader`. The first phenotype of the .psam file is the default. Without
        families in this file, samples are matched by IID, which must be unique in the other files.
    """

    format = "pgen"
    _sample_file = ".psam"
    _damage_message = "pgenlib cannot read the file ({})."

    def _open_samples(self) -> list[Sample]:
        self._own_phenotype = str(self.path.with_suffix(".psam")), "the first phenotype"
        samples = _read_psam(self.path.with_suffix(".psam"))
        self._variants = _read_pvar(self.path.with_suffix(".pvar"))
        self._size = len(samples)
        return samples

    def _has_dosages(self) -> bool:
        return True

    def _dosages(self) -> Iterator[tuple[Variant | None, np.ndarray]]:
        try:
            import pgenlib
        except ImportError as error:
            raise missing_extra("Reading .pgen files", "pgenlib", "dosage") from error
        with self._translate_errors():
            file = pgenlib.PgenReader(str(self.path).encode(), raw_sample_ct=self._size, variant_ct=len(self._variants))
        values = np.empty(self._size)
        try:
            for place, variant in enumerate(self._variants):
                if "," in variant.allele_1:
                    yield None, values
                    continue
                with self._translate_errors():
                    file.read_dosages(place, values)
                yield variant, np.where(values == _MISSING, np.nan, values)
        finally:
            file.close()


def _require_end(path: Path) -> None:
    """Raise ``DataFileError`` if the last line of a VCF file is incomplete, which htslib does not always notice."""
    stream, last = ByteStream(path), b"\n"
    try:
        while chunk := stream.read(1 << 20):
            last = chunk[-1:]
    finally:
        stream.close()
    if last != b"\n":
        raise DataFileError("the file is truncated: its last line has no end. Copy or create it again.", path)


def _read_psam(path: Path) -> list[Sample]:
    """Return the samples of a .psam file."""
    rows = _existing_lines(path)
    head = next((row for row in rows if row and row[0] in _SAMPLE_COLUMNS), None)
    body = [row for row in rows if row and not row[0].startswith("#")]
    names = [name.lstrip("#") for name in head] if head else ["FID", "IID", "PAT", "MAT", "SEX", "PHENO1"]
    if "IID" not in names or not body:
        raise DataFileError("the file has no samples or no column IID.", path)
    phenotypes = [k for k, name in enumerate(names) if name not in ("FID", "IID", "SID", "PAT", "MAT", "SEX")]
    found = []
    for number, row in enumerate(body, start=len(rows) - len(body) + 1):
        if len(row) != len(names):
            raise DataFileError(f"the line has {len(row)} columns instead of {len(names)}.", path, line=number)
        fid = row[names.index("FID")] if "FID" in names else None
        found.append(Sample(fid, row[names.index("IID")], row[phenotypes[0]] if phenotypes else "NA"))
    return found


def _read_pvar(path: Path) -> list[Variant]:
    """Return the variants of a .pvar file."""
    if not path.exists() and path.with_name(path.name + ".zst").exists():
        raise DataFileError(
            "the .pvar file is compressed. Decompress it: plink2 --zst-decompress x.pvar.zst > x.pvar", f"{path}.zst"
        )
    rows = [row for row in _existing_lines(path) if row and not row[0].startswith("##")]
    names = list(rows.pop(0)) if rows and rows[0][0] == _VARIANT_COLUMNS else ["#CHROM", "ID", "CM", "POS", "ALT", "REF"]
    if absent := [name for name in _PGEN_COLUMNS if name not in names]:
        raise DataFileError(f"the file has no column {absent[0]}.", path)
    chromosome, position, name, ref, alt = (names.index(column) for column in _PGEN_COLUMNS)
    found = []
    for number, row in enumerate(rows, start=1):
        if len(row) < 1 + max(chromosome, position, name, ref, alt):
            raise DataFileError(f"variant {number} has {len(row)} columns instead of {len(names)}.", path)
        place = parse_position(row[position], path, number)
        shown = variant_name(row[name], row[chromosome], row[position])
        found.append(Variant(shown, row[chromosome], place, row[alt], row[ref]))
    if not found:
        raise DataFileError("the file has no variants.", path)
    return found


def _existing_lines(path: Path) -> list[list[str]]:
    if not path.exists():
        raise FileNotFoundError(
            2, "A PLINK 2 fileset requires a .pgen, a .pvar and a .psam file, but one is missing", str(path)
        )
    return split_lines(path)
