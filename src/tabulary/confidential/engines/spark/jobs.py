"""Work on a Spark session that can be watched, interrupted and cancelled, with our own errors."""

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from tabulary.confidential.engines.spark.errors import ENDED, Trouble, trouble_of, unheard
from tabulary.core.progress import Progress
from tabulary.errors import InvalidAddress, TabularyError, UnreadableSource

if TYPE_CHECKING:
    import pyspark.sql

PATIENCE = "spark.tabulary.patience"
"""The Spark setting for the number of seconds that a job waits for the cluster."""

_PATIENCE_SECONDS = 120.0
SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_CANCEL = 20.0
_HUNDREDTHS = 100

_T = TypeVar("_T")


class Jobs:
    """The work on one Spark session, and the name of the records in an error.

    Everything runs in its own thread, so that the caller's thread can report and be interrupted: Ctrl-C cancels the
    job and does not change the session.
    """

    def __init__(self, session: "pyspark.sql.SparkSession", called: str) -> None:
        from pyspark.sql import SparkSession

        self.session = session
        self._called = called
        # A Spark Connect session has another class and shows nothing of the cluster.
        self._context: Any = session.sparkContext if isinstance(session, SparkSession) else None
        self._patience = _PATIENCE_SECONDS
        self._patience = _seconds(self.do(lambda: str(session.conf.get(PATIENCE, str(_PATIENCE_SECONDS)))))

    @property
    def cores(self) -> int:
        """The number of cores of the session now; none if it does not say."""
        return 0 if self._context is None else self.do(lambda: int(self._context.defaultParallelism))

    def do(self, action: Callable[[], _T], progress: Progress | None = None) -> _T:
        """Return what the action returns; if it fails, raise our own error without the original text.

        Progress is in hundredths of the known tasks: Spark plans stage by stage, so the last hundredth may take
        long. Spark Connect reports no progress.
        """
        name = f"tabulary-{uuid4()}"
        done: list[_T] = []
        failed: list[TabularyError | MemoryError | Trouble] = []

        def run() -> None:
            with unheard():
                try:
                    self._begin(name)
                    done.append(action())
                except (TabularyError, MemoryError) as problem:
                    failed.append(problem)
                except BaseException as problem:
                    failed.append(trouble_of(problem))

        thread = self._thread(run)
        try:
            patient = thread is None or self._watch(thread, name, progress)
        except BaseException:
            self._cancel(name, thread)
            raise
        if not patient:
            self._cancel(name, thread)
            raise UnreadableSource(
                f"{self._called} cannot be counted: for {self._patience:g} seconds the cluster has worked "
                "on none of it. Nothing was counted. Check that its workers run and have as many free "
                f"cores and as much memory as an executor needs; or wait longer: the setting {PATIENCE} is "
                "in seconds."
            )
        if done:
            return done[0]
        trouble = failed[0] if failed else ENDED
        if isinstance(trouble, Trouble):
            raise UnreadableSource(
                f"{self._called} cannot be counted: {trouble.said}. Nothing was counted. {trouble.remedy}"
            )
        raise trouble

    def _thread(self, run: Callable[[], None]) -> Thread | None:
        """Return a running thread with the caller's own Spark settings; None if there is no Spark."""
        from pyspark import InheritableThread

        with suppress(Exception):
            thread = InheritableThread(run, session=self.session, name="tabulary-spark", daemon=True)
            thread.start()
            return thread
        return None

    def _begin(self, name: str) -> None:
        """Name the work of this thread, so that another thread can watch and cancel it."""
        if self._context is None:
            self.session.addTag(name)
        else:
            self._context.setJobGroup(name, "tabulary", interruptOnCancel=True)

    def _watch(self, thread: Thread, name: str, progress: Progress | None) -> bool:
        """Wait for the thread and report from the caller's, where a report may print or raise; False: timed out."""
        worked = last = time.monotonic()
        furthest = 0
        while thread.is_alive():
            thread.join(0.05)
            now = time.monotonic()
            if now - last < SECONDS_BETWEEN_LOOKS:
                continue
            last = now
            completed, known, waiting = self._tasks(name)
            if not waiting:
                worked = now
            elif now - worked > self._patience:
                return False
            furthest = max(furthest, min(_HUNDREDTHS - 1, _HUNDREDTHS * completed // max(1, known)))
            if progress is not None and thread.is_alive():
                progress("counting", furthest, 0 if self._context is None else _HUNDREDTHS)
        return True

    def _tasks(self, name: str) -> tuple[int, int, bool]:
        """Return how many tasks are complete, how many are known, and whether they wait while none is running."""
        completed = known = active = running = 0
        # A context that has just ended gives no information; the thread will say what that means.
        with suppress(Exception):
            tracker = self._context.statusTracker()
            for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(name)):
                running += job.status == "RUNNING"
                for stage in filter(None, map(tracker.getStageInfo, job.stageIds)):
                    completed += stage.numCompletedTasks
                    known += stage.numTasks
                    active += stage.numActiveTasks
        return completed, known, bool(running and not active)

    def _cancel(self, name: str, thread: Thread | None) -> None:
        with suppress(Exception):
            if self._context is None:
                self.session.interruptTag(name)
            else:
                self._context.cancelJobGroup(name)
        if thread is not None:
            thread.join(_SECONDS_TO_CANCEL)


def _seconds(asked: str) -> float:
    try:
        seconds = float(asked)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise InvalidAddress(f"the setting {PATIENCE} must be a number of seconds above zero, such as 120.")
    return seconds
