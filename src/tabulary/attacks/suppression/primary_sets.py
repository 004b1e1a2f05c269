"""The possible sets of sensitive cells: the attack of a reader who knows how cells are suppressed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.attacks.suppression.empty_cells import Edge, Edges, exposed, protected_by
from tabulary.attacks.suppression.published_tables import AttackedTables
from tabulary.core.progress import Progress
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import InvalidArgument, InvalidTable, TooManyCells

Mask = NDArray[np.bool_]

MAX_SUPPRESSED = 60
"""The most suppressed cells of a table whose sensitive ones are guessed."""

MAX_STEPS = 5_000
"""How many partial guesses are looked at before the enumeration is given up."""

# Enough to see most of the patterns that are too large; a guess that is not ruled out is followed further.
_QUICK = 20


class CountThreshold(Protocol):
    """The rule that an attacker knows: counts up to `limit` are sensitive, and empty cells too if `zeros`."""

    @property
    def limit(self) -> int:
        """The largest sensitive count."""
        ...

    @property
    def zeros(self) -> bool:
        """Whether an empty cell is sensitive."""
        ...

    def sensitive(self, values: ArrayLike) -> Mask:
        """Return which cells are sensitive."""
        ...


@dataclass(frozen=True, eq=False)
class Case:
    """Between which values each cell of the table lies, perhaps infinite; a published cell has both at its value."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrimarySet:
    """Cells that can have been the sensitive ones, and what follows if they were.

    `cells` are their indices. Each of the `cases` is a box that the table may lie in: one, or several where it matters
    which cells are empty. `probability` is how likely this set is among all, where the prior of the people was given.
    """

    cells: tuple[tuple[int, ...], ...]
    cases: tuple[Case, ...]
    probability: float | None = None

    @property
    def lower(self) -> NDArray[np.float64]:
        """The least value of each cell, in the table's shape."""
        return np.asarray(np.min([case.lower for case in self.cases], axis=0))

    @property
    def upper(self) -> NDArray[np.float64]:
        """The largest value of each cell, in the table's shape."""
        return np.asarray(np.max([case.upper for case in self.cases], axis=0))

    def certain(self, people: NDArray[np.int64]) -> dict[tuple[int, ...], bool]:
        """Return the cells in which everybody's value would be certain, and whether they have the attribute."""
        lower, upper = self.lower, self.upper
        sure = (people > 0) & ((lower >= people) | (upper <= 0))
        return {tuple(cell): bool(lower[tuple(cell)] > 0) for cell in np.argwhere(sure).tolist()}

    @property
    def named(self) -> str:
        """The cells by their numbers, in words."""
        if not self.cells:
            return "no cell"
        *most, last = map(str, self.numbers)
        return f"cells {', '.join(most)} and {last}" if most else f"cell {last}"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The cells counted through row by row, from 1, as Nabar & Mishra do."""
        shape = self.cases[0].lower.shape
        return tuple(int(np.ravel_multi_index(cell, shape)) + 1 for cell in self.cells)


@dataclass(frozen=True, eq=False)
class PrimarySets:
    """All the sets of cells of one table that can have been the sensitive ones under a known rule.

    `minimal` says whether the attacker also knew that as few cells as possible were suppressed. There may be no set:
    then the rule, or that as few cells as possible were suppressed, is not how the table was made.
    """

    table: int
    rule: CountThreshold
    minimal: bool
    shape: tuple[int, ...]
    sets: tuple[PrimarySet, ...]

    @property
    def assumption(self) -> str:
        """What the attacker supposes, in words."""
        small = f"{'' if self.rule.zeros else 'from 1 '}up to {self.rule.limit:,}"
        few = ", and as few cells as possible were suppressed" if self.minimal else ""
        return f"counts {small} are sensitive{few}"

    @property
    def always(self) -> Mask:
        """The cells that are sensitive in every set: certainly so."""
        return np.asarray(self._marked.all(axis=0) & bool(self.sets))

    @property
    def sometimes(self) -> Mask:
        """The cells that are sensitive in some set."""
        return np.asarray(self._marked.any(axis=0))

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The least and the largest value of each cell under any of the sets; None where there is no set."""
        if not self.sets:
            return None
        return (
            np.min([found.lower for found in self.sets], axis=0),
            np.max([found.upper for found in self.sets], axis=0),
        )

    @property
    def _marked(self) -> Mask:
        marked = np.zeros((len(self.sets), *self.shape), dtype=np.bool_)
        for number, found in enumerate(self.sets):
            for cell in found.cells:
                marked[(number, *cell)] = True
        return marked


