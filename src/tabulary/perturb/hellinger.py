"""The perturbation by Laplace noise on the scale of square roots."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.privacy import PureDP
from tabulary.errors import InvalidNoise
from tabulary.noise import Entropy, SquareRootLaplace
from tabulary.perturb.exact_delta import checked_epsilon
from tabulary.perturb.perturbation import Perturbation, Row, checked_count

_SMALLEST, _LARGEST = Fraction(1, 20), Fraction(1000)
_MOST_VALUES = 20_000_000

# A row ends where the exponent has fallen by this much; see `Hellinger.row`.
_REACH = 42.0
_LEFT_OUT = (_REACH + 2) * math.exp(-_REACH)

# Sums of up to 10⁵ like terms by a recurrence are good to ten digits; δ and ε are moved up by this share.
_SLACK = 1e-10
_FIRST_PAIRS = 64


@dataclass(frozen=True)
class Added:
    """What a square-root Laplace law adds to its centre: b - a instead of b."""

    law: SquareRootLaplace

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent draws from exactly this law."""
        return self.law.sample(size, entropy) - self.law.centre


@dataclass(frozen=True, init=False)
class Hellinger(Perturbation):
    r"""Publishes b = 0, 1, 2, … for a with probability ∝ exp(-ε\|√b - √a\| / 2).

    Rinott, O'Keefe, Shlomo & Skinner (2018), (5.4): the exponential mechanism for the loss l3. By their Theorem
    4.1 it is ε-differentially private for counts that one person changes by one. Nothing negative is published.
    Biased upward, for ε up to 1 by about 24/ε² at every count, and the variance grows with the count without end:
    as the paper says, a poor mechanism. For ε from 1/20 to 1000.

    **Its true privacy.** Write c = ε/2, x = c(√(a+1) - √a), A for the weight Σ exp(-c(√a - √b)) of all b ≤ a, and
    G for the weight Σ exp(-c(√b - √(a+1))) of all b > a. No integer lies between a and a + 1, so their rows have
    the normalisers Z = A + e⁻ˣG and Z' = e⁻ˣA + G, and all b ≤ a have one ratio of probabilities, all b > a another:

        log p(a, b)/p(a + 1, b) = log(1 + 2 sinh(x) G/Z) = r for b ≤ a, and r - 2x ≤ 0 for b > a.

    Term by term A ≤ G, because roots lie closer the farther out: √(a+1+k) - √(a+1) ≤ √a - √(a-k). So b ≤ a has a
    probability u = A/Z of at most 1/(1 + e⁻ˣ) under a, and w = e⁻ˣA/Z' of at most e⁻ˣ/(1 + e⁻ˣ) under a + 1, and
    r ≤ 2x. The δ(ε') of the pair is u - e^ε'·w = u(1 - exp(ε' - r)) where that is positive: the other way
    round it is smaller by (e^ε' - 1)(1 - u - w) ≥ 0. It is at most (1 - exp(ε' - 2x))/(1 + e⁻ˣ), which falls as the
    count grows: only pairs up to a finite count can be the worst, and `delta_at` computes all of these.

    The largest r of all is that of 0 and 1: it is at least x = c there (Z' ≥ Z), and for every other pair at most
    2c(√2 - 1) < c. So the smallest pure ε is log(1 + 2 sinh(c)(Z - 1)eᶜ/Z) with the Z of a = 0: nearly the named ε
    if that is small, half of it if it is large.

    >>> law = Hellinger(1)
    >>> law.delta, round(law.epsilon_at(0), 4), round(Hellinger(10).epsilon_at(0), 4)
    (0.0, 0.9236, 5.1479)
    >>> round(law.transition(5, 5), 4), round(law.bias(5), 1), round(law.variance(5) ** 0.5, 1)
    (0.0484, 23.2, 38.5)
    """

    epsilon: Fraction
    bound = None
    sensitivity = 1
    settled = None

    def __init__(self, epsilon: object) -> None:
        named = PureDP(epsilon).epsilon
        if not _SMALLEST <= named <= _LARGEST:
            raise InvalidNoise(
                f"Hellinger perturbation needs an ε from {show_fraction(_SMALLEST)} to "
                f"{show_fraction(_LARGEST)}, not {show_fraction(named)}: a smaller one spreads every count "
                "over more values than can be listed, a larger one does not hide a zero. Nothing was "
                "drawn. Choose another ε, or Laplace."
            )
        object.__setattr__(self, "epsilon", named)

    def row(self, original: int) -> Row:
        """Return the law of the published value of an original count, but for a share of 3e-17 at its far ends.

        It is listed as far as c·|√b - √a| ≤ t = 42. With S = (2/c²)(c√a + 1), an integral from a on that the
        normaliser exceeds, the integrals beyond are at most (S + 2t/c²)e⁻ᵗ above and S·e⁻ᵗ below.
        """
        rate = float(self.epsilon / 2)
        root, reach = math.sqrt(original), _REACH / rate
        lowest = math.ceil(max(0.0, root - reach) ** 2)
        highest = math.floor((root + reach) ** 2) + 1
        if highest - lowest > _MOST_VALUES:
            raise InvalidNoise(
                "Such a small ε spreads such a large count over more values than can be listed. Use a "
                "quantity that needs no list: delta_at, bias, variance. Or choose a larger ε."
            )
        return Row(lowest, self._published(original).pmf(np.arange(lowest, highest + 1)), _LEFT_OUT)

    def drawn(self, original: int) -> Added:
        """Return what is added to an original count, drawn exactly and without an end to its tail."""
        return Added(self._published(original))

    def delta_at(self, epsilon: object) -> float:
        """Return the exact δ at ε, over all pairs of neighbouring counts, rounded up in the tenth digit."""
        at = checked_epsilon(epsilon)
        size = _FIRST_PAIRS
        while (largest := _pairs(self.epsilon / 2, size).delta(at)) < self._delta_bound(size, at):
            size *= 2
        return largest

    def bias(self, original: int, *, minimum: int | None = None) -> float:
        """Return the expected published value less the original one; no row is listed while none is raised."""
        if minimum is not None and minimum > 0:
            return super().bias(original, minimum=minimum)
        return self._published(checked_count(original)).mean - original

    def variance(self, original: int, *, minimum: int | None = None) -> float:
        """Return the variance of the published value; no row is listed while none is raised."""
        if minimum is not None and minimum > 0:
            return super().variance(original, minimum=minimum)
        return self._published(checked_count(original)).variance

    def describe(self) -> dict[str, str]:
        """Return the family and its exact ε."""
        return {"family": "hellinger", "epsilon": str(self.epsilon)}

    def __str__(self) -> str:
        return f"Hellinger-type perturbation, ε = {show_fraction(self.epsilon)}"

    def _published(self, original: int) -> SquareRootLaplace:
        return SquareRootLaplace(self.epsilon / 2, original)

    def _delta_bound(self, original: int, epsilon: float) -> float:
        """Return what δ(ε) of this count and the next, and of all larger ones, cannot exceed."""
        step = float(self.epsilon / 2) / (math.sqrt(original) + math.sqrt(original + 1))
        return -math.expm1(min(epsilon - 2 * step, 0.0)) / (1 + math.exp(-step))


