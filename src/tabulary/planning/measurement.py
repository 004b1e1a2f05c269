"""What left through a mechanism: noisy whole numbers, public from here on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabulary.errors import InvalidPlan
from tabulary.planning.plan import Plan


@dataclass(frozen=True, eq=False)
class Measurement:
    """A plan and the integers it called for, one array per part: the noisy ones, then those released exactly."""

    plan: Plan
    values: tuple[NDArray[np.int64], ...]

    def __post_init__(self) -> None:
        shapes = self.plan.shapes()
        if [v.shape for v in self.values] != shapes or any(v.dtype != np.int64 for v in self.values):
            raise InvalidPlan("a measurement holds one array of whole numbers for each measured part.")
        for values in self.values:
            values.flags.writeable = False
