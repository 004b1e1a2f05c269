"""Data sets as flows, flows as perfect matchings: the sampler of Nabar & Mishra (2010), section 5.2.2, as a check.

The construction is theirs, with one arc added that the text leaves out: a person of a known cell is reached from his
row, u_i → x_k, as any other person is. Without it nothing could flow through a known cell, and his weight, which sits
on that arc, would have no place. What is not theirs is how a matching is drawn. They refer to the Markov chain of
Jerrum, Sinclair & Vigoda (2004), whose time is a polynomial of a high degree; here the matchings of a small graph are
counted.
"""

import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidTable, TooManyCells
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, TableQuestion
from tabulary.table_samplers.public_seed import PublicSeed, Stream
from tabulary.table_samplers.table_sampler import CellPosteriors, PossibleAnswers
from tests.oracles.perfect_matchings import BipartiteGraph, PerfectMatchings

PEOPLE = 60
"""How many people a table may hold: the graph has some thirteen nodes for each of them."""

Node = tuple[str | int, ...]

SOURCE: Node = ("s",)
SINK: Node = ("t",)


_CONTRADICTION = "no table agrees with what is known: its sums and cells contradict each other."


@dataclass(frozen=True)
class Arc:
    """An edge of capacity 1. `copy` tells it from others between the same nodes; `prior` is its person's, if any."""

    tail: Node
    head: Node
    copy: int = 0
    prior: float | None = None


@dataclass(frozen=True)
class Network:
    """The graph G of Nabar & Mishra, closed to a circulation by arcs from the sink back to the source.

    Nodes are ("s",) and ("t",), ("u", i) for a row, ("w", j) for a column, ("x", k) for a person and ("y", i, j) for a
    known cell. All arcs out of a node of `full` must carry a flow of 1: that makes the flow a maximum one, and a known
    cell exact. `cells[k]` is the cell of person k. A flow that does so is a data set: person k has the attribute if the
    arc u_i → x_k carries a flow.
    """

    arcs: tuple[Arc, ...]
    full: frozenset[Node]
    cells: tuple[tuple[int, ...], ...]

    @cached_property
    def out_degrees(self) -> Counter[Node]:
        """How many arcs leave each node: d_G."""
        return Counter(arc.tail for arc in self.arcs)

    @property
    def matchings_per_flow(self) -> int:
        """How many perfect matchings stand for one flow: the product of d_G(v)! over all nodes."""
        return math.prod(math.factorial(degree) for degree in self.out_degrees.values())

    @cached_property
    def people(self) -> tuple[Arc, ...]:
        """The arc of each person, from his row to him."""
        return tuple(arc for arc in self.arcs if arc.prior is not None)


def network(known: PartialTable) -> Network:
    """Return the graph whose full flows are the data sets that agree with what is known.

    Every cell must be known or not known at all, and the table two-way (axes of one group do not count).

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.table_samplers.people import People
    >>> people = People.of(Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]}), [[3, 1], [1, 3]], 0.3)
    >>> two = np.array([2, 2])
    >>> known = PartialTable.table(people, (two, two), np.array([[2, np.nan], [np.nan, np.nan]]))
    >>> graph = network(known)
    >>> [arc.head for arc in graph.arcs if arc.tail == ("y", 0, 0)]
    [('w', 0), ('w', 0)]
    >>> graph.out_degrees["u", 0], graph.matchings_per_flow
    (4, 2654208)
    """
    long = [axis for axis, groups in enumerate(known.shape) if groups > 1]
    if len(long) > 2:
        raise InvalidTable(
            f"matchings stand for tables of two attributes, and this one has {len(long)}. Use the chain."
        )
    if known.people.in_cells.sum() > PEOPLE:
        raise TooManyCells(
            f"matchings are counted for tables of at most {PEOPLE} people: they are a check of the other samplers. "
            "Use the exact program or the chain."
        )
    total = int(known.sums[0].sum())
    rows, columns = ([*(known.sums[axis] for axis in long), np.array([total]), np.array([total])])[:2]
    arcs = [Arc(SINK, SOURCE, copy) for copy in range(total)]
    arcs += [Arc(("w", j), SINK, copy) for j, number in enumerate(columns) for copy in range(number)]
    arcs += [Arc(SOURCE, ("u", i), copy) for i, number in enumerate(rows) for copy in range(number)]
    full = {SOURCE}
    cells: list[tuple[int, ...]] = []
    for index in _along_the_longer_axis(known, long):
        i, j = (*(index[axis] for axis in long), 0, 0)[:2]
        count_law, lower, upper = known.count_law(index), int(known.lower[index]), int(known.upper[index])
        exit_node: Node = ("w", j)
        if lower == upper:
            exit_node = ("y", i, j)
            full.add(exit_node)
            arcs += [Arc(exit_node, ("w", j), copy) for copy in range(lower)]
        elif (lower, upper) != (0, count_law.size):
            raise InvalidTable(
                "a cell is bounded without being known. Matchings stand for cells that are known or not known at all; "
                "use the exact program or the chain."
            )
        for prior in np.repeat(count_law.probability, count_law.people):
            person: Node = ("x", len(cells))
            cells.append(index)
            arcs += [Arc(("u", i), person, prior=float(prior)), Arc(person, exit_node)]
    return Network(tuple(arcs), frozenset(full), tuple(cells))


