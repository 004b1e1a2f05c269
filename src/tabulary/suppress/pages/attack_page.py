"""The page of an attack: every table with what follows for each suppressed cell, the verdict on top."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tabulary.attacks.suppression.findings import AttackFindings, CertainPeople, certain_words
from tabulary.attacks.suppression.intervals import SuppressedInterval
from tabulary.attacks.suppression.posteriors import Beliefs
from tabulary.attacks.suppression.primary_sets import PrimarySet, PrimarySets
from tabulary.core.suppressed_table import MARK, SuppressedTable
from tabulary.release.manifest import installed_version
from tabulary.release.pages import page_template
from tabulary.suppress.pages.table_layout import LayoutEntry
from tabulary.suppress.pages.table_views import (
    CellView,
    Range,
    SuppressedTableView,
    bar,
    joined,
    largest_end,
    published_cell,
    show_percent,
    show_range,
    table_view,
)

MOST_SETS = 20
"""The most sets of sensitive cells that a page shows of one table."""

MOST_PROOFS = 40
"""The most sums behind disclosed numbers that a page shows of one table."""

Key = tuple[tuple[str, ...], tuple[int, ...]]


@dataclass(frozen=True)
class SetView:
    """One set of cells that can have been the sensitive ones, and the table if they were."""

    title: str
    probability: str
    view: SuppressedTableView


@dataclass(frozen=True)
class SetsView:
    """All sets of sensitive cells of one table."""

    assumption: str
    number: int
    shown: tuple[SetView, ...]


@dataclass(frozen=True)
class AttackSection:
    """One of the tables that were attacked."""

    view: SuppressedTableView
    suppressed: bool
    proofs: tuple[tuple[str, str, str], ...]
    sets: SetsView | None
    beliefs: Beliefs | None


def attack_html(findings: AttackFindings, names: Sequence[str]) -> str:
    """Return an attack as a self-contained page: no script, no request, light and dark, ready to print.

    `names` are those of the tables, in their order.
    """
    sets = {found.table: found for found in findings.primary_sets}
    beliefs = {found.table: found for found in findings.beliefs}
    sections = []
    for number, (table, name) in enumerate(zip(findings.tables, names, strict=True)):
        cells = _Cells(findings, number, sets.get(number), beliefs.get(number), names)
        sections.append(
            AttackSection(
                table_view(table, f"table-{number + 1}", name, cells.show),
                cells.any_suppressed,
                cells.proofs,
                None if number not in sets else _sets(table, sets[number], f"table-{number + 1}"),
                beliefs.get(number),
            )
        )
    page: str = page_template("attack.html.j2", "tabulary.suppress.pages").render(
        title="What suppressed cells disclose",
        verdict=findings.verdict,
        breached=_breached(findings),
        sections=sections,
        suppressed=len(findings.intervals),
        disclosed=len(findings.disclosed),
        certain=sum(found.people for found in findings.certain if found.reason != "published"),
        software=installed_version(),
        mark=MARK,
    )
    return page


def _breached(findings: AttackFindings) -> bool:
    """Return whether a number follows exactly, or somebody's value is certain, for all that is known or if a set is."""
    return bool(findings.disclosed or findings.certain) or any(
        found.certain(people)
        for sets in findings.primary_sets
        if (people := findings.tables[sets.table].people) is not None
        for found in sets.sets
    )


