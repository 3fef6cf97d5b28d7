"""Atomic creation of files and folders."""

import errno
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

import coterie
from coterie.files import (
    atomic,
    claimed,
    claimed_files,
    claims,
    disk,
    lock,
    locked,
    new_file,
    new_folder,
    sync,
    temporary,
    writer_of,
    writing,
)

DAY = 24 * 60 * 60


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fail(path):
    path.write_text("half")
    raise TypeError


def write_folder(path, text="new"):
    with new_folder(path, overwrite=True, files_of=os.listdir) as partial:
        (partial / text).write_text(text)


def write_file(path, text="new"):
    with new_file(path) as partial:
        partial.write_text(text)


def left(target, host=None, pid=4711, token="0123abcd", age=0.0):
    """Create what a killed writer leaves, by default on this host."""
    folder = target.parent / f"{temporary.stem(target)}{host or temporary.HOST}.{pid}.{token}.partial"
    folder.mkdir()
    (folder / "half").write_text("")
    for path in (folder / "half", folder):
        os.utime(path, (time.time() - age,) * 2)
    return folder


@pytest.fixture(params=["locks", "no fcntl", "refused"])
def with_and_without_locks(request, monkeypatch):
    """Systems with and without locks, and a file system that does not support them."""
    fcntl = pytest.importorskip("fcntl")

    def refuse(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if request.param == "no fcntl":
        monkeypatch.setattr(disk, "fcntl", None)
    elif request.param == "refused":
        monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.fixture
def other_process():
    """Start processes that write a file or a folder until they are killed."""
    with ExitStack() as stack:

        def start(kind, path):
            code = f"from coterie.files import *\nwith {kind}({str(path)!r}) as partial: print(partial, flush=True), input()"
            command = [sys.executable, "-c", code]
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            stack.callback(process.kill)
            assert process.stdout.readline()
            return process

        yield start


def test_a_file_appears_at_the_end(tmp_path):
    with new_file(tmp_path / "a") as partial:
        partial.write_text("new")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_text() == "new"
    assert names(tmp_path) == ["a"]


def test_a_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "other").write_text("")
    write_file(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(TypeError), new_file(tmp_path / "a") as partial:
        fail(partial)
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]
    assert temporary._active_folders == set()


def test_overwriting_must_be_allowed(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileExistsError, match="overwrite=True"), new_file(tmp_path / "a", overwrite=False):
        pass
    (tmp_path / "f").mkdir()
    with pytest.raises(FileExistsError, match="overwrite=True"), new_folder(tmp_path / "f"):
        pass
    with pytest.raises(IsADirectoryError), new_file(tmp_path / "f"):
        pass
    with pytest.raises(FileExistsError, match="is a file"), new_folder(tmp_path / "a", overwrite=True):
        pass
    with pytest.raises(FileNotFoundError, match=r"x does not exist\. Create it"), new_folder(tmp_path / "x" / "y"):
        pass
    assert names(tmp_path) == ["a", "f"]


def overtake(partial, path):
    partial.touch()
    write_file(path, "early")


def test_files_created_in_the_meantime_are_not_overwritten(tmp_path):
    with pytest.raises(FileExistsError, match="overwrite=True"), new_file(tmp_path / "a", overwrite=False) as partial:
        overtake(partial, tmp_path / "a")
    (tmp_path / "f").mkdir()
    with pytest.raises(FileExistsError, match=r"contains files .*\(early\)"), new_folder(tmp_path / "f", overwrite=True):
        (tmp_path / "f" / "early").touch()  # by hand
    assert names(tmp_path) == ["a", "f"]
    assert names(tmp_path / "f") == ["early"]
    assert (tmp_path / "a").read_text() == "early"


def test_files_of_other_programs_are_not_replaced(tmp_path):
    write_folder(tmp_path / "f")
    (tmp_path / "f" / "thesis.tex").touch()
    with (
        pytest.raises(FileExistsError, match=r"not part of a Coterie result \(thesis.tex\)"),
        new_folder(tmp_path / "f", overwrite=True, files_of=lambda folder: ["new"]),
    ):
        pytest.fail("refused before the work")
    assert names(tmp_path / "f") == ["new", "thesis.tex"]


def test_links_are_kept_and_their_targets_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    for write, name in ((write_file, "a"), (write_folder, "f")):
        (tmp_path / name).symlink_to(tmp_path / "there" / name)
        for _ in range(2):
            write(tmp_path / name)
            assert (tmp_path / name).is_symlink()
    assert (tmp_path / "there" / "a").read_text() == "new"
    assert names(tmp_path / "there" / "f") == ["new"]
    assert names(tmp_path / "there") == names(tmp_path)[:2] == ["a", "f"]
    (tmp_path / "lost").symlink_to(tmp_path / "gone" / "a")
    with pytest.raises(FileNotFoundError, match=r"Folder .*gone does not exist. Create it before writing a"):
        write_file(tmp_path / "lost")


