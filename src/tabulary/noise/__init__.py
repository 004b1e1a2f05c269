"""Integer noise, drawn exactly.

`DiscreteLaplace` and `DiscreteGaussian` say which law; a `Sampler` draws from it; an `Entropy` supplies the
bits. The laws that are drawn are the laws that are written down, not floating-point neighbours of them:
`docs/explanation/exact-noise.md` has the argument.

>>> noise = DiscreteGaussian.from_sigma(40)
>>> noisy = [120, 75] + ExactSampler().draw(noise, 2)
>>> noisy.dtype.name
'int64'
"""

from tabulary.noise.description import noise_from_description
from tabulary.noise.entropy import Entropy, SystemEntropy
from tabulary.noise.gaussian import DiscreteGaussian
from tabulary.noise.integer import LARGEST_SCALE, SMALLEST_SCALE, IntegerNoise
from tabulary.noise.laplace import DiscreteLaplace
from tabulary.noise.opendp import OpenDPSampler
from tabulary.noise.sampler import ExactSampler, Sampler

__all__ = [
    "LARGEST_SCALE",
    "SMALLEST_SCALE",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Entropy",
    "ExactSampler",
    "IntegerNoise",
    "OpenDPSampler",
    "Sampler",
    "SystemEntropy",
    "noise_from_description",
]
