r"""Independent integer noise on every possible cell of the measured margins: `cells` and `margins`.

What is measured: the exact counts of each margin that the plan lists, plus one fresh draw a cell.

Sensitivity. One person holds at most c records. Adding one record raises one cell of each margin by one; the
measurement divided by its scales b (or σ) then moves by at most c Σ 1/b in L1, and its squared L2 norm by
c² Σ 1/σ². Replacing moves one unit out of a cell and into another in each margin where the two records
differ, which doubles both. `core.sensitivity` computes these exactly, structural zeros included, and the plan
refuses to exist if they exceed its loss.

Privacy. A discrete Laplace draw of scale b on an integer has probability ratio at most e^{|change|/b}; over
all cells the exponents add up to the L1 bound, hence ε-DP. Discrete Gaussian draws of parameter σ² satisfy
Σ change²/(2σ²)-zCDP on integers (Canonne, Kamath & Steinke 2020, Theorem 14).

Structural zeros hold no record by declaration (a record in one is an error before anything is measured), so
they are exactly zero whatever the data are, and get no noise.
"""

import numpy as np
from numpy.typing import NDArray

from tabulary.confidential.tally import Tally
from tabulary.noise import Sampler
from tabulary.planning import MeasuredMargin, Measurement, Plan


def measure_directly(tally: Tally, plan: Plan, sampler: Sampler) -> Measurement:
    """Return the noisy counts of every measured margin. Spends the plan's whole budget.

    Unbiased. The cost is one draw for each possible cell.
    """
    return Measurement(plan, tuple(_noisy(tally, part, plan, sampler) for part in plan.measured))


def _noisy(tally: Tally, part: MeasuredMargin, plan: Plan, sampler: Sampler) -> NDArray[np.int64]:
    possible = ~plan.domain.impossible(part.margin)
    values = np.zeros(possible.shape, dtype=np.int64)
    values[possible] = tally.exact(part.margin)[possible] + sampler.draw(part.noise, int(possible.sum()))
    return values
