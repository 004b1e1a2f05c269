"""The laws of a choice, drawn exactly.

A choice is made among candidates 0, 1, 2, …; each has a loss: how much worse it is than the best one. The losses
are confidential, so no law here shows them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidNoise
from tabulary.noise.acceptance import settle_flip
from tabulary.noise.checks import sample_in_pieces
from tabulary.noise.enclosure import Enclosure, certain_floors, divide, exponential, multiply
from tabulary.noise.entropy import Entropy, fresh_words
from tabulary.noise.inversion import WORD_BITS, settle
from tabulary.noise.slots import Slots

_PIECE = 1 << 16


@dataclass(frozen=True)
class Uniform:
    """The law that gives each of 0 … `size` - 1 the same probability.

    >>> from tabulary.noise import SystemEntropy
    >>> Uniform(1).sample(3, SystemEntropy()).tolist()
    [0, 0, 0]
    """

    size: int

    def __post_init__(self) -> None:
        if not 1 <= self.size <= 1 << 63:
            raise InvalidNoise("A uniform choice needs from 1 to 2**63 candidates.")

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent draws; a word beyond the last multiple of the size is drawn again."""
        last = (1 << WORD_BITS) // self.size * self.size - 1

        def draw(count: int) -> NDArray[np.int64]:
            words = fresh_words(entropy, count)
            while (beyond := np.flatnonzero(words > last)).size:
                words = words.copy()
                words[beyond] = fresh_words(entropy, beyond.size)
            return (words % np.uint64(self.size)).astype(np.int64)

        return sample_in_pieces(draw, size)


@dataclass(frozen=True, eq=False)
class ExponentialChoice:
    r"""The law with P(i) ∝ exp(-`rate` · loss of i).

    Candidates come in runs that share a loss: run r has `sizes[r]` of them, numbered on from the run before. Losses
    are whole numbers, the smallest of them 0.

    **How it is drawn.** Runs of the same loss are one group. The group is drawn by exact inversion: its
    boundaries are tails Σ mⱼ·exp(-γⱼ) over the total, enclosed in whole numbers. The exponents are distinct
    rationals, so by the theorem of Lindemann and Weierstrass no tail is rational, and some number of bits always
    decides. Inside its group every candidate is as likely as the next. A draw takes two 64-bit words but for
    rare ties, whatever the losses; rejection, the usual way, would take a number of words that tells about them.

    >>> from tabulary.noise import SystemEntropy
    >>> ExponentialChoice(Fraction(1000), (5, 0), (1, 1)).sample(3, SystemEntropy()).tolist()
    [1, 1, 1]
    """

    rate: Fraction
    losses: Sequence[int] = field(repr=False)
    sizes: Sequence[int] = field(repr=False)

    def __post_init__(self) -> None:
        _check(self.rate, self.losses)
        if len(self.sizes) != len(self.losses) or min(self.sizes) < 1:
            raise InvalidNoise("Every run of candidates has a loss and at least one candidate.")

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent choices, as numbers of candidates."""
        slots, groups = self.slots, self._groups
        floors = np.array(slots(WORD_BITS).floors, dtype=np.uint64)

        def draw(count: int) -> NDArray[np.int64]:
            words = fresh_words(entropy, count)
            drawn = np.searchsorted(floors, words, side="left")
            for tied in np.flatnonzero(drawn != np.searchsorted(floors, words, side="right")):
                drawn[tied] = settle(slots, int(words[tied]), WORD_BITS, entropy)
            chosen = np.empty(count, dtype=np.int64)
            for group in np.unique(drawn):
                at = np.flatnonzero(drawn == group)
                chosen[at] = groups.member(int(group), at.size, entropy)
            return chosen

        return sample_in_pieces(draw, size)

    @cached_property
    def _groups(self) -> "_Groups":
        return _Groups.of(self.losses, self.sizes)

    @cached_property
    def slots(self) -> Callable[[int], Slots]:
        """The function that returns, for a number of bits, which of the drawn words belong to which group."""
        """The function that returns, for a number of bits, which of the drawn words belong to which group."""
        losses, left = self._groups.losses, self._groups.left

        def tails(precision: int, bits: int) -> list[Enclosure]:
            # Half of the guard bits are left to the groups that are not summed one by one.
            negligible = 1 << ((precision - bits) // 2)
            # Losses often rise in equal steps, whose exponentials are computed once.
            factor = cache(lambda step: exponential(self.rate * step, precision))
            weights = [(1 << precision, 1 << precision)]
            for below, above in pairwise(losses):
                if left[len(weights) - 1] * weights[-1][1] < negligible:
                    break
                weights.append(multiply(weights[-1], factor(above - below), precision))
            # The last group that has a weight, and all that weigh less than it does.
            end = len(weights) - 1
            complete = end == len(losses) - 1
            lower, upper = left[end] * weights[end][0] if complete else 0, left[end] * weights[end][1]
            sums = [(lower, upper)]
            for group in range(end - 1, -1, -1):
                size = left[group] - left[group + 1]
                lower, upper = lower + size * weights[group][0], upper + size * weights[group][1]
                sums.append((lower, upper))
            total = sums.pop()
            found = [divide(tail, total, precision) for tail in reversed(sums)]
            # What lies beyond the first tail below 2**-bits is a tie, and is looked up with more bits.
            reaching = sum(1 for _, tail in found if tail >> (precision - bits))
            return found[: reaching + 1]

        @lru_cache(maxsize=4)
        def slots(bits: int) -> Slots:
            last = (1 << bits) - 1
            floors = certain_floors(lambda precision: tails(precision, bits), bits)
            return Slots(0, tuple(last - floor for floor in floors))

        return slots


@dataclass(frozen=True, eq=False)
class _Groups:
    """Runs of candidates by their loss, ascending; `left` tells how many candidates lose as much or more."""

    losses: list[int]
    left: list[int]
    cuts: list[int]
    firsts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, losses: Sequence[int], sizes: Sequence[int]) -> "_Groups":
        given, each = np.asarray(losses), np.asarray(sizes, dtype=np.int64)
        order = np.argsort(given, kind="stable")
        ascending, ordered = given[order], each[order]
        begins = np.concatenate([[0], np.flatnonzero(ascending[1:] != ascending[:-1]) + 1])
        left = np.cumsum(ordered[::-1])[::-1][begins]
        firsts = (np.cumsum(each) - each)[order]
        return cls(
            [int(loss) for loss in ascending[begins].tolist()],
            left.tolist(),
            [*begins.tolist(), given.size],
            firsts,
            ordered,
        )

    def member(self, group: int, count: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return independent candidates of a group, each as likely as the next."""
        part = slice(self.cuts[group], self.cuts[group + 1])
        firsts, ends = self.firsts[part], np.cumsum(self.sizes[part])
        places = Uniform(int(ends[-1])).sample(count, entropy)
        run = np.searchsorted(ends, places, side="right")
        return np.asarray(firsts[run] + places - (ends[run] - self.sizes[part][run]))


