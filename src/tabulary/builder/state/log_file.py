"""The copy of the log in a file of JSON lines, for tools that collect the logs of a machine."""

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tabulary.errors import ServiceError
from tabulary.file_locks import lock
from tabulary.release.folder import write_bytes

if TYPE_CHECKING:
    from tabulary.builder.state.log import LogEntry

# More than any line has.
_TAIL = 1 << 16
# How the first line of every such file begins.
_FIRST = b'{"number": 1, '

_log = logging.getLogger(__name__)


class LogFile:
    """A file that gets every entry of the log, one JSON object per line. Any process of the service may append.

    If a crash or a full disk prevents an entry, the file gets it together with the next one. Each machine of a service
    has its own file with every entry. Only its owner may read it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def last(self) -> tuple[int, str] | None:
        """Return the number and the digest of the last whole line, None where there is none; refuse another file."""
        try:
            with self._opened() as handle:
                return self._last(handle)
        except OSError as problem:
            raise ServiceError(
                f"the log file {str(self.path)!r} cannot be written to: {problem.strerror}. Nothing was opened. Name "
                "another under [state] log, or see to its folder."
            ) from None

    def catch_up(self, entries: Callable[[int], Iterable["LogEntry"]]) -> None:
        """Append the missing entries. If the file cannot be written, warn: the action itself is already done."""
        try:
            with self._opened() as handle:
                last = self._last(handle)
                lines = "".join(f"{entry.line}\n" for entry in entries(0 if last is None else last[0]))
                write_bytes(handle, lines.encode())
                os.fsync(handle)
        except (OSError, ServiceError) as problem:
            _log.warning(
                "The log file %r was not written to: %s The entries are in the state, and are appended later.",
                str(self.path),
                f"{problem.strerror}." if isinstance(problem, OSError) else problem,
            )

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Yield the file, locked for other processes."""
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            lock(handle)
            yield handle
        finally:
            os.close(handle)

    def _last(self, handle: int) -> tuple[int, str] | None:
        """Return the last complete line, and remove the partial line of a killed process."""
        size = os.fstat(handle).st_size
        tail = os.pread(handle, _TAIL, max(0, size - _TAIL))
        whole = tail[: tail.rfind(b"\n") + 1]
        found = None
        try:
            if whole:
                entry = json.loads(whole.splitlines()[-1])
                found = int(entry["number"]), str(entry["digest"])
            elif not _FIRST.startswith(tail[: len(_FIRST)]):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise ServiceError(
                f"{str(self.path)!r} is not a copy of this log: its last line is no entry of one. Nothing was written "
                "to it. Name another file under [state] log."
            ) from None
        if len(whole) < len(tail):
            os.ftruncate(handle, size - (len(tail) - len(whole)))
        return found
