r"""How likely a release without suppression is, and how many people a cell needs: Nabar & Mishra (2010), section 6.

Their Theorems 5 and 6 are here as printed, and beside each the exact figure. The theorems hold wherever they were
compared with it and are far from it: for Figure 3 of the paper Theorem 5 says nothing, and the exact chance is 99.7 %.
What their proofs say is not always so:

- The normal densities of equations 3 and 4 lack the 2 of exp(-x²/2σ²). The range of ρ = Δ ln(1+ε) is the one that
  follows with it; without it, it would have to be half as wide. The two slips cancel.
- A normal law does not describe a count a fixed share away from its mean. Of 40,000 people with prior 0.95 and one with
  0.05, a count at the end of the "safe" range for ε = 0.2 moves that one by 0.206.
- ε-semantic privacy does not imply ε-privacy (Definition 3): a prior of ½ that becomes (1+ε)/2 has a likelihood ratio
  of (1+ε)/(1-ε), so only 2ε/(1-ε) follows. But ε-privacy implies ε-semantic privacy, not just 3ε: a posterior is the
  prior times P(M|v)/P(M), and P(M) is a mean of the P(M|v'), all within 1+ε of P(M|v). The proofs need only this, for
  both orders of the values; they look at one.
- Theorem 2 does not follow from its Chernoff bound; it does follow. See `breach_bound`.

Nothing here reads a private value.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, betaincc

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.errors import InvalidPrivacy
from tabulary.suppress.simulatable_method.terms import ROUNDING, SuppressionTerms
from tabulary.table_samplers.poisson_binomial import PoissonBinomial

LARGEST_CELL = 1_500_000
"""Beyond this many people in a cell `people_needed` gives up: it tries them all."""

_BLOCK = 1 << 16


def full_release_bound(people: int, *, margin: object, epsilon: object, cells: int = 1) -> float:
    r"""Return the least probability that all cells may be released, by Theorem 5.

    Every cell has at least `people` people, and every prior lies between `margin` (Δ) and 1 - Δ. With ρ = Δ ln(1+ε)
    it is (1 - (e^ρ/(1+ρ)^(1+ρ))^(NΔ) - e^(-ρ²NΔ/2))^cells, or 0 where that says nothing.

    >>> 1 - full_release_bound(10_000, margin=0.5, epsilon=0.2, cells=100) < 3e-7
    True
    >>> full_release_bound(80, margin=0.3, epsilon=0.5, cells=9)
    0.0
    """
    tail, power = _tail(_whole(people, "people"), _margin(margin), _epsilon(epsilon)), _whole(cells, "cells")
    return 0.0 if tail >= 1 else math.exp(power * math.log1p(-tail))


def release_bound(
    people: int, *, margin: object, epsilon: object, delta: object, decisions: int = 1
) -> float:
    r"""Return the least probability that the sampling suppressor releases the sum of a single cell, by Theorem 6.

    With b the two tails of Theorem 5 and any ℓ > 2 with b < δ/ℓ it is 1 - (e^(ℓ/2-1)/(ℓ/2)^(ℓ/2))^(ln(1/δ)/ℓ). That
    rises with ℓ, so ℓ = δ/b is the best one. The theorem takes one decision; by the paper's own T a table of one cell
    has four. For other numbers of `decisions` δ is δ/T throughout.

    >>> release_bound(10_000, margin=0.4, epsilon=0.2, delta=0.1)
    0.998765...
    """
    terms, parts = (
        SuppressionTerms(_epsilon(epsilon), _between(delta, "delta")),
        _whole(decisions, "decisions"),
    )
    share = terms.share(parts)
    tail = _tail(_whole(people, "people"), _margin(margin), terms.epsilon)
    # Tails too small for a float are no tails.
    half = math.inf if tail == 0 else share / tail / 2
    if half <= 1:
        return 0.0
    return -math.expm1(-math.log(share) * ((1 - 1 / half) - math.log(half)) / 2)


def unsafe_chance(count_law: PoissonBinomial, *, epsilon: object) -> float:
    r"""Return the exact probability that the count of a cell is not ε-semantically private once all cells are released.

    Then a person's posterior depends on his own cell alone: it is the sum of the Poisson-binomial weights of those
    counts that move somebody in it by more than ε. A tie does not count as more. The cells of a table are independent.

    >>> round(unsafe_chance(PoissonBinomial([100], [0.3]), epsilon=0.5), 6)
    0.000694
    """
    moved = count_law.deviation(count_law.chances) > float(_epsilon(epsilon)) + ROUNDING
    return min(1.0, float(np.exp(count_law.log_weights)[moved].sum()))


def release_chance(
    count_law: PoissonBinomial, *, epsilon: object, delta: object, decisions: int = 1
) -> float:
    r"""Return the exact probability that the sampling suppressor releases the count of a single cell.

    It does if at most ½ ln(T/δ) of ⌈(T/δ) ln(T/δ)⌉ draws are unsafe, each with `unsafe_chance`: a binomial law. The
    suppressor that computes releases it if `unsafe_chance` is at most δ/T, and there is no chance in that.

    >>> round(release_chance(PoissonBinomial([100], [0.3]), epsilon=0.5, delta=0.2, decisions=16), 3)
    0.998
    """
    terms, parts = (
        SuppressionTerms(_epsilon(epsilon), _between(delta, "delta")),
        _whole(decisions, "decisions"),
    )
    unsafe = unsafe_chance(count_law, epsilon=epsilon)
    return _at_most(math.floor(terms.allowed(parts)), terms.draws(parts), unsafe)


def people_needed_by_bound(*, margin: object, epsilon: object, chance: object, cells: int = 1) -> int:
    """Return the people that each cell needs for a release of all cells with this probability, by Theorem 5.

    >>> people_needed_by_bound(margin=0.5, epsilon=0.2, chance=0.99, cells=100)
    4840
    """
    span, bound, allowed = _margin(margin), _epsilon(epsilon), _allowed(chance, cells)
    high = 1
    while _tail(high, span, bound) > allowed:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _tail(middle, span, bound) > allowed else (low, middle)
    return high


def people_needed(probability: object, *, epsilon: object, chance: object, cells: int = 1) -> int:
    r"""Return the least number such that this many people a cell, or more, are enough, exactly.

    All have the prior `probability`; enough is that all `cells` are ε-semantically private at once with probability
    `chance`. A person's posterior is then the share of the cell that has the attribute, so a cell is unsafe where a
    binomial count leaves N(p ± ε min(p, 1-p)). That probability falls with N by leaps, not steadily. From the number on
    where Chernoff's e^(-N·KL) is small enough it can no longer be too large; below that all are tried, from the top.

    >>> people_needed(0.5, epsilon=0.2, chance=0.99, cells=100)
    379
    """
    prior = float(_between(probability, "a prior probability"))
    reach = (float(_epsilon(epsilon)) + ROUNDING) * min(prior, 1 - prior)
    low, high = prior - reach, prior + reach
    allowed = _allowed(chance, cells)
    divergence = min(_divergence(low, prior), _divergence(high, prior))
    enough = 1.0 if math.isinf(divergence) else math.log(2 / allowed) / divergence
    if enough > LARGEST_CELL:
        raise InvalidPrivacy(
            f"this epsilon, with a prior of {prior:g}, may need more than {LARGEST_CELL:,} people in a cell, which "
            "is not computed. Choose a larger epsilon."
        )
    for top in range(math.ceil(enough), 0, -_BLOCK):
        people = np.arange(max(top - _BLOCK, 0) + 1, top + 1)
        failing = people[_leaving(people, prior, low, high) > allowed]
        if failing.size:
            return int(failing[-1]) + 1
    return 1


def breach_bound(decisions: int, delta: object) -> float:
    r"""Return the greatest probability that the sampling suppressor releases something unsafe.

    It is T max_p p P(Bin(n, p) ≤ c), with n = ⌈(T/δ) ln(T/δ)⌉ draws of which c = ⌊½ ln(T/δ)⌋ may be unsafe. The proof
    of Theorem 2 says that a value which is unsafe with a probability above δ/T is released with probability at most
    δ/T. It is not: for T/δ = 80 that is up to 0.18. But a breach is a release *and* an unsafe value, and the theorem
    holds. The true value is one more draw from the same law, and any of the n + 1 is as likely to be it: that it is
    unsafe, and at most c others are, has probability at most (c+1)/(n+1). With x = T/δ that is at most 1/x: where
    ln x ≥ 2 since x ≤ ½ x ln x, and below since c = 0 and x ≤ 1 + x ln x. The maximum itself, of a log-concave function
    of p, is below 0.45 δ wherever it was computed, up to T/δ = 10¹².

    >>> breach_bound(16, 0.2)
    0.0624...
    """
    terms, parts = SuppressionTerms(Fraction(1), _between(delta, "delta")), _whole(decisions, "decisions")
    draws, hits = terms.draws(parts), math.floor(terms.allowed(parts))
    low, high = 0.0, 1.0
    # Thirds of the interval: a log-concave function rises and then falls.
    while high - low > 1e-9 * high:
        left, right = (2 * low + high) / 3, (low + 2 * high) / 3
        if left * _at_most(hits, draws, left) < right * _at_most(hits, draws, right):
            low = left
        else:
            high = right
    return parts * high * _at_most(hits, draws, low)


def _tail(people: int, margin: Fraction, epsilon: Fraction) -> float:
    """Return the Chernoff bound of a count to leave the range of Theorem 5, on either side."""
    rho = float(margin) * math.log1p(float(epsilon))
    mean = people * float(margin)
    return math.exp(mean * (rho - (1 + rho) * math.log1p(rho))) + math.exp(-(rho**2) * mean / 2)


def _at_most(hits: int, draws: int, chance: float) -> float:
    """Return P(Bin(draws, chance) ≤ hits), good for any number of draws."""
    return float(betaincc(hits + 1, draws - hits, chance))


def _leaving(people: NDArray[np.int64], prior: float, low: float, high: float) -> NDArray[np.float64]:
    """Return the probability that a binomial share of each number of people is not strictly between two values."""
    below, above = np.floor(people * low), np.ceil(people * high) - 1
    under = np.where(below < 0, 0.0, bdtr(np.maximum(below, 0), people, prior))
    return np.asarray(under + bdtrc(np.minimum(above, people), people, prior))


def _divergence(share: float, prior: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli laws; infinite if `share` is not a probability."""
    if not 0 <= share <= 1:
        return math.inf
    parts = ((share, prior), (1 - share, 1 - prior))
    return sum(part * math.log(part / of) for part, of in parts if part > 0)


