"""The perturbation table: what to add to a cell, by the cell's value and the cell's key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tabulary.cellkey import layouts
from tabulary.cellkey.design import exact_law, key_shares
from tabulary.cellkey.runs import Runs, check_modulus
from tabulary.core.arrays import Integers
from tabulary.core.exact_numbers import show_fraction
from tabulary.errors import ConfidentialError, InvalidArgument, InvalidNoise

Above = Literal["refuse", "last"] | tuple[Literal["repeat"], int]
"""What happens to a count above the last row: it is refused, uses the last row, or the rows from one on repeat."""


@dataclass(frozen=True, eq=False)
class PTable:
    """A `pvalue` for each perturbation cell value (`pcv`) and cell key (`ckey`) 0 … `modulus` - 1.

    The rows begin at `first`: at 1 a zero stays a zero, at 0 zeros are perturbed too. A count above the last row is
    refused, or uses the last row, or, with ("repeat", 501), uses the rows from 501 to the last in turn. If keys are
    uniform, row `pcv` adds each offset with the probability that `probabilities` gives. `rounding` is the largest
    total variation distance between a row and the law that it was made from. No such table is differentially
    private.

    >>> ptable = PTable.from_rows([{0: 1}, {-1: "1/2", 1: "1/2"}, {-1: "1/4", 0: "1/2", 1: "1/4"}], modulus=256)
    >>> ptable
    <PTable of 3 rows from 0, 256 keys, offsets -1 to 1, above the last row: last>
    >>> ptable.pvalue(2, 0), ptable.pvalue(1_000, 255)
    (-1, 1)
    >>> ptable.variance(1), ptable.rounding
    (Fraction(1, 1), Fraction(0, 1))
    """

    runs: Runs
    modulus: int
    first: int = 1
    above: Above = "refuse"
    rounding: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_modulus(self.modulus)
        if self.first not in (0, 1):
            raise InvalidNoise(f"the rows of a ptable must begin at 0 or at 1, not at {self.first!r}.")
        if not self.runs.rows or self.runs.starts.max() >= self.modulus:
            raise InvalidNoise(f"a ptable has at least one row, and its keys are below {self.modulus}.")
        counts = np.repeat(np.arange(self.first, self.last + 1), np.diff(self.runs.offsets))
        if np.any(counts + self.runs.pvalues < 0):
            raise InvalidNoise(
                "the ptable would publish a negative count: some pvalue is below -pcv. Nothing was published."
            )
        match self.above:
            case "refuse" | "last":
                pass
            case ("repeat", int(row)) if max(1, self.first) <= row <= self.last:
                pass
            case _:
                raise InvalidArgument(
                    '`above` must be "refuse", "last" or ("repeat", row) with a row of the ptable from 1 '
                    f"on, not {self.above!r}."
                )

    @classmethod
    def from_array(cls, pvalues: ArrayLike, *, first: int = 1, above: Above = "refuse") -> "PTable":
        """Return the table of a matrix: one row per cell value from `first` on, one column per key.

        >>> PTable.from_array([[-1, 2], [0, 0]]).pvalue(1, 1)
        2
        """
        try:
            matrix = np.asarray(pvalues)
        except ValueError:
            matrix = np.empty(0)
        if matrix.ndim != 2 or not matrix.size or matrix.dtype.kind not in "iu":
            raise InvalidNoise(
                "a ptable is a matrix of whole numbers: one row per cell value, one column per key, and no "
                "missing value."
            )
        return cls(Runs.of_array(matrix.astype(np.int64)), matrix.shape[1], first, above)

    @classmethod
    def from_rows(
        cls, rows: Iterable[Mapping[int, object]], *, modulus: int, first: int = 0, above: Above = "last"
    ) -> "PTable":
        """Return the table of a designed law: for each cell value from `first` on, offsets and probabilities.

        Each row gets its keys by largest remainders; the mean stays as close to the law's mean as one key per
        offset allows (`cellkey.design.key_shares`). The offsets are in ascending order on the keys.

        >>> PTable.from_rows([{0: 1}, {-1: "1/2", 1: "1/2"}], modulus=10).probabilities(1)
        {-1: Fraction(1, 2), 1: Fraction(1, 2)}
        """
        keys = check_modulus(modulus)
        made, distance = [], Fraction(0)
        for law in map(exact_law, rows):
            shares = key_shares(law, keys)
            starts = np.cumsum([0, *shares.values()], dtype=np.int64).tolist()
            made.append(list(zip(starts, shares, strict=False)))
            moved = (abs(Fraction(shares.get(v, 0), keys) - p) for v, p in law.items())
            distance = max(distance, sum(moved, Fraction(0)) / 2)
        return cls(Runs.of_rows(made), keys, first, above, distance)

    @classmethod
    def from_csv(
        cls, path: str | Path, *, modulus: int | None = None, above: Above | None = None
    ) -> "PTable":
        """Return the table in a file whose header says its layout: see `cellkey.layouts`.

        In the interval layout `modulus` is the number of record keys: 10**digits for keys with that many digits
        after the point. The default is the smallest power of ten that loses nothing. By default, R's layouts use
        their last row for all larger counts, as they are designed, and the long layout refuses larger counts.
        """
        read = layouts.read_csv(path, modulus)
        usual: Above = "refuse" if read.layout == layouts.LONG else "last"
        return cls(read.runs, read.modulus, read.first, usual if above is None else above, read.rounding)

    def to_csv(self, path: str | Path, *, layout: str = layouts.LONG) -> None:
        """Write the table, in the layout "long" (ONS) or "intervals" (R). `above` is not part of a file."""
        if layout not in (layouts.LONG, layouts.INTERVALS):
            raise InvalidArgument(f'a ptable is written in the layout "long" or "intervals", not {layout!r}.')
        write = layouts.long_csv if layout == layouts.LONG else layouts.interval_csv
        Path(path).write_text(write(self.runs, self.modulus, self.first), "utf-8", newline="\n")

    @property
    def last(self) -> int:
        """The cell value of the last row."""
        return self.first + self.runs.rows - 1

    @property
    def perturbs_zeros(self) -> bool:
        """Whether a cell without participants may be published as more than zero."""
        return self.first == 0 and bool(np.any(self.runs.pvalues[: self.runs.offsets[1]]))

    def probabilities(self, pcv: int) -> dict[int, Fraction]:
        """Return the exact law of the offset in one row, for uniform keys."""
        if not self.first <= pcv <= self.last:
            raise InvalidArgument(f"the ptable has the rows {self.first} to {self.last}, not {pcv}.")
        shares: dict[int, int] = {}
        for pvalue, start, end in self.runs.row(pcv - self.first, self.modulus):
            shares[pvalue] = shares.get(pvalue, 0) + end - start
        return {pvalue: Fraction(shares[pvalue], self.modulus) for pvalue in sorted(shares)}

    def mean(self, pcv: int) -> Fraction:
        """Return the mean of the offset in one row: the bias of the cells that use it."""
        return sum((v * p for v, p in self.probabilities(pcv).items()), Fraction(0))

    def variance(self, pcv: int) -> Fraction:
        """Return the variance of the offset in one row."""
        squares = sum((v * v * p for v, p in self.probabilities(pcv).items()), Fraction(0))
        return squares - self.mean(pcv) ** 2

    def pvalue(self, count: int, ckey: int) -> int:
        """Return what is added to one count."""
        pcv = self.pcv(np.array([count]))
        return int(self.pvalues(pcv, np.array([ckey]))[0])

    def pcv(self, counts: Integers) -> Integers:
        """Return the row that each count uses; 0 for a zero, even if the table has no such row."""
        high = counts > self.last
        if not high.any():
            return counts
        match self.above:
            case "last":
                return np.minimum(counts, self.last)
            case ("repeat", int(row)):
                return np.where(high, row + (counts - row) % (self.last - row + 1), counts)
        # Which count it was, and of which cell, is confidential.
        raise ConfidentialError(
            f"at least one cell is larger than the ptable's last row, {self.last}. Nothing was published. "
            'Use a larger ptable, or say what happens to such a count: above="last", or above=("repeat", '
            "row)."
        )

    def pvalues(self, pcv: Integers, ckeys: Integers) -> Integers:
        """Return the perturbation for each row and key; zeros are unchanged if the table has no row 0."""
        # Loading the compiler takes longer than reading a table, and a ptable is also used without cells.
        from tabulary.cellkey.kernels import look_up

        if np.any((ckeys < 0) | (ckeys >= self.modulus)):
            raise InvalidArgument(f"a ckey of this ptable must be between 0 and {self.modulus - 1}.")
        if np.any((pcv < 0) | (pcv > self.last)):
            raise InvalidArgument(f"a pcv of this ptable must be between 0 and {self.last}.")
        found = np.zeros(pcv.shape, dtype=np.int64)
        runs = self.runs
        look_up(
            pcv.reshape(-1) - self.first,
            ckeys.reshape(-1),
            runs.offsets,
            runs.starts,
            runs.pvalues,
            found.reshape(-1),
        )
        return found

    def describe(self) -> dict[str, object]:
        """Return what may be published about the table: its size and the range of its law, not what a key does."""
        return {
            "rows": [self.first, self.last],
            "keys": self.modulus,
            "offsets": [int(self.runs.pvalues.min()), int(self.runs.pvalues.max())],
            "above": list(self.above) if isinstance(self.above, tuple) else self.above,
            "perturbs_zeros": self.perturbs_zeros,
            "rounding": show_fraction(self.rounding),
        }

    def __eq__(self, other: object) -> bool:
        """Return whether the other table gives every count and key the same perturbation."""
        return isinstance(other, PTable) and (
            (self.modulus, self.first, self.above) == (other.modulus, other.first, other.above)
            and all(
                np.array_equal(getattr(self.runs, name), getattr(other.runs, name))
                for name in ("offsets", "starts", "pvalues")
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        told = self.describe()
        low, high = self.runs.pvalues.min(), self.runs.pvalues.max()
        above = " ".join(map(str, self.above)) if isinstance(self.above, tuple) else told["above"]
        return (
            f"<PTable of {self.runs.rows} rows from {self.first}, {self.modulus} keys, offsets {low} to {high}, "
            f"above the last row: {above}>"
        )
