"""Record keys: their form, how to draw fresh ones, and when they repeat more often than chance allows."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.cellkey.runs import check_modulus
from tabulary.errors import InvalidArgument, InvalidColumn
from tabulary.noise import Entropy, SystemEntropy
from tabulary.noise.entropy import fresh_words

MOST_DIGITS = 15
"""Every float below one is exact to this many digits after the point, and no more."""

# Correct keys are refused about once in a billion tables.
_CHANCE = math.log(1e9)

# With fewer records per key than this, coinciding pairs are almost independent of each other.
_SPARSE = 100


@dataclass(frozen=True, init=False)
class RecordKeys:
    """The column of the record keys and their form: whole numbers 0 … `modulus` - 1, or decimals in [0, 1).

    The ONS uses 256 or 4,096 whole keys; R's cellKey uses decimals with a fixed number of `digits` after the point,
    which are read as whole numbers below 10**digits, exactly.

    >>> RecordKeys(modulus=256)
    RecordKeys(column='record_key', modulus=256, digits=None)
    >>> RecordKeys("rkey", digits=8).modulus
    100000000
    """

    column: str
    modulus: int
    digits: int | None

    def __init__(
        self, column: str = "record_key", *, modulus: int | None = None, digits: int | None = None
    ) -> None:
        if not isinstance(column, str) or not column:
            raise InvalidArgument(f"the name of the column of record keys must be text, not {column!r}.")
        if (modulus is None) == (digits is None):
            raise InvalidArgument(
                "record keys have either a modulus, if they are whole numbers, or digits, if they are "
                "decimals."
            )
        if digits is not None:
            if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= MOST_DIGITS:
                raise InvalidArgument(f"decimal record keys have 1 to {MOST_DIGITS} digits, not {digits!r}.")
            modulus = 10**digits
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "modulus", check_modulus(modulus))
        object.__setattr__(self, "digits", digits)


def record_keys(count: int, modulus: int, entropy: Entropy | None = None) -> NDArray[np.int64]:
    """Return fresh record keys, independent and exactly uniform on 0 … modulus - 1.

    For a custodian whose records have no keys yet. Draw keys once and keep them with the records for ever: fresh
    keys for the same records give fresh perturbations, and those average out. A word beyond the last whole multiple
    of the modulus is drawn again.

    >>> keys = record_keys(1000, 256)
    >>> keys.dtype.name, bool(keys.min() >= 0), bool(keys.max() < 256)
    ('int64', True, True)
    """
    keys = np.uint64(check_modulus(modulus))
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InvalidArgument(f"the number of record keys must be a whole number, not {count!r}.")
    source = SystemEntropy() if entropy is None else entropy
    limit = np.uint64((2**64 // int(keys)) * int(keys) - 1)
    drawn = np.empty(count, dtype=np.uint64)
    missing = np.arange(count)
    while missing.size:
        words = fresh_words(source, missing.size)
        drawn[missing] = words
        missing = missing[words > limit]
    return (drawn % keys).astype(np.int64)


def coinciding_pairs(keys: NDArray[np.int64]) -> int:
    """Return how many pairs of records have the same key.

    >>> coinciding_pairs(np.array([3, 1, 3, 3]))
    3
    """
    times = np.diff(np.flatnonzero(np.diff(np.sort(keys), prepend=-1, append=-1)))
    return pairs_of(times)


def pairs_of(times: NDArray[np.int64]) -> int:
    """Return Σ C(n, 2) over how often each key occurs."""
    # In numbers of any size: a key of five billion records has more pairs than 64 bits can count.
    often, ways = np.unique(times, return_counts=True)
    return sum(n * (n - 1) // 2 * c for n, c in zip(often.tolist(), ways.tolist(), strict=True))


def is_beyond_chance(pairs: int, records: int, modulus: int) -> bool:
    r"""Return whether uniform keys would coincide in this many pairs less than about once in a billion times.

    With N = C(n, 2) pairs of records and p = 1/modulus, the number of coinciding pairs has mean Np, variance Np(1 -
    p) and third moment Np(1 - p)(1 - 2p) + 6·C(n, 3)·p²(1 - p), from pairs of pairs and from triangles. With far
    fewer records than keys it is a Poisson number; otherwise it is approximated by a gamma law with these three
    moments, which is its limit for many records, up to a factor. Chernoff's inequality bounds both tails.

    >>> is_beyond_chance(2, 1_000_000, 2**62), is_beyond_chance(1, 1_000_000, 2**62)
    (True, False)
    """
    chance = 1 / modulus
    mean: float = math.comb(records, 2) * chance
    if pairs <= mean:
        return False
    if records * _SPARSE <= modulus:
        return pairs * math.log(pairs / mean) - pairs + mean > _CHANCE
    variance = mean * (1 - chance)
    third: float = variance * (1 - 2 * chance) + 6 * math.comb(records, 3) * chance**2 * (1 - chance)
    # Two keys and few records: the law is symmetric, and the gamma law becomes a normal one.
    lean = max(third / variance**1.5, 1e-6)
    step = (pairs - mean) / math.sqrt(variance) * lean / 2
    return bool(4 / lean**2 * (step - math.log1p(step)) > _CHANCE)


def refuse_repeated(column: str, pairs: int, records: int, modulus: int) -> None:
    """Refuse keys that coincide more often than chance allows."""
    if is_beyond_chance(pairs, records, modulus):
        raise InvalidColumn(
            f"the record keys in column {column!r} repeat far more often than {modulus} keys do by chance. "
            "Possible reasons are duplicate records, keys copied from record to record, or a constant key; "
            "each makes perturbations predictable. Nothing was published. Remove the duplicate records, or "
            "draw fresh keys with cellkey.record_keys."
        )
