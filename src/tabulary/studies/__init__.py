"""Risk and utility studied on published mechanisms, as published: nothing here is a release.

`published` runs the mechanisms of two papers with the scale that they print, and says what ε that really is;
`bounds` has their error bounds by name, beside one from the noise actually drawn.
"""

from tabulary.studies.bounds import (
    dmt_theorem_5_bound,
    quantile_bound,
    yfr_theorem_1_bound,
    yfr_theorem_3_bound,
)
from tabulary.studies.published import (
    PublishedMeasurement,
    PublishedTables,
    published_efron_stein,
    published_fourier,
    published_sensitivity,
)
from tabulary.studies.redundant import RedundantMap, exact_redundant_sensitivity

__all__ = [
    "PublishedMeasurement",
    "PublishedTables",
    "RedundantMap",
    "dmt_theorem_5_bound",
    "exact_redundant_sensitivity",
    "published_efron_stein",
    "published_fourier",
    "published_sensitivity",
    "quantile_bound",
    "yfr_theorem_1_bound",
    "yfr_theorem_3_bound",
]
