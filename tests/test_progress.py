"""Progress: bars on a terminal, lines in a log, nothing with verbose=0."""

import io
import re
import sys

import pytest

from coterie.progress import RoundProgress, StepProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def shown(self):
        """Return the output without colours and cursor movements."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue())


def use_terminal(monkeypatch):
    """Replace stderr by a terminal; not a fixture, because pytest replaces the streams after fixtures."""
    for name, value in {"TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def rounds(verbose=1, total=4):
    with RoundProgress(total, verbose, "discover", "features") as bar:
        bar.update(0, "nothing yet")
        bar.update(3, "gap 0.1")


def steps(verbose=1):
    with StepProgress(verbose, "convert") as progress:
        progress.update(10, 200, "reading")
        progress.update(150, 200, "reading")
        progress.update(5, None, "reading samples")
        progress.update(3, 4, "writing features")


@pytest.mark.parametrize("work", [rounds, steps])
def test_nothing_is_shown_by_default(work, monkeypatch, capsys):
    work(verbose=0)
    assert capsys.readouterr() == ("", "")
    terminal = use_terminal(monkeypatch)
    work(verbose=0)
    assert terminal.getvalue() == ""


def test_rounds_are_lines_in_a_log(capsys):
    rounds()
    printed, log = capsys.readouterr()
    assert printed == ""
    first, second = log.splitlines()
    assert re.fullmatch(r"\[discover\] 0/4 features, nothing yet, \d+\.\d s", first)
    assert re.fullmatch(r"\[discover\] 3/4 features, gap 0.1, \d+\.\d s, about \d+\.\d s left", second)


def test_rounds_without_a_known_end(capsys):
    rounds(total=None)
    assert re.fullmatch(r"\[discover\] 3 features, gap 0.1, \d+\.\d s", capsys.readouterr().err.splitlines()[1])


def test_steps_are_lines_in_a_log_once_each(capsys):
    steps()
    assert capsys.readouterr() == ("", "[convert] reading\n[convert] reading samples\n[convert] writing features\n")


def test_rounds_are_one_bar_on_a_terminal(monkeypatch, capsys):
    terminal = use_terminal(monkeypatch)
    rounds()
    assert capsys.readouterr().out == ""
    last = terminal.shown().rstrip().splitlines()[-1]
    assert re.match(r"discover [━╸╺ ]+ 3/4 \d:\d\d:\d\d .* gap 0.1", last)
    assert "[discover]" not in terminal.shown()


def test_steps_are_a_bar_each_on_a_terminal(monkeypatch):
    terminal = use_terminal(monkeypatch)
    steps()
    bars = terminal.shown().rstrip().splitlines()[-3:]
    assert re.match(r"reading +[━╸╺ ]+ +75% ", bars[0])
    assert re.match(r"reading samples [━╸╺ ]+ ", bars[1])
    assert re.match(r"writing features [━╸╺ ]+ +75% ", bars[2])
    assert "[convert]" not in terminal.shown()


@pytest.mark.parametrize("progress", [RoundProgress(2, 1, "discover"), StepProgress(1, "convert")])
def test_an_error_ends_the_bars(progress, monkeypatch):
    terminal = use_terminal(monkeypatch)
    with pytest.raises(ValueError, match="trouble"), progress:
        raise ValueError("trouble")
    assert terminal.getvalue().endswith("\x1b[?25h")  # the cursor is shown again
