"""Noise that never exceeds a bound: a discrete Laplace or Gaussian law, cut and weighed anew, exactly."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from tabulary.core.arrays import Floats
from tabulary.errors import InvalidNoise
from tabulary.noise.checks import as_integers
from tabulary.noise.gaussian import DiscreteGaussian
from tabulary.noise.integer import IntegerNoise
from tabulary.noise.laplace import DiscreteLaplace
from tabulary.noise.slots import Slots, truncated_slots

LARGEST_BOUND = 30_000
"""Every value has a boundary of its own in the sampler, whose guide holds this many."""


@dataclass(frozen=True)
class Truncated(IntegerNoise):
    r"""Noise with P(k) ∝ that of `law` for \|k\| ≤ `bound`, and zero beyond.

    The truncated perturbations of Rinott, O'Keefe, Shlomo & Skinner (2018), (5.2) and (5.3). A bound costs privacy:
    where a count moves by one, the outermost value becomes impossible, so no ε alone holds. `tabulary.perturb`
    computes the privacy that does hold. Unbiased. A draw costs one 64-bit word.

    >>> noise = Truncated(DiscreteLaplace("2/3"), 7)
    >>> noise.pmf([-8, -7, 0]).round(5).tolist()
    [0.0, 2e-05, 0.63516]
    >>> noise.half_width(0.95), noise.half_width(0.95, terms=12)
    (2, 6)
    """

    log_concave: ClassVar[bool] = True

    law: DiscreteLaplace | DiscreteGaussian
    bound: int

    def __post_init__(self) -> None:
        if not isinstance(self.law, DiscreteLaplace | DiscreteGaussian):
            raise InvalidNoise(
                f"only discrete Laplace and discrete Gaussian noise can be truncated, not {type(self.law).__name__}."
            )
        check_bound(self.bound)

    @property
    def reach(self) -> int:
        """The bound."""
        return self.bound

    def slots(self, bits: int) -> Slots:
        """Return the boundaries of the values in the unit interval."""
        return truncated_slots(self.law.rate, self.law.power, self.bound, bits)

    def pmf(self, k: ArrayLike) -> Floats:
        """Return P(X = k) for every integer k.

        >>> float(Truncated(DiscreteGaussian(4), 3).pmf(range(-3, 4)).sum())
        1.0
        """
        values = as_integers(k)
        inside = np.abs(values) <= self.bound
        places = np.where(inside, values + self.bound, 0).astype(np.intp)
        return np.where(inside, _probabilities(self)[places], 0.0)

    def log_pmf(self, k: ArrayLike) -> Floats:
        """Return log P(X = k) for every integer k, also where the probability is too small for a double."""
        values = as_integers(k)
        peak = math.log(float(self.pmf(0)))
        return np.where(np.abs(values) <= self.bound, peak - _falls(self.law, values), -math.inf)

    def describe(self) -> dict[str, str]:
        """Return the family, its exact parameter and the bound.

        >>> Truncated(DiscreteLaplace("2/3"), 7).describe()
        {'family': 'truncated-discrete-laplace', 'scale': '2/3', 'bound': '7'}
        """
        inner = self.law.describe()
        return {**inner, "family": f"truncated-{inner['family']}", "bound": str(self.bound)}

    @property
    def words(self) -> str:
        """The law and its bound for a reader."""
        return f"{self.law.words}, at most ±{self.bound:,}"


def check_bound(bound: object) -> None:
    """Raise InvalidNoise unless noise can be cut at ±`bound`."""
    if isinstance(bound, bool) or not isinstance(bound, int) or bound < 1:
        raise InvalidNoise(
            f"the bound of a noise must be a positive whole number, not {bound!r}: with 0 the exact "
            "counts would be published. Leave it out for noise without a bound."
        )
    if bound > LARGEST_BOUND:
        raise InvalidNoise(
            f"the bound of a noise may be at most {LARGEST_BOUND:,}. Leave the bound out: a larger "
            "one would change nothing."
        )


def _falls(law: DiscreteLaplace | DiscreteGaussian, k: Floats) -> Floats:
    """Return by how much log P(X = k) is below log P(X = 0)."""
    return np.asarray(np.abs(k) ** law.power / float(1 / law.rate))


@lru_cache(maxsize=64)
def _probabilities(noise: Truncated) -> Floats:
    """Return the probabilities of every value of the support, ascending."""
    weights = np.exp(-_falls(noise.law, noise.support.astype(np.float64)))
    found: Floats = weights / math.fsum(weights)
    found.flags.writeable = False
    return found
