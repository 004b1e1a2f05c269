"""Several published tables as one system: every published number is a sum of the same unknown atoms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tabulary.core.domain import Margin
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import InvalidTable, TooManyCells, listed

Parts = Mapping[str, Mapping[str, Sequence[str]]]
"""By attribute: the finer levels that a level is made of."""

MAX_ATOMS = 100_000
"""The most unknown numbers of one system."""


@dataclass(frozen=True)
class TablePlace:
    """A cell or a sum of one of the tables: the table's number from 0, the attributes and a level of each."""

    table: int
    attributes: Margin
    index: tuple[int, ...]
    levels: tuple[str, ...]

    @classmethod
    def of(cls, table: SuppressedTable, number: int, index: tuple[int, ...]) -> "TablePlace":
        """Return the place of a cell."""
        levels = tuple(of[i] for of, i in zip(table.domain.levels, index, strict=True))
        return cls(number, table.domain.attributes, index, levels)

    @property
    def full_name(self) -> str:
        """The levels with their attributes, for a sum that may be of one or another."""
        named = zip(self.attributes, self.levels, strict=True)
        return ", ".join(f"{attribute} {level}" for attribute, level in named) or "the total"

    def __str__(self) -> str:
        return ", ".join(self.levels) or "the total"


@dataclass(frozen=True, eq=False)
class AtomSums:
    """Sums of atoms: one row of zeros and ones for each place."""

    matrix: sparse.csr_array
    places: tuple[TablePlace, ...]
    values: NDArray[np.float64]

    @property
    def sizes(self) -> NDArray[np.int32]:
        """How many atoms each row adds up."""
        return np.diff(self.matrix.indptr)

    def of(self, chosen: NDArray[np.bool_]) -> "AtomSums":
        """Return some of the rows."""
        places = tuple(place for place, kept in zip(self.places, chosen, strict=True) if kept)
        return AtomSums(self.matrix[np.flatnonzero(chosen)], places, self.values[chosen])


@dataclass(frozen=True, eq=False)
class AttackedTables:
    r"""What several tables say of the same people, as sums of atoms.

    Attributes of one name are one attribute. Where tables cut it differently, `parts` says which finer levels a level
    is made of; the atoms of the attribute are the coarsest levels that every table's are made of.

    An atom is a cell of a *bag* of attributes. Where the tables' attributes form a tree (an acyclic scheme), each
    table's attributes are a bag, and two neighbours agree on what they share; otherwise one more bag holds the
    attributes that go in circles. Nothing is lost by not forming the table on all attributes together: tables of two
    bags with the same sums over their common attributes always are the sums of one table over both, whole if they are
    whole (fill each common level by the north-west corner rule), and so on along the tree.

    >>> from tabulary.core.domain import Domain
    >>> old = SuppressedTable(Domain({"age": ["0-17", "18+"]}), [31, np.nan], {(): np.array(80)})
    >>> new = SuppressedTable(Domain({"age": ["0-14", "15+"]}), [30, np.nan])
    >>> both = AttackedTables.of((old, new), {"age": {"0-17": ["0-14", "15-17"], "15+": ["15-17", "18+"]}})
    >>> both.atoms, both.known.matrix.toarray().astype(int).tolist(), both.known.values.tolist()
    (3, [[1, 1, 0], [1, 1, 1], [1, 0, 0]], [31.0, 80.0, 30.0])
    """

    tables: tuple[SuppressedTable, ...]
    atoms: int
    known: AtomSums
    """The published cells and sums, table by table."""
    unknown: AtomSums
    """The suppressed cells and sums, table by table; their values are NaN."""
    people: AtomSums
    """The number of people in each cell, if it is public."""
    links: sparse.csr_array
    """Differences of sums of atoms that are zero: what two bags say of their common attributes."""

    @classmethod
    def of(cls, tables: Sequence[SuppressedTable], parts: Parts | None = None) -> "AttackedTables":
        """Return the system of some tables."""
        if not tables:
            raise InvalidTable("no table was given. Give at least one to attack.")
        if len({table.whole for table in tables}) > 1:
            raise InvalidTable(
                "some tables hold counts and others hold amounts. Nothing was attacked. Attack the counts and the "
                "amounts separately."
            )
        members = _members(tables, parts or {})
        sizes = {attribute: of.size for of_table in members for attribute, of in of_table.items()}
        bags, tree = _bags([table.domain.attributes for table in tables])
        cells = [prod(sizes[a] for a in bag) for bag in bags]
        if sum(cells) > MAX_ATOMS:
            largest = bags[int(np.argmax(cells))]
            raise TooManyCells(
                f"the tables together have {sum(cells):,} unknown cells, most of them in the table on "
                f"{listed(largest)}, above the cap of {MAX_ATOMS:,}. Nothing was attacked. Attack fewer tables at once."
            )
        starts = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
        system = _Incidence(bags, sizes, starts, tuple(members))
        rows: dict[str, list[AtomSums]] = {"published": [], "people": []}
        for number, table in enumerate(tables):
            every = system.rows(number, table.domain.attributes, table, table.counts)
            # A cell that cannot be holds nobody, whether it was printed or not.
            impossible = table.domain.impossible(table.domain.attributes).reshape(-1)
            values = np.where(impossible & np.isnan(every.values), 0.0, every.values)
            rows["published"].append(AtomSums(every.matrix, every.places, values))
            for margin, sums in table.sums.items():
                rows["published"].append(system.rows(number, margin, table, sums))
            if table.people is not None:
                people = table.people.astype(np.float64)
                rows["people"].append(system.rows(number, table.domain.attributes, table, people))
        published = _stacked(rows["published"], int(starts[-1]))
        given = ~np.isnan(published.values)
        return cls(
            tuple(tables),
            int(starts[-1]),
            published.of(given),
            published.of(~given),
            _stacked(rows["people"], int(starts[-1])),
            system.links(tree),
        )


