"""A few larger tables that contain all wanted ones, so that counting needs fewer passes over the records."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Domain, Margin

SUPER_CELLS = 1 << 14
"""The most cells of a covering margin: 64 KiB of 32-bit counters, which stay close to the core."""


# The number of missing attributes of a margin that is already covered: so large that no attribute completes it.
_HELD = np.int16(1 << 14)


@dataclass(frozen=True)
class SuperMargin:
    """A margin to be counted, and the wanted margins that are sums of it."""

    margin: Margin
    holds: tuple[Margin, ...]


def cover(domain: Domain, margins: Iterable[Margin], *, cells: int = SUPER_CELLS) -> tuple[SuperMargin, ...]:
    """Return margins of at most `cells` cells that together contain every wanted one.

    A wanted margin above the cap is counted directly and covers the wanted margins inside it. The rest is a greedy
    set cover: start from the largest margin that is not covered, then add the attribute that completes most other
    margins relative to its number of levels, until no attribute fits. Finding the smallest cover is NP-hard; the
    greedy cover depends only on the domain and the wanted margins, never on a record.

    >>> domain = Domain({"a": "xy", "b": "xyz", "c": "xy"})
    >>> cover(domain, [("a", "b"), ("b", "c"), ("a",)])
    (SuperMargin(margin=('a', 'b', 'c'), holds=(('a', 'b'), ('b', 'c'), ('a',))),)
    >>> [found.margin for found in cover(domain, [("a", "b"), ("b", "c")], cells=6)]
    [('a', 'b'), ('b', 'c')]
    """
    wanted = tuple(dict.fromkeys(margins))
    sizes = np.array([domain.cells(margin) for margin in wanted], dtype=np.int64)
    inside = _incidence(domain, wanted)
    levels = np.array(domain.shape, dtype=np.int64)
    orders = inside.sum(axis=1, dtype=np.int16)
    held = np.zeros(len(wanted), dtype=bool)
    found = []
    # Larger margins first, then more attributes first, then the order of the request: always the same cover.
    for start in np.lexsort((-orders, -sizes)):
        if held[start]:
            continue
        chosen = inside[start].astype(bool)
        lacking = _grow(chosen, inside, np.where(held, _HELD, orders), levels, cells)
        newly = np.flatnonzero(lacking == 0)
        held[newly] = True
        margin = tuple(a for a, kept in zip(domain.attributes, chosen, strict=True) if kept)
        found.append(SuperMargin(margin, tuple(wanted[i] for i in newly)))
    return tuple(found)


def _grow(
    chosen: NDArray[np.bool_],
    inside: NDArray[np.uint8],
    lacking: NDArray[np.int16],
    levels: NDArray[np.int64],
    cells: int,
) -> NDArray[np.int16]:
    """Return the missing attributes of each margin after `chosen` has grown in place by the attributes that fit."""
    size = math.prod(levels[chosen].tolist())
    for attribute in np.flatnonzero(chosen):
        lacking -= inside[:, attribute]
    while True:
        # An attribute completes the margins that miss only this attribute. If there is none, it brings one closer.
        fits = ~chosen & (levels <= cells // size)
        gain = inside[lacking == 1].sum(axis=0, dtype=np.float64) * fits
        if not gain.any():
            gain = inside[lacking == 2].sum(axis=0, dtype=np.float64) * fits
        gain /= np.log2(np.maximum(levels, 2))
        if not gain.any():
            return lacking
        best = int(np.argmax(gain))
        chosen[best] = True
        size *= int(levels[best])
        lacking -= inside[:, best]


def _incidence(domain: Domain, margins: Sequence[Margin]) -> NDArray[np.uint8]:
    # Stored column by column: when an attribute joins, one column changes for every margin.
    inside = np.zeros((len(margins), len(domain.attributes)), dtype=np.uint8, order="F")
    for row, margin in enumerate(margins):
        inside[row, [domain.position(attribute) for attribute in margin]] = 1
    return inside
