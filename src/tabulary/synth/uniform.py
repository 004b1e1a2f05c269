"""Numbers between 0 and 1 from an entropy source. They make rows from public data, and protect nobody."""

import numpy as np
from numpy.typing import NDArray

from tabulary.noise import Entropy
from tabulary.noise.entropy import fresh_words

_BITS = 53


def uniforms(entropy: Entropy, count: int) -> NDArray[np.float64]:
    """Return `count` independent numbers, each at least 0 and below 1."""
    return (fresh_words(entropy, count) >> np.uint64(64 - _BITS)).astype(np.float64) * 2.0**-_BITS
