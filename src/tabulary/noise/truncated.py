"""Noise that never exceeds a bound: a discrete Laplace or Gaussian law, cut and weighed anew, exactly."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tabulary.errors import InvalidNoise
from tabulary.noise.entropy import Entropy
from tabulary.noise.gaussian import DiscreteGaussian
from tabulary.noise.integer import as_integers, check_half_width, sample_in_pieces
from tabulary.noise.inversion import Inversion
from tabulary.noise.laplace import DiscreteLaplace
from tabulary.noise.slots import truncated_slots
from tabulary.noise.sums import LARGEST_CONFIDENCE, NEGLIGIBLE, smallest

LARGEST_BOUND = 30_000
"""Every value has a boundary of its own in the sampler, whose guide holds this many."""


@dataclass(frozen=True)
class Truncated:
    r"""Noise with P(k) ∝ that of `law` for \|k\| ≤ `bound`, and zero beyond.

    The truncated perturbations of Rinott, O'Keefe, Shlomo & Skinner (2018), (5.2) and (5.3). A bound costs
    privacy: where a count moves by one, the outermost value becomes impossible, so no ε alone holds. What
    does hold is computed in `tabulary.perturb`. Unbiased. A draw costs one 64-bit word.

    >>> noise = Truncated(DiscreteLaplace("2/3"), 7)
    >>> noise.pmf([-8, -7, 0]).round(5).tolist()
    [0.0, 2e-05, 0.63516]
    >>> noise.half_width(0.95), noise.half_width(0.95, terms=12)
    (2, 6)
    """

    law: DiscreteLaplace | DiscreteGaussian
    bound: int

    def __post_init__(self) -> None:
        if not isinstance(self.law, DiscreteLaplace | DiscreteGaussian):
            raise InvalidNoise(
                f"A truncated noise is a discrete Laplace or Gaussian one, not {type(self.law).__name__}."
            )
        check_bound(self.bound)

    def sample(self, size: int | tuple[int, ...], entropy: Entropy) -> NDArray[np.int64]:
        """Return independent draws from exactly this law.

        >>> from tabulary.noise import SystemEntropy
        >>> bool(np.abs(Truncated(DiscreteLaplace(3), 2).sample(500, SystemEntropy())).max() <= 2)
        True
        """
        return sample_in_pieces(partial(_inversion(self.law, self.bound).draw, entropy=entropy), size)

    @property
    def support(self) -> NDArray[np.int64]:
        """Every value the noise can take, ascending."""
        return np.arange(-self.bound, self.bound + 1)

    @property
    def variance(self) -> float:
        """The variance of the truncated law."""
        return float(np.sum(_probabilities(self) * self.support.astype(np.float64) ** 2))

    def pmf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return P(X = k) for every integer k.

        >>> float(Truncated(DiscreteGaussian(4), 3).pmf(range(-3, 4)).sum())
        1.0
        """
        values = as_integers(k)
        inside = np.abs(values) <= self.bound
        places = np.where(inside, values + self.bound, 0).astype(np.intp)
        return np.where(inside, _probabilities(self)[places], 0.0)

    def cdf(self, k: ArrayLike) -> NDArray[np.float64]:
        """Return P(X ≤ k) for every integer k.

        >>> Truncated(DiscreteLaplace(1), 2).cdf([-3, 0, 2]).round(4).tolist()
        [0.0, 0.7492, 1.0]
        """
        places = np.clip(as_integers(k) + self.bound + 1, 0, 2 * self.bound + 1).astype(np.intp)
        below = np.concatenate([[0.0], np.cumsum(_probabilities(self))])
        # The last sum is one up to rounding; the law ends there.
        return np.where(places == below.size - 1, 1.0, below[places])

    def half_width(self, confidence: float, terms: int = 1) -> int:
        r"""Return the smallest h with P(\|X₁ + … + X_terms\| ≤ h) ≥ `confidence`.

        By Fourier transform on a circle that Hoeffding's inequality makes large enough: what wraps around
        has probability at most 1e-17.

        >>> Truncated(DiscreteLaplace(1), 7).half_width(0.95)
        3
        """
        check_half_width(confidence, terms)
        reach = self.bound * terms
        within = _probabilities(self)
        if terms > 1:
            if confidence > LARGEST_CONFIDENCE:
                raise InvalidNoise(
                    f"The half-width of a sum is known up to a confidence of 1 - 1e-10, not {confidence!r}. "
                    "Ask for less, or bound each term by itself."
                )
            hoeffding = math.ceil(self.bound * math.sqrt(2 * terms * math.log(2 / NEGLIGIBLE)))
            reach = max(self.bound, min(reach, hoeffding))
            circle = np.zeros(2 * reach + 1)
            circle[reach - self.bound : reach + self.bound + 1] = within
            transformed = np.fft.rfft(np.fft.ifftshift(circle)) ** terms
            within = np.fft.fftshift(np.fft.irfft(transformed, circle.size))
        # What lies within ±h, for every h.
        sums = np.cumsum(np.concatenate([within[reach : reach + 1], 2 * within[reach + 1 :]]))
        return smallest(lambda h: h >= reach or bool(sums[h] >= confidence), upper=reach)

    def characteristic(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return E exp(itX) for every real t, a sum of cosines.

        >>> Truncated(DiscreteLaplace(1), 3).characteristic([0.0, 1.0]).round(4).tolist()
        [1.0, 0.5633]
        """
        angles = np.asarray(t, dtype=np.float64)
        positive = _probabilities(self)[self.bound + 1 :]
        cosines = np.cos(angles[..., None] * np.arange(1, self.bound + 1))
        return np.asarray(_probabilities(self)[self.bound] + 2 * (cosines @ positive))

    def log_moment_bound(self, t: ArrayLike) -> NDArray[np.float64]:
        """Return log E exp(tX), finite for every t.

        >>> Truncated(DiscreteLaplace(1), 3).log_moment_bound([0.0, 1.0]).round(4).tolist()
        [0.0, 0.6798]
        """
        tilts = np.abs(np.asarray(t, dtype=np.float64))
        exponents = tilts[..., None] * self.support
        # The largest exponent is taken out, so that none overflows.
        top = tilts * self.bound
        return np.asarray(top + np.log(np.exp(exponents - top[..., None]) @ _probabilities(self)))

    def describe(self) -> dict[str, str]:
        """Return the family, its exact parameter and the bound.

        >>> Truncated(DiscreteLaplace("2/3"), 7).describe()
        {'family': 'truncated-discrete-laplace', 'scale': '2/3', 'bound': '7'}
        """
        inner = self.law.describe()
        return {**inner, "family": f"truncated-{inner['family']}", "bound": str(self.bound)}


def check_bound(bound: object) -> None:
    """Raise InvalidNoise unless noise can be cut at ±`bound`."""
    if isinstance(bound, bool) or not isinstance(bound, int) or bound < 1:
        raise InvalidNoise(
            f"The bound of a noise must be a positive whole number, not {bound!r}: with 0 the exact "
            "counts would be published. Leave it out for noise without a bound."
        )
    if bound > LARGEST_BOUND:
        raise InvalidNoise(
            f"The bound of a noise may be at most {LARGEST_BOUND:,}. Leave it out: a larger one cuts nothing."
        )


@lru_cache(maxsize=64)
def _probabilities(noise: Truncated) -> NDArray[np.float64]:
    """Return the probabilities of every value of the support, ascending."""
    k = noise.support.astype(np.float64)
    law = noise.law
    powers = (
        np.abs(k) / float(law.scale)
        if isinstance(law, DiscreteLaplace)
        else k * k / (2 * float(law.variance_parameter))
    )
    weights = np.exp(-powers)
    found: NDArray[np.float64] = weights / math.fsum(weights)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=32)
def _inversion(law: DiscreteLaplace | DiscreteGaussian, bound: int) -> Inversion:
    if isinstance(law, DiscreteLaplace):
        return Inversion(partial(truncated_slots, 1 / law.scale, 1, bound))
    return Inversion(partial(truncated_slots, Fraction(1, 2) / law.variance_parameter, 2, bound))
