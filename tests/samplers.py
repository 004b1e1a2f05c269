"""Samplers that no release may use: they make a mechanism's other parts visible."""

from dataclasses import dataclass

import numpy as np


@dataclass
class ConstantSampler:
    """Adds the same number everywhere; with zero, what is measured shows bare."""

    value: int = 0

    def draw(self, noise, size):
        return np.full(size, self.value, dtype=np.int64)
