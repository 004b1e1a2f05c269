"""The mechanism `margins`: noise on the cells of every wanted table by itself."""

from typing import ClassVar

from tabulary.core.privacy import Loss
from tabulary.planning.mechanism import Mechanism
from tabulary.planning.plan import Plan
from tabulary.planning.queries.counts import Counts
from tabulary.planning.queries.query import Query
from tabulary.planning.request import Request


class MarginsMechanism(Mechanism):
    """Measures every wanted margin by itself, the budget split by the weights."""

    name: ClassVar[str] = "margins"
    query: ClassVar[type[Query]] = Counts
    rank: ClassVar[int] = 20

    def plan(self, request: Request, loss: Loss) -> Plan:
        """Return the plan that measures the wanted margins.

        One record stands in one cell of each of the margins. With the share w of the budget for a margin, Laplace
        noise has scale Δ₁/(w ε) where Δ₁ = Σ w over the margins that one person can change together (twice that
        for replace), and Gaussian noise has variance Δ₂²/(2 w ρ). Margins measured apart do not agree with each
        other to the last unit.
        """
        request.check_cells()
        work = request.workload
        return request.planned(self.name, loss, [Counts(margin) for margin in work], work.weights)

    def words(self, plan: Plan) -> str:
        """Return what was measured."""
        return (
            "Every published table was measured by itself, with its own share of the budget. Tables that "
            "share an attribute therefore differ a little where they should be equal; both are right "
            "within their errors."
        )

    def burden(self, *, values: int, parts: int, tables: int) -> str:
        """Return what it costs to measure tables apart."""
        many = "pays for all of its detail" if tables == 1 else f"pays for {tables:,} tables"
        return f"it measures every table by itself and {many}"


MARGINS = MarginsMechanism()
