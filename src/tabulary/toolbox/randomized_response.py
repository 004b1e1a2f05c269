"""Randomized response: all people protect their own answer before anybody else sees it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.core.privacy import PureDP
from tabulary.errors import InvalidDomain, InvalidPrivacy, InvalidTable, UnknownLevel, listed
from tabulary.ledger import Account
from tabulary.noise import Sampler, Tabulated
from tabulary.noise.enclosure import exponential
from tabulary.toolbox.choice_laws import Uniform
from tabulary.toolbox.response_estimate import ResponseEstimate
from tabulary.toolbox.spending import UNSPENT, Debit

_PRECISION = 256
# A truth probability that follows from ε is a multiple of 2**-62, an ε that follows from one has twelve digits.
_BITS = 62
_DIGITS = 12
# Below this nothing is left of an answer that any number of people could make up for.
_SMALLEST = Fraction(1, 1 << 40)


@dataclass(frozen=True, init=False)
class RandomizedResponse:
    r"""The truth with probability q, otherwise one of the k `levels` at random, the true one among them.

    The coin and the level are drawn exactly. The true level is answered with probability p = q + (1 - q)/k, every
    other one with r = (1 - q)/k, and p/r = (1 + (k - 1)q)/(1 - q) is e^ε. With two levels that is Warner's
    (1965) scheme as q-RR and ε = ln((1 + q)/(1 - q)); with more it is k-ary randomized response, p = e^ε/(e^ε + k - 1).

    Give `q`, and ε is computed and rounded up; or give `epsilon`, and q is rounded down to a multiple of 2⁻⁶².

    **Guarantee.** Local differential privacy: ε holds for every single answer, against everyone who sees it, also
    the collector. It hides what a person answered, not that the person answered. A person who answers t questions
    spends t·ε.

    >>> coin = RandomizedResponse(["yes", "no"], q="1/2")
    >>> print(coin.privacy, coin.truth, coin.lie)
    ε = 1.09861228867 3/4 1/4
    >>> RandomizedResponse("abcd", epsilon=1).privacy
    PureDP(epsilon=Fraction(1, 1))
    """

    levels: tuple[str, ...]
    q: Fraction
    privacy: PureDP

    def __init__(self, levels: Sequence[str], *, q: object = None, epsilon: object = None) -> None:
        object.__setattr__(self, "levels", tuple(levels))
        if len(self.levels) < 2 or len(set(self.levels)) < len(self.levels):
            raise InvalidDomain("a question needs at least two answers, and no answer may be listed twice.")
        if (q is None) == (epsilon is None):
            raise InvalidPrivacy("give either q, the probability of a truthful answer, or epsilon.")
        if epsilon is None:
            object.__setattr__(self, "q", exact_fraction(q, name="q", error=InvalidPrivacy))
            if not _SMALLEST <= self.q < 1:
                raise InvalidPrivacy(
                    f"q must be from 2**-40 to below 1, not {show_fraction(self.q)}: at 1 nothing is "
                    "hidden, at 0 the answers say nothing."
                )
            object.__setattr__(self, "privacy", PureDP(_epsilon_of(self.q, len(self.levels))))
        else:
            object.__setattr__(self, "privacy", PureDP(epsilon))
            object.__setattr__(self, "q", _truth_of(self.privacy.epsilon, len(self.levels)))
            if self.q < _SMALLEST:
                raise InvalidPrivacy(f"{self.privacy} is so small that no answer would say anything.")

    @property
    def truth(self) -> Fraction:
        """The probability p with which the true level is answered."""
        return self.q + self.lie

    @property
    def lie(self) -> Fraction:
        """The probability r with which each other level is answered."""
        return (1 - self.q) / len(self.levels)

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        return (
            f"{self.privacy} for every single answer, against everyone who sees it: no answer becomes more "
            "than e^ε times likelier through the true value. It is public who answered."
        )

    def respond(
        self,
        values: ArrayLike,
        *,
        ledger: Account | None = None,
        purpose: str | None = None,
        sampler: Sampler | None = None,
    ) -> NDArray[Any]:
        """Return one randomized answer for each true value, in the same order.

        An account pays ε once, under replace neighbours: each answer depends on one person's value.

        >>> answers = RandomizedResponse(["yes", "no"], q="1/2").respond(["yes", "no", "no"])
        >>> set(answers.tolist()) <= {"yes", "no"}, len(answers)
        (True, 3)
        """
        description = {"q": str(self.q), "levels": str(len(self.levels))}
        debit = Debit.agree(
            "randomized response",
            description,
            privacy=self.privacy,
            neighbours="replace",
            ledger=ledger,
            purpose=purpose,
            sampler=sampler,
        )
        codes = self._codes(values)
        draw = debit.pay()
        told = draw.draw(Tabulated(0, (self.q.denominator - self.q.numerator, self.q.numerator)), codes.size)
        # Drawn for everyone, so that nothing but the answer depends on the coin.
        random = draw.draw(Uniform(len(self.levels)), codes.size)
        return np.array(self.levels, dtype=object)[np.where(told == 1, codes, random)]

    def estimate(self, answers: ArrayLike) -> ResponseEstimate:
        """Return how many people have each true level, estimated from all randomized answers.

        Post-processing: spends nothing.

        >>> coin = RandomizedResponse(["yes", "no"], q="1/2")
        >>> found = coin.estimate(["yes"] * 40 + ["no"] * 60)
        >>> found.counts.tolist(), found.standard_errors.round(2).tolist()
        ([30.0, 70.0], [8.66, 8.66])
        """
        counts = np.bincount(self._codes(answers), minlength=len(self.levels))
        return self.estimate_from_counts(counts)

    def estimate_from_counts(self, counts: ArrayLike) -> ResponseEstimate:
        """Return the same estimates from how often each level was answered, in the order of the levels."""
        given = np.asarray(counts)
        if given.shape != (len(self.levels),) or given.dtype.kind not in "iu" or (given < 0).any():
            raise InvalidTable(
                f"{len(self.levels)} levels need {len(self.levels)} counts, whole and not negative."
            )
        if not given.sum():
            raise InvalidTable("there is no answer to estimate from.")
        return ResponseEstimate(self.levels, tuple(map(int, given)), self.truth, self.lie)

    def _codes(self, values: ArrayLike) -> NDArray[np.int64]:
        given = list(np.asarray(values, dtype=object))
        if not given:
            raise UnknownLevel(f"there is no answer at all. {UNSPENT}")
        places = {level: place for place, level in enumerate(self.levels)}
        try:
            return np.array([places[value] for value in given], dtype=np.int64)
        except (KeyError, TypeError):
            raise UnknownLevel(
                f"at least one value is not among the answers {listed(map(str, self.levels))}. {UNSPENT} "
                "Add the level, or leave such records out."
            ) from None


def _epsilon_of(q: Fraction, levels: int) -> Fraction:
    """Return ln((1 + (k - 1)q)/(1 - q)), rounded up to twelve digits and proven to be no less.

    >>> _epsilon_of(Fraction(1, 3), 2)
    Fraction(8664339757, 12500000000)
    """
    ratio = (1 + (levels - 1) * q) / (1 - q)
    # Of a ratio beside one the logarithm is found from what it is above one.
    guess = (
        math.log1p(float(ratio - 1)) if ratio < 2 else math.log(ratio.numerator) - math.log(ratio.denominator)
    )
    unit = Fraction(10) ** (math.floor(math.log10(guess)) + 1 - _DIGITS)
    epsilon = math.floor(Fraction(guess) / unit) * unit
    while exponential(epsilon, _PRECISION)[1] * ratio > 1 << _PRECISION:
        epsilon += unit
    return epsilon


def _truth_of(epsilon: Fraction, levels: int) -> Fraction:
    """Return (1 - e^(-ε))/(1 + (k - 1)e^(-ε)), rounded down to a multiple of 2**-62.

    >>> math.isclose(_truth_of(Fraction(1), 2), math.tanh(1 / 2), rel_tol=1e-15)
    True
    """
    one, above = 1 << _PRECISION, exponential(epsilon, _PRECISION)[1]
    return Fraction(((one - above) << _BITS) // (one + (levels - 1) * above), 1 << _BITS)
