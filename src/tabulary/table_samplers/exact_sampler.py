"""The law of a table given what is known of it, computed."""

import math

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidTable
from tabulary.table_samplers.column_program import ColumnProgram
from tabulary.table_samplers.partial_table import PartialTable, SplitQuestion, TableQuestion
from tabulary.table_samplers.public_seed import PublicSeed
from tabulary.table_samplers.table_sampler import CellPosteriors, PossibleAnswers

# About ten seconds of one core for one question.
LIMIT = 2e10


class ExactTableSampler:
    r"""The dynamic program over columns: probabilities of answers and everybody's posterior, computed.

    Nabar & Mishra (2010), section 5.2.1, for any priors. Given the counts of the cells a column matters to the others
    only through what it leaves of the row sums. So the program carries the mass of each vector of partial row sums from
    column to column; a cell's count has the Poisson-binomial weight of its `Crowd`, whatever the priors in it, and a
    person's posterior is the mean of his chance given the count of his cell. Every attribute but two must have one
    group only; the axis with fewer groups becomes the rows.

    *What is left out, and why the bound holds.* The odds are tilted (see `tilting`), which changes nothing given the
    sums but makes them likely. Let Q be the law in which the columns are independent and each has its tilted law given
    its own sum; the law wanted is Q given the event R that the row sums are right. Values of cells, and partial sums
    of rows, that are unlikely under Q are left out; let E be the event that none of them occurs. The program computes
    Q(· | R, E), and Q(R, E) along the way. For any event E the law given R and the law given R and E differ, in total
    variation, by exactly Q(not E | R) = Q(R, not E) / (Q(R, E) + Q(R, not E)), which grows with Q(R, not E); and
    Q(R, not E) ≤ Q(not E) ≤ τ, the sum of all that was left out. So the total variation is at most

        e = τ / (Q(R, E) + τ),

    a number that is computed: the `error` of what comes back, below 1e-9. Given an answer v as well, the two laws
    differ by Q(not E | R, v) ≤ Q(not E | R) / Q(v | R), where Q(v | R) ≥ (1 - e) q(v) if v has probability q(v) in the
    computed law: by e / ((1 - e) q(v)) at most. That moves |1 - posterior/prior| by no more than itself divided by the
    smaller of prior and 1 - prior. `deviation` includes it: it is an upper bound, and unsafe(ε) + error bounds the
    probability of an unsafe answer from above. Up to 32 values are never cut, so that small tables have no error.
    Rounding is not in the bound: sums of non-negative numbers lose about 1e-12 of themselves, and the weights of
    10,000 people 1e-11.

    Public throughout: no private value is read, random numbers are used in `draw` only. Cost: `cost`.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.table_samplers.partial_table import CellQuestion
    >>> from tabulary.table_samplers.people import People
    >>> people = People.of(Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]}), [[20, 30], [10, 40]], 0.3)
    >>> known = PartialTable.table(people, (np.array([14, 17]), np.array([9, 22])))
    >>> answers = ExactTableSampler().answers(known, CellQuestion((0, 0)), draws=0, seed=PublicSeed(""))
    >>> int(answers.values[answers.probability.argmax()]), round(answers.unsafe(0.5), 4), answers.error
    (6, 0.1621, 0.0)
    """

    name = "exact"

    def __init__(self, *, limit: float = LIMIT) -> None:
        self.limit = limit

    def cost(self, known: PartialTable, question: TableQuestion | None = None) -> float:
        """Return roughly how many elementary operations a question takes, or `posterior` and `draw` if it is None.

        `inf` if three attributes have several groups, or if there is not enough memory.
        """
        return min((program.cost for program in _programs(known, question)), default=math.inf)

    def feasible(self, known: PartialTable, question: TableQuestion | None = None) -> bool:
        """Return whether that is within `limit`: by default about ten seconds of one core for one question."""
        return self.cost(known, question) <= self.limit

    def answers(
        self, known: PartialTable, question: TableQuestion, *, draws: int, seed: PublicSeed
    ) -> PossibleAnswers:
        """Return the answers that the question may get; nothing is simulated, `draws` and `seed` are not used."""
        return self._affordable(known, question).answers()

    def posterior(self, known: PartialTable, *, seed: PublicSeed) -> CellPosteriors:
        """Return the law of each cell given what is known; `seed` is not used."""
        return self._affordable(known, None).posterior()

    def draw(self, known: PartialTable, number: int, *, seed: PublicSeed) -> NDArray[np.int64]:
        """Return tables drawn given what is known, by backtracking through the columns.

        Their law is within 1e-9 of the true one, in total variation.
        """
        return self._affordable(known, None).draw(number, seed.stream("exact", "draw").random)

    def _affordable(self, known: PartialTable, question: TableQuestion | None) -> ColumnProgram:
        programs = _programs(known, question)
        if not programs:
            raise InvalidTable(
                "the exact program is for tables in which at most two attributes have more than one group. Nothing was "
                "computed. Use the chain."
            )
        program = min(programs, key=lambda each: each.cost)
        if program.cost > self.limit:
            raise InvalidTable(
                f"the exact program would take about {program.cost:.0e} operations for this table, above its limit of "
                f"{self.limit:.0e}. Nothing was computed. Use the chain, or raise the limit."
            )
        return program


def _programs(known: PartialTable, question: TableQuestion | None) -> list[ColumnProgram]:
    """Return the ways to compute it: either axis may be the rows. None if more than two axes have groups."""
    refined = (
        known.answered(question, known.split_bounds(question)[0])
        if isinstance(question, SplitQuestion)
        else known
    )
    axes = [axis for axis, groups in enumerate(refined.shape) if groups > 1]
    if len(axes) > 2:
        return []
    if len(axes) < 2:
        return [ColumnProgram(known, refined, question, rows=None, columns=axes[0] if axes else 0)]
    few, many = sorted(axes, key=lambda axis: refined.shape[axis])
    sides = [(few, many)]
    # With many more rows the other side cannot be the better one, and to look at it takes long.
    if refined.shape[many] <= 2 * refined.shape[few]:
        sides.append((many, few))
    return [ColumnProgram(known, refined, question, rows=rows, columns=columns) for rows, columns in sides]
