"""Cell suppression as statistical offices do it: sensitive cells by rules, and other cells that protect them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.arrays import Floats
from tabulary.core.domain import Margin
from tabulary.core.progress import Progress
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.core.table import Table
from tabulary.errors import CannotProtect, InvalidArgument, InvalidTable, NotCertified, listed
from tabulary.suppress.classical_method.contributions import Contributions
from tabulary.suppress.classical_method.rules import Mask, ProtectionLevels, Rule, primary
from tabulary.suppress.classical_method.suppression_problem import SuppressionProblem
from tabulary.suppress.classical_method.table_with_sums import TableWithSums

Statuses = NDArray[np.str_]

EXACT_CELLS = 10_000
"""The largest two-way table that "auto" looks for the cheapest pattern of."""

EXACT_SECONDS = 60.0
"""The default time limit of "auto"."""


@dataclass(frozen=True, eq=False, repr=False)
class Protection:
    """The interval of each cell for an attacker, and how wide it must be. Confidential.

    `lower` and `upper` are the interval; both are the value if it is published. `required` are the levels.
    """

    lower: Floats
    upper: Floats
    required: ProtectionLevels

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of shape {' × '.join(map(str, self.lower.shape))}>"


@dataclass(frozen=True, eq=False)
class Suppression:
    """A table with its cells suppressed, as the custodian sees it: confidential but for `published`.

    `status` is "u" for a sensitive cell, "x" for one suppressed to protect others, "s" for one that is published and
    "z" for one that had to be, as in τ-ARGUS and sdcTable; `sum_status` the same for the sums, by their attributes.
    `cost` is that of all suppressed cells, and every pattern costs `lower_bound` at least; they are equal if this one
    is `optimal`.
    """

    published: SuppressedTable
    status: Statuses
    sum_status: Mapping[Margin, Statuses]
    cost: float
    lower_bound: float
    optimal: bool
    method: str
    _frame: TableWithSums
    _values: Floats
    _problem: SuppressionProblem
    _pattern: Mask

    @property
    def gap(self) -> float:
        """(cost - lower bound) / cost: no more than this share of the cost is avoidable. 0 if optimal."""
        return 0.0 if self.optimal else (self.cost - self.lower_bound) / self.cost

    @cached_property
    def protection(self) -> Protection:
        """The attacker's interval of every cell of the table, from two linear programs for each suppressed one."""
        from tabulary.suppress.classical_method.linear_attacker import deviations

        down, up = deviations(self._problem, self._pattern)
        # The cells of the table itself deviate with the sign they count with.
        inside, levels = self._frame.cells, self._problem.levels
        return Protection(
            self._values - down[inside],
            self._values + up[inside],
            ProtectionLevels(levels.lower[inside], levels.upper[inside], levels.width[inside]),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.published!r}>"


