"""The parts of a law of noise: its cost, moments, probabilities, likelihood, description and words.

A law that is added to counts derives from `IntegerNoise`. It must state `family`, `reach`, `pmf`, and `slots` or
`sample`; `unit_costs` and `costing` let it spend a loss. Everything else is computed from the probabilities of the
values within `reach`. A law overrides what it knows in closed form, and a wide law must.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.arrays import Floats, Integers
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.privacy import Loss, PureDP
from tabulary.errors import InvalidNoise
from tabulary.noise.checks import as_integers, check_half_width, sample_in_pieces
from tabulary.noise.count_likelihood import COLUMN, CountLikelihood
from tabulary.noise.entropy import Entropy
from tabulary.noise.inversion import Inversion
from tabulary.noise.slots import Slots
from tabulary.noise.sums import NEGLIGIBLE, check_sum_confidence, smallest

# A law with more values than this is not listed value by value.
_MOST_VALUES = 1 << 18
# The sums of several draws are listed if draws times values is at most this.
_MOST_SUMMED = 1 << 17
# This many exponentials are computed at a time.
_PIECE = 1 << 22
# Integers beyond this have no probability.
_LARGEST = float(1 << 62)


class AddedNoise(ABC):
    """A law of the integer that is added to a count, the same for every count; drawn exactly and described in public.

    It need not be symmetric or unbiased. A description holds no seed and no draw: only what an analyst needs to model
    the noise.
    """

    log_concave: ClassVar[bool] = False
    """Whether log P(X = k) is a concave function of k. Then a likelihood has one peak, and ratios are ordered."""

    @abstractmethod
    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> Integers:
        """Return independent draws from exactly this law, made from the words of `entropy`."""

    @property
    @abstractmethod
    def support(self) -> Integers:
        """Every value the noise can take, ascending; for an unbounded law, all but those too unlikely to matter."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of the integer law, not of the continuous one it resembles."""

    @abstractmethod
    def pmf(self, k: ArrayLike) -> Floats:
        """Return P(X = k) for every integer k."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the family and its exact parameters, ready for JSON."""

    def log_pmf(self, k: ArrayLike) -> Floats:
        """Return log P(X = k) for every integer k, -inf where it is zero."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.pmf(k)))

    def range_of_sum(self, terms: int, left_out: float) -> tuple[int, int]:
        """Return how far below and above zero a sum of `terms` draws lies, except with probability `left_out`."""
        support = self.support
        return -terms * int(support[0]), terms * int(support[-1])

    def likelihood(self, terms: int = 1) -> CountLikelihood:
        """Return log P(x | a) of a count a that was released as x, with `terms` draws added to it."""
        return _listed_likelihood(self, terms)

    def likelihood_at_minimum(self, minimum: int) -> CountLikelihood:
        """Return log P(a + X ≤ minimum): a value that was published as the minimum was that or less."""
        support = self.support
        below = np.cumsum(self.pmf(support))
        counts = np.arange(minimum - int(support[0]) + 1)
        table = np.log(below[np.clip(minimum - counts - int(support[0]), 0, below.size - 1)])
        return CountLikelihood(COLUMN, slope=_slope(self, table), table=table)


class IntegerNoise(AddedNoise):
    """A symmetric law on the integers, the same for every count.

    Its parameters are the fields of a frozen dataclass, all of them exact fractions.
    """

    family: ClassVar[str]
    """The name under which the law is registered and described."""

    kind: ClassVar[str] = ""
    """One word for a table of plans, such as Laplace."""

    formula: ClassVar[str] = ""
    """How P(k) depends on k, with exponents in braces: e^{−|k| / scale}."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """The bound of the law, or an h with P(|X| > h) below 1e-30."""

    # What a change of a count costs.

    @property
    def unit_costs(self) -> Mapping[type[Loss], Fraction]:
        """The largest cost of a change of one unit, in every currency that the law supports.

        A change of c units costs c times as much ε, or c² times as much ρ; draws that are independent add up.
        """
        return {}

    def unit_cost(self, currency: type[Loss]) -> Fraction:
        """Return the cost of a change of one unit in a currency; raise InvalidNoise if the law does not support it."""
        if currency not in self.unit_costs:
            raise InvalidNoise(
                f"{self.words} does not earn a loss of {currency.__name__}. Nothing was drawn. Use a law that does."
            )
        return self.unit_costs[currency]

    @classmethod
    def costing(cls, currency: type[Loss], unit_cost: Fraction) -> Self:
        """Return the law of this family for which a change of one unit costs `unit_cost`, or raise InvalidNoise."""
        raise InvalidNoise(
            f"no scale of {cls.family} noise is known to spend a loss of {currency.__name__}. Nothing was drawn. "
            "Use a law that spends it."
        )

    def narrowed(self, factor: Fraction) -> Self:
        """Return the law with its scale times `factor`.

        >>> from tabulary.noise import DiscreteGaussian
        >>> DiscreteGaussian(100).narrowed(Fraction(7, 10))
        DiscreteGaussian(variance_parameter=Fraction(49, 1))
        """
        for currency, cost in self.unit_costs.items():
            return self.costing(currency, cost / factor ** (1 if currency is PureDP else 2))
        raise InvalidNoise(f"{self.words} has no scale that a loss depends on. Nothing was drawn.")

    def loss(self, noise: ArrayLike, shift: ArrayLike) -> Floats:
        """Return log P(X = k) - log P(X = k + shift), k = `noise`: the privacy loss between two counts."""
        k = np.asarray(noise)
        return np.asarray(self.log_pmf(k) - self.log_pmf(k + np.asarray(shift)))

    def largest_noise(self, losses: Floats, shift: int) -> Floats | None:
        """Return the largest real noise with a loss of at most each of `losses`, infinite where there is none.

        None for a law whose loss does not rise with the noise, or is not known in closed form.
        """
        return None

    def unrounded_cdf(self, noise: Floats, shift: int) -> Floats:
        """Return the probability of at most noise + shift, for real noise.

        A rounded continuous law gives the probability of the continuous one, whose loss bounds that of the rounded.
        """
        whole = np.clip(np.floor(noise), -_LARGEST, _LARGEST)
        reached = self.cdf(whole.astype(np.int64) + shift)
        return np.where(np.isposinf(noise), 1.0, np.where(np.isneginf(noise), 0.0, reached))

    # How it is drawn.

    def slots(self, bits: int) -> Slots:
        """Return the boundaries of the values in the unit interval, as certain floors; see `tabulary.noise.slots`."""
        raise InvalidNoise(f"{self.family} noise has no exact sampler. Nothing was drawn.")

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> Integers:
        """Return independent draws from exactly this law, by inversion."""
        return sample_in_pieces(partial(_inversion(self).draw, entropy=entropy), size)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return one law for each way this family draws, such as a narrow and a wide one."""
        return ()

    # Probabilities and moments.

    @property
    def support(self) -> Integers:
        """The values within `reach`, ascending."""
        if 2 * self.reach >= _MOST_VALUES:
            raise InvalidNoise(
                f"{self.words} has {2 * self.reach + 1:,} values, too many to list one by one. Nothing was computed. "
                "Use a narrower noise, or a law that has a closed form."
            )
        return np.arange(-self.reach, self.reach + 1)

    @property
    def variance(self) -> float:
        """The variance of the integer law, not of the continuous one it resembles."""
        return float(np.sum(_probabilities(self) * self.support.astype(np.float64) ** 2))

    @property
    def fourth_cumulant(self) -> float:
        """The excess of the tails over normal ones: κ₄; 0 for lighter tails, which count as normal."""
        fourth = float(_probabilities(self) @ self.support.astype(np.float64) ** 4)
        return max(0.0, fourth - 3 * self.variance**2)

    def cdf(self, k: ArrayLike) -> Floats:
        """Return P(X ≤ k) for every integer k."""
        reach = self.reach
        places = np.clip(as_integers(k) + reach + 1, 0, 2 * reach + 1).astype(np.intp)
        below = np.concatenate([[0.0], np.cumsum(_probabilities(self))])
        # The last sum is one up to rounding; the law ends there.
        return np.where(places == below.size - 1, 1.0, below[places])

    def half_width(self, confidence: float, terms: int = 1) -> int:
        r"""Return the smallest h with P(\|X₁ + … + X_terms\| ≤ h) ≥ `confidence`.

        By Fourier transform on a circle that is large enough by Hoeffding's inequality: the probability of wrapping
        around is at most 1e-17.
        """
        check_half_width(confidence, terms)
        single = self.reach
        reach = single * terms
        within = _probabilities(self)
        if terms > 1:
            check_sum_confidence(confidence)
            hoeffding = math.ceil(single * math.sqrt(2 * terms * math.log(2 / NEGLIGIBLE)))
            reach = max(single, min(reach, hoeffding))
            circle = np.zeros(2 * reach + 1)
            circle[reach - single : reach + single + 1] = within
            transformed = np.fft.rfft(np.fft.ifftshift(circle)) ** terms
            within = np.fft.fftshift(np.fft.irfft(transformed, circle.size))
        # What lies within ±h, for every h.
        sums = np.cumsum(np.concatenate([within[reach : reach + 1], 2 * within[reach + 1 :]]))
        return smallest(lambda h: h >= reach or bool(sums[h] >= confidence), upper=reach)

    def characteristic(self, t: ArrayLike) -> Floats:
        """Return E exp(itX) for every real t; it is real because the law is symmetric."""
        angles = np.asarray(t, dtype=np.float64)
        probabilities = _probabilities(self)
        positive = probabilities[self.reach + 1 :]
        values = np.arange(1, self.reach + 1)
        cosines = _summed(lambda some: np.cos(some[:, np.newaxis] * values), angles, positive)
        return np.asarray(probabilities[self.reach] + 2 * cosines)

    def log_moment_bound(self, t: ArrayLike) -> Floats:
        """Return an upper bound of log E exp(tX) for every real t, infinite where there is none.

        By default the bound of the law within `reach`, which differs from this law in probability by at most 1e-30.
        """
        tilts = np.abs(np.asarray(t, dtype=np.float64))
        support = self.support
        # The largest exponent is taken out, so that none overflows.
        found = _summed(
            lambda some: np.exp(some[:, np.newaxis] * support - (some * self.reach)[:, np.newaxis]),
            tilts,
            _probabilities(self),
        )
        return np.asarray(tilts * self.reach + np.log(found))

    @property
    def largest_tilt(self) -> float:
        """The largest t at which a moment bound is of use."""
        return 20 / math.sqrt(self.variance)

    def log_absolute_moment_bound(self, t: float) -> float:
        r"""Return an upper bound of log E exp(t\|X\|), t > 0."""
        # exp(t|x|) ≤ exp(tx) + exp(-tx).
        return math.log(2) + float(self.log_moment_bound(t))

    def absolute_sum_tail(self, terms: int) -> Callable[[int], float] | None:
        r"""Return the function h ↦ P(\|X₁\| + … + \|X_terms\| > h) where it has a closed form, otherwise None."""
        return None

    def range_of_sum(self, terms: int, left_out: float) -> tuple[int, int]:
        """Return how far below and above zero a sum of `terms` draws lies, except with probability `left_out`."""
        reach = self.half_width(1 - left_out, terms)
        return reach, reach

    # Its description and its words.

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Return the names of the exact parameters."""
        # Every law is a dataclass; its base class cannot declare that.
        described: Any = cls
        return tuple(field.name for field in fields(described))

    def describe(self) -> dict[str, str]:
        """Return the family and its exact parameters, ready for JSON.

        >>> from tabulary.noise import DiscreteLaplace
        >>> DiscreteLaplace("1/3").describe()
        {'family': 'discrete-laplace', 'scale': '1/3'}
        """
        return {"family": self.family} | {name: str(getattr(self, name)) for name in self.parameters()}

    @property
    def words(self) -> str:
        """The law and its parameters for a reader."""
        named = [f"{name.replace('_', ' ')} {shown(getattr(self, name))}" for name in self.parameters()]
        return ", ".join([self.family.replace("-", " "), *named])


def shown(value: Fraction) -> str:
    """Return a parameter for a reader: exactly where that is short, otherwise six digits.

    >>> shown(Fraction(7, 2)), shown(Fraction(10**15, 7))
    ('3.5', '≈ 1.42857e+14')
    """
    text = show_fraction(value)
    return text if len(text) <= 12 else f"≈ {float(value):.6g}"


@lru_cache(maxsize=64)
def _probabilities(noise: IntegerNoise) -> Floats:
    """Return the probabilities of every value of the support, ascending."""
    found = noise.pmf(noise.support)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=256)
def _inversion(noise: IntegerNoise) -> Inversion:
    return Inversion(noise.slots)


@lru_cache(maxsize=64)
def _listed_likelihood(noise: AddedNoise, terms: int) -> CountLikelihood:
    """Return log p(x - a) for every possible count a of x."""
    support = noise.support
    if terms == 1:
        table = noise.log_pmf(support)
    else:
        if terms * support.size > _MOST_SUMMED:
            raise InvalidNoise(
                f"sums of {terms} draws of a noise of {support.size:,} values have too many values to list. Use a "
                "table in which every cell was measured by itself."
            )
        single = noise.pmf(support)
        values = single
        for _ in range(terms - 1):
            values = np.convolve(values, single)
        with np.errstate(divide="ignore"):
            table = np.log(values)
    slope = _slope(noise, table)
    if noise.log_concave and slope > -math.inf:
        return CountLikelihood.symmetric(np.exp(table[table.size // 2 :]), curvature=0.0, fallback=slope)
    highest = int(support[-1]) * terms
    return CountLikelihood(
        COLUMN, slope=slope, table=np.ascontiguousarray(table[::-1]), first=-highest, moved=True
    )


def _slope(noise: AddedNoise, table: Floats) -> float:
    """Return how a table of log-probabilities continues: it ends for a law with a bound."""
    endless = table.size > 1 and float(noise.pmf(noise.support[-1] + 1)) > 0
    return (
        min(float(table[-1] - table[-2]), -1e-9) if endless and np.isfinite(table[-2:]).all() else -math.inf
    )


def _summed(terms: Callable[[Floats], Floats], arguments: Floats, weights: Floats) -> Floats:
    """Return Σ weight · term for every argument, a few at a time, so that they fit the memory."""
    flat = arguments.reshape(-1)
    pieces = np.array_split(flat, max(1, flat.size * weights.size // _PIECE))
    return np.concatenate([terms(piece) @ weights for piece in pieces]).reshape(arguments.shape)
