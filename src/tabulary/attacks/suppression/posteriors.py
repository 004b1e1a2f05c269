"""The posterior of an attacker who knows the prior of everybody, after reading a table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.attacks.suppression.primary_sets import Case
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import InvalidTable
from tabulary.table_samplers.partial_table import PartialTable
from tabulary.table_samplers.people import People
from tabulary.table_samplers.public_seed import PublicSeed
from tabulary.table_samplers.sampler_choice import sampler_chooser
from tabulary.table_samplers.table_sampler import TableSampler

# A step towards an unlikely range keeps at least this share: small enough to get there, large beside what is left out.
_STEP = 0.01


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The law of each cell of one table given what was published, and what it says of each person.

    `marginals[cell][v]` is the probability of v people with the attribute. `mean` is the expected count. `prior` and
    `posterior` are the probability that a person of the cell has the attribute, before and after; `deviation` is
    Nabar & Mishra's |1 - posterior/prior|, the larger of the two values of the attribute. All have the table's shape.
    `error` bounds the total variation of the laws from the truth, as far as the sampler knows it; `sampler` names it.
    """

    table: int
    known: PartialTable
    marginals: NDArray[np.object_]
    mean: NDArray[np.float64]
    prior: NDArray[np.float64]
    posterior: NDArray[np.float64]
    deviation: NDArray[np.float64]
    error: float
    sampler: str


def prior_knowledge(
    table: SuppressedTable, probability: ArrayLike, lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> PartialTable:
    """Return what is known of a table whose people are: their prior, the sums, and bounds of each cell."""
    if table.people is None:
        raise InvalidTable(
            "the posterior needs the number of people in each cell, and the table does not have it. Give the "
            "table's people."
        )
    sums = [table.sums.get((attribute,)) for attribute in table.domain.attributes]
    if not table.whole or any(values is None or np.isnan(values).any() for values in sums):
        raise InvalidTable(
            "the posterior needs a table of counts with all the sums of each attribute. For this table only "
            "intervals can be computed. Leave the prior out."
        )
    people = People.of(table.domain, table.people, probability)
    if people.number.shape[-1] != 1:
        raise InvalidTable("the posterior needs one prior for each cell of the table, or one for all.")
    whole = tuple(np.asarray(values, dtype=np.int64) for values in sums)
    known = PartialTable.table(people, whole)
    return _bounded(known, lower, upper)


def beliefs(
    known: PartialTable,
    cases: Sequence[Case] = (),
    *,
    table: int = 0,
    sampler: TableSampler | None = None,
    seed: PublicSeed,
) -> tuple[Beliefs, NDArray[np.float64]]:
    r"""Return an attacker's beliefs, and how likely each of several cases is.

    Without cases, the law of the table given what is known. With cases, the boxes one of which the table is in, it is
    their mixture, each weighted with its probability given what is known. `sampler` is the exact program where that is
    feasible and the chain elsewhere, unless it is given; `seed` is the chain's.

    That a published pattern was chosen among others as small as it says something too, if the way of choosing is
    known; here every case is taken to lead to the pattern alike. Post-processing: reads published numbers only.
    """
    chosen = sampler or sampler_chooser()(known, None)
    found = [chosen.posterior(known, seed=seed)] if not cases else []
    weights = np.ones(1)
    if cases:
        boxes = [_bounded(known, case.lower, case.upper) for case in cases]
        shares = np.array([_log_share(chosen, known, box, seed) for box in boxes])
        weights = np.exp(shares - shares.max()) / np.exp(shares - shares.max()).sum()
        found = [chosen.posterior(box, seed=seed) for box in boxes]
    marginals = np.empty(known.shape, dtype=object)
    mean, posterior, deviation = np.zeros(known.shape), np.zeros(known.shape), np.zeros(known.shape)
    prior = known.people.probability[..., 0]
    for cell in np.ndindex(known.shape):
        count_law = known.count_law(cell)
        law = weights @ np.array([of.marginals[cell] for of in found], dtype=np.float64)
        marginals[cell] = law
        mean[cell] = np.arange(count_law.size + 1) @ law
        after = count_law.posterior(law)
        posterior[cell] = after[0] if count_law.size else prior[cell]
        deviation[cell] = count_law.deviation(after)
    error = max(of.error for of in found)
    return Beliefs(table, known, marginals, mean, prior, posterior, deviation, error, chosen.name), weights


def _bounded(known: PartialTable, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> PartialTable:
    low, high = np.maximum(known.lower, lower), np.minimum(known.upper, upper)
    return replace(known, lower=low.astype(np.int64), upper=high.astype(np.int64))


def _log_share(sampler: TableSampler, known: PartialTable, box: PartialTable, seed: PublicSeed) -> float:
    """Return the logarithm of the probability that a table lies in a box, given what is known.

    By the chain rule: one cell at a time is held in its range, and the laws of the others follow from that. A range
    that is too unlikely is approached in steps, each to the nearest part of the law that holds a hundredth of it.
    """
    total, here = 0.0, known
    while True:
        outside = np.argwhere((here.lower < box.lower) | (here.upper > box.upper))
        if not len(outside):
            return total
        laws = sampler.posterior(here, seed=seed).marginals
        ranges = []
        for index in map(tuple, outside.tolist()):
            law = np.asarray(laws[index], dtype=np.float64)
            low, high = _step(law[: here.upper[index] + 1], int(box.lower[index]), int(box.upper[index]))
            # At least one value less than before, or there would be no end.
            low, high = max(low, int(here.lower[index])), min(high, int(here.upper[index]))
            if (low, high) == (here.lower[index], here.upper[index]):
                low, high = min(low + 1, int(box.lower[index])), max(high - 1, int(box.upper[index]))
            ranges.append((float(law[low : high + 1].sum()), index, low, high))
        # The least likely one first: most of the others are then in their ranges already.
        share, index, low, high = min(ranges)
        if share <= 0:
            return -inf
        total += log(share)
        here = here.bounded(index, low, high)


def _step(law: NDArray[np.float64], low: int, high: int) -> tuple[int, int]:
    """Return the range to hold a cell in: the one wanted, or one from there to where it is likely enough."""
    if law[low : high + 1].sum() >= _STEP:
        return low, high
    if law.argmax() > high:
        return low, low + int(np.searchsorted(np.cumsum(law[low:]), _STEP))
    return high - int(np.searchsorted(np.cumsum(law[high::-1]), _STEP)), high
