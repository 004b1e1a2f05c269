"""The description of a dataset of a table builder: everything public except its tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Privacy, privacy_from_description
from tabulary.errors import InvalidArgument
from tabulary.planning.allowed_tables import AllowedTables
from tabulary.release.promise import Promise


@dataclass(frozen=True)
class RemoteDataset:
    """A dataset of a table builder: its attributes, the allowed tables, and the promise.

    `privacy` is the cost of all tables together or, for an interactive dataset, of one question; None without
    differential privacy. `labels` are the names of attributes for readers.

    >>> allowed = AllowedTables(Domain({"sex": ["F", "M"]}), order=1)
    >>> promise = Promise("This release is …", (), "One person …", (), ())
    >>> RemoteDataset("census", "Census 2026", "", "fixed", "2026", allowed, promise)
    <RemoteDataset census 2026, fixed: sex 2>
    """

    name: str
    title: str
    description: str
    method: str
    version: str
    allowed_tables: AllowedTables
    promise: Promise
    privacy: Privacy | None = None
    neighbours: Neighbours | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def domain(self) -> Domain:
        """The attributes and their levels."""
        return self.allowed_tables.domain

    def __repr__(self) -> str:
        shown = " × ".join(f"{a} {len(self.domain.levels_of(a))}" for a in self.domain.attributes)
        return f"<RemoteDataset {self.name} {self.version}, {self.method}: {shown}>"


def dataset_from_description(description: Any) -> RemoteDataset:
    """Return the dataset that a table builder describes; refuse any other document."""
    try:
        domain = Domain(
            {v["name"]: v["levels"] for v in description["variables"]}, description["structural_zeros"]
        )
        near, privacy = description["neighbours"], description["privacy"]
        return RemoteDataset(
            name=_text(description["id"]),
            title=_text(description["title"]),
            description=_text(description["description"]),
            method=_text(description["method"]),
            version=_text(description["version"]),
            allowed_tables=AllowedTables(domain, **description["allowed_tables"]),
            promise=_promise(description["promise"]),
            privacy=None if privacy is None else privacy_from_description(privacy),
            neighbours=None
            if near is None
            else Neighbours(near["relation"], near["records"], domain.margin(near["sensitive"])),
            labels=MappingProxyType({v["name"]: _text(v["label"]) for v in description["variables"]}),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidArgument(
            "this is not the description of a dataset that a table builder writes."
        ) from None


def _promise(described: Mapping[str, Any]) -> Promise:
    return Promise(
        _text(described["statement"]),
        tuple(map(_text, described["meaning"])),
        _text(described["protected"]),
        tuple(map(_text, described["conditions"])),
        tuple(map(_text, described["not_promised"])),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