class _Pairs(NamedTuple):
    """What tells a from a + 1, for a = 0, 1, …: how likely a is to become a or less, and the log-ratio there."""

    probabilities: Floats
    ratios: Floats

    def delta(self, epsilon: float) -> float:
        """Return the largest δ(ε) of these pairs, rounded up."""
        found = self.probabilities * -np.expm1(np.minimum(epsilon - self.ratios, 0.0))
        return min(1.0, max(0.0, float(found.max())) * (1 + _SLACK))


@lru_cache(maxsize=16)
def _pairs(rate: Fraction, size: int) -> _Pairs:
    """Return the pairs of the counts 0 to size - 1 with their next ones; A upward and G downward by recurrence."""
    roots = np.sqrt(np.arange(size + 1.0))
    steps = float(rate) / (roots[:-1] + roots[1:])
    shrinks = np.exp(-steps)

    def with_one_more(weight: float, shrink: float) -> float:
        # Its own weight of one, and the others, each now farther away.
        return 1 + shrink * weight

    below = np.fromiter(accumulate(shrinks, with_one_more, initial=1.0), float)
    last = SquareRootLaplace(rate, size).normaliser - below[-1] + 1
    above = np.fromiter(accumulate(shrinks[:0:-1], with_one_more, initial=last), float)[::-1]
    normalisers = below[:-1] + shrinks * above
    ratios = np.log1p(2 * np.sinh(steps) * above / normalisers) * (1 + _SLACK)
    return _Pairs(below[:-1] / normalisers, ratios)
