"""Plans that add noise to contrast coefficients: `fourier` and `efron-stein`."""

from dataclasses import replace
from fractions import Fraction

from tabulary.core.bits import binary_domain, bits_of
from tabulary.core.domain import Margin
from tabulary.core.privacy import Loss
from tabulary.errors import InvalidPlan, TooManyCells
from tabulary.planning.calibration import calibrated
from tabulary.planning.closure import closure
from tabulary.planning.direct import Request
from tabulary.planning.plan import Encoding, Plan


def plan_fourier(request: Request, loss: Loss) -> Plan:
    """Return the plan that measures the Fourier coefficients of the downward closure, all with equal noise.

    On binary attributes one record adds ±1 to every coefficient: with |B| of them Δ₁ = Δ₂² = |B| for
    add-remove, and for replace a coefficient S moves by two where the two records differ in an odd number of
    its attributes, Δ₁ = 2 max_d |{S : ⟨S, d⟩ odd}| (`core.contrast_sensitivity`). Attributes of other sizes
    are written as bits, and codes without a level are structural zeros.
    """
    bits = any(len(labels) != 2 for labels in request.domain.levels)
    return _plan(request, loss, "fourier", "bits" if bits else "levels")


def plan_efron_stein(request: Request, loss: Loss) -> Plan:
    """Return the plan that measures the contrasts of the downward closure, attributes as they are.

    The integer basis of `core.basis` is not redundant: the component of S has Π (k - 1) coefficients, and the
    published form Π k terms of that rank. One record adds Π (k - 1) in L1 to the component of S, so
    Δ₁ = Σ_S Π (k - 1), the number of coefficients; noise is equal on all of them.
    """
    return _plan(request, loss, "efron-stein", "levels")


def _plan(request: Request, loss: Loss, mechanism: str, encoding: Encoding) -> Plan:
    for margin in request.workload:
        request.domain.check_cells(margin, request.max_cells)
    if encoding == "bits":
        _check_padding(request)
    domain = request.domain if encoding == "levels" else binary_domain(request.domain)
    margins = [bits_of(request.domain, m) if encoding == "bits" else m for m in request.workload]
    sets = closure(domain, margins, request.max_cells)
    sensitive = request.neighbours.sensitive
    near, exact = request.neighbours, list[Margin]()
    if sensitive:
        # Noise is needed only where a wanted margin holds a sensitive attribute; the rest does not change.
        hidden = set(bits_of(request.domain, sensitive) if encoding == "bits" else sensitive)
        near = replace(near, sensitive=domain.margin(hidden))
        noised = set(closure(domain, [m for m in margins if hidden & set(m)], request.max_cells))
        sets, exact = [s for s in sets if s in noised], [s for s in sets if s not in noised]
        if not sets or request.reconstruct != "none":
            raise InvalidPlan(
                "sensitive attributes must be among those of the tables, and the tables published as measured "
                "(reconstruct = 'none')."
            )
    shares = [Fraction(1)] * len(sets)
    measured = calibrated(domain, sets, shares, near, loss, query="contrasts")
    return request.planned(mechanism, loss, measured, encoding=encoding, exact=tuple(exact))


def _check_padding(request: Request) -> None:
    named = request.domain.margin({a for margin in request.workload for a in margin})
    bits = len(bits_of(request.domain, named))
    if 2**bits > request.max_cells:
        raise TooManyCells(
            f"written as bits these attributes make a table of 2^{bits} = {2**bits:,} cells, more than the "
            f"cap of {request.max_cells:,}. Use the mechanism 'efron-stein', which needs no padding, or "
            "raise the cap (max_cells)."
        )
