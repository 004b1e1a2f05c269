"""What was measured for a release, and the law of the noise of each part, as a page lists it."""

import math
import re
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup, escape

from tabulary.core.domain import Margin
from tabulary.planning import MeasuredMargin, Plan
from tabulary.planning.comparison import measured_values
from tabulary.release.promise import exact_interactions
from tabulary.release.wording import listed_words, table_name


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
    for part, variance in islice(zip(plan.measured, plan.noise_variances, strict=True), most):
        values = measured_values(plan, part)
        noise, deviation = part.noise, f"{math.sqrt(variance):,.2f}"
        rows.append(NoiseRow(_part_name(part), values, noise.words, _formula(noise.formula), deviation))
    for interaction, values in islice(exact_interactions(plan).items(), most - len(rows)):
        rows.append(NoiseRow(_contrast_name(interaction), values, "none: released exactly", Markup(""), "0"))
    return rows


def _part_name(part: MeasuredMargin) -> str:
    """Return what was measured: a table, or what of it is left without the averages over some attributes."""
    if part.query == "contrasts":
        return _contrast_name(part.margin)
    name = table_name(part.margin)
    if not part.centred:
        return name
    if part.centred == part.margin:
        return f"{name}, differences from the average"
    return f"{name}, differences from the average over {listed_words(part.centred)}"


def _contrast_name(attributes: Margin) -> str:
    """Return what contrasts tell of some attributes, which is not the table on them.

    >>> _contrast_name(("sex", "age")), _contrast_name(("sex",)), _contrast_name(())
    ('sex by age, interaction', 'sex, differences between levels', 'total')
    """
    what = ("", ", differences between levels", ", interaction")[min(len(attributes), 2)]
    return f"{table_name(attributes)}{what}"


def _formula(text: str) -> Markup:
    """Return a formula for a page, with its exponents raised.

    >>> _formula("P(k) ∝ e^{−|k| / scale}")
    Markup('P(k) ∝ e<sup>−|k| / scale</sup>')
    """
    return Markup(re.sub(r"\^\{([^}]*)\}", r"<sup>\1</sup>", str(escape(text))))
