"""How often something happened, with its interval: of tests, how often they reject."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from tabulary.errors import InvalidArgument
from tabulary.studies.selecting import numbers
from tabulary.studies.study import Row

SIGNIFICANT = 0.05
"""The level of every test: a hypothesis with a p-value up to it is rejected."""


@dataclass(frozen=True)
class Proportion:
    """How often something happened, out of so many times, with Wilson's interval.

    >>> Proportion(80, 100).rate, [round(end, 3) for end in Proportion(80, 100).interval(0.95)]
    (0.8, [0.711, 0.867])
    """

    times: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.times <= self.trials or self.trials < 1:
            raise InvalidArgument(f"{self.times} times out of {self.trials} is no proportion.")

    @property
    def rate(self) -> float:
        """The share of the trials."""
        return self.times / self.trials

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends of Wilson's score interval."""
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        middle = (self.rate + z * z / (2 * self.trials)) / (1 + z * z / self.trials)
        spread = math.sqrt(self.rate * (1 - self.rate) / self.trials + z * z / (4 * self.trials**2))
        half = z * spread / (1 + z * z / self.trials)
        # The rate is inside; rounding must not put it outside at the ends.
        return max(0.0, min(self.rate, middle - half)), min(1.0, max(self.rate, middle + half))


def rejected(rows: Iterable[Row], column: str, **which: object) -> Proportion | None:
    """Return how many p-values of a column are at most 0.05, of those that there are; None where there is none.

    A fit that failed has no p-value and is no verdict, so it counts neither as a rejection nor as a trial.

    >>> rejected([{"p": 0.03}, {"p": 0.4}, {"p": None}], "p")
    Proportion(times=1, trials=2)
    >>> rejected([{"p": None}], "p") is None
    True
    """
    values = numbers(rows, column, **which)
    return Proportion(sum(value <= SIGNIFICANT for value in values), len(values)) if values else None


def shown(share: Proportion | None, form: str = ".0%", *, interval: bool = False) -> str:
    """Return a share as it is read, with its 95 % interval in brackets if wanted; a dash where there is none.

    >>> shown(Proportion(80, 100), ".1%"), shown(Proportion(80, 100), interval=True), shown(None)
    ('80.0%', '80% (71%–87%)', '–')
    """
    if share is None:
        return "–"
    if not interval:
        return f"{share.rate:{form}}"
    low, high = share.interval()
    return f"{share.rate:{form}} ({low:{form}}–{high:{form}})"
