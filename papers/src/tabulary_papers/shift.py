"""The shift of Dwork, McSherry & Talwar (2007), for continuous noise as in the paper.

A constant added to the total raises all cells alike, so that with a known probability no cell is negative: Theorem 6,
and Corollary 1 as published. Tabulary draws discrete noise, for which `tabulary.reconstruct.integer_shift` is exact.
"""

from fractions import Fraction

from scipy.special import gammaincc, gammainccinv

from tabulary.errors import InvalidNoise


def nonnegative_shift(scale: Fraction, coefficients: int, *, failure: float) -> float:
    r"""Return the constant that makes a perturbed table non-negative with probability 1 - `failure`.

    The L1 norm of d Laplace draws of scale b is Gamma(d, b); the shift is its quantile. Post-processing: reads no
    data, spends no budget. Biases every cell of a j-way margin of binary attributes upward by shift / 2**j.
    Dwork, McSherry & Talwar (2007), Theorem 6, made exact.

    >>> round(nonnegative_shift(Fraction(1), 22, failure=0.05), 2)
    30.24
    """
    return float(gammainccinv(coefficients, failure)) * float(scale)


def published_shift(scale: Fraction, coefficients: int, *, t: float) -> float:
    """Return the shift of Dwork, McSherry & Talwar (2007), Corollary 1, as published: t·d·scale.

    The paper adds t·d²/(ε 2^{k/2}) to the normalised first coefficient, where noise has the scale d/(ε 2^{k/2}); in
    units of the total that is t·d·scale. It claims a failure probability of at most exp(-t), which is false for
    small t (see `published_failure`) and loose for large t.

    >>> published_shift(Fraction(1), 22, t=2.996)
    65.912
    """
    if not t > 0:
        raise InvalidNoise(f"t must be positive, not {t!r}.")
    return t * coefficients * float(scale)


def published_failure(coefficients: int, *, t: float) -> float:
    """Return the probability with which the published shift is smaller than the L1 norm of the noise.

    >>> round(published_failure(12, t=1), 2)  # exp(-1) = 0.37 is claimed
    0.46
    """
    return float(gammaincc(coefficients, published_shift(Fraction(1), coefficients, t=t)))
