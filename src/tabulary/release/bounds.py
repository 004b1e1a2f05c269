"""How much a manifest from a stranger may ask of its reader: counted before anything is built, unpacked or derived."""

import json
import math
from collections.abc import Mapping
from typing import Any

from tabulary.core.domain import MAX_CELLS
from tabulary.errors import ReleaseError

MOST_MANIFEST_BYTES = 1 << 26
"""The longest manifest that is read; one of thirty thousand tables is shorter."""

MOST_TABLES = 50_000
MOST_ATTRIBUTES = 1_000

# A manifest is nested half as deep.
_DEEPEST = 16
# All tables together may have this many times the cells of the largest allowed table.
_TABLES_OF_MOST_CELLS = 4
# A plan is derived from the subsets of the tables' attributes, the sets that the measured parts describe, and the
# combinations that structural zeros tie together. Each takes a few microseconds.
_MOST_SETS = 1 << 18
_MOST_TOLD = 1 << 22
_MOST_TIED = 1 << 28
_MOST_COMPARED = 4_096


def read_json(data: bytes) -> Any:
    """Return the value of a JSON text; raise ValueError if the text is not JSON or is nested too deeply.

    >>> read_json(b"[" * 20 + b"]" * 20)
    Traceback (most recent call last):
    ...
    ValueError: nested too deeply
    """
    try:
        # Only UTF-8: a decoder that guesses the encoding could take two different files for the same text.
        found = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [found]
    for _ in range(_DEEPEST):
        level = [child for value in level for child in _children(value)]
        if not level:
            return found
    raise ValueError("nested too deeply")


def _children(value: object) -> Any:
    if isinstance(value, dict):
        return [each for each in value.values() if isinstance(each, dict | list)]
    return [each for each in value if isinstance(each, dict | list)] if isinstance(value, list) else ()


def refuse_vast(
    plan: Mapping[str, Any], *, max_cells: int = MAX_CELLS, in_all: int = _TABLES_OF_MOST_CELLS
) -> None:
    """Raise ReleaseError if a plan from a stranger calls for more than a reader can be asked to compute.

    It only does arithmetic on the description of the plan, and allocates nothing of the plan's size. A malformed
    description raises the same error as reading it does. All tables together may have `in_all` times as many cells as
    one.
    """
    domain, tables, parts = plan["domain"], plan["workload"], plan["measured"]
    levels = {each["name"]: len(each["levels"]) for each in domain["attributes"]}
    zeros = domain["structural_zeros"]
    _refuse("tables", len(tables), MOST_TABLES)
    _refuse("attributes", len(levels), MOST_ATTRIBUTES)
    cells = [_product(levels, table["attributes"], max_cells) for table in tables]
    largest = max(cells, default=0)
    if largest > max_cells or sum(cells) > in_all * max_cells:
        raise ReleaseError(
            f"the plan requests tables with more cells than may be read: at most {max_cells:,} in one table "
            f"and {in_all * max_cells:,} in all. If its publisher intends this, load it in Python with a "
            "larger max_cells."
        )
    sets = sum(_power(len(table["attributes"])) for table in tables)
    # A table has no fewer cells than that, unless attributes of it have one level.
    _refuse("sets of attributes below its tables", sets, max(_MOST_SETS, sum(cells)))
    told = sum(min(_power(len(part["attributes"])), sets) for part in parts)
    _refuse("sets of attributes that its parts tell about", told, _MOST_TOLD)
    tied = [_product(levels, group, _MOST_TIED) for group in _groups(zeros)]
    _refuse(
        "combinations that its structural zeros tie together",
        sum(tied) * (len(zeros) + len(tables)) + sum(min(each, _MOST_COMPARED) ** 2 for each in tied),
        _MOST_TIED,
    )


def _refuse(what: str, found: int, most: int) -> None:
    if found > most:
        raise ReleaseError(f"the plan has more {what} than may be read: the limit is {most:,}.")


def _product(levels: Mapping[str, int], attributes: Any, most: int) -> int:
    """Return the number of cells on some attributes, or a number above `most`, whichever is smaller."""
    found = 1
    for attribute in attributes:
        found = min(found * levels[attribute], most + 1)
    return found


def _power(attributes: int) -> int:
    return 1 << min(attributes, 64)


def _groups(zeros: Any) -> list[set[str]]:
    """Return the attributes that the structural zeros tie together, group by group."""
    groups: dict[str, set[str]] = {}
    for zero in zeros:
        joined = set(zero).union(*(groups.get(attribute, ()) for attribute in zero))
        groups |= dict.fromkeys(joined, joined)
    return list({id(group): group for group in groups.values()}.values())


def most_text_bytes(levels: Mapping[str, tuple[str, ...]]) -> int:
    """Return the longest CSV file of a table with these levels: its labels, and four numbers a cell."""
    cells = math.prod(map(len, levels.values()))
    # A label is quoted, with each of its quotes doubled.
    labels = sum(
        cells // len(labels) * sum(2 * len(label.encode()) + 3 for label in labels)
        for labels in levels.values()
    )
    return labels + 120 * cells + sum(2 * len(name.encode()) + 8 for name in levels) + 200
