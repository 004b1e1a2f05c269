"""Tables drawn by a Markov chain: for tables too large to compute, and for three attributes and more."""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

import numpy as np

from tabulary.core.arrays import Floats, Integers
from tabulary.core.progress import Progress
from tabulary.errors import InvalidArgument, InvalidTable, NotCertified
from tabulary.table_samplers.chain_runs import CHAINS, ChainRun, chain_runs
from tabulary.table_samplers.conditional_tables import ConditionalTables
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion, TableQuestion
from tabulary.table_samplers.public_seed import PublicSeed
from tabulary.table_samplers.random_walk import RandomWalk
from tabulary.table_samplers.table_moves import starting_tables
from tabulary.table_samplers.table_sampler import CellPosteriors, PossibleAnswers
from tabulary.threads import available_threads

Made = TypeVar("Made")

# What a run must reach: the worst R̂, the smallest effective size, and how many sweeps it has at first.
_RATIO, _EFFECTIVE, _ROUND = 1.01, 400.0, 2048
# The same given an answer: these chains start from tables that other chains reached.
_CONDITIONAL_RATIO, CONDITIONAL_EFFECTIVE, _CONDITIONAL_ROUND = 1.05, 200.0, 256
# How far the draws of a question may be from independent, in total variation, and how likely one of its limits fails.
_DEPENDENCE = 1e-5
_DOUBT = 1e-6
# How many steps a chain may take to draw tables: minutes.
MOST_STEPS = 1 << 30
# More threads than these would only wait for each other's records.
_THREADS = 8


@dataclass(frozen=True, eq=False)
class _Draws:
    tables: Integers
    error: float = 0.0
    diagnostics: dict[str, float] = field(default_factory=dict)


