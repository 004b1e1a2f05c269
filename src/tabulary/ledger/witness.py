"""The witness: it keeps the heads of a ledger outside the ledger, so that an older copy is noticed."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Protocol

from tabulary.core.head import Head
from tabulary.errors import LedgerError, PublicError
from tabulary.file_locks import lock
from tabulary.release.folder import sync_folder

_FORMAT = "tabulary-witness/1"

# Written after a line that a crash has cut. No name of an account contains a tab.
_TORN = b"\ttorn\n"


class Witness(Protocol):
    """A place outside a ledger that knows its heads. Safe to use from several threads and processes."""

    def heads(self) -> tuple[Head, ...]:
        """Return the newest known head of each account."""
        ...

    def note(self, heads: Sequence[Head]) -> None:
        """Keep heads for ever: they are on the disk when this returns. A newer known head is never forgotten."""
        ...


class Witnesses:
    """All witnesses of one open ledger; there may be none.

    What a witness knows was in the ledger before the witness learnt it. So a process that asks the witnesses first
    and reads the ledger afterwards finds every head there, even if others are paying at the same time.
    """

    def __init__(self) -> None:
        self._all: list[Witness] = []

    def add(self, witness: Witness) -> None:
        """Add this witness."""
        self._all.append(witness)

    def heads(self) -> tuple[Head, ...]:
        """Return what any witness knows."""
        return tuple(head for witness in self._all for head in witness.heads())

    def note(self, heads: Sequence[Head]) -> None:
        """Tell every witness about debits in the ledger; a witness that cannot keep them stops the measurement."""
        problems = []
        for witness in self._all:
            try:
                witness.note(heads)
            except PublicError as problem:
                problems.append(problem)
        if problems:
            stands = " and ".join(f"entry {head.entries} of account {head.account!r}" for head in heads)
            raise LedgerError(
                f"{problems[0]} Nothing was measured, but {stands} is in the ledger and is spent. Solve the "
                "problem before you pay again."
            )

    def catch_up(self, heads: Sequence[Head]) -> None:
        """Tell every witness the heads that it does not know: a crash may have come after a debit."""
        for witness in self._all:
            known = {head.account: head.entries for head in witness.heads()}
            if news := [head for head in heads if head.entries > known.get(head.account, -1)]:
                witness.note(news)


class WitnessFile:
    """A text file of heads that only grows: the identity of the ledger, then one line per head.

    Writers take turns with a lock on the file. The next writer marks a line that a crash has cut; that line counts
    for nothing.
    """

    def __init__(self, path: str | os.PathLike[str], ledger: str) -> None:
        self._path = Path(path)
        self._header = f"{_FORMAT} {ledger}\n".encode()
        self._newest: dict[str, Head] = {}
        self._lines, self._offset, self._file = 0, 0, (0, 0)
        self._reading = Lock()

    @classmethod
    def begun(cls, path: str | os.PathLike[str], ledger: str) -> "WitnessFile":
        """Return the witness at a path; write its first line if the file does not exist."""
        witness = cls(path, ledger)
        witness._write(b"", begin=True)
        return witness

    @property
    def name(self) -> str:
        """The witness, in a sentence."""
        return f"the witness {str(self._path)!r}"

    def heads(self) -> tuple[Head, ...]:
        """Return the newest head of each account; reads what was added since the last time."""
        with self._reading:
            try:
                _refuse_other_files(self._path.stat())
                with self._path.open("rb") as file:
                    self._read(file)
            except OSError as error:
                raise LedgerError(
                    f"{self.name} cannot be read: {error.strerror or error}. Nothing was measured. Restore "
                    "it, or check its path."
                ) from None
            return tuple(self._newest.values())

    def note(self, heads: Sequence[Head]) -> None:
        """Append one line per head, and wait until the lines are on the disk."""
        self._write("".join(f"{head}\n" for head in heads).encode())

    def _read(self, file: BinaryIO) -> None:
        status = os.fstat(file.fileno())
        if self._file != (status.st_dev, status.st_ino) or status.st_size < self._offset:
            # Another file, or a shorter one, is there now. What was read before is still known.
            self._lines, self._offset, self._file = 0, 0, (status.st_dev, status.st_ino)
        file.seek(self._offset)
        for line in file:
            if not line.endswith(b"\n"):
                break
            self._take(line)
            self._lines += 1
            self._offset += len(line)
        if not self._offset:
            raise LedgerError(
                f"{self.name} is empty and names no ledger. Nothing was measured. Restore a copy of it."
            )

    def _take(self, line: bytes) -> None:
        if not self._lines:
            self._refuse_other_header(line)
        elif not line.endswith(_TORN):
            try:
                head = Head.parse(line.decode())
            except (LedgerError, UnicodeDecodeError):
                raise LedgerError(
                    f"{self.name} has no head in line {self._lines + 1}: somebody has edited it. Nothing "
                    "was measured. Keep it for inquiry, and restore a copy of it."
                ) from None
            known = self._newest.get(head.account)
            if known is None or known.entries < head.entries:
                self._newest[head.account] = head

    def _refuse_other_header(self, line: bytes) -> None:
        if line == self._header:
            return
        if line.startswith(f"{_FORMAT} ".encode()):
            raise LedgerError(
                f"{self.name} belongs to another ledger. Nothing was measured. Check which of the two paths "
                "is wrong."
            )
        raise LedgerError(
            f"{self.name} is not a witness: its first line does not name a ledger. Nothing was measured. "
            "Choose another path."
        )

    def _write(self, lines: bytes, *, begin: bool = False) -> None:
        try:
            # Created only for a new witness: a missing witness must be noticed.
            flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if begin else 0)
            file = os.open(self._path, flags, 0o644)
            try:
                self._append(file, lines)
            finally:
                os.close(file)
            if begin:
                sync_folder(self._path.parent)
        except OSError as error:
            raise LedgerError(f"{self.name} cannot be written: {error.strerror or error}.") from None

    def _append(self, file: int, lines: bytes) -> None:
        status = os.fstat(file)
        _refuse_other_files(status)
        lock(file)
        start = os.pread(file, len(self._header), 0)
        if not start.endswith(b"\n"):
            # Nothing yet, or the beginning of the first line.
            if not self._header.startswith(start):
                self._refuse_other_header(start)
            lines = self._header[len(start) :] + lines
        else:
            self._refuse_other_header(start)
            if os.pread(file, 1, os.fstat(file).st_size - 1) != b"\n":
                lines = _TORN + lines
        while lines:
            lines = lines[os.write(file, lines) :]
        os.fsync(file)


def _refuse_other_files(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is not a plain file")
