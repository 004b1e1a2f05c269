"""Independent integer noise on contrast coefficients: `fourier` and `efron-stein`.

What is measured: for every set S in the downward closure of the wanted margins, the coefficients of the
integer basis (`core.basis`) that vary on exactly S, each plus one fresh draw. They are computed from the
margins, never from the full table, and every wanted margin is a linear function of them, so all agree.

Sensitivity. A record in cell x adds to the component of S the product over its attributes of the basis
columns at x. Its L1 norm is Π (k - 1) for every x, on binary attributes one. Over the closure B this gives
Δ₁ = Σ_S Π (k - 1) for add-remove, the number of coefficients. For replace the two records' columns are
subtracted; on binary attributes a coefficient moves by two where ⟨S, d⟩ is odd. `core.contrast_sensitivity`
computes both exactly, and the plan refuses to exist if they exceed its loss.

Privacy. As for counts: the measurements are integers and the noise is discrete, so ε-DP for Laplace noise of
scale Δ₁/ε (Dwork, McSherry & Talwar 2007, Theorem 4) and ρ-zCDP for Gaussian noise of variance Δ₂²/(2ρ).
"""

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.tally import Tally
from tabulary.core import basis
from tabulary.core.bits import to_bits
from tabulary.core.domain import Margin
from tabulary.noise import Sampler
from tabulary.planning import Measurement, Plan


def measure_contrasts(tally: Tally, plan: Plan, sampler: Sampler) -> Measurement:
    """Return the noisy coefficients of the downward closure. Spends the plan's whole budget.

    Unbiased. The cost is one transform of each maximal margin and one draw per coefficient.
    """
    exact: dict[Margin, NDArray[np.int64]] = {}
    for margin in plan.counted:
        counts = tally.exact(margin)
        named = plan.measured_margin(margin)
        table = counts if plan.encoding == "levels" else to_bits(plan.domain, margin, counts)
        exact[named] = basis.contrasts(table)
    noisy = [
        np.asarray(_component(exact, part.margin) + sampler.draw(part.noise, plan.shape_of(part)))
        for part in plan.measured
    ]
    # Only with sensitive attributes, and only what the others alone decide: the plan lists it, and checks.
    public = [_component(exact, s) for s in plan.exact]
    return Measurement(plan, (*noisy, *public))


def _component(exact: dict[Margin, NDArray[np.int64]], s: Margin) -> NDArray[np.int64]:
    named = next(margin for margin in exact if set(s) <= set(margin))
    return np.array(exact[named][tuple(slice(1, None) if a in s else 0 for a in named)])
