"""Several walks beside each other, for longer and longer, until they agree."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Integers
from tabulary.table_samplers.convergence import Convergence
from tabulary.table_samplers.random_walk import RandomWalk, Records

CHAINS = 4
"""How many walks go beside each other."""

# How long they go before the first round, beside it.
_WARM_UP = 0.25
# How many counts a round keeps of each walk; longer ones keep a table every few sweeps.
_KEPT = 1 << 20

Each = Callable[[Callable[[int], Records], Iterable[int]], Iterable[Records]]
"""Does something for every chain, one after the other (`map`) or together."""


@dataclass(frozen=True, eq=False)
class ChainRun:
    """What the walks recorded in one round: chains × records × moving cells, a record every `gap` sweeps.

    `sweeps` is how far each walk had come at its end.
    """

    records: Records
    gap: int
    sweeps: int
    convergence: Convergence

    def settled(self, ratio: float, effective: float) -> bool:
        """Return whether no R̂ is above `ratio` and no effective size below `effective`."""
        return self.convergence.scale_reduction <= ratio and self.convergence.effective >= effective

    def frequencies(self, cell: int) -> NDArray[np.float64]:
        """Return how often a cell had each count, as shares, up to the largest it had."""
        counts = self.records[:, :, cell].reshape(-1)
        return np.asarray(np.bincount(counts) / counts.size)


def chain_runs(
    walk: RandomWalk, states: list[Integers], streams: list[Any], *, first: int, longest: int, each: Each
) -> Iterator[ChainRun]:
    """Yield rounds of `first` sweeps, then of twice as many, and so on up to `longest`; `states` move on.

    What went before a round is its warm-up.
    """
    length = min(first, longest)
    sweeps = max(1, int(_WARM_UP * length))
    list(each(lambda chain: walk.run(states[chain], streams[chain], records=1, sweeps=sweeps), range(CHAINS)))
    while length <= longest:
        gap = -(-length * walk.moving.size // _KEPT)
        records, every = length // gap, gap

        def run(chain: int, records: int = records, every: int = every) -> Records:
            return walk.run(states[chain], streams[chain], records=records, sweeps=every)

        made = np.stack(list(each(run, range(CHAINS))))
        sweeps += records * gap
        yield ChainRun(made, gap, sweeps, Convergence.of(made))
        length *= 2
