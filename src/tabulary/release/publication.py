"""A table as it is published: its numbers, the known facts about their errors, and its words."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.core.labels import Labels
from tabulary.errors import InvalidTable
from tabulary.release.exchange import WithheldCounts
from tabulary.release.table import CONFIDENCE, ReleasedTable
from tabulary.release.totals import TOTAL, TotalledTable

Numbers = NDArray[Any]

DOUBT = "~"
"""The sign of a number that noise dominates: its interval reaches zero."""

NO_NUMBER = ".."
"""The sign of a number that is not given."""

IMPOSSIBLE = "–"
"""The sign of a combination that cannot occur."""


class Status(StrEnum):
    """The status of a number that a reader must know, by the observation flags of the European statistical system.

    The letters are Eurostat's: e estimated, u low reliability, c confidential, z not applicable.
    """

    estimated = "e"
    unreliable = "u"
    withheld = "c"
    impossible = "z"


@dataclass(frozen=True, eq=False)
class Publication:
    """A table to be written in some format, each number with its status.

    `errors` holds the standard errors and both ends of the intervals, which contain the truth with probability
    `confidence`; it is None where the errors are unknown. `withheld` marks cells without a number. `words` are the
    publisher's words, and `translations` the same in further languages, for formats that hold several. `title` is that
    of this one table, `notes` are sentences about the protection of its numbers, and `facts` are for programs. `widths`
    are the half-widths of intervals that were cut at zero. All of it describes the dataset and its edition, never the
    time of writing: the same table always gives the same bytes.

    >>> from tabulary.core.labels import VariableLabels
    >>> from tabulary.core.table import Table
    >>> from tabulary.noise import DiscreteLaplace
    >>> from tabulary.planning import CellErrors
    >>> table = Table(Domain({"sex": ["F", "M"]}), [120, -2])
    >>> released = ReleasedTable(table, CellErrors(DiscreteLaplace(3), np.array([1, 1])))
    >>> words = Labels(unit="persons", variables={"sex": VariableLabels("Sex", levels={"F": "Women"})})
    >>> published = Publication.of(released, words=words)
    >>> published.heading, published.level_label("sex", "F"), published.marks()
    ('Persons by Sex', 'Women', ['e', 'u'])
    """

    domain: Domain
    counts: Numbers
    errors: tuple[Numbers, Numbers, Numbers] | None
    withheld: NDArray[np.bool_] | None = None
    words: Labels = field(default_factory=Labels)
    translations: tuple[Labels, ...] = ()
    title: str = ""
    name: str = "table"
    edition: str = ""
    notes: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    confidence: float = CONFIDENCE
    widths: Numbers | None = None

    def __post_init__(self) -> None:
        given = [each for each in (self.withheld, self.widths) if each is not None]
        arrays = [self.counts, *(self.errors or ()), *given]
        if any(np.shape(array) != self.domain.shape for array in arrays):
            raise InvalidTable("the numbers of a publication do not have the shape of its domain.")
        if not all(np.isfinite(array).all() for array in arrays):
            raise InvalidTable("a table holds a number that is not finite. Nothing was written.")

    @classmethod
    def of(
        cls,
        table: ReleasedTable | TotalledTable | WithheldCounts,
        *,
        confidence: float = CONFIDENCE,
        **words: Any,
    ) -> "Publication":
        """Return a published table with these words: any of the fields from `words` to `facts`."""
        if isinstance(table, ReleasedTable | TotalledTable):
            errors = (table.standard_errors, *table.interval(confidence))
            widths = table.half_widths(confidence)
            return cls(table.domain, table.counts, errors, confidence=confidence, widths=widths, **words)
        hidden = np.ma.getmaskarray(table.counts)
        return cls(table.domain, np.ma.getdata(table.counts), None, hidden, **words)

    @property
    def half_widths(self) -> Numbers | None:
        """How far each count may be from the truth; None where the errors are unknown.

        An interval ends at zero, so it may be shorter than the half-widths say.
        """
        if self.widths is not None or self.errors is None:
            return self.widths
        return np.asarray(self.errors[2] - self.counts)

    def in_languages(self) -> "tuple[Publication, ...]":
        """Return the same table in each of its languages, its own first."""
        return (self, *(replace(self, words=words, translations=()) for words in self.translations))

    def label(self, attribute: str) -> str:
        """Return the readers' name of an attribute."""
        return self.words.name(attribute)

    def level_label(self, attribute: str, level: str) -> str:
        """Return the readers' name of a level."""
        return self.words.level(attribute, level)

    @property
    def unit(self) -> str:
        """What is counted."""
        return self.words.unit or "people"

    @property
    def cells(self) -> int:
        """The number of cells, without totals."""
        return math.prod(len(levels) - self.has_totals for levels in self.domain.levels)

    @property
    def has_totals(self) -> bool:
        """Whether the last level of every attribute is its total."""
        return bool(self.domain.levels) and all(levels[-1] == TOTAL for levels in self.domain.levels)

    @property
    def heading(self) -> str:
        """The title of this table, or what is counted by the names of the attributes."""
        return self.title or self.words.heading([self.label(a) for a in self.domain.attributes])

    @property
    def source(self) -> str:
        """The publisher's source line, or the title of the dataset."""
        return self.words.source or self.words.title

    @property
    def origin(self) -> str:
        """The source with its edition."""
        return ", ".join(filter(None, (self.source, self.edition)))

    @cached_property
    def measures(self) -> Mapping[str, Numbers]:
        """The numbers of each cell by the name of the measure, counts first."""
        return dict(zip(self.measure_labels, (self.counts, *(self.errors or ())), strict=True))

    @cached_property
    def measure_labels(self) -> Mapping[str, str]:
        """The measures of each cell: the name of each with its label."""
        level = f"{100 * self.confidence:g}"
        errors = {
            "standard_error": "Standard error of the count",
            f"lower_{level}": f"Lower end of the {level} % interval",
            f"upper_{level}": f"Upper end of the {level} % interval",
        }
        return {"count": "Count", **(errors if self.errors is not None else {})}

    def decimals(self, measure: str) -> int:
        """Return how many decimals of a measure are worth showing; files hold the exact value."""
        return 0 if self.measures[measure].dtype.kind in "iu" else 1

    def values(self, measure: str) -> list[int | float | None]:
        """Return one measure as plain numbers, the last attribute fastest; None where it is withheld."""
        numbers: list[int | float | None] = np.asarray(self.measures[measure]).reshape(-1).tolist()
        if self.withheld is None:
            return numbers
        hidden = self.withheld.reshape(-1).tolist()
        return [None if h else n for n, h in zip(numbers, hidden, strict=True)]

    def marks(self) -> list[str]:
        """Return the status of each cell, the last attribute fastest."""
        found: list[str] = self._status.reshape(-1).tolist()
        return found

    @cached_property
    def _status(self) -> NDArray[np.str_]:
        found = np.full(self.domain.shape, Status.estimated.value)
        if self.errors is not None:
            # An interval below zero has missed the truth, so the count is even more doubtful.
            found[self.errors[1] <= 0] = Status.unreliable
        if self.withheld is not None:
            found[self.withheld] = Status.withheld
        # Not by the numbers: a non-negative estimate may be zero with an error of zero, and still be wrong.
        found[self.domain.impossible(self.domain.attributes)] = Status.impossible
        return found

    def meaning(self, status: Status) -> str:
        """Return the meaning of a status for a number of this table, in plain words."""
        level = f"{100 * self.confidence:g} %"
        return {
            Status.estimated: (
                f"noise was added; the interval contains the true count with probability {level}"
                if self.errors is not None
                else "the count was perturbed; the size of its error is not published"
            ),
            Status.unreliable: f"noise dominates: the {level} interval reaches zero",
            Status.withheld: "withheld",
            Status.impossible: "an impossible combination: exactly zero",
        }[status]

    def small_print(self) -> tuple[str, ...]:
        """Return the notes on the protection, the dataset and its attributes, and the meaning of each status."""
        occurring = set(np.unique(self._status).tolist())
        return (
            *self.notes,
            *self.words.remarks(self.domain.attributes),
            *(f"{s.value}: {self.meaning(s)}" for s in Status if s in occurring),
        )


def told_apart(names: Iterable[str], *, taken: Iterable[str] = ()) -> list[str]:
    """Return the names, each used once: a name that is already taken gets a number.

    >>> told_apart(["age", "age", "sex", "COUNT"], taken=["COUNT"])
    ['age', 'age_2', 'sex', 'COUNT_2']
    """
    given = list(names)
    # A numbered name must not equal a name that needs no number.
    used, reserved = set(taken), set(given)
    found = []
    for name in given:
        unique, turn = name, 1
        while unique in used or (turn > 1 and unique in reserved):
            turn += 1
            unique = f"{name}_{turn}"
        used.add(unique)
        found.append(unique)
    return found


def plain_number(value: float) -> str:
    """Return a number as decimal digits without an exponent, which reads back to the same float.

    >>> plain_number(1e-7), plain_number(12.0), plain_number(3)
    ('0.0000001', '12.0', '3')
    """
    text = repr(value)
    return text if "e" not in text else np.format_float_positional(value, trim="0")
