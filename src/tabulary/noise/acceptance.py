"""Exact coin flips of probability exp(-x), for the envelope of the discrete Gaussian."""

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
    probability = 1 - x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5))))
    gap = words * 2.0**-WORD_BITS - probability
    kept = gap < 0
    for undecided in np.flatnonzero((np.abs(gap) <= _MARGIN) | (x > _LARGEST_FAST_EXPONENT)):
        start, offset = int(starts[undecided]), int(offsets[undecided])
        exponent = offset * (offset + 2 * start) / (2 * variance_parameter)
        kept[undecided] = settle_flip(exponent, int(words[undecided]), entropy)
    return kept


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
