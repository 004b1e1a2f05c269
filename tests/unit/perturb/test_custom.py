"""A perturbation of the user's own: exactly the probabilities that were written down."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.errors import InvalidNoise
from tabulary.noise import ExactSampler
from tabulary.perturb import Custom
from tests.entropy import SeededEntropy


@st.composite
def mappings(draw):
    """Exact probabilities of a few offsets, some of them zero, in any order."""
    offsets = draw(st.lists(st.integers(-9, 9), min_size=1, max_size=6, unique=True))
    weights = draw(st.lists(st.integers(0, 9), min_size=len(offsets), max_size=len(offsets)).filter(any))
    return {k: Fraction(w, sum(weights)) for k, w in zip(offsets, weights, strict=True)}


@given(mappings())
def test_every_offset_has_exactly_its_probability(mapping):
    law = Custom(mapping)
    positive = {k: p for k, p in mapping.items() if p}
    assert {k: p for k, p in law.pmf_at(5).items() if p} == positive
    for k, p in mapping.items():
        assert law.transition(5, 5 + k) == float(p)
    assert law.bound == max(map(abs, positive))


@given(st.lists(mappings(), min_size=1, max_size=4))
def test_the_last_row_serves_all_larger_counts(rows):
    law = Custom(rows)
    assert law.settled == len(rows) - 1
    for original in range(len(rows) + 2):
        expected = {k: p for k, p in rows[min(original, len(rows) - 1)].items() if p}
        assert {k: p for k, p in law.pmf_at(original).items() if p} == expected


@pytest.mark.parametrize("quarter", [0.25, "1/4", "0.25", Fraction(1, 4), Decimal("0.25"), np.float64(0.25)])
def test_a_probability_is_the_number_its_writer_meant(quarter):
    law = Custom({-1: quarter, 0: 0.5, 1: quarter})
    assert law.pmf_at(0) == {-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)}


def test_decimals_that_fall_short_of_one_are_weighed_anew():
    law = Custom({-1: 0.3333333333, 0: 0.3333333333, 1: 0.3333333333})
    assert law.pmf_at(0)[0] == Fraction(1, 3)


def test_a_uniform_law_has_the_largest_entropy_of_its_range():
    uniform = Custom(dict.fromkeys(range(-3, 4), "1/7"))
    assert uniform.entropy(0) == pytest.approx(math.log(7), rel=1e-14)
    assert uniform.variance(0) == pytest.approx(4, rel=1e-14)
    assert uniform.bias(0) == 0


def test_a_law_that_is_not_symmetric_says_its_bias():
    assert Custom({0: "1/2", 3: "1/2"}).bias(4) == 1.5


def test_draws_follow_the_row_of_each_count():
    law = Custom([{0: 1}, {4: 1}, {-2: "1/2", 7: "1/2"}])
    sampler = ExactSampler(SeededEntropy(3))
    assert set(sampler.draw(law.drawn(0), 50).tolist()) == {0}
    assert set(sampler.draw(law.drawn(1), 50).tolist()) == {4}
    assert set(sampler.draw(law.drawn(100), 200).tolist()) == {-2, 7}


def test_every_row_is_described_exactly():
    law = Custom([{0: 1}, {-1: "1/3", 1: "2/3"}])
    assert law.describe() == {"family": "custom", "row 0": "0: 1", "row 1": "-1: 1 0 2"}
    assert str(law) == "custom perturbation, at most ±1"


def test_no_epsilon_is_named():
    law = Custom({-1: "1/4", 0: "1/2", 1: "1/4"})
    for ask in (lambda: law.delta, law.privacy):
        with pytest.raises(InvalidNoise, match="names no ε"):
            ask()


@pytest.mark.parametrize(
    ("pmf", "words"),
    [
        ({}, "mapping from offsets"),
        ([], "at least one row"),
        ([{}], "mapping from offsets"),
        ([{0: 1}, None], "of the count 1"),
        ([0.25, 0.5, 0.25], "mapping from offsets"),
        ({0: 0.5, 1: 0.4}, "add up to 0.9, not to 1"),
        ({0: 0.5, 1: 0.6}, "add up to 1.1, not to 1"),
        ([{0: 1}, {0: 0.5}], "of the count 1 add up to 0.5"),
        ({0: 0.333333, 1: 0.333333, 2: 0.333333}, "as fractions"),
        ({0: float("nan"), 1: 1}, "must be"),
        ({0: float("inf")}, "must be"),
        ({0: None}, "must be"),
        ({0: True}, "must be"),
        ({0: "half", 1: "half"}, "must be"),
        ({0: 1.5, 1: -0.5}, r"of \+1 is negative"),
        ({0.5: 1}, "whole number, not 0.5"),
        ({"0": 1}, "whole number, not '0'"),
        ({True: 1}, "whole number, not True"),
        ({10**9: 1}, "must lie within"),
    ],
)
def test_what_is_no_law_is_refused(pmf, words):
    with pytest.raises(InvalidNoise, match=words):
        Custom(pmf)


@pytest.mark.parametrize("pmf", [None, 3, 0.5, "{0: 1}"])
def test_what_is_no_mapping_at_all_is_refused(pmf):
    with pytest.raises(InvalidNoise, match="a mapping from offsets to probabilities"):
        Custom(pmf)
