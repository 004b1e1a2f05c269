"""The best of finitely many candidates: the exponential mechanism, and report noisy max."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from typing import Any, Generic, Literal, TypeVar, Unpack, get_args

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import PureDP
from tabulary.errors import InvalidArgument, InvalidNoise
from tabulary.noise import Drawable
from tabulary.noise.checks import check_half_width
from tabulary.toolbox.choice_laws import ExponentialChoice, PermuteAndFlip
from tabulary.toolbox.spending import UNSPENT, Debit, Terms, refuse_other_than_pure

Candidate = TypeVar("Candidate")
Mechanism = Literal["exponential", "noisy-max"]


@dataclass(frozen=True)
class Chosen(Generic[Candidate]):
    """A candidate that left through a mechanism, with the largest distance from the best one.

    Its quality depends on the records, so it has no standard error of its own. Known without the records is how
    much utility may have been lost, in the worst case over all records. `scale` is the loss at which a candidate
    becomes e times less likely.
    """

    value: Candidate
    spent: PureDP
    neighbours: Neighbours
    guarantee: str
    candidates: int
    scale: Fraction
    mechanism: Mechanism = field(repr=False)

    def shortfall(self, confidence: float = 0.95) -> float:
        """Return the largest distance of the utility from the best one, with this probability."""
        check_half_width(confidence, 1)
        return _shortfall(self.candidates, float(self.scale), confidence, self.mechanism)

    @property
    def standard_error(self) -> float:
        """A bound on the root mean square of the utility lost.

        No candidate of loss t has a probability above exp(-t/scale), so a loss above t has one of at most
        (candidates - 1) times that. The second moment of such a loss is at most scale²·(L² + 2L + 2) with
        L = ln(candidates - 1).
        """
        if self.candidates == 1:
            return 0.0
        log = math.log(self.candidates - 1)
        return float(self.scale) * math.sqrt(log * log + 2 * log + 2)

    def __str__(self) -> str:
        return (
            f"{self.value}, with 95 % probability at most {self.shortfall():.3g} worse than the best of "
            f"{self.candidates:,}. {self.guarantee}"
        )


def exponential_mechanism(
    candidates: Sequence[Candidate],
    utilities: Sequence[Any] | Callable[[Candidate], Any],
    *,
    sensitivity: object,
    monotone: bool = False,
    **terms: Unpack[Terms],
) -> Chosen[Candidate]:
    r"""Return a candidate, i with probability ∝ exp(ε·uᵢ/(2Δ)), Δ the `sensitivity` of every utility.

    One person changes every exponent by at most ε/2, and their sum, which divides, by a factor of at most
    e^(ε/2): ε-differentially private (McSherry & Talwar 2007). It is report noisy max with Gumbel noise.

    `monotone` utilities all move the same way when a record is added, none up while another goes down; counts of
    supporters do. Then either the exponent moves or the sum does, and P(i) ∝ exp(ε·uᵢ/Δ) is ε-private.
    That needs add-remove neighbours: to replace a record is to remove one and add another, and the two may
    move utilities apart.

    Utilities are whole numbers or fractions, drawn from exactly. A float is refused: round it to a stated
    step, and count the rounding in the sensitivity. The set of candidates must not depend on the records.

    >>> votes = {"park": 9000, "pool": 40, "bridge": 310}
    >>> chosen = exponential_mechanism(list(votes), votes.get, sensitivity=1, privacy=PureDP(1), monotone=True)
    >>> chosen.value, round(chosen.shortfall(), 2)
    ('park', 3.64)
    """
    return _choose("exponential", candidates, utilities, sensitivity, monotone, **terms)


def report_noisy_max(
    candidates: Sequence[Candidate],
    utilities: Sequence[Any] | Callable[[Candidate], Any],
    *,
    sensitivity: object,
    monotone: bool = False,
    **terms: Unpack[Terms],
) -> Chosen[Candidate]:
    r"""Return the candidate of the largest utility plus exponential noise of mean 2Δ/ε; only which, not how much.

    Given all other noises, i wins if its own exceeds a threshold. One person moves the threshold by at most 2Δ, and
    an exponential law exceeds a threshold moved by 2Δ with a probability no less than e^(-ε) of what it was:
    ε-differentially private. With `monotone` utilities, as in `exponential_mechanism`, the threshold moves
    by Δ, and the mean of the noise is Δ/ε.

    Drawn without noise, by permute-and-flip, which has the same law (`PermuteAndFlip`). The utility lost is never
    stochastically larger than with the exponential mechanism at the same ε, and its mean may be half as large
    (McKenna & Sheldon 2020). A draw flips one coin per candidate.

    >>> chosen = report_noisy_max("abc", [0, 500, 20], sensitivity=1, privacy=PureDP(1))
    >>> chosen.value, print(chosen.spent)
    ε = 1
    ('b', None)
    """
    return _choose("noisy-max", candidates, utilities, sensitivity, monotone, **terms)


def utility_bound(
    candidates: int,
    *,
    sensitivity: object,
    privacy: PureDP,
    confidence: float = 0.95,
    monotone: bool = False,
    mechanism: Mechanism = "exponential",
) -> float:
    r"""Return how far below the best utility a choice among m candidates is at most, with this probability.

    For the exponential mechanism and s = 2Δ/ε it is s·ln((m - 1)·confidence/(1 - confidence)), and no smaller number
    will do: m - 1 candidates that all lie that far below the best are chosen with probability 1 - confidence.
    Of s·ln(m) it is often said that it holds with high probability. It holds with probability
    m/(2m - 1), little more than one half. For report noisy max the bound is solved for numerically, and as sharp.
    Reads no data.

    >>> round(utility_bound(1024, sensitivity=1, privacy=PureDP(1)), 2)
    19.75
    >>> round(utility_bound(1024, sensitivity=1, privacy=PureDP(1), confidence=1024 / 2047) / math.log(1024), 6)
    2.0
    """
    if isinstance(candidates, bool) or not isinstance(candidates, int) or candidates < 1:
        raise InvalidArgument(f"a choice needs at least one candidate, not {candidates!r}.")
    if mechanism not in get_args(Mechanism):
        raise InvalidArgument(f"the mechanism must be 'exponential' or 'noisy-max', not {mechanism!r}.")
    check_half_width(confidence, 1)
    refuse_other_than_pure(privacy)
    return _shortfall(
        candidates, float(_scale(sensitivity, privacy.epsilon, monotone)), confidence, mechanism
    )


def _choose(
    mechanism: Mechanism,
    candidates: Sequence[Candidate],
    utilities: Sequence[Any] | Callable[[Candidate], Any],
    sensitivity: object,
    monotone: bool,
    **terms: Unpack[Terms],
) -> Chosen[Candidate]:
    given = list(candidates)
    if not given:
        raise InvalidArgument(f"there is no candidate to choose. {UNSPENT}")
    description = {
        "candidates": str(len(given)),
        "sensitivity": str(exact_fraction(sensitivity, name="sensitivity", error=InvalidNoise)),
        "monotone": str(monotone),
    }
    debit = Debit.agree(mechanism, description, **terms)
    if monotone and debit.neighbours.relation != "add-remove":
        raise InvalidArgument(
            "utilities are monotone only if records are added, not if they are replaced. Use "
            f"neighbours='add-remove', or leave monotone out. {UNSPENT}"
        )
    scale = _scale(sensitivity, debit.privacy.epsilon, monotone)
    losses, denominator = _losses(
        [utilities(candidate) for candidate in given] if callable(utilities) else list(utilities), len(given)
    )
    rate = 1 / (scale * denominator)
    law: Drawable = (
        PermuteAndFlip(rate, losses)
        if mechanism == "noisy-max"
        else ExponentialChoice(rate, losses, [1] * len(losses))
    )
    return drawn(law, debit, given.__getitem__, len(given), scale, mechanism)


def drawn(
    law: Drawable,
    debit: Debit,
    candidate: Callable[[int], Candidate],
    candidates: int,
    scale: Fraction,
    mechanism: Mechanism,
) -> Chosen[Candidate]:
    """Return one paid draw of a law of choice, as the candidate of that number."""
    (number,) = debit.pay().draw(law, 1)
    return Chosen(
        candidate(int(number)), debit.privacy, debit.neighbours, debit.guarantee, candidates, scale, mechanism
    )


def _scale(sensitivity: object, epsilon: Fraction, monotone: bool) -> Fraction:
    most = exact_fraction(sensitivity, name="sensitivity", error=InvalidNoise)
    if most <= 0:
        raise InvalidNoise(
            f"the sensitivity of utilities must be positive, not {show_fraction(most)}. {UNSPENT}"
        )
    return (1 if monotone else 2) * most / epsilon


def _losses(utilities: Sequence[Any], expected: int) -> tuple[list[int], int]:
    """Return how far each utility is below the best, in whole numbers over a common denominator."""
    if len(utilities) != expected:
        raise InvalidArgument(f"{expected:,} candidates need {expected:,} utilities. {UNSPENT}")
    if not all(isinstance(u, Rational) and not isinstance(u, bool) for u in utilities):
        raise InvalidArgument(
            f"utilities must be whole numbers or fractions, and at least one is neither. {UNSPENT} Round "
            "them to a stated step, and include the rounding in the sensitivity."
        )
    exact = [Fraction(int(u.numerator), int(u.denominator)) for u in utilities]
    denominator = math.lcm(*(u.denominator for u in exact))
    whole = [u.numerator * (denominator // u.denominator) for u in exact]
    best = max(whole)
    return [best - each for each in whole], denominator


def _shortfall(candidates: int, scale: float, confidence: float, mechanism: Mechanism) -> float:
    """Return the loss t that is exceeded with probability 1 - `confidence` where it is exceeded most.

    There all m - 1 other candidates lie t below the best, each with p = exp(-t/scale): the exponential mechanism
    then errs with probability (m-1)p/(1 + (m-1)p), permute-and-flip with 1 - (1 - (1-p)^m)/(mp).
    """
    others = candidates - 1
    if not others:
        return 0.0
    if mechanism == "exponential":
        return scale * max(0.0, math.log(others) + math.log(confidence / (1 - confidence)))

    def right(p: float) -> float:
        return -math.expm1(candidates * math.log1p(-p)) / (candidates * p)

    low, high = 1e-300, 1 - 1e-16
    if right(high) >= confidence:
        return 0.0
    for _ in range(2000):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if right(middle) >= confidence else (low, middle)
        if high - low <= 1e-15 * high:
            break
    return -scale * math.log(low)
