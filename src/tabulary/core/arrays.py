"""The two arrays that everything computes with."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Real numbers in double precision."""

Integers = NDArray[np.int64]
"""Whole numbers in 64 bits."""
