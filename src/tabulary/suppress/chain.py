"""Tables drawn by a Markov chain: for tables too large to compute, and for three attributes and more."""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.threads import available_threads
from tabulary.errors import InvalidPlan, InvalidTable, NotCertified
from tabulary.suppress.answers import Answers, Posterior
from tabulary.suppress.coins import Coins
from tabulary.suppress.convergence import Convergence
from tabulary.suppress.known import Cell, Known, Question, Split
from tabulary.suppress.moves import first_tables
from tabulary.suppress.pinned import Pinned
from tabulary.suppress.walk import Records, Walk

Integers = NDArray[np.int64]
Progress = Callable[[str, int, int], None]
Item = TypeVar("Item")
Made = TypeVar("Made")

CHAINS = 4
"""How many chains run beside each other."""

# What a run must reach: the worst R̂, the smallest effective size, and how many sweeps it has at first.
_RATIO, _EFFECTIVE, _ROUND = 1.01, 400.0, 2048
# The same once a value is pinned: these chains set out from tables that others arrived at.
_PINNED_RATIO, _PINNED_EFFECTIVE, _PINNED_ROUND = 1.05, 200.0, 256
# How long chains run before anything is recorded, beside their first round.
_WARM_UP = 0.25
# How far the draws of a question may be from independent, in total variation, and how likely one of its limits may fail.
_DEPENDENCE = 1e-5
_DOUBT = 1e-6
# How many times as long as its longest round a chain may run to draw tables.
_DRAWING = 16


@dataclass(frozen=True, eq=False)
class _Draws:
    tables: Integers
    error: float
    diagnostics: dict[str, float]


