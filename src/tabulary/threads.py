"""The number of threads that reading, counting and sampling may use."""

import os


def available_threads(most: int) -> int:
    """Return how many cores this process may run on, and `most` if there are more."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, most))
