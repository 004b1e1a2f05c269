"""What a question may be answered, before anyone looks: values, how likely each is, and what each would reveal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tabulary.table_samplers.partial_table import PartialTable, TableQuestion
from tabulary.table_samplers.public_seed import PublicSeed


@dataclass(frozen=True, eq=False)
class PossibleAnswers:
    """The values that a question may be answered with, given what is known.

    `probability` is that of each value under the prior, given what is known; `deviation` the largest |1 - posterior/
    prior| of any person, once that value is known too. `error` bounds the total variation between `probability` and the
    truth, and whatever else is not certain; it is added to δ. `draws` is the number of simulated tables behind them, or
    None where they are computed. `diagnostics` say how a simulation went.
    """

    values: NDArray[np.int64]
    probability: NDArray[np.float64]
    deviation: NDArray[np.float64]
    error: float = 0.0
    draws: int | None = None
    diagnostics: Mapping[str, float] = field(default_factory=dict)

    def unsafe(self, epsilon: float) -> float:
        """Return the probability of an answer that would move somebody's probability by more than ε."""
        return float(self.probability[self.deviation > epsilon].sum())


@dataclass(frozen=True, eq=False)
class CellPosteriors:
    """The law of each cell given what is known: `marginals[cell][v]`, for v = 0, ..., the people of that cell."""

    marginals: NDArray[np.object_]
    error: float = 0.0
    diagnostics: Mapping[str, float] = field(default_factory=dict)

    def deviations(self, known: PartialTable) -> NDArray[np.float64]:
        """Return the largest |1 - posterior/prior| of any person in each cell."""
        moved = np.zeros(known.shape)
        for index in np.ndindex(known.shape):
            count_law = known.count_law(index)
            moved[index] = count_law.deviation(
                count_law.posterior(np.asarray(self.marginals[index], dtype=np.float64))
            )
        return moved


class TableSampler(Protocol):
    """A law of tables given what is known: computed, or simulated."""

    name: str

    def answers(
        self, known: PartialTable, question: TableQuestion, *, draws: int, seed: PublicSeed
    ) -> PossibleAnswers:
        """Return the answers that the question may get; `draws` tables are simulated where they are not computed.

        Raises `NotCertified` where the answers could not be made sure of.
        """
        ...

    def posterior(self, known: PartialTable, *, seed: PublicSeed) -> CellPosteriors:
        """Return the law of each cell given what is known."""
        ...

    def draw(self, known: PartialTable, number: int, *, seed: PublicSeed) -> NDArray[np.int64]:
        """Return tables, one below the other, drawn given what is known."""
        ...