def classical(
    table: Table,
    rules: Rule | Sequence[Rule],
    *,
    contributions: Contributions | None = None,
    cost: Literal["cells", "counts"] | ArrayLike = "cells",
    protection: ProtectionLevels | None = None,
    people: ArrayLike | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    never: ArrayLike | None = None,
    margins: Literal["publish", "suppress"] = "publish",
    method: Literal["auto", "exact", "heuristic"] = "auto",
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Suppression:
    """Return a table without its sensitive cells, and without the fewest or smallest other cells that protect them.

    Protected means that the interval of the cell, computed by an attacker from everything published, reaches the
    protection levels of the cell. It does **not** mean that nothing is learnt about a person: a reader who knows the
    rules, and knows that little is suppressed, may learn much. Nabar & Mishra (2010), section 3; see `attack`.

    Args:
        table: the counts, or amounts if they are not whole. Confidential.
        rules: one or several; a cell is sensitive if it is so by any of them.
        contributions: the single amounts in each cell, for `Dominance` and `PPercent`.
        cost: what is minimised: the number of suppressed "cells", their "counts" or amounts, or a cost for each cell.
        protection: levels in place of those of the rules.
        people: the number of people in each cell, if it is public: no count is above it. Published with the table.
        bounds: least and largest values that an attacker holds possible beforehand; 0 and any, unless given.
        never: which cells must be published.
        margins: "publish" every sum over any attributes; or "suppress" sums as well: rules and costs hold for them too.
        method: "exact" is for two-way tables, by branch and cut. "heuristic" is for all tables: cell by cell along the
            cheapest routes. "auto" is exact for two-way tables up to 10,000 cells, for at most a minute.
        time_limit: seconds after which the exact search ends with the best pattern so far, and its gap.
        progress: called with (what, done, total); a total of zero is unknown.

    Raises:
        CannotProtect: no pattern protects a sensitive cell.
        NotCertified: a solver could not certify its answer.

    The interval of every sensitive cell is computed again by the linear program of the attacker before anything is
    returned. If counts are whole and the table has three or more axes, intervals of whole numbers may be narrower:
    attack what you publish.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.suppress.classical_method.rules import Threshold
    >>> domain = Domain({"eye": ["blue", "brown"], "hair": ["fair", "red", "dark"]})
    >>> made = classical(Table(domain, [[3, 20, 30], [15, 25, 40]]), Threshold(5), cost="counts")
    >>> made.status.tolist()
    [['u', 'x', 's'], ['x', 'x', 's']]
    >>> made.published.counts.tolist(), made.cost, made.optimal
    ([[nan, nan, 30.0], [nan, nan, 40.0]], 63.0, True)
    >>> made.protection.lower[0, :2].tolist(), made.protection.upper[0, :2].tolist()
    ([0.0, 5.0], [18.0, 23.0])
    """
    _check_options(cost, margins, method, time_limit)
    with_sums = TableWithSums(table.domain, sums=margins == "suppress")
    values = _values(table)
    numbers = _people(people, values)
    sensitive, levels = _sensitive(with_sums, values, rules, contributions, protection)
    kept = with_sums.marked(_mask(never, values.shape)) | _impossible(with_sums)
    if (sensitive & kept).any():
        raise CannotProtect(
            f"{_names(with_sums, sensitive & kept)} must be published, but is sensitive by the rules. Nothing was "
            "published. Change `never`, or the rules."
        )
    problem = _problem(
        with_sums, values, _bounds(with_sums, values, bounds, numbers), sensitive, kept, levels, cost
    )
    found = _pattern(problem, with_sums, method, time_limit, progress)
    # Loads a solver.
    from tabulary.suppress.classical_method.linear_attacker import unmet

    if unmet(problem, found.pattern):
        raise NotCertified(
            "the linear program of the attacker does not confirm that every sensitive cell is protected. Nothing was "
            "published. Amounts of very different sizes may be the reason: give them in larger units."
        )
    status = np.full(with_sums.shape, "s")
    status[kept], status[found.pattern], status[sensitive] = "z", "x", "u"
    return Suppression(
        published=_published(with_sums, table, found.pattern, numbers),
        status=status[with_sums.cells],
        sum_status={
            margin: status[part] if with_sums.sums else np.full(table.domain.shape_of(margin), "z")
            for margin, part in with_sums.margins.items()
        },
        cost=found.cost,
        lower_bound=found.lower_bound,
        optimal=found.optimal,
        method=found.method,
        _frame=with_sums,
        _values=values,
        _problem=problem,
        _pattern=found.pattern,
    )


@dataclass(frozen=True, eq=False)
class _Found:
    """A pattern, how it was found, and what is known of its cost."""

    pattern: Mask
    cost: float
    lower_bound: float
    optimal: bool
    method: str


def _pattern(
    problem: SuppressionProblem,
    with_sums: TableWithSums,
    method: str,
    time_limit: float | None,
    progress: Progress | None,
) -> _Found:
    # Load a solver, and perhaps a compiler.
    from tabulary.suppress.classical_method.cutting_planes import cheapest_pattern
    from tabulary.suppress.classical_method.deviation_routes import routes_of
    from tabulary.suppress.classical_method.heuristic import heuristic, unprotectable

    least = problem.price(problem.primary)
    if not problem.targets:
        return _Found(problem.primary, least, least, True, "exact" if method == "auto" else method)
    routes = routes_of(problem)
    lost = unprotectable(problem, routes)
    if lost:
        marks = np.isin(np.arange(problem.primary.size), lost).reshape(with_sums.shape)
        raise CannotProtect(
            f"no pattern of suppressed cells protects {_names(with_sums, marks)} as the rules require. Nothing was "
            "published. Merge levels, allow suppressed sums (margins='suppress'), require less protection, or use "
            "Threshold(..., zeros=False) if empty cells are not secret."
        )
    two_way = len(with_sums.shape) == 2
    if method == "exact" and not two_way:
        raise InvalidArgument(
            f"method='exact' is for two-way tables, but this one has {len(with_sums.shape)} attributes. Nothing was "
            "published. Use method='heuristic'."
        )
    if method == "exact" or (method == "auto" and two_way and problem.cost.size <= EXACT_CELLS):
        limit = EXACT_SECONDS if method == "auto" and time_limit is None else time_limit
        best = cheapest_pattern(problem, routes, time_limit=limit, progress=progress)
        return _Found(best.pattern, best.cost, best.lower_bound, best.optimal, "exact")
    # A replacement is tried for every secondary cell: too many linear programs.
    pattern = heuristic(problem, routes, swaps=two_way, progress=progress)
    price = problem.price(pattern)
    return _Found(pattern, price, least, price <= least, "heuristic")


def _problem(
    with_sums: TableWithSums,
    values: Floats,
    bounds: tuple[Floats, Floats],
    sensitive: Mask,
    kept: Mask,
    levels: ProtectionLevels,
    cost: str | ArrayLike,
) -> SuppressionProblem:
    framed, (low, high) = with_sums.of(values), bounds
    plain = with_sums.signs > 0
    return SuppressionProblem(
        rise=np.where(plain, high - framed, framed - low),
        fall=np.where(plain, framed - low, high - framed),
        cost=_cost(with_sums, values, cost),
        primary=sensitive,
        kept=kept,
        levels=ProtectionLevels(
            np.where(plain, levels.lower, levels.upper),
            np.where(plain, levels.upper, levels.lower),
            levels.width,
        ),
    )


def _sensitive(
    with_sums: TableWithSums,
    values: Floats,
    rules: Rule | Sequence[Rule],
    contributions: Contributions | None,
    protection: ProtectionLevels | None,
) -> tuple[Mask, ProtectionLevels]:
    if contributions is not None:
        if contributions.shape != values.shape:
            raise InvalidTable(
                f"the table's shape is {values.shape} but the contributions' is {contributions.shape}."
            )
        if not np.allclose(contributions.total, values):
            raise InvalidTable("the contributions do not add up to the table. Nothing was published.")
        contributions = contributions.with_totals() if with_sums.sums else contributions
    cells, levels = primary(with_sums.of(values), rules, contributions)
    cells &= ~_impossible(with_sums)
    if protection is not None:
        flat = all(np.ndim(level) == 0 for level in (protection.lower, protection.upper, protection.width))
        # Levels for each cell are for the cells of the table itself; sums keep the levels of the rules.
        given = protection.stretched(with_sums.shape if flat else values.shape)
        levels = given if given.lower.shape == with_sums.shape else levels.replaced(with_sums.cells, given)
    return cells, levels.of(cells)


def _published(
    with_sums: TableWithSums, table: Table, pattern: Mask, people: NDArray[np.int64] | None
) -> SuppressedTable:
    sums = {}
    for margin, part in with_sums.margins.items():
        exact = table.project(margin).counts
        sums[margin] = np.where(pattern[part], np.nan, exact) if with_sums.sums else exact.astype(np.float64)
    counts = np.where(pattern[with_sums.cells], np.nan, table.counts)
    return SuppressedTable(table.domain, counts, sums, people, whole=table.counts.dtype.kind == "i")


def _values(table: Table) -> Floats:
    values = table.counts.astype(np.float64)
    if (values < 0).any():
        raise InvalidTable(
            "a cell is below zero. Suppression is for counts and amounts. Nothing was published."
        )
    return values


def _people(people: ArrayLike | None, values: Floats) -> NDArray[np.int64] | None:
    if people is None:
        return None
    numbers = np.asarray(people)
    if numbers.shape != values.shape or numbers.dtype.kind not in "iu":
        raise InvalidTable(
            f"`people` must be whole numbers in the table's shape {values.shape}, not {numbers.dtype} in shape "
            f"{numbers.shape}."
        )
    if (values > numbers).any():
        raise InvalidTable("a count is above the number of people in its cell. Nothing was published.")
    return numbers.astype(np.int64)


def _bounds(
    with_sums: TableWithSums,
    values: Floats,
    bounds: tuple[ArrayLike, ArrayLike] | None,
    people: NDArray[np.int64] | None,
) -> tuple[Floats, Floats]:
    """Return between which values an attacker thinks every cell of the with_sums is, before the table is published."""
    low, high = np.zeros(values.shape), np.full(values.shape, np.inf)
    if bounds is not None:
        try:
            low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), values.shape) for end in bounds)
        except (TypeError, ValueError):
            raise InvalidTable(
                f"`bounds` must be two numbers or two arrays in the table's shape {values.shape}: the smallest and "
                "the largest."
            ) from None
    if people is not None:
        high = np.minimum(high, people)
    if np.isnan(low).any() or (low < 0).any() or not ((low <= values) & (values <= high)).all():
        raise InvalidTable(
            "a cell lies outside its bounds, or a bound is below zero. The bounds of an attacker must include the "
            "values."
        )
    impossible = _impossible(with_sums)[with_sums.cells]
    return with_sums.of(np.where(impossible, 0.0, low)), with_sums.of(np.where(impossible, 0.0, high))


