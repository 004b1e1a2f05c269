"""The accuracy of a list of tables perturbed one by one, compared with mechanisms whose tables agree."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Privacy, PureDP
from tabulary.errors import TooManyCells
from tabulary.planning.comparison import Refusal, compare_plans, show_error
from tabulary.planning.request import Request

if TYPE_CHECKING:
    from tabulary.perturb.tables import Tables

GIVEN, RESTORED = "as given", "as given, restored"
EQUAL, ALLOCATED = "equal split", "allocated split"


@dataclass(frozen=True)
class Alternative:
    """One way to publish the list. `error` is the root mean squared error over all cells, tables by their weights.

    `agree` says whether a margin equals the sum of its cells in every table that contains it.
    """

    name: str
    noise: str
    error: float
    agree: bool


@dataclass(frozen=True)
class Alternatives:
    """Every way to publish a list with the same promise, smallest error first, and why other ways are not possible.

    >>> from tabulary.core.domain import Domain
    >>> from tabulary.perturb.tables import Tables
    >>> domain = Domain({"sex": ["F", "M"], "age": range(10), "job": range(10), "region": range(20)})
    >>> print(Tables(domain, "[sex age][age job][job region][sex]", epsilon=1).compare())
    way                  noise        error  agree
    residual             Laplace       3.87  yes
    allocated split      Laplace       4.32  no
    as given, restored   Laplace       5.45  yes
    as given             Laplace       5.64  no
    equal split          Laplace       5.64  no
    margins              Laplace       5.64  no
    cells                Laplace       9.57  yes
    efron-stein          Laplace       47.3  yes
    fourier              Laplace       93.9  yes
    """

    privacy: Privacy
    rows: tuple[Alternative, ...]
    refusals: tuple[Refusal, ...]

    def __getitem__(self, name: str) -> Alternative:
        return next(row for row in self.rows if row.name == name)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        head = f"{'way':<20} {'noise':<9} {'error':>8}  agree"
        lines = [
            f"{row.name:<20} {row.noise:<9} {show_error(row.error):>8}  {'yes' if row.agree else 'no'}"
            for row in self.rows
        ]
        return "\n".join([head, *lines])


def alternatives_to(tables: "Tables") -> Alternatives:
    """Return the expected error of a list, compared with other ways to publish it. Reads no data, spends nothing.

    Perturbed one by one: as given, the same with margins restored, and without a bound with the budget split equally
    and split by allocation. The last two have the same ε and no δ, so they promise no less. The mechanisms of
    `tb.plan` are planned for the same tables and weights at the same promise; for weighted counts, of which one
    record adds up to s units, with pure ε/s for a unit, so that they cost ε. All errors are those of unbiased linear
    estimates, exact.
    """
    near, size, unit = tables.neighbours, tables.sensitivity, tables.unit
    domain, work, whole = tables.domain, tables.workload, tables.epsilon
    equal = type(tables)(domain, work, epsilon=whole, neighbours=near, sensitivity=size, unit=unit)
    allocated = equal.allocated(domain, work, epsilon=whole, neighbours=near, sensitivity=size, unit=unit)
    family = " and ".join(dict.fromkeys(law.family.capitalize() for law in tables.laws))
    alone = len(tables.margins) == 1
    rows = [Alternative(GIVEN, family, tables.expected_rmse(), alone)]
    refusals: list[Refusal] = []
    try:
        rows.append(Alternative(RESTORED, family, tables.expected_rmse(margins="restored"), agree=True))
    except TooManyCells as refusal:
        refusals.append(Refusal(RESTORED, str(refusal)))
    rows.append(Alternative(EQUAL, "Laplace", equal.expected_rmse(), alone))
    rows.append(Alternative(ALLOCATED, "Laplace", allocated.expected_rmse(), alone))
    promise, relation = tables.privacy(), near
    if tables.weighted:
        # A replaced record is one that goes and one that comes.
        promise, relation = PureDP(whole / (tables.moves * size)), Neighbours()
    compared = compare_plans(Request(work, promise, relation), shrunk=False)
    rows += [
        Alternative(row.mechanism, row.noise, tables.worth * row.error, row.agree) for row in compared.best()
    ]
    # Sorting keeps the order of ways that are alike.
    rows.sort(key=lambda row: round(row.error, 9))
    return Alternatives(tables.privacy(), tuple(rows), (*refusals, *compared.refusals))
