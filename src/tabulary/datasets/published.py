"""The published tables, each with its source and its corrections."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np

from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import UnknownDataset, listed

# In the order of the papers, and within a paper as printed.
_NAMES = ("fungus", "autoworkers", "rochdale", "journey-to-work", "uk-census", "hair-eye-gene")


@dataclass(frozen=True, eq=False)
class Dataset:
    """A published table and the facts about it.

    `meanings` says what each attribute means; `corrections` says where and why the table differs from the page;
    `model` is the log-linear model that the source fits. Only `hair-eye-gene` has `people` and `probability`: the
    size of each group, and the chance of being counted in it. A table on fewer attributes than `table` holds the same
    value along the others.
    """

    name: str
    title: str
    source: str
    corrections: tuple[str, ...]
    notes: tuple[str, ...]
    meanings: Mapping[str, str]
    table: Table
    model: str | None = None
    people: Table | None = None
    probability: Table | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "meanings", MappingProxyType(dict(self.meanings)))

    def __reduce__(self) -> tuple[type["Dataset"], tuple[Any, ...]]:
        # A read-only view cannot be sent to another process; the viewed object can.
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self), tuple((values | {"meanings": dict(self.meanings)}).values())

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {self.title}, {' × '.join(map(str, self.table.shape))}>"


def names() -> tuple[str, ...]:
    """Return the names of the published tables.

    >>> "rochdale" in names()
    True
    """
    return _NAMES


def load(name: str) -> Table:
    """Return a published table.

    >>> load("rochdale").total
    665
    """
    return describe(name).table


def describe(name: str) -> Dataset:
    """Return a published table with its source, its corrections and the meaning of its attributes.

    >>> describe("rochdale").meanings["C"]
    'husband unemployed'
    """
    if name not in _NAMES:
        raise UnknownDataset(f"there is no dataset {name!r}. There are {listed(_NAMES)}.")
    return _read(name)


@cache
def _read(name: str) -> Dataset:
    text = files("tabulary.datasets").joinpath("tables", f"{name}.toml").read_text(encoding="utf-8")
    entry = tomllib.loads(text)
    attributes: dict[str, dict[str, Any]] = entry["attributes"]
    companions = {of: _table(attributes, part) for of, part in entry.get("companions", {}).items()}
    return Dataset(
        name=name,
        title=entry["title"],
        source=entry["source"],
        corrections=tuple(entry["corrections"]),
        notes=tuple(entry["notes"]),
        meanings={a: about["meaning"] for a, about in attributes.items()},
        table=_table(attributes, entry),
        model=entry.get("model"),
        people=companions.get("people"),
        probability=companions.get("probability"),
    )


def _table(attributes: Mapping[str, Mapping[str, Any]], part: Mapping[str, Any]) -> Table:
    """Return the table whose counts have the order of the page, with its attributes in the order of the file."""
    printed = Domain({a: attributes[a]["levels"] for a in part["printed"]})
    counts = np.asarray(part["counts"]).reshape(printed.shape)
    return Table(printed, counts).transpose([a for a in attributes if a in printed.attributes])
