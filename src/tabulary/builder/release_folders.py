"""Release folders as datasets of a table builder: read-only, without a record, a key, a ledger or a state."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Self

from tabulary.builder.listening import Listening
from tabulary.builder.service import (
    DEFAULT_TITLE,
    LONGEST_NAME,
    ReleaseSeal,
    ServedDataset,
    Service,
    ServiceLimits,
)
from tabulary.core.cache import Cache
from tabulary.core.progress import Progress
from tabulary.errors import TabularyError
from tabulary.planning.allowed_tables import MOST_CELLS, AllowedTables
from tabulary.release import Release
from tabulary.workflows.answering.released import ReleasedAnswers


@dataclass(frozen=True, eq=False)
class ReleasedDataset:
    """A release folder that is to be served. It is read, and every byte of it checked, when it is first needed.

    `given_title` and `given_description` replace those of the release.
    """

    name: str
    folder: Path
    given_title: str = ""
    given_description: str = ""
    max_cells: int = MOST_CELLS

    payment = None
    """Its tables are free: the publisher has paid for them."""

    @cached_property
    def release(self) -> Release:
        """The release in the folder, verified."""
        return Release.load(self.folder)

    @property
    def title(self) -> str:
        """The title for readers."""
        return self.given_title or self.release.title or self.name

    @property
    def version(self) -> str:
        """The beginning of the digest of the release."""
        return self._answers().version

    @property
    def allowed_tables(self) -> AllowedTables:
        """The tables that can be made of the release."""
        return self._answers().allowed_tables

    def served(self, cache: Cache | None = None) -> ServedDataset:
        """Return the dataset, ready to answer."""
        release = self.release
        first, *others = release.translations
        told = replace(first, title=self.title, description=self.given_description or first.description)
        assert release.digest is not None, "a release that was loaded has a digest"
        seal = ReleaseSeal(release.digest, release.signer)
        return ServedDataset(self.name, self._answers(cache), (told, *others), seal=seal)

    def _answers(self, cache: Cache | None = None) -> ReleasedAnswers:
        return ReleasedAnswers.of(self.release, max_cells=self.max_cells, cache=cache)


@dataclass(frozen=True, eq=False)
class ReleaseFolders:
    """One or more release folders to be served as they are: there is nothing to configure, to pay or to keep."""

    datasets: Mapping[str, ReleasedDataset]
    listening: Listening = field(default_factory=Listening)
    limits: ServiceLimits = field(default_factory=ServiceLimits)

    def __post_init__(self) -> None:
        object.__setattr__(self, "datasets", MappingProxyType(dict(self.datasets)))

    @classmethod
    def of(cls, folders: Iterable[Path]) -> Self:
        """Return the folders as datasets. The name of a folder names its dataset. Reads nothing yet."""
        named: dict[str, ReleasedDataset] = {}
        for folder in map(Path.absolute, folders):
            plain = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._") or "release"
            name, number = plain[:LONGEST_NAME], 1
            while name in named:
                number += 1
                name = f"{plain[: LONGEST_NAME - 4]}-{number}"
            named[name] = ReleasedDataset(name, folder)
        return cls(named)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The folders, by which another process opens the same service."""
        return tuple(each.folder for each in self.datasets.values())

    @property
    def title(self) -> str:
        """The title of the service: that of the only release, if there is only one."""
        titles = [each.title for each in self.datasets.values()]
        return titles[0] if len(titles) == 1 else DEFAULT_TITLE

    def at(self, listening: Listening) -> Self:
        """Return the same releases, to be served elsewhere."""
        return replace(self, listening=listening)

    def open(self, *, progress: Progress | None = None) -> Service:
        """Return the service, ready to answer. Every byte and every claim of every folder has been checked."""
        cache = Cache(self.limits.cache_bytes)
        served = {}
        for done, (name, each) in enumerate(self.datasets.items()):
            if progress is not None:
                progress("checking the releases", done, len(self.datasets))
            served[name] = _named(each.folder, each, cache)
        return Service(served, limits=self.limits, title=self.title, hosts=self.listening.hosts, cache=cache)


def _named(folder: Path, dataset: ReleasedDataset, cache: Cache) -> ServedDataset:
    """Return the dataset; an error names the folder."""
    try:
        return dataset.served(cache)
    except TabularyError as problem:
        if str(folder) not in str(problem):
            problem.add_note(f"The folder is {str(folder)!r}.")
        raise
