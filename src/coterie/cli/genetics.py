"""What people with genotypes ask for: the association of single features, and the windows of clumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from coterie.data import Dataset

_PANEL = "Genetics"


@dataclass(frozen=True)
class Genetics:
    """Options of ``coterie discover``.

    Attributes
    ----------
    association : bool or None
        Whether to compute effect and p-value of each feature of the groups; None for data with chromosomes.
    clump_kb, clump_r2, clump_p2 : float
        As for :meth:`coterie.FeatureGroups.clumps`.
    """

    association: Annotated[
        bool | None,
        typer.Option(
            "--association/--no-association",
            help="Effect and p-value of each feature of the groups by itself, beside the covariates; the default for PLINK.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    clump_kb: Annotated[
        float,
        typer.Option("--clump-kb", help="groups.clumps: SNPs within so many kb of the support SNP.", rich_help_panel=_PANEL),
    ] = 250.0
    clump_r2: Annotated[
        float | None,
        typer.Option(
            "--clump-r2",
            help="groups.clumps: SNPs with at least this r² to the support SNP; the whole group by default.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    clump_p2: Annotated[
        float,
        typer.Option("--clump-p2", help="groups.clumps: SNPs listed in SP2 have a smaller p-value.", rich_help_panel=_PANEL),
    ] = 1.0

    @property
    def windows(self) -> dict[str, Any]:
        """For :meth:`coterie.FeatureGroups.clumps`."""
        return {"kb": self.clump_kb, "r2": self.clump_r2, "p2": self.clump_p2}

    def check(self) -> None:
        """Refuse windows that are none, before anything is read."""
        for name, value, most in (("kb", self.clump_kb, None), ("r2", self.clump_r2, 1.0), ("p2", self.clump_p2, 1.0)):
            if value is not None and (value < 0 or (most is not None and value > most)):
                raise ValueError(f"--clump-{name} {value:g} must be at least 0{' and at most 1' if most else ''}.")

    def add_association(self, model: Any, dataset: Dataset, task: str) -> None:
        """Let the groups of a fitted model have effects and p-values, where they are wanted and there are any."""
        possible = task == "regression" or (task == "classification" and len(model.classes_) == 2)
        if self.association and not possible:
            raise ValueError("--association needs two classes or numbers to predict; leave it out.")
        if not possible or not (self.association if self.association is not None else "chromosome" in dataset.feature_info):
            return
        from coterie import association

        kind = "linear" if task == "regression" else "logistic"
        model.groups_ = association(dataset, features=model.groups_, model=kind).attach(model.groups_)
