"""The sum of several promises: calculators that read no data.

`compose` of the core adds up promises about the same records. Here are the two other theorems that everything rests
on: parts of the records, and groups of people. Post-processing needs no calculator: a computation from an output
alone costs nothing, so the promise does not change. `guessing`, also in the core, says what this means for an
attacker who guesses.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP, compose
from tabulary.errors import InvalidPrivacy
from tabulary.noise.enclosure import exponential

_PRECISION = 256
# Digits of a δ that had to be rounded up.
_DIGITS = 12


def sequential(parts: Iterable[Privacy]) -> Privacy:
    """Return what is promised after all `parts` have used the same records: everything adds up.

    Holds also where a later part is chosen after seeing what the earlier ones gave out. It is the theorem that
    lecture notes sometimes head with "parallel algorithms", for algorithms that run side by side on the same
    records; `parallel` is for disjoint ones.

    >>> print(sequential([PureDP("1/2"), PureDP("1/4")]))
    ε = 0.75
    """
    return compose(parts)


def parallel(parts: Iterable[Privacy], *, neighbours: Relation | Neighbours = "add-remove") -> Privacy:
    """Return what is promised after each of `parts` has used its own, disjoint share of the records.

    A record is in one share only, so a person with c records is in at most c of them: the promise is the sum of the c
    largest parts, for one record the largest. A record that is *replaced* may leave one share and enter
    another, so it is 2c of them. Every part must keep its promise under add-remove, for then even the number of
    records in a share is not public; how the records were shared out must depend on each record alone.

    ε, δ and ρ are added up each for itself. Pure parts among zCDP ones count as ρ = ε²/2.

    >>> print(parallel([PureDP("1/2"), PureDP("1/4"), PureDP("1/4")]))
    ε = 0.5
    >>> print(parallel([PureDP("1/2"), PureDP("1/4"), PureDP("1/4")], neighbours="replace"))
    ε = 0.75
    """
    near = neighbours if isinstance(neighbours, Neighbours) else Neighbours(neighbours)
    touched = near.records * near.moved
    spent = list(parts)
    # Refuses an empty list, and parts that have no common currency.
    everything = compose(spent)

    def largest(amounts: Iterable[Fraction]) -> Fraction:
        return sum(sorted(amounts, reverse=True)[:touched], Fraction(0))

    if isinstance(everything, ZCDP):
        return ZCDP(largest(part.rho if isinstance(part, ZCDP) else _rho(part) for part in spent))
    epsilon = largest(part.epsilon for part in spent if not isinstance(part, ZCDP))
    if isinstance(everything, ApproxDP):
        return ApproxDP(epsilon, largest(part.delta for part in spent if isinstance(part, ApproxDP)))
    return PureDP(epsilon)


def group(privacy: Privacy, size: int) -> Privacy:
    """Return what a promise to one person means for `size` people together.

    Step by step from one table to the other, one person at a time: ε becomes k·ε, ρ becomes k²·ρ (Bun & Steinke 2016,
    Proposition 1.9), and δ becomes δ·(1 + e^ε + … + e^((k-1)ε)), rounded up. A δ of one or more promises nothing
    and is refused.

    >>> print(group(PureDP("1/10"), 5))
    ε = 0.5
    >>> print(group(ApproxDP(1, 1e-9), 3))
    ε = 3, δ = 1.11073379274e-8
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidPrivacy(f"the size of a group must be a whole number, at least 1, not {size!r}.")
    match privacy:
        case PureDP(epsilon=epsilon):
            return PureDP(size * epsilon)
        case ZCDP(rho=rho):
            return ZCDP(size**2 * rho)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return ApproxDP(size * epsilon, delta if size == 1 else _group_delta(epsilon, delta, size))
    raise InvalidPrivacy("a promise must be PureDP(1), ApproxDP(1, 1e-9), ZCDP('1/8') or similar.")


def _rho(part: Privacy) -> Fraction:
    assert isinstance(part, PureDP), "an (ε, δ) part does not compose with zCDP"
    return part.epsilon**2 / 2


def _group_delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """Return δ·(e^(kε) - 1)/(e^ε - 1), rounded up to twelve digits."""
    # (1 - x^k) / (x^(k-1)·(1 - x)) with x = e^(-ε): upper ends above, lower ends below.
    one = 1 << _PRECISION
    whole = exponential(size * epsilon, _PRECISION)
    power = exponential((size - 1) * epsilon, _PRECISION)
    single = exponential(epsilon, _PRECISION)
    below = power[0] * (one - single[1])
    if below <= 0:
        raise InvalidPrivacy("nothing is promised to such a large group: its δ is 1 or more.")
    exact = delta * Fraction((one - whole[0]) * one, below)
    if exact >= 1:
        raise InvalidPrivacy("nothing is promised to such a large group: its δ is 1 or more.")
    unit = Fraction(10) ** (math.floor(math.log10(exact)) + 1 - _DIGITS)
    return math.ceil(exact / unit) * unit
