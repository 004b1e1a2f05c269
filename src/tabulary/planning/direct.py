"""Plans that add noise to the cells of tables directly: `cells` and `margins`."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tabulary.core.domain import MAX_CELLS, Domain, Margin
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Loss, Privacy
from tabulary.core.workload import Workload
from tabulary.planning.calibration import calibrated
from tabulary.planning.measured import MeasuredMargin
from tabulary.planning.plan import Encoding, Plan
from tabulary.planning.shrink_weights import RECORDS


@dataclass(frozen=True)
class Request:
    """What a caller asks of every mechanism: the same tables, the same promise."""

    workload: Workload
    privacy: Privacy
    neighbours: Neighbours
    max_cells: int = MAX_CELLS
    reconstruct: str = "none"
    rounding: str = "none"
    objective: str = "rmse"
    records: int = RECORDS

    @property
    def domain(self) -> Domain:
        """The domain of the workload."""
        return self.workload.domain

    def expected(self, plan: Plan) -> float:
        """Return what the objective wants to be small: the expected error of a plan."""
        return plan.expected_max if self.objective == "max" else plan.expected_rmse

    def planned(
        self,
        mechanism: str,
        loss: Loss,
        measured: tuple[MeasuredMargin, ...],
        *,
        encoding: Encoding = "levels",
        exact: tuple[Margin, ...] = (),
    ) -> Plan:
        """Return the plan that answers this request with these measurements."""
        return Plan(
            domain=self.domain,
            workload=self.workload,
            privacy=self.privacy,
            loss=loss,
            neighbours=self.neighbours,
            mechanism=mechanism,
            measured=measured,
            reconstruct=self.reconstruct,
            rounding=self.rounding,
            encoding=encoding,
            exact=exact,
            records=self.records if self.reconstruct == "shrink" else None,
        )


def plan_cells(request: Request, loss: Loss) -> Plan:
    """Return the plan that measures every interior cell once; margins are sums of noisy cells.

    The interior is the table on all attributes that the workload names; the others would only add cells.
    One record stands in one cell of it, so the sensitivity is that of a single histogram: 1 (L1 and L2) for
    add-remove, 2 (L1) and √2 (L2) for replace. A margin's cell sums one draw for each possible interior cell
    below it, so its variance grows with what was summed over. All margins agree with each other.
    """
    named = request.domain.margin(dict.fromkeys(a for margin in request.workload for a in margin))
    return _plan(request, "cells", loss, [named], [Fraction(1)])


def plan_margins(request: Request, loss: Loss) -> Plan:
    """Return the plan that measures every wanted margin by itself, the budget split by the weights.

    One record stands in one cell of each of the margins. With the share w of the budget for a margin, Laplace
    noise has scale Δ₁/(w ε) where Δ₁ = Σ w over the margins that one person can change together (twice that
    for replace), and Gaussian noise has variance Δ₂²/(2 w ρ). Margins measured apart do not agree with each
    other to the last unit.
    """
    return _plan(request, "margins", loss, request.workload.margins, request.workload.weights)


def _plan(
    request: Request,
    mechanism: str,
    loss: Loss,
    margins: Sequence[Margin],
    weights: Sequence[Fraction],
) -> Plan:
    for margin in (*margins, *request.workload):
        request.domain.check_cells(margin, request.max_cells)
    measured = calibrated(request.domain, margins, weights, request.neighbours, loss, query="counts")
    return request.planned(mechanism, loss, measured)
