"""Tasks for ``dask.distributed``, and checks that its workers compute like this process."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import sparse

from coterie.cluster import ClusterError
from coterie.data.errors import missing_extra
from coterie.data.memory import DenseSource, SparseSource
from coterie.data.validity import canonical_csc

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
# Seconds without a result after which a wait ends with an error. Dask's scheduler removes a worker that was stopped, not
# killed, after its worker-ttl of five minutes, and gives its tasks to other workers.
LIMIT = 900.0
# Seconds to wait for the first worker of a cluster that has none yet.
WAIT = 300.0
# Seconds between two checks for results.
_POLL_SECONDS = 5.0
# Seconds between two checks for the first worker.
_WORKER_POLL_SECONDS = 0.2
# Seconds after which a late task is also given to another worker, and factor by which it must be later than others.
_PATIENCE, _LATE_FACTOR = 30.0, 10.0
# Factor of the patience if there is no result at all, and seconds after the last message of any worker for which a silent
# worker counts as responsive.
_SILENCE_FACTOR, _MAX_SILENT_SECONDS = 4.0, 3.0


class DaskEngine:
    """Submission of tasks to the workers of a Dask cluster.

    Tasks are pure, so another worker can repeat them, and a lost worker only costs time. An engine owns no data.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    limit : float, default=900
        Seconds without a result after which a wait ends with an error.
    patience : float, default=30
        Seconds after which late tasks, if similar tasks have long finished, are also given to another worker.
    wait : float, default=300
        Seconds to wait for the first worker of a cluster that has none yet.

    Attributes
    ----------
    n_tasks : int
        Number of tasks submitted.
    bytes_up, bytes_down : int
        Bytes of shared values (each worker fetches those it needs once), and of results received.

    Examples
    --------
    >>> from coterie.cluster import DaskEngine
    >>> DaskEngine("tcp://...")
    Traceback (most recent call last):
    ...
    TypeError: client must be a distributed.Client, but is of type str.
    """

    def __init__(self, client: Client, *, limit: float = LIMIT, patience: float = _PATIENCE, wait: float = WAIT) -> None:
        try:
            import distributed
        except ImportError as error:
            raise missing_extra("A cluster", "dask.distributed", "dask") from error
        if not isinstance(client, distributed.Client):
            raise TypeError(f"client must be a distributed.Client, but is of type {type(client).__name__}.")
        self.client = client
        self.limit = limit
        self.patience = patience
        self.wait = wait
        self.n_tasks = self.bytes_up = self.bytes_down = 0
        self._number = 0

    @property
    def workers(self) -> list[str]:
        """Addresses of the workers."""
        return sorted(self._ask(self.client.nthreads, "the list of workers"))

    @property
    def n_threads(self) -> int:
        return sum(self._ask(self.client.nthreads, "the number of threads").values())

    def share(self, value: object, home: str | None = None) -> Future:
        """Return a future of the value: the result of a task that returns it, which Dask repeats if it is lost."""
        self.bytes_up += size_of(value)
        with self._without_size_warning():
            options = {} if home is None else {"workers": [home], "allow_other_workers": True}
            task = partial(self.client.submit, _identity, value, pure=False, key=self._key("share"), **options)
            return self._ask(task, "sharing of a value")

    def map(
        self, function: Callable[..., Any], parts: Sequence[tuple[Any, ...]], shared: object, homes: Sequence[str | None]
    ) -> list[Future]:
        """Return futures of ``function(*part, shared)``."""
        name = function.__name__.strip("_")

        def submit() -> list[Future]:
            return [
                self.client.submit(
                    function,
                    *part,
                    shared,
                    pure=False,
                    key=self._key(name),
                    retries=2,
                    **({} if home is None else {"workers": [home], "allow_other_workers": True}),
                )
                for part, home in zip(parts, homes, strict=True)
            ]

        self.n_tasks += len(parts)
        with self._without_size_warning():
            return self._ask(submit, "submission of tasks")

    def gather(
        self,
        handles: Sequence[Future],
        what: str,
        again: Callable[[int], Future] | None = None,
        on_answer: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """Return the results in order. Late tasks are repeated on another worker by ``again``, if given.

        After an error or Ctrl-C, all tasks are cancelled.
        """
        futures = [[handle] for handle in handles]
        known: dict[int, Any] = {}

        def take(places: list[int]) -> None:
            first = [next(future for future in futures[k] if future.done()) for k in places]
            for k, result in zip(places, self._collect_results(first, what), strict=True):
                known[k] = result
                if on_answer is not None:
                    on_answer(k, result)

        try:
            self._wait(futures, what, again, take if on_answer is not None else None)
            take([k for k in range(len(futures)) if k not in known])
            results = [known[k] for k in range(len(futures))]
        except BaseException:
            with suppress(Exception):  # the scheduler may be lost
                self.client.cancel([future for attempts in futures for future in attempts], asynchronous=None)
            raise
        self.bytes_down += sum(size_of(result) for result in results)
        return results

    def _wait(
        self,
        futures: list[list[Future]],
        what: str,
        again: Callable[[int], Future] | None,
        on_done: Callable[[list[int]], None] | None = None,
    ) -> None:
        """Wait until each part has a result, repeat late tasks, and report finished parts to ``on_done``."""
        from distributed.client import _wait

        start = last_result = time.monotonic()
        n_done, seconds = 0, [0.0] * len(futures)
        reported: set[int] = set()
        while True:
            missing = [k for k, attempts in enumerate(futures) if not any(future.done() for future in attempts)]
            if on_done is not None and (finished := sorted(set(range(len(futures))) - set(missing) - reported)):
                reported.update(finished)
                on_done(finished)
            if not missing:
                return
            now = time.monotonic()
            if len(futures) - len(missing) > n_done:
                n_done, last_result = len(futures) - len(missing), now
                seconds = [t or (now - start) * (k not in missing) for k, t in enumerate(seconds)]
            self._check(what)
            if now - last_result > self.limit:
                workers = ", ".join(self._known_workers()) or "none"
                raise ClusterError(
                    f"No results from the cluster for {self.limit:.0f} s while waiting for {what}: {len(missing)} of "
                    f"{len(futures)} parts have not responded. Check that the workers ({workers}) are running and have enough "
                    "memory."
                )
            known = [t for t in seconds if t > 0.0]
            waited = now - start
            # Without any result, all tasks may take long, or a value that they need is held by a worker that does not respond.
            late = waited > (
                max(self.patience, _LATE_FACTOR * float(np.median(known))) if known else _SILENCE_FACTOR * self.patience
            )
            if again is not None and late:
                for k in missing:
                    if len(futures[k]) == 1:
                        futures[k].append(again(k))
            pending = [future for k in missing for future in futures[k]]
            wait_for_all = len(pending) == len(missing) and on_done is None
            when = "ALL_COMPLETED" if wait_for_all else "FIRST_COMPLETED"
            with suppress(TimeoutError), self._translate_errors(what):
                self.client.sync(_wait, pending, timeout=min(_POLL_SECONDS, self.limit / 4, self.patience), return_when=when)

    @contextmanager
    def _translate_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise
        except _lost_errors() as error:
            raise self._scheduler_lost(what, error) from error

    def responsive_workers(self) -> list[str]:
        """Return the workers that the scheduler has heard from recently. A stopped worker is not among them."""
        known = self._ask(self.client.scheduler_info, "the list of workers")["workers"]
        seen = {address: float(about.get("last_seen", 0.0)) for address, about in known.items()}
        newest = max(seen.values(), default=0.0)
        return sorted(address for address, when in seen.items() if newest - when <= _MAX_SILENT_SECONDS)

    def _collect_results(self, futures: list[Future], what: str) -> list[Any]:
        import distributed

        try:
            return list(self.client.sync(self.client._gather, futures, callback_timeout=self.limit))
        except distributed.scheduler.KilledWorker as error:
            raise ClusterError(
                f"Workers were killed repeatedly while they computed {what}, probably because of insufficient memory. "
                "Increase their memory (--memory-limit) or use more workers."
            ) from error
        except ModuleNotFoundError as error:
            raise ClusterError(
                f"A worker of the cluster lacks {error.name!r}. Install coterie on all workers as in this process."
            ) from error
        except _lost_errors() as error:
            raise self._scheduler_lost(what, error) from error

    def _check(self, what: str) -> None:
        if self.client.status not in ("running", "newly-created"):
            raise self._scheduler_lost(what, None)

    def _scheduler_lost(self, what: str, error: BaseException | None) -> ClusterError:
        address = getattr(getattr(self.client, "scheduler", None), "address", "") or ""
        detail = f" ({type(error).__name__})" if error is not None else ""
        where = f" at {address}" if address else ""
        return ClusterError(f"The connection to the scheduler of the cluster{where} was lost{detail}. Requested: {what}.")

    def _ask(self, request: Callable[[], T], what: str) -> T:
        """Return the result of a request to the scheduler; convert errors of a lost connection."""
        self._check(what)
        try:
            return request()
        except _lost_errors() as error:
            raise self._scheduler_lost(what, error) from error
        except RuntimeError as error:
            if "closed" in str(error) or "lost" in str(error).lower():
                raise self._scheduler_lost(what, error) from error
            raise

    def _known_workers(self) -> list[str]:
        with suppress(Exception):
            return self.workers
        return []

    def _key(self, name: str) -> str:
        self._number += 1
        return f"coterie-{name}-{id(self):x}-{self._number}"

    @contextmanager
    def _without_size_warning(self) -> Iterator[None]:
        """Disable Dask's warning about large graphs. The large values here are residuals, which must be sent."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100GB"}):
            yield


