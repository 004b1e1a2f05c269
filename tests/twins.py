"""A sabotaged twin of every mechanism, and what a number of events proves: shared by the audits of synthesizers."""

from dataclasses import dataclass, field
from fractions import Fraction

from tabulary.noise import ExactSampler
from tabulary.toolbox.choice_laws import ExponentialChoice
from tabulary.workflows.auditing.evidence import SABOTAGED as SABOTAGED
from tabulary.workflows.auditing.evidence import clopper_pearson
from tests.entropy import SeededEntropy

ALPHA = 1e-6


@dataclass
class SeededTwin:
    """Draws at a scale times `factor`, as a mechanism with a wrong constant would; at one, it draws exactly."""

    factor: Fraction = Fraction(1)
    entropy: SeededEntropy = field(default_factory=lambda: SeededEntropy(8))

    def draw(self, noise, size):
        if isinstance(noise, ExponentialChoice):
            law = ExponentialChoice(noise.rate / self.factor, noise.losses, noise.sizes)
        else:
            law = noise.narrowed(self.factor)
        return ExactSampler(self.entropy).draw(law, size)


def bounds(successes, trials):
    """Return the ends of Clopper and Pearson's interval of a probability, at confidence 1 - 10⁻⁶."""
    return clopper_pearson(successes, trials, ALPHA / 2)