class ChainTableSampler:
    r"""Tables of any number of attributes, drawn by several Markov chains. Implements `TableSampler`.

    Nabar & Mishra (2010), section 5.2: "prematurely stopping the mixing process", here with its error stated. The steps
    are those of `RandomWalk`. It is proved that they are reversible, have the right law and reach every table. How soon
    the chains forget their start is measured, not proved: four chains start from tables that are far apart. They run,
    twice as long each time, until split R̂ of every cell is at most 1.01 and the effective number of tables is at least
    400. Only the last run counts; everything before it is warm-up. If a run of `sweeps` does not reach this,
    `NotCertified` is raised. (A sweep is as many steps as the table has degrees of freedom.)

    *Draws* are tables so far apart that, with the correlation ρ between records that was measured, n draws and k
    records from one to the next, the n ρ^k by which their joint law differs from that of independent draws in total
    variation is below 1e-5. That is an estimate: it takes the slowest cell for the slowest of all there is. It goes
    into `error`.

    *Deviations* are upper confidence limits. For each value that was drawn, chains go on given that value, from
    tables that have it, and the mean of each person's probability is taken. The limit is this mean, 5 to 7 standard
    errors and an allowance for what was never seen: a doubt of 1e-6 for all persons and values of a question together,
    as long as means are about normal, which goes into `error` too. People in cells that cannot move any more are exact.
    A value is settled once its limits lie on one side of `epsilon`, or no further apart than `tolerance` (as a share of
    them, above 1); if a run of `sweeps` does not settle it, it counts with its upper limit all the same. Where its
    chains do not agree (R̂ above 1.05, or fewer than 200 effective tables), its deviation is infinite. Without
    `epsilon`, every value is brought to `tolerance`.

    Reads nothing private. The same seed gives the same answers, on any number of threads. `progress` is called with
    (what, done, total). Cost: for a 10 × 10 table with cells of 100 people, seconds a question.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.table_samplers.people import People
    >>> people = People.of(Domain({"eye": "abc", "hair": "xyz"}), [[9, 8, 9], [8, 9, 9], [9, 9, 8]], 0.4)
    >>> known = PartialTable.table(people, (np.array([9, 12, 9]), np.array([10, 9, 11])))
    >>> sampler, seed = ChainTableSampler(epsilon=0.5), PublicSeed("a seed")
    >>> answers = sampler.answers(known, CellQuestion((0, 0)), draws=400, seed=seed)
    >>> answers.values[answers.deviation <= 0.5].tolist()
    [2, 3, 4]
    """

    name = "chain"

    def __init__(
        self,
        *,
        epsilon: Fraction | float | None = None,
        tolerance: float = 0.02,
        sweeps: int = 1 << 16,
        progress: Progress | None = None,
    ) -> None:
        if sweeps < 16:
            raise InvalidArgument(f"{sweeps} sweeps are too few for a chain. Allow at least 16.")
        if not tolerance > 0:
            raise InvalidArgument(f"the tolerance must be above 0, not {tolerance}.")
        self._epsilon = None if epsilon is None else float(epsilon)
        self._tolerance = tolerance
        self._sweeps = sweeps
        self._progress = progress

    def answers(
        self, known: PartialTable, question: TableQuestion, *, draws: int, seed: PublicSeed
    ) -> PossibleAnswers:
        """Return the answers that came up in `draws` tables, and what each would reveal at most.

        A cell that follows from what is known has one answer; nothing is drawn for it.
        """
        walk = RandomWalk(known)
        if isinstance(question, CellQuestion):
            place = int(np.ravel_multi_index(question.index, known.shape))
            if place not in walk.moving:
                return self._foregone(known, question, seed)
            drawn = self._drawn(known, walk, draws, seed)
            tables, asked = drawn.tables, drawn.tables.reshape(draws, -1)[:, place]
        else:
            drawn = self._drawn(known, walk, draws, seed)
            tables, asked = _split_tables(known, question, drawn.tables, seed)
        values, counts = np.unique(asked, return_counts=True)
        starts = [tables[asked == value][:CHAINS] for value in values]
        deviation, doubt = self.weighed(known, question, values, starts, seed)
        return PossibleAnswers(
            values,
            counts / draws,
            deviation,
            error=drawn.error + doubt,
            draws=draws,
            diagnostics={**drawn.diagnostics, "uncertified": float(np.isinf(deviation).sum())},
        )

    def posterior(self, known: PartialTable, *, seed: PublicSeed) -> CellPosteriors:
        """Return the law of each cell: how often its counts came up among the tables of all chains.

        Chains run until `error` is at most `tolerance`, or for `sweeps`. It is half the sum of the standard errors of
        these frequencies for the worst cell, which bounds the expected total variation.
        """
        walk = RandomWalk(known)
        tables = starting_tables(known, CHAINS, seed)
        marginals = np.empty(known.shape, dtype=np.object_)
        for index in np.ndindex(known.shape):
            marginals[index] = np.zeros(known.count_law(index).size + 1)
            marginals[index][tables[0][index]] = 1.0
        if not walk.dimension:
            return CellPosteriors(marginals)
        settled, laws, error = None, [], math.inf
        for settled in self._settling(known, walk, walk.states(tables), seed):
            laws = [settled.frequencies(cell) for cell in range(walk.moving.size)]
            error = max(
                float(np.sqrt(law * (1 - law) / size).sum() / 2)
                for law, size in zip(laws, settled.convergence.sizes, strict=True)
            )
            if error <= self._tolerance:
                break
        for place, law in zip(walk.moving, laws, strict=True):
            index = np.unravel_index(place, known.shape)
            marginals[index][:] = 0.0
            marginals[index][: law.size] = law
        return CellPosteriors(marginals, error, _diagnostics(settled))

    def draw(self, known: PartialTable, number: int, *, seed: PublicSeed) -> Integers:
        """Return tables, one below the other, whose joint law differs little from that of independent draws."""
        return self._drawn(known, RandomWalk(known), number, seed).tables

    def _drawn(self, known: PartialTable, walk: RandomWalk, number: int, seed: PublicSeed) -> _Draws:
        tables = starting_tables(known, CHAINS, seed)
        made = np.empty((number, *known.shape), dtype=np.int64)
        made[:] = tables[0]
        if not walk.dimension:
            return _Draws(made)
        states = walk.states(tables)
        settled = next(self._settling(known, walk, states, seed))
        correlation = settled.convergence.correlation
        apart = max(1, math.ceil(math.log(_DEPENDENCE / number) / math.log(correlation)))
        each, thinning = -(-number // CHAINS), apart * settled.gap
        if each * thinning * walk.dimension > MOST_STEPS:
            raise NotCertified(
                f"{number:,} independent tables must be {thinning:,} sweeps apart, which takes more than "
                f"{MOST_STEPS:,} steps of a chain. No table was drawn. Ask for fewer, or merge levels that few people "
                "have."
            )
        streams = [seed.stream("draws", chain) for chain in range(CHAINS)]
        records = _together(
            lambda chain: walk.run(states[chain], streams[chain], records=each, sweeps=thinning),
            range(CHAINS),
        )
        # One of each chain in turn: a part of the draws is of all chains too.
        turns = np.stack(list(records), axis=1).reshape(CHAINS * each, -1)
        made.reshape(number, -1)[:, walk.moving] = turns[:number]
        error = number * correlation**apart + CHAINS * correlation ** (settled.sweeps / settled.gap)
        return _Draws(made, error, {**_diagnostics(settled), "thinning": float(thinning)})

    def _settling(
        self, known: PartialTable, walk: RandomWalk, states: list[Integers], seed: PublicSeed
    ) -> Iterator[ChainRun]:
        """Yield the rounds that show that chains have settled, each longer than the one before it."""
        streams = [seed.stream("chain", chain) for chain in range(CHAINS)]
        found = False
        for made in chain_runs(walk, states, streams, first=_ROUND, longest=self._sweeps, each=_together):
            if made.settled(_RATIO, _EFFECTIVE):
                found = True
                yield made
        if not found:
            shape = " × ".join(map(str, known.shape))
            raise NotCertified(
                f"tables of shape {shape} with the known sums could not be sampled reliably: after "
                f"{made.sweeps:,} sweeps of {CHAINS} chains R̂ is {made.convergence.scale_reduction:.3f} (at most "
                f"{_RATIO} is required) and {made.convergence.effective:,.0f} tables are effective (at least "
                f"{_EFFECTIVE:,.0f}). Nothing was concluded from them. Allow more sweeps, or merge levels that few "
                "people have."
            )

    def weighed(
        self,
        known: PartialTable,
        question: TableQuestion,
        values: Integers,
        starts: list[Integers],
        seed: PublicSeed,
    ) -> tuple[Floats, float]:
        """Return the largest deviation given each value, from tables that have it, and how likely one is too small."""
        conditional = ConditionalTables(known.answered(question, int(values[0])), _DOUBT / values.size)
        weighing = _together(
            lambda which: self._limit(conditional, starts[which], seed, int(values[which])),
            range(values.size),
        )
        deviation = np.empty(values.size)
        for which, limit in enumerate(weighing):
            deviation[which] = limit
            if self._progress is not None:
                self._progress("weighing answers", which + 1, values.size)
        return deviation, _DOUBT if conditional.walk.dimension else 0.0

    def _limit(self, conditional: ConditionalTables, starts: Integers, seed: PublicSeed, value: int) -> float:
        """Return an upper limit of anybody's deviation given a value, from tables that have it."""
        certain = conditional.certain(starts[0])
        if not conditional.walk.dimension or (self._epsilon is not None and certain > self._epsilon):
            return certain
        states = conditional.walk.states(starts[np.arange(CHAINS) % len(starts)])
        streams = [seed.stream("pinned", value, chain) for chain in range(CHAINS)]
        limit = math.inf
        for made in chain_runs(
            conditional.walk, states, streams, first=_CONDITIONAL_ROUND, longest=self._sweeps, each=map
        ):
            limit = math.inf
            if made.settled(_CONDITIONAL_RATIO, CONDITIONAL_EFFECTIVE):
                low, limit = (max(certain, end) for end in conditional.limits(made))
                decided = self._epsilon is not None and not low <= self._epsilon < limit
                if decided or limit - low <= self._tolerance * max(1.0, low):
                    break
        return limit

    def _foregone(self, known: PartialTable, question: CellQuestion, seed: PublicSeed) -> PossibleAnswers:
        """Return the one answer that agrees with what is known: to give it moves nobody further."""
        tables = starting_tables(known, CHAINS, seed)
        values = np.array([tables[0][question.index]])
        deviation, doubt = self.weighed(known, question, values, [tables], seed)
        return PossibleAnswers(values, np.ones(1), deviation, error=doubt)


def _diagnostics(made: ChainRun | None) -> dict[str, float]:
    if made is None:
        return {}
    return {
        "chains": float(CHAINS),
        "r_hat": made.convergence.scale_reduction,
        "effective": made.convergence.effective,
        "correlation": made.convergence.correlation,
        "sweeps": float(made.sweeps),
    }


def _together(work: Callable[[int], Made], items: Iterable[int]) -> Iterator[Made]:
    """Yield what comes of each item, in their order, from as many threads as there are cores for."""
    with ThreadPoolExecutor(available_threads(_THREADS), thread_name_prefix="tabulary-chain") as pool:
        yield from pool.map(work, items)


def _split_tables(
    known: PartialTable, split: SplitQuestion, tables: Integers, seed: PublicSeed
) -> tuple[Integers, Integers]:
    """Return the tables with one group of each split at random, and the count of its first part.

    Given the count of a cell, those of its two parts do not depend on other cells: x of its M people with the attribute
    are in the first with a weight w₁(x) w₂(M - x).
    """
    if (known.lower > 0).any() or any(
        known.upper[index] < known.count_law(index).size for index in np.ndindex(known.shape)
    ):
        raise InvalidTable("a group cannot be split after a cell was released or bounded.")
    parted = known.answered(split, known.split_bounds(split)[0])
    whole = np.moveaxis(tables, split.axis + 1, 1)
    inside = whole[:, split.group]
    part = np.empty_like(inside)
    stream = seed.stream("parting")
    for index in np.ndindex(inside.shape[1:]):
        one, other = (
            parted.count_law((*index[: split.axis], group, *index[split.axis :])).log_weights
            for group in (split.group, split.group + 1)
        )
        lots = stream.random(len(tables))
        for count in np.unique(inside[:, *index]):
            least, most = max(0, count - other.size + 1), min(count, one.size - 1)
            ones = np.arange(least, most + 1)
            height = one[ones] + other[count - ones]
            steps = np.cumsum(np.exp(height - height.max()))
            chosen = inside[:, *index] == count
            place = np.searchsorted(steps, lots[chosen] * steps[-1], side="right")
            part[chosen, *index] = least + np.minimum(place, most - least)
    made = [whole[:, : split.group], part[:, None], (inside - part)[:, None], whole[:, split.group + 1 :]]
    asked = part.reshape(len(tables), -1).sum(axis=1)
    return np.moveaxis(np.concatenate(made, axis=1), 1, split.axis + 1), asked
