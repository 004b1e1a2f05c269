"""Exact coin flips of probability exp(-x), for the envelopes of the Gaussian laws."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tabulary.noise.enclosure import exponential
from tabulary.noise.entropy import Entropy, fresh_words
from tabulary.noise.inversion import WORD_BITS

# Up to this exponent the polynomial below is within 2**-33 of exp(-x): the next term is x**6 / 720.
_LARGEST_FAST_EXPONENT = 1 / 16
_MARGIN = 2.0**-32


def accept(
    variance_parameter: Fraction, starts: NDArray[np.int64], offsets: NDArray[np.int64], entropy: Entropy
) -> NDArray[np.bool_]:
    r"""Return, for each proposal, a coin flip of probability exp(-((start + offset)² - start²) / (2σ²)).

    That is the weight of the proposed value over the weight its block was proposed with. A uniform number V
    accepts if V < exp(-x). Doubles decide where V is further than 2**-32 from the degree-5 Taylor polynomial
    of exp(-x): the truncation error is below 2**-33 and the rounding of the dozen additions and
    multiplications, which IEEE 754 bounds, below 2**-45. No library exponential is trusted. The rest, one
    flip in two billion and every x above 1/16, is settled in exact arithmetic.
    """
    words = fresh_words(entropy, offsets.size)
    x = (
        offsets.astype(np.float64)
        * (offsets + 2 * starts).astype(np.float64)
        * float(1 / (2 * variance_parameter))
    )
    kept, unclear = _flip(words, x)
    for undecided in unclear:
        start, offset = int(starts[undecided]), int(offsets[undecided])
        exponent = offset * (offset + 2 * start) / (2 * variance_parameter)
        kept[undecided] = settle_flip(exponent, int(words[undecided]), entropy)
    return kept


def accept_points(
    variance_parameter: Fraction,
    starts: NDArray[np.int64],
    positions: NDArray[np.uint64],
    position_bits: int,
    entropy: Entropy,
) -> NDArray[np.bool_]:
    r"""Return, for each point of the real line, a coin flip of probability exp(-((a + u)² - a²) / (2σ²)).

    The start a is an integer and u ≥ 0 a real number of which only the integer part and the first
    `position_bits` bits behind the point have been drawn, as `positions`. Decided as in `accept`. The bits of
    u that are still open move the exponent by at most 2**-position_bits · (a + u)/σ². That is below 2**-40
    for the blocks of `half_line_slots`: u has 63 bits in all and is at most σ/2**8, and a is below 2**30 σ,
    because a table that reached so far would not fit any memory. Where the two uniform numbers are too close
    to tell, more bits of both are drawn.
    """
    words = fresh_words(entropy, positions.size)
    points = positions * 2.0**-position_bits
    x = points * (points + 2 * starts.astype(np.float64)) * float(1 / (2 * variance_parameter))
    kept, unclear = _flip(words, x)
    for undecided in unclear:
        kept[undecided] = settle_point(
            variance_parameter,
            int(starts[undecided]),
            int(positions[undecided]),
            position_bits,
            int(words[undecided]),
            entropy,
        )
    return kept


def _flip(words: NDArray[np.uint64], x: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return which words lie below exp(-x), and where the answer must not be trusted."""
    probability = 1 - x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5))))
    gap = words * 2.0**-WORD_BITS - probability
    return gap < 0, np.flatnonzero((np.abs(gap) <= _MARGIN) | (x > _LARGEST_FAST_EXPONENT))


def settle_point(
    variance_parameter: Fraction, start: int, position: int, position_bits: int, word: int, entropy: Entropy
) -> bool:
    """Return whether a uniform number lies below exp(-((a + u)² - a²) / (2σ²)) for a lazily drawn real u.

    The number begins with the 64 bits of `word`, and u with `position` / 2**`position_bits`. Each round that
    stays undecided draws 64 more bits of both.

    >>> from tabulary.noise import SystemEntropy
    >>> settle_point(Fraction(10**6), 0, 0, 63, 0, SystemEntropy())
    True
    """
    prefix, bits = word, WORD_BITS
    while True:
        unit = 1 << position_bits
        near, far = (
            Fraction(u * (u + 2 * start * unit), unit * unit) / (2 * variance_parameter)
            for u in (position, position + 1)
        )
        if prefix + 1 <= exponential(far, bits)[0]:
            return True
        if prefix >= exponential(near, bits)[1]:
            return False
        more, again = (int(each) for each in fresh_words(entropy, 2))
        prefix, bits = (prefix << WORD_BITS) | more, bits + WORD_BITS
        position, position_bits = (position << WORD_BITS) | again, position_bits + WORD_BITS


def settle_flip(exponent: Fraction, word: int, entropy: Entropy) -> bool:
    """Return whether the uniform number that begins with the 64 bits of `word` lies below exp(-`exponent`).

    >>> from tabulary.noise import SystemEntropy
    >>> settle_flip(Fraction(1), 0, SystemEntropy())
    True
    """
    prefix, bits = word, WORD_BITS
    while True:
        lower, upper = exponential(exponent, bits)
        if prefix + 1 <= lower:
            return True
        if prefix >= upper:
            return False
        prefix = (prefix << WORD_BITS) | int(fresh_words(entropy, 1)[0])
        bits += WORD_BITS
