"""What a study is: pieces of work that anyone can repeat, and what their numbers say.

A study compares published tables with the truth. It runs on tables that are public or made up, or else everything of
it is confidential, and its page says so in large letters.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tabulary.noise import ExactSampler
from tabulary.noise.keyed import KeyedEntropy, derived_key

Value = str | int | float | bool | None
Row = Mapping[str, Value]
Sheets = Mapping[str, Sequence[Row]]
"""Numbers by the name of their CSV file. All rows of a file have the same columns."""


@dataclass(frozen=True)
class Lab:
    """What a piece of work is given: the study's material, and chance that is the same whenever it is repeated.

    >>> draws = [Lab(7, ("three-approaches", "k=2")).sampler().entropy.words(2) for _ in range(2)]
    >>> bool((draws[0] == draws[1]).all())
    True
    """

    seed: int
    place: tuple[str, ...]
    material: Any = field(default=None, repr=False)

    def sampler(self, *context: str) -> ExactSampler:
        """Return the exact sampler on words of this piece of work alone, of a part of it where `context` names one."""
        return ExactSampler(KeyedEntropy(self._key, *self.place, *context))

    def number(self, *context: str) -> int:
        """Return a seed of 63 bits for data that are made up."""
        return int.from_bytes(derived_key(self._key, "number", *self.place, *context)[:8], "big") >> 1

    @property
    def _key(self) -> bytes:
        # Anyone may know it: what is drawn is compared with the truth, and is no release.
        return hashlib.sha256(f"tabulary study {self.seed}".encode()).digest()


@dataclass(frozen=True)
class Task:
    """One piece of work: `work(lab, *arguments)`, a function of a module, so that any process can do it.

    `key` names it within the study for ever: what was done under a key is not done again.
    """

    key: str
    work: Callable[..., Sheets]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A chart with the words that stand for it where it cannot be seen. `stem` is the name of its files.

    `rows` are what it shows where that is in no other file: means of many numbers, say.
    """

    stem: str
    chart: Any
    caption: str
    description: str
    rows: Sequence[Row] = ()


@dataclass(frozen=True)
class Summary:
    """A table of a page, its numbers as they are to be read."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.heads) for row in self.rows):
            raise ValueError("every row of a summary has a value for each of its heads")


@dataclass(frozen=True)
class ReportSection:
    """A part of a page: what was found in words, then the tables and figures that show it."""

    title: str
    words: tuple[str, ...] = ()
    summaries: tuple[Summary, ...] = ()
    figures: tuple[Figure, ...] = ()


class Study(Protocol):
    """An experiment. Frozen: its fields are its settings, and a study of other settings is another one."""

    @property
    def name(self) -> str:
        """The word after `tabulary study`."""
        ...

    @property
    def title(self) -> str:
        """What is compared, as a headline."""
        ...

    @property
    def source(self) -> str:
        """Where the experiment comes from: a paper with its tables and figures, or whose data it is about."""
        ...

    @property
    def about(self) -> str:
        """What is done, for somebody who has not read the paper."""
        ...

    @property
    def confidential(self) -> bool:
        """Whether exact counts that are not public enter the numbers."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """What makes the numbers what they are, as JSON: half of a study is never finished with other settings."""
        ...

    def tasks(self) -> Sequence[Task]:
        """Return the pieces of work, in the order of the rows in the CSV files. The longest should come first."""
        ...

    def material(self) -> Any:
        """Return what the pieces share and is costly or confidential: made once, kept in memory, on no disk."""
        ...

    def report(self, sheets: Sheets) -> Sequence[ReportSection]:
        """Return what the numbers say. The first section is the answer in a few sentences."""
        ...
