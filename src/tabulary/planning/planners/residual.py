"""The mechanism `residual`: noise on residuals, each part with its own scale."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import ClassVar

from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import Loss, PureDP
from tabulary.planning.allocation import CentredMargin, cell_weights, gaussian_allocation, gaussian_minimax
from tabulary.planning.closure import closure
from tabulary.planning.laplace_allocation import laplace_allocation, laplace_minimax
from tabulary.planning.mechanism import Mechanism
from tabulary.planning.plan import Plan
from tabulary.planning.planners.efron_stein import EFRON_STEIN
from tabulary.planning.planners.fourier import FOURIER
from tabulary.planning.planners.margins import MARGINS
from tabulary.planning.queries.query import Query
from tabulary.planning.queries.residuals import Residuals
from tabulary.planning.request import Request
from tabulary.planning.shrink_weights import shrink_weights

# A table of all attributes is compared with the rest up to this many, and with this many sets to measure.
_MOST_ATTRIBUTES = 18
_MOST_COMPARED = 2_000
# With more parts than this, mechanisms that are known to be worse are not tried.
_MANY_PARTS = 2_000
# How much better than the best part something is known that costs nothing.
_PUBLIC = 1_000


class ResidualMechanism(Mechanism):
    """Measures parts of the downward closure of the wanted tables, with the scales that suit the workload best."""

    name: ClassVar[str] = "residual"
    query: ClassVar[type[Query]] = Residuals
    rank: ClassVar[int] = 50
    measures_full_table: ClassVar[bool] = True
    divides_for_shrinkage: ClassVar[bool] = True

    def plan(self, request: Request, loss: Loss) -> Plan:
        r"""Return the plan whose parts and scales have the smallest expected error.

        A part is the table on a margin S with the average taken out of the attributes B. Gaussian noise: one part
        (R, R) for each set of the closure, its variance in closed form, which is the best that any linear
        measurement can do for add-remove neighbours. Laplace noise: parts that are counted, or centred on attributes
        of two levels, found by descent (`planning.allocation`). One record moves the part by Π_B l1(k) in L1 and by
        Π_B l2(k) in squared L2 (`core.residual_sensitivity`), and the scales are stretched until this costs the loss.

        The objective says what is small: "rmse" the weighted sum of the variances of all wanted cells, "max" the
        largest weighted variance of a wanted cell, "shrink" what the shrunk estimate needs most.

        Allocations are computed for add-remove neighbours, in doubles and with few digits, so that few laws of noise
        serve many parts. What `margins` and `cells` measure is compared with them at the true cost, wherever that
        could be better: the best of all is taken.
        """
        request.check_cells()
        sets = closure(request.domain, request.workload, request.max_cells)
        best = self._planned(request, loss, _allocated(request, loss))
        if len(sets) <= _MOST_COMPARED:
            for plain in _plain(request):
                other = self._planned(request, loss, plain)
                # Ties go to the plain one.
                if request.expected(other) <= request.expected(best) * (1 + 1e-9):
                    best = other
        return best

    def words(self, plan: Plan) -> str:
        """Return what was measured."""
        return (
            "Measured were parts of the tables, each once, and each with the share of the budget that serves all "
            "of them best: tables of few attributes, and what combinations of attributes add to those. Every "
            "table is computed from all parts that tell about it, weighted by their noise."
        )

    def burden(self, *, values: int, parts: int, tables: int) -> str:
        """Return what it costs to divide the budget."""
        return f"it divides the budget over {parts:,} parts of the tables"

    def surpasses(self, plan: Plan, request: Request, other: Mechanism) -> bool:
        """Return whether a plan of many residuals is known to be as good as another mechanism's would be.

        Gaussian noise: no linear measurement has a smaller weighted sum of variances for add-remove neighbours
        (`gaussian_allocation`). Laplace noise: the search begins with what `margins` measures and, on attributes of
        two levels, with the contrasts (`laplace_allocation`). Up to the digits of the shares, a ten-thousandth; where
        there are thousands of parts this saves minutes, and below that every mechanism is tried.
        """
        if len(plan.measured) <= _MANY_PARTS or other not in (MARGINS, FOURIER, EFRON_STEIN):
            return False
        if request.objective != "rmse" or request.neighbours.relation != "add-remove":
            return False
        binary = all(levels == 2 for levels in request.domain.shape)
        return not isinstance(plan.loss, PureDP) or other is MARGINS or binary

    def _planned(
        self,
        request: Request,
        loss: Loss,
        shares: Mapping[CentredMargin, float] | Mapping[CentredMargin, Fraction],
    ) -> Plan:
        single = {a for a, k in zip(request.domain.attributes, request.domain.shape, strict=True) if k == 1}
        # A share has three or four digits; its shortest text is what was meant.
        exact = {
            Residuals(*part): share if isinstance(share, Fraction) else Fraction(str(share))
            for part, share in shares.items()
            # A part that is centred on one level holds no value: there is nothing to measure.
            if not single.intersection(part[1])
        }
        total = Residuals(())
        if request.neighbours.total_is_public:
            # Nobody can change the number of counted records, so that knowing it costs nothing.
            exact[total] = _PUBLIC * max(exact.values())
        elif request.neighbours.may_drop:
            free = _free_share(request.domain, {q: s for q, s in exact.items() if q != total}, loss)
            exact[total] = max(free, exact.get(total, free))
        return request.planned(self.name, loss, list(exact), list(exact.values()))


def _allocated(request: Request, loss: Loss) -> dict[CentredMargin, float]:
    """Return the relative shares of the parts: 1/variance of Gaussian noise, 1/scale of Laplace noise."""
    work = request.workload
    if request.objective == "max":
        return laplace_minimax(work) if isinstance(loss, PureDP) else gaussian_minimax(work)
    weights = _weights(request, loss)
    if isinstance(loss, PureDP):
        return laplace_allocation(work, weights)
    return gaussian_allocation(request.domain, weights)


def _weights(request: Request, loss: Loss) -> Mapping[Margin, float]:
    """Return how much the variance of each residual counts."""
    if request.objective == "shrink":
        return shrink_weights(request.workload, loss, request.neighbours, records=request.records)
    return cell_weights(request.workload)


def _plain(request: Request) -> Iterator[dict[CentredMargin, Fraction]]:
    """Yield the parts that `margins` and `cells` measure; least squares makes more of them, never less."""
    work = request.workload
    yield {(margin, ()): weight for margin, weight in zip(work.margins, work.weights, strict=True)}
    named = request.attributes
    if len(named) <= _MOST_ATTRIBUTES and request.domain.cells(named) <= request.max_cells:
        yield {(named, ()): Fraction(1)}


def _free_share(domain: Domain, shares: Mapping[Residuals, Fraction], loss: Loss) -> Fraction:
    """Return the share of the total that costs nothing where a replaced record may be dropped.

    A record that becomes another one moves the parts by R and the total not at all; one that is dropped moves the parts
    by A < R and the total by one. So the total may have the share R - A before dropping a record costs more than
    replacing it.
    """
    relative = [1 / share for share in shares.values()]
    pure = isinstance(loss, PureDP)

    def moved(relation: Relation) -> Fraction:
        near, queries = Neighbours(relation), list(shares)
        if pure:
            return Residuals.sensitivity(domain, queries, near, scales=relative).l1
        return Residuals.sensitivity(domain, queries, near, squared_scales=relative).l2_squared

    # A share of zero would be no part at all.
    return max(moved("replace") - moved("add-remove"), min(shares.values(), default=Fraction(1)) / _PUBLIC)


RESIDUAL = ResidualMechanism()
