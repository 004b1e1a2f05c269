"""Whole numbers from a table of fractions: to the nearest, or so that the margins stay."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats, axes_outside
from tabulary.errors import InvalidArgument, InvalidTable
from tabulary.noise.entropy import Entropy, fresh_words

Axes = tuple[int, ...]
Uniform = Callable[[int], Floats]
"""Gives so many independent numbers from [0, 1)."""

# Above this many multiplications the margins of higher order are dropped before the walk begins.
_MOST_WORK = 1 << 35
# Floats hold every integer up to here exactly.
_LARGEST = float(1 << 53)


@dataclass(frozen=True)
class RoundingReport:
    """How far rounding moved each margin: its largest difference from the real-valued one."""

    deviations: tuple[tuple[Axes, float], ...]

    @property
    def largest(self) -> float:
        """The largest difference of all."""
        return max((deviation for _, deviation in self.deviations), default=0.0)

    @property
    def controlled(self) -> bool:
        """Whether every margin moved by less than one."""
        return self.largest < 1


def uniforms_from(entropy: Entropy) -> Uniform:
    """Return a source of uniform numbers on the multiples of 2**-53, from the words of `entropy`.

    Rounding is post-processing: its randomness protects nobody, but it must be unbiased and reproducible.

    >>> from tabulary.noise import SystemEntropy
    >>> uniforms_from(SystemEntropy())(3).shape
    (3,)
    """

    def uniform(count: int) -> Floats:
        return np.asarray((fresh_words(entropy, count) >> np.uint64(11)) * 2.0**-53)

    return uniform


def normals_from(entropy: Entropy) -> Callable[[tuple[int, ...]], Floats]:
    """Return a source of standard normal numbers from the words of `entropy` (Box & Muller 1958).

    They are for simulation alone: no noise that protects a person is drawn here.

    >>> from tabulary.noise import SystemEntropy
    >>> normals_from(SystemEntropy())((2, 3)).shape
    (2, 3)
    """
    uniform = uniforms_from(entropy)

    def normal(shape: tuple[int, ...]) -> Floats:
        count = math.prod(shape)
        half = (count + 1) // 2
        drawn = uniform(2 * half)
        radius = np.sqrt(-2 * np.log1p(-drawn[:half]))
        angle = 2 * np.pi * drawn[half:]
        found = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return found[:count].reshape(shape)

    return normal


def round_table(
    table: Floats,
    *,
    method: Literal["nearest", "controlled"],
    margins: Iterable[Axes] = (),
    impossible: NDArray[np.bool_] | None = None,
    uniform: Uniform | None = None,
) -> NDArray[np.int64]:
    """Return a table of non-negative integers near to `table`, with zeros where `impossible`.

    `nearest` takes the nearest integer of each cell, one half upwards. Margins may drift: a table whose cells are all
    below one half rounds to zero.

    `controlled` takes the integer below or above each cell, at random with the cell as expectation: unbiased, and
    no cell moves by one or more. The total moves by less than one. If `margins` (tuples of axes) are at most
    two, apart from the total, each of their cells moves by less than one too: exact, by cycles
    (`dependent.round_on_graph`). More margins cannot always be kept this way; then they are kept exactly until no
    more cells than free numbers in the margins are left. From there on lower orders are kept longer than higher ones
    (`dependent.round_in_cube`); `rounding_report` returns how far they moved. Post-processing: reads no data, spends
    no budget.

    >>> table = np.full((3, 3), 1 / 3)
    >>> round_table(table, method="nearest").sum()
    np.int64(0)
    >>> from tabulary.noise import SystemEntropy
    >>> kept = round_table(table, method="controlled", margins=[(0,), (1,)], uniform=uniforms_from(SystemEntropy()))
    >>> kept.sum(axis=0).tolist(), kept.sum(axis=1).tolist()
    ([1, 1, 1], [1, 1, 1])
    """
    real = _checked(table, impossible)
    if method == "nearest":
        return np.floor(real + 0.5).astype(np.int64)
    if method != "controlled":
        raise InvalidArgument(f"there is no rounding {method!r}. Known: 'nearest', 'controlled'.")
    if uniform is None:
        raise InvalidArgument(
            "controlled rounding is random: give it `uniform`, such as uniforms_from(entropy)."
        )
    listed = _listed(real.ndim, margins)
    wanted = _maximal(real.ndim, listed)
    floor = np.floor(real)
    fractions = real - floor
    cells = np.flatnonzero(fractions)
    if cells.size:
        # Imported here because loading compiled code takes longer than rounding a table to the nearest.
        from tabulary.reconstruct.rounding.dependent import round_in_cube, round_on_graph

        parts = fractions.reshape(-1)[cells]
        places = np.unravel_index(cells, real.shape) if real.ndim else ()
        # A graph cannot hold a margin of a wanted margin as a further constraint.
        nested = any(m and set(m) < set(other) for m in listed for other in wanted)
        if len(wanted) <= 2 and not nested:
            left, right = (_index(real.shape, places, m, cells.size) for m in [*wanted, (), ()][:2])
            ups = round_on_graph(left, right, parts, uniform)
        else:
            ups = round_in_cube(_constraints(real.shape, places, wanted, cells.size), parts, uniform)
        floor.reshape(-1)[cells] += ups
    return floor.astype(np.int64)


def rounding_report(table: Floats, rounded: NDArray[np.int64], margins: Iterable[Axes]) -> RoundingReport:
    """Return how far each of `margins`, and the total, moved when `table` was `rounded`.

    >>> rounding_report(np.full((3, 3), 1 / 3), np.zeros((3, 3), dtype=np.int64), [(0,)]).deviations
    (((), 3.0), ((0,), 1.0))
    """
    moved = np.asarray(rounded, dtype=np.float64) - table
    found = []
    for axes in dict.fromkeys([(), *_listed(moved.ndim, margins)]):
        summed = axes_outside(range(moved.ndim), axes)
        found.append((axes, float(np.abs(moved.sum(axis=summed)).max(initial=0.0))))
    return RoundingReport(tuple(found))


def _checked(table: Floats, impossible: NDArray[np.bool_] | None) -> Floats:
    real = np.asarray(table, dtype=np.float64)
    if not (np.isfinite(real).all() and (real >= 0).all() and (real <= _LARGEST).all()):
        raise InvalidTable(
            "only a table of non-negative numbers up to 2**53 can be rounded. Nothing was rounded."
        )
    if impossible is not None:
        if np.shape(impossible) != real.shape:
            raise InvalidTable(
                f"the mask of impossible cells has shape {np.shape(impossible)}, the table has {real.shape}."
            )
        if real[np.asarray(impossible, dtype=bool)].any():
            raise InvalidTable(
                "a cell that is impossible is not zero. Reconstruct the table with the same zeros."
            )
    return real


def _listed(dimensions: int, margins: Iterable[Axes]) -> list[Axes]:
    found = []
    for margin in margins:
        axes = tuple(sorted(margin))
        if len(set(axes)) < len(axes) or not set(axes) <= set(range(dimensions)):
            raise InvalidTable(f"the margin {margin!r} is not a set of axes of a table with {dimensions}.")
        found.append(axes)
    return found


def _maximal(dimensions: int, listed: list[Axes]) -> list[Axes]:
    """Return the margins that are not margins of another, without the full table, whose cells are kept anyway."""
    given = {m for m in listed if 0 < len(m) < dimensions}
    return sorted(m for m in given if not any(set(m) < set(other) for other in given))


def _index(
    shape: tuple[int, ...], places: tuple[NDArray[np.intp], ...], axes: Axes, count: int
) -> NDArray[np.int64]:
    """Return for each cell which cell of the margin it belongs to."""
    if not axes:
        return np.zeros(count, dtype=np.int64)
    found = np.ravel_multi_index([places[axis] for axis in axes], [shape[axis] for axis in axes])
    return np.asarray(found, dtype=np.int64)


def _constraints(
    shape: tuple[int, ...], places: tuple[NDArray[np.intp], ...], margins: list[Axes], count: int
) -> Floats:
    """Return for each cell its entry in every sum that is kept: one number for each free number of the margins.

    The sums are the cells of each margin of the closure without the first level of each attribute; together with
    lower orders they determine the rest. Lowest order first; the highest orders are left out where all of them would
    exceed the stated work.
    """
    closure = {axes for margin in margins for k in range(len(margin) + 1) for axes in combinations(margin, k)}
    columns: list[Floats] = []
    for axes in sorted(closure, key=lambda axes: (len(axes), axes)):
        sizes = [shape[axis] - 1 for axis in axes]
        if columns and count * (len(columns) + math.prod(sizes)) ** 2 > _MOST_WORK:
            break
        inside = np.ones(count, dtype=bool)
        for axis in axes:
            inside &= places[axis] > 0
        which = np.zeros(count, dtype=np.int64)
        for axis, size in zip(axes, sizes, strict=True):
            which = which * size + np.maximum(places[axis] - 1, 0)
        columns.extend((inside & (which == cell)).astype(np.float64) for cell in range(math.prod(sizes)))
    return np.stack(columns, axis=1)
