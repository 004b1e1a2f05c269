r"""Report noisy max under zero-concentrated differential privacy, drawn exactly.

With Gumbel noise on the scores, report noisy max has the law of the exponential mechanism: candidate i with
probability ∝ exp(r·scoreᵢ). One person moves every score by at most Δ, so the logarithm of the ratio of an outcome's
probabilities lies in an interval of length 2rΔ, the same for all outcomes. A loss of range 2rΔ is
(2rΔ)²/8-zCDP (Hoeffding's lemma; Rogers & Steinke 2021), so ρ-zCDP allows r = √(2ρ)/Δ. Laplace or exponential
noise on the scores, whose ε-DP is worth only ε²/2-zCDP, would allow half of it.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tabulary.core.exact_numbers import show_fraction
from tabulary.errors import InvalidNoise
from tabulary.noise import Sampler
from tabulary.toolbox.choice_laws import ExponentialChoice

# Bits of a rate: a rate that is rounded down by less than a millionth loses nothing that could be seen.
_BITS = 24


def choice_rate(rho: Fraction, sensitivity: int) -> Fraction:
    """Return the largest rate, rounded down, at which one choice is `rho`-zCDP: √(2ρ)/Δ.

    >>> rate = choice_rate(Fraction(1, 8), 1)
    >>> rate, choice_rate(Fraction(1, 8), 2)
    (Fraction(1, 2), Fraction(1, 4))
    """
    if rho <= 0 or sensitivity < 1:
        raise InvalidNoise(f"no choice has ρ = {show_fraction(rho)} at sensitivity {sensitivity}.")
    square = 2 * rho / sensitivity**2
    # Scaled by a power of four, so that its whole root has the wanted bits.
    shift = max(0, _BITS - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    return Fraction(math.isqrt(math.floor(square * 4**shift)), 2**shift)


def noisy_largest(
    scores: NDArray[np.int64], count: int, *, rho: Fraction, sensitivity: int, sampler: Sampler
) -> NDArray[np.int64]:
    """Return `count` different candidates, one after another by report noisy max among the remaining ones.

    Each choice is `rho`-zCDP, all of them count·ρ by composition. Scores are whole numbers; one person moves each by
    at most `sensitivity`. Confidential until drawn.

    The law among all candidates, given that the draw is none of those already chosen, is the law among the rest.
    So one law is enough until it draws a candidate for the second time; then the rest get a new law, and the draw is
    repeated. No draw is rejected twice, however far the best candidates are ahead.

    >>> from tabulary.noise import ExactSampler
    >>> noisy_largest(np.array([0, 900, 5, 400]), 2, rho=Fraction(1), sensitivity=1, sampler=ExactSampler()).tolist()
    [1, 3]
    """
    if not 1 <= count <= scores.size:
        raise InvalidNoise(f"{count} of {scores.size} candidates cannot be chosen.")
    rate = choice_rate(rho, sensitivity)
    # In the order of their scores, so that candidates of equal score are one run of the law.
    left = np.argsort(scores, kind="stable")
    law = _law(rate, scores[left])
    chosen: list[int] = []
    while len(chosen) < count:
        drawn = int(left[int(sampler.draw(law, 1)[0])])
        if drawn in chosen:
            left = left[~np.isin(left, chosen)]
            law = _law(rate, scores[left])
            drawn = int(left[int(sampler.draw(law, 1)[0])])
        chosen.append(drawn)
    return np.array(chosen, dtype=np.int64)


def _law(rate: Fraction, ascending: NDArray[np.int64]) -> ExponentialChoice:
    values, sizes = np.unique(ascending, return_counts=True)
    return ExponentialChoice(rate, (values[-1] - values).tolist(), sizes.tolist())
