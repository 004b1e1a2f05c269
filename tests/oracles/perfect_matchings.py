"""The perfect matchings of a small bipartite graph: weighed exactly, and drawn."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import TooManyCells
from tabulary.table_samplers.public_seed import Stream

# A layer with more states takes seconds, and there are hundreds of layers.
STATES = 100_000


# For each state and choice: the coin from which on it is not this choice any more, and the state that follows it.
_Step = tuple[NDArray[np.float64], NDArray[np.int64]]


@dataclass(frozen=True)
class BipartiteGraph:
    """Nodes on the left, nodes on the right, and the weight of each edge from one to the other."""

    left: tuple[Hashable, ...]
    right: tuple[Hashable, ...]
    weights: Mapping[tuple[Hashable, Hashable], Fraction]


@dataclass(frozen=True)
class _Choice:
    """One way to match a right node: with a class of twins, of whom so many are there and so many are met later."""

    twins: int
    weight: int
    place: int
    size: int
    later: int

    def left_of(self, state: int) -> int:
        return self.size - (state >> self.place & (1 << self.size.bit_length()) - 1)

    def taken(self, state: int) -> int:
        return state + (1 << self.place)


class PerfectMatchings:
    r"""The law of perfect matchings in which each has probability proportional to the product of its weights.

    Right nodes are matched one after the other. Left nodes with the same edges are *twins*: it does not matter which of
    them are taken, only how many, and one of k that are left is taken in k ways. The state is how many of each class
    are taken; it is dropped once more twins are left than there are neighbours to come. Weights are whole numbers over
    a common denominator, so `weight`, the permanent of the graph, is exact, and nothing overflows or cancels.

    The cost is the number of states: exponential for a graph without twins, and small where few classes are half taken
    at any time. More than `STATES` at once are refused with `TooManyCells`.

    >>> half, whole = Fraction(1, 2), Fraction(1)
    >>> square = {("a", "c"): half, ("a", "d"): whole, ("b", "c"): whole, ("b", "d"): whole}
    >>> matchings = PerfectMatchings(BipartiteGraph(("a", "b"), ("c", "d"), square))
    >>> matchings.weight, round(matchings.probability("b", "d"), 4)
    (Fraction(3, 2), 0.3333)
    """

    def __init__(self, graph: BipartiteGraph) -> None:
        self._class_of, self._size, self._choices, scale = _twins(graph)
        self._column = {node: layer for layer, node in enumerate(graph.right)}
        ways: list[dict[int, int]] = [{}]
        if len(graph.left) == len(graph.right):
            ways = _completions(self._choices, _reachable(self._choices))
        self.weight = Fraction(ways[0].get(0, 0), scale)
        self._steps, self._shares = _followed(self._choices, ways) if self.weight else ([], [])

    def probability(self, left: Hashable, right: Hashable) -> float:
        """Return the probability that a matching holds this edge."""
        twins = self._class_of[left]
        shares = self._shares[self._column[right]]
        return float(shares.get(twins, 0.0)) / self._size[twins]

    def column(self, right: Hashable) -> int:
        """Return where `draw` puts this right node."""
        return self._column[right]

    def twins(self, left: Hashable) -> int:
        """Return the class that `draw` calls this left node by."""
        return self._class_of[left]

    def draw(self, number: int, stream: Stream) -> NDArray[np.int64]:
        """Return matchings, one a row: the class of twins that each right node is matched with.

        Which of the twins it is, is left open: all ways are equally likely.
        """
        drawn = np.empty((number, len(self._choices)), dtype=np.int64)
        state = np.zeros(number, dtype=np.int64)
        for layer, (limits, following) in enumerate(self._steps):
            choice = (stream.random(number)[:, None] >= limits[state]).sum(axis=1)
            drawn[:, layer] = np.array([option.twins for option in self._choices[layer]])[choice]
            state = following[state, choice]
        return drawn


def _twins(
    graph: BipartiteGraph,
) -> tuple[dict[Hashable, int], list[int], list[list[_Choice]], int]:
    """Return the class of each left node, the sizes, the choices of each right node, and the scale of the weights."""
    column = {node: layer for layer, node in enumerate(graph.right)}
    edges: dict[Hashable, list[tuple[int, Fraction]]] = {node: [] for node in graph.left}
    for (left, right), weight in graph.weights.items():
        if weight:
            edges[left].append((column[right], Fraction(weight)))
    classes: dict[tuple[tuple[int, Fraction], ...], int] = {}
    class_of = {node: classes.setdefault(tuple(sorted(edges[node])), len(classes)) for node in graph.left}
    size = np.bincount(list(class_of.values()), minlength=len(classes)).tolist()
    choices: list[list[_Choice]] = [[] for _ in graph.right]
    place, scale = 0, 1
    for shared, twins in classes.items():
        common = math.lcm(*(weight.denominator for _, weight in shared))
        for met, (layer, weight) in enumerate(shared, start=1):
            choices[layer].append(_Choice(twins, int(weight * common), place, size[twins], len(shared) - met))
        scale *= common ** size[twins]
        place += size[twins].bit_length()
    return class_of, size, choices, scale


def _reachable(choices: list[list[_Choice]]) -> list[list[int]]:
    layers = [[0]]
    for options in choices:
        states = {option.taken(state) for state in layers[-1] for option in options if option.left_of(state)}
        layers.append([s for s in states if all(option.left_of(s) <= option.later for option in options)])
        if len(layers[-1]) > STATES:
            raise TooManyCells(
                f"counting the matchings of this graph takes more than {STATES:,} states at once. It is a check for "
                "small tables; use the exact program or the chain."
            )
    return layers


def _completions(choices: list[list[_Choice]], layers: list[list[int]]) -> list[dict[int, int]]:
    """Return, for each state of each layer that can be completed, the weight of all the ways to do so."""
    ways = [dict.fromkeys(layers[-1], 1)]
    for options, states in zip(choices[::-1], layers[-2::-1], strict=True):
        onward = ways[-1]
        here = {}
        for state in states:
            total = sum(
                option.left_of(state) * option.weight * onward.get(option.taken(state), 0)
                for option in options
            )
            if total:
                here[state] = total
        ways.append(here)
    return ways[::-1]


def _followed(
    choices: list[list[_Choice]], ways: list[dict[int, int]]
) -> tuple[list[_Step], list[dict[int, float]]]:
    """Return the probabilities of each step from each state, and those of each class in each layer."""
    steps: list[_Step] = []
    shares: list[dict[int, float]] = []
    reached: NDArray[Any] = np.ones(1)
    for options, here, there in zip(choices, ways[:-1], ways[1:], strict=True):
        row = {state: position for position, state in enumerate(there)}
        chance = np.zeros((len(here), len(options)))
        following = np.zeros((len(here), len(options)), dtype=np.int64)
        for position, (state, completions) in enumerate(here.items()):
            for column, option in enumerate(options):
                onward = option.taken(state)
                if onward in row:
                    taken = option.left_of(state) * option.weight * there[onward]
                    chance[position, column] = taken / completions
                    following[position, column] = row[onward]
        passed = reached[:, None] * chance
        shares.append({option.twins: float(passed[:, i].sum()) for i, option in enumerate(options)})
        reached = np.bincount(following.ravel(), weights=passed.ravel(), minlength=len(there))
        # No coin reaches the limit of the last choice that is possible, however its sum was rounded.
        last = len(options) - 1 - np.argmax(chance[:, ::-1] > 0, axis=1)
        limits = np.where(np.arange(len(options)) >= last[:, None], 2.0, np.cumsum(chance, axis=1))
        steps.append((limits, following))
    return steps, shares
