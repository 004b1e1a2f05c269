"""A sabotaged twin of every mechanism, and what a number of events proves: shared by the audits of synthesizers."""

from dataclasses import dataclass, field
from fractions import Fraction

from scipy.stats import beta

from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler
from tabulary.toolbox.choice_laws import ExponentialChoice
from tests.entropy import SeededEntropy

ALPHA = 1e-6
SABOTAGED = Fraction(7, 10)


@dataclass
class SeededTwin:
    """Draws at a scale times `factor`, as a mechanism with a wrong constant would; at one, it draws exactly."""

    factor: Fraction = Fraction(1)
    entropy: SeededEntropy = field(default_factory=lambda: SeededEntropy(8))

    def draw(self, noise, size):
        match noise:
            case ExponentialChoice():
                noise = ExponentialChoice(noise.rate / self.factor, noise.losses, noise.sizes)
            case DiscreteLaplace():
                noise = DiscreteLaplace(noise.scale * self.factor)
            case DiscreteGaussian():
                noise = DiscreteGaussian(noise.variance_parameter * self.factor**2)
            case _:
                raise AssertionError(f"no twin of {noise!r}")
        return ExactSampler(self.entropy).draw(noise, size)


def bounds(successes, trials):
    """Return the ends of Clopper and Pearson's interval of a probability, at confidence 1 - 10⁻⁶."""
    low = beta.ppf(ALPHA / 2, successes, trials - successes + 1) if successes else 0.0
    high = beta.ppf(1 - ALPHA / 2, successes + 1, trials - successes) if successes < trials else 1.0
    return low, high
