"""Codes out of words, in compiled code."""

import numpy as np
from numpy.typing import NDArray

from tabulary.compilation import compiled
from tabulary.confidential.store import Codes


@compiled
def unpack(word: NDArray[np.int64], shift: int, mask: int, column: Codes) -> None:
    """Write the bits of each word that are left of `shift` and inside `mask` into a column of codes."""
    for i in range(column.shape[0]):
        column[i] = (word[i] >> shift) & mask
