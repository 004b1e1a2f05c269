"""Advice on binning, before anything private is read: which cells have too few people, and which levels to merge."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tabulary.core.progress import Progress
from tabulary.errors import listed
from tabulary.suppress.simulatable_method.binning import joined_label
from tabulary.suppress.simulatable_method.terms import SuppressionTerms
from tabulary.suppress.simulatable_method.theorems import unsafe_chance
from tabulary.table_samplers.people import People, Range

Groups = tuple[tuple[Range, ...], ...]


@dataclass(frozen=True, eq=False)
class Binning:
    """The groups that the levels of each attribute form, and how likely each cell is unsafe once all are out."""

    groups: Groups
    unsafe: NDArray[np.float64]

    @property
    def chance(self) -> float:
        """The exact probability that all cells may be released: cells are independent."""
        return float(np.prod(1 - self.unsafe))

    @property
    def unsafe_cells(self) -> float:
        """How many cells are expected to be unsafe."""
        return float(self.unsafe.sum())

    @property
    def parts(self) -> int:
        """The number T of cells with all the sums, among which δ is divided."""
        return math.prod(len(of_axis) + 1 for of_axis in self.groups)


@dataclass(frozen=True, eq=False)
class Advice:
    """How a table stands as it is, and merged so far that a suppressor has little to suppress.

    `merged` is None where even all the people in one cell are too few, or too sure of their values.
    """

    people: People
    epsilon: Fraction
    delta: Fraction
    given: Binning
    merged: Binning | None

    @property
    def too_few(self) -> NDArray[np.bool_]:
        """Which cells are unsafe with a probability above δ/T, so that a suppressor may well leave them out."""
        return _too_few(self.given, self.delta)

    @property
    def levels(self) -> dict[str, list[str]] | None:
        """The names of the merged levels, by attribute."""
        if self.merged is None:
            return None
        domain = self.people.domain
        return {
            name: [joined_label(domain.levels_of(name)[first:last]) for first, last in of_axis]
            for name, of_axis in zip(domain.attributes, self.merged.groups, strict=True)
        }

    def __str__(self) -> str:
        few, cells = int(self.too_few.sum()), self.given.unsafe.size
        lines = [
            f"As it is, all {cells} cells may be released at once with probability {_percent(self.given.chance)}; "
            f"{few} {'has' if few == 1 else 'have'} too few people.",
        ]
        if self.merged is None:
            lines.append("No binning is safe: even the total would move somebody's probability too far.")
        elif self.merged is not self.given:
            lines += [
                f"Merge {name!r} to {listed(names)}."
                for name, names in (self.levels or {}).items()
                if len(names) < len(self.people.domain.levels_of(name))
            ]
            lines.append(
                f"Then all {self.merged.unsafe.size} cells may be released at once with probability "
                f"{_percent(self.merged.chance)}."
            )
        else:
            lines.append("Nothing needs to be merged.")
        return "\n".join(lines)


def advice(people: People, epsilon: object, delta: object, *, progress: Progress | None = None) -> Advice:
    r"""Return which cells have too few people for (ε, δ), and neighbouring levels to merge until none has.

    A cell has enough where it is unsafe, once all cells are out, with probability at most δ/T, which is what a
    suppressor asks of a decision. Then all cells are safe at once with probability at least 1 - δ. Until then the level
    with the most unsafe cells expected, of some attribute, is merged with a neighbour: of these steps, the one that
    leaves fewest. Greedy, so not always the finest table that will do. It reads people and priors, all of which are
    public; it is no promise about any decision, which depends on what was released before it.

    >>> from tabulary.core.domain import Domain
    >>> domain = Domain({"age": ["0-14", "15-64", "65-79", "80+"], "sex": ["F", "M"]})
    >>> people = People.of(domain, [[150, 160], [500, 480], [90, 70], [25, 10]], 0.4)
    >>> print(advice(people, 0.5, 0.2))
    As it is, all 8 cells may be released at once with probability 87.81 %; 2 have too few people.
    Merge 'age' to '0-14', '15-64', '65+'.
    Then all 6 cells may be released at once with probability 99.98 %.
    """
    terms = SuppressionTerms(epsilon, delta)  # type: ignore[arg-type]
    chances = _Chances(people, terms.epsilon)
    given = found = chances.given(progress)
    merges = sum(people.shape) - len(people.shape)
    for merge in range(merges):
        if not _too_few(found, terms.delta).any():
            break
        if progress is not None:
            progress("merging levels", merge, merges)
        # The first of several that are as good, so that the advice is the same everywhere.
        found = min(
            (chances.merged(found, *pair) for pair in _pairs(found)), key=lambda one: one.unsafe_cells
        )
    if progress is not None:
        progress("merging levels", merges, merges)
    enough = not _too_few(found, terms.delta).any()
    return Advice(people, terms.epsilon, terms.delta, given, found if enough else None)


class _Chances:
    """How likely blocks of people are unsafe, each computed once."""

    def __init__(self, people: People, epsilon: Fraction) -> None:
        self._people, self._epsilon = people, epsilon
        self._found: dict[tuple[bytes, bytes], float] = {}

    def given(self, progress: Progress | None) -> Binning:
        """Return the table with every level by itself."""
        groups = tuple(tuple((level, level + 1) for level in range(levels)) for levels in self._people.shape)
        unsafe = np.empty(self._people.shape)
        for done, index in enumerate(np.ndindex(unsafe.shape)):
            if progress is not None:
                progress("weighing cells", done, unsafe.size)
            unsafe[index] = self._unsafe(groups, index)
        return Binning(groups, unsafe)

    def merged(self, binned: Binning, axis: int, first: int) -> Binning:
        """Return the table with a group of an axis and the next one merged."""
        before = binned.groups[axis]
        together = (before[first][0], before[first + 1][1])
        after = (*before[:first], together, *before[first + 2 :])
        groups = (*binned.groups[:axis], after, *binned.groups[axis + 1 :])
        unsafe = np.delete(binned.unsafe, first + 1, axis=axis)
        for index in np.argwhere(np.indices(unsafe.shape)[axis] == first):
            unsafe[tuple(index)] = self._unsafe(groups, tuple(index))
        return Binning(groups, unsafe)

    def _unsafe(self, groups: Groups, index: tuple[int, ...]) -> float:
        block = tuple(of_axis[group] for of_axis, group in zip(groups, index, strict=True))
        count_law = self._people.count_law(block)
        # Cells with the same people and priors are alike.
        alike = count_law.people.tobytes(), count_law.probability.tobytes()
        if alike not in self._found:
            self._found[alike] = unsafe_chance(count_law, epsilon=self._epsilon)
        return self._found[alike]


def _pairs(binned: Binning) -> list[tuple[int, int]]:
    """Return, for each axis with several groups, its worst group with either neighbour: the first of the two."""
    pairs = []
    for axis, of_axis in enumerate(binned.groups):
        others = tuple(other for other in range(binned.unsafe.ndim) if other != axis)
        worst = int(np.argmax(binned.unsafe.sum(axis=others)))
        pairs += [(axis, first) for first in (worst - 1, worst) if 0 <= first < len(of_axis) - 1]
    return pairs


def _too_few(binned: Binning, delta: Fraction) -> NDArray[np.bool_]:
    return np.asarray(binned.unsafe > float(delta / binned.parts))


def _percent(chance: float) -> str:
    # Rounded down: what is not certain is not called so.
    return f"{math.floor(chance * 1e4) / 100:.2f} %"