@dataclass(frozen=True, eq=False)
class _Incidence:
    """Which atoms each cell of each table adds up.

    `members[table][attribute]` is the level of the table that each atom of the attribute belongs to.
    """

    bags: tuple[Margin, ...]
    sizes: Mapping[str, int]
    starts: NDArray[np.int64]
    members: tuple[Mapping[str, NDArray[np.int64]], ...]

    def rows(
        self, number: int, margin: Margin, table: SuppressedTable, values: NDArray[np.float64]
    ) -> AtomSums:
        """Return the rows of a margin of a table."""
        levels = tuple(table.domain.levels_of(attribute) for attribute in margin)
        shape = tuple(map(len, levels))
        home = next(i for i, bag in enumerate(self.bags) if set(table.domain.attributes) <= set(bag))
        matrix = self._sums(home, [self.members[number][a] for a in margin], margin, shape)
        places = tuple(
            TablePlace(number, margin, index, tuple(of[i] for of, i in zip(levels, index, strict=True)))
            for index in np.ndindex(shape)
        )
        return AtomSums(matrix, places, np.asarray(values, dtype=np.float64).reshape(-1))

    def links(self, tree: Iterable[tuple[int, int]]) -> sparse.csr_array:
        """Return the differences of what neighbours say of their common attributes."""
        rows = [sparse.csr_array((0, int(self.starts[-1])))]
        for one, other in tree:
            common = tuple(a for a in self.bags[one] if a in self.bags[other])
            shape = tuple(self.sizes[a] for a in common)
            levels = [np.arange(size) for size in shape]
            rows.append(self._sums(one, levels, common, shape) - self._sums(other, levels, common, shape))
        return sparse.csr_array(sparse.vstack(rows))

    def _sums(
        self, bag: int, levels: Sequence[NDArray[np.int64]], margin: Margin, shape: tuple[int, ...]
    ) -> sparse.csr_array:
        """Return the rows of a margin of a bag: each atom is in the one cell that its levels name."""
        names = self.bags[bag]
        cell = np.zeros(tuple(self.sizes[a] for a in names), dtype=np.int64)
        for of_atoms, attribute, size in zip(levels, margin, shape, strict=True):
            axis = [-1 if name == attribute else 1 for name in names]
            cell = cell * size + of_atoms.reshape(axis)
        atoms = np.arange(self.starts[bag], self.starts[bag + 1])
        places = (cell.reshape(-1), atoms)
        return sparse.csr_array((np.ones(atoms.size), places), shape=(prod(shape), int(self.starts[-1])))


def _stacked(rows: list[AtomSums], atoms: int) -> AtomSums:
    return AtomSums(
        sparse.csr_array(sparse.vstack([sparse.csr_array((0, atoms)), *(part.matrix for part in rows)])),
        tuple(place for part in rows for place in part.places),
        np.concatenate([np.zeros(0), *(part.values for part in rows)]),
    )


