r"""Independent integer noise on residuals: `residual`.

What is measured: the parts that the plan lists. A part (S, B) is the exact table on the margin S with the
average taken out of the axes B, in whole numbers: k·x - Σx on an axis of k ≥ 3 levels, the difference x₀ - x₁
on one of two (`core.residuals`), each number plus one fresh draw. With B empty that is the table itself; with
B = S it is what S adds to all its subsets. Every wanted table is a linear function of the parts, estimated by
generalised least squares (`reconstruct.residuals`), so all agree.

Sensitivity. A record in cell x adds to a part the product over its axes of one column: a one on an axis that
is counted; k - 1 at x and -1 elsewhere on a centred axis of k ≥ 3 levels, 2(k - 1) in L1 and k(k - 1) in
squared L2; ±1 on one of two. Norms of products are products of norms, whatever the record is, so that over all
parts, each divided by its scale, Δ₁ = c Σ Π_B l1(k) / b and Δ₂² = c² Σ Π_B l2(k) / σ² for c records per person.
Replacing a record subtracts the columns of two, and only where they agree matters.
`core.residual_sensitivity` computes both, and the plan refuses to exist if they exceed its loss.

Privacy. As for counts: the measurements are integers and the noise is discrete, so over all parts the exponents
of discrete Laplace draws add up to Δ₁ ≤ ε, hence ε-DP (Ghosh, Roughgarden & Sundararajan 2012), and discrete
Gaussian draws satisfy Δ₂²/2 = ρ-zCDP (Canonne, Kamath & Steinke 2020, Theorem 14). A rounded continuous Gaussian
is post-processing of the Gaussian mechanism, and has its exact curve (Balle & Wang 2018).

Impossible cells get noise like all others: a centred value adds up cells, and is not impossible by itself.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.tally import Tally
from tabulary.core.residuals import residual_values
from tabulary.core.workload import MarginIndex
from tabulary.noise import IntegerNoise, Sampler
from tabulary.planning import Measurement, Plan


def measure_residuals(tally: Tally, plan: Plan, sampler: Sampler) -> Measurement:
    """Return the noisy values of every part. Spends the plan's whole budget.

    Unbiased. The cost is one sum of a counted table per part and one draw per value. Parts that share a law of noise
    are drawn together: the tables of a sampler are built once for each law.
    """
    noise = _draw(plan, sampler)
    # Each part is summed from the smallest of the counted tables that hold it.
    counted = sorted(plan.counted, key=plan.domain.cells)
    index = MarginIndex(counted)
    values = []
    for part, drawn in zip(plan.measured, noise, strict=True):
        source = counted[index.first(part.margin)]
        summed = tuple(i for i, attribute in enumerate(source) if attribute not in part.margin)
        table = np.asarray(tally.exact(source).sum(axis=summed))
        centred = [i for i, attribute in enumerate(part.margin) if attribute in part.centred]
        values.append(np.asarray(residual_values(table, centred) + drawn))
    return Measurement(plan, tuple(values))


def _draw(plan: Plan, sampler: Sampler) -> list[NDArray[np.int64]]:
    shapes = plan.shapes()
    sharing: dict[IntegerNoise, list[int]] = {}
    for position, part in enumerate(plan.measured):
        sharing.setdefault(part.noise, []).append(position)
    found: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)] * len(shapes)
    for law, positions in sharing.items():
        sizes = [math.prod(shapes[i]) for i in positions]
        drawn = sampler.draw(law, sum(sizes))
        for i, piece in zip(positions, np.split(drawn, np.cumsum(sizes)[:-1]), strict=True):
            found[i] = piece.reshape(shapes[i])
    return found
