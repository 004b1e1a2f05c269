"""The interval of every suppressed number, and the proof of its ends."""

from dataclasses import dataclass, replace

from tabulary.attacks.suppression.linear_system import Proof
from tabulary.attacks.suppression.published_tables import AttackedTables, TablePlace
from tabulary.core.progress import Progress

# Ends of amounts this near to each other, relative to the largest published number, are one value.
_EQUAL = 1e-7


@dataclass(frozen=True)
class SuppressedInterval:
    """The interval of one suppressed cell or sum that follows from the published numbers.

    `lower` and `upper` are its smallest and largest value over all non-negative tables that agree with everything
    published. `whole` is the same over tables of whole numbers; None for amounts. `alone` is the interval from its own
    table without the others. `people` is the number of people in the cell, if it is public.

    `proofs` are given for a number that follows exactly: one proof if it is an identity, otherwise one for each end.
    There is none if the number follows only because counts are whole.
    """

    place: TablePlace
    lower: float
    upper: float
    whole: tuple[int, float] | None
    alone: tuple[float, float]
    people: int | None = None
    proofs: tuple[Proof, ...] = ()

    @property
    def tightest(self) -> tuple[float, float]:
        """Both ends: the whole ones for counts."""
        return self.whole or (self.lower, self.upper)

    @property
    def disclosed(self) -> bool:
        """Whether the published numbers leave one value only."""
        return self.tightest[0] == self.tightest[1]

    @property
    def by_combining(self) -> bool:
        """Whether it follows exactly from several tables together, and not from its own."""
        return self.disclosed and self.alone[0] < self.alone[1]


def intervals(
    published: AttackedTables, *, progress: Progress | None = None
) -> tuple[SuppressedInterval, ...]:
    r"""Return the interval of every suppressed cell and sum, table by table.

    The ends are optima of linear programs over the tables with all that is published, solved by the simplex method
    from one to the next. Whole ends are those of integer programs, except where the system is totally unimodular and
    every vertex is whole: see `System.unimodular`. For one two-way table it always is. A program that does not
    end with an optimum raises `NotCertified`; numbers that contradict each other raise `InvalidTable`.

    Post-processing: reads published numbers only. Cost: at most two programs a suppressed number; most ends are met
    by a table that was seen before.

    >>> import numpy as np
    >>> from tabulary.core.domain import Domain
    >>> from tabulary.core.suppressed_table import SuppressedTable
    >>> domain = Domain({"eye": ["blue", "other"], "hair": ["fair", "brown", "black"]})
    >>> sums = {("eye",): np.array([110, 105]), ("hair",): np.array([55, 105, 55])}
    >>> found = intervals(AttackedTables.of([SuppressedTable(domain, np.full((2, 3), np.nan), sums)]))
    >>> [interval.whole for interval in found]
    [(0, 55), (0, 105), (0, 55), (0, 55), (0, 105), (0, 55)]
    """
    together = _intervals(published, progress)
    if len(published.tables) == 1:
        return together
    alone = [
        interval.tightest
        for table in published.tables
        for interval in _intervals(AttackedTables.of([table]), progress)
    ]
    return tuple(replace(found, alone=ends) for found, ends in zip(together, alone, strict=True))


def _intervals(published: AttackedTables, progress: Progress | None) -> tuple[SuppressedInterval, ...]:
    # Loads a solver, which reading a table or a finding does not need.
    from tabulary.attacks.suppression.interval_program import IntervalProgram

    program = IntervalProgram(published)
    found = []
    for number, place in enumerate(published.unknown.places):
        if progress is not None:
            progress("suppressed numbers", number, len(published.unknown.places))
        table = published.tables[place.table]
        of_cell = place.attributes == table.domain.attributes
        people = int(table.people[place.index]) if table.people is not None and of_cell else None
        lower, upper = program.ends(number)
        whole = program.whole_ends(number) if table.whole else None
        if whole is None and upper - lower <= _EQUAL * program.scale:
            lower = upper = (lower + upper) / 2
        proofs = program.proofs(number) if lower == upper else ()
        ends = whole or (lower, upper)
        found.append(SuppressedInterval(place, lower, upper, whole, ends, people, proofs))
    return tuple(found)
