"""Files and folders appear whole or not at all."""

import os

import pytest

from coterie import atomic
from coterie.files import new_file, new_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fail(path):
    path.write_text("half")
    raise TypeError


def test_a_file_appears_at_the_end(tmp_path):
    with new_file(tmp_path / "a") as partial:
        partial.write_text("new")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_text() == "new"
    assert names(tmp_path) == ["a"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(TypeError), new_file(tmp_path / "a") as partial:
        fail(partial)
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_overwriting_must_be_allowed(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileExistsError, match="allow overwriting"), new_file(tmp_path / "a", overwrite=False):
        pass
    (tmp_path / "f").mkdir()
    with pytest.raises(FileExistsError, match="allow overwriting"), new_folder(tmp_path / "f"):
        pass
    with pytest.raises(IsADirectoryError), new_file(tmp_path / "f"):
        pass
    with pytest.raises(FileExistsError, match="is a file"), new_folder(tmp_path / "a", overwrite=True):
        pass
    with pytest.raises(FileNotFoundError, match="There is no folder"), new_folder(tmp_path / "x" / "y"):
        pass
    assert names(tmp_path) == ["a", "f"]


@pytest.mark.parametrize("one_step", [True, False])
def test_a_folder_replaces_another(tmp_path, monkeypatch, one_step):
    if not one_step:
        monkeypatch.setattr(atomic.sys, "platform", "elsewhere")
    for text in ("old", "new"):
        with new_folder(tmp_path / "f", overwrite=True) as partial:
            (partial / text).mkdir()
            (partial / text / "file").write_text(text)
    assert names(tmp_path) == ["f"]
    assert names(tmp_path / "f") == ["new"]
    with pytest.raises(TypeError), new_folder(tmp_path / "f", overwrite=True) as partial:
        fail(partial / "half")
    assert names(tmp_path) == ["f"]
    assert names(tmp_path / "f") == ["new"]


def test_what_killed_processes_left_is_removed(tmp_path):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    (tmp_path / f".f[1].{pid}.partial").mkdir()
    (tmp_path / f".f[1].{pid}.partial" / "half").write_text("")
    (tmp_path / f".f[1].{os.getppid()}.partial").write_text("of a process that runs")
    with new_folder(tmp_path / "f[1]"):
        pass
    assert names(tmp_path) == [f".f[1].{os.getppid()}.partial", "f[1]"]
