"""Locks between processes: one at a time writes to a file, or works in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def lock(handle: int, *, wait: bool = True) -> None:
    """Hold the lock of an open file or folder until it is closed; the system releases it when the process dies.

    Without `wait`, raise BlockingIOError if another process holds it. Where the system has no such locks, do nothing.
    """
    if os.name != "posix":
        return
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked_folder(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Keep other processes out of a folder by a lock on the folder itself, which nobody deletes or replaces."""
    if os.name != "posix":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        lock(handle, wait=wait)
        yield
    finally:
        os.close(handle)
