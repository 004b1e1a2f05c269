"""Rows of a lookup table as runs: from which key on each perturbation holds.

A row gives a whole number to every key 0 … modulus - 1. Neighbouring keys mostly have the same number, and a key
may have eighteen digits, so a row is stored as the keys at which its number changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from tabulary.core.arrays import Integers
from tabulary.errors import InvalidNoise

LARGEST_MODULUS = 2**62
"""The largest number of keys: the sum of two keys still fits in 64 bits."""


def check_modulus(modulus: object) -> int:
    """Return the number of keys, or refuse it.

    >>> check_modulus(256)
    256
    """
    if isinstance(modulus, bool) or not isinstance(modulus, int | np.integer):
        raise InvalidNoise(f"the number of keys must be a whole number such as 256, not {modulus!r}.")
    if not 2 <= modulus <= LARGEST_MODULUS:
        raise InvalidNoise(f"the number of keys must be from 2 to 2**62, not {modulus}.")
    return int(modulus)


@dataclass(frozen=True, eq=False)
class Runs:
    """Row r holds `pvalues[k]` from key `starts[k]` on, for k from `offsets[r]` up to `offsets[r + 1]`.

    >>> runs = Runs.of_array(np.array([[-1, -1, 0, 1], [0, 0, 0, 0]]))
    >>> runs.offsets.tolist(), runs.starts.tolist(), runs.pvalues.tolist()
    ([0, 3, 4], [0, 2, 3, 0], [-1, 0, 1, 0])
    """

    offsets: Integers
    starts: Integers
    pvalues: Integers

    def __post_init__(self) -> None:
        for name in ("offsets", "starts", "pvalues"):
            array = np.array(getattr(self, name), dtype=np.int64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        first = np.zeros(self.starts.shape, dtype=bool)
        whole = self.starts.shape == self.pvalues.shape == (self.offsets[-1],) and self.offsets[0] == 0
        if whole and np.all(np.diff(self.offsets) > 0):
            first[self.offsets[:-1]] = True
        # Each row begins at key 0 and goes up; a row without a run, or an end elsewhere, leaves `first` empty.
        if not np.array_equal(self.starts == 0, first) or np.any(np.diff(self.starts)[~first[1:]] <= 0):
            raise InvalidNoise(
                "the runs of a row must begin at key 0, with at least one run, in ascending order of keys."
            )

    @classmethod
    def of_array(cls, array: Integers) -> "Runs":
        """Return the runs of a matrix: one row per count, one column per key."""
        begins = np.ones(array.shape, dtype=bool)
        begins[:, 1:] = array[:, 1:] != array[:, :-1]
        offsets = np.concatenate([[0], np.cumsum(begins.sum(axis=1))])
        return cls(offsets, np.nonzero(begins)[1], array[begins])

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[tuple[int, int]]]) -> "Runs":
        """Return the runs of rows given as (first key, number), in the order of the keys."""
        offsets, starts, pvalues = [0], list[int](), list[int]()
        for row in rows:
            for start, pvalue in row:
                # Neighbouring runs with the same number become one run, so that equal tables have equal runs.
                if len(starts) == offsets[-1] or pvalue != pvalues[-1]:
                    starts.append(start)
                    pvalues.append(pvalue)
            offsets.append(len(starts))
        return cls(np.array(offsets), np.array(starts), np.array(pvalues))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.offsets) - 1

    def row(self, number: int, modulus: int) -> list[tuple[int, int, int]]:
        """Return one row as (number, first key, first key of the next run)."""
        part = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
        starts = self.starts[part].tolist()
        return list(zip(self.pvalues[part].tolist(), starts, [*starts[1:], modulus], strict=True))

    def array(self, modulus: int) -> Integers:
        """Return the matrix of all rows and keys."""
        ends = np.append(self.starts[1:], 0)
        ends[self.offsets[1:] - 1] = modulus
        return np.repeat(self.pvalues, ends - self.starts).reshape(self.rows, modulus)


def runs_of_boundaries(
    bounded: Iterable[Sequence[tuple[Fraction, int]]], modulus: int
) -> tuple[Runs, Fraction]:
    """Return the runs of rows given as (upper boundary in [0, 1], number), and the cost of rounding to keys.

    Key k stands for the fraction k/modulus, so a run begins at the first whole number not below boundary · modulus.
    The cost is the largest total variation distance between a row and what its keys give.

    >>> runs, cost = runs_of_boundaries([[(Fraction(1, 3), -1), (Fraction(1), 1)]], 4)
    >>> runs.starts.tolist(), cost
    ([0, 2], Fraction(1, 6))
    """
    rows: list[list[tuple[int, int]]] = []
    cost = Fraction(0)
    for bounds in bounded:
        row: list[tuple[int, int]] = []
        moved: dict[int, Fraction] = {}
        below, start = Fraction(0), 0
        for upper, pvalue in bounds:
            end = ceil(upper * modulus)
            moved[pvalue] = moved.get(pvalue, Fraction(0)) + Fraction(end - start, modulus) - (upper - below)
            if end > start:
                row.append((start, pvalue))
            below, start = upper, end
        rows.append(row)
        cost = max(cost, sum(map(abs, moved.values()), Fraction(0)) / 2)
    return Runs.of_rows(rows), cost
