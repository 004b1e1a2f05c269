"""What tables say of every person, once a question has one answer."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.table_samplers.chain_runs import ChainRun
from tabulary.table_samplers.partial_table import PartialTable
from tabulary.table_samplers.random_walk import RandomWalk


@dataclass(frozen=True, eq=False)
class _People:
    """The people of one cell, by kind: their chances given its count and the squares of those, and their priors."""

    chances: Floats
    squares: Floats
    prior: Floats
    steepest: Floats
    """The most that one person more in the cell changes a chance."""


class ConditionalTables:
    """The tables that a question leaves, whatever its answer: how they move, and what their counts reveal.

    `known` holds one of the answers, and its cells and sums stand for those of any other. `doubt` is how likely any
    limit of one answer may fail.
    """

    def __init__(self, known: PartialTable, doubt: float) -> None:
        self.walk = RandomWalk(known)
        moving = set(self.walk.moving.tolist())
        self._people: list[_People] = []
        self._fixed: list[tuple[int, Floats]] = []
        for place, index in enumerate(np.ndindex(known.shape)):
            count_law = known.count_law(index)
            if place not in moving:
                self._fixed.append((place, count_law.deviation(count_law.chances)))
                continue
            chances = count_law.chances
            steepest = np.abs(np.diff(chances, axis=1)).max(axis=1, initial=0.0)
            self._people.append(_People(chances, chances**2, count_law.probability, steepest))
        kinds = sum(people.prior.size for people in self._people)
        self._doubt = doubt / (2 * max(1, kinds))

    def certain(self, table: NDArray[np.int64]) -> float:
        """Return the largest deviation of the people in cells that cannot move: exact."""
        flat = table.reshape(-1)
        return max((float(deviation[flat[place]]) for place, deviation in self._fixed), default=0.0)

    def limits(self, made: ChainRun) -> tuple[float, float]:
        r"""Return a lower and an upper confidence limit of the largest deviation of the people in cells that move.

        A person's probability is the mean of his chances given the count of his cell. Its standard error follows from
        their variance and the effective number of tables of his cell. What was not seen once among n tables has a
        probability below log(1/doubt)/n; so much of the most that one person more or fewer can change is added.
        """
        quantile = -NormalDist().inv_cdf(self._doubt)
        unseen = -math.log(self._doubt)
        low, high = 0.0, 0.0
        for cell, people in enumerate(self._people):
            law = made.frequencies(cell)
            mean = people.chances[:, : law.size] @ law
            variance = np.maximum(people.squares[:, : law.size] @ law - mean**2, 0.0)
            size = made.convergence.sizes[cell]
            slack = quantile * np.sqrt(variance / size) + unseen / size * people.steepest
            scale = np.minimum(people.prior, 1 - people.prior)
            moved = np.abs(mean - people.prior)
            low = max(low, float(((moved - slack) / scale).max(initial=0.0)))
            high = max(high, float(((moved + slack) / scale).max(initial=0.0)))
        return low, high
