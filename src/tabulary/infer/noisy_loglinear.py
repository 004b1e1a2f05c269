"""Log-linear models fitted to what lies behind the noise.

A cell of mean μ holds a Poisson count, and what was released of it is that count and noise. Where the noise of every
cell is drawn by itself, the likelihood of the released values is a product over the cells and is maximised as it is
(Rinott, O'Keefe, Shlomo & Skinner, section 6.1, for any log-linear model). Where cells share their noise, as after a
linear mechanism, the released table is taken as normal with mean μ and covariance diag(μ) + Σ.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats
from tabulary.core.progress import Progress
from tabulary.core.table import Table
from tabulary.infer.bootstrap import bootstrap_test
from tabulary.infer.boundary import degrees_of_freedom
from tabulary.infer.fitted_model import FittedModel
from tabulary.infer.hypothesis import LogLinearHypothesis, NullFit
from tabulary.infer.likelihood import NoisyCells
from tabulary.infer.models import LogLinearModel
from tabulary.infer.table_noise import CorrelatedNoise, CountLaw, IndependentNoise, TableNoise
from tabulary.noise import Entropy


def hypothesis_of(model: LogLinearModel, noise: TableNoise) -> LogLinearHypothesis:
    """Return the model as a hypothesis about a table released with this noise."""
    domain = model.domain
    possible = ~domain.impossible(domain.attributes)
    return LogLinearHypothesis((noise,), model.design(np.arange(domain.size)), possible.reshape(-1))


def noise_aware(table: Table, noise: TableNoise, model: LogLinearModel) -> FittedModel:
    """Return the model fitted behind the noise.

    `g2` is twice the difference of log-likelihood to the best means cell by cell, or the squared distance that is left
    where cells share their noise; see `infer.hypothesis` for both, and for the law that the p-value is from. `x2` is
    Σ (released - μ)² / (μ + variance of the noise).
    """
    hypothesis = hypothesis_of(model, noise)
    return _result(table, noise, model, hypothesis, hypothesis.fitted(table.counts))


def bootstrapped(
    table: Table,
    noise: TableNoise,
    model: LogLinearModel,
    *,
    repetitions: int,
    entropy: Entropy | None,
    progress: Progress | None,
) -> FittedModel:
    """Return the same fit with the p-value from tables drawn from it through the noise."""
    hypothesis = hypothesis_of(model, noise)
    fit = hypothesis.fitted(table.counts)
    test = bootstrap_test(
        str(model), hypothesis, fit, repetitions=repetitions, entropy=entropy, progress=progress
    )
    return _result(table, noise, model, hypothesis, fit, p_value=test.p_value, assumed=test.assumed)


def _result(
    table: Table,
    noise: TableNoise,
    model: LogLinearModel,
    hypothesis: LogLinearHypothesis,
    fit: NullFit,
    *,
    p_value: float | None = None,
    assumed: tuple[str, ...] = (),
) -> FittedModel:
    method = "noise-aware" if p_value is None else "bootstrap"
    if p_value is None:
        test = hypothesis.test(str(model), fit)
        p_value, assumed = test.p_value, test.assumed
    shape = table.shape
    possible, held = hypothesis.possible.reshape(shape), fit.held.reshape(shape)
    means = fit.means.reshape(shape)
    if isinstance(noise, IndependentNoise):
        x2 = _pearson(table, noise, np.where(held, means, 0.0), held)
        with np.errstate(divide="ignore"):
            likelihood = NoisyCells(table.counts, noise).at(possible).log_likelihood(np.log(means[possible]))
    else:
        x2, likelihood = fit.statistic, _normal_likelihood(fit, noise, hypothesis.possible)
    return FittedModel(
        model=model,
        method=method,
        fitted=Table(table.domain, np.where(held, means, 0.0)),
        g2=fit.statistic,
        x2=x2 if fit.degrees_of_freedom else 0.0,
        degrees_of_freedom=fit.degrees_of_freedom,
        nominal_degrees_of_freedom=degrees_of_freedom(model, possible),
        p_value=p_value,
        log_likelihood=likelihood,
        parameters=int(held.sum()) - fit.degrees_of_freedom,
        boundary=possible & ~held,
        assumed=assumed,
        behind=(hypothesis, table),
    )


def _pearson(table: Table, noise: IndependentNoise, means: Floats, held: NDArray[np.bool_]) -> float:
    """Return Σ (released - expected)² / variance, of a law that depends on the count as it is at the mean."""
    bias, variance = np.zeros(means.shape), np.zeros(means.shape)
    if isinstance(noise.law, CountLaw):
        counts, places = np.unique(np.rint(means).astype(np.int64), return_inverse=True)
        rows = np.array([_moments(noise.law, count) for count in counts.tolist()])
        bias, variance = np.moveaxis(rows[places.reshape(means.shape)], -1, 0)
    else:
        variance += noise.law.variance
    expected = means + np.where(noise.terms > 0, bias, 0.0)
    spread = means + noise.terms * variance
    return math.fsum((table.counts[held] - expected[held]) ** 2 / spread[held])


def _moments(law: CountLaw, original: int) -> tuple[float, float]:
    """Return the mean and the variance of what is added to one original count."""
    row = law.row(original)
    values = row.lowest + np.arange(row.probabilities.size, dtype=np.float64) - original
    mean = float(row.probabilities @ values)
    return mean, float(row.probabilities @ (values - mean) ** 2)


def _normal_likelihood(fit: NullFit, noise: CorrelatedNoise, possible: NDArray[np.bool_]) -> float:
    covariance = noise.covariance[np.ix_(possible, possible)] + np.diag(fit.means[possible])
    _, log_determinant = np.linalg.slogdet(2 * math.pi * covariance)
    return -(fit.statistic + float(log_determinant)) / 2
