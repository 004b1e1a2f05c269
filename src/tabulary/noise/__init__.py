"""Integer noise, drawn exactly.

`DiscreteLaplace`, `DiscreteGaussian` and `RoundedGaussian` are laws; a `Sampler` draws from a law; an `Entropy`
supplies the bits; `weighted_half_width` bounds a combination of draws. The draws have exactly the stated law, not a
floating-point approximation of it: `docs/explanation/exact-noise.md` has the argument, and says how to add a law.

>>> noise = DiscreteGaussian.from_sigma(40)
>>> noisy = [120, 75] + ExactSampler().draw(noise, 2)
>>> noisy.dtype.name
'int64'
"""

from tabulary.noise.checks import LARGEST_SCALE, SMALLEST_SCALE
from tabulary.noise.enclosure import Enclosure, divide, exponential, multiply
from tabulary.noise.entropy import Entropy, SystemEntropy
from tabulary.noise.gaussian import DiscreteGaussian
from tabulary.noise.integer import AddedNoise, IntegerNoise
from tabulary.noise.laplace import DiscreteLaplace
from tabulary.noise.laws import LAWS, law_from_description, noise_from_description
from tabulary.noise.opendp import OpenDPSampler
from tabulary.noise.rounded_gaussian import RoundedGaussian
from tabulary.noise.sampler import Drawable, ExactSampler, Sampler
from tabulary.noise.slots import Slots, two_sided_slots
from tabulary.noise.square_root import SquareRootLaplace
from tabulary.noise.sums import chernoff_reach
from tabulary.noise.tabulated import Tabulated
from tabulary.noise.truncated import Truncated
from tabulary.noise.weighted import weighted_half_width

__all__ = [
    "LARGEST_SCALE",
    "LAWS",
    "SMALLEST_SCALE",
    "AddedNoise",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Drawable",
    "Enclosure",
    "Entropy",
    "ExactSampler",
    "IntegerNoise",
    "OpenDPSampler",
    "RoundedGaussian",
    "Sampler",
    "Slots",
    "SquareRootLaplace",
    "SystemEntropy",
    "Tabulated",
    "Truncated",
    "chernoff_reach",
    "divide",
    "exponential",
    "law_from_description",
    "multiply",
    "noise_from_description",
    "two_sided_slots",
    "weighted_half_width",
]
