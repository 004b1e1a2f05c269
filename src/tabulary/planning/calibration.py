"""From a loss to the noise that costs exactly that much."""

from collections.abc import Sequence
from fractions import Fraction

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.privacy import Loss, PureDP
from tabulary.errors import InvalidPlan
from tabulary.noise import IntegerNoise
from tabulary.noise.laws import SPENDING
from tabulary.planning.measurement import Part
from tabulary.planning.queries.query import Query


def calibrated(
    domain: Domain,
    queries: Sequence[Query],
    shares: Sequence[Fraction],
    neighbours: Neighbours,
    loss: Loss,
) -> tuple[Part[Query], ...]:
    """Return these queries with noise that spends the loss in these shares. All are of one type.

    A share is the relative 1/scale of Laplace noise and the relative 1/variance of Gaussian noise.

    With relative scales 1/share the measurements cost some Δ; stretching all scales by Δ over the budget makes
    the cost exactly the budget, whichever of them one person can change together. The noise is the one that spends
    the currency of the loss: Laplace for pure ε, Gaussian for ρ.
    """
    relative = [1 / share for share in shares]
    sensitivity = type(queries[0]).sensitivity
    if isinstance(loss, PureDP):
        cost = sensitivity(domain, queries, neighbours, scales=relative).l1
        stretch = cost / loss.epsilon
    else:
        cost = sensitivity(domain, queries, neighbours, squared_scales=relative).l2_squared
        stretch = cost / (2 * loss.rho)
    if not cost:
        raise InvalidPlan(
            "with 'replace' neighbours no person can change any of these tables: they hold nothing but the "
            "public number of records. Ask for a table with an attribute of two possible levels."
        )
    # Thousands of parts share a few laws.
    laws = {scale: _noise(loss, scale * stretch) for scale in dict.fromkeys(relative)}
    return tuple(Part(query, laws[scale]) for query, scale in zip(queries, relative, strict=True))


def _noise(loss: Loss, scale: Fraction) -> IntegerNoise:
    """Return the noise of this scale, or of this squared scale for a loss of ρ."""
    currency = type(loss)
    return SPENDING[currency].costing(currency, 1 / scale if currency is PureDP else 1 / (2 * scale))
