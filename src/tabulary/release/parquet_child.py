"""The child process of `parquet_check`: reads Parquet from a stranger under bounds, and answers yes or no.

A script that needs pyarrow alone, so that it starts quickly. Each question has its kind, the memory that the child
may use, something trusted, and the bytes of a Parquet file. About a table, the trusted thing is the table in Arrow's
format; the answer says whether the file holds it, names, types, order and metadata included. About measurements, it is
the number of values of each part; after a yes come the values, eight bytes each.
"""

import struct
import sys

import pyarrow as pa
import pyarrow.parquet as pq

try:
    import resource
except ImportError:  # a system that cannot bound the room of a process
    resource = None  # type: ignore[assignment]

HEADER = struct.Struct("<cQQQ")
TABLE, VALUES = b"t", b"v"
YES, NO = b"y", b"n"
ROW_BYTES = 20
"""The bytes of a row of measurements: a part of four, a cell and a value of eight."""


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


def values_of(trusted: bytes, data: bytes) -> bytes | None:
    """Return the values of a file of measurements, or None if its rows are not those of parts of these sizes."""
    import numpy as np

    sizes = np.frombuffer(trusted, dtype="<i8")
    file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
    schema = pa.schema([("part", pa.int32()), ("cell", pa.int64()), ("value", pa.int64())])
    if file.metadata.num_rows != int(sizes.sum()) or not file.schema_arrow.equals(schema):
        return None
    table = file.read(use_threads=False)
    if any(column.null_count for column in table.columns):
        return None
    part, cell, value = (column.to_numpy() for column in table.columns)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    right = np.array_equal(part, np.repeat(np.arange(sizes.size), sizes))
    right = right and np.array_equal(cell, np.arange(part.size) - starts)
    return value.astype("<i8").tobytes() if right else None


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
        kind, room, trusted_length, length = HEADER.unpack(header)
        trusted, data = source.read(trusted_length), source.read(length)
        bound(room)
        try:
            found = values_of(trusted, data) if kind == VALUES else b"" if is_same(trusted, data) else None
        except (pa.ArrowException, MemoryError, OSError, TypeError, ValueError):
            found = None
        bound(None)
        answers.write(NO if found is None else YES + found)
        answers.flush()


if __name__ == "__main__":
    main()
