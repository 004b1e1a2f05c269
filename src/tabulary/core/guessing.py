"""What a promise means for a guess: how often the best guess between two neighbours is right.

Every text that states this number takes it from here.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP
from tabulary.errors import InvalidPrivacy

# A double between one half and one has 53 digits, so it and what it leaves to one are exact here. `exp` and `ln` of the
# decimal module are correct to the last digit, so one step in that digit makes each a bound.
_DOWN = Context(prec=60, rounding=ROUND_FLOOR)
_UP = Context(prec=60, rounding=ROUND_CEILING)


def guessing(privacy: Privacy) -> float:
    r"""Return the largest probability of a correct guess between two neighbouring tables that are equally likely.

    It is (1 + t)/2, where t is the largest total variation distance between two neighbours that the promise allows.
    A result computed from an output is also an output, so no algorithm with any other knowledge is right more
    often. And some mechanism that keeps the promise allows a guess to be right that often, so no smaller number
    would be true. The result is rounded up to the next double. One half is a coin.

    **(ε, δ).** (e^ε + δ)/(1 + e^ε) (Kairouz, Oh & Viswanath 2015), for ε alone with δ = 0: randomized response. The two
    chances of being right add up to at most 1 + tanh(ε/2), about 1 + ε/2; the 1 + ε of a first-order argument is twice
    as far from one as need be.

    **ρ.** The g with (2g - 1)·ln(g/(1 - g)) = ρ; less than the ½ + √(ρ/8) of Pinsker's inequality.

    - No guess is right more often. A guess is one of two words, said with probability p under one neighbour and q under
      the other. Rényi divergence grows with its order, so both Kullback-Leibler divergences between the two laws are at
      most ρ. Average the pair (p, q) with (1 - q, 1 - p), which has the same two divergences: that gives (g, 1 - g),
      and 2g - 1 = p - q. By joint convexity its divergence, (2g - 1)·ln(g/(1 - g)), is at most their mean, at most ρ.
    - Some guess is right as often: that of randomized response with g = e^ε/(1 + e^ε), where ε·tanh(ε/2) = ρ. There
      (α - 1)·D_α = ln cosh((α - ½)ε) - ln cosh(ε/2), which is concave in u = (α - ½)². The line ρ(u - ¼) = ρα(α - 1)
      touches it at α = 1, so it lies below the line: D_α ≤ ρα for every α > 1.

    This is about the promise. Noise may be better: between tables that Gaussian noise of the same ρ protects, the
    best guess is right with probability Φ(√(ρ/2)); for ρ = ½ that is 69.2 % instead of 74 %.

    >>> guessing(PureDP(1)).__round__(4), guessing(ApproxDP(1, "1/10")).__round__(4), guessing(ZCDP("1/2")).__round__(4)
    (0.7311, 0.758, 0.7395)
    """
    match privacy:
        case PureDP(epsilon=epsilon):
            return _approximate(epsilon, Fraction(0))
        case ApproxDP(epsilon=epsilon, delta=delta):
            return _approximate(epsilon, delta)
        case ZCDP(rho=rho):
            return _concentrated(rho)
    raise InvalidPrivacy("a promise must be PureDP(1), ApproxDP(1, 1e-9), ZCDP('1/8') or similar.")


def _approximate(epsilon: Fraction, delta: Fraction) -> float:
    """Return (e^ε + δ)/(1 + e^ε), rounded up."""
    # As (1 + δx)/(1 + x) with x = e^(-ε), which no ε overflows and which falls as x grows.
    least = max(_DOWN.next_minus(_DOWN.exp(-_divided(epsilon, _UP))), Decimal(0))
    bound = _UP.divide(_UP.fma(_divided(delta, _UP), least, 1), _DOWN.add(1, least))
    shown = float(bound)
    return min(1.0, shown if Decimal(shown) >= bound else math.nextafter(shown, 1.0))


@lru_cache(maxsize=256)
def _concentrated(rho: Fraction) -> float:
    """Return the smallest double g that is seen to have (2g - 1)·ln(g/(1 - g)) ≥ ρ."""
    wanted = _divided(rho, _UP)
    low, high = 0.5, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        g = Decimal(middle)
        apart = _DOWN.subtract(_DOWN.next_minus(_DOWN.ln(g)), _UP.next_plus(_UP.ln(_UP.subtract(1, g))))
        if _DOWN.multiply(_DOWN.fma(2, g, -1), apart) >= wanted:
            high = middle
        else:
            low = middle
    return high


def _divided(value: Fraction, rounded: Context) -> Decimal:
    return rounded.divide(Decimal(value.numerator), Decimal(value.denominator))