class Chain:
    r"""Tables of any number of attributes, drawn by several Markov chains. Implements `TableSampler`.

    Nabar & Mishra (2010), section 5.2, "prematurely stopping the mixing process", with what that costs said. The steps
    are those of `Walk`: reversible, with the right law, and able to reach every table. That much is proved. How soon
    they forget their start is measured, not proved: four chains set out from tables far apart and run, twice as long
    each time, until split R̂ of every cell is at most 1.01 and the effective number of tables at least 400. Only
    the last run counts; all before it is warm-up. Where `sweeps` of each chain are not enough, `NotCertified` is raised
    and nothing is said. (A sweep is as many steps as the table has degrees of freedom.)

    *Draws* are records so far apart that, with the correlation ρ between sweeps that was measured, n draws and thinning
    k, the n ρ^k by which n draws differ from independent ones in total variation is below 1e-5. This figure is an
    estimate: it takes the slowest cell for the slowest of all. It goes into `Answers.error`, and so does the start.

    *Deviations* are upper confidence limits. For each value v that was drawn, chains run on with v pinned, from tables
    that have it, and the mean of each person's probability is taken. The limit is the mean, 6 to 7 standard errors and
    an allowance for what was never seen, for all persons and all values of a question together at a doubt of 1e-6,
    which goes into `error` too. People in cells that cannot move any more are exact. A value is left as soon as
    the limits lie on one side of `epsilon`, or closer together than `tolerance`, or after `sweeps`: whatever is then
    still open counts as unsafe if its upper limit is above ε. If the chains of a value do not agree (R̂ above 1.05, or
    fewer than 200 effective tables), its deviation is infinite. Without `epsilon`, every value is brought to `tolerance`.

    Reads nothing private. The same coins give the same answers, on any number of threads. A 10 × 10 table with cells
    of 100 people takes a second or two a question.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.suppress.people import People
    >>> people = People.of(Domain({"eye": "abc", "hair": "xyz"}), [[9, 8, 9], [8, 9, 9], [9, 9, 8]], 0.4)
    >>> known = Known.table(people, (np.array([9, 12, 9]), np.array([10, 9, 11])))
    >>> answers = Chain(epsilon=0.5).answers(known, Cell((0, 0)), draws=400, coins=Coins("a seed"))
    >>> answers.values[answers.deviation <= 0.5].tolist()
    [2, 3, 4, 5]
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
            raise InvalidPlan(f"a chain of {sweeps} sweeps shows nothing. Allow 16 sweeps at least.")
        if not tolerance > 0:
            raise InvalidPlan(f"a tolerance of {tolerance} cannot be reached. Take one above zero.")
        self._epsilon = None if epsilon is None else float(epsilon)
        self._tolerance = tolerance
        self._sweeps = sweeps
        self._progress = progress

    def answers(self, known: Known, question: Question, *, draws: int, coins: Coins) -> Answers:
        """Return the answers that came up in `draws` tables, and what each would betray at most.

        A cell that follows from what is known has one answer, and nothing is drawn for it.
        """
        walk = Walk(known)
        if isinstance(question, Cell):
            place = int(np.ravel_multi_index(question.index, known.shape))
            if place not in walk.moving:
                return self._foregone(known, question, coins)
            drawn = self._drawn(known, walk, draws, coins)
            tables = drawn.tables
            asked = tables[(slice(None), *question.index)]
        else:
            drawn = self._drawn(known, walk, draws, coins)
            tables, asked = _parted(known, question, drawn.tables, coins)
        values, counts = np.unique(asked, return_counts=True)
        starts = [tables[asked == value][:CHAINS] for value in values]
        deviation, weighed = self._weighed(known, question, values, starts, coins)
        return Answers(
            values,
            counts / draws,
            deviation,
            error=drawn.error + weighed.pop("doubt"),
            draws=draws,
            diagnostics={**drawn.diagnostics, **weighed},
        )

    def posterior(self, known: Known, *, coins: Coins) -> Posterior:
        """Return the law of each cell as a frequency among the chains' tables.

        `error` is the larger of `tolerance` and what `sweeps` leave: half the sum of the standard errors of a cell's
        frequencies, which bounds the expected total variation.
        """
        walk = Walk(known)
        tables = first_tables(known, CHAINS, coins)
        marginals = np.empty(known.shape, dtype=np.object_)
        for index in np.ndindex(known.shape):
            marginals[index] = np.zeros(known.crowd(index).size + 1)
            marginals[index][tables[0][index]] = 1.0
        if not walk.dimension:
            return Posterior(marginals)

        def laws(records: Records, run: Convergence) -> tuple[list[NDArray[np.float64]], float]:
            flat = records.reshape(-1, records.shape[-1])
            found = [
                np.bincount(flat[:, cell], minlength=upper + 1) / flat.shape[0]
                for cell, upper in enumerate(walk.upper)
            ]
            errors = [
                np.sqrt(law * (1 - law) / size).sum() / 2 for law, size in zip(found, run.sizes, strict=True)
            ]
            return found, float(max(errors))

        moving = _moving(tables, walk)
        streams = [coins.stream("chain", chain) for chain in range(CHAINS)]
        records, run, sweeps = self._settled(
            known, walk, moving, streams, lambda records, run: laws(records, run)[1] <= self._tolerance
        )
        found, error = laws(records, run)
        for place, law in zip(walk.moving, found, strict=True):
            index = tuple(map(int, np.unravel_index(place, known.shape)))
            marginals[index] = np.pad(law, (0, known.crowd(index).size + 1 - law.size))
        return Posterior(marginals, error, _diagnostics(run, sweeps))

    def draw(self, known: Known, number: int, *, coins: Coins) -> Integers:
        """Return tables, one below the other, that differ little from independent ones."""
        return self._drawn(known, Walk(known), number, coins).tables

    def _drawn(self, known: Known, walk: Walk, number: int, coins: Coins) -> _Draws:
        tables = first_tables(known, CHAINS, coins)
        made = np.empty((number, *known.shape), dtype=np.int64)
        made[:] = tables[0]
        if not walk.dimension:
            return _Draws(made, 0.0, {})
        moving = _moving(tables, walk)
        streams = [coins.stream("chain", chain) for chain in range(CHAINS)]
        _, run, sweeps = self._settled(known, walk, moving, streams, lambda records, run: True)
        each = -(-number // CHAINS)
        thinning = max(1, math.ceil(math.log(_DEPENDENCE / number) / math.log(run.correlation)))
        if each * thinning > _DRAWING * self._sweeps:
            raise NotCertified(
                f"{number:,} tables were asked for, {thinning:,} sweeps apart for them to be independent, which is "
                f"more than {_DRAWING} times {self._sweeps:,} sweeps a chain. No table was drawn. Allow more sweeps, "
                "or merge levels that few people have."
            )
        records = _together(
            lambda chain: walk.run(moving[chain], streams[chain], records=each, sweeps=thinning),
            range(CHAINS),
        )
        # One of each chain in turn, so that fewer tables are still of all chains.
        made.reshape(number, -1)[:, walk.moving] = np.stack(list(records), axis=1).reshape(
            -1, walk.moving.size
        )[:number]
        error = number * run.correlation**thinning + CHAINS * run.correlation**sweeps
        return _Draws(made, error, {**_diagnostics(run, sweeps), "thinning": float(thinning)})

    def _settled(
        self,
        known: Known,
        walk: Walk,
        tables: list[Integers],
        streams: list[object],
        enough: Callable[[Records, Convergence], bool],
    ) -> tuple[Records, Convergence, int]:
        """Return the first run that shows that it has settled, and how many sweeps a chain has behind it."""
        length = min(_ROUND, self._sweeps)
        warm_up = int(_WARM_UP * length)
        for _ in _together(
            lambda chain: walk.run(tables[chain], streams[chain], records=1, sweeps=warm_up), range(CHAINS)
        ):
            pass
        done = warm_up
        while True:
            made = _together(
                lambda chain, length=length: walk.run(tables[chain], streams[chain], records=length),
                range(CHAINS),
            )
            records = np.stack(list(made))
            done += length
            run = Convergence.of(records)
            settled = run.scale_reduction <= _RATIO and run.effective >= _EFFECTIVE
            last = 2 * length > self._sweeps
            if settled and (last or enough(records, run)):
                return records, run, done
            if last:
                shape = " × ".join(map(str, known.shape))
                raise NotCertified(
                    f"the tables of shape {shape} that agree with what is known could not be drawn from with "
                    f"confidence: after {length:,} sweeps of {CHAINS} chains R̂ is {run.scale_reduction:.3f} (at most "
                    f"{_RATIO} is asked) and {run.effective:,.0f} tables are effective (at least {_EFFECTIVE:,.0f}). "
                    "Nothing was concluded from them. Allow more sweeps, or merge levels that few people have."
                )
            length *= 2

    def _weighed(
        self, known: Known, question: Question, values: Integers, starts: list[Integers], coins: Coins
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """Return the largest deviation given each value, from tables that have it, and how sure that is."""
        pinned = Pinned(known.answered(question, int(values[0])), _DOUBT / values.size)

        def weigh(which: int) -> tuple[float, bool]:
            return self._limit(pinned, starts[which], int(values[which]), coins)

        limits = []
        for limit in _together(weigh, range(values.size)):
            limits.append(limit)
            if self._progress is not None:
                self._progress("weighing answers", len(limits), values.size)
        deviation = np.array([limit for limit, _ in limits])
        return deviation, {
            "doubt": _DOUBT if pinned.walk.dimension else 0.0,
            "uncertified": float(np.isinf(deviation).sum()),
        }

    def _limit(self, pinned: Pinned, starts: Integers, value: int, coins: Coins) -> tuple[float, bool]:
        """Return an upper limit of the deviation of anybody given a value, from tables that have it."""
        certain = pinned.certain(starts[0])
        walk = pinned.walk
        if not walk.dimension or (self._epsilon is not None and certain > self._epsilon):
            return certain, True
        tables = [_moving(starts, walk)[chain % len(starts)].copy() for chain in range(CHAINS)]
        streams = [coins.stream("pinned", value, chain) for chain in range(CHAINS)]
        length = min(_PINNED_ROUND, self._sweeps)
        for table, stream in zip(tables, streams, strict=True):
            walk.run(table, stream, records=1, sweeps=int(_WARM_UP * length))
        while True:
            records = np.stack(
                [
                    walk.run(table, stream, records=length)
                    for table, stream in zip(tables, streams, strict=True)
                ]
            )
            run = Convergence.of(records)
            settled = run.scale_reduction <= _PINNED_RATIO and run.effective >= _PINNED_EFFECTIVE
            if settled:
                low, high = pinned.limits(records, run)
                low, high = max(low, certain), max(high, certain)
                if self._epsilon is not None and (high <= self._epsilon or low > self._epsilon):
                    return high, True
                if high - low <= self._tolerance:
                    return high, True
            if 2 * length > self._sweeps:
                return (high, False) if settled else (math.inf, False)
            length *= 2

    def _foregone(self, known: Known, question: Cell, coins: Coins) -> Answers:
        """Return the one answer that agrees with what is known; it moves nobody further."""
        tables = first_tables(known, CHAINS, coins)
        values = np.array([tables[0][question.index]])
        deviation, weighed = self._weighed(known, question, values, [tables], coins)
        return Answers(values, np.ones(1), deviation, error=weighed.pop("doubt"), diagnostics=weighed)


def _moving(tables: Integers, walk: Walk) -> list[Integers]:
    return [np.ascontiguousarray(table.reshape(-1)[walk.moving]) for table in tables]


def _diagnostics(run: Convergence, sweeps: int) -> dict[str, float]:
    return {
        "chains": float(CHAINS),
        "r_hat": run.scale_reduction,
        "effective": run.effective,
        "correlation": run.correlation,
        "sweeps": float(sweeps),
    }


def _together(work: Callable[[int], Made], items: Iterable[int]) -> Iterator[Made]:
    """Yield what comes of each item, in their order, worked on by as many threads as there are cores for."""
    with ThreadPoolExecutor(available_threads(64), thread_name_prefix="tabulary-chain") as pool:
        yield from pool.map(work, items)


def _parted(known: Known, split: Split, tables: Integers, coins: Coins) -> tuple[Integers, Integers]:
    """Return the tables with a group of each parted by lot, and how many its first part has.

    Given the count of a cell, those of its two parts do not depend on other cells: x of M people with the attribute
    stand in the first with a weight w₁(x) w₂(M - x).
    """
    total, (first, last) = int(known.sums[split.axis][split.group]), known.groups[split.axis][split.group]
    if (known.lower > 0).any() or any(
        known.upper[index] < known.crowd(index).size for index in np.ndindex(known.shape)
    ):
        raise InvalidTable("groups are parted before cells are released or bounded, not after.")
    beyond = known.people.crowd(
        tuple(
            (split.cut, last) if axis == split.axis else (0, levels)
            for axis, levels in enumerate(known.people.shape)
        )
    ).size
    parted = known.answered(split, max(0, total - beyond))
    whole = np.moveaxis(tables, split.axis + 1, 1)
    inside = whole[:, split.group]
    part = np.empty_like(inside)
    stream = coins.stream("parting")
    for index in np.ndindex(inside.shape[1:]):
        one, other = (
            parted.crowd((*index[: split.axis], group, *index[split.axis :])).log_weights
            for group in (split.group, split.group + 1)
        )
        here, lots = inside[(slice(None), *index)], stream.random(len(tables))
        for count in np.unique(here):
            chosen = here == count
            least = max(0, int(count) - other.size + 1)
            ones = np.arange(least, min(int(count) + 1, one.size))
            height = one[ones] + other[count - ones]
            steps = np.cumsum(np.exp(height - height.max()))
            place = np.searchsorted(steps, lots[chosen] * steps[-1], side="right")
            part[(chosen, *index)] = least + np.minimum(place, ones.size - 1)
    made = np.concatenate(
        [
            whole[:, : split.group],
            part[:, None],
            (inside - part)[:, None],
            whole[:, split.group + 1 :],
        ],
        axis=1,
    )
    asked = part.reshape(len(tables), -1).sum(axis=1)
    return np.moveaxis(made, 1, split.axis + 1), asked
