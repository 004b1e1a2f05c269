"""An audit of perturbed tables: it accepts the law and rejects a twin at seven tenths of the scale.

Two neighbouring tables are perturbed a million times, all copies of a table as one long table. An event that
is likely on one and unlikely on the other bounds δ from below; with confidence 1 - 10⁻⁶ for all events together, a
bound above the promise is a broken promise.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import beta

import tabulary as tb
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler, Truncated
from tabulary.perturb import Laplace, MaxEntropy, Normal, perturb
from tests.entropy import SeededEntropy

ALPHA = 1e-6
SIDES = (1_000, 1_000)
COPIES = math.prod(SIDES)
WITHOUT, WITHIN = np.array([4, 0, 9]), np.array([4, 1, 9])

# The weakest case is Normal(3/2, bound=5): computed from the binomial laws of both counts, the bound of its twin
# is above the promise by more than five standard deviations.
LAWS = [
    Laplace(1, bound=7),
    Laplace("1/2", bound=10),
    Laplace(1, bound=7, sensitivity=2),
    Normal(2, bound=4),
    Normal("3/2", bound=5),
]
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law}, sensitivity {law.sensitivity}")


@dataclass
class Sabotaged:
    """Draws at seven tenths of the scale within the right bound, as a law with a wrong constant would."""

    seed: int

    def draw(self, noise, size):
        factor, law = Fraction(7, 10), noise.law
        if isinstance(law, DiscreteLaplace):
            narrow = DiscreteLaplace(law.scale * factor)
        else:
            narrow = DiscreteGaussian(law.variance_parameter * factor**2)
        return ExactSampler(SeededEntropy(self.seed)).draw(Truncated(narrow, noise.bound), size)


def published(counts, law, sampler, minimum):
    """What is published of the second cell in every copy of a table of three cells."""
    levels = {name: [str(i) for i in range(side)] for name, side in zip("ab", SIDES, strict=True)}
    copies = tb.Table(tb.Domain({**levels, "cell": "xyz"}), np.broadcast_to(counts, (*SIDES, 3)))
    return perturb(copies, law, minimum=minimum, sampler=sampler).counts[..., 1].reshape(-1)


@cache
def tails(law, sampler, minimum):
    """How many copies of either neighbour are published as at most each value."""
    near = WITHOUT + (WITHIN - WITHOUT) * law.sensitivity
    drawn = [published(table, law, sampler(seed), minimum) for seed, table in enumerate((WITHOUT, near))]
    lowest = min(int(d.min()) for d in drawn)
    size = max(int(d.max()) for d in drawn) - lowest + 1
    return [np.cumsum(np.bincount(d - lowest, minlength=size)) for d in drawn]


def delta_lower_bound(law, sampler, epsilon, *, minimum=None):
    """A lower bound of δ(ε) from the events that the value is at least, or at most, so much; either way round."""
    below = tails(law, sampler, minimum)
    size = below[0].size
    found = -math.inf
    for one, other in (below, below[::-1]):
        for likely, unlikely in ((one, other), (COPIES - one, COPIES - other)):
            # Each event has two bounds; they hold for all 4·size of them together.
            level = ALPHA / (8 * size)
            low = beta.ppf(level, np.maximum(likely, 1), COPIES - likely + 1)
            high = beta.ppf(1 - level, unlikely + 1, np.maximum(COPIES - unlikely, 1))
            low = np.where(likely == 0, 0.0, low)
            high = np.where(unlikely == COPIES, 1.0, high)
            found = max(found, float((low - math.exp(epsilon) * high).max()))
    return found


def honest(seed):
    return ExactSampler(SeededEntropy(seed))


@pytest.mark.audit
@every_law
@pytest.mark.parametrize("minimum", [None, 0])
def test_the_promise_holds_and_noise_at_seven_tenths_of_the_scale_breaks_it(law, minimum):
    promise = law.privacy()
    epsilon, delta = float(promise.epsilon), float(promise.delta)
    assert delta_lower_bound(law, honest, epsilon, minimum=minimum) <= delta
    assert delta_lower_bound(law, Sabotaged, epsilon, minimum=minimum) > delta


@pytest.mark.audit
@every_law
@pytest.mark.parametrize("share", [0, "1/4", "1/2"])
def test_the_whole_curve_holds_and_a_twin_breaks_it(law, share):
    """At a smaller ε the exact δ is larger; what is lost there is nearly all that may be."""
    epsilon = float(law.epsilon * Fraction(share))
    allowed = law.delta_at(epsilon)
    found = delta_lower_bound(law, honest, epsilon)
    assert 0.7 * allowed < found <= allowed
    assert delta_lower_bound(law, Sabotaged, epsilon) > allowed


@pytest.mark.audit
def test_the_curve_is_not_larger_than_it_must_be_for_a_table_that_hides_no_zero():
    law = MaxEntropy(2, bound=5, nonnegative=True)
    found = delta_lower_bound(law, honest, 3.0)
    assert 0.47 < found <= law.delta_at(3)
