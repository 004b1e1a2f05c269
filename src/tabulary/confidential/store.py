"""Encoded records: small integers in chunks, in memory or, if there are many, in an unnamed file.

A chunk has 65,536 records, column by column. So a chunk of twenty columns (1.3 MB) stays in cache while every
margin is counted from it, and records can be added without knowing how many will come.
"""

import mmap
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import UnreadableSource

CHUNK_ROWS = 1 << 16
"""The number of records per chunk; the last chunk may be shorter."""

MEMORY_BYTES = 256 * 1024 * 1024
"""Above this many bytes of encoded records, they are kept in a file: 13 million records of twenty columns."""

Codes = NDArray[np.unsignedinteger[Any]]
"""Codes of levels, in one, two or four bytes each."""

_TYPES: tuple[np.dtype[np.unsignedinteger[Any]], ...] = (
    np.dtype(np.uint8),
    np.dtype(np.uint16),
    np.dtype(np.uint32),
)


def code_type(levels: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest type for the codes of `levels` levels, and one more code for "not a level".

    >>> [str(code_type(n)) for n in (2, 255, 256, 70_000)]
    ['uint8', 'uint8', 'uint16', 'uint32']
    """
    return next(kind for kind in _TYPES if levels <= np.iinfo(kind).max)


class Layout:
    """The layout of a chunk: the columns with one, two and four bytes per record, each group as a matrix."""

    def __init__(self, levels: Sequence[int]) -> None:
        types = [_TYPES.index(code_type(n)) for n in levels]
        self.groups = np.array(types, dtype=np.int64)
        self.slots = np.array([types[:i].count(kind) for i, kind in enumerate(types)], dtype=np.int64)
        self._widths = tuple(types.count(kind) for kind in range(len(_TYPES)))
        self.row_bytes = sum(w * kind.itemsize for w, kind in zip(self._widths, _TYPES, strict=True))
        self.chunk_bytes = self.row_bytes * CHUNK_ROWS

    def column(self, matrices: tuple[Codes, Codes, Codes], place: int) -> Codes:
        """Return one column of a chunk."""
        found: Codes = matrices[self.groups[place]][self.slots[place]]
        return found

    def matrices(self, chunk: NDArray[np.uint8]) -> tuple[Codes, Codes, Codes]:
        """Return the three matrices of a chunk, one row per column, without copying."""
        found = []
        at = 0
        # The wider columns first, so that each begins at a multiple of its own width.
        for width, kind in reversed(list(zip(self._widths, _TYPES, strict=True))):
            size = width * kind.itemsize * CHUNK_ROWS
            found.append(chunk[at : at + size].view(kind).reshape(width, CHUNK_ROWS))
            at += size
        large, medium, small = found
        return small, medium, large


class Store:
    """Chunks of encoded records, appended once and then read many times.

    With a `largest_weight`, each record has one more column, the last: its weight, a whole number up to that.

    Confidential. The file has no name: if the system allows, it never has one; otherwise the name is deleted
    immediately. No other process can open it, and the file disappears when this process ends, in any way.
    """

    def __init__(
        self, levels: Sequence[int], *, largest_weight: int | None = None, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self.weighted = largest_weight is not None
        # A column of n levels has room for the codes 0 to n, so it has room for weights up to n.
        self.layout = Layout(levels if largest_weight is None else (*levels, largest_weight))
        self.rows = 0
        self._memory_bytes = memory_bytes
        self._chunks: list[NDArray[np.uint8]] = []
        self._open = np.zeros(self.layout.chunk_bytes, dtype=np.uint8)
        self._filled = 0
        self._file: IO[bytes] | None = None
        self._map: mmap.mmap | None = None
        self._closed = False

    def append(self, columns: Sequence[Codes]) -> None:
        """Add records: one array of codes per attribute and, if there are weights, one array of weights."""
        rows = len(columns[0]) if columns else 0
        taken = 0
        while taken < rows:
            take = min(rows - taken, CHUNK_ROWS - self._filled)
            matrices = self.layout.matrices(self._open)
            for group, slot, column in zip(self.layout.groups, self.layout.slots, columns, strict=True):
                matrices[group][slot, self._filled : self._filled + take] = column[taken : taken + take]
            self._filled += take
            taken += take
            if self._filled == CHUNK_ROWS:
                self._put_away()
        self.rows += rows

    def finish(self) -> None:
        """Store the last chunk; from now on the records are only read."""
        if self._filled:
            self._put_away()
        self._open = np.zeros(0, dtype=np.uint8)
        if self._file is not None:
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return -(-self.rows // CHUNK_ROWS)

    @property
    def on_disk(self) -> bool:
        """Whether the records are in a file."""
        return self._file is not None

    def read(self) -> Iterator[tuple[int, tuple[Codes, Codes, Codes]]]:
        """Yield each chunk: the number of its records, and its matrices."""
        if self._closed:
            raise UnreadableSource("these records were closed. Open them again to count them.")
        size = self.layout.chunk_bytes
        for number in range(self.chunks):
            rows = min(CHUNK_ROWS, self.rows - number * CHUNK_ROWS)
            if self._map is None:
                yield rows, self.layout.matrices(self._chunks[number])
            else:
                chunk = np.frombuffer(self._map, dtype=np.uint8, count=size, offset=number * size)
                yield rows, self.layout.matrices(chunk)
                # The pages were needed once. Giving them back keeps the process from growing to the size of the
                # file.
                if hasattr(mmap, "MADV_DONTNEED"):
                    self._map.madvise(mmap.MADV_DONTNEED, number * size, size)

    def close(self) -> None:
        """Forget the records, in memory and on disk."""
        self._closed = True
        self._chunks.clear()
        self._open = np.zeros(0, dtype=np.uint8)
        # A reader that is still at work keeps its own reference to the map; the last reader frees the memory.
        self._map = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _put_away(self) -> None:
        if self._file is None and (len(self._chunks) + 1) * self.layout.chunk_bytes > self._memory_bytes:
            self._move_to_file()
        if self._file is None:
            self._chunks.append(self._open)
            self._open = np.zeros(self.layout.chunk_bytes, dtype=np.uint8)
        else:
            self._write(self._open)
        self._filled = 0

    def _move_to_file(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="tabulary-")  # noqa: SIM115 - closed by close()
        for chunk in self._chunks:
            self._write(chunk)
        self._chunks.clear()

    def _write(self, chunk: NDArray[np.uint8]) -> None:
        assert self._file is not None
        try:
            chunk.tofile(self._file)
        except OSError:
            full = True
        else:
            full = False
        if full:
            self.close()
            raise UnreadableSource(
                f"the encoded records do not fit in the temporary folder {tempfile.gettempdir()!r}. Nothing "
                "was counted. Free some space, or set TMPDIR to a folder with more."
            )
