"""Long computations that somebody may stop: their loops ask between two steps whether anyone still waits.

A thread cannot be ended from outside. What runs in one and should end early has to ask; whoever starts it says what to
ask. Only loops whose result belongs to one caller ask, never one that fills what callers share.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tabulary.errors import Interrupted

_stopped: ContextVar[Callable[[], bool] | None] = ContextVar("stopped", default=None)


@contextmanager
def interruptible(stopped: Callable[[], bool]) -> Iterator[None]:
    """Let what runs in this context end at its next `checkpoint` once `stopped` returns true.

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
    """Raise Interrupted if the work was stopped; elsewhere than in an interruptible context do nothing."""
    stopped = _stopped.get()
    if stopped is not None and stopped():
        raise Interrupted("the work was stopped before its end. There is no result.")
