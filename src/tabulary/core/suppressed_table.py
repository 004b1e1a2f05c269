"""A table with cells left out: what the public sees."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain
from tabulary.errors import InvalidTable

# How a suppressed cell is written: c for confidential, as in the tables of statistical offices.
MARK = "[c]"


@dataclass(frozen=True, eq=False)
class SuppressedTable:
    """The published cells of a table and its sums. A cell that is NaN is suppressed.

    `sums` contains the published margins, by their attributes: `("eye",)` the sums of each eye colour over the
    rest, `()` the total. `people` is the number of people in each cell, if that is public: no count is above it.
    `whole` says that values are counts, not amounts. Everything in it is public.

    >>> domain = Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]})
    >>> table = SuppressedTable(domain, np.array([[6, np.nan], [np.nan, 9]]), {("eye",): np.array([14, 17])})
    >>> int(table.suppressed.sum())
    2
    """

    domain: Domain
    counts: NDArray[np.float64]
    sums: Mapping[tuple[str, ...], NDArray[np.float64]] = field(default_factory=dict)
    people: NDArray[np.int64] | None = None
    whole: bool = True
    title: str = ""

    def __post_init__(self) -> None:
        counts = _numbers(self.counts, self.domain.shape, "the cells", self.whole)
        sums = {}
        for margin, values in self.sums.items():
            if list(margin) != [name for name in self.domain.attributes if name in margin]:
                raise InvalidTable(f"the sums by {margin} do not name attributes of the table, in its order.")
            shape = tuple(len(self.domain.levels_of(name)) for name in margin)
            sums[tuple(margin)] = _numbers(values, shape, f"the sums by {margin}", self.whole)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "sums", sums)
        if self.people is not None:
            people = _numbers(self.people, self.domain.shape, "the people", True).astype(np.int64)
            people.setflags(write=False)
            object.__setattr__(self, "people", people)
            if (self.counts > people).any():
                raise InvalidTable("a count is above the number of people in its cell.")

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Which cells are left out."""
        return np.isnan(self.counts)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return one row for each cell: its levels, its value or NaN, and its people where they are public."""
        from tabulary.core.long_form import long_columns

        values: dict[str, NDArray[Any]] = {"count": self.counts}
        if self.people is not None:
            values["people"] = self.people
        return long_columns(self.domain, values)

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.domain.shape))
        return f"<{type(self).__name__} {shape}, {int(self.suppressed.sum())} of {self.counts.size} cells suppressed>"


def _numbers(values: Any, shape: tuple[int, ...], name: str, whole: bool) -> NDArray[np.float64]:
    array = np.array(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidTable(f"{name} have shape {array.shape} but the labels say {shape}.")
    given = array[~np.isnan(array)]
    if not np.isfinite(given).all() or (given < 0).any():
        raise InvalidTable(f"{name} hold a value that is infinite or below zero.")
    if whole and (given != np.round(given)).any():
        raise InvalidTable(f"{name} hold a count that is not whole.")
    array.setflags(write=False)
    return array
