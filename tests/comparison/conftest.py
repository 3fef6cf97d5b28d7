"""Comparisons in this process, for tests that do not concern processes."""

import pytest

from coterie.comparison import run
from coterie.comparison.trial import Trial


class Inline:
    """Replacement of the schedule that runs all trials in this process."""

    def __init__(self, setting, folder, limits, n_jobs):
        self.setting = setting

    def run(self, units, on_row):
        for unit in units:
            Trial(self.setting, unit.entry).run(unit.fold, list(unit.sizes), on_row)


@pytest.fixture
def inline(monkeypatch):
    monkeypatch.setattr(run, "Schedule", Inline)
