"""How often something happened, with its interval."""

import math
from dataclasses import dataclass
from statistics import NormalDist

from tabulary.errors import InvalidArgument


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
