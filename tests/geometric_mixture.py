"""A law of noise from outside the package: two discrete Laplace laws, mixed.

It is written as another package would write it. `tests/functional/test_new_law.py` registers it with one call.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from tabulary import PureDP
from tabulary.core import Floats, Loss
from tabulary.errors import InvalidNoise
from tabulary.noise import (
    DiscreteLaplace,
    Enclosure,
    IntegerNoise,
    Slots,
    divide,
    exponential,
    multiply,
    two_sided_slots,
)


@dataclass(frozen=True)
class GeometricMixture(IntegerNoise):
    r"""Noise that is discrete Laplace of `scale` b or, with probability `share` s, of scale 2b.

    P(k) = (1 - s) g(k; b) + s g(k; 2b) with g(k; b) = tanh(1/(2b)) exp(-\|k\|/b).

    Cost. For one step, g(k; b) / g(k + 1; b) lies between exp(-1/b) and exp(1/b), and so does the ratio for the scale
    2b, which is closer to one. A ratio of two sums lies between the smallest and the largest ratio of their terms. So
    P(k) / P(k + 1) lies between exp(-1/b) and exp(1/b): a change of one unit costs at most ε = 1/b, a change of c units
    at most c/b, and independent draws add up.

    The tails are heavier than those of a Laplace law. log P is convex on either side of zero: the law is not
    log-concave.
    """

    family: ClassVar[str] = "geometric-mixture"
    kind: ClassVar[str] = "mixture"
    formula: ClassVar[str] = "P(k) = (1 − s) g(k; b) + s g(k; 2b), g(k; b) ∝ e^{−|k| / b}"

    scale: Fraction
    share: Fraction = Fraction(1, 4)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", DiscreteLaplace(self.scale).scale)
        object.__setattr__(self, "share", Fraction(self.share))
        if not 0 < self.share < 1:
            raise InvalidNoise(f"the share of the wide law lies between 0 and 1, not at {self.share}.")

    @property
    def unit_costs(self) -> Mapping[type[Loss], Fraction]:
        return {PureDP: 1 / self.scale}

    @classmethod
    def costing(cls, currency: type[Loss], unit_cost: Fraction) -> Self:
        return cls(1 / unit_cost) if currency is PureDP else super().costing(currency, unit_cost)

    @property
    def reach(self) -> int:
        # The tail of the wide law is at most 2 exp(-h/(2b)).
        return math.ceil(140 * self.scale)

    def pmf(self, k: ArrayLike) -> Floats:
        narrow, wide = DiscreteLaplace(self.scale).pmf(k), DiscreteLaplace(2 * self.scale).pmf(k)
        return np.asarray((1 - float(self.share)) * narrow + float(self.share) * wide)

    def slots(self, bits: int) -> Slots:
        def tails(precision: int) -> list[Enclosure]:
            # P(X ≥ j) = q**j / (1 + q) for either law; the narrow one has the square of the other's q.
            wide = exponential(1 / (2 * self.scale), precision)
            terms = [(1 - self.share, multiply(wide, wide, precision)), (self.share, wide)]
            left = [
                multiply(_enclosed(share, precision), _tail(ratio, precision), precision)
                for share, ratio in terms
            ]
            found = [_sum(left)]
            while found[-1][1] >> (precision - bits):
                left = [
                    multiply(tail, ratio, precision) for tail, (_, ratio) in zip(left, terms, strict=True)
                ]
                found.append(_sum(left))
            return found

        return two_sided_slots(tails, bits)


def _tail(ratio: Enclosure, precision: int) -> Enclosure:
    """Return an enclosure of q / (1 + q)."""
    one = 1 << precision
    return divide(ratio, (one + ratio[0], one + ratio[1]), precision)


def _enclosed(share: Fraction, precision: int) -> Enclosure:
    numerator, denominator = ((n << precision, n << precision) for n in share.as_integer_ratio())
    return divide(numerator, denominator, precision)


def _sum(terms: list[Enclosure]) -> Enclosure:
    return sum(lower for lower, _ in terms), sum(upper for _, upper in terms)
