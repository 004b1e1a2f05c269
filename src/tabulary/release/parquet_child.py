"""The child process of `parquet_check`: reads Parquet from a stranger under bounds, and answers with one byte.

A script that needs pyarrow alone, so that it starts quickly. Each question has the memory that the child may use, a
trusted table in Arrow's format, and the bytes of a Parquet file. The answer says whether that file holds the table,
names, types, order and metadata included.
"""

import struct
import sys

import pyarrow as pa
import pyarrow.parquet as pq

try:
    import resource
except ImportError:  # a system that cannot bound the room of a process
    resource = None  # type: ignore[assignment]

HEADER = struct.Struct("<QQQ")
SAME, OTHER = b"y", b"n"


def is_same(trusted: bytes, data: bytes) -> bool:
    """Return whether a Parquet file holds a table, exactly."""
    expected = pa.ipc.open_stream(trusted).read_all()
    file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
    # Checked before anything is unpacked, as far as the file describes itself truthfully.
    if file.metadata.num_rows != expected.num_rows or not file.schema_arrow.equals(
        expected.schema, check_metadata=True
    ):
        return False
    return bool(file.read(use_threads=False).unify_dictionaries().equals(expected.unify_dictionaries()))


def bound(room: int | None) -> None:
    """Let this process use this much more memory than now, where the system can enforce it; None means no limit."""
    if resource is not None and sys.platform == "linux":
        with open("/proc/self/statm") as file:  # noqa: PTH123 - nothing but what is needed is imported here
            allocated = int(file.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        # The soft limit, which can be raised again.
        resource.setrlimit(resource.RLIMIT_AS, (hard if room is None else allocated + room, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Answer questions until there are no more."""
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    while header := source.read(HEADER.size):
        room, trusted_length, length = HEADER.unpack(header)
        trusted, data = source.read(trusted_length), source.read(length)
        bound(room)
        try:
            found = is_same(trusted, data)
        except (pa.ArrowException, MemoryError, OSError, TypeError, ValueError):
            found = False
        bound(None)
        answers.write(SAME if found else OTHER)
        answers.flush()


if __name__ == "__main__":
    main()
