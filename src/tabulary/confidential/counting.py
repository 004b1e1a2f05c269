"""Counting in compiled code: one pass over the records per covering margin, chunk by chunk."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.confidential.cover import SUPER_CELLS, SuperMargin, cover
from tabulary.confidential.store import Codes, Layout, Store
from tabulary.core.arrays import sum_onto
from tabulary.core.domain import Domain, Margin
from tabulary.core.progress import Progress
from tabulary.threads import available_threads

# Progress is in hundredths of the work: a log of it must not show the number of records.
_HUNDREDTHS = 100
SECONDS_BETWEEN_REPORTS = 0.5
"""How long counting goes on between two reports of its progress."""

Counters = NDArray[np.uint32 | np.int64]
"""Counts in 32 bits, or sums of weights in 64."""

# A block of indices, 8 KiB, stays in the first-level cache from its computation until it is counted.
_BLOCK_ROWS = 2048

# Counters have 32 bits, so that twice as many fit in a cache; they are emptied before they can overflow. Sums of
# weights have 64 bits, and the encoder makes sure that they cannot overflow.
ROWS_PER_EMPTYING = 1 << 31

_MAX_THREADS = 8


# These four functions work on whole blocks, because the compiler vectorises them only in this form.
@compiled
def _set_index(index: NDArray[np.uint32], column: Codes, stride: int) -> None:
    for i in range(index.shape[0]):
        index[i] = np.uint32(column[i]) * np.uint32(stride)


@compiled
def _add_index(index: NDArray[np.uint32], column: Codes, stride: int) -> None:
    for i in range(index.shape[0]):
        index[i] = np.uint32(index[i] + np.uint32(column[i]) * np.uint32(stride))


@compiled
def _count(counters: Counters, index: NDArray[np.uint32]) -> None:
    for i in range(index.shape[0]):
        counters[index[i]] += np.uint32(1)


@compiled
def _sum(counters: Counters, index: NDArray[np.uint32], weights: Codes) -> None:
    for i in range(index.shape[0]):
        counters[index[i]] += np.int64(weights[i])


@compiled
def _count_chunk(
    small: Codes,
    medium: Codes,
    large: Codes,
    rows: int,
    groups: NDArray[np.int64],
    slots: NDArray[np.int64],
    strides: NDArray[np.int64],
    ends: NDArray[np.int64],
    offsets: NDArray[np.int64],
    counters: Counters,
    weights: Codes | None,
) -> None:
    block = np.empty(_BLOCK_ROWS, dtype=np.uint32)
    first = 0
    for margin in range(ends.shape[0]):
        # One margin over the whole chunk, so that its counters stay in cache.
        cells = counters[offsets[margin] : offsets[margin + 1]]
        for start in range(0, rows, _BLOCK_ROWS):
            stop = min(rows, start + _BLOCK_ROWS)
            index = block[: stop - start]
            if first == ends[margin]:
                index[:] = 0
            for k in range(first, ends[margin]):
                if groups[k] == 0:
                    if k == first:
                        _set_index(index, small[slots[k]][start:stop], strides[k])
                    else:
                        _add_index(index, small[slots[k]][start:stop], strides[k])
                elif groups[k] == 1:
                    if k == first:
                        _set_index(index, medium[slots[k]][start:stop], strides[k])
                    else:
                        _add_index(index, medium[slots[k]][start:stop], strides[k])
                elif k == first:
                    _set_index(index, large[slots[k]][start:stop], strides[k])
                else:
                    _add_index(index, large[slots[k]][start:stop], strides[k])
            # Compiled twice, for None and for weights: counting does not pay for a test that it never needs.
            if weights is None:
                _count(cells, index)
            else:
                _sum(cells, index, weights[start:stop])
        first = ends[margin]


@dataclass(frozen=True)
class _Share:
    """Covering margins as flat arrays, for the compiled code."""

    groups: NDArray[np.int64]
    slots: NDArray[np.int64]
    strides: NDArray[np.int64]
    ends: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, margins: Sequence[Margin], domain: Domain, layout: Layout) -> "_Share":
        positions: list[int] = []
        strides: list[int] = []
        ends: list[int] = []
        for margin in margins:
            # The last attribute is the fastest, as in the array that comes back.
            steps = np.cumprod((1, *reversed(domain.shape_of(margin))))[:-1]
            strides.extend(reversed(steps.tolist()))
            positions.extend(domain.position(attribute) for attribute in margin)
            ends.append(len(positions))
        cells = [domain.cells(margin) for margin in margins]
        return cls(
            layout.groups[positions],
            layout.slots[positions],
            np.array(strides, dtype=np.int64),
            np.array(ends, dtype=np.int64),
            np.cumsum([0, *cells], dtype=np.int64),
        )


class _Job:
    """What the threads share: the progress of each thread, and whether to stop."""

    def __init__(self, threads: int) -> None:
        self.done = [0] * threads
        self.stop = False


def count(
    store: Store,
    domain: Domain,
    margins: Iterable[Margin],
    *,
    progress: Progress | None = None,
    super_cells: int = SUPER_CELLS,
) -> dict[Margin, NDArray[np.int64]]:
    """Return the exact counts of each margin, or the exact sums of the weights. Confidential.

    Costs about 1 ns per record and covering margin, and 4 bytes per cell of each covering margin, 8 for sums. The
    threads share the margins, not the records, so that no counter exists twice.
    """
    wanted = tuple(dict.fromkeys(margins))
    covering = cover(domain, wanted, cells=super_cells)
    threads = available_threads(max(1, min(_MAX_THREADS, store.chunks)))
    shares = _share_out(covering, domain, threads)
    job = _Job(len(shares))
    with ThreadPoolExecutor(max(1, len(shares)), thread_name_prefix="tabulary-count") as pool:
        running = [
            pool.submit(_count_share, store, domain, share, job, thread)
            for thread, share in enumerate(shares)
        ]
        try:
            _watch(running, job, store.chunks * len(shares), progress)
        finally:
            job.stop = True
    counted = {margin: cells for future in running for margin, cells in future.result().items()}
    return project(domain, covering, wanted, counted)


class Counter:
    """The counts of some covering margins, chunk by chunk of encoded records. Confidential.

    Uses 4 bytes per cell of each covering margin, 8 for sums of weights, and the same again at the end.
    """

    def __init__(self, margins: Sequence[Margin], domain: Domain, layout: Layout, *, weighted: bool) -> None:
        self.margins = tuple(margins)
        self._share = _Share.of(self.margins, domain, layout)
        self._layout = layout
        self._weighted = weighted
        cells = int(self._share.offsets[-1])
        self._counters: Counters = np.zeros(cells, np.int64) if weighted else np.zeros(cells, np.uint32)
        self._totals: NDArray[np.int64] | None = None
        self._since = 0

    def add(self, rows: int, matrices: tuple[Codes, Codes, Codes]) -> None:
        """Count the first `rows` records of a chunk."""
        if self._since + rows > ROWS_PER_EMPTYING:
            self._totals = _emptied(self._counters, self._totals)
            self._since = 0
        weights = self._layout.column(matrices, -1) if self._weighted else None
        share = self._share
        _count_chunk(
            *matrices, rows,
            share.groups, share.slots, share.strides, share.ends, share.offsets, self._counters, weights,
        )  # fmt: skip
        self._since += rows

    def totals(self) -> NDArray[np.int64]:
        """Return the counts of all margins in one flat array, one margin after the other; call this last."""
        return _emptied(self._counters, self._totals)


def split(
    domain: Domain, margins: Sequence[Margin], totals: NDArray[np.int64]
) -> dict[Margin, NDArray[np.int64]]:
    """Return the flat cells of each margin, from the flat array of all margins."""
    ends = np.cumsum([domain.cells(margin) for margin in margins], dtype=np.int64)
    return dict(zip(margins, np.split(totals, ends[:-1]), strict=True))


def _count_share(
    store: Store, domain: Domain, margins: Sequence[Margin], job: _Job, thread: int
) -> dict[Margin, NDArray[np.int64]]:
    counter = Counter(margins, domain, store.layout, weighted=store.weighted)
    for rows, matrices in store.read():
        if job.stop:
            break
        counter.add(rows, matrices)
        job.done[thread] += 1
    return split(domain, margins, counter.totals())


def _emptied(counters: Counters, totals: NDArray[np.int64] | None) -> NDArray[np.int64]:
    if totals is None:
        totals = counters.astype(np.int64)
    else:
        totals += counters
    counters[:] = 0
    return totals


def _watch(
    running: Sequence["Future[dict[Margin, NDArray[np.int64]]]"],
    job: _Job,
    steps: int,
    progress: Progress | None,
) -> None:
    """Wait for the threads, and report progress from the caller's thread, where a report may print or raise."""
    pending = set(running)
    last = time.monotonic()
    while pending:
        finished, pending = wait(pending, timeout=SECONDS_BETWEEN_REPORTS)
        if any(future.exception() for future in finished):
            job.stop = True
        if progress is not None and pending and time.monotonic() - last >= SECONDS_BETWEEN_REPORTS:
            progress("counting", _HUNDREDTHS * sum(job.done) // max(1, steps), _HUNDREDTHS)
            last = time.monotonic()
    if progress is not None and not any(future.exception() for future in running):
        progress("counting", _HUNDREDTHS, _HUNDREDTHS)


def _share_out(covering: Sequence[SuperMargin], domain: Domain, threads: int) -> list[list[Margin]]:
    """Return the covering margins in shares of about equal work; the heaviest margins are placed first."""
    shares: list[list[Margin]] = [[] for _ in range(min(threads, len(covering)))]
    loads = [0.0] * len(shares)
    for found in sorted(covering, key=lambda s: -_work(domain, s.margin)):
        lightest = loads.index(min(loads))
        shares[lightest].append(found.margin)
        loads[lightest] += _work(domain, found.margin)
    return shares


def _work(domain: Domain, margin: Margin) -> float:
    # In nanoseconds per record: an attribute costs 1/8, a counter 1/2 in cache and several outside.
    return len(margin) / 8 + (0.5 if domain.cells(margin) <= 4 * SUPER_CELLS else 5)


def project(
    domain: Domain,
    covering: Sequence[SuperMargin],
    wanted: Sequence[Margin],
    counted: dict[Margin, NDArray[np.int64]],
) -> dict[Margin, NDArray[np.int64]]:
    """Return the wanted margins as sums of the covering ones; each covering margin is freed after use."""
    found: dict[Margin, NDArray[np.int64]] = {}
    for larger in covering:
        cells = counted.pop(larger.margin).reshape(domain.shape_of(larger.margin))
        for margin in larger.holds:
            # Each table gets its own memory: a view would keep the whole share alive.
            found[margin] = np.array(sum_onto(cells, larger.margin, margin), dtype=np.int64)
    return {margin: found[margin] for margin in wanted}
