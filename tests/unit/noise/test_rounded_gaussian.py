"""What rounding buys, the steps of a wide draw word by word, and the small laws at the edge of nothing."""

from fractions import Fraction

import numpy as np
import pytest

from tabulary.core.privacy import gaussian_delta
from tabulary.noise import DiscreteGaussian, RoundedGaussian
from tabulary.noise.slots import half_line_slots
from tests.entropy import ScriptedEntropy
from tests.unit.noise.decimals import rounded_below, words_of

WIDE = RoundedGaussian.from_sigma(1024)
BLOCK_BITS = 2
FRACTION_BITS = 63 - BLOCK_BITS
LAST_WORD = 2**64 - 1


def block_word(block: int) -> int:
    """A word in the middle of the stretch of a block."""
    floors = (0, *half_line_slots(WIDE.variance_parameter, BLOCK_BITS, 64).floors)
    return (floors[block] + floors[block + 1]) // 2


def point_word(offset: Fraction, *, negative: bool) -> int:
    return (negative << 63) + int(offset * 2**FRACTION_BITS)


def smallest_delta(noise, shift: int, epsilon: float) -> float:
    """The smallest δ for which the noise hides a shift of one count at ε, summed over all integers."""
    k = np.arange(-400, 401)
    return float(np.sum(np.maximum(0, noise.pmf(k) - np.exp(epsilon) * noise.pmf(k - shift))))


EPSILONS = np.linspace(0.05, 3, 60)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), 1, 2, 10])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_rounded_gaussian_stays_below_the_curve_of_the_continuous_one(sigma, shift):
    rho = Fraction(shift**2) / (2 * Fraction(sigma) ** 2)
    noise = RoundedGaussian.from_sigma(sigma)
    for epsilon in EPSILONS:
        assert smallest_delta(noise, shift, epsilon) <= gaussian_delta(epsilon, rho) * (1 + 1e-9) + 1e-14


def test_the_discrete_gaussian_does_not_stay_below_that_curve():
    """So the test above can fail: it is the rounding that makes the curve hold."""
    noise = DiscreteGaussian.from_sigma(2)
    above = [smallest_delta(noise, 1, e) > gaussian_delta(e, Fraction(1, 8)) * (1 + 1e-6) for e in EPSILONS]
    assert any(above)


@pytest.mark.parametrize("block", [0, 1, 700])
@pytest.mark.parametrize(
    ("offset", "rounded"),
    [("0", 0), ("0.4999", 0), ("0.5", 1), ("1.25", 1), ("2.75", 3), ("3.4999", 3), ("3.5", 4)],
)
@pytest.mark.parametrize("negative", [False, True])
def test_a_wide_draw_is_a_point_of_its_block_rounded_to_the_nearest_integer(block, offset, rounded, negative):
    surely = 0
    entropy = ScriptedEntropy([block_word(block), point_word(Fraction(offset), negative=negative), surely])
    expected = block * 2**BLOCK_BITS + rounded
    assert WIDE.sample(1, entropy).tolist() == [-expected if negative else expected]
    assert entropy.left == 0


def test_a_point_that_is_not_kept_is_drawn_anew():
    far = point_word(Fraction("3.9"), negative=False)
    near = point_word(Fraction("0.1"), negative=False)
    entropy = ScriptedEntropy([block_word(700), far, LAST_WORD, block_word(3), near, 0])
    assert WIDE.sample(1, entropy).tolist() == [12]
    assert entropy.left == 0


@pytest.mark.parametrize("depth", [1, 2])
def test_the_smallest_noise_still_has_tails(depth):
    """P(X ≥ 1) of σ = 1/20 is below 2**-64 and above 2**-128: more bits find it where fewer see nothing."""
    square = Fraction(1, 400)
    *prefix, last = words_of(rounded_below(square, 0), depth + 1)
    for step, expected in ((-1, -1), (1, 0)):
        entropy = ScriptedEntropy([*prefix, last + step])
        assert RoundedGaussian(square).sample(1, entropy).tolist() == [expected]
        assert entropy.left == 0
