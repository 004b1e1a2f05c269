"""The cells of margins as counting queries: how many records have these levels of these attributes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.tally import Tally
from tabulary.core.domain import MAX_CELLS, Domain, Margin
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, InvalidWorkload, TooManyCells

Codes = NDArray[np.int32]

# The table of targets of a projection, one row per distinct prefix, in 32-bit numbers.
_MEMORY = 2**30


@dataclass(frozen=True, eq=False)
class Queries:
    """All cells of some margins, margin after margin, each in the order of its table.

    A level of an attribute is one column of a row in which every attribute is one-hot encoded; a cell is a product of
    columns. Each cell is kept as a *prefix*, the columns of all its attributes except the one with most levels, and a
    *last* column. Cells share prefixes, so that all answers are one product of matrices, prefixes by rows times rows
    by columns. A prefix is filled up to equal length with the column after the last, which is one in every row.

    A cell that the domain declares impossible is known to be zero, so it is no query.

    >>> work = Workload.parse("[sex][sex job]", Domain({"sex": ["F", "M"], "job": ["none", "paid", "own"]}))
    >>> queries = Queries.of(work)
    >>> queries.asked.size, queries.prefixes.tolist()
    (8, [[0], [1], [5]])
    >>> queries.prefix.tolist(), queries.last.tolist()
    ([2, 2, 0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 4, 2, 3, 4])
    """

    domain: Domain
    margins: tuple[Margin, ...]
    prefixes: Codes
    prefix: Codes
    last: Codes
    asked: NDArray[np.int64]
    impossible: NDArray[np.int64]

    @classmethod
    def of(cls, work: Workload) -> "Queries":
        """Return the cells of a workload, on the attributes in it."""
        named = {attribute for margin in work.margins for attribute in margin}
        if not named:
            raise InvalidWorkload("the workload has no table by an attribute, so it gives no rows.")
        domain = work.domain.project(named)
        for margin in work.margins:
            domain.check_cells(margin)
        cells = sum(map(domain.cells, work.margins))
        if cells > MAX_CELLS:
            raise TooManyCells(
                f"the margins have {cells:,} cells together, more than the cap of {MAX_CELLS:,}. Nothing "
                "was measured. Choose fewer margins, or coarsen an attribute."
            )
        # Prefixes that margins share are counted for each of them: a little too many.
        prefixes_at_most = sum(domain.cells(m) // max(domain.shape_of(m), default=1) for m in work.margins)
        needed = 2 * 4 * prefixes_at_most * (columns_of(domain) + 1)
        if needed > _MEMORY:
            raise TooManyCells(
                f"the margins need {needed / 2**30:,.1f} GiB of targets, but only {_MEMORY / 2**30:,.1f} "
                "may be used. Nothing was measured. Choose fewer margins, or coarsen an attribute."
            )
        width = max(len(margin) for margin in work.margins) - 1
        parts = [_cells(domain, margin, max(width, 0)) for margin in work.margins]
        prefixes, prefix = np.unique(np.concatenate([p for p, _ in parts]), axis=0, return_inverse=True)
        impossible = np.concatenate([domain.impossible(margin).ravel() for margin in work.margins])
        return cls(
            domain,
            work.margins,
            prefixes.astype(np.int32),
            prefix.astype(np.int32).ravel(),
            np.concatenate([last for _, last in parts]).astype(np.int32),
            np.flatnonzero(~impossible),
            np.flatnonzero(impossible),
        )

    def exact(self, tally: Tally) -> NDArray[np.int64]:
        """Return the exact count of every cell. Confidential."""
        return np.concatenate([tally.exact(margin).ravel() for margin in self.margins])

    def check_rounds(self, rounds: int, per_round: int) -> None:
        """Raise if there are too few queries for this many rounds of different ones."""
        for name, number in (("rounds", rounds), ("per_round", per_round)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise InvalidArgument(f"{name} must be a whole number, 1 or more, not {number!r}.")
        if rounds * per_round > self.asked.size:
            raise InvalidArgument(
                f"{rounds:,} rounds of {per_round:,} queries choose {rounds * per_round:,}, but the margins have "
                f"{self.asked.size:,} cells to choose from. Nothing was measured. Ask for fewer rounds, for fewer "
                "queries in each, or for one round, which answers them all."
            )


def columns_of(domain: Domain) -> int:
    """Return the number of columns of a one-hot encoded row."""
    return sum(domain.shape)


def offsets_of(domain: Domain) -> NDArray[np.int64]:
    """Return the first column of each attribute, and the end of the last."""
    return np.concatenate([[0], np.cumsum(domain.shape)])


def _cells(domain: Domain, margin: Margin, width: int) -> tuple[Codes, Codes]:
    """Return the prefix and the last column of each cell of a margin."""
    constant, offsets = columns_of(domain), offsets_of(domain)
    if not margin:
        return np.full((1, width), constant, dtype=np.int32), np.array([constant], dtype=np.int32)
    shape = domain.shape_of(margin)
    codes = np.indices(shape).reshape(len(shape), -1)
    columns = [codes[i] + offsets[domain.position(name)] for i, name in enumerate(margin)]
    # Most levels last: fewer prefixes. Ties go to the later attribute.
    last = columns.pop(max(range(len(shape)), key=lambda i: (shape[i], i)))
    prefix = np.full((last.size, width), constant, dtype=np.int32)
    for place, column in enumerate(columns):
        prefix[:, place] = column
    return prefix, last.astype(np.int32)
