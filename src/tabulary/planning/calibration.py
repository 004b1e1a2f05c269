"""From a loss to the noise that costs exactly that much."""

from collections.abc import Sequence
from fractions import Fraction

from tabulary.core.contrast_sensitivity import contrast_sensitivity
from tabulary.core.domain import Domain, Margin
from tabulary.core.privacy import GaussianDP, Loss, Neighbours, PureDP
from tabulary.core.sensitivity import MarginSensitivity, margin_sensitivity
from tabulary.errors import InvalidPlan
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, IntegerNoise, RoundedGaussian
from tabulary.planning.plan import MeasuredMargin, Query


def calibrated(
    domain: Domain,
    margins: Sequence[Margin],
    shares: Sequence[Fraction],
    neighbours: Neighbours,
    loss: Loss,
    *,
    query: Query,
) -> tuple[MeasuredMargin, ...]:
    """Return what is measured on each set of attributes, with noise that spends the loss in these shares.

    With relative scales 1/share the measurements cost some Δ; stretching all scales by Δ over the budget makes
    the cost exactly the budget, whichever of them one person can change together. The noise is Laplace for a
    pure loss, discrete Gaussian for zCDP, and a rounded continuous Gaussian for the exact Gaussian curve.
    """
    relative = [1 / share for share in shares]
    if isinstance(loss, PureDP):
        cost = sensitivity_of(domain, margins, neighbours, query=query, scales=relative).l1
        stretch = cost / loss.epsilon
    else:
        cost = sensitivity_of(domain, margins, neighbours, query=query, squared_scales=relative).l2_squared
        stretch = cost / (2 * loss.rho)
    if not cost:
        raise InvalidPlan(
            "with 'replace' neighbours no person can change any of these tables: they hold nothing but the "
            "public number of records. Ask for a table with an attribute of two possible levels."
        )
    return tuple(
        MeasuredMargin(margin, _noise(loss, scale * stretch), query)
        for margin, scale in zip(margins, relative, strict=True)
    )


def sensitivity_of(
    domain: Domain,
    margins: Sequence[Margin],
    neighbours: Neighbours,
    *,
    query: Query,
    scales: Sequence[Fraction] | None = None,
    squared_scales: Sequence[Fraction] | None = None,
) -> MarginSensitivity:
    """Return the sensitivity of counts or of contrasts on these sets of attributes."""
    of = margin_sensitivity if query == "counts" else contrast_sensitivity
    return of(domain, margins, neighbours, scales=scales, squared_scales=squared_scales)


def _noise(loss: Loss, scale: Fraction) -> IntegerNoise:
    if isinstance(loss, PureDP):
        return DiscreteLaplace(scale)
    return RoundedGaussian(scale) if isinstance(loss, GaussianDP) else DiscreteGaussian(scale)
