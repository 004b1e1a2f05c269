"""A log-linear hypothesis about released tables: fitted to them, and drawn from."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.core.arrays import Floats
from tabulary.infer.chi_squared import upper_tail
from tabulary.infer.likelihood import NoisyCells, fit_log_linear
from tabulary.infer.minimum_chi_squared import excess_variance, nearest_log_linear, residual_directions
from tabulary.infer.reference import cell_moments, matched_tail, scaled_tail
from tabulary.infer.results import TestResult
from tabulary.infer.table_noise import CorrelatedNoise, IndependentNoise, TableNoise
from tabulary.noise import IntegerNoise
from tabulary.planning.covariance import CellCovariance, CountNoise

Mask = NDArray[np.bool_]

POISSON = "the counts are Poisson, and the noise added to each cell by itself is the stated one"
NORMAL = "cells share their noise, and the released table is taken as normal with the covariance of counts and noise"
ASYMPTOTIC = "the statistic is taken as χ², which is right for large counts"
SCORE = "two models are compared by the mean and the covariance of counts and noise"
MATCHED = (
    "the statistic is taken as a multiple of χ² with the mean and variance that counts and noise give it"
)
EMPTY = "cells that the hypothesis estimates as empty hold no information on it and are left out"
SMALL = "many cells are small compared with their noise, so χ² is not reliable: use method='bootstrap'"

# A cell with fewer people than this is empty.
NOBODY = 1e-6
# The share of cells with an estimate of zero above which χ² is distrusted.
_MANY_ZEROS = 0.05


@dataclass(frozen=True, eq=False)
class NullFit:
    """A hypothesis fitted to released counts: its statistic and the estimated means of all cells, in order."""

    statistic: float
    degrees_of_freedom: int
    means: Floats
    held: Mask
    assumed: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LogLinearHypothesis:
    """log μ = offset + design · θ for the cells of one or more released tables, each with its own noise.

    `design` has a row and `possible` an entry for each cell of all tables, one table after the other. Impossible
    cells are left out. Against it stands the saturated model, in which every cell has a mean of its own.
    """

    noises: tuple[TableNoise, ...]
    design: Floats
    possible: Mask
    offset: Floats | None = None

    def fitted(self, counts: ArrayLike) -> NullFit:
        """Return the hypothesis fitted to released counts, those of all tables in order.

        The likelihood ratio where the noise of every cell is its own, else minimum chi-square.
        """
        flat = np.asarray(counts).reshape(-1)
        return self._likeliest(flat) if self._independent else self._nearest(flat)

    @property
    def _independent(self) -> bool:
        return all(isinstance(noise, IndependentNoise) for noise in self.noises)

    def test(self, name: str, fit: NullFit) -> TestResult:
        """Return the test of the fitted hypothesis, with a p-value from the law of the statistic under it."""
        freedom, held = fit.degrees_of_freedom, fit.held
        p_value, reference = upper_tail(fit.statistic, freedom), ASYMPTOTIC
        if freedom and not self._independent:
            variance = 2 * freedom + self.excess_variance(fit)
            p_value, reference = scaled_tail(fit.statistic, freedom, variance), MATCHED
        elif freedom and (moments := self._moments(fit)) is not None:
            p_value = matched_tail(fit.statistic, freedom, moments, self.design[held], fit.means[held])
            reference = MATCHED
        return TestResult(name, fit.statistic, freedom, p_value, "noise-aware", (*fit.assumed, reference))

    def test_within(self, name: str, counts: ArrayLike, larger: Floats) -> TestResult | None:
        """Return the score test of the hypothesis within a larger model, given by its design; see `infer.score`.

        None for a perturbation whose mean and variance depend on the count.
        """
        if not all(isinstance(noise, CorrelatedNoise) or _is_symmetric(noise) for noise in self.noises):
            return None
        fit = self._nearest(np.asarray(counts).reshape(-1))
        directions = self._directions(fit, larger)
        freedom = directions.shape[1]
        if not freedom:
            return TestResult(name, 0.0, 0, 1.0, "noise-aware", fit.assumed)
        residuals = (np.asarray(counts).reshape(-1) - fit.means)[self.possible]
        statistic = float(np.sum((directions.T @ residuals) ** 2))
        variance = 2 * freedom + self.excess_variance(fit, directions)
        p_value = scaled_tail(statistic, freedom, variance)
        return TestResult(name, statistic, freedom, p_value, "noise-aware", (SCORE, MATCHED))

    def _directions(self, fit: NullFit, larger: Floats | None = None) -> Floats:
        wider = None if larger is None else larger[self.possible]
        return residual_directions(
            fit.means[self.possible], self._covariance, self.design[self.possible], wider
        )

    def _moments(self, fit: NullFit) -> Floats | None:
        """Return the moments that each cell adds to the statistic, or None if they are not known for every cell."""
        found, begin = [], 0
        for noise in self.noises:
            assert isinstance(noise, IndependentNoise), "what is shared has no law cell by cell"
            own = slice(begin, begin := begin + noise.terms.size)
            held = fit.held[own]
            part = cell_moments(noise, noise.terms.reshape(-1)[held], fit.means[own][held])
            if part is None:
                return None
            found.append(part)
        return np.concatenate(found, axis=1)

    def _likeliest(self, counts: NDArray[np.int64] | Floats) -> NullFit:
        cells = self._cells(counts)
        fit = fit_log_linear(cells, self.design[self.possible], offset=self._possible_offset)
        best_means, best = cells.saturated()
        held = fit.means > NOBODY
        left_out = not held.all()
        # Empty cells do not change the likelihood of the others.
        likeliest = cells.evaluate(fit.log_means)[0]
        statistic = 2 * float((best - likeliest)[held].sum())
        freedom = int(held.sum()) - (self._rank(held) if left_out else fit.rank)
        assumed = (POISSON, *((EMPTY,) if left_out else ()))
        if np.sum(best_means[held] == 0) > _MANY_ZEROS * held.sum():
            assumed = (*assumed, SMALL)
        return self._null_fit(statistic, freedom, fit.means, held, assumed)

    def _nearest(self, counts: NDArray[np.int64] | Floats) -> NullFit:
        observed = counts[self.possible].astype(np.float64)
        fit = nearest_log_linear(
            observed, self._covariance, self.design[self.possible], offset=self._possible_offset
        )
        held = np.ones(observed.size, dtype=np.bool_)
        return self._null_fit(fit.statistic, observed.size - fit.rank, fit.means, held, (NORMAL,))

    def _null_fit(
        self,
        statistic: float,
        freedom: int,
        fitted: Floats,
        kept: Mask,
        assumed: tuple[str, ...],
    ) -> NullFit:
        means, held = np.zeros(self.possible.size), np.zeros(self.possible.size, dtype=np.bool_)
        means[self.possible], held[self.possible] = fitted, kept
        # Without degrees of freedom the hypothesis is the saturated model: the rest of the statistic is rounding.
        return NullFit(max(statistic, 0.0) if freedom else 0.0, freedom, means, held, assumed)

    def _cells(self, counts: NDArray[np.int64] | Floats) -> NoisyCells:
        parts, begin = [], 0
        for noise in self.noises:
            assert isinstance(noise, IndependentNoise), "what is shared has no likelihood of its own"
            end = begin + noise.terms.size
            parts.append(NoisyCells(counts[begin:end].reshape(noise.shape), noise))
            begin = end
        return NoisyCells.joined(parts).at(self.possible)

    def excess_variance(self, fit: NullFit, directions: Floats | None = None) -> float:
        """Return by how much heavy tails raise the variance of a sum of squares along `residual_directions`.

        Without directions that sum is the statistic of the fit.
        """
        directions = self._directions(fit) if directions is None else directions
        shape, sizes = self.possible, [int(np.prod(noise.shape)) for noise in self.noises]
        ends = np.cumsum(sizes)

        def draws_of(weights: Floats) -> list[tuple[IntegerNoise, Floats, int]]:
            everywhere = np.zeros(shape.size)
            everywhere[shape] = weights
            found: list[tuple[IntegerNoise, Floats, int]] = []
            for noise, size, end in zip(self.noises, sizes, ends, strict=True):
                own = everywhere[end - size : end].reshape(noise.shape)
                found += _draws(noise, own)
            return found

        kinds = draws_of(np.ones(int(shape.sum())))
        cumulants = np.concatenate(
            [np.zeros(0), *(np.full(w.size, copies * law.fourth_cumulant) for law, w, copies in kinds)]
        )
        return excess_variance(
            fit.means[shape],
            directions,
            lambda weights: np.concatenate([np.zeros(0), *(w.reshape(-1) for _, w, _ in draws_of(weights))]),
            cumulants,
        )

    def _rank(self, held: Mask) -> int:
        kept = self.design[self.possible][held]
        return int(np.linalg.matrix_rank(kept.T @ kept, hermitian=True)) if kept.size else 0

    @cached_property
    def _possible_offset(self) -> Floats | None:
        return None if self.offset is None else self.offset[self.possible]

    @cached_property
    def _covariance(self) -> Floats:
        blocks = [
            noise.covariance
            if isinstance(noise, CorrelatedNoise)
            else np.diag(noise.standard_deviations.reshape(-1) ** 2)
            for noise in self.noises
        ]
        whole = np.zeros((self.possible.size, self.possible.size))
        begin = 0
        for block in blocks:
            end = begin + len(block)
            whole[begin:end, begin:end] = block
            begin = end
        return whole[np.ix_(self.possible, self.possible)]


def _is_symmetric(noise: TableNoise) -> bool:
    """Return whether the noise of each cell has mean zero and the same law whatever the count."""
    return (
        isinstance(noise, IndependentNoise) and isinstance(noise.law, IntegerNoise) and noise.minimum is None
    )


def _draws(noise: TableNoise, weights: Floats) -> list[tuple[IntegerNoise, Floats, int]]:
    """Return the independent draws in a weighted sum of errors, as far as they are known: law, shares, copies."""
    if isinstance(noise, CorrelatedNoise):
        source = noise.draws
    elif isinstance(noise.law, IntegerNoise):
        source = CellCovariance(CountNoise(noise.law, noise.terms))
    else:
        source = None
    return [(d.noise, d.weights, d.copies) for d in source.draws_of(weights)] if source else []
