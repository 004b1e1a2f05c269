r"""Are two attributes independent? As if the released counts were exact, and as they are.

The null hypothesis is log μ_ij = η + α_i + β_j. Cells that the domain declares impossible are left out of it (quasi-
independence), and the degrees of freedom are the possible cells less the parameters that they determine: (r - 1)(c - 1)
without such cells.
"""

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.errors import InvalidArgument, InvalidTable, NotCertified
from tabulary.infer.bootstrap import bootstrap_test
from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.hypothesis import ASYMPTOTIC, LogLinearHypothesis
from tabulary.infer.results import TestResult
from tabulary.infer.table_noise import GivenNoise, noise_of, published_table, unbiased_table
from tabulary.noise import Entropy
from tabulary.release import ReleasedTable

AssociationMethod = Literal["noise-aware", "naive", "bootstrap"]
Statistic = Literal["g2", "x2"]
Mask = NDArray[np.bool_]

NAME = "independence"
EXACT = "the released counts are taken as exact: noise in them can look like a finding, and shrinkage can hide one"
NEGATIVE = "negative released counts are taken as 0"

# A level with less than this share of the total has nobody.
_NOBODY = 1e-12
_SWEEPS = 100_000


def independence(
    table: Table | ReleasedTable,
    method: AssociationMethod = "noise-aware",
    *,
    noise: GivenNoise | None = None,
    statistic: Statistic = "g2",
    repetitions: int = 999,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> TestResult:
    """Return the test of independence of the two attributes of a table.

    * `noise-aware`: the likelihood ratio of Rinott, O'Keefe, Shlomo & Skinner (2018), (6.1): Poisson counts behind the
      stated noise, maximised over the null and over all means, cell by cell. It keeps its level where counts are large
      enough for χ². Where cells share their noise: minimum chi-square, see `tabulary.infer.minimum_chi_squared`.
    * `naive`: G², or Pearson's χ² with `statistic="x2"`, as if the counts were exact. With noise of the size of the
      counts' own spread it rejects almost every true hypothesis. Negative counts are taken as 0.
    * `bootstrap`: the statistic of `noise-aware`, its p-value from `repetitions` tables drawn from the fitted null
      through the actual noise: for small counts. `progress` is called after each.

    Of a released table every method but `naive` uses the unbiased face, whatever was published. `noise` is what
    `noise_of` takes, needed where the table does not state it. A level that is impossible, or that the
    hypothesis estimates as empty, is left out and takes its degrees of freedom along. What has one row or one column
    left has 0 degrees of freedom and p = 1. Post-processing: reads no data. 50 × 50 cells take seconds.

    >>> from tabulary import datasets, perturb
    >>> exact = datasets.load("hair-eye-gene")
    >>> round(independence(exact, "naive", statistic="x2").statistic, 2)
    139.22
    >>> noisy = Table(exact.domain, [[98, 30, 15], [33, 99, 21], [47, 44, 66]])
    >>> found = independence(noisy, noise=perturb.Laplace(0.2, bound=20))
    >>> found.degrees_of_freedom, found.rejects()
    (4, True)
    """
    check_method(method)
    if statistic not in get_args(Statistic) or (statistic == "x2" and method != "naive"):
        raise InvalidArgument(
            "the statistic must be 'g2', or 'x2' with method='naive': a noise-aware test has one statistic."
        )
    plain = published_table(table) if method == "naive" else unbiased_table(table)
    if len(plain.shape) != 2:
        raise InvalidTable(
            f"independence is between two attributes, and this table has {len(plain.shape)}. Take a table on two, "
            "such as release['sex', 'age'], or project() a table of more."
        )
    possible = ~plain.domain.impossible(plain.domain.attributes)
    if method == "naive":
        return naive_test(NAME, plain.counts.astype(np.float64), possible, statistic)
    hypothesis = LogLinearHypothesis(
        (noise_of(table, noise),), two_way_design(plain.shape), possible.reshape(-1)
    )
    fit = hypothesis.fitted(plain.counts)
    if method == "noise-aware":
        return hypothesis.test(NAME, fit)
    return bootstrap_test(NAME, hypothesis, fit, repetitions=repetitions, entropy=entropy, progress=progress)


def check_method(method: object) -> None:
    """Raise InvalidArgument unless this is a method of a test."""
    if method not in get_args(AssociationMethod):
        raise InvalidArgument(
            f"the methods of a test are {', '.join(map(repr, get_args(AssociationMethod)))}, not {method!r}."
        )


def two_way_design(shape: tuple[int, ...]) -> Floats:
    """Return the rows of log μ_ij = α_i + β_j, one row per cell, with ones for its levels.

    >>> two_way_design((1, 2)).tolist()
    [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    rows, columns = shape
    return np.hstack([np.repeat(np.eye(rows), columns, axis=0), np.tile(np.eye(columns), (rows, 1))])


def naive_test(name: str, counts: Floats, possible: Mask, statistic: Statistic = "g2") -> TestResult:
    """Return the classical test of a two-way table, as if its counts were exact."""
    seen = np.where(possible, np.maximum(counts, 0.0), 0.0)
    expected = _expected(seen, possible)
    held = expected > _NOBODY * float(seen.sum())
    kept = two_way_design(seen.shape)[held.reshape(-1)]
    rank = int(np.linalg.matrix_rank(kept.T @ kept, hermitian=True)) if kept.size else 0
    freedom = int(held.sum()) - rank
    observed, means = seen[held], expected[held]
    if statistic == "x2":
        value = math.fsum((observed - means) ** 2 / means)
    else:
        ratio = np.where(observed > 0, observed, means) / means
        value = 2 * math.fsum(observed * np.log(ratio) - observed + means)
    # With no freedom the table is the expected one, and what is left is rounding.
    value = max(value, 0.0) if freedom else 0.0
    assumed = (EXACT, *((NEGATIVE,) if np.any(counts < 0) else ()), ASYMPTOTIC)
    return TestResult(name, value, freedom, upper_tail(value, freedom), "naive", assumed)


def _expected(seen: Floats, possible: Mask) -> Floats:
    """Return the table of (quasi-)independence with the margins of the seen one."""
    rows, columns = seen.sum(axis=1), seen.sum(axis=0)
    total = float(seen.sum())
    if possible.all():
        return np.outer(rows, columns) / max(total, 1.0)
    # Impossible cells are zero from the start, and scaling keeps them so.
    fitted = possible.astype(np.float64)
    for _ in range(_SWEEPS):
        fitted *= _ratio(rows, fitted.sum(axis=1))[:, np.newaxis]
        fitted *= _ratio(columns, fitted.sum(axis=0))
        if float(np.abs(fitted.sum(axis=1) - rows).sum()) <= 1e-12 * total:
            return fitted
    raise NotCertified("proportional fitting to the margins did not converge. No test was made.")


def _ratio(wanted: Floats, found: Floats) -> Floats:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)
