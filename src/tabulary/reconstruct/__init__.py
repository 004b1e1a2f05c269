"""From a Measurement to the tables that are published. Post-processing: nothing here can reach a record."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tabulary.core.domain import Margin
from tabulary.planning import Measurement
from tabulary.reconstruct.linear import linear_estimates

RECONSTRUCTIONS: Mapping[str, Callable[[Measurement], dict[Margin, NDArray[np.int64]]]] = {
    "none": linear_estimates,
}


def reconstruct(measurement: Measurement) -> dict[Margin, NDArray[np.int64]]:
    """Return the tables of the plan, by the reconstruction that it names."""
    return RECONSTRUCTIONS[measurement.plan.reconstruct](measurement)


__all__ = ["RECONSTRUCTIONS", "reconstruct"]
