"""How long-running work reports its progress."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of the work, how much of it is done, and how much there is; zero means unknown."""
