"""Attributes that may be exchanged for each other without changing a description of sets of them."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from operator import eq
from typing import TypeVar

Sets = tuple[frozenset[str], ...]
Value = TypeVar("Value")


def interchangeable(
    levels: Mapping[str, int],
    described: Mapping[Sets, Value],
    *,
    alike: Callable[[Value, Value], bool] = eq,
) -> list[list[str]]:
    """Return the attributes of the described sets in classes whose members are exchanged freely.

    Two attributes share a class if they have the same number of levels, and exchanging them maps every described
    tuple of sets to one with an equal value. Then any permutation within a class does not change the description.

    >>> levels = {"a": 2, "b": 2, "c": 2}
    >>> described = {(frozenset("ab"),): 1, (frozenset("a"),): 5, (frozenset("b"),): 5, (frozenset("c"),): 1}
    >>> interchangeable(levels, described)
    [['a', 'b'], ['c']]
    """
    having: dict[str, list[Sets]] = defaultdict(list)
    for sets in described:
        for a in frozenset[str]().union(*sets):
            having[a].append(sets)

    def exchanged(one: str, other: str) -> bool:
        if levels[one] != levels[other] or len(having[one]) != len(having[other]):
            return False
        swap = {one: other, other: one}
        for sets in having[one]:
            image = tuple(frozenset(swap.get(a, a) for a in names) for names in sets)
            if image not in described or not alike(described[sets], described[image]):
                return False
        return True

    classes: list[list[str]] = []
    for a in (a for a in levels if a in having):
        for names in classes:
            if exchanged(names[0], a):
                names.append(a)
                break
        else:
            classes.append([a])
    return classes
