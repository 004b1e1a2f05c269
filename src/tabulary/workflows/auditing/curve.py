r"""How well two inputs can be distinguished, from the laws of the noise alone.

Two inputs move some numbers, each by a known size c. An observer of the noisy numbers computes the logarithm L of how
much likelier they are on one input than on the other. With noise k on that input, a number adds to L
the loss log P(k) - log P(k + c) of its law. L is a sum over independent numbers, so
its law is a convolution, and δ(t) = E (1 - e^{t - L})⁺ is the exact privacy curve of the two inputs: no event is
likelier than e^t times its probability on the other input plus δ(t).

The law of L is kept on a grid. The mass of each interval goes to its two ends, so that mass and likelihood of both
inputs stay what they are; δ then comes out no smaller than it is (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022).
Rounding continuous Gaussian noise is post-processing: the continuous law bounds the curve of the rounded one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.privacy import PureDP
from tabulary.errors import InvalidNoise
from tabulary.noise import IntegerNoise

_POINTS = 1 << 16
# Tails of this mass lie outside the grid; it is added to every δ.
_TAIL = 1e-12
_SLACK = 1e-9


@dataclass(frozen=True)
class Moved:
    """A number of values with noise of one law, all of which differ by the same size between two inputs."""

    law: IntegerNoise
    size: int
    numbers: int

    @property
    def pure(self) -> bool:
        """Whether the loss of a number is bounded: its noise earns pure ε."""
        return PureDP in self.law.unit_costs

    @property
    def spread(self) -> float:
        """The size in units of the noise: c·ε, the largest loss, for pure ε and c·√(2ρ) for ρ."""
        for currency, cost in self.law.unit_costs.items():
            return self.size * (float(cost) if currency is PureDP else math.sqrt(2 * cost))
        raise InvalidNoise(f"{self.law.words} earns no loss that could be audited. Nothing was drawn.")


@dataclass(frozen=True, eq=False)
class LossLaw:
    """The law of L on the likelier input: masses on a grid of losses."""

    losses: Floats
    masses: Floats

    def delta(self, threshold: float) -> float:
        """Return δ at ε = `threshold`."""
        above = self.losses > threshold
        return float((self.masses[above] * -np.expm1(threshold - self.losses[above])).sum()) + _SLACK

    def above(self, threshold: float) -> float:
        """Return the probability that L is above a threshold."""
        return float(self.masses[self.losses > threshold].sum())

    def below(self, threshold: float) -> float:
        """Return the probability that L is below a threshold."""
        return float(self.masses[self.losses < threshold].sum())

    def quantile(self, probability: float) -> float:
        """Return the smallest loss of the grid that L does not exceed with this probability."""
        place = int(np.searchsorted(np.cumsum(self.masses), probability * self.masses.sum()))
        return float(self.losses[min(place, self.losses.size - 1)])


def privacy_curve(moved: Sequence[Moved]) -> LossLaw:
    """Return the law of L if every number has the noise that its law says: its δ is the exact curve, rounded up.

    >>> from tabulary.noise import DiscreteLaplace
    >>> law = privacy_curve([Moved(DiscreteLaplace(Fraction(1, 2)), 1, 1)])
    >>> law.delta(2.0) < 1e-6, round(law.delta(0.0), 4), round(math.tanh(1), 4)
    (True, 0.7616, 0.7616)
    """
    grid = _grid(moved)

    def masses(each: Moved) -> Floats:
        last = each.law.largest_noise(grid, each.size)
        if last is None:
            return _listed_masses(each, grid)
        here, there = (each.law.unrounded_cdf(last, shift) for shift in (0, each.size))
        near, far = np.diff(here), np.diff(there)
        # Both ends of an interval carry its mass and, times e^-L, its mass on the other input.
        upper = np.clip((near - far * np.exp(grid[:-1])) / -np.expm1(grid[0] - grid[1]), 0, near)
        return _spread_out(here[0], near, upper, 1 - here[-1])

    return _convolved(moved, grid, masses)


def statistic_law(moved: Sequence[Moved], factor: Fraction) -> LossLaw:
    """Return the law of L, computed as above, if the noise that is drawn has only `factor` times its scale.

    To plan how many draws show this: good to a fraction of a grid interval, and not a bound.
    """
    grid = _grid(moved)

    def masses(each: Moved) -> Floats:
        drawn = each.law.narrowed(factor)
        reached_noise = each.law.largest_noise(grid, each.size)
        if reached_noise is None:
            return _listed_masses(each, grid, drawn)
        last = np.floor(reached_noise)
        reached = IntegerNoise.unrounded_cdf(drawn, last, 0)
        near = np.diff(reached)
        # The mean loss of an interval is about that of its middle noise.
        ends = (each.law.loss(k, each.size) for k in (last[:-1] + 1, last[1:]))
        with np.errstate(invalid="ignore"):
            middle = np.nan_to_num(sum(ends) / 2)
        upper = np.clip((middle - grid[:-1]) / (grid[1] - grid[0]), 0, 1) * near
        return _spread_out(reached[0], near, upper, 1 - reached[-1])

    return _convolved(moved, grid, masses)


def _grid(moved: Sequence[Moved]) -> Floats:
    """Return losses that hold all but a negligible part of the law of L, zero among them."""
    reach = -math.log(_TAIL)
    # A loss below -s has a probability of at most e^-s, whatever the law.
    low, high = reach, 0.0
    squares = sum(m.numbers * m.spread**2 for m in moved)
    if all(m.pure for m in moved):
        largest = sum(m.numbers * m.spread for m in moved)
        # Hoeffding: every number adds between -c/b and c/b, and less than both c/b and (c/b)² on average.
        mean = sum(m.numbers * min(m.spread, m.spread**2) for m in moved)
        low, high = min(low, largest), min(largest, mean + math.sqrt(2 * reach * squares))
    else:
        high = squares / 2 + math.sqrt(2 * reach * squares)
    # Every number may be a step further out on the grid than it is; of many, about as many are further in.
    numbers = sum(m.numbers for m in moved)
    spare = math.ceil(min(numbers, 16 * math.sqrt(numbers))) + 2
    step = (low + high) / (_POINTS - 2 * spare)
    return np.asarray(step * (np.arange(_POINTS) - math.ceil(low / step) - spare), dtype=np.float64)


def _spread_out(first: float, near: Floats, upper: Floats, last: float) -> Floats:
    """Return the masses of the points of a grid: what lies before it, each interval parted, and what lies beyond."""
    found = np.zeros(near.size + 1)
    found[0] = first
    found[1:] += upper
    found[:-1] += near - upper
    found[-1] += max(last, 0.0)
    return found


def _listed_masses(each: Moved, grid: Floats, drawn: IntegerNoise | None = None) -> Floats:
    """Return the masses of a law that is listed value by value, with draws of `drawn` if they are not of the law.

    The mass of a value goes to the two points about its loss, so that its mass on both inputs stays what it is.
    """
    law = drawn or each.law
    noise = np.arange(-each.law.reach - each.size, each.law.reach + 1)
    losses = np.clip(each.law.loss(noise, each.size), grid[0], grid[-1])
    place = np.clip(np.searchsorted(grid, losses, side="right") - 1, 0, grid.size - 2)
    mass = law.pmf(noise)
    share = np.expm1(grid[place] - losses) / np.expm1(grid[0] - grid[1])
    found = np.bincount(place + 1, mass * share, grid.size)
    return np.asarray(found + np.bincount(place, mass * (1 - share), grid.size))


def _convolved(moved: Sequence[Moved], grid: Floats, masses: Callable[[Moved], Floats]) -> LossLaw:
    # Where the loss is zero comes first, so that adding losses adds places; the grid is long enough not to wrap.
    zero = int(np.argmin(np.abs(grid)))
    transform = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for each in moved:
        transform *= np.fft.rfft(np.roll(masses(each), -zero)) ** each.numbers
    total = np.roll(np.fft.irfft(transform, _POINTS), zero)
    return LossLaw(grid, np.maximum(total, 0))
