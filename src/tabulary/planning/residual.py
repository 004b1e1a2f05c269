"""Plans that add noise to residuals, each part with its own scale: `residual`."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from tabulary.core.domain import Domain, Margin
from tabulary.core.neighbours import Neighbours, Relation
from tabulary.core.privacy import Loss, PureDP
from tabulary.planning.allocation import Part, cell_weights, gaussian_allocation, gaussian_minimax
from tabulary.planning.calibration import calibrated
from tabulary.planning.closure import closure
from tabulary.planning.direct import Request
from tabulary.planning.laplace_allocation import laplace_allocation, laplace_minimax
from tabulary.planning.measured import sensitivity_of
from tabulary.planning.plan import Plan
from tabulary.planning.shrink_weights import shrink_weights

# A table of all attributes is compared with the rest up to this many, and with this many sets to measure.
_MOST_ATTRIBUTES = 18
_MOST_COMPARED = 2_000
# How much better than the best part something is known that costs nothing.
_PUBLIC = 1_000


def plan_residual(request: Request, loss: Loss) -> Plan:
    r"""Return the plan that measures parts of the downward closure, with the scales that suit the workload best.

    A part is the table on a margin S with the average taken out of the attributes B. Gaussian noise: one part
    (R, R) for each set of the closure, its variance in closed form, which is the best that any linear measurement
    can do for add-remove neighbours. Laplace noise: parts that are counted, or centred on attributes of two
    levels, found by descent (`planning.allocation`). One record moves the part by Π_B l1(k) in L1 and by
    Π_B l2(k) in squared L2 (`core.residual_sensitivity`), and the scales are stretched until this costs the loss.

    The objective says what is small: "rmse" the weighted sum of the variances of all wanted cells, "max" the
    largest weighted variance of a wanted cell, "shrink" what the shrunk estimate needs most.

    Allocations are computed for add-remove neighbours, in doubles and with few digits, so that few laws of noise
    serve many parts. What `margins` and `cells` measure is compared with them at the true cost, wherever that
    could be better: the best of all is taken.
    """
    for margin in request.workload:
        request.domain.check_cells(margin, request.max_cells)
    sets = closure(request.domain, request.workload, request.max_cells)
    best = _planned(request, loss, _allocated(request, loss))
    if len(sets) <= _MOST_COMPARED:
        for plain in _plain(request):
            other = _planned(request, loss, plain)
            # Ties go to the plain one.
            if request.expected(other) <= request.expected(best) * (1 + 1e-9):
                best = other
    return best


def _allocated(request: Request, loss: Loss) -> dict[Part, float]:
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


def _plain(request: Request) -> Iterator[dict[Part, Fraction]]:
    """Yield the parts that `margins` and `cells` measure; least squares makes more of them, never less."""
    work = request.workload
    yield {(margin, ()): weight for margin, weight in zip(work.margins, work.weights, strict=True)}
    named = request.domain.margin({a for margin in work for a in margin})
    if len(named) <= _MOST_ATTRIBUTES and request.domain.cells(named) <= request.max_cells:
        yield {(named, ()): Fraction(1)}


def _planned(request: Request, loss: Loss, shares: Mapping[Part, float] | Mapping[Part, Fraction]) -> Plan:
    single = {a for a, k in zip(request.domain.attributes, request.domain.shape, strict=True) if k == 1}
    # A share has three or four digits; its shortest text is what was meant.
    exact = {
        part: share if isinstance(share, Fraction) else Fraction(str(share))
        for part, share in shares.items()
        # A part that is centred on one level holds no value: there is nothing to measure.
        if not single.intersection(part[1])
    }
    if request.neighbours.total_is_public:
        # Nobody can change the number of counted records, so that knowing it costs nothing.
        exact[(), ()] = _PUBLIC * max(exact.values())
    elif request.neighbours.may_drop:
        free = _free_share(request.domain, {part: s for part, s in exact.items() if part != ((), ())}, loss)
        exact[(), ()] = max(free, exact.get(((), ()), free))
    measured = calibrated(
        request.domain,
        [margin for margin, _ in exact],
        list(exact.values()),
        request.neighbours,
        loss,
        query="residuals",
        centred=[centred for _, centred in exact],
    )
    return request.planned("residual", loss, measured)


def _free_share(domain: Domain, shares: Mapping[Part, Fraction], loss: Loss) -> Fraction:
    """Return the share of the total that costs nothing where a replaced record may be dropped.

    A record that becomes another one moves the parts by R and the total not at all; one that is dropped moves the parts
    by A < R and the total by one. So the total may have the share R - A before dropping a record costs more than
    replacing it.
    """
    relative = [1 / share for share in shares.values()]
    pure = isinstance(loss, PureDP)

    def moved(relation: Relation) -> Fraction:
        near = Neighbours(relation)
        if pure:
            return sensitivity_of(domain, list(shares), near, query="residuals", scales=relative).l1
        return sensitivity_of(
            domain, list(shares), near, query="residuals", squared_scales=relative
        ).l2_squared

    # A share of zero would be no part at all.
    return max(moved("replace") - moved("add-remove"), min(shares.values(), default=Fraction(1)) / _PUBLIC)