def matching_graph(of: Network) -> BipartiteGraph:
    """Return the graph Ĝ of Nabar & Mishra, whose perfect matchings are the full flows of `of`, many for each.

    An arc becomes the path h - m - t': m is matched with h if the arc carries a flow, and with t' if not. A node v
    becomes d_G(v) nodes a, which are matched with what its arcs leave over: h of those out of it without a flow, and t'
    of those into it with one. Since as much flows in as out, that is always d_G(v) of them. Where all arcs out of v
    carry a flow its edges from a to h are left out. A person's p is the weight of h - m on the arc to him, 1 - p that
    of m - t', and all other weights are 1.
    """
    left: list[Node] = []
    right: list[Node] = []
    weights: dict[tuple[Hashable, Hashable], Fraction] = {}
    copies = {node: [("a", *node, copy) for copy in range(degree)] for node, degree in of.out_degrees.items()}
    left.extend(node for nodes in copies.values() for node in nodes)
    for arc in of.arcs:
        head, middle, tail = (name_of(part, arc) for part in ("h", "m", "t'"))
        left.append(middle)
        right += [head, tail]
        # A float is a fraction, so what is counted is exact.
        prior = None if arc.prior is None else Fraction(arc.prior)
        weights[middle, head] = Fraction(1) if prior is None else prior
        weights[middle, tail] = Fraction(1) if prior is None else 1 - prior
        if arc.tail not in of.full:
            weights.update({(node, head): Fraction(1) for node in copies[arc.tail]})
        weights.update({(node, tail): Fraction(1) for node in copies.get(arc.head, [])})
    return BipartiteGraph(tuple(left), tuple(right), weights)


def name_of(part: str, arc: Arc) -> Node:
    """Return the node h, m or t' of an arc."""
    return (part, *arc.tail, *arc.head, arc.copy)


class Flows:
    """The law of the data sets that agree with what is known, read off the perfect matchings."""

    def __init__(self, known: PartialTable) -> None:
        self._shape = known.shape
        self._network = network(known)
        self._matchings = PerfectMatchings(matching_graph(self._network))
        self._matched = [(name_of("m", arc), name_of("h", arc)) for arc in self._network.people]

    @property
    def weight(self) -> Fraction:
        """The prior probability of all the data sets that agree with what is known, exactly."""
        return self._matchings.weight / self._network.matchings_per_flow

    @property
    def posterior(self) -> NDArray[np.float64]:
        """The probability that each person has the attribute: the share of the matchings with his edge m - h."""
        return np.array([self._matchings.probability(*edge) for edge in self._matched])

    @property
    def deviation(self) -> float:
        """The largest |1 - posterior/prior| of any person, for either value of the attribute."""
        prior = np.array([arc.prior for arc in self._network.people], dtype=np.float64)
        moved = np.abs(self.posterior - prior) / np.minimum(prior, 1 - prior)
        return float(moved.max(initial=0.0))

    def draw(self, number: int, stream: Stream) -> NDArray[np.int64]:
        """Return tables, one below the other, each of a data set drawn with its probability."""
        matched = self._matchings.draw(number, stream)
        tables = np.zeros((*self._shape, number), dtype=np.int64)
        for cell, (middle, head) in zip(self._network.cells, self._matched, strict=True):
            tables[cell] += matched[:, self._matchings.column(head)] == self._matchings.twins(middle)
        return np.ascontiguousarray(np.moveaxis(tables, -1, 0))


