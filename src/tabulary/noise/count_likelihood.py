"""The likelihood of a released value for each possible count, in the form that the compiled kernels read."""

import math
from dataclasses import dataclass

import numpy as np

from tabulary.core.arrays import Floats, Integers

EXACT, LAPLACE, GAUSSIAN, SYMMETRIC, COLUMN = range(5)
"""How the kernels read a law; `tabulary.infer.kernels` says what each means."""

# Probabilities below this are left to the continuation of a table.
FAINT = 1e-290


@dataclass(frozen=True, eq=False)
class CountLikelihood:
    """log P(x | a) of a released value x, as a function of the count a, in one of the kinds that the kernels read.

    A SYMMETRIC table holds log p(k) for k = 0, 1, …. A COLUMN's table holds log P(x | a) for the counts a from `first`
    on, or from x + `first` on if it is `moved` along with x. Beyond its end a table goes on with `slope`, which falls
    by `curvature` with each step; with a slope of -inf it ends.
    """

    kind: int
    width: float = 0.0
    constant: float = 0.0
    slope: float = -math.inf
    curvature: float = 0.0
    table: Floats | None = None
    first: int = 0
    moved: bool = False

    @classmethod
    def symmetric(cls, half: Floats, *, curvature: float, fallback: float) -> "CountLikelihood":
        """Return a table of log p(k) from the probabilities of k = 0, 1, …, as far as doubles hold them.

        The slope at its end is that of its last two values, or `fallback` if there is only one.
        """
        clear = half > FAINT
        table = np.log(half[: int(np.argmin(clear)) if not clear.all() else half.size])
        slope = float(table[-1] - table[-2]) if table.size > 1 else fallback
        return cls(SYMMETRIC, slope=slope, curvature=curvature, table=table)

    def at(self, x: int, counts: Integers) -> Floats:
        """Return log P(x | a) for each of these counts a, -inf where x cannot be released.

        >>> law = CountLikelihood(COLUMN, table=np.log([0.25, 0.5, 0.25]), first=-1, moved=True)
        >>> np.exp(law.at(7, np.array([5, 6, 7]))).round(2).tolist()
        [0.0, 0.25, 0.5]
        """
        offsets = np.abs(x - counts).astype(np.float64)
        if self.kind == LAPLACE:
            return np.asarray(self.constant - self.width * offsets)
        if self.kind == GAUSSIAN:
            return np.asarray(self.constant - offsets**2 / (2 * self.width))
        assert self.table is not None, "what has no closed form has a table"
        if self.kind == SYMMETRIC:
            places = np.abs(x - counts)
        else:
            places = counts - (self.first + x if self.moved else self.first)
        if not self.table.size:
            return np.full(counts.shape, -math.inf)
        last = self.table.size - 1
        found = np.where(places >= 0, self.table[np.clip(places, 0, last)], -math.inf)
        beyond = np.maximum(places - last, 0)
        if self.slope == -math.inf:
            return np.where(beyond > 0, -math.inf, found)
        return np.asarray(found + self.slope * beyond - self.curvature * beyond * (beyond + 1) / 2)
