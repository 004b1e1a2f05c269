"""Samplers that no release may use: they make a mechanism's other parts visible, or break it on purpose."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tabulary.noise import DiscreteLaplace, ExactSampler


@dataclass
class ConstantSampler:
    """Adds the same number everywhere; with zero, what is measured shows bare."""

    value: int = 0

    def draw(self, noise, size):
        return np.full(size, self.value, dtype=np.int64)


@dataclass
class SabotagedSampler:
    """Draws at a wrong scale, as a mechanism with a wrong constant would."""

    factor: str = "7/10"

    def draw(self, noise, size):
        factor = Fraction(self.factor)
        if isinstance(noise, DiscreteLaplace):
            return ExactSampler().draw(DiscreteLaplace(noise.scale * factor), size)
        return ExactSampler().draw(type(noise)(noise.variance_parameter * factor**2), size)