class Matching:
    """Tables through perfect matchings, for small two-way tables: an independent check of the other samplers.

    `answers` and `posterior` are computed from exact counts of matchings, one graph for each value a cell or a sum may
    have; `draw` takes matchings with exactly their probability, up to the 53 bits of a coin. All people have nodes of
    their own, so priors may differ as they like. At most `PEOPLE` people, and only cells that are known or not known at
    all: other bounds raise `InvalidTable`.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.table_samplers.people import People
    >>> people = People.of(Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]}), [[3, 1], [1, 3]], 0.3)
    >>> known = PartialTable.table(people, (np.array([2, 2]), np.array([2, 2])))
    >>> answers = Matching().answers(known, CellQuestion((0, 0)), draws=0, seed=PublicSeed("none"))
    >>> answers.values.tolist(), answers.probability.tolist()
    ([1, 2], [0.5, 0.5])
    """

    name = "matching"

    def answers(
        self, known: PartialTable, question: TableQuestion, *, draws: int, seed: PublicSeed
    ) -> PossibleAnswers:
        """Return the answers that the question may get, computed: no table is simulated and no coin is tossed."""
        laws = _laws(known, question)
        total = sum(law.weight for law in laws.values())
        return PossibleAnswers(
            values=np.array(list(laws), dtype=np.int64),
            probability=np.array([float(law.weight / total) for law in laws.values()]),
            deviation=np.array([law.deviation for law in laws.values()]),
        )

    def posterior(self, known: PartialTable, *, seed: PublicSeed) -> CellPosteriors:
        """Return the law of each cell given what is known, computed."""
        marginals = np.empty(known.shape, dtype=np.object_)
        for index in np.ndindex(known.shape):
            laws = _laws(known, CellQuestion(index))
            total = sum(law.weight for law in laws.values())
            marginal = np.zeros(known.count_law(index).size + 1)
            for value, law in laws.items():
                marginal[value] = float(law.weight / total)
            marginals[index] = marginal
        return CellPosteriors(marginals)

    def draw(self, known: PartialTable, number: int, *, seed: PublicSeed) -> NDArray[np.int64]:
        """Return tables, one below the other, drawn given what is known."""
        flows = Flows(known)
        if not flows.weight:
            raise InvalidTable(_CONTRADICTION)
        return flows.draw(number, seed.stream("matching"))


def _laws(known: PartialTable, question: TableQuestion) -> dict[int, Flows]:
    """Return the values that the question may be answered with, and the law of the data sets once it is."""
    if isinstance(question, CellQuestion):
        values = range(int(known.lower[question.index]), int(known.upper[question.index]) + 1)
    else:
        values = range(int(known.sums[question.axis][question.group]) + 1)
    # What matchings do not stand for is refused before any value is tried.
    network(known)
    laws = {}
    refusal = InvalidTable(_CONTRADICTION)
    for value in values:
        try:
            law = Flows(known.answered(question, value))
        except InvalidTable as error:
            # Most often the sums around it rule this value out.
            refusal = error
        else:
            if law.weight:
                laws[value] = law
    if not laws:
        raise refusal
    return laws


def _along_the_longer_axis(known: PartialTable, long: list[int]) -> list[tuple[int, ...]]:
    """Return the cells so that the sums left open while they are gone through are those of the shorter axis."""
    outer = max(long, key=lambda axis: known.shape[axis], default=0)
    return sorted(np.ndindex(known.shape), key=lambda index: index[outer])