def _cost(with_sums: TableWithSums, values: Floats, cost: str | ArrayLike) -> Floats:
    if isinstance(cost, str):
        return np.ones(with_sums.shape) if cost == "cells" else with_sums.of(values)
    try:
        given = np.array(np.broadcast_to(np.asarray(cost, dtype=np.float64), values.shape))
    except (TypeError, ValueError):
        raise InvalidArgument(f"the costs must be numbers in the table's shape {values.shape}.") from None
    if not np.isfinite(given).all() or (given < 0).any():
        raise InvalidArgument("a cost is negative, infinite or missing.")
    return with_sums.of(given)


def _mask(cells: ArrayLike | None, shape: tuple[int, ...]) -> Mask:
    if cells is None:
        return np.zeros(shape, dtype=np.bool_)
    marks = np.asarray(cells)
    if marks.shape != shape or marks.dtype != np.bool_:
        raise InvalidArgument(
            f"`never` must be an array of True and False in shape {shape}, not {marks.dtype} in shape {marks.shape}."
        )
    return marks


def _impossible(with_sums: TableWithSums) -> Mask:
    return with_sums.marked(with_sums.domain.impossible(with_sums.domain.attributes))


def _names(with_sums: TableWithSums, cells: Mask) -> str:
    return listed(with_sums.named(int(cell)) for cell in np.flatnonzero(cells))


def _check_options(cost: object, margins: str, method: str, time_limit: float | None) -> None:
    if isinstance(cost, str) and cost not in ("cells", "counts"):
        raise InvalidArgument(f"`cost` must be 'cells', 'counts' or an array of costs, not {cost!r}.")
    if margins not in ("publish", "suppress"):
        raise InvalidArgument(f"`margins` must be 'publish' or 'suppress', not {margins!r}.")
    if method not in ("auto", "exact", "heuristic"):
        raise InvalidArgument(f"unknown method {method!r}. Use 'auto', 'exact' or 'heuristic'.")
    if time_limit is not None and not time_limit > 0:
        raise InvalidArgument(f"`time_limit` must be a number of seconds above 0, not {time_limit!r}.")
