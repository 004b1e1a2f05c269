"""The split of a budget over tables that makes a weighted error small."""

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np

from tabulary.core.arrays import Floats

_DIGITS = 6
_HALVINGS = 50
# One for each power of e that the largest rate may be above the right one, and a few to converge.
_NEWTON_STEPS = 40
# The precision of the bisection.
_FOUND = 1e-11


def split_budget(weights: Sequence[Fraction], rate: Fraction) -> list[Fraction]:
    r"""Return shares, at most one in all, that minimise Σ weight · V(share · rate).

    V(r) = 1 / (2 sinh²(r/2)) is the variance of discrete Laplace noise whose probabilities fall by e^-r a step:
    with a share of the budget ε, and `rate` the r that all of it would buy. It is convex, so at the minimum all
    -weight·V'(r) = weight · cosh(r/2) / (2 sinh³(r/2)) are the same. Where r is small V ≈ 2/r², and the shares are
    nearly in proportion to weight^(1/3); where noise is seldom drawn at all they differ by logarithms only. Found by
    bisection, and rounded down to six digits.

    >>> split_budget([Fraction(8), Fraction(1)], Fraction(1, 100))
    [Fraction(333333, 500000), Fraction(333333, 1000000)]
    """
    logs = np.array([np.log(float(weight)) for weight in weights])
    total = float(rate)
    # With the slope that gives the heaviest table all, the shares are too many; with that of an equal part, too few.
    low, high = logs.max() + _log_slope(np.array([total, total / len(weights)]))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _rates(middle - logs, total).sum() > total else (low, middle)
    shares = _rates(high - logs, total) / total
    # A half that was found as 0.4999999999 is a half, as long as the sum allows it.
    lifted = [_rounded_down(share * (1 + _FOUND)) for share in shares.tolist()]
    return lifted if sum(lifted) <= 1 else [_rounded_down(share * (1 - _FOUND)) for share in shares.tolist()]


def _rounded_down(share: float) -> Fraction:
    return Fraction(Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal(Decimal(share)))


def _rates(log_slopes: Floats, largest: float) -> Floats:
    """Return the rates, up to `largest`, at which -V' has these logarithms.

    As a function of log r, log(-V') falls and is concave, so Newton's method from the right comes nearer each time.
    """
    logs = np.full(log_slopes.shape, np.log(largest))
    for _ in range(_NEWTON_STEPS):
        rates = np.exp(logs)
        slope = rates * (np.tanh(rates / 2) - 3 / np.tanh(rates / 2)) / 2
        nearer = np.minimum(logs - (_log_slope(rates) - log_slopes) / slope, np.log(largest))
        near, logs = np.abs(nearer - logs).max() < 1e-14, nearer
        if near:
            break
    return np.asarray(np.exp(logs))


def _log_slope(rates: Floats) -> Floats:
    """Return log(-V'(r)), in terms that no r overflows."""
    # log cosh and log sinh of r/2 share r/2 - log 2.
    return np.asarray(np.log(2) - rates + np.log1p(np.exp(-rates)) - 3 * np.log(-np.expm1(-rates)))