def _lost_errors() -> tuple[type[BaseException], ...]:
    """Return the errors that Dask raises if the connection to the scheduler is lost."""
    from concurrent.futures import CancelledError

    from distributed import CancelledError as Lost
    from distributed.comm.core import CommClosedError

    return CancelledError, Lost, CommClosedError, TimeoutError, OSError


def _identity(value: T) -> T:
    return value


def size_of(value: object) -> int:
    """Return the approximate bytes of the arrays in a value. Anything else is small."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(size_of(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return sum(size_of(item) for item in value)
    if isinstance(value, (sparse.csc_array, sparse.csr_array)):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if hasattr(value, "__dict__"):
        return sum(size_of(item) for item in vars(value).values())
    return 8


def check_workers(engine: DaskEngine) -> None:
    """Raise if a cluster has no workers or another version of Coterie; warn if its processors sum in another order."""
    workers = engine.workers or _first_workers(engine)  # read once, because others may join in the meantime
    handles = engine.map(_version_and_digest, [() for _ in workers], {}, workers)
    seen = engine.gather(handles, "the versions of coterie on the workers")
    versions = {version for version, _ in seen} - {this_version()}
    if versions:
        raise ClusterError(
            f"The workers have coterie {', '.join(sorted(versions))}, but this process has {this_version()}. Install the same "
            "version everywhere."
        )
    if any(digest != code_digest() for _, digest in seen):
        warnings.warn(
            "The kernels of some workers sum in another order than those of this process (other processors). The groups are "
            "the same, but the last digits may depend on the worker. For identical digits, set NUMBA_CPU_NAME=generic here "
            "and on all workers.",
            UserWarning,
            stacklevel=4,
        )


def _first_workers(engine: DaskEngine) -> list[str]:
    """Wait for the first workers of a cluster and return them."""
    task = engine.map(_version_and_digest, [()], {}, [None])  # an adaptive cluster starts workers only if there are tasks
    deadline = time.monotonic() + engine.wait
    while not (workers := engine.workers):
        if time.monotonic() > deadline:
            engine.client.cancel(task)
            raise ClusterError(
                f"The cluster has no workers, and none has joined for {engine.wait:g} s. Start some, or wait longer for them "
                "(client.wait_for_workers(1))."
            )
        time.sleep(_WORKER_POLL_SECONDS)
    return workers


def _version_and_digest(_: dict[str, object]) -> tuple[str, str]:
    return this_version(), code_digest()


def this_version() -> str:
    """Return the version of Coterie in this process."""
    import coterie

    return coterie.__version__


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return a digest of kernel results, because processors with other vector registers sum in another order."""
    rng = np.random.default_rng(20120626)
    X, vectors = np.asfortranarray(rng.standard_normal((997, 3))), rng.standard_normal((997, 2))
    X[rng.random(X.shape) < 0.5] = 0.0
    text = hashlib.sha256()
    for source in (DenseSource(X), DenseSource((8 * X).astype(np.int8)), SparseSource(canonical_csc(sparse.csc_array(X)))):
        moments = source.moments()
        products = source.products(vectors), source.products(vectors[:, :1], centre=moments.mean)
        for part in (moments.mean, moments.norm, *products):
            text.update(np.ascontiguousarray(part).tobytes())
    return text.hexdigest()[:16]