def _allowed(chance: object, cells: int) -> float:
    """Return how likely one cell may be unsafe, if all are safe with probability `chance`."""
    wished = float(_between(chance, "the chance"))
    return -math.expm1(math.log(wished) / _whole(cells, "cells"))


def _epsilon(value: object) -> Fraction:
    epsilon = exact_fraction(value, name="epsilon", error=InvalidPrivacy)
    if epsilon <= 0:
        raise InvalidPrivacy(f"epsilon must be above 0, not {show_fraction(epsilon)}.")
    return epsilon


def _margin(value: object) -> Fraction:
    margin = exact_fraction(value, name="margin", error=InvalidPrivacy)
    if not 0 < margin <= Fraction(1, 2):
        raise InvalidPrivacy(
            f"margin, the distance of every prior from 0 and from 1, must be above 0 and at most 1/2, not "
            f"{show_fraction(margin)}."
        )
    return margin


def _between(value: object, name: str) -> Fraction:
    number = exact_fraction(value, name=name, error=InvalidPrivacy)
    if not 0 < number < 1:
        raise InvalidPrivacy(f"{name} must be strictly between 0 and 1, not {show_fraction(number)}.")
    return number


def _whole(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidPrivacy(f"{name} must be a whole number of at least 1, not {value!r}.")
    return int(value)
