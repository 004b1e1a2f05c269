"""How far two cells of a released table are apart, and whether the noise alone explains it."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tabulary.core.table import Table
from tabulary.infer.intervals import Interval, Level, interval, selected_weights
from tabulary.infer.sums import SumLaw, shared_noise
from tabulary.infer.table_noise import GivenNoise
from tabulary.release import ReleasedTable
from tabulary.release.table import CONFIDENCE

ASSUMED = (
    "the difference is that in these records: the noise is its only error",
    "the noise of the difference is taken as normal, with tails as heavy as its kurtosis says",
)
"""What the p-value of a difference rests on."""


@dataclass(frozen=True)
class Difference:
    """The difference of two sums of cells: its interval, its standard error, and how likely noise alone makes it."""

    interval: Interval
    standard_error: float
    p_value: float

    @property
    def estimate(self) -> float:
        """The released difference."""
        return self.interval.estimate


def difference(
    table: Table | ReleasedTable,
    first: Mapping[str, Level],
    second: Mapping[str, Level],
    *,
    confidence: float = CONFIDENCE,
    noise: GivenNoise | None = None,
) -> Difference:
    r"""Return the difference of two cells, or of two sums of cells, with its error from the noise alone.

    `first` and `second` name levels; an attribute that is left out is summed over. The standard error knows which
    draws the two share: √(w'Σw) for the weights w of the difference. The p-value is the probability that noise
    makes two equal numbers differ at least so much: 2 Φ(-z), z being the normal score whose quantile, corrected
    for the kurtosis (`planning.accuracy.heavy_quantile`), is the released difference. Post-processing: reads no data.

    >>> from tabulary import Domain
    >>> from tabulary.noise import DiscreteLaplace
    >>> table = Table(Domain({"sex": ["F", "M"], "job": ["none", "paid"]}), [[12, 30], [-1, 41]])
    >>> found = difference(table, {"sex": "F"}, {"sex": "M"}, noise=DiscreteLaplace(2))
    >>> print(found.interval, round(found.standard_error, 2), round(found.p_value, 2))
    2 (-9 to 13 with 95 % confidence, in these records) 5.6 0.69
    """
    plain = table.table if isinstance(table, ReleasedTable) else table
    covariance = shared_noise(table, noise)
    weights = selected_weights(plain, first) - selected_weights(plain, second)
    found = interval(table, weights, confidence=confidence, noise=noise)
    law = SumLaw.of(covariance, weights)
    return Difference(found, law.deviation, _two_sided(found.estimate, law))


def _two_sided(value: float, law: SumLaw) -> float:
    if law.deviation == 0:
        return 1.0 if value == 0 else 0.0
    size, kurtosis = abs(value) / law.deviation, max(law.kurtosis, 0.0)
    # z + (z³ - 3z) k/24 = |value| / deviation. Of several scores the smallest, which claims least.
    scores = np.roots([kurtosis / 24, 0.0, 1 - kurtosis / 8, -size])
    real = scores.real[(np.abs(scores.imag) < 1e-9) & (scores.real >= 0)]
    score = float(real.min()) if real.size else size
    return min(1.0, 2 * NormalDist().cdf(-score))