def _members(tables: Sequence[SuppressedTable], parts: Parts) -> list[dict[str, NDArray[np.int64]]]:
    """Return, for each table and attribute, which level each atom of the attribute belongs to."""
    attributes = {attribute for table in tables for attribute in table.domain.attributes}
    for attribute in parts:
        if attribute not in attributes:
            raise InvalidTable(
                f"`parts` names attribute {attribute!r}, but the tables have {listed(sorted(attributes))}."
            )
    members: list[dict[str, NDArray[np.int64]]] = [{} for _ in tables]
    for attribute in sorted(attributes):
        holding = [i for i, table in enumerate(tables) if attribute in table.domain.attributes]
        levels = [tables[i].domain.levels_of(attribute) for i in holding]
        finest = _finest(attribute, levels, parts.get(attribute, {}))
        made_of = [_made_of(attribute, of_table, finest) for of_table in levels]
        for i, found in zip(holding, made_of, strict=True):
            if found.keys() != made_of[0].keys():
                odd = sorted(found.keys() ^ made_of[0].keys())
                raise InvalidTable(
                    f"tables {holding[0] + 1} and {i + 1} divide attribute {attribute!r} into different levels: "
                    f"{listed(odd)} is in one of them only. Nothing was attacked. Say with `parts` which levels the "
                    "coarser ones consist of. If a table leaves people out, add them as a suppressed level."
                )
        # Finest levels that no table tells apart are one atom.
        kinds = dict.fromkeys(tuple(of[leaf] for of in made_of) for leaf in made_of[0])
        for place, i in enumerate(holding):
            members[i][attribute] = np.array([kind[place] for kind in kinds], dtype=np.int64)
    return members


def _finest(
    attribute: str, levels: Sequence[Sequence[str]], parts: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the finest levels that each level is made of."""
    named = {level for of_table in levels for level in of_table} | {p for of in parts.values() for p in of}
    finest: dict[str, tuple[str, ...]] = {}

    def expand(level: str, above: tuple[str, ...]) -> tuple[str, ...]:
        if level in above:
            raise InvalidTable(
                f"`parts` makes level {level!r} of {attribute!r} a part of itself. Nothing was attacked."
            )
        if level not in finest:
            below = parts.get(level)
            found = (
                (level,)
                if below is None
                else tuple(leaf for part in below for leaf in expand(part, (*above, level)))
            )
            if not found or len(set(found)) < len(found):
                raise InvalidTable(
                    f"the parts of level {level!r} of {attribute!r} overlap, or there are none. Nothing was attacked."
                )
            finest[level] = found
        return finest[level]

    for level in parts:
        if level not in named:
            raise InvalidTable(
                f"`parts` names level {level!r} of {attribute!r}, but the tables have {listed(sorted(named))}."
            )
        if isinstance(parts[level], str):
            raise InvalidTable(
                f"the parts of level {level!r} of {attribute!r} must be a list of levels, not a text."
            )
    for level in named:
        expand(level, ())
    return finest


def _made_of(attribute: str, levels: Sequence[str], finest: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Return which level of a table each finest level belongs to."""
    found: dict[str, int] = {}
    for position, level in enumerate(levels):
        for leaf in finest[level]:
            if leaf in found:
                raise InvalidTable(
                    f"levels {levels[found[leaf]]!r} and {level!r} of attribute {attribute!r} overlap in {leaf!r}, "
                    "but the levels of a table must not overlap. Correct `parts`."
                )
            found[leaf] = position
    return found


def _bags(margins: Sequence[Margin]) -> tuple[tuple[Margin, ...], list[tuple[int, int]]]:
    """Return bags of attributes that hold every margin, and a tree of them in which each attribute hangs together."""
    order = list(dict.fromkeys(attribute for margin in margins for attribute in margin))
    edges = _largest([frozenset(margin) for margin in margins])
    circle = _circle(edges)
    if circle:
        edges = _largest([*edges, circle])
    bags = tuple(tuple(a for a in order if a in edge) for edge in edges)
    # A heaviest spanning tree of an acyclic scheme is a join tree (Maier 1983).
    pairs = sorted(combinations(range(len(edges)), 2), key=lambda pair: -len(edges[pair[0]] & edges[pair[1]]))
    component = list(range(len(edges)))
    tree = []
    for one, other in pairs:
        if component[one] != component[other]:
            tree.append((one, other))
            old = component[other]
            component = [component[one] if c == old else c for c in component]
    return bags, tree


def _largest(edges: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    distinct = list(dict.fromkeys(edges))
    return [edge for edge in distinct if not any(edge < other for other in distinct)]


def _circle(edges: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the attributes that go in circles: what is left when attributes of one edge and edges inside others go.

    The reduction of Graham and of Yu & Ozsoyoglu (1979); nothing is left if and only if the scheme is acyclic.
    """
    left = list(edges)
    while True:
        shared = {a for a in frozenset().union(*left) if sum(a in edge for edge in left) > 1}
        smaller = _largest([edge & shared for edge in left])
        if smaller == left:
            return frozenset(shared)
        left = smaller
