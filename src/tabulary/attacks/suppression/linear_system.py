"""Published tables as rows and columns of a linear program, and what can be said of it without solving it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tabulary.attacks.suppression.published_tables import AtomSums, AttackedTables, TablePlace
from tabulary.core.arrays import Floats
from tabulary.core.exact_numbers import show_fraction
from tabulary.errors import InvalidTable

# Multipliers below this are zero.
_NOTHING = 1e-9
# Coefficients of a proof are looked for among fractions up to this denominator; those of a two-way table are whole.
_DENOMINATOR = 1000
# How often bounds may be passed on along the sums; what is left is the solver's.
_ROUNDS = 20


@dataclass(frozen=True)
class ProofTerm:
    """A published number, times a coefficient; `of` says whether the number is a count or the people of its cell."""

    coefficient: Fraction
    place: TablePlace
    of: Literal["count", "people"] = "count"


@dataclass(frozen=True)
class Proof:
    """Published numbers that add up to a suppressed one, or to a bound of it.

    `identity` says that the suppressed number equals the sum whatever the table; otherwise the sum is a bound of it
    because no count is below zero or above its people. Checked in exact arithmetic.
    """

    terms: tuple[ProofTerm, ...]
    identity: bool

    @property
    def tables(self) -> tuple[int, ...]:
        """The tables that are needed, counted from 0."""
        return tuple(sorted({term.place.table for term in self.terms}))

    def __str__(self) -> str:
        text = ""
        # What is added comes first.
        for term in sorted(self.terms, key=lambda term: term.coefficient < 0):
            sign = "- " if term.coefficient < 0 else "+ " if text else ""
            times = "" if abs(term.coefficient) == 1 else f"{show_fraction(abs(term.coefficient))} × "
            people = "the people of " if term.of == "people" else ""
            where = f" (table {term.place.table + 1})" if len(self.tables) > 1 else ""
            text += f"{' ' if text else ''}{sign}{times}{people}[{term.place.full_name}]{where}"
        return text or "0"


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds of columns and rows."""

    lower: Floats
    upper: Floats
    row_lower: Floats
    row_upper: Floats


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """row_lower ≤ matrix · x ≤ row_upper and lower ≤ x ≤ upper, where x are the atoms.

    A published atom has both bounds at its value. Where the people of every atom are known they bound it from above.
    Where they are known in sums of atoms only, a second layer of columns holds the people without the attribute, and
    both layers together add up to the people. Sums of atoms that are suppressed are rows without bounds.
    """

    matrix: sparse.csr_array
    box: Box
    rows: tuple[ProofTerm | None, ...]
    """The published number that each row is; None for a row that says nothing by itself."""
    fixed: Mapping[int, TablePlace]
    """The published number that a known atom is."""
    people: Mapping[int, TablePlace]
    """The cell whose people bound an atom."""
    targets: sparse.csr_array
    """The suppressed numbers as sums of columns."""
    handles: tuple[tuple[bool, int], ...]
    """For each suppressed number whether it is a row, and which row or column."""
    sets: bool
    """Whether every row is a set of atoms: no second layer, no differences."""

    @classmethod
    def of(cls, published: AttackedTables) -> "LinearSystem":
        """Return the system of published tables; raises `InvalidTable` where they contradict about the people."""
        known, atoms = published.known, published.atoms
        single = known.sizes == 1
        lower, upper = np.zeros(atoms), np.full(atoms, np.inf)
        fixed: dict[int, TablePlace] = {}
        for atom, place, value in _atoms(known.of(single)):
            lower[atom], upper[atom] = max(lower[atom], value), min(upper[atom], value)
            fixed.setdefault(atom, place)
        many = known.of(~single)
        links = published.links
        blocks = [(many.matrix, False), (links, False)]
        rows = [*(ProofTerm(Fraction(1), place) for place in many.places), *[None] * links.shape[0]]
        values = [many.values, np.zeros(links.shape[0])]
        targets = published.unknown.matrix
        in_atoms, people = _people_of_atoms(published)
        layers = 1
        if _people_in_sums(published, in_atoms):
            layers, people = 2, {}
            everyone = published.people
            blocks += [(everyone.matrix, True), (links, True)]
            rows += [
                *(ProofTerm(Fraction(1), place, "people") for place in everyone.places),
                *[None] * links.shape[0],
            ]
            values += [everyone.values, np.zeros(links.shape[0])]
            lower, upper = np.append(lower, np.zeros(atoms)), np.append(upper, np.full(atoms, np.inf))
            targets = sparse.csr_array(sparse.hstack([targets, sparse.csr_array(targets.shape)]))
        else:
            upper = np.fmin(upper, in_atoms)
        sums = np.diff(targets.indptr) > 1
        blocks.append((published.unknown.matrix[np.flatnonzero(sums)], False))
        first = sum(map(len, values))
        free = np.full(int(sums.sum()), np.inf)
        return cls(
            matrix=_stacked(blocks, layers),
            box=Box(lower, upper, np.concatenate([*values, -free]), np.concatenate([*values, free])),
            rows=(*rows, *[None] * free.size),
            fixed=fixed,
            people=people,
            targets=targets,
            handles=tuple(
                (True, first + int(sums[:number].sum()))
                if of_several
                else (False, int(targets.indices[targets.indptr[number]]))
                for number, of_several in enumerate(sums)
            ),
            sets=layers == 1 and not links.shape[0],
        )

    @property
    def columns(self) -> int:
        """How many variables there are."""
        return int(self.matrix.shape[1])

    def within(self, bounds: Mapping[int, tuple[float, float]]) -> Box:
        """Return the bounds when some suppressed numbers are known to lie between two values."""
        box = Box(*(array.copy() for array in vars(self.box).values()))
        for number, (low, high) in bounds.items():
            row, where = self.handles[number]
            lower, upper = (box.row_lower, box.row_upper) if row else (box.lower, box.upper)
            lower[where], upper[where] = max(lower[where], low), min(upper[where], high)
        return box

    @cached_property
    def unimodular(self) -> bool:
        r"""Whether every vertex is whole, because the published sets of atoms split into two nested families.

        A family is nested if of any two sets that meet one holds the other. The matrix of two such families is totally
        unimodular (Edmonds 1970; Schrijver, Combinatorial Optimization, theorem 41.11): subtract from each set those
        right below it, and each atom is left in at most one row of each family, which is the incidence matrix of a
        bipartite graph. Published numbers are whole, so all vertices are whole, and so are the ends of the linear
        program. Bounds of single cells do not change this.

        One two-way table always splits so: the sums of rows and the total are one family, the sums of columns the
        other, and its cells are single atoms. So do several versions of it with other cells suppressed, or with coarser
        rows. Sets that cross, that is meet without one holding the other, must be of different families: there are two
        if the graph of crossings is bipartite. Sufficient, not necessary; where it fails integer programs are solved.
        """
        if not self.sets:
            return False
        free = np.flatnonzero(self.box.lower < self.box.upper)
        sets = sparse.csr_array(self.matrix[:, free])
        sets = sparse.csr_array(sets[np.flatnonzero(np.diff(sets.indptr) > 1)])
        size = np.diff(sets.indptr)
        common = sparse.coo_array(sets @ sets.T)
        crossing = common.data < np.minimum(size[common.row], size[common.col])
        return _bipartite(size.size, common.row[crossing], common.col[crossing])

    def holds(self, table: Floats) -> bool:
        """Return whether a table of whole numbers has all the published sums exactly."""
        sums = self.matrix @ table
        return bool(((self.box.row_lower <= sums) & (sums <= self.box.row_upper)).all())

    def propagated(self, box: Box) -> tuple[Floats, Floats] | None:
        """Return bounds of the columns that follow from one sum at a time, or None where they contradict."""
        row, column, up = self._entries
        lower, upper = box.lower, box.upper
        for _ in range(_ROUNDS):
            least = np.where(up, lower[column], -upper[column])
            most = np.where(up, upper[column], -lower[column])
            high = box.row_upper[row] - _others(row, least, self.matrix.shape[0])
            low = box.row_lower[row] - _others(row, most, self.matrix.shape[0])
            new_lower, new_upper = lower.copy(), upper.copy()
            np.maximum.at(new_lower, column, np.where(up, low, -high))
            np.minimum.at(new_upper, column, np.where(up, high, -low))
            if (new_lower > new_upper).any():
                return None
            if (new_lower == lower).all() and (new_upper == upper).all():
                break
            lower, upper = new_lower, new_upper
        return lower, upper

    @cached_property
    def _entries(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
        entries = sparse.coo_array(self.matrix)
        return entries.row, entries.col, entries.data > 0

    def target(self, number: int) -> NDArray[np.int32]:
        """Return the columns that add up to a suppressed number."""
        return self.targets.indices[self.targets.indptr[number] : self.targets.indptr[number + 1]]

    def proof(self, number: int, multipliers: Floats, sense: int) -> tuple[Proof | None, float]:
        """Return the proof that multipliers of the rows make, and its bound: lower if sense is 1, upper if -1.

        Whatever the multipliers are, the bound is a true one (weak duality); it is computed in fractions.
        """
        left = {int(column): Fraction(1) for column in self.target(number)}
        terms: list[ProofTerm] = []
        bound = Fraction(0)
        for i in np.flatnonzero(np.abs(multipliers) > _NOTHING):
            weight = Fraction(float(multipliers[i])).limit_denominator(_DENOMINATOR)
            for entry in range(self.matrix.indptr[i], self.matrix.indptr[i + 1]):
                column = int(self.matrix.indices[entry])
                left[column] = left.get(column, Fraction(0)) - weight * int(self.matrix.data[entry])
            term = self.rows[i]
            if term is not None:
                terms.append(ProofTerm(weight, term.place, term.of))
                bound += weight * Fraction(float(self.box.row_lower[i]))
        identity = True
        for column, coefficient in left.items():
            if column in self.fixed and coefficient:
                terms.append(ProofTerm(coefficient, self.fixed[column]))
                bound += coefficient * Fraction(float(self.box.lower[column]))
            elif coefficient:
                identity = False
                if coefficient * sense < 0:
                    # Only people bound an atom from above; from below there is zero, which adds nothing.
                    if column not in self.people:
                        return None, np.nan
                    terms.append(ProofTerm(coefficient, self.people[column], "people"))
                    bound += coefficient * Fraction(float(self.box.upper[column]))
        return Proof(tuple(terms), identity), float(bound)


def _atoms(rows: AtomSums) -> Iterator[tuple[int, TablePlace, float]]:
    """Yield the atom, the place and the value of rows of one atom each."""
    return zip(rows.matrix.indices.tolist(), rows.places, rows.values.tolist(), strict=True)


def _people_of_atoms(published: AttackedTables) -> tuple[Floats, dict[int, TablePlace]]:
    """Return the number of people in each atom, NaN if it is not known, and the cell that states it."""
    in_atoms = np.full(published.atoms, np.nan)
    places: dict[int, TablePlace] = {}
    for atom, place, value in _atoms(published.people.of(published.people.sizes == 1)):
        if atom in places and in_atoms[atom] != value:
            raise _disagree(place)
        in_atoms[atom] = value
        places.setdefault(atom, place)
    return in_atoms, places


def _people_in_sums(published: AttackedTables, in_atoms: Floats) -> bool:
    """Return whether sums say more of the people than single atoms do; those that must agree with atoms are checked."""
    missing = np.isnan(in_atoms)
    told = np.where(missing, 0.0, in_atoms)
    known = published.people.matrix @ missing.astype(np.float64) == 0
    wrong = known & (published.people.matrix @ told != published.people.values)
    if wrong.any():
        raise _disagree(published.people.places[int(np.argmax(wrong))])
    linked = abs(published.links) @ missing.astype(np.float64) == 0
    if (published.links @ told)[linked].any():
        raise _disagree(published.people.places[0])
    return bool((~known).any())


def _stacked(blocks: list[tuple[sparse.csr_array, bool]], layers: int) -> sparse.csr_array:
    """Return all the rows; of two layers of columns, a block adds up the first or both."""
    if layers == 1:
        return sparse.csr_array(sparse.vstack([block for block, _ in blocks]))
    wide = [
        sparse.hstack([block, block if both else sparse.csr_array(block.shape)]) for block, both in blocks
    ]
    return sparse.csr_array(sparse.vstack(wide))


def _others(row: NDArray[np.int32], values: Floats, rows: int) -> Floats:
    """Return, for each entry, the sum of the other entries of its row; the infinite ones all have the same sign."""
    finite = np.isfinite(values)
    counted = np.where(finite, values, 0.0)
    rest = np.bincount(row, counted, minlength=rows)[row] - counted
    unbounded = np.bincount(row, ~finite, minlength=rows)[row] > ~finite
    return np.where(unbounded, -np.inf if (values == -np.inf).any() else np.inf, rest)


def _bipartite(nodes: int, one: NDArray[np.int32], other: NDArray[np.int32]) -> bool:
    """Return whether two colours are enough: doubled, each component then falls apart into two."""
    if not one.size:
        return True
    graph = sparse.csr_array((np.ones(one.size), (one, other)), shape=(nodes, nodes))
    doubled = sparse.block_array([[None, graph], [graph, None]])
    components = [connected_components(each, directed=False)[0] for each in (graph, doubled)]
    return bool(components[1] == 2 * components[0])


def _disagree(place: TablePlace) -> InvalidTable:
    return InvalidTable(
        f"the tables contradict each other about the number of people, for example at {place.full_name}. Nothing was "
        "attacked. Tables that are attacked together must be about the same people."
    )
