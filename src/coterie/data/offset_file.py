"""Files of offsets: predictions by chromosome as REGENIE writes them, tables by FID and IID, or one number per line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.bounds import require_memory
from coterie.data.covariates import read_sample_table
from coterie.data.errors import DataFileError
from coterie.data.readers.byte_stream import read_lines

# First word of a file of predictions by chromosome.
_LOCO = "FID_IID"
# Memory per byte of a file: a number of ten bytes becomes a string.
_MEMORY_PER_BYTE = 12
_SHOWN = 5
_NUMBERS = {"X": "23", "Y": "24", "XY": "25", "MT": "26", "M": "26"}


def chromosome_key(name: object) -> str:
    """Return a name of a chromosome that does not depend on its spelling: ``chr7`` is 7, and X is 23, as in PLINK.

    Examples
    --------
    >>> from coterie.data.offset_file import chromosome_key
    >>> chromosome_key("chr07"), chromosome_key("X"), chromosome_key(7)
    ('7', '23', '7')
    """
    text = str(name).strip()
    text = text[3:] if text.lower().startswith("chr") else text
    return _NUMBERS.get(text.upper(), text.lstrip("0") or text)


def read_offset_file(
    path: Any, sample_names: Sequence[str] | None, n_samples: int, chromosome: object | None = None
) -> np.ndarray:
    """Read the offset of each sample.

    Parameters
    ----------
    path : path-like
        A file in one of three formats:

        - predictions of REGENIE (``.loco``): a line with FID_IID and the samples, then a line per chromosome with its name
          and the predictions made without it;
        - lines with FID, IID and one number, with or without a header;
        - one number per line, in the order of the samples.
    sample_names : sequence of str or None
        Names of the samples: IID, or FID:IID. Not required by the third format.
    n_samples : int
        Number of samples.
    chromosome : str or int, optional
        Chromosome whose features are analysed. Required by the first format only.

    Returns
    -------
    offset : ndarray of shape (n_samples,)
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(2, "Offset file not found", str(file))
    require_memory(_MEMORY_PER_BYTE * file.stat().st_size, file, "the table")
    lines = [words for words in map(str.split, read_lines(file)) if words]
    if not lines:
        raise DataFileError("the file is empty. Check that it was written completely.", file)
    if lines[0][0] == _LOCO:
        return _of_chromosome(lines, file, _required(sample_names, file), chromosome)
    if all(len(words) == 1 for words in lines):
        if len(lines) != n_samples:
            raise DataFileError(f"the file has {len(lines)} lines, but the data have {n_samples} samples.", file)
        return np.array([_number(words[0], file, number) for number, words in enumerate(lines, start=1)])
    return _of_table(lines, file, _required(sample_names, file))


def write_loco(path: Any, sample_names: Iterable[str], chromosomes: Sequence[str], values: np.ndarray) -> None:
    """Write predictions by chromosome, of shape (n_samples, n_chromosomes), in the format of REGENIE."""
    ids = (f"{name.replace(':', '_', 1)}" if ":" in name else f"{name}_{name}" for name in sample_names)
    lines = [" ".join([_LOCO, *ids])]
    lines += [" ".join([name, *map(repr, values[:, k].tolist())]) for k, name in enumerate(chromosomes)]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _of_chromosome(lines: list[list[str]], file: Path, names: Sequence[str], chromosome: object | None) -> np.ndarray:
    """Return the line of a chromosome, in the order of the samples."""
    known = [words[0] for words in lines[1:]]
    if chromosome is None:
        raise DataFileError(
            "the file has one offset per chromosome. Choose the chromosome to analyse (--chromosome, or chromosome= in "
            "Python).",
            file,
        )
    found = [place for place, name in enumerate(known) if chromosome_key(name) == chromosome_key(chromosome)]
    if not found:
        raise DataFileError(f"chromosome {chromosome} not found. The file has {', '.join(known)}.", file)
    number = 2 + found[0]
    samples, words = lines[0][1:], lines[1 + found[0]][1:]
    if len(words) != len(samples):
        raise DataFileError(f"the line has {len(words)} predictions for {len(samples)} samples.", file, line=number)
    places = _places(samples, names, file)
    return np.array([_number(words[place], file, number) for place in places])


def _of_table(lines: list[list[str]], file: Path, names: Sequence[str]) -> np.ndarray:
    """Return the numbers of a table with FID, IID and one further column, in the order of the samples."""
    table = read_sample_table(file, lines, "offset", "OFFSET")
    if len(table.names) != 1:
        raise DataFileError(
            f"the file has {len(table.names)} columns after FID and IID ({', '.join(table.names)}). Keep the offset only.",
            file,
            line=1,
        )
    rows = list(table.rows)
    places = _places([f"{fid}_{iid}" for fid, iid in rows], names, file, [(f"{fid}:{iid}", iid) for fid, iid in rows])
    return np.array([_number(table.rows[rows[place]][0], file, None) for place in places])


def _places(
    ids: Sequence[str], names: Sequence[str], file: Path, readings: Sequence[tuple[str, ...]] | None = None
) -> list[int]:
    """Return the place of each sample among the ids of a file."""
    wanted = {str(name): place for place, name in enumerate(names)}
    found: list[int | None] = [None] * len(wanted)
    for place, text in enumerate(ids):
        meant = {name for name in (_readings(text) if readings is None else readings[place]) if name in wanted}
        exact = {name for name in meant if ":" in name} or meant
        for name in exact if len(exact) == 1 else ():
            if found[wanted[name]] is not None:
                raise DataFileError(f"sample {name} occurs twice.", file)
            found[wanted[name]] = place
    absent = [name for name, place in wanted.items() if found[place] is None]
    if len(absent) == len(wanted):
        raise DataFileError("no sample of the data is in this file. Samples are matched by FID and IID.", file)
    if absent:
        shown = ", ".join(absent[:_SHOWN]) + (", …" if len(absent) > _SHOWN else "")
        raise DataFileError(
            f"the offset is missing for {len(absent)} of {len(wanted)} samples: {shown}. Complete the file, or remove these "
            "samples from the data.",
            file,
        )
    return [place for place in found if place is not None]


def _readings(text: str) -> list[str]:
    """Return the sample names that FID_IID may stand for. Both parts may contain underscores."""
    cuts = [place for place, letter in enumerate(text) if letter == "_"]
    pairs = [(text[:cut], text[cut + 1 :]) for cut in cuts]
    return [name for fid, iid in pairs for name in (f"{fid}:{iid}", iid)]


def _required(names: Sequence[str] | None, file: Path) -> Sequence[str]:
    if names is None:
        raise DataFileError(
            "the samples of the data have no names to match. Use a file with one number per line, in their order.", file
        )
    return names


def _number(text: str, file: Path, line: int | None) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataFileError(f"the offset {text!r} is not a number.", file, line=line)
    return value
