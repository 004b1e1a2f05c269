"""Noise written down weight by weight: drawn exactly, zeros inside and ties included."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tabulary.errors import InvalidNoise
from tabulary.noise import Tabulated
from tests.entropy import ScriptedEntropy, SeededEntropy
from tests.unit.noise.decimals import words_of

LAST_WORD = 2**64 - 1
weight_lists = st.lists(st.integers(0, 20), min_size=1, max_size=12).filter(any)
noises = st.builds(Tabulated, st.integers(-9, 9), weight_lists.map(tuple))


@given(st.integers(-9, 9), weight_lists)
def test_every_value_has_its_share_of_the_weights(lowest, weights):
    noise = Tabulated(lowest, tuple(weights))
    total = sum(weights)
    for i, weight in enumerate(weights):
        assert float(noise.pmf(lowest + i)) == float(Fraction(weight, total))
    assert noise.pmf([lowest - 1, lowest + len(weights)]).tolist() == [0, 0]


@given(noises)
def test_mean_and_variance_are_those_of_the_exact_law(noise):
    total = sum(noise.weights)
    shares = {noise.lowest + i: Fraction(w, total) for i, w in enumerate(noise.weights)}
    mean = sum(k * p for k, p in shares.items())
    assert noise.mean == float(mean)
    assert noise.variance == float(sum((k - mean) ** 2 * p for k, p in shares.items()))


def test_zeros_at_the_ends_are_no_part_of_the_law():
    noise = Tabulated(-3, (0, 0, 1, 0, 2, 0))
    assert (noise.lowest, noise.weights) == (-1, (1, 0, 2))
    assert noise == Tabulated(-1, (1, 0, 2))
    assert noise.support.tolist() == [-1, 0, 1]


@given(noises, st.integers(0, 3))
def test_a_value_without_weight_is_never_drawn(noise, seed):
    drawn = noise.sample(200, SeededEntropy(seed))
    assert set(drawn.tolist()) <= {noise.lowest + i for i, w in enumerate(noise.weights) if w}


def test_a_zero_inside_is_passed_over_even_at_a_tie():
    noise = Tabulated(0, (1, 0, 0, 2))
    third = words_of(Fraction(1, 3), 3)
    assert noise.sample(1, ScriptedEntropy([third[0], third[1], third[2] - 1])).item() == 0
    assert noise.sample(1, ScriptedEntropy([third[0], third[1], third[2] + 1])).item() == 3
    assert noise.sample(1, ScriptedEntropy([third[0] - 1])).item() == 0
    assert noise.sample(1, ScriptedEntropy([third[0] + 1])).item() == 3


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("weights", [(1, 2), (1, 1, 1), (5, 3, 11, 2), (10**20, 7, 10**19)])
def test_a_tie_is_settled_on_the_right_side_of_the_exact_boundary(weights, depth):
    noise = Tabulated(-1, weights)
    below = Fraction(0)
    for i, weight in enumerate(weights[:-1]):
        below += Fraction(weight, sum(weights))
        *prefix, last = words_of(below, depth + 1)
        for step, expected in ((-1, i - 1), (1, i)):
            if 0 <= last + step <= LAST_WORD:
                entropy = ScriptedEntropy([*prefix, last + step])
                assert noise.sample(1, entropy).item() == expected
                assert entropy.left == 0


def test_a_boundary_that_a_word_can_write_belongs_to_the_upper_value():
    """One half is a word's own number: below it lies -1, from it on 0, with no share of either lost."""
    noise = Tabulated(-1, (1, 1))
    assert noise.sample(1, ScriptedEntropy([2**63 - 1])).item() == -1
    assert noise.sample(1, ScriptedEntropy([2**63, 0, 1])).item() == 0
    assert noise.sample(1, ScriptedEntropy([2**63, LAST_WORD])).item() == 0
    assert noise.sample(1, ScriptedEntropy([2**63 + 1])).item() == 0


def test_weights_as_far_apart_as_a_lifetime_are_both_drawn():
    noise = Tabulated(0, (2**200, 1))
    assert noise.sample(1, ScriptedEntropy([LAST_WORD] * 3 + [0])).item() == 0
    assert noise.sample(1, ScriptedEntropy([LAST_WORD] * 4)).item() == 1


def test_one_value_alone_is_always_drawn():
    assert Tabulated(4, (3,)).sample((2, 3), SeededEntropy(1)).tolist() == [[4, 4, 4], [4, 4, 4]]


@pytest.mark.parametrize("weights", [(1, 2, 3, 4), (5, 0, 5, 1), (1, 100, 1)])
def test_draws_follow_the_weights_and_not_others(weights):
    """Chi-square at level one in a million; the twin has a tenth of the first weight moved to the last."""
    noise = Tabulated(-2, weights)
    twin = Tabulated(-2, (9 * weights[0], *(10 * w for w in weights[1:-1]), 10 * weights[-1] + weights[0]))

    def fit(drawn):
        seen = np.bincount(drawn + 2, minlength=len(weights)).astype(float)
        expected = drawn.size * np.array(weights) / sum(weights)
        return stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue

    assert fit(noise.sample(500_000, SeededEntropy(7))) > 1e-6
    assert fit(twin.sample(500_000, SeededEntropy(7))) < 1e-6


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9).filter(lambda p: sum(p) > 0.1))
def test_probabilities_from_a_solver_are_kept_to_the_last_bit_of_62(numbers):
    probabilities = np.array(numbers) / sum(numbers)
    noise = Tabulated.from_probabilities(-4, probabilities)
    for i, p in enumerate(probabilities):
        assert abs(float(noise.pmf(-4 + i)) - p) <= 2.0**-52


def test_rounding_to_few_bits_is_to_the_nearest():
    assert Tabulated.from_probabilities(0, np.array([0.3, 0.7]), bits=3).weights == (2, 6)


def test_it_is_described_by_its_reduced_weights():
    assert Tabulated(-1, (10, 0, 30)).describe() == {
        "family": "tabulated",
        "lowest": "-1",
        "weights": "1 0 3",
    }


@pytest.mark.parametrize(
    "weights", [(), (0,), (0, 0), (-1, 2), (1.0, 2.0), (True, 1), ("1",), (None,), (float("nan"),)]
)
def test_weights_that_cannot_be_are_refused(weights):
    with pytest.raises(InvalidNoise, match=r"weights? of a tabulated noise"):
        Tabulated(0, weights)


@pytest.mark.parametrize("lowest", [0.0, True, None, "0", 10**6, -(10**6)])
def test_a_lowest_value_that_cannot_be_is_refused(lowest):
    with pytest.raises(InvalidNoise, match="tabulated noise"):
        Tabulated(lowest, (1, 2))


def test_there_is_no_probability_between_the_integers():
    with pytest.raises(InvalidNoise, match="integers"):
        Tabulated(0, (1, 2)).pmf([0.5])
