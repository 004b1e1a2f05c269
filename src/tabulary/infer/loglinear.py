"""Log-linear models of a table: the fit, how well it fits, and where zeros put it on the boundary."""

import math
from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np

from tabulary.core.arrays import Floats
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument
from tabulary.infer.boundary import degrees_of_freedom, positive_cells
from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.fitted_model import FittedModel
from tabulary.infer.fitting import fitted_counts
from tabulary.infer.hypothesis import ASYMPTOTIC
from tabulary.infer.independence import EXACT, NEGATIVE
from tabulary.infer.models import LogLinearModel
from tabulary.infer.noisy_loglinear import bootstrapped, noise_aware
from tabulary.infer.table_noise import GivenNoise, noise_of, published_table, unbiased_table
from tabulary.noise import Entropy
from tabulary.release import ReleasedTable

LogLinearMethod = Literal["auto", "naive", "noise-aware", "bootstrap"]

FACE = "zero counts leave cells without an estimate: the fit is zero there, and the others give the degrees of freedom"
NOBODY = "the table is empty, so nothing can be tested"


def loglinear(
    table: Table | ReleasedTable,
    model: str | Workload | Iterable[Iterable[str]] | LogLinearModel,
    *,
    method: LogLinearMethod = "auto",
    noise: GivenNoise | None = None,
    repetitions: int = 999,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> FittedModel:
    """Return the hierarchical log-linear model with the given margins, fitted by maximum likelihood.

    "naive" takes the published counts as exact and negative ones as zero. The fit has the margins of the counts: in
    closed form for decomposable models, else by iterative proportional fitting. Where zeros put it on the boundary,
    that is found first by a linear program, and the degrees of freedom are those of the cells that are left (Fienberg
    & Rinaldo 2012). "noise-aware" maximises the likelihood of Poisson counts behind the noise of the unbiased face of
    a release, or that is given as `noise`. "auto" is noise-aware where a noise is known, else naive.
    "bootstrap" is noise-aware with a p-value from `repetitions` tables drawn from the fit: for small counts.
    Post-processing: reads the released table only.

    >>> from tabulary import datasets
    >>> fit = loglinear(datasets.load("autoworkers"), "[BF][ADE][ABCE]")
    >>> print(fit)
    [BF][ADE][ABCE], naive: G² 44.59, X² 43.94 on 42 degrees of freedom, p = 0.363
    AIC 378.24, BIC 499.64, 22 parameters
    the released counts are taken as exact: noise in them can look like a finding, and shrinkage can hide one
    the statistic is taken as χ², which is right for large counts
    """
    checked = LogLinearModel.parse(model, table.domain)
    if method not in get_args(LogLinearMethod):
        raise InvalidArgument(
            f"the methods of a fit are {', '.join(map(repr, get_args(LogLinearMethod)))}, not {method!r}. "
            "Nothing was fitted."
        )
    if method == "naive" or (method == "auto" and noise is None and isinstance(table, Table)):
        return naive(published_table(table), checked)
    counts, stated = unbiased_table(table), noise_of(table, noise)
    if method == "bootstrap":
        return bootstrapped(
            counts, stated, checked, repetitions=repetitions, entropy=entropy, progress=progress
        )
    return noise_aware(counts, stated, checked)


def naive(table: Table, model: LogLinearModel) -> FittedModel:
    """Return the fit to counts taken as exact."""
    counts = np.maximum(table.counts, 0).astype(np.float64)
    positive = positive_cells(model, counts)
    possible = ~table.domain.impossible(table.domain.attributes)
    fitted = fitted_counts(model, counts, positive)
    seen = counts > 0
    g2 = 2 * math.fsum(counts[seen] * np.log(counts[seen] / fitted[seen]))
    x2 = math.fsum((counts[positive] - fitted[positive]) ** 2 / fitted[positive])
    freedom = degrees_of_freedom(model, positive)
    # With nothing left to vary, what is not zero is rounding.
    g2, x2 = (max(g2, 0.0), x2) if freedom else (0.0, 0.0)
    boundary = possible & ~positive
    assumed = [EXACT]
    if np.any(table.counts < 0):
        assumed.append(NEGATIVE)
    if not seen.any():
        assumed.append(NOBODY)
    elif boundary.any():
        assumed.append(FACE)
    return FittedModel(
        model=model,
        method="naive",
        fitted=Table(table.domain, fitted),
        g2=g2,
        x2=x2,
        degrees_of_freedom=freedom,
        nominal_degrees_of_freedom=degrees_of_freedom(model, possible),
        p_value=upper_tail(g2, freedom),
        log_likelihood=_log_poisson(counts, fitted),
        parameters=int(positive.sum()) - freedom,
        boundary=boundary,
        assumed=(*assumed, ASYMPTOTIC),
    )


def _log_poisson(counts: Floats, means: Floats) -> float:
    seen = counts > 0
    different, often = np.unique(counts[counts > 1], return_counts=True)
    factorials = math.fsum(
        math.lgamma(n + 1) * k for n, k in zip(different.tolist(), often.tolist(), strict=True)
    )
    return math.fsum(counts[seen] * np.log(means[seen])) - math.fsum(means.reshape(-1)) - factorials
