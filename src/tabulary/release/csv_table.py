"""The numbers in the CSV file of a table, read as Tabulary writes them and in no other way."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidTable

_ROWS_AT_A_TIME = 1 << 16
_WHOLE = re.compile(rb"-?[0-9]+")
# A whole number of 64 bits has 20 characters at most, and a real one 24.
_LONGEST = 32


def value_columns(data: bytes, rows: int, columns: int) -> list[NDArray[Any]]:
    r"""Return the last columns of a CSV file with this many rows, as integers or floats, as in the first row.

    Labels are not read: writing the table again, with the expected labels, must give the same bytes.

    >>> [column.tolist() for column in value_columns(b'sex,count,error\n"F, all",12,1.5\nM,-3,0.0\n', 2, 2)]
    [[12, -3], [1.5, 0.0]]
    """
    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if len(ends) != rows + 1 or not data.endswith(b"\n"):
        raise InvalidTable(f"it does not have {rows:,} rows.")
    commas = np.flatnonzero(text == ord(","))
    # A number has no comma, so the last commas of a line come before its numbers.
    last = np.searchsorted(commas, ends[1:])
    if len(commas) < columns - 1 or last.min(initial=columns) < columns - 1:
        raise InvalidTable("a line of it has too few fields.")
    found = []
    for column in range(columns):
        behind = columns - column
        # The table without attributes has no comma before its first number.
        starts = np.where(last >= behind, commas[np.maximum(last - behind, 0)] if len(commas) else 0, 0)
        starts = np.maximum(starts, ends[:-1]) + 1
        stops = ends[1:] if behind == 1 else commas[last - behind + 1]
        found.append(_numbers(text, starts, stops))
    return found


def _numbers(text: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[Any]:
    """Return the numbers that are written from `starts` to `stops`."""
    lengths = stops - starts
    if lengths.min() < 1 or lengths.max() > _LONGEST:
        raise InvalidTable("a field of it must be a number, and is not.")
    first = text[starts[0] : stops[0]].tobytes()
    kind = np.int64 if _WHOLE.fullmatch(first) else np.float64
    found = np.empty(len(starts), dtype=kind)
    places = np.arange(int(lengths.max()))
    for begin in range(0, len(starts), _ROWS_AT_A_TIME):
        rows = slice(begin, begin + _ROWS_AT_A_TIME)
        inside = places < lengths[rows, None]
        letters = np.where(inside, text[np.where(inside, starts[rows, None] + places, 0)], 0).astype(np.uint8)
        try:
            found[rows] = np.ascontiguousarray(letters).view(f"S{len(places)}")[:, 0].astype(kind)
        except (ValueError, OverflowError):
            raise InvalidTable("a field of it must be a number, and is not.") from None
    return found
