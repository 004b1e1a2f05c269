"""A table that is known in part: the state of a release from which decisions are made."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidTable
from tabulary.table_samplers.people import People, Range
from tabulary.table_samplers.poisson_binomial import PoissonBinomial


@dataclass(frozen=True)
class CellQuestion:
    """The question: how many have the attribute in this cell?"""

    index: tuple[int, ...]


@dataclass(frozen=True)
class SplitQuestion:
    """The question: how many have it in the first part, if group `group` of an axis is split before level `cut`?

    The number in the other part follows, since the sum of the group is known.
    """

    axis: int
    group: int
    cut: int


TableQuestion = CellQuestion | SplitQuestion


@dataclass(frozen=True, eq=False)
class PartialTable:
    """The groups that the levels of each attribute form, the sum of each group, and bounds of each cell.

    A *cell* here is a block of the domain: one group of each attribute. `sums[axis][group]` are the released sums of
    that axis; those of every axis add up to the same total. `lower` and `upper` are the l and u of Nabar & Mishra,
    equations 1 and 2: a released cell has both at its value, any other 0 and its number of people.

    >>> from tabulary.core.domain import Domain
    >>> people = People.of(Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]}), [[20, 30], [10, 40]], 0.3)
    >>> known = PartialTable.total(people, 31)
    >>> known = known.answered(SplitQuestion(axis=0, group=0, cut=1), 14)
    >>> known = known.answered(SplitQuestion(axis=1, group=0, cut=1), 9)
    >>> known.answered(CellQuestion((0, 0)), 6).lower.tolist()
    [[6, 0], [0, 0]]
    """

    people: People
    groups: tuple[tuple[Range, ...], ...]
    sums: tuple[NDArray[np.int64], ...]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]

    def __post_init__(self) -> None:
        if tuple(sums.shape for sums in self.sums) != tuple((size,) for size in self.shape):
            raise InvalidTable("there must be one sum for each group of each attribute.")
        totals = {int(sums.sum()) for sums in self.sums}
        if len(totals) > 1:
            raise InvalidTable("the sums of different axes do not add up to the same total.")
        if (self.lower > self.upper).any():
            raise InvalidTable("a cell's lower bound is above its upper bound.")
        for axis, sums in enumerate(self.sums):
            others = tuple(other for other in range(self.lower.ndim) if other != axis)
            if (self.lower.sum(axis=others) > sums).any() or (self.upper.sum(axis=others) < sums).any():
                raise InvalidTable(
                    f"a sum of attribute {self.people.domain.attributes[axis]!r} contradicts its cells."
                )

    @classmethod
    def total(cls, people: People, total: int) -> "PartialTable":
        """Return what is known when only the number of all the people with the attribute is."""
        groups = tuple(((0, levels),) for levels in people.shape)
        return cls._of(people, groups, tuple(np.array([total]) for _ in groups))

    @classmethod
    def table(
        cls, people: People, sums: tuple[NDArray[np.int64], ...], cells: NDArray[np.float64] | None = None
    ) -> "PartialTable":
        """Return what is known when the sums of every level are, and the cells that are not NaN."""
        groups = tuple(tuple((level, level + 1) for level in range(levels)) for levels in people.shape)
        known = cls._of(people, groups, tuple(np.asarray(values, dtype=np.int64) for values in sums))
        if cells is None:
            return known
        given = ~np.isnan(cells)
        whole = np.where(given, cells, 0).astype(np.int64)
        if (whole < 0).any() or (whole > known.upper).any():
            raise InvalidTable("a count is below zero or above the number of people in its cell.")
        return replace(
            known, lower=np.where(given, whole, known.lower), upper=np.where(given, whole, known.upper)
        )

    @classmethod
    def _of(
        cls, people: People, groups: tuple[tuple[Range, ...], ...], sums: tuple[NDArray[np.int64], ...]
    ) -> "PartialTable":
        shape = tuple(len(of_axis) for of_axis in groups)
        upper = np.empty(shape, dtype=np.int64)
        for index in np.ndindex(shape):
            upper[index] = people.count_law(_block(groups, index)).size
        return cls(people, groups, sums, np.zeros(shape, dtype=np.int64), upper)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many groups each attribute has."""
        return tuple(len(of_axis) for of_axis in self.groups)

    def count_law(self, index: tuple[int, ...]) -> PoissonBinomial:
        """Return the people of one cell."""
        return self.people.count_law(_block(self.groups, index))

    def answered(self, question: TableQuestion, value: int) -> "PartialTable":
        """Return what is known once the question was answered."""
        if isinstance(question, CellQuestion):
            return self.bounded(question.index, value, value)
        return self._split(question, value)

    def bounded(self, index: tuple[int, ...], lower: int, upper: int) -> "PartialTable":
        """Return what is known once a cell is known to lie between two values, neither outside its bounds so far."""
        if lower < self.lower[index] or upper > self.upper[index]:
            raise InvalidTable("the new bounds of a cell contradict its old bounds.")
        low, high = self.lower.copy(), self.upper.copy()
        low[index], high[index] = lower, upper
        return replace(self, lower=low, upper=high)

    def split_bounds(self, split: SplitQuestion) -> tuple[int, int]:
        """Return the least and the largest number that the first part of a group can have, by its people alone."""
        first, last = self.groups[split.axis][split.group]
        inside, beyond = (
            int(self.people.in_cells.take(range(*levels), axis=split.axis).sum())
            for levels in ((first, split.cut), (split.cut, last))
        )
        total = int(self.sums[split.axis][split.group])
        return max(0, total - beyond), min(total, inside)

    def tightened(self) -> "PartialTable":
        """Return the same with the bounds that follow from each sum and the other cells' bounds, over and over.

        Bounds that follow from several sums together, and from none of them alone, may be missed.
        """
        lower, upper = self.lower, self.upper
        while True:
            before = int((upper - lower).sum())
            for axis, sums in enumerate(self.sums):
                others = tuple(other for other in range(lower.ndim) if other != axis)
                total = np.expand_dims(sums, others)
                least, most = lower.sum(axis=others, keepdims=True), upper.sum(axis=others, keepdims=True)
                lower, upper = (
                    np.maximum(lower, total - (most - upper)),
                    np.minimum(upper, total - (least - lower)),
                )
            if (lower > upper).any():
                raise InvalidTable(
                    "the sums and the released cells contradict each other: no table has all of them."
                )
            if int((upper - lower).sum()) == before:
                return replace(self, lower=lower, upper=upper)

    def _split(self, split: SplitQuestion, value: int) -> "PartialTable":
        if (self.lower > 0).any() or (
            self.upper < PartialTable._of(self.people, self.groups, self.sums).upper
        ).any():
            raise InvalidTable("a group cannot be split after a cell was released.")
        first, last = self.groups[split.axis][split.group]
        if not first < split.cut < last:
            raise InvalidTable(
                f"a group of levels {first} to {last - 1} cannot be split before level {split.cut}."
            )
        groups, sums = list(self.groups), list(self.sums)
        groups[split.axis] = (
            *groups[split.axis][: split.group],
            (first, split.cut),
            (split.cut, last),
            *groups[split.axis][split.group + 1 :],
        )
        rest = int(sums[split.axis][split.group]) - value
        sums[split.axis] = np.insert(sums[split.axis], split.group, value)
        sums[split.axis][split.group + 1] = rest
        return PartialTable._of(self.people, tuple(groups), tuple(sums))


def _block(groups: tuple[tuple[Range, ...], ...], index: tuple[int, ...]) -> tuple[Range, ...]:
    return tuple(of_axis[group] for of_axis, group in zip(groups, index, strict=True))
