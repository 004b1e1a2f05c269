"""Do released counts fit given shares? One count of a known total, or all cells of a classification."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.arrays import Floats, Integers
from tabulary.core.exact_numbers import exact_fraction
from tabulary.errors import InvalidArgument, InvalidNoise, InvalidTable
from tabulary.infer.binomial import OneCount
from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.hypothesis import ASYMPTOTIC, MATCHED, LogLinearHypothesis, NullFit
from tabulary.infer.multinomial import ManyCounts
from tabulary.infer.reference import cell_moments, matched_tail, scaled_tail
from tabulary.infer.results import TestResult
from tabulary.infer.table_noise import (
    CorrelatedNoise,
    GivenNoise,
    IndependentNoise,
    TableLaw,
    law_given,
    noise_of,
    whole_counts,
)
from tabulary.release import ReleasedTable

FitMethod = Literal["auto", "exact", "chi-squared"]
CellNoise = TableLaw | IndependentNoise | Mapping[str, object] | None

NAME = "goodness of fit"
# A variance this small beside the others is rounding.
_DUST = 1e-12
BINOMIAL = "the count is binomial of the given total, and the noise added to it is the stated one"
MULTINOMIAL = (
    "the counts are multinomial of the given total, and the noise added to each by itself is the stated one"
)
NORMAL_TOTAL = (
    "the counts are multinomial of the given total, and with their shared noise they are taken as normal"
)
SUMMED = "the p-value is the probability of every released value that fits no better"


def goodness_of_fit(
    x: ArrayLike | ReleasedTable,
    n: int | None,
    p0: object,
    noise: GivenNoise | None = None,
    *,
    method: FitMethod = "auto",
) -> TestResult:
    """Return the test that released counts come from the share, or the shares, `p0` of a total `n`.

    `x` is one released count and `p0` its share: the likelihood ratio of Rinott, O'Keefe, Shlomo & Skinner (2018),
    section 6.2. Or `x` holds the counts of all cells and `p0` their shares, which add up to one; `n` may then be None
    for a total that is not known. `noise` is the law of what was added to each count, None for exact counts. Or `x` is
    a released table: then its unbiased face is tested with the noise that it states. `p0` has a share for each of its
    cells; those of structural zeros are left out, and the others scaled to the sum one. Where cells share their noise,
    the statistic is the squared distance by the covariance of counts and noise (`infer.minimum_chi_squared`).

    The p-value of one count is `exact`, summed over all released values, where there is a way to list them; that of all
    cells is from the moments that the noise gives the statistic. `chi-squared` is Wilks' limit for large counts, right
    where noise is small beside their own spread. Post-processing: reads no data.

    >>> from tabulary.perturb import Laplace
    >>> found = goodness_of_fit(46, 80, 0.5, Laplace(0.5, bound=5))
    >>> round(found.statistic, 3), found.degrees_of_freedom, round(found.p_value, 3)
    (1.492, 1, 0.265)
    >>> round(goodness_of_fit(46, 80, 0.5, Laplace(0.5, bound=5), method="chi-squared").p_value, 3)
    0.222
    >>> goodness_of_fit([52, 21, 31], 100, ["1/2", "1/4", "1/4"], Laplace(0.5)).rejects()
    False
    """
    if method not in get_args(FitMethod):
        raise InvalidArgument(
            f"the methods of a goodness of fit are 'exact' and 'chi-squared', not {method!r}."
        )
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise InvalidTable(f"the total of the counts must be a positive whole number, not {n!r}.")
    if isinstance(x, ReleasedTable):
        possible = ~np.asarray(x.domain.impossible(x.margin))
        noise = noise_of(x, noise)
        x = x.unbiased.counts
        if isinstance(noise, IndependentNoise) and not possible.all():
            # Behind shared noise, `_shared` leaves the same cells out.
            shares = _shares(p0, x.size)[possible.reshape(-1)]
            x, p0 = x[possible], shares / shares.sum()
            noise = IndependentNoise(noise.law, noise.terms[possible], noise.minimum)
    if isinstance(noise, CorrelatedNoise):
        return _shared(np.asarray(x, dtype=np.float64).reshape(-1), n, p0, noise, method)
    observed = whole_counts(x)
    if observed.ndim == 0:
        if n is None:
            raise InvalidTable(
                "a share can be tested with one count only if the total is known. Give n, or the counts of all cells."
            )
        return _one(int(observed), int(n), _share(p0), noise, method)
    if method == "exact":
        raise InvalidArgument("an exact p-value exists only for a single count. Leave the method out.")
    shares = _shares(p0, observed.size)
    flat = observed.reshape(-1)
    known = _noise(noise, flat.shape)
    if n is None:
        return _unknown_total(flat, shares, known, method)
    counts = ManyCounts(flat, int(n), known)
    statistic = max(2 * (counts.best() - counts.log_likelihood(shares)[0]), 0.0)
    return _many(statistic, n * shares, known, method)


def _one(x: int, n: int, p0: float, noise: CellNoise, method: FitMethod) -> TestResult:
    count = OneCount(n, _noise(noise, (1,)))
    statistic = count.statistic(x, p0)
    exact = count.tail(x, p0) if method != "chi-squared" else None
    if exact is None and method == "exact":
        raise InvalidArgument("this perturbation can release too many values to list. Leave the method out.")
    p_value = upper_tail(statistic, 1) if exact is None else exact
    assumed = (BINOMIAL, ASYMPTOTIC if exact is None else SUMMED)
    return TestResult(NAME, statistic, 1, p_value, "chi-squared" if exact is None else "exact", assumed)


def _many(statistic: float, means: Floats, noise: IndependentNoise, method: FitMethod) -> TestResult:
    freedom = means.size - 1
    moments = cell_moments(noise, noise.terms, means) if method == "auto" and freedom else None
    if moments is None:
        return TestResult(
            NAME, statistic, freedom, upper_tail(statistic, freedom), "chi-squared", (MULTINOMIAL, ASYMPTOTIC)
        )
    # A known total takes from the statistic what estimating it would.
    p_value = matched_tail(statistic, freedom, moments, np.ones((means.size, 1)), means)
    return TestResult(NAME, statistic, freedom, p_value, "noise-aware", (MULTINOMIAL, MATCHED))


def _shared(
    counts: Floats, n: int | None, p0: object, noise: CorrelatedNoise, method: FitMethod
) -> TestResult:
    """Return the test of counts whose noise is shared, for a known total or for any."""
    if counts.size != len(noise.covariance):
        raise InvalidNoise(
            f"the noise describes {len(noise.covariance):,} counts, but {counts.size:,} counts are given."
        )
    if method != "auto":
        raise InvalidArgument("counts that share their noise have one method. Leave the method out.")
    shares = _shares(p0, counts.size)
    # A cell that is exactly zero without noise is a structural zero, and has no share.
    possible = (np.diag(noise.covariance) > 0) | (counts != 0)
    hypothesis = LogLinearHypothesis((noise,), np.ones((counts.size, 1)), possible, np.log(shares))
    if n is None:
        return hypothesis.test(NAME, hypothesis.fitted(counts))
    means = np.where(possible, n * shares / shares[possible].sum(), 0.0)
    expected = means[possible]
    inside = np.ix_(possible, possible)
    spread = noise.covariance[inside] + np.diag(expected) - np.outer(expected, expected) / n
    # The total is known: what the noise of the released total says of the cells is taken out.
    of_total = spread.sum(axis=1)
    varies = of_total.sum() > _DUST * np.trace(spread)
    slopes = of_total / of_total.sum() if varies else np.zeros(expected.size)
    left = np.eye(expected.size) - np.outer(slopes, np.ones(expected.size))
    values, axes = np.linalg.eigh(left @ spread @ left.T)
    values, axes = values[1:], axes[:, 1:]
    directions = left.T @ (axes / np.sqrt(values))
    statistic = float(np.sum((directions.T @ (counts[possible] - expected)) ** 2))
    freedom = expected.size - 1
    fit = NullFit(statistic, freedom, means, possible, (NORMAL_TOTAL,))
    p_value = scaled_tail(statistic, freedom, 2 * freedom + hypothesis.excess_variance(fit, directions))
    return TestResult(NAME, statistic, freedom, p_value, "noise-aware", (NORMAL_TOTAL, MATCHED))


def _unknown_total(
    counts: Integers, shares: Floats, noise: IndependentNoise, method: FitMethod
) -> TestResult:
    everything = np.ones(counts.size, dtype=np.bool_)
    hypothesis = LogLinearHypothesis((noise,), np.ones((counts.size, 1)), everything, np.log(shares))
    fit = hypothesis.fitted(counts)
    if method == "auto":
        return hypothesis.test(NAME, fit)
    p_value = upper_tail(fit.statistic, fit.degrees_of_freedom)
    return TestResult(
        NAME, fit.statistic, fit.degrees_of_freedom, p_value, "chi-squared", (*fit.assumed, ASYMPTOTIC)
    )


def _share(value: object) -> float:
    share = exact_fraction(value, name="the share p0", error=InvalidTable)
    if not 0 < share < 1:
        raise InvalidTable(f"a share to be tested must lie strictly between 0 and 1, not at {value!r}.")
    return float(share)


def _shares(values: object, cells: int) -> Floats:
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str) or len(values) != cells:
        raise InvalidTable(f"the shares p0 must be a list of {cells:,} numbers, one for each released count.")
    if cells < 2:
        raise InvalidTable("a list of shares needs at least two cells. For one count give x as a number.")
    exact = [exact_fraction(v, name="a share of p0", error=InvalidTable) for v in np.asarray(values).tolist()]
    if min(exact) <= 0:
        raise InvalidTable("every share to be tested must be positive. Leave out structural zeros.")
    if abs(float(sum(exact)) - 1) > 1e-9:
        raise InvalidTable(f"the shares p0 add up to {float(sum(exact)):.10g}, not to 1.")
    return np.array([float(share / sum(exact)) for share in exact])


def _noise(noise: CellNoise, shape: tuple[int, ...]) -> IndependentNoise:
    """Return the noise of released counts, one draw in each unless it says otherwise."""
    if noise is None:
        return IndependentNoise.none(shape)
    if not isinstance(noise, IndependentNoise):
        return IndependentNoise(law_given(noise), np.ones(shape, dtype=np.int64))
    if noise.terms.size != int(np.prod(shape)):
        raise InvalidNoise(
            f"the noise describes {noise.terms.size:,} counts, but {int(np.prod(shape)):,} counts are given."
        )
    return IndependentNoise(noise.law, noise.terms.reshape(shape), noise.minimum)
