"""Draws made by OpenDP, for users who prefer its vetted sampler."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidNoise, MissingExtra
from tabulary.noise.checks import sample_in_pieces
from tabulary.noise.gaussian import DiscreteGaussian
from tabulary.noise.integer import IntegerNoise
from tabulary.noise.laplace import DiscreteLaplace


class OpenDPSampler:
    """Draws through OpenDP's `make_laplace` and `make_gaussian` over vectors of integers.

    OpenDP takes its scale as a double, so a scale that is not one is rounded up, never down: the noise may be
    wider than asked for by one part in 2**52. Its entropy is its own. Some hundred times slower than
    `ExactSampler`. Needs the extra `tabulary[opendp]`, and enables OpenDP's "contrib" features.

    >>> from tabulary.noise import DiscreteLaplace
    >>> OpenDPSampler().draw(DiscreteLaplace(2), (3, 2)).shape
    (3, 2)
    """

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ImportError:
            raise MissingExtra(
                "OpenDPSampler needs the package 'opendp', which is not installed. Nothing was drawn. "
                "Install it with: pip install 'tabulary[opendp]'"
            ) from None
        dp.enable_features("contrib")
        self._dp: Any = dp

    def draw(self, noise: IntegerNoise, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent draws from a discrete Laplace or Gaussian noise."""
        add_noise = self._measurement(noise)
        return sample_in_pieces(lambda count: np.array(add_noise([0] * count), dtype=np.int64), size)

    def _measurement(self, noise: IntegerNoise) -> Any:
        dp = self._dp
        vectors = dp.vector_domain(dp.atom_domain(T="i64"))
        if isinstance(noise, DiscreteLaplace):
            return dp.m.make_laplace(vectors, dp.l1_distance(T="i64"), scale=_scale_up(noise.scale))
        if isinstance(noise, DiscreteGaussian):
            sigma = _sigma_up(noise.variance_parameter)
            return dp.m.make_gaussian(vectors, dp.l2_distance(T="i64"), scale=sigma)
        raise InvalidNoise(f"OpenDP has no sampler for {noise!r}. Nothing was drawn. Use ExactSampler.")

    def __repr__(self) -> str:
        return "OpenDPSampler()"


def _scale_up(scale: Fraction) -> float:
    nearest = float(scale)
    return nearest if Fraction(nearest) >= scale else math.nextafter(nearest, math.inf)


def _sigma_up(variance_parameter: Fraction) -> float:
    sigma = math.sqrt(variance_parameter)
    while Fraction(sigma) ** 2 < variance_parameter:
        sigma = math.nextafter(sigma, math.inf)
    return sigma