class _Cells:
    """What is known of each cell of one table after the attack."""

    def __init__(
        self,
        findings: AttackFindings,
        number: int,
        sets: PrimarySets | None,
        beliefs: Beliefs | None,
        names: Sequence[str],
    ) -> None:
        self._intervals: dict[Key, SuppressedInterval] = {
            (interval.place.attributes, interval.place.index): interval
            for interval in findings.intervals
            if interval.place.table == number
        }
        self._certain: dict[Key, CertainPeople] = {
            (found.place.attributes, found.place.index): found
            for found in findings.certain
            if found.place.table == number
        }
        self._sets = sets
        self._beliefs = beliefs
        self._names = names
        self._number = number
        self._top = largest_end(
            ends for interval in self._intervals.values() for ends in (interval.alone, interval.tightest)
        )

    @property
    def any_suppressed(self) -> bool:
        """Whether the table has a suppressed cell or sum."""
        return bool(self._intervals)

    @property
    def proofs(self) -> tuple[tuple[str, str, str], ...]:
        """The numbers that are a sum of published ones, whatever the table: name, value and sum."""
        return tuple(
            (str(interval.place), show_range(interval.tightest), str(proof))
            for interval in self._intervals.values()
            for proof in interval.proofs
            if interval.disclosed and proof.identity
        )[:MOST_PROOFS]

    def show(self, entry: LayoutEntry) -> CellView:
        """Return one cell: as published, or with its interval."""
        key = entry.margin, entry.index
        people = f"of {entry.people:,}" if entry.people is not None else ""
        certain = self._certain.get(key)
        persons = () if certain is None else (certain.words,)
        if key not in self._intervals:
            shown = published_cell(entry, people, *persons)
            return CellView(
                shown.text, "certain" if persons else shown.state, shown.notes, is_sum=shown.is_sum
            )
        interval = self._intervals[key]
        ends = interval.tightest
        possible = () if entry.is_sum else self._possible(entry.index)
        disclosed = ends[0] == ends[1]
        notes = [people, *persons]
        if disclosed:
            notes.append(self._why(interval))
        if possible and possible != (ends,):
            notes.append(f"by the rule {' or '.join(map(show_range, possible))}")
        if not entry.is_sum and self._beliefs is not None:
            before, after = self._beliefs.prior[entry.index], self._beliefs.posterior[entry.index]
            notes.append(f"chance {before:.2f} → {after:.2f}")
        top = self._top if interval.people is None else float(interval.people)
        return CellView(
            show_range(ends),
            "disclosed" if disclosed else "certain" if persons else "suppressed",
            tuple(note for note in notes if note),
            bar(ends, possible, top or 1.0),
            is_sum=entry.is_sum,
        )

    def _possible(self, index: tuple[int, ...]) -> tuple[Range, ...]:
        if self._sets is None:
            return ()
        return joined((float(found.lower[index]), float(found.upper[index])) for found in self._sets.sets)

    def _why(self, interval: SuppressedInterval) -> str:
        needed = sorted({table for proof in interval.proofs for table in proof.tables})
        others = [self._names[table] for table in needed if table != self._number]
        return f"with {' and '.join(others)}" if others else ""


def _sets(table: SuppressedTable, sets: PrimarySets, anchor: str) -> SetsView:
    shown = []
    for number, found in enumerate(sets.sets[:MOST_SETS], 1):
        title = f"If {found.named} {'were' if len(found.cells) > 1 else 'was'} sensitive"
        show = _SetCells(table, found).show
        probability = "" if found.probability is None else show_percent(found.probability)
        shown.append(SetView(title, probability, table_view(table, f"{anchor}-set-{number}", title, show)))
    return SetsView(sets.assumption, len(sets.sets), tuple(shown))


class _SetCells:
    """The cells of a table if certain ones were the sensitive cells."""

    def __init__(self, table: SuppressedTable, found: PrimarySet) -> None:
        self._found = found
        self._cells = set(found.cells)
        self._certain = {} if table.people is None else found.certain(table.people)
        self._top = largest_end(zip(found.lower.flat, found.upper.flat, strict=True))

    def show(self, entry: LayoutEntry) -> CellView:
        """Return one cell: as published, or the range that it then has."""
        if entry.is_sum or not entry.suppressed:
            return published_cell(entry)
        ends = float(self._found.lower[entry.index]), float(self._found.upper[entry.index])
        number = int(np.ravel_multi_index(entry.index, self._found.lower.shape)) + 1
        notes = [f"cell {number}", *(["sensitive"] if entry.index in self._cells else [])]
        if entry.index in self._certain:
            assert entry.people is not None, "nobody is certain where the people are not known"
            notes.append(certain_words(entry.people, self._certain[entry.index]))
        state = (
            "certain" if entry.index in self._certain else "disclosed" if ends[0] == ends[1] else "suppressed"
        )
        top = self._top if entry.people is None else float(entry.people)
        return CellView(show_range(ends), state, tuple(notes), bar(ends, (ends,), top or 1.0))
