"""Long computations that can be stopped: their loops ask between two steps if somebody still waits.

A thread cannot be ended from outside. Work in a thread that may end early must ask; its starter says what to ask.
Only loops whose result belongs to one caller ask, never a loop that fills something that callers share.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tabulary.errors import Interrupted

_stopped: ContextVar[Callable[[], bool] | None] = ContextVar("stopped", default=None)


@contextmanager
def interruptible(stopped: Callable[[], bool]) -> Iterator[None]:
    """Let the work in this context end at its next `checkpoint` after `stopped` returns true.

    >>> with interruptible(lambda: True):
    ...     checkpoint()
    Traceback (most recent call last):
        ...
    tabulary.errors.Interrupted: the work was stopped before its end. There is no result.
    """
    token = _stopped.set(stopped)
    try:
        yield
    finally:
        _stopped.reset(token)


def checkpoint() -> None:
    """Raise Interrupted if the work was stopped; do nothing outside an interruptible context."""
    stopped = _stopped.get()
    if stopped is not None and stopped():
        raise Interrupted("the work was stopped before its end. There is no result.")
