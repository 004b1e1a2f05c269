"""Whether a Parquet file from a stranger holds a known table, without trusting anything in it.

A few kilobytes of Parquet can unpack to gigabytes, and some that are forged end the process that reads them. So such a
file is never unpacked here. What Tabulary writes it writes the same way every time: a file with the very bytes that
the table gives is the table. Another version of the library writes other bytes; such a file is read by a child process
that may take no more room than the table calls for (on Linux, where that can be held to), and whose end is no more
than an answer.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from tabulary.release.formats import parquet_bytes
from tabulary.release.parquet_child import HEADER, SAME

CHILD = Path(__file__).with_name("parquet_child.py")
# A table is held a few times over while it is read and compared; the library itself takes some room too.
COPIES = 6
ROOM = 256 << 20
PATIENCE = 120.0


class ParquetCheck:
    """Compares Parquet files with the tables that they should hold; one child process serves for all that need it."""

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

    def _ask(self, data: bytes, table: pa.Table) -> bool:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        trusted = sink.getvalue().to_pybytes()
        room = ROOM + COPIES * (len(trusted) + len(data))
        child = self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        lost = threading.Timer(PATIENCE, child.kill)
        lost.start()
        try:
            child.stdin.write(HEADER.pack(room, len(trusted), len(data)) + trusted + data)
            child.stdin.flush()
            answer = child.stdout.read(1)
        except BrokenPipeError:
            answer = b""
        finally:
            lost.cancel()
        if not answer:
            # It was ended by what it read, or is lost in it.
            self._end()
        return answer == SAME

    def _started(self) -> "subprocess.Popen[bytes]":
        if self.child is None:
            # An allocator that reserves no room in advance: what is reserved counts as taken.
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
            # Closes both pipes, and lets the child go.
            self.child.communicate()
            self.child = None
