"""Rows of a study's sheets, chosen by their values."""

from collections.abc import Iterable
from typing import Any

from tabulary.studies.study import Row


def chosen(rows: Iterable[Row], **which: object) -> list[Row]:
    """Return the rows that have these values.

    >>> chosen([{"law": "laplace", "loss": 1.5}, {"law": "normal", "loss": 2.5}], law="normal")
    [{'law': 'normal', 'loss': 2.5}]
    """
    return [row for row in rows if all(row[column] == value for column, value in which.items())]


def numbers(rows: Iterable[Row], column: str, **which: object) -> list[float]:
    """Return the numbers of a column in the rows that have these values; where there is none, it is left out.

    >>> numbers([{"law": "laplace", "loss": 1.5}, {"law": "laplace", "loss": None}], "loss", law="laplace")
    [1.5]
    """
    return [number(row, column) for row in chosen(rows, **which) if row[column] is not None]


def number(row: Row, column: str) -> float:
    """Return what stands in a column that has numbers.

    >>> number({"people": 80}, "people")
    80.0
    """
    value = row[column]
    if isinstance(value, str) or value is None:
        raise TypeError(f"{column!r} holds no number")
    return float(value)


def distinct(rows: Iterable[Row], *columns: str) -> list[tuple[Any, ...]]:
    """Return what stands together in these columns, each once, in the order of the rows.

    >>> distinct([{"law": "laplace"}, {"law": "normal"}, {"law": "laplace"}], "law")
    [('laplace',), ('normal',)]
    """
    return list(dict.fromkeys(tuple(row[column] for column in columns) for row in rows))
