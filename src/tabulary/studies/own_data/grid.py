"""What is compared for one plan: amounts of privacy, and the mechanisms that can keep to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tabulary.core.budget import amount, ascending, given_amounts, scaled
from tabulary.core.domain import Domain
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Privacy
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, listed
from tabulary.planning import Plan, plan
from tabulary.planning.comparison import Candidate, Comparison, Refusal, candidate_names, shrunk_name
from tabulary.planning.planners import RESIDUAL
from tabulary.workflows import PlanFile

FACTORS = tuple(Fraction(2) ** power for power in range(-3, 4))
"""Times the plan's own ε: an eighth to eight times as much."""

QUICK_FACTORS = (Fraction(1, 4), Fraction(1), Fraction(4))

# How the shrunk tables may be called where a comma is in the way.
_SHORT = "shrunk"


@dataclass(frozen=True)
class Series:
    """One way to answer the plan's request: a mechanism with its reconstruction. `own` is that of the plan."""

    name: str
    mechanism: str
    reconstruct: str
    rounding: str
    objective: str
    own: bool = False

    @property
    def label(self) -> str:
        """The name in a legend."""
        return f"{self.name} (the plan's)" if self.own else self.name


@dataclass(frozen=True)
class Asked:
    """What a plan file asks of every mechanism, but for the amount of privacy."""

    workload: Workload
    neighbours: Neighbours
    records: int | None
    max_cells: int

    @classmethod
    def of(cls, planned: PlanFile) -> "Asked":
        """Return what a plan file requests."""
        made = planned.plan
        return cls(made.workload, made.neighbours, planned.about or made.records, planned.max_cells)

    @property
    def domain(self) -> Domain:
        """The attributes and levels."""
        return self.workload.domain

    def planned(self, series: Series, privacy: Privacy) -> Plan:
        """Return the plan of one mechanism at one amount of privacy."""
        return plan(
            self.domain,
            self.workload,
            privacy=privacy,
            neighbours=self.neighbours,
            mechanism=series.mechanism,
            reconstruct=series.reconstruct,
            rounding=series.rounding,
            objective=series.objective,
            records=self.records,
            max_cells=self.max_cells,
        )


def amounts(
    own: Privacy, *, epsilons: Iterable[object] = (), rhos: Iterable[object] = (), quick: bool = False
) -> tuple[Privacy, ...]:
    """Return the amounts of a study in ascending order, the plan's own always among them.

    >>> from tabulary.core.privacy import PureDP
    >>> print(*amounts(PureDP(1), epsilons=["0.5", 2]), sep=", ")
    ε = 0.5, ε = 1, ε = 2
    """
    given = given_amounts(own, epsilons=epsilons, rhos=rhos)
    if not given:
        given = tuple(scaled(own, factor) for factor in (QUICK_FACTORS if quick else FACTORS))
    return ascending([*given, own])


def series_of(
    planned: PlanFile, compared: Comparison, mechanisms: Sequence[str] = (), *, most: int | None = None
) -> tuple[tuple[Series, ...], tuple[Refusal, ...]]:
    """Return the mechanisms of a study, and those that are left out because they cannot answer the plan.

    Unless some are named: the plan's own first, then every other that can, the smallest expected error first, `most`
    of them altogether. One that is named and cannot is an error.
    """
    rows = sorted(compared.best(), key=lambda row: row is not compared.chosen)
    found = {row.name: row for row in rows}
    refused = {refusal.name: refusal for refusal in compared.refusals}
    names = [shrunk_name(RESIDUAL.name) if name == _SHORT else name for name in dict.fromkeys(mechanisms)]
    for name in names:
        if name in refused:
            raise InvalidArgument(
                f"mechanism {name!r} cannot answer this plan: {refused[name].reason} Nothing was done. Those that can "
                f"are {listed(found)}."
            )
        if name not in found:
            known = candidate_names()
            why = "is not compared for this plan" if name in known else "is not known"
            raise InvalidArgument(
                f"mechanism {name!r} {why}. Nothing was done. Choose among {listed(found)}; "
                f"{_SHORT!r} stands for {shrunk_name(RESIDUAL.name)!r}."
            )
    own = planned.plan
    made = []
    for name in dict.fromkeys(names) if names else list(found)[:most]:
        row = found[name]
        is_own = row is compared.chosen
        made.append(
            Series(
                name=name,
                mechanism=row.mechanism,
                reconstruct=row.reconstruct,
                rounding=own.rounding,
                objective=planned.objective if is_own else _objective(row, planned),
                own=is_own,
            )
        )
    return tuple(made), tuple(compared.refusals)


def _objective(row: Candidate, planned: PlanFile) -> str:
    if row.modelled:
        return "shrink"
    return "rmse" if planned.plan.records is not None else planned.objective


def shown_amounts(grid: Iterable[Privacy]) -> list[str]:
    """Return the amounts as exact text."""
    return [show_fraction(amount(each)) for each in grid]
