"""The results of an attack on published tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tabulary.attacks.suppression.intervals import SuppressedInterval
from tabulary.attacks.suppression.posteriors import Beliefs
from tabulary.attacks.suppression.primary_sets import PrimarySets
from tabulary.attacks.suppression.published_tables import TablePlace
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import UnknownMargin, listed

Reason = Literal["published", "follows", "rule"]

# A sentence names at most this many cells; the findings hold all of them.
_NAMED = 3


@dataclass(frozen=True)
class CertainPeople:
    """People whose private value is certain: all `people` of a cell have the attribute, or none of them has.

    `reason` is "published" where the cell itself says so, "follows" where it follows from the published numbers,
    "rule" where the known rule of suppression is needed too.
    """

    place: TablePlace
    people: int
    have: bool
    reason: Reason

    def __str__(self) -> str:
        return f"all {self.people:,} of {self.place} have it" if self.have else f"none of {self.place} has it"

    @property
    def words(self) -> str:
        """What is certain, without the name of the cell."""
        return certain_words(self.people, self.have)


def certain_words(people: int, have: bool) -> str:
    """Return that all people of a cell have the attribute, or that none of them has.

    >>> certain_words(7, True), certain_words(1, False)
    ('all 7 have it', 'the one person does not have it')
    """
    if people == 1:
        return "the one person has it" if have else "the one person does not have it"
    return f"all {people:,} have it" if have else f"none of {people:,} has it"


@dataclass(frozen=True, eq=False)
class AttackFindings:
    """Everything that an attack found.

    `intervals` hold every suppressed cell and sum, table by table: first the cells in their order, then the sums.
    `primary_sets` hold one entry for each table that was attacked with a rule, `beliefs` one for each table whose
    people and prior are known. All of it follows from what is public.
    """

    tables: tuple[SuppressedTable, ...]
    intervals: tuple[SuppressedInterval, ...]
    primary_sets: tuple[PrimarySets, ...] = ()
    beliefs: tuple[Beliefs, ...] = ()

    @property
    def disclosed(self) -> tuple[SuppressedInterval, ...]:
        """The suppressed numbers that follow exactly from what is published."""
        return tuple(interval for interval in self.intervals if interval.disclosed)

    @property
    def certain(self) -> tuple[CertainPeople, ...]:
        """The people whose value is certain, cell by cell."""
        return tuple(self._certain())

    def interval(self, *levels: str, table: int = 0) -> SuppressedInterval:
        """Return the interval of one suppressed cell.

        Raises `UnknownMargin` where that cell is published, or is not in the table.
        """
        for interval in self.intervals:
            place = interval.place
            if place.table == table and place.levels == levels and self._is_cell(place):
                return interval
        raise UnknownMargin(f"table {table + 1} has no suppressed cell {listed(levels)}.")

    def bounds(self, table: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and the upper end of every cell of a table; a published cell has both at its value."""
        lower = np.nan_to_num(self.tables[table].counts)
        upper = lower.copy()
        for interval in self.intervals:
            if interval.place.table == table and self._is_cell(interval.place):
                lower[interval.place.index], upper[interval.place.index] = interval.tightest
        return lower, upper

    @property
    def verdict(self) -> tuple[str, ...]:
        """Sentences for a reader, the worst first. If nothing follows, they say that this is no proof of privacy."""
        return tuple(self._verdict())

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {len(self.tables)} tables: {len(self.disclosed)} of {len(self.intervals)} "
            "suppressed numbers follow exactly>"
        )

    def _is_cell(self, place: TablePlace) -> bool:
        return place.attributes == self.tables[place.table].domain.attributes

    def _certain(self) -> Iterator[CertainPeople]:
        for number, table in enumerate(self.tables):
            if table.people is None:
                continue
            sure: list[tuple[Reason, NDArray[Any], NDArray[Any]]]
            sure = [("published", table.counts, table.counts), ("follows", *self.bounds(number))]
            for sets in self.primary_sets:
                if sets.table == number and sets.bounds is not None:
                    sure.append(("rule", *sets.bounds))
            for cell in zip(*np.nonzero(table.people), strict=True):
                index = tuple(map(int, cell))
                for reason, lower, upper in sure:
                    if lower[index] >= table.people[index] or upper[index] <= 0:
                        people, have = int(table.people[index]), bool(lower[index] > 0)
                        yield CertainPeople(TablePlace.of(table, number, index), people, have, reason)
                        break

    def _verdict(self) -> Iterator[str]:
        if not self.intervals:
            yield "Nothing is suppressed."
        if self.disclosed:
            yield from self._verdict_on_numbers()
        yield from self._verdict_on_people()
        for sets in self.primary_sets:
            yield from self._verdict_on_rule(sets)
        for found in self.beliefs:
            cell = np.unravel_index(int(np.argmax(found.deviation)), found.deviation.shape)
            index = tuple(map(int, cell))
            place = TablePlace.of(self.tables[found.table], found.table, index)
            yield (
                f"The probability that a person of {self._named(place)} has it moves from "
                f"{found.prior[index]:.3g} to {found.posterior[index]:.3g}. This is the largest change."
            )
        if self.intervals and not self.disclosed:
            these = "this table" if len(self.tables) == 1 else "these tables"
            yield f"No suppressed number follows exactly from {these}. That is no proof of privacy."

    def _verdict_on_numbers(self) -> Iterator[str]:
        yield (
            f"{len(self.disclosed)} of {len(self.intervals)} suppressed numbers "
            f"{'follows' if len(self.disclosed) == 1 else 'follow'} exactly: "
            f"{_some([self._shown(interval) for interval in self.disclosed])}."
        )
        together = [interval for interval in self.disclosed if interval.by_combining]
        if together:
            yield (
                f"{len(together)} of them {'follows' if len(together) == 1 else 'follow'} from several tables together "
                f"and not from {'its' if len(together) == 1 else 'their'} own{self._because(together[0])}."
            )

    def _verdict_on_people(self) -> Iterator[str]:
        for reason, because in (
            ("follows", "follows from the published numbers"),
            ("rule", "follows once the rule of suppression is known"),
            ("published", "is published"),
        ):
            found = [people for people in self.certain if people.reason == reason]
            if found:
                number = sum(people.people for people in found)
                yield f"The private value of {number:,} people {because}: {_some(list(map(str, found)))}."

    def _verdict_on_rule(self, sets: PrimarySets) -> Iterator[str]:
        if not self.tables[sets.table].suppressed.any():
            return
        where = f" of table {sets.table + 1}" if len(self.tables) > 1 else ""
        rule = f"the rule ({sets.assumption})"
        if not sets.sets:
            yield f"No set of sensitive cells{where} agrees with {rule}: the table was made in another way."
            return
        named = [f"{{{', '.join(map(str, found.numbers))}}}" for found in sets.sets]
        ways = "one possible set" if len(named) == 1 else f"{len(named):,} possible sets"
        yield f"{rule.capitalize()} leaves {ways} of sensitive cells{where}: {_some(named, 'or')}."
        people = self.tables[sets.table].people
        if people is None:
            return
        for found, name in zip(sets.sets[:_NAMED], named, strict=False):
            sure = [
                str(
                    CertainPeople(
                        TablePlace.of(self.tables[sets.table], sets.table, index),
                        int(people[index]),
                        have,
                        "rule",
                    )
                )
                for index, have in found.certain(people).items()
            ]
            if sure and len(named) > 1:
                yield f"If the sensitive cells are {name}, {_some(sure)}."

    def _because(self, interval: SuppressedInterval) -> str:
        if not interval.proofs or not interval.proofs[0].identity:
            return ""
        return f": {self._named(interval.place)} is {interval.proofs[0]}"

    def _shown(self, interval: SuppressedInterval) -> str:
        return f"{self._named(interval.place)} is {interval.tightest[0]:,.10g}"

    def _named(self, place: TablePlace) -> str:
        return f"{place} of table {place.table + 1}" if len(self.tables) > 1 else str(place)


def _some(texts: list[str], last: str = "and") -> str:
    if len(texts) > _NAMED:
        return f"{'; '.join(texts[:_NAMED])} and {len(texts) - _NAMED:,} more"
    return f" {last} ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else texts[0]
