"""Waiting for what other threads and processes do, however slow the machine."""

import time
from collections.abc import Callable
from typing import Any

import psutil

PATIENCE = 300.0
"""Seconds until a condition that does not come true fails its test. Nothing waits this long on the way to success."""


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    """Return what the condition returns as soon as that is true; fail if it never is."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain: {what}")
        time.sleep(0.02)
    return found


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended, whether or not anybody has noticed."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
