"""A cluster of Dask: tasks for ``dask.distributed``, and whether its workers compute like this process."""

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
# Seconds without any news after which a wait ends with an error. A worker that was stopped, not killed, is given up by Dask's
# scheduler after its worker-ttl of five minutes; then its tasks go to others.
LIMIT = 900.0
# Seconds between two looks at what is done.
_TICK = 5.0
# Seconds after which a part that is late is asked for once more, of another worker; and how much later than others it must be.
_PATIENCE, _TIMES = 30.0, 10.0
# How much longer to wait where none has answered; and seconds since a worker was last heard of, over the last to be heard of.
_SILENCE, _UNHEARD = 4.0, 3.0


class DaskEngine:
    """Tasks for the workers of a Dask cluster.

    Tasks are pure: whatever a worker has done can be done again by another one, so that a lost worker costs time and nothing
    else. An engine never owns data.

    Parameters
    ----------
    client : distributed.Client
        The client.
    limit : float, default=900
        Seconds without any news from the cluster after which a wait ends with an error.
    patience : float, default=30
        Seconds after which tasks that are late, when others of their kind are long done, are also given to another worker.

    Attributes
    ----------
    n_tasks : int
        Tasks begun so far.
    bytes_up, bytes_down : int
        Bytes of values that were shared (each worker fetches those that it needs once), and of answers that came back.

    Examples
    --------
    >>> from coterie.cluster import DaskEngine
    >>> DaskEngine("tcp://...")
    Traceback (most recent call last):
    ...
    TypeError: client is a str; a distributed.Client is needed.
    """

    def __init__(self, client: Client, *, limit: float = LIMIT, patience: float = _PATIENCE) -> None:
        try:
            import distributed
        except ImportError as error:
            raise missing_extra("A cluster", "dask.distributed", "dask") from error
        if not isinstance(client, distributed.Client):
            raise TypeError(f"client is a {type(client).__name__}; a distributed.Client is needed.")
        self.client = client
        self.limit = limit
        self.patience = patience
        self.n_tasks = self.bytes_up = self.bytes_down = 0
        self._number = 0

    @property
    def workers(self) -> list[str]:
        """Addresses of the workers that are there."""
        return sorted(self._ask(self.client.nthreads, "the list of workers"))

    @property
    def n_threads(self) -> int:
        return sum(self._ask(self.client.nthreads, "the number of threads").values())

    def share(self, value: object, home: str | None = None) -> Future:
        """A future of the value: the result of a task that returns it, so that it is made anew when it is lost."""
        self.bytes_up += size_of(value)
        with self._quiet():
            options = {} if home is None else {"workers": [home], "allow_other_workers": True}
            task = partial(self.client.submit, _itself, value, pure=False, key=self._key("share"), **options)
            return self._ask(task, "a value to be shared")

    def map(
        self, function: Callable[..., Any], parts: Sequence[tuple[Any, ...]], shared: object, homes: Sequence[str | None]
    ) -> list[Future]:
        """Futures of ``function(*part, shared)``."""
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
        with self._quiet():
            return self._ask(submit, "tasks to be taken")

    def gather(
        self,
        handles: Sequence[Future],
        what: str,
        again: Callable[[int], Future] | None = None,
        on_answer: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """Answers in order; tasks that are late are begun ``again`` elsewhere, where that is told how.

        After an error or Ctrl-C no task goes on.
        """
        futures = [[handle] for handle in handles]
        known: dict[int, Any] = {}

        def take(places: list[int]) -> None:
            first = [next(one for one in futures[k] if one.done()) for k in places]
            for k, answer in zip(places, self._gathered(first, what), strict=True):
                known[k] = answer
                if on_answer is not None:
                    on_answer(k, answer)

        try:
            self._wait(futures, what, again, take if on_answer is not None else None)
            take([k for k in range(len(futures)) if k not in known])
            answers = [known[k] for k in range(len(futures))]
        except BaseException:
            with suppress(Exception):  # the scheduler may be gone
                self.client.cancel([one for own in futures for one in own], asynchronous=None)
            raise
        self.bytes_down += sum(size_of(answer) for answer in answers)
        return answers

    def _wait(
        self,
        futures: list[list[Future]],
        what: str,
        again: Callable[[int], Future] | None,
        on_done: Callable[[list[int]], None] | None = None,
    ) -> None:
        """Wait until each part has an answer; begin late ones once more; tell which are done as they come."""
        from distributed.client import _wait

        began = news = time.monotonic()
        n_done, taken = 0, [0.0] * len(futures)
        told: set[int] = set()
        while True:
            missing = [k for k, own in enumerate(futures) if not any(one.done() for one in own)]
            if on_done is not None and (fresh := sorted(set(range(len(futures))) - set(missing) - told)):
                told.update(fresh)
                on_done(fresh)
            if not missing:
                return
            now = time.monotonic()
            if len(futures) - len(missing) > n_done:
                n_done, news = len(futures) - len(missing), now
                taken = [t or (now - began) * (k not in missing) for k, t in enumerate(taken)]
            self._check(what)
            if now - news > self.limit:
                raise ClusterError(
                    f"No news from the cluster for {self.limit:.0f} s while waiting for {what}: {len(missing)} of "
                    f"{len(futures)} parts have not answered. Are its workers ({', '.join(self._who()) or 'none'}) alive and "
                    "large enough?"
                )
            known = [t for t in taken if t > 0.0]
            waited = now - began
            # Where nobody has answered, all may be at long work; or what they need lies with one that does not answer.
            late = waited > (max(self.patience, _TIMES * float(np.median(known))) if known else _SILENCE * self.patience)
            if again is not None and late:
                for k in missing:
                    if len(futures[k]) == 1:
                        futures[k].append(again(k))
            pending = [one for k in missing for one in futures[k]]
            at_once = len(pending) == len(missing) and on_done is None
            when = "ALL_COMPLETED" if at_once else "FIRST_COMPLETED"
            with suppress(TimeoutError), self._translated(what):
                self.client.sync(_wait, pending, timeout=min(_TICK, self.limit / 4, self.patience), return_when=when)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise
        except _lost_errors() as error:
            raise self._gone(what, error) from error

    def lively(self) -> list[str]:
        """The workers that the scheduler has heard of lately: a stopped one is not among them, although it is not lost yet."""
        known = self._ask(self.client.scheduler_info, "the list of workers")["workers"]
        seen = {address: float(about.get("last_seen", 0.0)) for address, about in known.items()}
        newest = max(seen.values(), default=0.0)
        return sorted(address for address, when in seen.items() if newest - when <= _UNHEARD)

    def _gathered(self, futures: list[Future], what: str) -> list[Any]:
        import distributed

        try:
            return list(self.client.sync(self.client._gather, futures, callback_timeout=self.limit))
        except distributed.scheduler.KilledWorker as error:
            raise ClusterError(
                f"Workers died again and again while they computed {what}: probably for want of memory. Give them more "
                "(--memory-limit), or use more of them."
            ) from error
        except ModuleNotFoundError as error:
            raise ClusterError(f"A worker of the cluster lacks {error.name!r}: install coterie there as here.") from error
        except _lost_errors() as error:
            raise self._gone(what, error) from error

    def _check(self, what: str) -> None:
        if self.client.status not in ("running", "newly-created"):
            raise self._gone(what, None)

    def _gone(self, what: str, error: BaseException | None) -> ClusterError:
        address = getattr(getattr(self.client, "scheduler", None), "address", "") or ""
        detail = f" ({type(error).__name__})" if error is not None else ""
        where = f" at {address}" if address else ""
        return ClusterError(f"The scheduler of the cluster{where} is gone{detail}; it was asked for {what}.")

    def _ask(self, question: Callable[[], T], what: str) -> T:
        """An answer of the scheduler, or one clear error."""
        self._check(what)
        try:
            return question()
        except _lost_errors() as error:
            raise self._gone(what, error) from error
        except RuntimeError as error:
            if "closed" in str(error) or "lost" in str(error).lower():
                raise self._gone(what, error) from error
            raise

    def _who(self) -> list[str]:
        with suppress(Exception):
            return self.workers
        return []

    def _key(self, name: str) -> str:
        self._number += 1
        return f"coterie-{name}-{id(self):x}-{self._number}"

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Without Dask's warning of large graphs: what is large here is a residual, which must be sent."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100GB"}):
            yield


def _lost_errors() -> tuple[type[BaseException], ...]:
    """What Dask raises when it has lost its scheduler, or with it what it was asked for."""
    from concurrent.futures import CancelledError

    from distributed import CancelledError as Lost
    from distributed.comm.core import CommClosedError

    return CancelledError, Lost, CommClosedError, TimeoutError, OSError


def _itself(value: T) -> T:
    return value


def size_of(value: object) -> int:
    """Bytes of the arrays in a value, about; what else there is counts little."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(size_of(one) for one in value.values())
    if isinstance(value, (list, tuple)):
        return sum(size_of(one) for one in value)
    if isinstance(value, (sparse.csc_array, sparse.csr_array)):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if hasattr(value, "__dict__"):
        return sum(size_of(one) for one in vars(value).values())
    return 8


def check_workers(engine: DaskEngine) -> None:
    """Refuse a cluster without workers or with another version of Coterie; say so if its processors sum otherwise."""
    workers = engine.workers  # once: others may join in the meantime
    if not workers:
        raise ClusterError("The cluster has no workers yet. Wait for them (client.wait_for_workers(1)), or start some.")
    handles = engine.map(_introduce, [() for _ in workers], {}, workers)
    seen = engine.gather(handles, "the versions of coterie on the workers")
    versions = {version for version, _ in seen} - {this_version()}
    if versions:
        raise ClusterError(
            f"The workers have coterie {', '.join(sorted(versions))}, this process has {this_version()}. Install the same "
            "version on all of them."
        )
    if any(word != code_digest() for _, word in seen):
        warnings.warn(
            "The kernels of some workers sum in another order than those of this process (other processors): the groups are "
            "the same, but last digits may depend on which worker computes. Set NUMBA_CPU_NAME=generic here and on all "
            "workers for the same digits everywhere.",
            UserWarning,
            stacklevel=4,
        )


def _introduce(_: dict[str, object]) -> tuple[str, str]:
    return this_version(), code_digest()


def this_version() -> str:
    """The version of Coterie of this process."""
    import coterie

    return coterie.__version__


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of how the kernels of this process sum: processors with other vector registers sum in another order."""
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
