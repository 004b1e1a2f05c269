"""A frame with one row per person: only the columns that a table needs are read."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tabulary.confidential.frames import pandas_table, polars_table
from tabulary.confidential.reading.duckdb import check_columns
from tabulary.core.domain import Domain
from tabulary.errors import InvalidColumn, InvalidTable, UnknownLevel


class PersonFrame:
    """A frame of pandas or polars or an Arrow table, one row per person. Confidential: it prints nothing about them.

    >>> persons = PersonFrame(pa.table({"eye": ["blue", "brown", "blue"], "gene": [True, False, True]}))
    >>> persons
    <PersonFrame>
    >>> domain = persons.domain(["eye"])
    >>> persons.cells(domain).tolist(), persons.truths("gene").tolist()
    ([0, 1, 0], [1, 0, 1])
    """

    def __init__(self, frame: Any) -> None:
        self._frame = pa.Table.from_batches([frame]) if isinstance(frame, pa.RecordBatch) else frame
        self._package = _package(frame)

    def __len__(self) -> int:
        return len(self._frame)

    def domain(self, attributes: list[str]) -> Domain:
        """Return the domain of some public columns: their values in order."""
        return Domain(
            {name: dict.fromkeys(map(_label, sorted(set(self._values(name))))) for name in attributes}
        )

    def cells(self, domain: Domain) -> NDArray[np.int64]:
        """Return the cell of each person, cells numbered in the domain's order."""
        cell = np.zeros(len(self), dtype=np.int64)
        for name, levels in zip(domain.attributes, domain.levels, strict=True):
            codes = {level: code for code, level in enumerate(levels)}
            try:
                own = [codes[_label(value)] for value in self._values(name)]
            except KeyError:
                raise UnknownLevel(
                    f"column {name!r} holds a value outside its domain in at least one row. Nothing was released. "
                    "Add the level to the domain, or leave those people out of the table."
                ) from None
            cell = cell * len(levels) + np.asarray(own, dtype=np.int64)
        return cell

    def truths(self, private: Any) -> NDArray[np.int64]:
        """Return 1 for each person who has the private attribute and 0 for the others.

        `private` is a column's name, or one value per person.
        """
        called = f"column {private!r}" if isinstance(private, str) else "the private attribute"
        values = np.asarray(self._of_each(private, called), dtype=object)
        if not all(value in (0, 1) for value in values.tolist()):
            raise InvalidColumn(
                f"{called} holds a value other than true, false, 1 or 0 in at least one row. Nothing was released. "
                "Leave people without a known value out of the frame."
            )
        return values.astype(np.int64)

    def priors(self, probability: Any) -> NDArray[np.float64]:
        """Return the prior of each person, from a column's name or one number a person."""
        called = f"column {probability!r}" if isinstance(probability, str) else "the probabilities"
        try:
            return np.asarray(self._of_each(probability, called), dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidTable(
                f"{called}: at least one value is not a number. Nothing was released."
            ) from None

    def __repr__(self) -> str:
        return "<PersonFrame>"

    def _of_each(self, given: Any, called: str) -> list[Any]:
        values = self._values(given) if isinstance(given, str) else np.asarray(given).tolist()
        if not isinstance(values, list) or len(values) != len(self):
            raise InvalidTable(
                f"{called} must have one value for each row of the frame. Nothing was released."
            )
        return values

    def _values(self, column: str) -> list[Any]:
        if self._package is None:
            check_columns(self._frame.column_names, [column], "the Arrow table", remedy="")
            taken = self._frame
        else:
            check_columns(list(self._frame.columns), [column], f"the {self._package} frame", remedy="")
            convert = pandas_table if self._package == "pandas" else polars_table
            taken = convert(self._frame, [column])
        values: list[Any] = taken.column(column).to_pylist()
        if any(value is None or value != value for value in values):
            raise InvalidColumn(
                f"column {column!r} has no value in at least one row. Nothing was released. Leave those people out of "
                "the table, or give them a level of their own."
            )
        return values


def is_frame(data: Any) -> bool:
    """Return whether data are a frame of pandas or polars, or an Arrow table.

    >>> is_frame(pa.table({"eye": ["blue"]})), is_frame([[20, 30]])
    (True, False)
    """
    return isinstance(data, pa.Table | pa.RecordBatch) or _package(data) is not None


def _package(data: Any) -> str | None:
    package = type(data).__module__.partition(".")[0]
    return package if type(data).__name__ == "DataFrame" and package in ("pandas", "polars") else None


def _label(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
