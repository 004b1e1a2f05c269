r"""What randomized answers say about the true values.

There are nⱼ of n people with level j. Each of them answers it with probability p and each other person with r, so
cⱼ ~ Bin(nⱼ, p) + Bin(n - nⱼ, r), and (cⱼ - rn)/(p - r) is an unbiased estimate of nⱼ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.errors import InvalidDomain, listed
from tabulary.noise.checks import check_half_width

# Probabilities are known to this, and an interval is the wider by it.
_SLACK = 1e-9
# What a binomial law is allowed to leave out at both ends together.
_LEFT_OUT = 1e-15


@dataclass(frozen=True)
class ResponseEstimate:
    """Estimated counts and shares of every true level, with standard errors and intervals.

    Two questions have two errors. *How many of those who answered?* is uncertain by the coins alone: `counts`,
    `standard_errors` and `interval`. *What share of the population they were drawn from at random?* is uncertain
    by the draw as well: `shares`, `share_standard_errors` and `share_interval`.

    The estimates are unbiased, so they may be below zero or above the number of people; intervals never are. An
    interval contains the truth with at least the stated probability for any number of answers, for each level but
    not for all levels at once. It contains the values that two one-sided tests, each at half of the error
    probability, do not reject: Clopper & Pearson's (1934), for the law of the randomized answers. It is exact for
    few answers, and therefore somewhat wide there.
    """

    levels: tuple[str, ...]
    answered: tuple[int, ...]
    truth: Fraction
    lie: Fraction

    @property
    def people(self) -> int:
        """The number of people who answered."""
        return sum(self.answered)

    @property
    def counts(self) -> Floats:
        """The estimated number of people of each level, (c - rn)/(p - r); they add up to all who answered."""
        seen = [(c - self.lie * self.people) / (self.truth - self.lie) for c in self.answered]
        return np.array([float(each) for each in seen])

    @property
    def standard_errors(self) -> Floats:
        """The standard error of each count, from an unbiased estimate of its variance that is never negative.

        Var(c) = nⱼ·p(1 - p) + (n - nⱼ)·r(1 - r). With the estimated nⱼ it becomes c(1 - p - r) + n·p·r.
        """
        p, r = self.truth, self.lie
        variances = [(c * (1 - p - r) + self.people * p * r) / (p - r) ** 2 for c in self.answered]
        return np.array([math.sqrt(each) for each in variances])

    @property
    def shares(self) -> Floats:
        """The estimated share of each level."""
        return self.counts / self.people

    @property
    def share_standard_errors(self) -> Floats:
        """The standard error of each share as an estimate of the population's, infinite for a single answer."""
        if self.people == 1:
            return np.full(len(self.levels), np.inf)
        seen = np.array(self.answered) / self.people
        return np.sqrt(seen * (1 - seen) / (self.people - 1)) / float(self.truth - self.lie)

    def interval(self, level: str, confidence: float = 0.95) -> tuple[int, int]:
        """Return the smallest and the largest number of those who answered that may have this level.

        >>> answers = ResponseEstimate(("yes", "no"), (40, 60), Fraction(3, 4), Fraction(1, 4))
        >>> answers.interval("yes")
        (12, 47)
        """
        check_half_width(confidence, 1)
        seen, n, tail = self.answered[self._place(level)], self.people, (1 - confidence) / 2
        p, r = float(self.truth), float(self.lie)

        def up_to(have: int) -> float:
            return _chance_up_to(seen, have, p, n - have, r)

        def from_there(have: int) -> float:
            return 1 - _chance_up_to(seen - 1, have, p, n - have, r)

        # More people of this level make more such answers likelier, so each test refuses one end of the line.
        return (
            _first(lambda have: from_there(have) > tail - _SLACK, n),
            n - _first(lambda lack: up_to(n - lack) > tail - _SLACK, n),
        )

    def share_interval(self, level: str, confidence: float = 0.95) -> tuple[float, float]:
        """Return the smallest and the largest share of this level that the population may have.

        >>> answers = ResponseEstimate(("yes", "no"), (40, 60), Fraction(3, 4), Fraction(1, 4))
        >>> low, high = answers.share_interval("yes")
        >>> round(low, 3), round(high, 3)
        (0.107, 0.506)
        """
        check_half_width(confidence, 1)
        seen, n, tail = self.answered[self._place(level)], self.people, (1 - confidence) / 2
        p, r = float(self.truth), float(self.lie)

        def answering(share: float) -> float:
            return r + (p - r) * share

        low = _crossing(lambda share: 1 - _chance_up_to(seen - 1, n, answering(share), 0, r) > tail - _SLACK)
        high = _crossing(lambda lack: _chance_up_to(seen, n, answering(1 - lack), 0, r) > tail - _SLACK)
        return low, 1 - high

    def _place(self, level: str) -> int:
        if level not in self.levels:
            raise InvalidDomain(f"{level!r} is not among the answers {listed(map(str, self.levels))}.")
        return self.levels.index(level)


def _chance_up_to(seen: int, first: int, p: float, second: int, r: float) -> float:
    """Return P(Bin(first, p) + Bin(second, r) ≤ seen)."""
    start, chances = _binomial(first, p)
    other_start, others = _binomial(second, r)
    below = np.concatenate([[0.0], np.cumsum(others)])
    room = seen - (start + np.arange(chances.size)) - other_start + 1
    return float(chances @ below[np.clip(room, 0, others.size)])


def _binomial(n: int, p: float) -> tuple[int, Floats]:
    """Return the probabilities of all but a negligible part of a binomial law, and the first value they belong to."""
    # Hoeffding's inequality: both tails beyond this hold at most what may be left out.
    reach = math.ceil(math.sqrt(n * math.log(2 / _LEFT_OUT) / 2)) + 1
    low, high = max(0, math.floor(n * p) - reach), min(n, math.ceil(n * p) + reach)
    k = np.arange(low, high, dtype=np.float64)
    # Each value's probability over the one before it; the largest of the products is made one.
    steps = np.log((n - k) / (k + 1)) + math.log(p) - math.log1p(-p)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    return low, weights / weights.sum()


def _first(holds: Callable[[int], bool], last: int) -> int:
    """Return the first of 0 … `last` from which on a condition holds, `last` if it never does."""
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _crossing(holds: Callable[[float], bool]) -> float:
    """Return a share from 0 to 1 just before which a condition does not hold yet, to 1e-12."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low
