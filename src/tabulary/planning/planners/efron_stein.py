"""The mechanism `efron-stein`: equal noise on the contrasts of all wanted tables, attributes as they are."""

from fractions import Fraction
from typing import ClassVar

from tabulary.core.domain import Margin
from tabulary.core.privacy import Loss
from tabulary.errors import InvalidPlan
from tabulary.planning.closure import closure
from tabulary.planning.encoding import ENCODINGS
from tabulary.planning.mechanism import Mechanism
from tabulary.planning.plan import Plan
from tabulary.planning.queries.contrasts import Contrasts
from tabulary.planning.queries.query import Query
from tabulary.planning.request import Request


class EfronSteinMechanism(Mechanism):
    """Measures the contrasts of the downward closure of the wanted tables."""

    name: ClassVar[str] = "efron-stein"
    query: ClassVar[type[Query]] = Contrasts
    rank: ClassVar[int] = 40

    def plan(self, request: Request, loss: Loss) -> Plan:
        """Return the plan that measures every contrast that some wanted table needs, all with equal noise.

        The integer basis of `core.basis` is not redundant: the component of S has Π (k - 1) coefficients, and the
        published form Π k terms of that rank. One record adds Π (k - 1) in L1 to the component of S, so
        Δ₁ = Σ_S Π (k - 1), the number of coefficients; noise is equal on all of them.
        """
        request.check_cells()
        encoding = ENCODINGS[self.encoding(request.domain)](request.domain)
        domain = encoding.measured_domain
        margins = [encoding.margin(margin) for margin in request.workload]
        sets, exact = closure(domain, margins, request.max_cells), list[Margin]()
        hidden = set(encoding.margin(request.neighbours.sensitive))
        if hidden:
            # Noise is needed only where a wanted margin holds a sensitive attribute; the rest does not change.
            noised = set(closure(domain, [m for m in margins if hidden & set(m)], request.max_cells))
            sets, exact = [s for s in sets if s in noised], [s for s in sets if s not in noised]
            if not sets:
                raise InvalidPlan("sensitive attributes must be among those of the tables.")
        queries, shares = [Contrasts(s) for s in sets], [Fraction(1)] * len(sets)
        return request.planned(self.name, loss, queries, shares, encoding=encoding.name, exact=exact)

    def words(self, plan: Plan) -> str:
        """Return what was measured."""
        return (
            "Measured were the contrasts that the published tables are made of, each once: the total, and "
            "how the counts differ between the levels of every attribute and combination of attributes. "
            "Every table is computed from them, so all of them agree."
        )

    def burden(self, *, values: int, parts: int, tables: int) -> str:
        """Return what it costs to measure all contrasts alike."""
        return f"it adds the same noise to each of {values:,} contrasts, needed or not"


EFRON_STEIN = EfronSteinMechanism()
