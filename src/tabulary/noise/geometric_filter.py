"""One more discrete Laplace draw, added to a law that is listed: a compiled loop."""

import numpy as np

from tabulary.compilation import compiled
from tabulary.core.arrays import Floats


@compiled
def filtered(values: Floats, ratio: float, height: float) -> Floats:
    """Return the convolution of `values` with height · ratio**|k|, in two sweeps of positive terms."""
    found = np.empty_like(values)
    carried = 0.0
    for i in range(values.size):
        carried = carried * ratio + values[i]
        found[i] = carried
    carried = 0.0
    for i in range(values.size - 1, -1, -1):
        found[i] = height * (found[i] + carried)
        carried = (carried + values[i]) * ratio
    return found
