r"""How well two inputs can be told apart, from the laws of the noise alone.

Two inputs move some numbers, each by a known size c. An observer of the noisy numbers computes the logarithm L of how
much likelier they are on one input than on the other. With noise k on that input, a number adds to L
(\|k + c\| - \|k\|)/b for Laplace noise and (2kc + c²)/(2σ²) for Gaussian noise. L is a sum over independent numbers, so
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
from numpy.typing import ArrayLike
from scipy.special import ndtr

from tabulary.core.arrays import Floats
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise, RoundedGaussian

_POINTS = 1 << 16
# Tails of this mass lie outside the grid; it is added to every δ.
_TAIL = 1e-12
_SLACK = 1e-9
_LARGEST = float(1 << 62)

Law = DiscreteLaplace | DiscreteGaussian | RoundedGaussian


@dataclass(frozen=True)
class Moved:
    """So many numbers with noise of one law that two inputs move by the same size."""

    law: Law
    size: int
    numbers: int

    @property
    def spread(self) -> float:
        """Return the size in units of the noise: c/b, or c/σ."""
        if isinstance(self.law, DiscreteLaplace):
            return self.size / float(self.law.scale)
        return self.size / math.sqrt(self.law.variance_parameter)

    def loss(self, noise: ArrayLike) -> Floats:
        """Return what a number adds to L where its noise is `noise` on the likelier input."""
        k = np.asarray(noise, dtype=np.float64)
        if isinstance(self.law, DiscreteLaplace):
            return np.asarray((np.abs(k + self.size) - np.abs(k)) / float(self.law.scale))
        return np.asarray((2 * k + self.size) * self.size / (2 * float(self.law.variance_parameter)))

    def last(self, losses: Floats) -> Floats:
        """Return the largest real noise whose loss is not above each of `losses`, infinite where there is none."""
        if isinstance(self.law, DiscreteLaplace):
            inner = (losses * float(self.law.scale) - self.size) / 2
            return np.where(
                losses >= self.spread, np.inf, np.where(losses < -self.spread, -np.inf, np.minimum(inner, 0))
            )
        return np.asarray(losses * float(self.law.variance_parameter) / self.size - self.size / 2)


def narrowed(law: IntegerNoise, factor: Fraction) -> Law:
    """Return the law with its scale times `factor`.

    >>> narrowed(DiscreteGaussian(100), Fraction(7, 10))
    DiscreteGaussian(variance_parameter=Fraction(49, 1))
    """
    match law:
        case DiscreteLaplace(scale=scale):
            return DiscreteLaplace(scale * factor)
        case DiscreteGaussian(variance_parameter=square) | RoundedGaussian(variance_parameter=square):
            return type(law)(square * factor**2)
    raise TypeError(f"no law of a plan: {law!r}")


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

    >>> law = privacy_curve([Moved(DiscreteLaplace(Fraction(1, 2)), 1, 1)])
    >>> law.delta(2.0) < 1e-6, round(law.delta(0.0), 4), round(math.tanh(1), 4)
    (True, 0.7616, 0.7616)
    """
    grid = _grid(moved)

    def masses(each: Moved) -> Floats:
        here, there = (_probability(each, each.last(grid), shift) for shift in (0, each.size))
        near, far = np.diff(here), np.diff(there)
        # Both ends of an interval carry its mass and, times e^-L, its mass on the other input.
        upper = (near - far * np.exp(grid[:-1])) / -np.expm1(grid[0] - grid[1])
        upper = np.clip(upper, 0, near)
        found = np.zeros_like(grid)
        found[0] = here[0]
        found[1:] += upper
        found[:-1] += near - upper
        found[-1] += max(1 - here[-1], 0.0)
        return found

    return _convolved(moved, grid, masses)


def statistic_law(moved: Sequence[Moved], factor: Fraction) -> LossLaw:
    """Return the law of L, computed as above, if the noise that is drawn has only `factor` times its scale.

    To plan how many draws show this: good to a fraction of a grid interval, and not a bound.
    """
    grid = _grid(moved)

    def masses(each: Moved) -> Floats:
        last = np.floor(each.last(grid))
        drawn = Moved(narrowed(each.law, factor), each.size, each.numbers)
        reached = _probability(drawn, last, 0, rounded=True)
        near = np.diff(reached)
        # The mean loss of an interval is about that of its middle noise.
        ends = [
            np.clip(k, -each.size, 0) if isinstance(each.law, DiscreteLaplace) else k
            for k in (last[:-1] + 1, last[1:])
        ]
        with np.errstate(invalid="ignore"):
            middle = np.nan_to_num((each.loss(ends[0]) + each.loss(ends[1])) / 2)
        upper = np.clip((middle - grid[:-1]) / (grid[1] - grid[0]), 0, 1) * near
        found = np.zeros_like(grid)
        found[0] = reached[0]
        found[1:] += upper
        found[:-1] += near - upper
        found[-1] += max(1 - reached[-1], 0.0)
        return found

    return _convolved(moved, grid, masses)


def _grid(moved: Sequence[Moved]) -> Floats:
    """Return losses that hold all but a negligible part of the law of L, zero among them."""
    reach = -math.log(_TAIL)
    # A loss below -s has a probability of at most e^-s, whatever the law.
    low, high = reach, 0.0
    squares = sum(m.numbers * m.spread**2 for m in moved)
    if all(isinstance(m.law, DiscreteLaplace) for m in moved):
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


def _probability(each: Moved, noise: Floats, shift: int, *, rounded: bool = False) -> Floats:
    """Return how likely the noise of a number is at most each of `noise`, moved by `shift`."""
    if isinstance(each.law, RoundedGaussian) and not rounded:
        return np.asarray(ndtr((noise + shift) / math.sqrt(each.law.variance_parameter)))
    whole = np.clip(np.floor(noise), -_LARGEST, _LARGEST)
    reached = each.law.cdf(whole.astype(np.int64) + shift)
    return np.where(np.isposinf(noise), 1.0, np.where(np.isneginf(noise), 0.0, reached))


def _convolved(moved: Sequence[Moved], grid: Floats, masses: Callable[[Moved], Floats]) -> LossLaw:
    # Where the loss is zero comes first, so that adding losses adds places; the grid is long enough not to wrap.
    zero = int(np.argmin(np.abs(grid)))
    transform = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for each in moved:
        transform *= np.fft.rfft(np.roll(masses(each), -zero)) ** each.numbers
    total = np.roll(np.fft.irfft(transform, _POINTS), zero)
    return LossLaw(grid, np.maximum(total, 0))