def primary_sets(
    published: AttackedTables,
    table: int = 0,
    *,
    rule: CountThreshold,
    minimal: bool = True,
    steps: int = MAX_STEPS,
    progress: Progress | None = None,
) -> PrimarySets:
    r"""Return every set of cells of a table that can have been the sensitive ones.

    Nabar & Mishra (2010), section 3: the attacker knows that cells of at most `rule.limit` were suppressed first and,
    if `minimal`, that then as few others as possible were, so that no sensitive cell can be computed from the sums of
    rows and columns. A set P is possible if

    - there is a whole table with all that is published in which of all the cells exactly those of P are sensitive,
    - no cell of P can be computed from the sums and the cells that are published, and
    - if `minimal`, no pattern that protects P has fewer cells than the published one.

    Computed means exactly, by somebody who knows that no count is below zero: an empty cell cannot go down and protects
    less (`empty_cells`; Gusfield 1988). A custodian who assumed other bounds, with wider intervals or with sizes
    of cells instead of their number did not make the table so; there may then be no set at all, or the wrong ones.

    The search decides cell by cell and gives up a partial guess when no table is left (bounds passed along the sums,
    then a program) or when even with all undecided cells sensitive and empty fewer cells would have been enough.
    Exponential at worst: beyond `MAX_SUPPRESSED` cells, or `steps` partial guesses, it raises `TooManyCells`. Of
    several tables all numbers count, but the rule is used on the one table only.

    Post-processing: reads published numbers only.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.suppress import Threshold
    >>> domain = Domain({"eye": ["blue", "not blue"], "hair": ["blonde", "brown", "black"]})
    >>> sums = {("eye",): np.array([110, 105]), ("hair",): np.array([55, 105, 55])}
    >>> hidden = SuppressedTable(domain, np.full((2, 3), np.nan), sums)
    >>> found = primary_sets(AttackedTables.of([hidden]), rule=Threshold(5))
    >>> [possible.numbers for possible in found.sets]
    [(1, 3, 5), (2, 4, 6)]
    """
    asked = published.tables[table]
    _check(asked, rule, minimal)
    search = _Search(published, table, rule, minimal, steps, progress)
    cases: dict[tuple[Edge, ...], list[Case]] = {}
    for guesses in list(search.found()):
        primary = tuple(sorted(cell for cell, guess in guesses.items() if guess.sensitive))
        cases.setdefault(primary, []).append(search.case(guesses))
    sets = tuple(PrimarySet(cells, tuple(cases[cells])) for cells in sorted(cases))
    return PrimarySets(table, rule, minimal, asked.domain.shape, sets)


@dataclass(frozen=True)
class _Guess:
    """Whether a cell is sensitive, and between which values it lies if so."""

    sensitive: bool
    low: float
    high: float


Guesses = Mapping[Edge, _Guess]


