"""A table with suppressed cells as files: `table.json`, complete, and `table.csv`, for everyone to read.

Both are public. A CSV file has one row for each cell: its levels, `count`, and where they are public `people` and
`probability`. A row with `total` in place of a level is a sum over that attribute. What is suppressed is marked `[c]`.
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.core.suppressed_table import MARK, SuppressedTable
from tabulary.errors import InvalidDomain, InvalidTable, UnreadableSource, listed
from tabulary.release.formats import csv_bytes
from tabulary.suppress.pages.table_layout import TOTAL, TableLayout
from tabulary.suppress.simulatable_method.simulatable import SimulatableTable

CSV_NAME, JSON_NAME = "table.csv", "table.json"
_SCHEMA = "tabulary-suppressed-table/1"
_SIMULATABLE, _SUPPRESSED = "simulatable", "suppressed"
_COUNT, _PEOPLE, _PROBABILITY = "count", "people", "probability"
_VALUES = (_COUNT, _PEOPLE, _PROBABILITY)
# How suppressed cells are marked here and there: by a letter, a star, or by nothing at all.
_MARKS = frozenset({MARK, "c", "x", "*", ""})
# Public tables are small; a file above this is something else.
_LARGEST = 64 * 1024**2


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A table with suppressed cells, as read from a file.

    `probability` is the prior of the people in each cell, where the file says so, and `facts` what it says about how
    the table was made.
    """

    table: SuppressedTable
    probability: NDArray[np.float64] | None = None
    facts: Mapping[str, str] = field(default_factory=dict)


def json_bytes(table: SuppressedTable, facts: Mapping[str, str] | None = None) -> bytes:
    """Return `table.json`: all that is public about a table, decisions included where it has any."""
    method, described = _described(table)
    content = {"schema": _SCHEMA, "method": method, "facts": dict(facts or {}), "table": described}
    return f"{json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)}\n".encode()


def table_csv_bytes(table: SuppressedTable, probability: NDArray[np.float64] | None = None) -> bytes:
    r"""Return `table.csv`: the cells row by row, each row's sums after it.

    >>> domain = Domain({"eye": ["blue", "brown"]})
    >>> table_csv_bytes(SuppressedTable(domain, np.array([6, np.nan]), {(): np.array(9)}))
    b'eye,count\nblue,6\nbrown,[c]\ntotal,9\n'
    """
    check_names(table.domain)
    entries = [entry for line in TableLayout(table).lines for entry in line]
    columns = {
        attribute: [entry.labels[axis] for entry in entries]
        for axis, attribute in enumerate(table.domain.attributes)
    }
    columns[_COUNT] = [_shown(entry.value) for entry in entries]
    if table.people is not None:
        columns[_PEOPLE] = [str(entry.people) for entry in entries]
    if probability is not None:
        columns[_PROBABILITY] = [
            "" if entry.is_sum else str(float(probability[entry.index])) for entry in entries
        ]
    return csv_bytes(pa.table(columns))


def check_names(domain: Domain) -> None:
    """Refuse attributes and levels that could not be distinguished from the columns and the sums of a table's file."""
    taken = [name for name in _VALUES if name in domain.attributes]
    if taken:
        raise InvalidTable(
            f"an attribute is called {taken[0]!r}, which is the name of a column of every table. Nothing was "
            "written. Rename it."
        )
    for attribute, levels in zip(domain.attributes, domain.levels, strict=True):
        if TOTAL in levels:
            raise InvalidTable(
                f"attribute {attribute!r} has a level {TOTAL!r}, which marks the rows of sums. Nothing was written. "
                "Leave rows of sums out, or rename that level."
            )


def read_table(path: str | Path, *, total: str = TOTAL, amounts: bool = False) -> PublicTable:
    """Return the table of a `table.json`, of a folder that holds one, or of a CSV file.

    `total` is what a CSV file writes in place of a level in the row of a sum; `amounts` says that its values need not
    be whole. A suppressed cell is marked `[c]`, `c`, `x`, `*` or left empty.
    """
    place = Path(path).expanduser()
    if place.is_dir():
        place = place / JSON_NAME
    try:
        # Not by its stated length: a device has none, and no end.
        with place.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise UnreadableSource(f"{str(place)!r} is too large for a table file. Nothing was read.")
        text = data.decode("utf-8-sig")
    except OSError:
        raise UnreadableSource(
            f"there is no table {str(place)!r} that can be read. Name a table.json, a folder with one, or a CSV file."
        ) from None
    except UnicodeError:
        raise UnreadableSource(f"{place.name!r} is not a UTF-8 text. Nothing was read.") from None
    try:
        if place.suffix.lower() == ".json":
            return _from_json(text)
        return _from_csv(text, total, whole=not amounts)
    except (InvalidTable, InvalidDomain) as problem:
        raise InvalidTable(f"{place.name}: {problem}") from None