@dataclass(frozen=True, eq=False)
class PermuteAndFlip:
    r"""The law of the first head: candidates in random order, each a coin of probability exp(-`rate` · loss).

    The best candidate's coin always falls on its head, so there is a first. With pᵢ = exp(-rate · lossᵢ),

        P(i) = pᵢ ∫₀¹ Π_{j≠i} (1 - pⱼy) dy,

    because in random order every candidate may be given its own uniform time y, and j stood in the way of i if it
    came before y and fell on its head. The same integral is P(i has the largest utilityⱼ + Eⱼ) for
    independent exponential Eⱼ of mean 1/rate: the largest sum x is never below the best utility u*, and
    y = exp(-rate·(x - u*)) makes P(j stays below x) = 1 - pⱼy. So this is report noisy max with exponential
    noise, without a real number ever being drawn (McKenna & Sheldon 2020; Ding et al. 2021).

    **How it is drawn.** The coins do not depend on the order, so all of them are tossed and one of the heads is
    taken at random. A draw takes one 64-bit word a candidate and one more, but for rare ties.

    >>> from tabulary.noise import SystemEntropy
    >>> PermuteAndFlip(Fraction(1000), (5, 0)).sample(3, SystemEntropy()).tolist()
    [1, 1, 1]
    """

    rate: Fraction
    losses: Sequence[int] = field(repr=False)

    def __post_init__(self) -> None:
        _check(self.rate, self.losses)

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent choices, as numbers of candidates."""
        exponents, floors = self._coins
        sure = np.array([not exponent for exponent in exponents])

        def choose(count: int) -> NDArray[np.int64]:
            words = fresh_words(entropy, count * sure.size).reshape(count, sure.size)
            heads = sure | (words < floors)
            for row, tied in np.argwhere((words == floors) & ~sure):
                heads[row, tied] = settle_flip(exponents[tied], int(words[row, tied]), entropy)
            standing = heads.sum(axis=1)
            places = np.empty(count, dtype=np.int64)
            for number in np.unique(standing):
                at = np.flatnonzero(standing == number)
                places[at] = Uniform(int(number)).sample(at.size, entropy)
            # The head of that place is the first candidate by which so many heads have come.
            return np.asarray(np.argmax(np.cumsum(heads, axis=1) > places[:, None], axis=1))

        def draw(count: int) -> NDArray[np.int64]:
            # So many draws at a time that their words fit the cache, whatever the number of candidates.
            rows = max(1, _PIECE // sure.size)
            return np.concatenate([choose(min(rows, count - done)) for done in range(0, count, rows)])

        return sample_in_pieces(draw, size)

    @cached_property
    def _coins(self) -> tuple[list[Fraction], NDArray[np.uint64]]:
        """The exponent of every candidate's coin, and the floor of its probability in units of 2**-64."""
        exponents = [self.rate * int(loss) for loss in self.losses]
        distinct = sorted(set(exponents) - {0})
        floors = certain_floors(lambda bits: [exponential(x, bits) for x in distinct], WORD_BITS)
        known = dict(zip(distinct, floors, strict=True))
        return exponents, np.array([known.get(x, 0) for x in exponents], dtype=np.uint64)


def _check(rate: Fraction, losses: Sequence[int]) -> None:
    if not len(losses) or min(losses) != 0:
        raise InvalidNoise("A choice is made among candidates of which the best has a loss of zero.")
    if rate <= 0:
        raise InvalidNoise("The rate of a choice must be positive.")
