"""What Coterie needs of a cluster: to share a value, to map a function over parts, to gather the answers. Nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class ClusterError(RuntimeError):
    """The cluster could not do its part: it is gone, does not answer, or is of another make than this process.

    Examples
    --------
    >>> from coterie.cluster import ClusterError
    >>> str(ClusterError("The scheduler is gone."))
    'The scheduler is gone.'
    """


class Engine(Protocol):
    """A cluster of workers.

    Tasks are pure: whatever a worker has done can be done again by another one, so that a lost worker costs time and nothing
    else. An engine never owns data.
    """

    @property
    def n_threads(self) -> int:
        """Threads of all workers."""
        ...

    @property
    def workers(self) -> list[str]:
        """The workers that are there."""
        ...

    def lively(self) -> list[str]:
        """Those of them that were heard of lately."""
        ...

    def share(self, value: Any, home: str | None = None) -> Any:
        """A handle to a value that tasks can be given, best kept by a worker; it must be possible to make it anew on any."""
        ...

    def map(
        self, function: Callable[..., Any], parts: Sequence[tuple[Any, ...]], shared: Any, homes: Sequence[str | None]
    ) -> Any:
        """Begin ``function(*part, shared)`` for each part, best on its home, but on any worker; returns handles.

        Handles in parts and in the dictionary ``shared`` are replaced by their values.
        """
        ...

    def gather(
        self,
        handles: Any,
        what: str,
        again: Callable[[int], Any] | None = None,
        on_answer: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """The answers, in order. Waits no longer than the limit without any news, and says for what it has waited.

        A task that is late may be begun ``again``, elsewhere: the handle of the second one is ``again(position)``. Whoever
        cannot wait for the last of them is told each one as it comes, ``on_answer(position, answer)``.
        """
        ...
