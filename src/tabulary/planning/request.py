"""What a caller asks of every mechanism."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tabulary.core.domain import MAX_CELLS, Domain, Margin
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Loss, Privacy
from tabulary.core.workload import Workload
from tabulary.planning.calibration import calibrated
from tabulary.planning.encoding import ENCODINGS
from tabulary.planning.face import LINEAR, Face
from tabulary.planning.plan import Plan
from tabulary.planning.queries.query import Query
from tabulary.planning.shrink_weights import RECORDS


@dataclass(frozen=True)
class Request:
    """The same tables and the same promise, whichever mechanism is to make them."""

    workload: Workload
    privacy: Privacy
    neighbours: Neighbours
    max_cells: int = MAX_CELLS
    face: Face = LINEAR
    objective: str = "rmse"
    records: int = RECORDS

    @property
    def domain(self) -> Domain:
        """The domain of the workload."""
        return self.workload.domain

    @property
    def attributes(self) -> Margin:
        """All attributes that the workload names: those of the full table."""
        return self.domain.margin({a for margin in self.workload for a in margin})

    def expected(self, plan: Plan) -> float:
        """Return what the objective wants to be small: the expected error of a plan."""
        return plan.expected_max if self.objective == "max" else plan.expected_rmse

    def check_cells(self, *further: Margin) -> None:
        """Refuse a wanted table, or one of some further ones, with more cells than the request allows."""
        for margin in (*further, *self.workload):
            self.domain.check_cells(margin, self.max_cells)

    def planned(
        self,
        mechanism: str,
        loss: Loss,
        queries: Sequence[Query],
        shares: Sequence[Fraction],
        *,
        encoding: str = "levels",
        exact: Sequence[Margin] = (),
    ) -> Plan:
        """Return the plan that answers this request with these queries, the loss spent on them in these shares.

        A share is the relative 1/scale of Laplace noise and the relative 1/variance of Gaussian noise.
        """
        named = ENCODINGS[encoding](self.domain)
        return Plan(
            domain=self.domain,
            workload=self.workload,
            privacy=self.privacy,
            loss=loss,
            neighbours=self.neighbours,
            mechanism=mechanism,
            measured=calibrated(
                named.measured_domain, queries, shares, named.neighbours(self.neighbours), loss
            ),
            reconstruct=self.face.reconstruct,
            rounding=self.face.rounding,
            encoding=encoding,
            exact=tuple(exact),
            records=self.records if self.objective == "shrink" else None,
        )
