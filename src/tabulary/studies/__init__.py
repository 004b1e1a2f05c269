"""Risk and utility studied on published mechanisms, as published: nothing here is a release.

`published` runs the mechanisms of two papers with the scale that they print, and says what ε that really is;
`bounds` has their error bounds by name, beside one from the noise actually drawn. `perturbation` measures what two
laws of a third paper do to a public table.
"""

from tabulary.studies.association import chi_squared, cramers_v
from tabulary.studies.bounds import (
    dmt_theorem_5_bound,
    quantile_bound,
    yfr_theorem_1_bound,
    yfr_theorem_3_bound,
)
from tabulary.studies.perturbation import RiskUtility, Trial, compared_laws, risk_utility
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
    "RiskUtility",
    "Trial",
    "chi_squared",
    "compared_laws",
    "cramers_v",
    "dmt_theorem_5_bound",
    "exact_redundant_sensitivity",
    "published_efron_stein",
    "published_fourier",
    "published_sensitivity",
    "quantile_bound",
    "risk_utility",
    "yfr_theorem_1_bound",
    "yfr_theorem_3_bound",
]
