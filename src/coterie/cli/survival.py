"""Options for survival times: the columns of times, events and strata."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from coterie.cli.data import TABLES, DataOptions
from coterie.cli.options import option

if TYPE_CHECKING:
    import numpy as np

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

    @property
    def given(self) -> bool:
        """Whether any column is given."""
        return self.time is not None or self.event is not None or self.strata is not None

    def settle(self, task: str, label: str | None) -> str:
        """Return the task that the options imply. Raise a ``ValueError`` if they cannot be combined."""
        if task != "survival" and not self.given:
            return task
        if task not in ("auto", "survival"):
            raise ValueError(f"--time, --event and --strata require --task survival, not {task}.")
        if self.time is None or self.event is None:
            raise ValueError("Survival times require both --time and --event.")
        if label is not None:
            raise ValueError("--label and --time cannot be combined. Remove --label.")
        return "survival"

    def data_options(self, options: DataOptions, path: Path) -> DataOptions:
        """Return the options that open the data with the times as labels, and without the other columns as features."""
        from coterie.data.readers.formats import detect_format, resolve

        file = resolve(path)
        kind = options.format or (detect_format(file) if file.is_file() else "")
        others = [name for name in (self.event, self.strata) if name is not None] if kind in TABLES else []
        return replace(options, label=self.time, drop=[*(options.drop or []), *others])

    def with_targets(self, dataset: Dataset, path: Path, options: DataOptions) -> Dataset:
        """Return data that were opened with the times as labels, with survival targets."""
        import numpy as np

        from coterie.inputs.survival import survival_records

        columns = {"time": np.asarray(dataset.y)}
        for name, key in ((self.event, "event"), (self.strata, "stratum")):
            if name is None:
                continue
            columns[key] = self._values(name, dataset, path, options)
            if len(columns[key]) != len(columns["time"]):
                raise ValueError(
                    f"{name} has {len(columns[key])} values, but the data have {len(columns['time'])} samples with a time. "
                    "Complete both, or remove the samples without a time."
                )
        others = {name: codes for name, codes in dataset.other_columns.items() if name not in (self.event, self.strata)}
        return replace(dataset, y=survival_records(columns), other_columns=others)

    def _values(self, name: str, dataset: Dataset, path: Path, options: DataOptions) -> np.ndarray:
        """Return the values of a column, read as labels."""
        from coterie.data import open_features
        from coterie.data.errors import with_scheme
        from coterie.data.readers.reader import labels_in_file

        if dataset.format == "store":
            return labels_in_file(name, path)
        other: tuple[str, ...] = ("label", "sample_groups", "drop", "impute", "keep_numeric", "covariates", "covariate_names")
        arguments: dict[str, Any] = {key: value for key, value in options.arguments().items() if key not in other}
        if dataset.format in TABLES:
            arguments["columns"] = [self.time]  # reads no other features
        found = open_features(with_scheme(path), label=name, **arguments).y
        assert found is not None
        return found
