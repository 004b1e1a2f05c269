"""Risk and utility studied on tables that are public, made up or one's own: nothing here is a release.

An experiment is a `study.Study`: pieces of work that `running` does over several processes and writes into a `folder`,
and a `page` of what their numbers say, with `curves` and `box_plots`. The words are chosen by the numbers, which
`selecting` and `proportion` read off. `tabulary study NAME` runs them, and each is a package of its own:

- `sparse_tables`, `three_approaches`, `perturbation`, `noise_aware_tests`, `suppression` and `rap`: the tables and
  figures of papers, beside what this package does for the same data.
- `own_data`: a custodian's own plan. Confidential, unless people made up from a release take the place of the records.

Beside them stand `published`, the mechanisms of two papers with the scale that they print and the ε that it really
is, `redundant` with the terms of one of them, and `bounds`, their error bounds by name beside one from the noise
actually drawn; and `differencing`, the attacks of `tabulary attack` on counts of invented people.
"""

from tabulary.studies.bounds import (
    dmt_theorem_5_bound,
    published_quantile_bound,
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
    "compared_laws",
    "dmt_theorem_5_bound",
    "exact_redundant_sensitivity",
    "published_efron_stein",
    "published_fourier",
    "published_quantile_bound",
    "published_sensitivity",
    "quantile_bound",
    "risk_utility",
    "yfr_theorem_1_bound",
    "yfr_theorem_3_bound",
]
