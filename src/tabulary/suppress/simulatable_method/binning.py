"""Binning: where an ordered attribute is split next, and the names of its parts."""

import math
import re
from collections.abc import Collection, Sequence

import numpy as np

from tabulary.table_samplers.partial_table import PartialTable, SplitQuestion
from tabulary.table_samplers.people import People, Range

# "25", "25-29", "85+" or "0.5 to under 2", as `bin_labels` writes them: a beginning and an end.
_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)(-\d+|\+| to under \S+)?")


def masses(people: People, axis: int) -> list[float]:
    """Return the probability mass of each level of an attribute: how many with the private attribute are expected.

    Added up exactly and rounded once, so that a tie is a tie on every machine.
    """
    expected = np.moveaxis(people.number * people.probability, axis, 0)
    return [math.fsum(level.ravel().tolist()) for level in expected]


def median_cut(mass: Sequence[float], levels: Range) -> int | None:
    """Return the level before which a group falls into two parts of most equal mass; the first one of several.

    Nabar & Mishra (2010), section 5.1: "at the median probability mass". Both parts have people in them; None
    if there is no such level.

    >>> median_cut([4.0, 1.0, 1.0, 3.0], (0, 4))
    1
    >>> median_cut([4.0, 0.0], (0, 2)) is None
    True
    """
    first, last = levels
    best: tuple[float, int] | None = None
    for cut in range(first + 1, last):
        before, after = math.fsum(mass[first:cut]), math.fsum(mass[cut:last])
        if before > 0 and after > 0 and (best is None or abs(before - after) < best[0]):
            best = abs(before - after), cut
    return None if best is None else best[1]


def next_split(known: PartialTable, axis: int, closed: Collection[Range]) -> SplitQuestion | None:
    """Return the split of the group with the greatest mass that can be split and is not closed, at its median."""
    mass = masses(known.people, axis)
    heaviest: tuple[float, SplitQuestion] | None = None
    for group, levels in enumerate(known.groups[axis]):
        cut = None if levels in closed else median_cut(mass, levels)
        weight = math.fsum(mass[slice(*levels)])
        if cut is not None and (heaviest is None or weight > heaviest[0]):
            heaviest = weight, SplitQuestion(axis, group, cut)
    return None if heaviest is None else heaviest[1]


def joined_label(labels: Sequence[str]) -> str:
    """Return the name of several neighbouring levels together.

    >>> joined_label(["0-4", "5-9", "10-14"]), joined_label(["60-64", "65+"]), joined_label(["7", "8"])
    ('0-14', '60+', '7-8')
    >>> joined_label(["low", "middle", "high"]), joined_label(["low"])
    ('low to high', 'low')
    """
    if len(labels) == 1:
        return labels[0]
    first, last = _INTERVAL.fullmatch(labels[0]), _INTERVAL.fullmatch(labels[-1])
    if first is None or last is None or first[2] == "+":
        return f"{labels[0]} to {labels[-1]}"
    return first[1] + (last[2] or f"-{last[1]}")
