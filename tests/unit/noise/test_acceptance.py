from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from tabulary.noise.acceptance import accept, accept_points, settle_flip, settle_point
from tests.entropy import ScriptedEntropy, SeededEntropy

SQUARE = Fraction(10**8)
LAST_WORD = 2**64 - 1


def probability_words(exponent: Fraction, words: int) -> list[int]:
    """The binary digits of exp(-exponent) by decimal arithmetic, as words of 64."""
    with localcontext(prec=150):
        value = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        digits = int(value * 2 ** (64 * words))
    return [(digits >> (64 * (words - 1 - i))) & LAST_WORD for i in range(words)]


def point_flip(start: int, position: int, position_bits: int, script: list[int]) -> tuple[bool, int]:
    entropy = ScriptedEntropy(script)
    positions = np.array([position], dtype=np.uint64)
    kept = accept_points(SQUARE, np.array([start]), positions, position_bits, entropy)
    return bool(kept[0]), entropy.left


def flip(start: int, offset: int, script: list[int]) -> tuple[bool, int]:
    entropy = ScriptedEntropy(script)
    kept = accept(SQUARE, np.array([start]), np.array([offset]), entropy)
    return bool(kept[0]), entropy.left


@pytest.mark.parametrize(("start", "offset"), [(1, 31), (9_985, 7), (60_001, 30), (30_001, 5_000)])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_flip_that_cannot_be_told_is_settled_on_the_exact_side(start, offset, depth):
    exponent = Fraction((start + offset) ** 2 - start**2) / (2 * SQUARE)
    *prefix, last = probability_words(exponent, depth + 1)
    assert flip(start, offset, [*prefix, last - 3]) == (True, 0)
    assert flip(start, offset, [*prefix, last + 3]) == (False, 0)


def test_a_clear_flip_costs_one_word():
    assert flip(60_001, 30, [0, 99]) == (True, 1)
    assert flip(60_001, 30, [LAST_WORD, 99]) == (False, 1)


def test_a_value_at_the_start_of_its_block_is_always_kept():
    assert flip(60_001, 0, [LAST_WORD]) == (True, 0)


@pytest.mark.parametrize("exponent", [Fraction(1, 10**9), Fraction(1, 50), Fraction(3), Fraction(40)])
def test_doubles_and_exact_arithmetic_agree_on_every_flip(exponent):
    entropy = SeededEntropy(3)
    threshold = probability_words(exponent, 1)[0]
    for word in entropy.words(200):
        assert settle_flip(exponent, int(word), entropy) == (int(word) < threshold)


def test_the_fast_decision_agrees_with_the_exact_one():
    rng_words = SeededEntropy(4).words(3_000)
    starts = 1 + 64 * (rng_words % np.uint64(1_400)).astype(np.int64)
    offsets = (rng_words >> np.uint64(40)).astype(np.int64) % 64
    kept = accept(SQUARE, starts, offsets, SeededEntropy(5))
    for start, offset, word, decision in zip(
        starts, offsets, SeededEntropy(5).words(3_000), kept, strict=True
    ):
        exponent = Fraction(int(offset) * (int(offset) + 2 * int(start))) / (2 * SQUARE)
        assert settle_flip(exponent, int(word), ScriptedEntropy([])) == decision


@pytest.mark.parametrize("start", [0, 32, 60_000])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_point_that_cannot_be_told_is_settled_by_more_bits_of_both_numbers(start, depth):
    """The point is 7 + 1/3 and the coin falls on its density; then the coin steps off, far from the point."""
    bits, third = 58, 0x5555555555555555
    position = (7 << bits) + (1 << bits) // 3
    # Sixty-four bits follow an even number of them, so that every further word of 1/3 is the same.
    exponent = Fraction(22, 3) * (Fraction(22, 3) + 2 * start) / (2 * SQUARE)
    first, *prefix, last = probability_words(exponent, depth + 1)
    further = [word for each in prefix for word in (each, third)]
    for step, expected in ((-1, True), (1, False)):
        if depth == 1:
            step *= 2**40
        script = [first, *further, last + step, third]
        assert point_flip(start, position, bits, script) == (expected, 0)


def test_a_point_whose_open_bits_decide_is_kept_or_not_by_them():
    """The coin falls between the densities at the two ends of the slot of the point."""
    start, bits = 60_000, 4
    position = 7 << bits
    middle = Fraction(2 * position + 1, 2 << bits)
    word = probability_words(middle * (middle + 2 * start) / (2 * SQUARE), 1)[0]
    for rest, expected in ((0, True), (LAST_WORD, False)):
        entropy = ScriptedEntropy([0, rest])
        assert settle_point(SQUARE, start, position, bits, word, entropy) == expected
        assert entropy.left == 0


def test_a_clear_point_costs_one_word():
    assert point_flip(60_000, 30 << 58, 58, [0, 99]) == (True, 1)
    assert point_flip(60_000, 30 << 58, 58, [LAST_WORD, 99]) == (False, 1)


def test_the_fast_decision_about_a_point_agrees_with_the_exact_one():
    words = SeededEntropy(6).words(3_000)
    starts = 32 * (words % np.uint64(2_800)).astype(np.int64)
    positions = SeededEntropy(7).words(3_000) >> np.uint64(1)
    kept = accept_points(SQUARE, starts, positions, 58, SeededEntropy(8))
    for start, position, word, decision in zip(
        starts, positions, SeededEntropy(8).words(3_000), kept, strict=True
    ):
        assert settle_point(SQUARE, int(start), int(position), 58, int(word), ScriptedEntropy([])) == decision
