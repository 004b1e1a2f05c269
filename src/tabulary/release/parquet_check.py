"""Whether a Parquet file from a stranger holds a known table, without trusting anything in it.

A few kilobytes of Parquet can unpack to gigabytes, and some forged files crash the process that reads them. So such a
file is never unpacked here. Tabulary always writes a table to the same bytes: a file with exactly these bytes is the
table. Another version of the library writes other bytes. A child process reads such a file. It may use no more memory
than the table needs (on Linux, where this limit can be enforced), and its crash counts as an answer.
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
            # The file crashed the child or keeps it busy.
            self._end()
        return answer == SAME

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
