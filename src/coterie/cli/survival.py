"""Options for survival times: the columns of times, events, strata and entry times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from coterie.cli.columns import opening_options, other_columns
from coterie.cli.data import DataOptions
from coterie.cli.options import option

if TYPE_CHECKING:
    from coterie.data import Dataset

_PANEL = "Survival"


@dataclass(frozen=True)
class SurvivalOptions:
    """Columns of survival times."""

    time: Annotated[
        str | None,
        option(
            _PANEL,
            "Times of events or of the end of observation: a column, key, obs column or text file, as for --label. Implies "
            "--task survival.",
            metavar="COLUMN",
        ),
    ] = None
    event: Annotated[
        str | None,
        option(_PANEL, "Whether the event occurred: 1 or True, or 0 or False for censored samples.", metavar="COLUMN"),
    ] = None
    strata: Annotated[
        str | None,
        option(_PANEL, "Strata, such as hospitals, with different baseline hazards.", metavar="COLUMN"),
    ] = None
    entry: Annotated[
        str | None,
        option(
            _PANEL,
            "Entry times (delayed entry, left truncation): each sample is under observation from after its entry to its time.",
            metavar="COLUMN",
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether any column is given."""
        return any(name is not None for name in (self.time, self.event, self.strata, self.entry))

    def settle(self, task: str, labels: list[str] | None) -> str:
        """Return the task that the options imply. Raise a ``ValueError`` if they cannot be combined."""
        if task != "survival" and not self.given:
            return task
        if task not in ("auto", "survival"):
            raise ValueError(f"--time, --event, --strata and --entry require --task survival, not {task}.")
        if self.time is None or self.event is None:
            raise ValueError("Survival times require both --time and --event.")
        if labels:
            raise ValueError("--label and --time cannot be combined. Remove --label.")
        return "survival"

    def data_options(self, options: DataOptions, path: Path) -> DataOptions:
        """Return the options that open the data with the times as labels, and without the other columns as features."""
        return opening_options(options, path, self._names)

    @property
    def _names(self) -> list[str]:
        """The columns, the times first."""
        return [name for name in (self.time, self.event, self.strata, self.entry) if name is not None]

    def with_targets(self, dataset: Dataset, path: Path, options: DataOptions) -> Dataset:
        """Return data that were opened with the times as labels, with survival targets."""
        import numpy as np

        from coterie.inputs.survival import survival_records

        found = other_columns(dataset, self._names, path, options)
        keys = {"event": self.event, "stratum": self.strata, "entry": self.entry}
        columns = {key: found[name] for key, name in keys.items() if name is not None}
        others = {name: codes for name, codes in dataset.other_columns.items() if name not in found}
        return replace(dataset, y=survival_records({"time": np.asarray(dataset.y), **columns}), other_columns=others)
