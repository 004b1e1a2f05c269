"""The only bridge from a Tally to a Measurement: exact values of a plan's queries, plus noise.

What is measured, its sensitivity and its privacy are written down with the type of the queries (`planning.queries`) and
with the mechanism that lists them (`planning.planners`). Here every value gets one fresh draw of its part's law.
"""

import numpy as np

from tabulary.confidential.dropping import refuse_public_total
from tabulary.confidential.tally import Tally
from tabulary.confidential.weights import refuse_weights
from tabulary.core.arrays import Integers
from tabulary.noise import IntegerNoise, Sampler
from tabulary.planning import MECHANISMS, Measurement, Plan


def measure(tally: Tally, plan: Plan, sampler: Sampler) -> Measurement:
    """Return the noisy values of every part of the plan. Spends the plan's whole budget.

    Unbiased. The cost is one sum of a counted table for each part and one draw for each value. Parts that share a law
    of noise are drawn together: the tables of a sampler are built once for each law.
    """
    refuse_weights(
        tally.weights,
        use="a plan",
        state="Nothing was measured.",
        remedy="Publish weighted tables with tb.perturb.Tables.",
    )
    refuse_public_total(plan.neighbours, tally.drops)
    encoded = plan.encoded
    tables = {encoded.margin(m): encoded.encode(m, tally.exact(m)) for m in plan.counted}
    exact = plan.query.all_values(plan.queries, tables)
    noisy = [
        part.query.with_noise(values, drawn, plan.measured_domain)
        for part, values, drawn in zip(plan.measured, exact, _drawn(plan, sampler), strict=False)
    ]
    # Only with sensitive attributes, and only what the others alone decide: the plan lists it, and checks.
    return Measurement(plan, (*noisy, *exact[len(noisy) :]))


def _drawn(plan: Plan, sampler: Sampler) -> list[Integers]:
    """Return the draws of every part, one for each value that gets noise."""
    sizes = [part.query.draws(plan.measured_domain) for part in plan.measured]
    sharing: dict[IntegerNoise, list[int]] = {}
    for position, part in enumerate(plan.measured):
        sharing.setdefault(part.noise, []).append(position)
    found: list[Integers] = [np.zeros(0, dtype=np.int64)] * len(sizes)
    for law, positions in sharing.items():
        ends = np.cumsum([sizes[i] for i in positions])
        drawn = sampler.draw(law, int(ends[-1]))
        for i, piece in zip(positions, np.split(drawn, ends[:-1]), strict=True):
            found[i] = piece
    return found


__all__ = ["MECHANISMS", "measure"]
