"""What a Parquet file from a stranger holds, without trusting anything in it.

A few kilobytes of Parquet can unpack to gigabytes, and some forged files crash the process that reads them. So such a
file is never unpacked here. Tabulary always writes a table to the same bytes: a file with exactly these bytes is the
table. Another version of the library writes other bytes. A child process reads such a file. It may use no more memory
than the table needs (on Linux, where this limit can be enforced), and its crash counts as an answer. Measurements
stand in no other file, so the child always reads them and hands over the bare numbers.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from tabulary.core.arrays import Integers
from tabulary.release.formats import parquet_bytes
from tabulary.release.parquet_child import HEADER, ROW_BYTES, TABLE, VALUES, YES

CHILD = Path(__file__).with_name("parquet_child.py")
# Reading and comparing hold several copies of a table; the library itself takes some memory too.
COPIES = 6
ROOM = 256 << 20
PATIENCE = 120.0


class ParquetCheck:
    """Compares Parquet files with the tables that they should hold; one child process serves all files."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "ParquetCheck":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, where: TracebackType | None
    ) -> None:
        self._end()

    def holds(self, data: bytes, table: pa.Table) -> bool:
        """Return whether the bytes of a Parquet file hold this table: columns, types, numbers and metadata."""
        return data == parquet_bytes(table) or self._ask(data, table)

    def values(self, data: bytes, sizes: Integers) -> Integers | None:
        """Return the whole numbers of a file of measurements whose parts have these sizes; None if it is no such file.

        The room of the child is that of the numbers, of which there are as many as the sizes say.
        """
        rows = int(sizes.sum())
        asked = np.asarray(sizes, dtype="<i8").tobytes()
        found = self._answered(VALUES, asked, data, room=rows * ROW_BYTES, length=8 * rows)
        return None if found is None else np.frombuffer(found, dtype="<i8").astype(np.int64)

    def _ask(self, data: bytes, table: pa.Table) -> bool:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        trusted = sink.getvalue().to_pybytes()
        return self._answered(TABLE, trusted, data, room=len(trusted), length=0) is not None

    def _answered(self, kind: bytes, trusted: bytes, data: bytes, *, room: int, length: int) -> bytes | None:
        """Return what the child says after a yes, of this length; None after a no, or where it crashed."""
        allowed = ROOM + COPIES * (room + len(data))
        child = self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        lost = threading.Timer(PATIENCE, child.kill)
        lost.start()
        try:
            child.stdin.write(HEADER.pack(kind, allowed, len(trusted), len(data)) + trusted + data)
            child.stdin.flush()
            answer = child.stdout.read(1)
            found = child.stdout.read(length) if answer == YES else b""
        except BrokenPipeError:
            answer = found = b""
        finally:
            lost.cancel()
        if not answer or (answer == YES and len(found) < length):
            # The file crashed the child or keeps it busy.
            self._end()
            return None
        return found if answer == YES else None

    def _started(self) -> "subprocess.Popen[bytes]":
        if self.child is None:
            # An allocator that reserves no memory in advance: reserved memory counts as used.
            settings = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
            self.child = subprocess.Popen(
                [sys.executable, "-P", str(CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=settings,
            )
        return self.child

    def _end(self) -> None:
        if self.child is not None:
            self.child.kill()
            # Closes both pipes, so the child ends.
            self.child.communicate()
            self.child = None