class _Search:
    """A depth-first search over the suppressed cells of one table."""

    def __init__(
        self,
        published: AttackedTables,
        table: int,
        rule: CountThreshold,
        minimal: bool,
        steps: int,
        progress: Progress | None,
    ) -> None:
        # Loads a solver, which reading a table or a finding does not need.
        from tabulary.attacks.suppression.interval_program import IntervalProgram

        self.asked = published.tables[table]
        self.program = IntervalProgram(published)
        self.rule, self.minimal, self.steps, self.progress = rule, minimal, steps, progress
        # The unknown numbers that are cells of this table; a structural zero is not among them.
        self.numbers = {
            place.index: number
            for number, place in enumerate(published.unknown.places)
            if place.table == table and place.attributes == self.asked.domain.attributes
        }
        if len(self.numbers) > MAX_SUPPRESSED:
            raise TooManyCells(
                f"table {table + 1} has {len(self.numbers):,} suppressed cells. Sets of sensitive cells are listed "
                f"for at most {MAX_SUPPRESSED}. Leave the rule out to see what follows without it."
            )
        self.graph = _with_both_sums(self.asked)
        self.printed_empty = frozenset(tuple(map(int, cell)) for cell in np.argwhere(self.asked.counts == 0))
        self.taken = 0

    def found(self) -> Iterator[Guesses]:
        """Yield guesses at all the cells that explain the table."""
        yield from self._decide(list(self.numbers), {})

    def _decide(self, undecided: list[Edge], guesses: Guesses) -> Iterator[Guesses]:
        self.taken += 1
        if self.taken > self.steps:
            raise TooManyCells(
                f"the search for the sets of sensitive cells took more than {self.steps:,} steps and was stopped. No "
                "set is reported. Leave the rule out to see what follows without it, or allow more steps."
            )
        if self.progress is not None:
            self.progress("guessing the sensitive cells", self.taken, 0)
        if not self._possible(undecided, guesses) or not self.program.within(self._bounds(guesses)):
            return
        if undecided:
            cell, rest = undecided[0], undecided[1:]
            for guess in _ranges(self.rule):
                yield from self._decide(rest, {**guesses, cell: guess})
        elif self._certain(guesses):
            yield guesses
        else:
            # Whether the pattern is explained depends on which sensitive cells are empty.
            unsure = [cell for cell, guess in guesses.items() if guess.low == 0 < guess.high]
            for cell in unsure[:1]:
                for low, high in ((0.0, 0.0), (1.0, guesses[cell].high)):
                    yield from self._decide([], {**guesses, cell: replace(guesses[cell], low=low, high=high)})

    def _possible(self, undecided: list[Edge], guesses: Guesses) -> bool:
        """Return False where nothing that is undecided can explain the pattern any more."""
        primary = frozenset(cell for cell, guess in guesses.items() if guess.sensitive)
        if not self.graph:
            return True
        if exposed(frozenset(self.numbers), self._empty(guesses, surely=True)) & primary:
            return False
        # The most cells are needed if all that is undecided is sensitive and empty.
        empty = self._empty(guesses, surely=False).union(undecided)
        return not self.minimal or not self._fewer(primary.union(undecided), empty, steps=_QUICK)

    def _certain(self, guesses: Guesses) -> bool:
        """Return whether the pattern is explained whichever of the cells that may be empty are."""
        primary = frozenset(cell for cell, guess in guesses.items() if guess.sensitive)
        if not self.graph:
            return True
        if exposed(frozenset(self.numbers), self._empty(guesses, surely=False)) & primary:
            return False
        if not self.minimal:
            return True
        fewer = self._fewer(primary, self._empty(guesses, surely=True))
        if fewer is None:
            raise TooManyCells(
                "the search for a smaller pattern of suppressed cells was stopped before its end. No set is "
                "reported. Attack the table with minimal=False, or without a rule."
            )
        return not fewer

    def _fewer(self, primary: Edges, empty: Edges, **steps: int) -> bool | None:
        """Return whether fewer cells than were suppressed would have been enough; None if it was not found out."""
        rows, columns = self.asked.domain.shape
        return protected_by(primary, empty, (rows, columns), len(self.numbers) - 1, **steps)

    def _empty(self, guesses: Guesses, *, surely: bool) -> Edges:
        return self.printed_empty.union(
            cell for cell, guess in guesses.items() if (guess.high if surely else guess.low) == 0
        )

    def _bounds(self, guesses: Guesses) -> dict[int, tuple[float, float]]:
        return {self.numbers[cell]: (guess.low, guess.high) for cell, guess in guesses.items()}

    def case(self, guesses: Guesses) -> Case:
        """Return between which values each cell lies under some guesses."""
        self.program.within(self._bounds(guesses))
        lower = np.nan_to_num(self.asked.counts)
        upper = lower.copy()
        for index, number in self.numbers.items():
            lower[index], upper[index] = self.program.whole_ends(number)
        return Case(lower, upper)


def _ranges(rule: CountThreshold) -> Iterator[_Guess]:
    """Yield the ranges that the rule tells apart; the safe ones first."""
    yield _Guess(False, rule.limit + 1, np.inf)
    if not rule.zeros:
        yield _Guess(False, 0, 0)
    if rule.zeros or rule.limit:
        yield _Guess(True, 0 if rule.zeros else 1, rule.limit)


def _with_both_sums(table: SuppressedTable) -> bool:
    """Return whether a table is two-way and the sums of all its rows and columns are published."""
    margins = [table.sums.get((attribute,)) for attribute in table.domain.attributes]
    return len(margins) == 2 and all(sums is not None and not np.isnan(sums).any() for sums in margins)


def _check(table: SuppressedTable, rule: CountThreshold, minimal: bool) -> None:
    if not table.whole:
        raise InvalidArgument(
            "the rule is a threshold of counts, but the table holds amounts. Nothing was attacked. Attack the table "
            "without a rule."
        )
    if minimal and not _with_both_sums(table):
        raise InvalidArgument(
            "minimal=True needs a two-way table with all the sums of its rows and columns. Nothing was attacked. "
            "Attack this table with minimal=False, or without a rule."
        )
    if minimal and table.domain.structural_zeros:
        raise InvalidArgument(
            "smallest patterns cannot be computed for a table with structural zeros. Nothing was attacked. Attack "
            "it with minimal=False, or without a rule."
        )
    shown = ~np.isnan(table.counts) & ~table.domain.impossible(table.domain.attributes)
    if (rule.sensitive(table.counts) & shown).any():
        raise InvalidTable(
            f"the table publishes a cell that is sensitive by a threshold of {rule.limit}, so it was made by another "
            "rule. Nothing was attacked. Attack it with that rule, or without one."
        )
