"""The numbers in the CSV file of a table, read as Tabulary writes them and in no other way."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidTable

_ROWS_AT_A_TIME = 1 << 16
_WHOLE = re.compile(rb"-?[0-9]+")


def value_columns(data: bytes, rows: int, columns: int) -> list[NDArray[Any]]:
    r"""Return the last columns of a CSV file with so many rows: whole numbers, or real ones as the first row has.

    Labels are not looked at: whoever writes the table anew, with the labels that it should have, must get these bytes.

    >>> [column.tolist() for column in value_columns(b'sex,count,error\n"F, all",12,1.5\nM,-3,0.0\n', 2, 2)]
    [[12, -3], [1.5, 0.0]]
    """
    lines = _lines(data)
    next(lines, b"")
    pieces: list[list[NDArray[Any]]] = []
    while block := list(islice(lines, _ROWS_AT_A_TIME)):
        fields = [line.rsplit(b",", columns)[-columns:] for line in block]
        if any(len(each) != columns for each in fields):
            raise InvalidTable("a line of it has too few fields.")
        kinds = [column.dtype for column in pieces[0]] if pieces else _kinds(fields[0])
        pieces.append(
            [_numbers(texts, kind) for texts, kind in zip(zip(*fields, strict=True), kinds, strict=True)]
        )
    found = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    if not found or len(found[0]) != rows:
        raise InvalidTable(f"it does not have {rows:,} rows.")
    return found


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield one line after the other: all of them at once take ten times the room of the file."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end]
        start = end + 1


def _kinds(first: Sequence[bytes]) -> list[np.dtype[Any]]:
    return [np.dtype(np.int64 if _WHOLE.fullmatch(text) else np.float64) for text in first]


def _numbers(texts: Sequence[bytes], kind: np.dtype[Any]) -> NDArray[Any]:
    try:
        return np.array([(int if kind.kind == "i" else float)(text) for text in texts], dtype=kind)
    except (ValueError, OverflowError):
        raise InvalidTable("a field of it that should be a number is none.") from None
