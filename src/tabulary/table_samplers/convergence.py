"""Whether Markov chains have forgotten where they started, and how much their tables are worth."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.core.arrays import Floats

Series = NDArray[np.floating] | NDArray[np.integer]
"""Chains × records × statistics."""


@dataclass(frozen=True, eq=False)
class Convergence:
    r"""How a run of several chains went, for each statistic that was recorded.

    `scale_reductions` are split R̂. Each chain is cut in two; with W the mean variance inside a half and B/n the
    variance of the means of their n records, R̂² = ((n - 1)/n · W + B/n)/W. It falls to 1 as chains forget their start:
    Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), who rank the records first, against heavy tails, which numbers
    of people do not have. What never moved has 1, what chains never agree on has infinity.

    `sizes` are effective: how many independent records would tell as much of the mean. Records over 1 + 2 Σ ρ_t, the
    integrated autocorrelation time, with ρ_t as Vehtari et al. combine it over chains, so that what these disagree on
    counts too. The sum ends where a pair of lags is no longer positive together, and pairs may not rise again: Geyer
    (1992), who shows that for a reversible chain this errs to the safe side. Never above the number of `records`.

    >>> run = Convergence.of(np.tile([0, 0, 1, 1], 100).reshape(2, 200, 1))
    >>> round(run.scale_reduction, 3), round(run.effective)
    (0.995, 400)
    >>> Convergence.of(np.repeat([0, 1], 4).reshape(2, 4, 1)).scale_reduction
    inf
    """

    scale_reductions: Floats
    sizes: Floats
    records: int

    @classmethod
    def of(cls, series: Series) -> "Convergence":
        """Return how a run went. Costs a Fourier transform for each chain and statistic."""
        half = series.shape[1] // 2
        halves = np.concatenate([series[:, :half], series[:, half : 2 * half]]).astype(np.float64)
        centred = halves - halves.mean(axis=1, keepdims=True)
        within = (centred**2).sum(axis=1).mean(axis=0) / (half - 1)
        together = (half - 1) / half * within + halves.mean(axis=1).var(axis=0, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            reductions = np.where(together == 0, 1.0, np.sqrt(together / within))
            correlations = 1 - (within - _covariances(centred)) / together
        total = halves.shape[0] * half
        sizes = total / _times(correlations)
        # What never moved needs no more records; no record counts for what chains never agree on.
        sizes[together == 0] = total
        sizes[(within == 0) & (together > 0)] = 1.0
        return cls(reductions, sizes, total)

    @property
    def scale_reduction(self) -> float:
        """The worst R̂."""
        return float(self.scale_reductions.max())

    @property
    def effective(self) -> float:
        """The smallest effective size."""
        return float(self.sizes.min())

    @property
    def correlation(self) -> float:
        r"""The correlation of one record with the next, if that of the slowest statistic decays geometrically.

        With n records of effective size e, (n - e)/(n + e); or, as nothing smaller can be seen, two standard errors of
        it, 2/√n.
        """
        seen = (self.records - self.effective) / (self.records + self.effective)
        return max(seen, 2 / math.sqrt(self.records))


def _covariances(centred: Floats) -> Floats:
    """Return the autocovariance of each statistic at every lag, the mean over chains."""
    records = centred.shape[1]
    padded = 1 << (2 * records - 1).bit_length()
    spectrum = np.fft.rfft(centred, padded, axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=0)
    return np.asarray(np.fft.irfft(power, padded, axis=0)[:records] / records)


def _times(correlations: Floats) -> Floats:
    """Return integrated autocorrelation times, from the autocorrelations of each statistic at every lag."""
    correlations[0] = 1.0
    pairs = correlations[: len(correlations) // 2 * 2].reshape(-1, 2, correlations.shape[1]).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0)
    falling = np.minimum.accumulate(pairs, axis=0)
    return np.asarray(np.maximum(2 * (falling * positive).sum(axis=0) - 1, 1.0))
