"""The compiled loops of the cell keys: one pass over the records, one lookup for each cell."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled

Codes = NDArray[np.unsignedinteger[Any]]


@compiled
def add_index(index: NDArray[np.int64], column: Codes, stride: int) -> None:
    """Add to each record's cell number what its level of one attribute adds."""
    for i in range(index.shape[0]):
        index[i] += np.int64(column[i]) * stride


@compiled
def add_records(
    index: NDArray[np.int64], keys: NDArray[np.uint64], modulus: np.uint64, cells: NDArray[np.uint64]
) -> None:
    """Count each record in its cell and add its key there, modulo `modulus`, which is at most 2**62.

    A cell's count and its sum are next to each other in memory, so that they are fetched together.
    """
    for i in range(index.shape[0]):
        cell = index[i]
        cells[cell, 0] += np.uint64(1)
        total = cells[cell, 1] + keys[i]
        # An unsigned number below zero becomes huge, so the smaller of the two is the remainder: no branch, no
        # overflow.
        cells[cell, 1] = min(total, total - modulus)


@compiled
def add_digit(keys: NDArray[np.uint64], digits: Codes, place: int) -> None:
    """Add to each record's key one digit, at the bits from `place` on."""
    for i in range(keys.shape[0]):
        keys[i] += np.uint64(digits[i]) << np.uint64(place)


@compiled
def count_codes(times: NDArray[np.int64], column: Codes) -> None:
    """Count how often each code occurs."""
    for i in range(column.shape[0]):
        times[column[i]] += 1


@compiled
def look_up_codes(values: NDArray[Any], low: int, codes: Codes, found: Codes) -> bool:
    """Fill `found` with the code of each whole number from `low` on; return whether all numbers have a code."""
    for i in range(values.shape[0]):
        place = np.int64(values[i]) - low
        if place < 0 or place >= codes.shape[0]:
            return False
        found[i] = codes[place]
    return True


@compiled
def split_digit(keys: NDArray[Any], modulus: int, place: int, bits: int, found: Codes) -> bool:
    """Fill `found` with one digit of each key; return whether all are keys."""
    for i in range(keys.shape[0]):
        key = np.int64(keys[i])
        if key < 0 or key >= modulus:
            return False
        found[i] = (key >> place) & ((1 << bits) - 1)
    return True


@compiled
def look_up(
    rows: NDArray[np.int64],
    keys: NDArray[np.int64],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    pvalues: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Fill `found` with the number of each key in its row; a row below zero has none."""
    for i in range(rows.shape[0]):
        if rows[i] < 0:
            continue
        low, high = offsets[rows[i]], offsets[rows[i] + 1]
        while high - low > 1:
            middle = (low + high) // 2
            if starts[middle] <= keys[i]:
                low = middle
            else:
                high = middle
        found[i] = pvalues[low]