def test_devices_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="a device or a pipe"):
        write_file(tmp_path / "pipe")


@pytest.mark.parametrize("one_step", [True, False])
def test_a_folder_replaces_another(tmp_path, monkeypatch, one_step):
    if not one_step:
        monkeypatch.setattr(atomic.sys, "platform", "elsewhere")
    for text in ("old", "new"):
        with new_folder(tmp_path / "f", overwrite=True, files_of=os.listdir) as partial:
            (partial / text).mkdir()
            (partial / text / "file").write_text(text)
    assert names(tmp_path) == ["f"]
    assert names(tmp_path / "f") == ["new"]
    with pytest.raises(TypeError), new_folder(tmp_path / "f", overwrite=True, files_of=os.listdir) as partial:
        fail(partial / "half")
    assert names(tmp_path) == ["f"]
    assert names(tmp_path / "f") == ["new"]


def test_a_moved_folder_is_restored(tmp_path, monkeypatch):
    """If names are exchanged by two renames, a process may be killed between them."""
    code = f"""if True:
        import os, signal, sys
        from coterie.files import atomic, new_folder
        atomic.sys.platform = "elsewhere"
        original = os.rename
        def rename(*names):
            if os.path.lexists({str(tmp_path / "f")!r}):
                return original(*names)
            os.kill(os.getpid(), signal.SIGKILL)
        os.rename = rename
        with new_folder({str(tmp_path / "f")!r}, overwrite=True, files_of=os.listdir) as partial:
            (partial / "new").touch()
    """
    write_folder(tmp_path / "f", "old")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert not (tmp_path / "f").exists()
    with pytest.raises(FileExistsError, match="exists"), new_folder(tmp_path / "f", files_of=os.listdir):
        pass
    assert names(tmp_path) == ["f"]
    assert names(tmp_path / "f") == ["old"]


# Several writers -------------------------------------------------------------------------------


@pytest.mark.usefixtures("with_and_without_locks")
def test_concurrent_writers_of_the_same_file(tmp_path):
    with new_file(tmp_path / "a") as first:
        first.write_text("first")
        write_file(tmp_path / "a", "second")
        assert (tmp_path / "a").read_text() == "second"
    assert (tmp_path / "a").read_text() == "first"
    assert names(tmp_path) == ["a"]


@pytest.mark.usefixtures("with_and_without_locks")
def test_two_threads_write_one_file(tmp_path):
    barrier = threading.Barrier(2)

    def write(text):
        barrier.wait()
        write_file(tmp_path / "a", text)

    with ThreadPoolExecutor(2) as pool:
        for _ in range(100):
            list(pool.map(write, ["x" * 10_000, "y" * 50_000]))
            assert (tmp_path / "a").read_text() in ("x" * 10_000, "y" * 50_000)
    assert names(tmp_path) == ["a"]


def test_two_threads_save_models_to_one_path(tmp_path):
    models = [coterie.GroupDiscoveryClassifier(size) for size in (3, 4)]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(30):
            list(pool.map(coterie.save, models, [tmp_path / "m"] * 2))
            assert coterie.load(tmp_path / "m").n_features_to_select in (3, 4)
    assert names(tmp_path) == ["m"]


@pytest.mark.usefixtures("with_and_without_locks")
def test_only_one_of_two_threads_creates_a_folder(tmp_path):
    with new_folder(tmp_path / "f") as partial, ThreadPoolExecutor(1) as pool:
        with pytest.raises(BlockingIOError, match=rf"Another writer .*PID {os.getpid()} on .* is writing to .*f\. Wait"):
            pool.submit(write_folder, tmp_path / "f").result()
        (partial / "first").touch()
    assert names(tmp_path) == ["f"]
    assert names(tmp_path / "f") == ["first"]


@pytest.mark.usefixtures("with_and_without_locks")
def test_only_one_of_two_processes_holds_a_claim(tmp_path, other_process):
    process = other_process("claimed", tmp_path / "f")
    (tmp_path / "link").symlink_to(tmp_path / "f")
    for path in (tmp_path / "f", tmp_path / "link"):
        with pytest.raises(BlockingIOError, match=rf"PID {process.pid} on {temporary.HOST}"), claimed(path):
            pass
    write_file(tmp_path / "f")  # short writes are not claimed
    process.kill()
    process.wait()
    with claimed(tmp_path / "f"), claimed(tmp_path / "f", tmp_path / "link", None):
        assert names(tmp_path) == [".f.claim", "f", "link"]
    assert names(tmp_path) == ["f", "link"]
    assert claims._claims == {}


