"""The Laplace law on the scale of square roots, exactly."""

import math
import operator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.exact_numbers import exact_fraction
from tabulary.errors import InvalidNoise
from tabulary.noise.checks import as_integers, sample_in_pieces
from tabulary.noise.entropy import Entropy, fresh_words
from tabulary.noise.inversion import WORD_BITS, Inversion
from tabulary.noise.root_blocks import RootBlocks, root_distances
from tabulary.noise.summation import POINTS, sum_rule

# Within these bounds a draw beyond 64 bits has a probability below 2**-4000, and doubles hold every moment.
_RATE_BITS = 20
_CENTRE_BITS = 50

# In doubles, weights below exp(-750) are zero. Runs over which the exponent moves by 8 are summed to rounding.
_REACH = 750
_STRIDE = 8


@dataclass(frozen=True)
class SquareRootLaplace:
    r"""The law with P(b) ∝ exp(-c·\|√b - √a\|) on b = 0, 1, 2, …, c = `rate` and a = `centre`.

    The draw replaces the count a; it is not added to it. With c = ε/2 it is the exponential mechanism for the loss
    \|√b - √a\|, (5.4) of Rinott, O'Keefe, Shlomo & Skinner (2018): 2c-differentially private for a count that one
    record changes by at most one, because no root of a count then moves by more than one. Counts above a few move far
    less, so the law is much wider than its promise asks for. It is biased upwards, by about 6/c² where c is small or
    a large.

    **How it is drawn.** The line is cut into blocks by the distance of √b from √a, in steps of w, the largest
    power of two with c·w ≤ 1/2. The edges lie at (√a ± i·w)², and which integer is next to each is decided
    by integer roots. Block i is proposed with the weight 2**k·exp(-c·w·i) by exact inversion, 2**k the
    first power of two that is not below its size. Then k bits choose a value. A value beyond the end of the block is
    proposed again; any other is kept with the probability exp(-c·(\|√b - √a\| - i·w)). The result has P(b) ∝
    exp(-c·\|√b - √a\|), with an unbounded tail. At least exp(-1/2)/2 = 0.30 of all proposals are kept, for every rate
    and every centre.

    A draw costs three to six 64-bit words, a new centre some seven milliseconds. The time of a draw depends on the
    centre; for added noise it does not depend on the count. The centre is the count to protect, so neither `repr` nor
    `describe` shows it. Probabilities and moments are doubles, good to 1e-12.

    >>> law = SquareRootLaplace("1/4", 10)
    >>> law
    SquareRootLaplace(rate=Fraction(1, 4))
    >>> round(law.mean, 2), round(law.variance ** 0.5, 2), law.pmf([0, 10]).round(4).tolist()
    (103.44, 149.93, [0.0069, 0.0153])
    """

    family: ClassVar[str] = "square-root-laplace"

    rate: Fraction
    centre: int = field(repr=False)

    def __post_init__(self) -> None:
        rate = exact_fraction(self.rate, name="rate", error=InvalidNoise)
        if not Fraction(1, 1 << _RATE_BITS) <= rate <= 1 << _RATE_BITS:
            raise InvalidNoise(
                f"the rate of a square-root Laplace law must lie between 2**-{_RATE_BITS} and 2**{_RATE_BITS}, "
                "and the given one does not. Nothing was drawn. The rate is half of ε: spend another budget."
            )
        if not _is_count(self.centre):
            # The centre is confidential: the message must not repeat it.
            raise InvalidNoise(
                f"the centre of a square-root Laplace law must be a count: a whole number from 0 to "
                f"2**{_CENTRE_BITS}. The given one is not. Nothing was drawn. Round it or count in "
                "other units."
            )
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "centre", operator.index(self.centre))

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent draws of b from exactly this law.

        >>> from tabulary.noise import SystemEntropy
        >>> SquareRootLaplace(1, 7).sample((2, 4), SystemEntropy()).shape
        (2, 4)
        """
        blocks, inversion = _proposal(self.rate, self.centre)

        def draw(count: int) -> NDArray[np.int64]:
            drawn = np.empty(count, dtype=np.int64)
            filled = 0
            while filled < count:
                places = inversion.draw(count - filled, entropy)
                starts, sizes, bits = blocks.described(places)
                # In two steps, because a word cannot be shifted by all of its bits.
                words = fresh_words(entropy, places.size) >> np.uint64(1)
                offsets = (words >> (WORD_BITS - 1 - bits).astype(np.uint64)).astype(np.int64)
                inside = np.flatnonzero(offsets < sizes)
                values = (starts + offsets)[inside]
                values = values[blocks.keep(places[inside], values, entropy)]
                drawn[filled : filled + values.size] = values
                filled += values.size
            return drawn

        return sample_in_pieces(draw, size)

    @property
    def normaliser(self) -> float:
        r"""Σ exp(-c·\|√b - √a\|) over all b: the sum that P(b) is divided by."""
        return _moments(self.rate, self.centre)[0]

    @property
    def mean(self) -> float:
        """The expected value of b; `mean` - `centre` is the bias."""
        return self.centre + _moments(self.rate, self.centre)[1]

    @property
    def variance(self) -> float:
        """The variance of b, about its mean."""
        return _moments(self.rate, self.centre)[2]

    def pmf(self, b: ArrayLike) -> NDArray[np.float64]:
        """Return P(b) for every integer b; zero below zero.

        >>> SquareRootLaplace(2, 1).pmf([-1, 0, 1, 4]).round(4).tolist()
        [0.0, 0.0611, 0.4515, 0.0611]
        """
        shifts = as_integers(b) - self.centre
        return np.where(shifts >= -self.centre, self._weights(shifts) / self.normaliser, 0.0)

    def cdf(self, b: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of all values up to b, for every integer b.

        >>> SquareRootLaplace(2, 1).cdf([-1, 0, 1, 10**6]).round(4).tolist()
        [0.0, 0.0611, 0.5126, 1.0]
        """
        runs = _runs(self.rate, self.centre)
        ends = np.clip(as_integers(b) + (1 - self.centre), runs[0], runs[-1]).astype(np.int64)
        cuts = np.union1d(runs, ends)
        _, weights = self._summands(cuts)
        below = np.concatenate([[0.0], np.cumsum(np.sum(weights, axis=1))])
        return np.minimum(below[np.searchsorted(cuts, ends)] / self.normaliser, 1.0)

    def describe(self) -> dict[str, str]:
        """Return the family and the exact rate: all but the centre, which is confidential.

        >>> SquareRootLaplace("1/4", 12).describe()
        {'family': 'square-root-laplace', 'rate': '1/4'}
        """
        return {"family": self.family, "rate": str(self.rate)}

    def _weights(self, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Return exp(-c·\|√b - √a\|) for b = a + shift, the difference of roots without cancellation."""
        return np.asarray(np.exp(-float(self.rate) * root_distances(shifts, self.centre)))

    def _summands(self, cuts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the points, as shifts, and the weights that sum this law over the runs between `cuts`."""
        points, weights = sum_rule(np.diff(cuts))
        points += cuts[:-1, np.newaxis]
        return points, weights * self._weights(points)


def _is_count(value: object) -> bool:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return not isinstance(value, bool | np.bool_) and 0 <= number <= 1 << _CENTRE_BITS


@lru_cache(maxsize=32)
def _proposal(rate: Fraction, centre: int) -> tuple[RootBlocks, Inversion]:
    blocks = RootBlocks(rate, centre)
    return blocks, Inversion(blocks.slots)


@lru_cache(maxsize=32)
def _runs(rate: Fraction, centre: int) -> NDArray[np.int64]:
    """Return where the runs meet over which the law is smooth, as shifts from the centre, ascending.

    On no run does the exponent move by more than 8; none crosses the centre, where the law has its edge; none is
    longer than its distance from zero, where the root has its branch point, unless it is short enough to be
    summed as it is. The rest beyond the last run is below the smallest double.
    """
    root = math.sqrt(centre)
    strides = _STRIDE / float(rate) * np.arange(-math.ceil(_REACH / _STRIDE), math.ceil(_REACH / _STRIDE) + 1)
    strides = np.maximum(strides, -root)
    shifts = np.rint(strides * (2 * root + strides)).astype(np.int64)
    doubled = POINTS * 2 ** np.arange(WORD_BITS - POINTS.bit_length(), dtype=np.int64) - centre
    # The last run has at least one integer in it, however steep the law.
    shifts[-1] += 1
    found = np.union1d(shifts, doubled[(doubled > shifts[0]) & (doubled < shifts[-1])])
    found.flags.writeable = False
    return found


@lru_cache(maxsize=32)
def _moments(rate: Fraction, centre: int) -> tuple[float, float, float]:
    """Return the normaliser, the mean of b - a, and the variance."""
    points, weights = SquareRootLaplace(rate, centre)._summands(_runs(rate, centre))
    normaliser = math.fsum(weights.ravel())
    bias = math.fsum((weights * points).ravel()) / normaliser
    variance = math.fsum((weights * (points - bias) ** 2).ravel()) / normaliser
    return normaliser, bias, variance
