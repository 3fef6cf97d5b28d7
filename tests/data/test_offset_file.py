"""Files of offsets: formats, matching of samples, and mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import PolygenicOffset
from coterie.data import DataFileError, read_offset_file
from coterie.data.offset_file import chromosome_key

LOCO = "FID_IID a_1 b_2 c_3\n1 0.1 0.2 0.3\n2 1.1 1.2 1.3\n23 -1 -2 -3e-1\n"


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "offset.txt"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(("chromosome", "expected"), [("2", [1.3, 1.1]), ("chr1", [0.3, 0.1]), ("X", [-0.3, -1.0])])
def test_predictions_by_chromosome(file, chromosome, expected):
    """Samples of the data may be in any order, and some samples of the file may be absent from the data."""
    assert read_offset_file(file(LOCO), ["3", "1"], 2, chromosome).tolist() == expected


def test_names_with_family(file):
    assert read_offset_file(file(LOCO), ["b:2", "a:1", "c:3"], 3, 1).tolist() == [0.2, 0.1, 0.3]


def test_underscores_in_names(file):
    text = "FID_IID x_1_y_2 fam_y_2 z_z\n1 1 2 3\n"
    assert read_offset_file(file(text), ["fam:y_2", "x_1:y_2", "z:z"], 3, 1).tolist() == [2.0, 1.0, 3.0]
    assert read_offset_file(file("FID_IID x_1_y_2\n1 5\n"), ["y_2"], 1, 1).tolist() == [5.0]


@pytest.mark.parametrize("header", ["FID IID PRS\n", "#FID IID PRS\n", ""])
def test_table(file, header):
    path = file(f"{header}f1 s1 0.5\nf2 s2 -1\nf3 s3 7\n")
    assert read_offset_file(path, ["s2", "s1"], 2).tolist() == [-1.0, 0.5]
    assert read_offset_file(path, ["f3:s3", "f1:s1"], 2).tolist() == [7.0, 0.5]


def test_one_number_per_line(file):
    assert read_offset_file(file("1\n2.5\n\n-3\n"), None, 3).tolist() == [1.0, 2.5, -3.0]


@pytest.mark.parametrize(
    ("text", "names", "chromosome", "message"),
    [
        (LOCO, ["1"], None, "one offset per chromosome. Choose the chromosome"),
        (LOCO, ["1"], "7", "chromosome 7 not found. The file has 1, 2, 23"),
        (LOCO, ["1", "9"], "1", "missing for 1 of 2 samples: 9. Complete the file"),
        (LOCO, ["8", "9"], "1", "no sample of the data is in this file"),
        (LOCO, None, "1", "have no names to match"),
        ("FID_IID a_1 b_2\n1 0.5\n", ["1"], "1", r"offset.txt:2: the line has 1 predictions for 2 samples"),
        ("FID_IID a_1 b_1\n1 0.5 1\n", ["1"], "1", "sample 1 occurs twice"),
        ("FID_IID a_1\n1 NA\n", ["1"], "1", r"offset.txt:2: the offset 'NA' is not a number"),
        ("f1 s1 0.5 2\n", ["s1"], None, r"has 2 columns after FID and IID \(OFFSET1, OFFSET2\). Keep the offset only"),
        ("FID IID PRS\nf1 s1 inf\n", ["s1"], None, "the offset 'inf' is not a number"),
        ("1\n2\n", None, None, "the file has 2 lines, but the data have 1 samples"),
        ("x\n", None, None, "the offset 'x' is not a number"),
        ("", ["1"], None, "the file is empty"),
    ],
)
def test_mistakes(file, text, names, chromosome, message):
    with pytest.raises(DataFileError, match=message):
        read_offset_file(file(text), names, 1 if names is None else len(names), chromosome)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="Offset file not found"):
        read_offset_file(tmp_path / "absent", None, 1)


@pytest.mark.parametrize("names", [["s1", "s2", "s3"], ["f:1", "g:1", "f:2"]])
def test_saved_offsets_are_read_again(tmp_path, names):
    values = np.random.default_rng(0).standard_normal((3, 2))
    PolygenicOffset(values[:, 0], ("1", "X"), values, 0.5).save(tmp_path / "own.loco", names)
    for chromosome, column in (("1", 0), ("X", 1), ("23", 1)):
        found = read_offset_file(tmp_path / "own.loco", names[::-1], 3, chromosome)
        np.testing.assert_array_equal(found, values[::-1, column])


def test_spelling_of_chromosomes():
    assert [chromosome_key(name) for name in ("chr7", "07", 7, "chrX", "MT", "0", "scaffold_1")] == [
        *("7", "7", "7", "23", "26", "0", "scaffold_1")
    ]
