"""From a designed distribution to shares of keys."""

from collections.abc import Mapping
from fractions import Fraction
from math import floor

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.errors import InvalidNoise


def exact_law(law: Mapping[int, object]) -> dict[int, Fraction]:
    """Return a law of whole offsets with exact probabilities, in ascending order; refuse anything else.

    >>> exact_law({1: 0.25, -1: "3/4"})
    {-1: Fraction(3, 4), 1: Fraction(1, 4)}
    """
    exact = {offset: exact_fraction(p, name="a probability", error=InvalidNoise) for offset, p in law.items()}
    for offset, probability in exact.items():
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise InvalidNoise(f"an offset must be a whole number, not {offset!r}.")
        if probability < 0:
            raise InvalidNoise(f"the offset {offset} has a negative probability.")
    total = sum(exact.values(), Fraction(0))
    if total != 1:
        raise InvalidNoise(
            f"the probabilities of a row add up to {show_fraction(total)}, not to 1. Write them as "
            "fractions such as '1/3' if decimals are not exact."
        )
    return {offset: exact[offset] for offset in sorted(exact) if exact[offset]}


def key_shares(law: Mapping[int, Fraction], modulus: int) -> dict[int, int]:
    """Return how many of `modulus` keys each offset of an exact law gets.

    Largest remainders: every offset gets its share of the keys rounded down, and the remaining keys go one by one
    to the offsets that lost most. Then an offset that got one and an offset that did not are exchanged, as long as
    this brings the mean of the shares closer to the mean of the law. No probability changes by more than one key.

    >>> key_shares(exact_law({-1: "1/4", 0: "1/2", 1: "1/4"}), 6)
    {-1: 1, 0: 4, 1: 1}
    """
    shares = {offset: floor(probability * modulus) for offset, probability in law.items()}
    left = {offset: law[offset] * modulus - share for offset, share in shares.items()}
    order = sorted(left, key=lambda offset: (-left[offset], abs(offset), offset))
    spare = modulus - sum(shares.values())
    up, down = order[:spare], order[spare:]
    # The error of the mean, times the number of keys.
    error = sum(up) - sum((v * r for v, r in left.items()), Fraction(0))
    while True:
        swaps = [(abs(error + low - high), i, j) for i, high in enumerate(up) for j, low in enumerate(down)]
        best = min(swaps, default=None)
        if best is None or best[0] >= abs(error):
            break
        _, i, j = best
        error += down[j] - up[i]
        up[i], down[j] = down[j], up[i]
    for offset in up:
        shares[offset] += 1
    return {offset: share for offset, share in shares.items() if share}
