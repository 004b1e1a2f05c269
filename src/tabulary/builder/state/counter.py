"""Counting requests without making any of them wait for a database."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from tabulary.builder.state.usage import Requests
from tabulary.errors import ServiceError

_logger = logging.getLogger(__name__)

Key = tuple[str, str, str, int, str]
"""Day, dataset, kind, first digit of the status, caller."""


class RequestCounter:
    """Requests counted in memory, and written in batches by a thread of its own every few seconds.

    A crash loses the last seconds, and a commit with an unknown outcome may be written twice: this is a statistic, not
    an account. While the database is down, the counts wait in memory, one number for each kind of request. The thread
    starts with the first request, in the process that serves it.
    """

    def __init__(self, write: Callable[[Iterable[Requests]], None], *, every: float = 5.0) -> None:
        self._write = write
        self._every = every
        self._counts: Counter[Key] = Counter()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failing = False

    def count(self, dataset: str, kind: str, status: int, caller: str) -> None:
        """Count a request that was answered with the HTTP status `status`. Writes nothing."""
        key = (datetime.now(UTC).date().isoformat(), dataset, kind, status // 100, caller)
        with self._lock:
            self._counts[key] += 1
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="usage", daemon=True)
                self._thread.start()

    def flush(self) -> bool:
        """Write the counts; return whether that worked. Unwritten counts wait for the next time."""
        # One flush at a time, so that after the last one nothing is left in another.
        with self._writing:
            with self._lock:
                counts, self._counts = self._counts, Counter()
            try:
                self._write([Requests(*key, requests=number) for key, number in counts.items()])
            except ServiceError as error:
                with self._lock:
                    self._counts.update(counts)
                if not self._failing:
                    _logger.warning("the usage is kept in memory for now: %s", error)
                self._failing = True
                return False
            self._failing = False
            return True

    def close(self) -> None:
        """Stop the thread and write what was counted. A second call does nothing."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.flush()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self.flush()
