"""The mechanism `fourier`: equal noise on the Fourier coefficients of all wanted tables, attributes as bits."""

import math
from typing import ClassVar

from tabulary.core.bits import bits_of
from tabulary.core.domain import Domain
from tabulary.core.privacy import Loss, PureDP
from tabulary.errors import TooManyCells
from tabulary.planning.encoding import Bits, Levels
from tabulary.planning.plan import Plan
from tabulary.planning.planners.efron_stein import EfronSteinMechanism
from tabulary.planning.request import Request

# Slack for a bound that is computed in doubles.
_NEARLY = 0.999


class FourierMechanism(EfronSteinMechanism):
    """Measures the contrasts of the downward closure on binary attributes; others are written as bits."""

    name: ClassVar[str] = "fourier"
    rank: ClassVar[int] = 30
    encodings: ClassVar[tuple[str, ...]] = (Levels.name, Bits.name)

    def encoding(self, domain: Domain) -> str:
        """Return "bits" unless every attribute is binary already."""
        return Levels.name if all(len(labels) == 2 for labels in domain.levels) else Bits.name

    def plan(self, request: Request, loss: Loss) -> Plan:
        """Return the plan that measures every Fourier coefficient that some wanted table needs.

        On binary attributes one record adds ±1 to every coefficient: with |B| of them Δ₁ = Δ₂² = |B| for
        add-remove, and for replace a coefficient S moves by two where the two records differ in an odd number of
        its attributes, Δ₁ = 2 max_d |{S : ⟨S, d⟩ odd}| (`core.contrast_sensitivity`). Attributes of other sizes
        are written as bits, and codes without a level are structural zeros.
        """
        request.check_cells()
        if self.encoding(request.domain) == Bits.name:
            _check_padding(request)
        return super().plan(request, loss)

    def least_error(self, request: Request, loss: Loss) -> float:
        """Return what equal noise on the coefficients of the largest table alone would cost.

        A table of n codes is a mean of n coefficients, so its cells have 1/n of the variance of a coefficient. The
        largest table has N coefficients, and one record moves each by one: the variance of a coefficient is at least
        that of noise for Δ₁ = Δ₂² = N. Attributes of many levels make N so large that listing the coefficients takes
        minutes.
        """
        near = request.neighbours
        if near.relation != "add-remove" or near.sensitive:
            return 0.0
        codes = [2.0 ** len(bits_of(request.domain, margin)) for margin in request.workload]
        if isinstance(loss, PureDP):
            variance = 2 * (max(codes) * near.records / float(loss.epsilon)) ** 2
        else:
            variance = max(codes) * near.records**2 / (2 * float(loss.rho))
        # Whole-number noise of a small scale has a smaller variance than real noise of that scale.
        variance = max(_NEARLY * variance - 1, 0.0)
        weights = [float(weight) for weight in request.workload.weights]
        if request.objective == "max":
            return math.sqrt(max(w * variance / n for w, n in zip(weights, codes, strict=True)))
        possible = [
            w * float((~request.domain.impossible(m)).sum())
            for w, m in zip(weights, request.workload, strict=True)
        ]
        squared = sum(c * variance / n for c, n in zip(possible, codes, strict=True))
        return math.sqrt(squared / sum(possible)) if any(possible) else 0.0

    def words(self, plan: Plan) -> str:
        """Return what was measured."""
        return (
            "Measured were the Fourier coefficients that the published tables are made of, each once: the "
            "total, and how the counts lean between the levels of every attribute and combination of "
            "attributes, written as bits. Every table is computed from them, so all of them agree."
        )

    def burden(self, *, values: int, parts: int, tables: int) -> str:
        """Return what it costs to measure all coefficients alike."""
        return f"it adds the same noise to each of {values:,} Fourier coefficients, needed or not"


def _check_padding(request: Request) -> None:
    bits = len(bits_of(request.domain, request.attributes))
    if 2**bits > request.max_cells:
        raise TooManyCells(
            f"written as bits these attributes make a table of 2^{bits} = {2**bits:,} cells, more than the "
            f"cap of {request.max_cells:,}. Use the mechanism 'efron-stein', which needs no padding, or "
            "raise the cap (max_cells)."
        )


FOURIER = FourierMechanism()
