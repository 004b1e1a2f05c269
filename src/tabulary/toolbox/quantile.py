"""Quantiles by the exponential mechanism."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.core.neighbours import Neighbours
from tabulary.errors import InvalidArgument
from tabulary.toolbox.answer import plain
from tabulary.toolbox.bounds import Bounds, numbers_of
from tabulary.toolbox.choice_laws import ExponentialChoice
from tabulary.toolbox.selection import Chosen, drawn
from tabulary.toolbox.spending import UNSPENT, Debit, Terms

# Ranks are counted in parts of this size at the finest, so that they stay below 2**63 for any table in memory.
_LARGEST_DENOMINATOR = 1_000_000


def quantile(
    values: ArrayLike,
    share: object,
    candidates: Bounds | Sequence[object],
    **terms: Unpack[Terms],
) -> Chosen[int | float]:
    r"""Return a candidate below which about `share` of the values lie: 1/2 for the median.

    The candidates are public: every multiple of the unit inside `Bounds`, or a list. The utility of a candidate o is
    minus its rank error, how far share·n lies from the ranks \#{x < o} … \#{x ≤ o} that it takes, and it is
    chosen by the exponential mechanism (Smith 2011). All candidates between two neighbouring values share a
    utility, so a range of millions of steps costs no more than the distinct values in it.

    Replacing a record moves a rank by one: Δ = 1. Adding one moves #{x < o} by 0 or 1 and share·n by `share`, so
    Δ = max(share, 1 - share), which for the median is 1/2: at the same ε half the error. c records per person make
    it c times that (`rank_sensitivity`).

    How far the value is from the true quantile depends on how the records lie, so no standard error in the unit of
    the values is known without them. `shortfall` and `standard_error` are in ranks.

    >>> from tabulary import PureDP
    >>> incomes = [12_000 + 37 * i for i in range(2000)]
    >>> median = quantile(incomes, "1/2", Bounds(0, 500_000, unit=100), privacy=PureDP(1))
    >>> 47_000 < median.value < 51_000, median.candidates, round(median.shortfall(), 1)
    (True, 5001, 11.5)
    """
    part = exact_fraction(share, name="share", error=InvalidArgument)
    if not 0 <= part <= 1 or part.denominator > _LARGEST_DENOMINATOR:
        raise InvalidArgument(
            "the share of a quantile must be from 0 to 1, with at most six decimals, not "
            f"{show_fraction(part)}. {UNSPENT}"
        )
    if not isinstance(candidates, Bounds | Sequence | np.ndarray) or isinstance(candidates, str):
        raise InvalidArgument(
            f"candidates must be Bounds(low, high) or a list of numbers, not a {type(candidates).__name__}. "
            f"{UNSPENT}"
        )
    listed = candidates.describe() if isinstance(candidates, Bounds) else {"candidates": str(len(candidates))}
    debit = Debit.agree("quantile", {"share": str(part), **listed}, **terms)
    scale = 2 * rank_sensitivity(part, debit.neighbours) / debit.privacy.epsilon
    if isinstance(candidates, Bounds):
        within = candidates
        steps = within.steps(values)
        n, (sizes, below, through) = steps.size, _runs_of_steps(steps, within)

        def value_of(place: int) -> int | float:
            return plain((within.lowest + place) * within.unit)
    else:
        exact = _ascending(candidates)
        ordered, limits = np.sort(numbers_of(values)), np.array([float(each) for each in exact])
        n, sizes = ordered.size, np.ones(len(exact), dtype=np.int64)
        below = np.searchsorted(ordered, limits, side="left")
        through = np.searchsorted(ordered, limits, side="right")

        def value_of(place: int) -> int | float:
            return plain(exact[place])

    losses = rank_errors(part, n, below, through)
    law = ExponentialChoice(1 / (scale * part.denominator), (losses - losses.min()).tolist(), sizes.tolist())
    return drawn(law, debit, value_of, int(sizes.sum()), scale, "exponential")


def rank_sensitivity(share: Fraction, neighbours: Neighbours) -> Fraction:
    """Return the most that one person changes the rank error of a candidate.

    >>> rank_sensitivity(Fraction(1, 2), Neighbours()), rank_sensitivity(Fraction(1, 2), Neighbours("replace"))
    (Fraction(1, 2), Fraction(1, 1))
    """
    once = max(share, 1 - share) if neighbours.relation == "add-remove" else Fraction(1)
    return neighbours.records * once


def rank_errors(
    share: Fraction, n: int, below: NDArray[np.intp], through: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Return how far share·n is from the ranks `below` … `through`, in parts of the denominator of `share`.

    >>> rank_errors(Fraction(1, 2), 5, np.array([0, 2, 4]), np.array([1, 3, 5])).tolist()
    [3, 0, 3]
    """
    wanted = share.numerator * n
    low, high = share.denominator * below.astype(np.int64), share.denominator * through.astype(np.int64)
    return np.maximum(0, np.maximum(low - wanted, wanted - high))


def _runs_of_steps(
    steps: NDArray[np.int64], bounds: Bounds
) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp]]:
    """Return runs of candidates: how many each has, and how many values lie below it and up to it.

    Each distinct value is a run of one candidate; the candidates between two values are another run.
    """
    points, counts = np.unique(steps, return_counts=True)
    through = np.cumsum(counts)
    edges = np.concatenate([[bounds.lowest - 1], points, [bounds.highest + 1]])
    gaps = np.diff(edges) - 1
    sizes = np.ones(2 * points.size + 1, dtype=np.int64)
    sizes[::2] = gaps
    before = np.concatenate([[0], through])
    up_to = np.repeat(before, 2)[:-1]
    up_to[1::2] = through
    under = np.repeat(before, 2)[:-1]
    kept = sizes > 0
    return sizes[kept], under[kept], up_to[kept]


def _ascending(candidates: Sequence[object]) -> list[Fraction]:
    given = [exact_fraction(each, name="a candidate", error=InvalidArgument) for each in candidates]
    if not given:
        raise InvalidArgument(f"there is no candidate to choose. {UNSPENT}")
    if len(set(given)) < len(given):
        raise InvalidArgument(f"a candidate is listed twice. {UNSPENT} List each once.")
    return sorted(given)
