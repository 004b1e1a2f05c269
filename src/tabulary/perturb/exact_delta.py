"""The exact δ(ε) of a perturbation, from the rows of neighbouring counts.

One table is (ε, δ)-differentially private if and only if δ is at least

    δ(ε) = max over neighbouring counts a, a' of Σ_b max(0, p(a, b) - e^ε p(a', b)),

in both directions (Dwork et al. 2006, made exact: the worst set S contains the values b whose term is positive).
The other cells of two neighbouring tables are equal and perturbed in the same way, so they add nothing. A published
value that is impossible for one neighbour counts in full, at every ε.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.exact_numbers import exact_fraction
from tabulary.errors import InvalidPrivacy
from tabulary.perturb.perturbation import Perturbation, Row

# Each probability is exact to a few dozen units in its last place; a δ is rounded up by this share.
_SLACK = 1e-14


def checked_epsilon(epsilon: object) -> float:
    """Return a non-negative ε as a float, or raise InvalidPrivacy.

    >>> checked_epsilon("1/2")
    0.5
    """
    number = exact_fraction(epsilon, name="epsilon", error=InvalidPrivacy)
    if number < 0:
        raise InvalidPrivacy(f"epsilon must not be negative, but it is {epsilon}. Nothing was drawn.")
    return float(min(number, Fraction(10**6)))


def delta_between(one: Row, other: Row, epsilon: float) -> float:
    """Return Σ max(0, p - e^ε q) for two rows, rounded up; the part that the first row leaves out counts in full.

    >>> import numpy as np
    >>> bounded = np.array([0.25, 0.5, 0.25])
    >>> round(delta_between(Row(-1, bounded), Row(0, bounded), math.log(2)), 12)
    0.25
    """
    p, q = _aligned(one, other)
    # e^ε q overflows only where it exceeds any p.
    excess = p - q * math.exp(min(epsilon, 700.0))
    # If the ratio is e^ε itself, the rest of the difference is rounding.
    positive = excess > _SLACK * p
    if not positive.any():
        return min(1.0, one.left_out)
    return min(1.0, math.fsum(excess[positive]) * (1 + _SLACK) + one.left_out)


def largest_delta(law: Perturbation, epsilon: object, originals: Iterable[int]) -> float:
    """Return the largest δ(ε) over the neighbours of these original counts, in both directions."""
    at = checked_epsilon(epsilon)
    return max(
        delta_between(one, other, at)
        for near in neighbouring_rows(law, originals)
        for one, other in (near, near[::-1])
    )


def largest_forbidden(law: Perturbation) -> float:
    """Return the largest p(a, b) over neighbouring counts with p(a', b) = 0."""
    if law.bound is None or law.settled is None:
        return 0.0
    found = 0.0
    for near in neighbouring_rows(law, range(law.settled + 1)):
        for one, other in (near, near[::-1]):
            p, q = _aligned(one, other)
            found = max(found, float(p[q == 0].max(initial=0.0)))
    return found


def neighbouring_rows(law: Perturbation, originals: Iterable[int]) -> Iterator[tuple[Row, Row]]:
    """Yield the row of every original count, and the rows of the counts with one more person."""
    for original in originals:
        here = law.row(original)
        for step in range(1, law.sensitivity + 1):
            yield here, law.row(original + step)


def _aligned(one: Row, other: Row) -> tuple[Floats, Floats]:
    lowest = min(one.lowest, other.lowest)
    highest = max(row.lowest + row.probabilities.size for row in (one, other))
    both = np.zeros((2, highest - lowest))
    for line, row in zip(both, (one, other), strict=True):
        start = row.lowest - lowest
        line[start : start + row.probabilities.size] = row.probabilities
    return both[0], both[1]