@pytest.mark.usefixtures("with_and_without_locks")
@pytest.mark.parametrize("words", ["", "coterie", "coterie claim: PID {own} on {host}", "coterie claim: PID 1 on elsewhere"])
def test_claims_of_killed_processes_have_no_effect(tmp_path, words):
    """In a container, every run has PID 1."""
    (tmp_path / ".f.claim").write_text(words.format(own=os.getpid(), host=temporary.HOST))
    with claimed(tmp_path / "f"):
        pass
    assert names(tmp_path) == []


def test_a_file_that_is_not_a_claim_is_kept(tmp_path):
    (tmp_path / ".f.claim").write_text("mine")
    with pytest.raises(FileExistsError, match="was not written by Coterie"), claimed(tmp_path / "f"):
        pass
    assert (tmp_path / ".f.claim").read_text() == "mine"


def test_files_are_claimed_only_where_they_can_be_written(tmp_path):
    for path, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "a", "does not exist. Create it before writing")):
        with pytest.raises(OSError, match=words), claimed_files(None, path):
            pass
    with claimed_files(tmp_path / "a"):
        write_file(tmp_path / "a")
    assert names(tmp_path) == ["a"]


@pytest.mark.skipif(os.name == "nt", reason="other permissions")
def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    def refuse(path, *_):  # root may write anywhere, so the error is simulated
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(claims.os, "open", refuse)
    with pytest.raises(OSError, match=r"Folder is not writable \(Permission denied\)"), claimed(tmp_path / "a"):
        pass


def test_many_processes_claim_and_one_gets_it(tmp_path):
    code = f"""if True:
        import sys
        from coterie.files import claimed
        print("ready", flush=True)
        input()
        try:
            with claimed({str(tmp_path / "f")!r}):
                print("mine", flush=True)
                input()
        except BlockingIOError:
            print("refused", flush=True)
    """
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(10)
        ]
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            print(file=writer.stdin, flush=True)
        assert sorted(writer.stdout.readline() for writer in writers) == ["mine\n"] + 9 * ["refused\n"]
        for writer in writers:
            writer.communicate("\n")
    assert names(tmp_path) == []


