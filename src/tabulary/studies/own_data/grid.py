"""What is compared for one plan: amounts of privacy, and the mechanisms that can keep to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tabulary.core.domain import Domain
from tabulary.core.exact_numbers import show_fraction
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import ZCDP, ApproxDP, Privacy, PureDP
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, listed
from tabulary.planning import Plan, plan
from tabulary.planning.comparison import Comparison, Refusal, candidate_names, shrunk_name
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


def amount(privacy: Privacy) -> Fraction:
    """Return the number that the amounts of a study differ by: ε, or ρ."""
    return privacy.rho if isinstance(privacy, ZCDP) else privacy.epsilon


def symbol(privacy: Privacy) -> str:
    """Return the letter of that number."""
    return "ρ" if isinstance(privacy, ZCDP) else "ε"


def column(privacy: Privacy) -> str:
    """Return what that number is called in the CSV files."""
    return "rho" if isinstance(privacy, ZCDP) else "epsilon"


def show_amount(value: float | Fraction) -> str:
    """Return an amount for a reader.

    >>> show_amount(0.125), show_amount(Fraction(1, 3)), show_amount(8)
    ('0.125', '0.3333', '8')
    """
    return f"{float(value):.4g}"


def scaled(privacy: Privacy, factor: Fraction) -> Privacy:
    """Return so many times the ε, and the square of it times the ρ: about the same factor in every standard error.

    >>> print(scaled(PureDP(1), Fraction(1, 8)), "|", scaled(ZCDP("1/8"), Fraction(2)))
    ε = 0.125 | ρ = 0.5
    """
    if isinstance(privacy, ZCDP):
        return ZCDP(privacy.rho * factor**2)
    return with_amount(privacy, privacy.epsilon * factor)


def with_amount(privacy: Privacy, value: object) -> Privacy:
    """Return the same kind of promise with another ε, or another ρ."""
    if isinstance(privacy, ApproxDP):
        return ApproxDP(value, privacy.delta)
    return ZCDP(value) if isinstance(privacy, ZCDP) else PureDP(value)


def amounts(
    own: Privacy, *, epsilons: Iterable[object] = (), rhos: Iterable[object] = (), quick: bool = False
) -> tuple[Privacy, ...]:
    """Return the amounts of a study in ascending order, the plan's own always among them.

    >>> print(*amounts(PureDP(1), epsilons=["0.5", 2]), sep=", ")
    ε = 0.5, ε = 1, ε = 2
    """
    epsilons, rhos = list(epsilons), list(rhos)
    wrong, right = (epsilons, "ρ") if isinstance(own, ZCDP) else (rhos, "ε")
    if wrong:
        other = "ε" if right == "ρ" else "ρ"
        raise InvalidArgument(
            f"amounts of {other} are given, but the plan promises {own}. Nothing was done. Give amounts of {right}."
        )
    given = [with_amount(own, value) for value in (*epsilons, *rhos)]
    if not given:
        given = [scaled(own, factor) for factor in (QUICK_FACTORS if quick else FACTORS)]
    found = {amount(each): each for each in (*given, own)}
    return tuple(found[value] for value in sorted(found))


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
                rounding=own.rounding if is_own else _rounding(row.reconstruct, own),
                objective=planned.objective if is_own else _objective(row.reconstruct, planned),
                own=is_own,
            )
        )
    return tuple(made), tuple(compared.refusals)


def _rounding(reconstruct: str, own: Plan) -> str:
    """Return how tables of another mechanism are rounded: as the plan's own, where that can be."""
    if reconstruct == "none" or (reconstruct == "shrink" and own.rounding == "nearest"):
        return "none"
    return own.rounding


def _objective(reconstruct: str, planned: PlanFile) -> str:
    if reconstruct == "shrink":
        return "shrink"
    return "rmse" if planned.plan.reconstruct == "shrink" else planned.objective


def shown_amounts(grid: Iterable[Privacy]) -> list[str]:
    """Return the amounts as exact text."""
    return [show_fraction(amount(each)) for each in grid]
