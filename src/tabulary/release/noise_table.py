"""The measured parts of a release and the law of the noise of each, as a page lists them."""

import math
import re
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup, escape

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
    """Return the parts measured with noise, then the parts released without noise, up to `most` of them."""
    rows = []
    for part, variance in islice(zip(plan.measured, plan.estimator.noise_variances, strict=True), most):
        values = part.query.draws(plan.measured_domain)
        noise, deviation = part.noise, f"{math.sqrt(variance):,.2f}"
        rows.append(NoiseRow(part.query.name, values, noise.words, _formula(noise.formula), deviation))
    for interaction, values in islice(exact_interactions(plan).items(), most - len(rows)):
        rows.append(NoiseRow(plan.query(interaction).name, values, "none: released exactly", Markup(""), "0"))
    return rows


def _formula(text: str) -> Markup:
    """Return a formula for a page, with its exponents raised.

    >>> _formula("P(k) ∝ e^{−|k| / scale}")
    Markup('P(k) ∝ e<sup>−|k| / scale</sup>')
    """
    return Markup(re.sub(r"\^\{([^}]*)\}", r"<sup>\1</sup>", str(escape(text))))
