"""The least and the largest value of suppressed numbers over all the tables that agree with what is published."""

from collections.abc import Mapping

import highspy
import numpy as np

from tabulary.attacks.suppression.linear_system import LinearSystem, Proof
from tabulary.attacks.suppression.published_tables import AttackedTables
from tabulary.core.arrays import Floats
from tabulary.errors import InvalidTable, NotCertified
from tabulary.linear_solver import simplex_solver

# What the solver may be off by.
_TOLERANCE = 1e-9
# An error names so many of the numbers that contradict each other.
_NAMED = 4
# Nearer than this to a whole number, in a table of counts, is that number.
_NEAR = 1e-6


class IntervalProgram:
    """The tables that agree with what is published: a linear program whose objective is one suppressed number.

    Numbers are those of `Published.unknown`. Raises `InvalidTable` where no table agrees, `NotCertified` where the
    solver ends with neither an optimum nor a proof that there is none.
    """

    def __init__(self, published: AttackedTables) -> None:
        self.whole = published.tables[0].whole
        self.system = LinearSystem.of(published)
        # Amounts are divided by the largest, for the solver's tolerance is absolute.
        published_values = np.concatenate([published.known.values, published.people.values])
        self.scale = 1.0 if self.whole else float(published_values.max(initial=1.0))
        self._solver = self._model()
        self._bounded: set[int] = set()
        if not self.within({}):
            kind = "whole numbers" if self.whole else "numbers"
            raise InvalidTable(
                f"the published numbers contradict each other{self._conflict()}: no table of non-negative {kind} has "
                "all of them. Nothing was attacked. Look for a misprint, for numbers that were rounded before they "
                "were added up, and for tables of different people."
            )

    def within(self, bounds: Mapping[int, tuple[float, float]]) -> bool:
        """Let suppressed numbers lie between the given values, all others anywhere; return whether a table is left.

        `ends` and `whole_ends` are then over the tables that are left.
        """
        system = self.system
        box = system.within(bounds)
        unknown = len(system.handles)
        self._least, self._most = np.full(unknown, np.inf), np.full(unknown, -np.inf)
        self._least_whole, self._most_whole = self._least.copy(), self._most.copy()
        self._integer: highspy.Highs | None = None
        # Sums of amounts are not exact, so nothing is concluded from them but by the solver.
        outer = system.propagated(box) if self.whole else (box.lower, box.upper)
        if outer is None or (outer[0] > outer[1]).any():
            return False
        self._outer = system.targets @ outer[0], system.targets @ outer[1]
        for number in self._bounded | bounds.keys():
            row, where = system.handles[number]
            lower, upper = (box.row_lower, box.row_upper) if row else (box.lower, box.upper)
            change = self._solver.changeRowBounds if row else self._solver.changeColBounds
            change(where, lower[where] / self.scale, upper[where] / self.scale)
        self._bounded = set(bounds)
        if self._solved(self._solver, None, 1) is None:
            return False
        if not self.whole or system.unimodular or self._seen_whole:
            return True
        return self._solved(self._whole_solver, None, 1) is not None

    def ends(self, number: int) -> tuple[float, float]:
        """Return the least and the largest value of a suppressed number in tables of non-negative numbers."""
        # No program where a table seen before already meets what the sums allow.
        if self._least[number] > self._outer[0][number]:
            self._least[number] = self._end(self._solver, number, 1)
        if self._most[number] < self._outer[1][number]:
            self._most[number] = self._end(self._solver, number, -1)
        return float(self._least[number]), float(self._most[number])

    def whole_ends(self, number: int) -> tuple[int, float]:
        """Return the same in tables of whole numbers: whole, or infinite."""
        lower, upper = self.ends(number)
        lower, upper = np.ceil(lower - _NEAR), np.floor(upper + _NEAR)
        if not self.system.unimodular:
            if self._least_whole[number] > lower:
                self._least_whole[number] = self._end(self._whole_solver, number, 1)
            if self._most_whole[number] < upper:
                self._most_whole[number] = self._end(self._whole_solver, number, -1)
            lower, upper = self._least_whole[number], self._most_whole[number]
        return round(float(lower)), round(float(upper)) if np.isfinite(upper) else np.inf

    def proofs(self, number: int) -> tuple[Proof, ...]:
        """Return why a number is what it is, for one whose ends are equal: an identity, or a bound from either side.

        Made of the multipliers of the linear program; nothing where they do not prove the ends in exact arithmetic.
        """
        found = []
        for sense, end in zip((1, -1), self.ends(number), strict=True):
            self._end(self._solver, number, sense)
            multipliers = sense * np.asarray(self._solver.getSolution().row_dual)
            proof, bound = self.system.proof(number, multipliers, sense)
            if proof is None or abs(bound - end) > _TOLERANCE * self.scale:
                return ()
            if proof.identity:
                return (proof,)
            found.append(proof)
        return tuple(found)

    @property
    def _seen_whole(self) -> bool:
        return bool(np.isfinite(self._least_whole).all())

    @property
    def _whole_solver(self) -> highspy.Highs:
        if self._integer is None:
            self._integer = _solver()
            self._integer.setOptionValue("presolve", "on")
            self._integer.passModel(self._solver.getModel())
            for column in range(self.system.columns):
                self._integer.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        return self._integer

    def _end(self, solver: highspy.Highs, number: int, sense: int) -> float:
        value = self._solved(solver, number, sense)
        if value is None:
            raise NotCertified(
                "a bound of a suppressed number could not be computed: the solver found a table that agrees with the "
                "published numbers, and later found none. Nothing is reported for these tables."
            )
        return value

    def _solved(self, solver: highspy.Highs, number: int | None, sense: int) -> float | None:
        """Return the least (sense 1) or largest (-1) value of a number, perhaps infinite; None if there is no table."""
        target = np.zeros(self.system.columns)
        if number is not None:
            target[self.system.target(number)] = 1
        solver.changeColsCost(target.size, np.arange(target.size, dtype=np.int32), sense * target)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        without_end = (highspy.HighsModelStatus.kUnbounded, highspy.HighsModelStatus.kUnboundedOrInfeasible)
        if number is not None and status in without_end:
            return -sense * np.inf
        if status != highspy.HighsModelStatus.kOptimal:
            raise NotCertified(
                "a bound of a suppressed number could not be computed: the solver ended with "
                f"{solver.modelStatusToString(status)!r}. Nothing is reported for these tables. Attack fewer at once."
            )
        return float(target @ self._learnt(np.asarray(solver.getSolution().col_value) * self.scale))

    def _learnt(self, table: Floats) -> Floats:
        """Note what a table that agrees with the published numbers shows of all the suppressed ones."""
        if self.whole:
            nearest = np.round(table)
            table = np.where(np.abs(table - nearest) < _NEAR, nearest, table)
        shown = self.system.targets @ table
        self._least, self._most = np.minimum(self._least, shown), np.maximum(self._most, shown)
        if self.whole and (table == np.round(table)).all() and self.system.holds(table):
            self._least_whole = np.minimum(self._least_whole, shown)
            self._most_whole = np.maximum(self._most_whole, shown)
        return table

    def _model(self) -> highspy.Highs:
        solver, matrix, box = _solver(), self.system.matrix, self.system.box
        solver.addVars(self.system.columns, box.lower / self.scale, box.upper / self.scale)
        solver.addRows(
            matrix.shape[0],
            box.row_lower / self.scale,
            box.row_upper / self.scale,
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data.astype(np.float64),
        )
        return solver

    def _conflict(self) -> str:
        """Return some of the numbers that contradict each other, where the solver can tell them."""
        box = self.system.box
        places = [self.system.fixed[column] for column in np.flatnonzero(box.lower > box.upper).tolist()]
        self._solver.run()
        _, known, ray = self._solver.getDualRay()  # type: ignore[attr-defined]
        for i in np.flatnonzero(np.abs(ray) > _TOLERANCE) if known else ():
            term = self.system.rows[i]
            if term is not None:
                places.append(term.place)
        named = "; ".join(f"{place.full_name} of table {place.table + 1}" for place in places[:_NAMED])
        return f", among them {named}" if named else ""


def _solver() -> highspy.Highs:
    return simplex_solver(
        primal_feasibility_tolerance=_TOLERANCE,
        dual_feasibility_tolerance=_TOLERANCE,
        # Two whole numbers differ by one at least, however large they are.
        mip_rel_gap=0.0,
        mip_abs_gap=0.5,
    )
