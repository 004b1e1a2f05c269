"""What runs on Spark's executors: packed records go in, blocks of counters come out.

Spark sends a `SparkTask` by the name of its class, and its data as bytes. An executor's Python must have the same
version of Tabulary; if not, it says so before it looks at a record. No error raised here quotes a record, because
Spark writes errors into logs.
"""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from tabulary.confidential.coding import Recoding
from tabulary.confidential.engines.spark.packing import Packing
from tabulary.confidential.store import CHUNK_ROWS, Layout
from tabulary.confidential.validation import RecordFaults, Validation
from tabulary.confidential.weights import Weights
from tabulary.core.domain import Domain, Margin

SCHEMA = "block long, width int, cells binary"
"""The output columns in Spark's words: the number of a block, the bytes per counter, and the counters."""

BLOCK_CELLS = 1 << 14
"""The number of counters that are added up together: at most 128 KiB."""

OTHER_VERSION = "TABULARY_OF_ANOTHER_VERSION"
OUT_OF_MEMORY = "TABULARY_OUT_OF_MEMORY"
FAILED = "TABULARY_FAILED"
"""The message of a worker in place of any error."""

# The findings are sent as a block of their own.
_FINDINGS = -1
_BLOCKS_A_BATCH = 64
_ARROW = pyarrow.schema([("block", pyarrow.int64()), ("width", pyarrow.int32()), ("cells", pyarrow.binary())])
_WIDTHS = {kind.itemsize: kind for kind in map(np.dtype, ("uint8", "uint16", "uint32", "int64"))}

Batches = Iterator[pyarrow.RecordBatch]
"""What Spark hands to Python, and takes from it."""

Block = tuple[int, NDArray[Any]]
"""Some counters that lie beside each other, and the number of the block."""


class SparkTask:
    """Work for executors, packed here and opened there."""

    def __init__(self, work: "Count | Merge") -> None:
        self._version = version("tabulary")
        self._work = pickle.dumps(work)

    def __call__(self, batches: Batches) -> Batches:
        """Do the work on one part of the data; an error contains nothing from the records."""
        if self._version != version("tabulary"):
            raise RuntimeError(OTHER_VERSION)
        try:
            yield from pickle.loads(self._work).run(batches)
            return
        except ModuleNotFoundError:
            raise
        except MemoryError:
            told = OUT_OF_MEMORY
        except Exception as problem:
            told = f"{FAILED} {type(problem).__name__}"
        # Raised here, outside the handler, so that the original error is not even its context.
        raise RuntimeError(told)


@dataclass(frozen=True)
class Count:
    """Counts some margins of one part of the records, in one pass. Public, like the plan."""

    domain: Domain
    recodings: tuple[Recoding, ...]
    weights: Weights | None
    margins: tuple[Margin, ...]

    def run(self, batches: Batches) -> Batches:
        """Yield the findings and the counters; a batch has the words of codes, and last any weights."""
        part = _Part(self)
        for batch in batches:
            part.add(batch)
        yield from part.finish()


@dataclass(frozen=True)
class Merge:
    """Adds up the blocks of many parts; each part has only a few blocks."""

    def run(self, batches: Batches) -> Batches:
        """Yield each block once."""
        sums: dict[int, NDArray[np.int64]] = {}
        found = RecordFaults()
        for batch in batches:
            for number, cells in blocks_of(batch):
                if isinstance(cells, RecordFaults):
                    found |= cells
                elif number in sums:
                    sums[number] += cells
                else:
                    sums[number] = cells.astype(np.int64)
        yield from _sent(found, sums.items())


def blocks_of(batch: pyarrow.RecordBatch) -> Iterator[tuple[int, NDArray[Any] | RecordFaults]]:
    """Yield the content of a batch of results: blocks of counters by number, and findings."""
    numbers, widths, cells = (batch.column(i) for i in range(3))
    for number, width, bytes_ in zip(numbers.to_pylist(), widths.to_pylist(), cells, strict=True):
        if number == _FINDINGS:
            yield number, pickle.loads(bytes_.as_py())
        else:
            yield number, np.frombuffer(bytes_.as_buffer(), dtype=_WIDTHS[width])


class _Part:
    """The records of one part, gathered into chunks that stay in cache while every margin is counted."""

    def __init__(self, work: Count) -> None:
        # Loading the compiler takes a moment, which a worker spends once.
        from tabulary.confidential.counting import Counter

        shape, weights = work.domain.shape, work.weights
        layout = Layout(shape if weights is None else (*shape, weights.sensitivity))
        self._packing = Packing.of(shape)
        self._validation = Validation(work.domain, work.recodings, weights)
        self._counter = Counter(work.margins, work.domain, layout, weighted=weights is not None)
        self._matrices = layout.matrices(np.zeros(layout.chunk_bytes, dtype=np.uint8))
        self._columns = [layout.column(self._matrices, place) for place in range(len(layout.groups))]
        self._codes = self._columns[: len(shape)]
        self._numbers = None if weights is None else np.zeros(CHUNK_ROWS)
        self._filled = 0

    def add(self, batch: pyarrow.RecordBatch) -> None:
        """Take some records, and count whenever a chunk is full."""
        words = [batch.column(i).to_numpy() for i in range(self._packing.count)]
        # A null becomes NaN.
        numbers = None if self._numbers is None else batch.column(len(words)).to_numpy(zero_copy_only=False)
        taken = 0
        while taken < batch.num_rows:
            take = min(batch.num_rows - taken, CHUNK_ROWS - self._filled)
            here, there = slice(taken, taken + take), slice(self._filled, self._filled + take)
            self._packing.unpack([word[here] for word in words], [codes[there] for codes in self._codes])
            if self._numbers is not None and numbers is not None:
                self._numbers[there] = numbers[here]
            taken += take
            self._filled += take
            if self._filled == CHUNK_ROWS:
                self._count()

    def finish(self) -> Batches:
        """Yield the findings and the counters."""
        self._count()
        totals = self._counter.totals()
        starts = range(0, len(totals), BLOCK_CELLS)
        blocks = ((number, totals[at : at + BLOCK_CELLS]) for number, at in enumerate(starts))
        yield from _sent(self._validation.found, blocks)

    def _count(self) -> None:
        read: list[NDArray[Any]] = [codes[: self._filled] for codes in self._codes]
        if self._numbers is not None:
            read.append(self._numbers[: self._filled])
        self._filled = 0
        admitted = self._validation.admit(tuple(read))
        if admitted is None:
            return
        for column, before, after in zip(self._columns, read, admitted, strict=True):
            # If no record is left out and no value is unknown, the codes are already in place.
            if after is not before:
                column[: len(after)] = after
        self._counter.add(len(admitted[0]), self._matrices)


def _sent(found: RecordFaults, blocks: Iterable[Block]) -> Batches:
    """Yield findings and blocks of counters to send; blocks without a count are not sent."""
    rows: list[tuple[int, int, bytes]] = [(_FINDINGS, 1, pickle.dumps(found))]
    for number, cells in blocks:
        largest = int(cells.max())
        if largest:
            width = next(bytes_ for bytes_, kind in _WIDTHS.items() if largest <= np.iinfo(kind).max)
            rows.append((number, width, cells.astype(_WIDTHS[width]).tobytes()))
        if len(rows) == _BLOCKS_A_BATCH:
            yield _batch(rows)
            rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[int, int, bytes]]) -> pyarrow.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, _ARROW.types, strict=True)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=_ARROW)