def prior_of(table: SuppressedTable) -> NDArray[np.float64] | None:
    """Return the prior of the people in each cell, where it is public and everyone in a cell has the same."""
    if not isinstance(table, SimulatableTable) or table.people_by_kind.shape != table.domain.shape:
        return None
    number, prior = table.people_by_kind.number, table.people_by_kind.probability
    # Where nobody stands any prior will do.
    lowest = np.where(number > 0, prior, 1.0).min(axis=-1)
    highest = np.where(number > 0, prior, 0.0).max(axis=-1)
    empty = table.people_by_kind.in_cells == 0
    return np.where(empty, 0.5, lowest) if (empty | (lowest == highest)).all() else None


def _described(table: SuppressedTable) -> tuple[str, dict[str, Any]]:
    if isinstance(table, SimulatableTable):
        return _SIMULATABLE, table.describe()
    return _SUPPRESSED, describe(table)


def describe(table: SuppressedTable) -> dict[str, Any]:
    """Return a table as plain data, the inverse of `from_description`; what is suppressed is None."""
    return {
        "title": table.title,
        "domain": table.domain.describe(),
        "whole": table.whole,
        "counts": _listed(table.counts, whole=table.whole),
        "sums": [
            {"by": list(margin), "counts": _listed(values, whole=table.whole)}
            for margin, values in table.sums.items()
        ],
        "people": None if table.people is None else table.people.tolist(),
    }


def from_description(description: object) -> SuppressedTable:
    """Return the table that `describe` wrote; refuse anything else."""
    match description:
        case {
            "title": str(title),
            "domain": domain,
            "whole": bool(whole),
            "counts": counts,
            "sums": list(sums),
            "people": people,
            **rest,
        } if not rest:
            return SuppressedTable(
                Domain.from_description(domain),
                _array(counts),
                dict(map(_sum, sums)),
                None if people is None else _array(people).astype(np.int64),
                whole=whole,
                title=title,
            )
    raise InvalidTable("the description of the table is not in the form that Tabulary writes.")


def _sum(description: object) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    match description:
        case {"by": list(margin), "counts": counts, **rest} if not rest:
            return tuple(map(str, margin)), _array(counts)
    raise InvalidTable("the description of a sum is not in the form that Tabulary writes.")


def _array(values: object) -> NDArray[np.float64]:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTable("the values of a table are not an array of numbers.") from None


def _listed(values: NDArray[np.float64], *, whole: bool) -> Any:
    kept = np.isnan(values)
    cells = values.astype(object)
    cells[~kept] = [int(value) if whole else float(value) for value in values[~kept]]
    cells[kept] = None
    return cells.tolist()


def _shown(value: float) -> str:
    if np.isnan(value):
        return MARK
    return str(int(value)) if value == round(value) else str(float(value))


def _from_json(text: str) -> PublicTable:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidTable("it is not a JSON file.") from None
    match content:
        case {"schema": str(schema), "method": str(method), "facts": dict(facts), "table": described, **rest}:
            if schema != _SCHEMA or rest:
                raise InvalidTable(f"its schema is not {_SCHEMA!r}. Another version of Tabulary wrote it.")
            return _read(method, described, {str(name): str(fact) for name, fact in facts.items()})
    raise InvalidTable("it is not a table.json that Tabulary wrote.")


def _read(method: str, described: object, facts: Mapping[str, str]) -> PublicTable:
    if method == _SIMULATABLE:
        table = SimulatableTable.from_description(described)
        return PublicTable(table, prior_of(table), facts)
    if method == _SUPPRESSED:
        return PublicTable(from_description(described), None, facts)
    raise InvalidTable(f"this version of Tabulary does not know its method {method!r}.")


