"""A comparison of methods whose units run on workers, each in a process of its own there; the journal stays on the client."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from joblib import cpu_count

from coterie.cluster.dask_engine import DaskEngine, check_workers
from coterie.cluster.parts import check_same_store, is_wanted, threads_of_worker
from coterie.comparison.process import Limits, OnRow, Schedule, Unit, pickled
from coterie.comparison.result import Row
from coterie.comparison.trial import Setting
from coterie.files import temporary_folder

if TYPE_CHECKING:
    from distributed import Client

# Seconds without any news of units that have no limit of their own: methods may take long.
_LIMIT = 86_400.0
# Seconds that a unit may take on top of its limit, until its rows are here.
_MORE = 900.0


class ClusterSchedule:
    """Runs units, one a task.

    Parameters
    ----------
    setting : Setting
        What all methods share; its store is one that all workers can open.
    check : str
        Checksum of the store's header.
    limits : Limits
        Limits for each unit, which the worker sees to.
    client : distributed.Client
        The client of the cluster.
    """

    def __init__(self, setting: Setting, check: str, limits: Limits, client: Client) -> None:
        self.setting = setting
        self.check = check
        self.limits = limits
        # Units of a fold after the other may have to wait for a worker, but one of those that run is over by then.
        self.engine = DaskEngine(client, limit=_LIMIT if limits.seconds is None else limits.seconds + _MORE)
        check_workers(self.engine)

    def run(self, units: Sequence[Unit], on_row: OnRow) -> None:
        """Run all units; rows come as units are done. After an error or Ctrl-C no process goes on."""
        shared = {"setting": self.engine.share(pickled(self.setting, "classifier or scoring"))}
        parts = [
            (self.check, pickled(unit.contender, f"selector {unit.contender.name!r}"), unit.fold, unit.sizes, self.limits)
            for unit in units
        ]
        handles = self.engine.map(run_unit, parts, shared, [None] * len(units))

        def tell(_: int, rows: list[tuple[Row, np.ndarray]]) -> None:
            for row, features in rows:
                on_row(row, features)

        self.engine.gather(handles, "folds of the comparison", on_answer=tell)


def run_unit(
    check: str, contender: bytes, fold: int, sizes: list[int], limits: Limits, shared: dict[str, bytes]
) -> list[tuple[Row, np.ndarray]]:
    """A fold of a method, on a worker: all of its rows."""
    setting: Setting = pickle.loads(shared["setting"])  # from our own client, as the whole task is
    check_same_store(str(setting.store), check)
    rows: list[tuple[Row, np.ndarray]] = []
    with temporary_folder(Path(tempfile.gettempdir()) / "coterie-compare") as scratch:
        beside = max(1, cpu_count() // threads_of_worker())  # as many units may run on a machine at the same time
        schedule = Schedule(setting, scratch, limits, beside, wanted=is_wanted)
        schedule.run([Unit(pickle.loads(contender), fold, list(sizes))], lambda row, features: rows.append((row, features)))
    return rows
