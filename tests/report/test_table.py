"""Tables as CSV: all digits, and complete files only."""

import io

import numpy as np
import pytest

from coterie.report.table import write_csv, write_rows

ROWS = [
    {"name": 'a "b", c', "score": 0.1 + 0.2, "count": 3},
    {"name": None, "score": np.float64(1e-17), "count": True},
    {"name": "gé\udce9", "score": float("nan"), "count": -1},
]
TEXT = '"a ""b"", c",0.30000000000000004,3\r\n,1e-17,True\r\ngé\\udce9,{nan},-1\r\n'


@pytest.mark.parametrize("nan", ["nan", ""])
def test_bytes(tmp_path, nan):
    write_csv(tmp_path / "table.csv", ROWS, nan=nan)
    assert (tmp_path / "table.csv").read_bytes().decode() == "name,score,count\r\n" + TEXT.format(nan=nan)


def test_nan_is_written_out_by_default():
    file = io.StringIO()
    write_rows(file, [{"score": float("nan")}], ["score"])
    assert file.getvalue() == "score\r\nnan\r\n"


def test_order_of_columns(tmp_path):
    write_csv(tmp_path / "table.csv", [{"a": 1, "b": 2}], ["b", "a"])
    assert (tmp_path / "table.csv").read_text() == "b,a\n2,1\n"
    write_csv(tmp_path / "table.csv", [], ["b", "a"])
    assert (tmp_path / "table.csv").read_text() == "b,a\n"


def test_an_error_leaves_the_old_table(tmp_path):
    write_csv(tmp_path / "table.csv", [{"a": 1}])
    with pytest.raises(ValueError, match="fields not in fieldnames"):
        write_csv(tmp_path / "table.csv", [{"a": 2}, {"a": 3, "c": 4}])
    assert (tmp_path / "table.csv").read_text() == "a\n1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
