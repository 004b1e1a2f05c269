"""The errors of a margin that is made of noisy contrast coefficients."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tabulary.core import basis
from tabulary.core.domain import Margin
from tabulary.noise import IntegerNoise
from tabulary.planning.accuracy import CellErrors, WeightedErrors
from tabulary.planning.covariance import CellCovariance, ContrastNoise, block


def contrast_errors(
    margin: Margin, shape: tuple[int, ...], noises: Mapping[Margin, IntegerNoise | None]
) -> CellErrors | WeightedErrors:
    """Return the law of the errors of the table on `margin`, given the noise on each of its subsets; None is exact.

    A cell is Σ row(x)/‖row‖² · coefficient, so its variance is Σ (row(x)/‖row‖²)² var, computed axis by axis
    with the squares of the basis. Where every attribute is binary all weights are ±2⁻ʲ and the law is exact.
    """
    shared = CellCovariance(ContrastNoise(margin, shape, noises))
    drawn = [noise for noise in noises.values() if noise is not None]
    if all(levels == 2 for levels in shape) and len(set(drawn)) == 1:
        terms = np.full(shape, len(drawn), dtype=np.int64)
        return CellErrors(drawn[0], terms, 2.0 ** -len(margin), shared)
    second, fourth = np.zeros(shape), np.zeros(shape)
    for s, noise in noises.items():
        if noise is None:
            continue
        where = block(margin, s)
        second[where] = noise.variance
        fourth[where] = noise.fourth_cumulant
    norms = basis.squared_norms(shape)
    variance = basis_powers(second / norms**2, 2)
    cumulant = basis_powers(fourth / norms**4, 4)
    kurtosis = np.divide(cumulant, variance**2, out=np.zeros(shape), where=variance > 0)
    return WeightedErrors(np.sqrt(variance), kurtosis, shared)


def basis_powers(values: NDArray[np.float64], power: int) -> NDArray[np.float64]:
    """Return Σ value · row(x)^power over all rows of the basis, axis by axis, for an even power.

    Level x meets the row of ones, x^power of its own contrast, and a one of every later contrast.
    """
    for axis, levels in enumerate(values.shape):
        later = np.flip(np.cumsum(np.flip(values, axis), axis=axis), axis) - values
        steps = np.arange(levels, dtype=np.float64).reshape(
            [-1 if i == axis else 1 for i in range(values.ndim)]
        )
        values = np.take(values, [0], axis=axis) + later + steps**power * values
    return values
