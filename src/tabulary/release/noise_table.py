"""What was measured for a release, and the law of the noise of each part, as a page lists it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from markupsafe import Markup

from tabulary.core.exact_numbers import show_fraction
from tabulary.noise import IntegerNoise
from tabulary.planning import Plan
from tabulary.release.promise import exact_interactions


@dataclass(frozen=True)
class NoiseRow:
    """One measured part and the law of its noise."""

    name: str
    cells: int
    law: str
    formula: Markup
    standard_deviation: str


def noise_rows(plan: Plan, most: int) -> list[NoiseRow]:
    """Return what was measured with noise, and after it what was released without any, up to `most` of them."""
    rows = []
    for part, variance in islice(zip(plan.measured, plan.estimator.noise_variances, strict=True), most):
        law, formula = _law(part.noise)
        values = part.query.draws(plan.measured_domain)
        rows.append(NoiseRow(part.query.name, values, law, formula, f"{math.sqrt(variance):,.2f}"))
    for interaction, values in islice(exact_interactions(plan).items(), most - len(rows)):
        rows.append(NoiseRow(plan.query(interaction).name, values, "none: released exactly", Markup(""), "0"))
    return rows


def _law(noise: IntegerNoise) -> tuple[str, Markup]:
    described = noise.describe()
    match described["family"]:
        case "discrete-laplace":
            law = f"discrete Laplace, scale {_short(described['scale'])}"
            return law, Markup("P(k) ∝ e<sup>−|k| / scale</sup>")
        case "discrete-gaussian":
            law = f"discrete Gaussian, σ² = {_short(described['variance_parameter'])}"
            return law, Markup("P(k) ∝ e<sup>−k² / (2σ²)</sup>")
        case "rounded-gaussian":
            law = f"rounded Gaussian, σ² = {_short(described['variance_parameter'])}"
            return law, Markup("k = round(x), density ∝ e<sup>−x² / (2σ²)</sup>")
    return described["family"].replace("-", " "), Markup("")


def _short(exact: str) -> str:
    value = Fraction(exact)
    text = show_fraction(value)
    return text if len(text) <= 12 else f"≈ {float(value):.6g}"
