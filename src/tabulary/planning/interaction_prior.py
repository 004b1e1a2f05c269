"""How strong interactions are, before any data are seen: the one assumption of planning for and of shrinkage.

The strength φ² of a set R is the squared distance of its table from what its subsets say, over the sum of the
squares of the independent table. Among pairs of attributes of real tables it spreads over many powers of ten, from
nothing at all to one attribute deciding another; so the assumption is broad: log-normal about 1 %, a factor of ten
either way for a standard deviation. An interaction of one more attribute is about a third of that.

These are round numbers, compared with others on one census extract and on generated populations, and kept because they
did well on all. A wrong guess costs accuracy, never privacy.
"""

from functools import lru_cache

import numpy as np

from tabulary.core.arrays import Floats

TYPICAL = 0.01
"""The strength of an ordinary interaction of two attributes."""

DECADES = 1.0
"""The standard deviation of its decimal logarithm."""

DECAY = 0.3
"""What one more attribute leaves of it."""

STRENGTHS: Floats = 10.0 ** np.arange(-6.0, 2.25, 0.5)
"""The strengths that are weighed, from one part in a million to a hundred."""
STRENGTHS.flags.writeable = False


@lru_cache
def prior(order: int) -> Floats:
    """Return the probability of each of the `STRENGTHS` for interactions of so many attributes, two or more.

    >>> weights = prior(2)
    >>> bool(abs(weights.sum() - 1) < 1e-12), float(STRENGTHS[weights.argmax()])
    (True, 0.01)
    """
    centre = np.log10(TYPICAL) + (order - 2) * np.log10(DECAY)
    weights = np.exp(-0.5 * ((np.log10(STRENGTHS) - centre) / DECADES) ** 2)
    found: Floats = weights / weights.sum()
    found.flags.writeable = False
    return found
