"""The number of threads for reading and counting."""

import os


def available_threads(most: int) -> int:
    """Return the number of cores that this process may use, at most `most`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, most))
