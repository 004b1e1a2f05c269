"""Every mechanism side by side for one request: what each would cost in accuracy, and why one was chosen."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tabulary.core.domain import MAX_CELLS
from tabulary.core.progress import Progress
from tabulary.errors import PublicError
from tabulary.planning.choice import chosen, clearly_better, compare
from tabulary.planning.mechanism import MECHANISMS, dividing_for_shrinkage, simplest_first
from tabulary.planning.plan import Plan
from tabulary.planning.request import Request
from tabulary.planning.shrink_weights import CLEARLY, RECORDS

# Errors that differ by less than this are the same to a reader.
_ALIKE = 1e-9


@dataclass(frozen=True)
class Candidate:
    """One way to answer a request, and what to expect of it.

    `error` is the root mean squared error over all wanted cells, each table by its weight; `worst` is that of the
    worst table, its square times the weight; `largest` is the largest standard error of any cell. They are those
    of the linear estimate and exact, but for a shrunk one: there `error` is what the planning model expects
    (`planning.shrink_weights`), nothing is known of the worst, and `modelled` is true.
    """

    mechanism: str
    reconstruct: str
    noise: str
    error: float
    worst: float
    largest: float
    values: int
    parts: int
    agree: bool
    whole: bool
    modelled: bool = False

    @property
    def name(self) -> str:
        """The mechanism, with the reconstruction where its error is the one that is meant."""
        return shrunk_name(self.mechanism) if self.modelled else self.mechanism

    def aim(self, objective: str) -> float:
        """Return the error that an objective wants to be small."""
        return self.worst if objective == "max" else self.error


@dataclass(frozen=True)
class Refusal:
    """A way that is closed to a request, and what stood in it."""

    name: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """What every mechanism offers for one request.

    `candidates` hold a row for each mechanism and family of noise that keeps the promise; `refusals` name the
    mechanisms that offer nothing. `chosen` is the one that `plan` takes. `records` is what the model of shrunk
    tables assumes.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.core.neighbours import Neighbours
    >>> from tabulary.core.privacy import PureDP
    >>> from tabulary.core.workload import Workload
    >>> domain = Domain({"sex": ["F", "M"], "age": range(10), "job": range(10)})
    >>> compared = compare_plans(Request(Workload.k_way(domain, 1), PureDP(1), Neighbours()), shrunk=False)
    >>> [(row.mechanism, show_error(row.error)) for row in compared.best()]
    [('residual', '3.56'), ('margins', '4.22'), ('cells', '7.09'), ('efron-stein', '10.4'), ('fourier', '14.5')]
    >>> compared.reason.split(";")[0]
    "'residual' has the smallest expected error, 3.56 a cell"
    """

    objective: str
    tables: int
    records: int
    candidates: tuple[Candidate, ...]
    refusals: tuple[Refusal, ...]
    chosen: Candidate

    def best(self) -> tuple[Candidate, ...]:
        """Return each mechanism with its better family of noise, the smallest error first."""
        found: dict[str, Candidate] = {}
        for row in self.candidates:
            held = found.get(row.name)
            better = held is None or row.aim(self.objective) < held.aim(self.objective)
            if row is self.chosen or (better and held is not self.chosen):
                found[row.name] = row
        return tuple(sorted(found.values(), key=lambda row: row.aim(self.objective)))

    def other_noise(self, row: Candidate) -> Candidate | None:
        """Return the same mechanism with another family of noise, if the promise leaves a choice."""
        others = (c for c in self.candidates if c.name == row.name and c.noise != row.noise)
        return next(others, None)

    def __str__(self) -> str:
        lines = [f"  {'mechanism':<18} {'noise':<9} {'worst' if self.objective == 'max' else 'error':>8}"]
        for row in self.best():
            mark, star = "●" if row is self.chosen else " ", "*" if row.modelled else ""
            error = f"{show_error(row.aim(self.objective))}{star}"
            lines.append(f"{mark} {row.name:<18} {row.noise:<9} {error:>8}")
        return "\n".join(lines)

    @property
    def reason(self) -> str:
        """Why the chosen one was chosen, in one or two sentences."""
        return _reason(self)


def compare_plans(
    request: Request, *, planned: Plan | None = None, shrunk: bool = True, progress: Progress | None = None
) -> Comparison:
    """Return what every mechanism would make of a request. Reads no data and spends nothing.

    Without `planned` the best is chosen, as `plan` does; where the objective is "auto", that may be one whose budget
    is divided for shrunk tables. `planned` is a plan that was already made for this request, perhaps by a mechanism
    that was named: it is the chosen one, and speaks for itself. `shrunk=False` plans no shrunk tables for the sake of
    comparison only. `progress` is called with (what, done, total).
    """
    open_to_both = request.objective == "auto" and planned is None
    shrinks = request.objective == "shrink"
    # Only a budget that is divided for them says what to expect of shrunk tables; else linear estimates are compared.
    linear = replace(request, objective="max" if request.objective == "max" else "rmse")
    dividing = replace(request, objective="shrink")
    asked = [(name, linear, name) for name in simplest_first()]
    if (shrinks and planned is None) or open_to_both or (shrunk and request.objective != "max"):
        asked += [(shrunk_name(name), dividing, name) for name in dividing_for_shrinkage()]
    candidates: list[tuple[Plan, Candidate]] = []
    refusals: list[PublicError] = []
    named: list[Refusal] = []
    for number, (name, each, mechanism) in enumerate(asked):
        if progress is not None:
            progress("comparing mechanisms", number, len(asked))
        try:
            plans = compare(each, mechanisms=[mechanism])
        except PublicError as refusal:
            refusals.append(refusal)
            named.append(Refusal(name, str(refusal)))
            continue
        candidates += [(plan, _candidate(plan)) for plan in plans]
    if progress is not None:
        progress("comparing mechanisms", len(asked), len(asked))
    if planned is None:
        plans = [p for p, _ in candidates]
        best = _best(plans, linear, dividing, shrinks=shrinks, open_to_both=open_to_both)
        if best is None:
            raise refusals[-1]
        mine = next(c for p, c in candidates if p is best)
        rows = [c for _, c in candidates]
    else:
        mine = _candidate(planned)
        rows = [mine, *(c for _, c in candidates if (c.name, c.noise) != (mine.name, mine.noise))]
        order = candidate_names()
        # Gaussian noise first, as the planner tries it.
        rows.sort(key=lambda row: (order.index(row.name), row.noise))
    return Comparison(
        objective=linear.objective,
        tables=len(request.workload),
        records=request.records,
        candidates=tuple(rows),
        refusals=tuple(refusal for refusal in named if refusal.name != mine.name),
        chosen=mine,
    )


def _best(
    plans: list[Plan], linear: Request, dividing: Request, *, shrinks: bool, open_to_both: bool
) -> Plan | None:
    """Return the plan that `plan` would take, or none where it would refuse."""
    unbiased = [p for p in plans if p.records is None]
    shrunk = [p for p in plans if p.records is not None]
    if shrinks:
        return chosen(dividing, shrunk) if shrunk else None
    if not unbiased:
        return None
    best = chosen(linear, unbiased)
    if not open_to_both or not shrunk:
        return best
    other = chosen(dividing, shrunk)
    return other if clearly_better(other, best) else best


def request_of(
    plan: Plan, *, objective: str = "auto", records: int | None = None, max_cells: int = MAX_CELLS
) -> Request:
    """Return the request that a plan answers, as far as the plan tells."""
    if objective == "auto":
        objective = "rmse" if plan.records is None else "shrink"
    return Request(
        workload=plan.workload,
        privacy=plan.privacy,
        neighbours=plan.neighbours,
        max_cells=max_cells,
        face=plan.face,
        objective=objective,
        records=records or plan.records or RECORDS,
    )


def shrunk_name(mechanism: str) -> str:
    """Return what a mechanism is called that divides its budget for shrunk tables."""
    return f"{mechanism}, shrunk"


def candidate_names() -> list[str]:
    """Return the names of all candidates in the order in which they are shown: the easiest to explain first.

    >>> candidate_names()
    ['cells', 'margins', 'fourier', 'efron-stein', 'residual', 'residual, shrunk']
    """
    return [*simplest_first(), *map(shrunk_name, dividing_for_shrinkage())]


def show_error(error: float) -> str:
    """Return an expected error for a reader, with about three digits.

    >>> show_error(0.12345), show_error(7.014), show_error(119.786), show_error(4501.17)
    ('0.123', '7.01', '119.8', '4,501')
    """
    if error < 10:
        return f"{error:.3g}"
    return f"{error:,.1f}" if error < 1000 else f"{error:,.0f}"


def _candidate(plan: Plan) -> Candidate:
    modelled = plan.records is not None
    return Candidate(
        mechanism=plan.mechanism,
        reconstruct=plan.reconstruct,
        noise=plan.measured[0].noise.kind,
        error=plan.expected_rmse,
        worst=math.nan if modelled else plan.expected_max,
        largest=math.nan if modelled else max(plan.estimator.largest_error(m) for m in plan.workload),
        values=sum(part.query.draws(plan.measured_domain) for part in plan.measured),
        parts=len(plan.measured),
        agree=plan.face.official or plan.estimator.agree,
        whole=plan.face.whole(plan),
        modelled=modelled,
    )


def _reason(compared: Comparison) -> str:
    mine = compared.chosen
    if mine.modelled:
        return _reason_to_shrink(compared)
    rivals = [row for row in compared.best() if row is not mine and not row.modelled]
    if not rivals:
        return (
            f"{mine.mechanism!r} is the only mechanism that can answer this request.{_temptation(compared)}"
        )
    nearest = min(rivals, key=lambda row: row.aim(compared.objective))
    own, least = mine.aim(compared.objective), nearest.aim(compared.objective)
    if own <= least * (1 + _ALIKE):
        return _reason_of_the_best(compared, nearest, rivals)
    return (
        f"{mine.mechanism!r} was asked for, by its name or for another objective. {nearest.mechanism!r} would have the "
        f"smaller expected error, {show_error(least)} instead of {show_error(own)} {_where(compared.objective)}."
    )


def _reason_of_the_best(compared: Comparison, nearest: Candidate, rivals: Iterable[Candidate]) -> str:
    mine, objective = compared.chosen, compared.objective
    where = _where(objective)
    own, next_best = mine.aim(objective), nearest.aim(objective)
    but = _temptation(compared)
    smallest = "smallest expected error without a bias" if but else "smallest expected error"
    if next_best <= own * (1 + _ALIKE):
        alike = [row.mechanism for row in rivals if row.aim(objective) <= own * (1 + _ALIKE)]
        names = " and ".join(repr(name) for name in (mine.mechanism, *alike))
        return (
            f"{names} have the same and {smallest}, {show_error(own)} {where}; {mine.mechanism!r} is the easiest to "
            f"explain.{but}"
        )
    return (
        f"{mine.mechanism!r} has the {smallest}, {show_error(own)} {where}; {nearest.mechanism!r}, the next, has "
        f"{show_error(next_best)}, {_ratio(next_best, own)}: {_burden(nearest, compared.tables)}.{but}"
    )


def _reason_to_shrink(compared: Comparison) -> str:
    mine = compared.chosen
    linear = min(
        (row for row in compared.best() if not row.modelled), key=lambda row: row.error, default=None
    )
    said = (
        f"The budget is divided for shrunk tables: for about {compared.records:,} records the planning model "
        f"expects an error of {show_error(mine.error)} a cell"
    )
    if linear is None:
        return f"{said}."
    known = f"the best unbiased estimate, by {linear.mechanism!r}, has {show_error(linear.error)}"
    if linear.error > mine.error * 1.005:
        return f"{said}; {known}, {_ratio(linear.error, mine.error)}."
    return f"{said}. It expects no gain: {known}."


def _temptation(compared: Comparison) -> str:
    """Return why shrunk tables were not chosen although less error is expected of them."""
    own = compared.chosen.error
    lower = [row.error for row in compared.best() if row.modelled and row.error < own]
    if not lower:
        return ""
    said = f" Of shrunk tables the planning model expects {show_error(lower[0])} a cell"
    if lower[0] < CLEARLY * own:
        return f"{said} if the budget is divided for them: objective = 'shrink' asks for that."
    return f"{said} if the budget is divided for them: too small a gain for worse unbiased estimates."


def _where(objective: str) -> str:
    return "a cell in the worst table" if objective == "max" else "a cell"


def _ratio(more: float, less: float) -> str:
    if not less:
        # A variance below the smallest double.
        return "not zero"
    ratio = more / less
    if ratio < 1.0005:
        return "a little more"
    if ratio < 1.1:
        return f"{100 * (ratio - 1):.1f} % more"
    return f"{ratio:,.1f} times as much"


def _burden(row: Candidate, tables: int) -> str:
    """Return what makes a mechanism dear, as the end of a sentence."""
    return MECHANISMS[row.mechanism].burden(values=row.values, parts=row.parts, tables=tables)