def _from_csv(text: str, total: str, *, whole: bool) -> PublicTable:
    try:
        lines = [line for line in csv.reader(StringIO(text, newline=""), strict=True) if line]
    except csv.Error:
        raise InvalidTable("it is not a CSV file: a quote is not closed, or is inside a field.") from None
    if len(lines) < 2:
        raise InvalidTable("it has no rows. A table has a header and one row for each cell.")
    names, rows = [name.strip() for name in lines[0]], lines[1:]
    if len(set(names)) < len(names):
        raise InvalidTable("two columns have the same name.")
    if _COUNT not in names:
        raise InvalidTable(f"it has no column {_COUNT!r}. Its columns are {listed(names)}.")
    if any(len(row) != len(names) for row in rows):
        raise InvalidTable("a row has more or fewer fields than the header.")
    attributes = [name for name in names if name not in _VALUES]
    if not attributes:
        raise InvalidTable(f"it has no attributes: its only columns are {listed(names)}.")
    column = {name: [row[place].strip() for row in rows] for place, name in enumerate(names)}
    levels = {name: [level for level in dict.fromkeys(column[name]) if level != total] for name in attributes}
    # Domain refuses an attribute that has sums only, and a level without a name.
    domain = Domain(levels)
    if domain.size > len(rows):
        raise _incomplete(domain)
    table = _Filled(domain, whole)
    for number in range(len(rows)):
        labels = {name: column[name][number] for name in attributes if column[name][number] != total}
        table.put(labels, {name: column[name][number] for name in _VALUES if name in names})
    return table.public()


class _Filled:
    """A table that is filled row by row, as they come."""

    def __init__(self, domain: Domain, whole: bool) -> None:
        self.domain, self.whole = domain, whole
        self.values = {name: np.full(domain.shape, np.nan) for name in _VALUES}
        self.sums: dict[tuple[str, ...], NDArray[np.float64]] = {}
        self.given: dict[tuple[str, ...], set[tuple[int, ...]]] = {domain.attributes: set()}
        self.columns: set[str] = set()

    def put(self, labels: Mapping[str, str], texts: Mapping[str, str]) -> None:
        """Put one row to where its labels say."""
        margin = tuple(labels)
        at = tuple(self.domain.code(name, level) for name, level in labels.items())
        where = ", ".join(f"{name} {level}" for name, level in labels.items()) or "the total"
        if at in self.given.setdefault(margin, set()):
            raise InvalidTable(f"{where} has two rows.")
        self.given[margin].add(at)
        count = np.nan if texts[_COUNT].lower() in _MARKS else _number(texts[_COUNT], where)
        if margin != self.domain.attributes:
            shape = self.domain.shape_of(margin)
            self.sums.setdefault(margin, np.full(shape, np.nan))[at] = count
            return
        self.values[_COUNT][at] = count
        for name in (_PEOPLE, _PROBABILITY):
            if name in texts:
                self.columns.add(name)
                self.values[name][at] = _number(texts[name], where)

    def public(self) -> PublicTable:
        """Return the table, or refuse one that does not have all of its cells."""
        if len(self.given[self.domain.attributes]) < self.domain.size:
            raise _incomplete(self.domain)
        counts = self.values[_COUNT]
        numbers = [counts, *self.sums.values()]
        if self.whole and any((array[~np.isnan(array)] % 1 != 0).any() for array in numbers):
            raise InvalidTable("a count is not whole. If the values are amounts, read them as amounts.")
        table = SuppressedTable(
            self.domain,
            counts,
            self.sums,
            self.values[_PEOPLE].astype(np.int64) if self._whole_people() else None,
            whole=self.whole,
        )
        if _PROBABILITY not in self.columns:
            return PublicTable(table)
        prior = self.values[_PROBABILITY]
        if not ((prior > 0) & (prior < 1)).all():
            raise InvalidTable("a prior probability is not strictly between 0 and 1.")
        return PublicTable(table, prior)

    def _whole_people(self) -> bool:
        if _PEOPLE not in self.columns:
            return False
        if (self.values[_PEOPLE] % 1 != 0).any():
            raise InvalidTable("a number of people is not whole.")
        return True


def _incomplete(domain: Domain) -> InvalidTable:
    return InvalidTable(
        f"not every combination of {listed(domain.attributes)} has a row. A suppressed cell needs a row too, marked "
        f"{MARK}."
    )


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise InvalidTable(f"{where}: {text!r} is no number, and not the mark of a suppressed cell.")
    return number