def test_a_folder_removed_before_it_is_locked_is_created_again(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    original, removed = fcntl.flock, []

    def late(handle, operation):
        if not removed:  # another writer treats it as a leftover
            removed.extend(tmp_path.iterdir())
            removed[0].rmdir()
        original(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with new_file(tmp_path / "a") as partial:
        assert partial.parent == removed[0]
        partial.write_text("new")
        with locked(partial.parent, wait=False) as taken:
            assert taken is False
    assert names(tmp_path) == ["a"]


# What killed writers have left -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["new_file", "new_folder"])
@pytest.mark.usefixtures("with_and_without_locks")
def test_only_leftovers_of_killed_processes_are_removed(tmp_path, other_process, kind):
    target = tmp_path / "f[1]*?"  # with characters that have a meaning for glob
    process = other_process(kind, target)
    (theirs,) = (name for name in names(tmp_path) if name.endswith(".partial"))
    assert writer_of(theirs, target) == (temporary.HOST, process.pid)
    write_file(target)
    assert theirs in names(tmp_path)
    target.unlink()
    process.kill()
    process.wait()
    write_folder(target)
    assert names(tmp_path) == [target.name]


@pytest.mark.usefixtures("with_and_without_locks")
def test_folders_of_another_host_are_kept_for_a_day(tmp_path):
    """The writer may be running although no process here has its PID and its lock is not visible here."""
    theirs = left(tmp_path / "a", host="elsewhere", age=0.9 * DAY)
    left(tmp_path / "a", host="elsewhere", token="00000000", age=1.1 * DAY)
    write_file(tmp_path / "a")
    assert names(tmp_path) == [theirs.name, "a"]
    os.utime(theirs, (time.time() - 1.1 * DAY,) * 2)
    write_file(tmp_path / "a")
    assert theirs.exists()  # its content was modified recently
    os.utime(theirs / "half", (time.time() - 1.1 * DAY,) * 2)
    write_file(tmp_path / "a")
    assert names(tmp_path) == ["a"]


def test_folders_locked_by_another_host_are_kept(tmp_path):
    pytest.importorskip("fcntl")
    theirs = left(tmp_path / "a", host="elsewhere", age=10 * DAY)
    with locked(theirs):
        write_file(tmp_path / "a")
        assert theirs.exists()
    write_file(tmp_path / "a")
    assert not theirs.exists()


@pytest.mark.usefixtures("with_and_without_locks")
def test_an_earlier_run_with_the_same_pid_has_ended(tmp_path):
    """In a container, every run has PID 1."""
    left(tmp_path / "f", pid=os.getpid())
    write_folder(tmp_path / "f")
    assert names(tmp_path) == ["f"]


@pytest.mark.usefixtures("with_and_without_locks")
def test_a_reused_pid_matters_only_without_locks(tmp_path, request):
    former = left(tmp_path / "a", pid=os.getppid())
    write_file(tmp_path / "a")
    assert former.exists() == (request.node.callspec.params["with_and_without_locks"] != "locks")


@pytest.mark.parametrize(
    "other",
    [
        ".a.notes.partial",
        ".a.12.partial",
        ".a.0123abcd.partial",
        ".a.b.{host}.12.0123abcd.partial",
        ".a.{host}.12.{host}.12.0123abcd.partial",
        ".ab.{host}.12.0123abcd.partial",
        ".a.{host}.12.0123abcde.partial",
        "a.partial",
        ".b.claim",
    ],
)
def test_other_files_are_never_removed(tmp_path, other):
    """Includes leftovers of other targets whose names have the same beginning."""
    other = other.format(host=temporary.HOST)
    (tmp_path / other).write_text("")
    os.utime(tmp_path / other, (0, 0))
    write_file(tmp_path / "a")
    assert sorted([other, "a"]) == names(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_folders_of_another_user_are_never_removed(tmp_path, monkeypatch):
    """In a shared folder, such as /tmp, any user can create such names."""
    theirs = left(tmp_path / "a")
    (tmp_path / "b").mkdir()
    link = tmp_path / theirs.name.replace("0123abcd", "0123abce")
    link.symlink_to(tmp_path / "b")
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    write_file(tmp_path / "a")
    assert theirs.exists()
    monkeypatch.undo()
    write_file(tmp_path / "a")
    assert names(tmp_path) == [link.name, "a", "b"]


@pytest.mark.parametrize("name", ["x" * 240, "é" * 120])
def test_long_names(tmp_path, name):
    left(tmp_path / name)
    similar = left(tmp_path / (name + "z"))  # with the same beginning
    write_folder(tmp_path / name)
    assert names(tmp_path) == sorted([name, similar.name])


# Locks and the disk ----------------------------------------------------------------------------


def test_a_lock_has_one_owner(tmp_path):
    pytest.importorskip("fcntl")
    with locked(tmp_path) as taken:
        assert taken is True
        with locked(tmp_path, wait=False) as again:
            assert again is False
    with (tmp_path / "a").open("wb") as file, (tmp_path / "a").open("ab") as other:
        assert lock(file) is True
        assert lock(other, wait=False) is False
        file.close()
        assert lock(other, wait=False) is True


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_lock_ends_although_a_forked_child_has_its_descriptor(tmp_path):
    code = f"""if True:
        import os, time
        from pathlib import Path
        from coterie.files import locked
        folder = Path({str(tmp_path)!r})
        with locked(folder):
            child = os.fork()
            if child == 0:
                time.sleep(600)
        with locked(folder, wait=False) as taken:
            print(taken)
        os.kill(child, 9)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True"], done.stderr


@pytest.mark.parametrize(("number", "passes"), [(errno.EINVAL, True), (errno.EIO, False), (errno.ENOSPC, False)])
def test_errors_of_sync(tmp_path, monkeypatch, number, passes):
    def refuse(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    if passes:
        sync(tmp_path)
    else:
        with pytest.raises(OSError, match=os.strerror(number)):
            sync(tmp_path)


def test_a_full_disk_is_named_with_amounts(tmp_path):
    with (
        pytest.raises(OSError, match=r"No space left on device \(.*MB are free\)\. Nothing was saved.*a.txt'") as caught,
        new_file(tmp_path / "a.txt"),
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(b"x")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "a.txt")
    assert names(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="no-such"), writing(tmp_path / "a"):  # other errors are not changed
        (tmp_path / "no-such").read_text()


def test_a_current_folder_that_was_removed_is_named(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError, match=r"The current folder was removed.* 'a\.txt'"), new_file("a.txt"):
        pass
    with new_file(tmp_path / "a.txt") as partial:
        partial.write_text("whole")
    assert (tmp_path / "a.txt").read_text() == "whole"
