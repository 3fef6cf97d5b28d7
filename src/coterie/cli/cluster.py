"""``--dask``: a command whose features are with the workers of a cluster."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.data import DataOptions
from coterie.cli.output import Output
from coterie.interruption import unheard

if TYPE_CHECKING:
    from distributed import Client

    from coterie.data import Dataset

# Seconds to wait for a scheduler, and for its first worker.
_PATIENCE = 60.0


@dataclass(frozen=True)
class Cluster:
    """Where the work is done.

    Attributes
    ----------
    dask : str or None
        Address of a Dask scheduler, or ``local`` for one of this machine's own, with a worker process a core.
    """

    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS|local",
            help="Do the work on a Dask cluster, whose workers read the data themselves: the scheduler's address "
            "(tcp://host:8786), or local for worker processes on this machine.",
            rich_help_panel="Data",
            show_default=False,
        ),
    ] = None

    def check(self, able: bool, what: str) -> None:
        """Refuse what cannot be done on a cluster, before one is looked for."""
        if self.dask is not None and not able:
            raise ValueError(f"{what} cannot be done on a cluster: it looks at all features together. Leave --dask out.")

    @contextmanager
    def opened(self, path: Path, options: DataOptions, voice: Output, **more: Any) -> Iterator[Dataset]:
        """The data, with their features on the cluster as long as this lasts, where one is asked for."""
        if self.dask is None:
            yield options.open(path, voice, **more)
            return
        from coterie.data.opening import open_store_with

        with self.client(path) as client:
            from coterie.cluster import DistributedSource

            def place(store: Any) -> Any:
                return DistributedSource.of_store(store, client)

            yield options.open(path, voice, partial(open_store_with, place=place), **more)

    @staticmethod
    def converting(client: Client) -> Callable[..., Path]:
        """:func:`coterie.data.convert` by the workers of a client."""
        from coterie.cluster import convert

        return partial(convert, client=client)

    @contextmanager
    def client(self, store: Path | None = None) -> Iterator[Any]:
        """A client of the cluster that was asked for, with a worker at least; None where none was asked for.

        What the workers are to open must be a ``store``.
        """
        if self.dask is None:
            yield None
            return
        from coterie.cluster import ClusterError
        from coterie.data.errors import missing_extra
        from coterie.data.opening import check_store

        if store is not None:
            check_store(store)  # before a cluster is started for it

        try:
            import distributed
        except ImportError as error:
            raise missing_extra("--dask", "dask.distributed", "dask") from error
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # lost workers are no news: the work goes on without them
        with ExitStack() as stack:
            where: Any = self.dask
            if self.dask == "local":
                with unheard(signal.SIGINT):  # Ctrl-C is for this process, which ends the work of the others
                    where = stack.enter_context(
                        distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL)
                    )
            try:
                client = stack.enter_context(distributed.Client(where, set_as_default=False, timeout=_PATIENCE))
                client.wait_for_workers(1, timeout=_PATIENCE)
            except (OSError, TimeoutError, ValueError) as error:
                raise ClusterError(
                    f"--dask {self.dask}: there is no scheduler with a worker to be reached there ({type(error).__name__}). "
                    "Start one with `dask scheduler` and `dask worker tcp://host:8786`, or use --dask local."
                ) from error
            yield client
