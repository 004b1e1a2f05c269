"""Do two released tables come from the same distribution?"""

import numpy as np

from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.errors import InvalidTable
from tabulary.infer.bootstrap import bootstrap_test
from tabulary.infer.hypothesis import LogLinearHypothesis
from tabulary.infer.independence import AssociationMethod, check_method, naive_test, two_way_design
from tabulary.infer.results import TestResult
from tabulary.infer.table_noise import GivenNoise, noise_of, published_table, unbiased_table
from tabulary.noise import Entropy
from tabulary.release import ReleasedTable

NAME = "homogeneity"


def homogeneity(
    one: Table | ReleasedTable,
    two: Table | ReleasedTable,
    method: AssociationMethod = "noise-aware",
    *,
    noise: GivenNoise | None = None,
    other_noise: GivenNoise | None = None,
    repetitions: int = 999,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> TestResult:
    """Return the test that two tables have the same shares in every cell, whatever their totals.

    The cells of each are one row of a table with two rows, and the hypothesis is independence of cell and row: Poisson
    counts with log μ_ct = α_c + τ_t, each table with its own noise law. k possible cells leave k - 1 degrees of freedom.
    The tables must have been made from different people: two releases about the same ones share their counts. Methods
    as for `independence`; `noise` and `other_noise` belong to tables that do not state their noise.

    >>> from tabulary import Domain
    >>> from tabulary.noise import DiscreteGaussian, DiscreteLaplace
    >>> ages = Domain({"age": ["0-14", "15-64", "65+"]})
    >>> found = homogeneity(
    ...     Table(ages, [170, 610, 190]), Table(ages, [340, 1180, 320]), noise=DiscreteLaplace(10), other_noise=DiscreteGaussian(100)
    ... )
    >>> found.degrees_of_freedom, round(found.p_value, 2)
    (2, 0.52)
    """  # noqa: E501  (the call of the example)
    check_method(method)
    face = published_table if method == "naive" else unbiased_table
    plain = [face(table) for table in (one, two)]
    if plain[0].domain != plain[1].domain:
        raise InvalidTable(
            "homogeneity compares two tables on the same attributes with the same levels and structural zeros, in "
            "the same order. These two differ."
        )
    domain = plain[0].domain
    possible = ~domain.impossible(domain.attributes).reshape(-1)
    counts = np.stack([table.counts.reshape(-1) for table in plain])
    both = np.stack([possible, possible])
    if method == "naive":
        return naive_test(NAME, counts.astype(np.float64), both)
    noises = (noise_of(one, noise), noise_of(two, other_noise))
    hypothesis = LogLinearHypothesis(noises, two_way_design(counts.shape), both.reshape(-1))
    fit = hypothesis.fitted(counts)
    if method == "noise-aware":
        return hypothesis.test(NAME, fit)
    return bootstrap_test(NAME, hypothesis, fit, repetitions=repetitions, entropy=entropy, progress=progress)
