"""What `tabulary suppress` was asked to read: people in cells or one by one, and their prior."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tabulary import datasets
from tabulary.errors import InvalidArgument
from tabulary.suppress.samplers.people import People
from tabulary.workflows.suppressing import (
    Groups,
    Source,
    fitted_prior,
    published_groups,
    read_cells,
    read_persons,
)

_STATE = "Nothing was read, nothing was released."


@dataclass(frozen=True)
class Asked:
    """A file and what its columns mean, or a published dataset."""

    file: Path | None
    dataset: str | None
    by: tuple[str, ...]
    levels: Mapping[str, Sequence[str]]
    people: str
    count: str
    persons: bool
    private: str | None
    names_people: bool
    """Whether the column of people was named, and not taken by default."""

    def source(self) -> Source:
        """Return the file and its attributes."""
        if self.file is None:
            raise InvalidArgument(
                f"this needs a file; a published dataset has no single contributions. {_STATE}"
            )
        return Source(self.file, self.by, self.levels)

    def groups(self, *, private: bool, probability: str | None) -> Groups:
        """Return the people in groups; the private values are read only if `private`."""
        if self.dataset is not None:
            return published_groups(datasets.describe(self.dataset))
        if not self.persons:
            if self.private is not None:
                raise InvalidArgument(
                    f"--private goes with --persons; a row for a cell has --count. {_STATE}"
                )
            count = self.count if private else None
            return read_cells(self.source(), people=self.people, count=count, probability=probability)
        if private and self.private is None:
            raise InvalidArgument(f"--persons needs --private, the column of the private attribute. {_STATE}")
        return read_persons(self.source(), private=self.private if private else None, probability=probability)


@dataclass(frozen=True)
class Prior:
    """Where the prior comes from: a number, a column, or past public tables."""

    text: str | None
    past: tuple[Path, ...]

    def __post_init__(self) -> None:
        if self.text is not None and self.past:
            raise InvalidArgument(
                f"the prior is given by --probability or fitted from --past, not both. {_STATE}"
            )

    @property
    def column(self) -> str | None:
        """The column of the prior, if it is one."""
        return self.text if self.text is not None and self._number is None else None

    def people(self, groups: Groups) -> People:
        """Return the people of the groups with their prior."""
        assert groups.people is not None, "groups are read with their people"
        if self.past:
            return People.of(groups.domain, groups.people, fitted_prior(self.past, groups.domain)[..., None])
        if self._number is not None:
            return People.of(groups.domain, groups.people, self._number)
        if groups.probability is None:
            raise InvalidArgument(
                "the prior is missing: how likely it is that someone has the private attribute. Give --probability "
                "0.4, or the column that holds it, or fit it with --past from tables published before. Nothing was "
                "released."
            )
        return People(groups.domain, groups.people, groups.probability)

    @property
    def _number(self) -> float | None:
        try:
            number = float(self.text or "")
        except ValueError:
            return None
        return number if np.isfinite(number) else None
