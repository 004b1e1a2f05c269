"""Slow work: threads for each kind, a limit for each caller, and an end at a deadline or when nobody waits.

A thread cannot be killed, so the work itself must check whether to stop. The loops of a test check between two steps of
milliseconds (`tabulary.core.interruption`). Processes could be killed, but each would have to load the packages and
receive the noise of every table that it tests. The work on a table does not check, because others may wait for the same
counts and because it may pay; it is short, and its size is limited. A caller who has waited too long for it gets an
error, and the work still counts for that caller until it ends.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from tabulary.builder.counting import CALLER
from tabulary.builder.problems import RETRY_AFTER, HTTPProblem
from tabulary.builder.throttle import MonotonicClock, address_of, retry_after
from tabulary.core.interruption import interruptible
from tabulary.errors import Interrupted

Made = TypeVar("Made")

_NOTHING_SPENT = "Nothing was spent that is not in the ledger."


class WaitingCaller:
    """A caller who waits for slow work: a name for the count, and a way to notice that the caller has left."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @cached_property
    def name(self) -> str:
        """The token, or without one the address: one token counts as one caller, even from many addresses."""
        token = self._request.scope.get(CALLER)
        return f"token {token.id}" if token is not None else address_of(self._request.scope)

    async def gone(self) -> None:
        """Return once the connection is closed; never before."""
        # Ignore the rest of the body: it was read before, or nobody reads it.
        while (await self._request.receive())["type"] != "http.disconnect":
            pass


@dataclass(eq=False)
class _Job:
    due: float
    stop: threading.Event = field(default_factory=threading.Event)
    future: Future[Any] | None = None
    waiting: int = 0
    # Callers who left early. Their places become free when the work ends.
    held: list[str] = field(default_factory=list)
    ended: bool = False


class Pool:
    """Threads for one kind of slow work. `kind` is its name for callers, such as "tests".

    One caller may wait for `each` pieces of work at a time, and all callers together for `most`. A piece of work is
    given up `seconds` after the request. If several callers want the same work at once, it is done once, and it stops
    when the last of them has left. Safe to use from several threads and event loops.
    """

    def __init__(
        self,
        kind: str,
        *,
        threads: int,
        each: int,
        most: int,
        seconds: float,
        clock: MonotonicClock = time.monotonic,
    ) -> None:
        self._kind = kind
        self._each = each
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=kind)
        self._jobs: dict[Hashable, _Job] = {}
        self._running: set[_Job] = set()
        self._places: Counter[str] = Counter()
        self._closed = False
        self._lock = threading.Lock()

    @property
    def places(self) -> dict[str, int]:
        """The number of pieces of work under way for each caller."""
        with self._lock:
            return {name: taken for name, taken in self._places.items() if taken}

    async def done(self, key: Hashable, work: Callable[[], Made], asker: WaitingCaller) -> Made:
        """Return what the work returns, or raise what it raises. Callers with the same key share the work.

        A caller with too much work under way is refused with 429. If there is too much work in total, or if it takes
        too long, the refusal is 503. Raises ClientDisconnect if the caller has left.
        """
        job, future = self._join(key, work, asker.name)
        ended = _end_of(future)
        gone = asyncio.create_task(asker.gone())
        try:
            happened, _ = await asyncio.wait(
                {ended, gone}, timeout=job.due - self._clock(), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            gone.cancel()
            self._leave(key, job, asker.name)
        if ended in happened:
            with suppress(Interrupted, CancelledError):
                return future.result()
        elif gone in happened:
            raise ClientDisconnect
        raise HTTPProblem(
            503,
            "took-too-long",
            f"This was not done within {self._seconds:g} seconds, because it is large or because others wait too. "
            f"{_NOTHING_SPENT} Ask again later, or ask for less.",
            retry_after(RETRY_AFTER),
        )

    def close(self) -> None:
        """Stop the work under way as far as possible, and accept no more."""
        with self._lock:
            self._closed = True
            for job in self._running:
                job.stop.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _join(self, key: Hashable, work: Callable[[], Made], name: str) -> tuple[_Job, Future[Made]]:
        with self._lock:
            if self._places[name] >= self._each:
                raise HTTPProblem(
                    429,
                    "too-much-at-once",
                    f"{self._each} {self._kind} of yours are under way, and one caller may have no more at a time. "
                    "Nothing was asked, nothing was spent. Wait for one of them.",
                    retry_after(RETRY_AFTER),
                )
            job = self._jobs.get(key)
            if job is not None and not job.stop.is_set():
                assert job.future is not None, "work that is found was handed to a thread"
                job.waiting += 1
                self._places[name] += 1
                return job, job.future
            if self._closed or len(self._running) >= self._most:
                raise HTTPProblem(
                    503,
                    "busy",
                    f"Too many {self._kind} are under way. Nothing was asked, nothing was spent. Ask again later.",
                    retry_after(RETRY_AFTER),
                )
            job = _Job(self._clock() + self._seconds, waiting=1)
            future = job.future = self._threads.submit(self._do, job, work)
            self._jobs[key] = job
            self._running.add(job)
            self._places[name] += 1
        # Outside the lock: if the work has already ended, the callback runs at once.
        future.add_done_callback(lambda _: self._note_end(key, job))
        return job, future

    def _do(self, job: _Job, work: Callable[[], Made]) -> Made:
        def stopped() -> bool:
            return job.stop.is_set() or self._clock() > job.due

        if stopped():
            raise Interrupted("the work was stopped before it began. Nothing came of it.")
        with interruptible(stopped):
            return work()

    def _leave(self, key: Hashable, job: _Job, name: str) -> None:
        with self._lock:
            job.waiting -= 1
            if job.ended or job.waiting:
                self._free(name)
                return
            job.held.append(name)
            job.stop.set()
        assert job.future is not None, "work that is waited for was handed to a thread"
        # Work without a thread ends here; running work ends at its next check.
        job.future.cancel()

    def _note_end(self, key: Hashable, job: _Job) -> None:
        with self._lock:
            job.ended = True
            self._running.discard(job)
            if self._jobs.get(key) is job:
                del self._jobs[key]
            for name in job.held:
                self._free(name)

    def _free(self, name: str) -> None:
        self._places[name] -= 1
        if not self._places[name]:
            del self._places[name]


def _end_of(future: Future[Any]) -> asyncio.Future[None]:
    """Return a future of this event loop that ends with the work. If the future is cancelled, the work goes on."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    def tell(_: Future[Any]) -> None:
        # Nobody waits in a closed loop.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(end)

    future.add_done_callback(tell)
    return ended
