from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from tabulary.noise.acceptance import accept, settle_flip
from tests.entropy import ScriptedEntropy, SeededEntropy

SQUARE = Fraction(10**8)
LAST_WORD = 2**64 - 1


def probability_words(exponent: Fraction, words: int) -> list[int]:
    """The binary digits of exp(-exponent) by decimal arithmetic, as words of 64."""
    with localcontext(prec=150):
        value = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        digits = int(value * 2 ** (64 * words))
    return [(digits >> (64 * (words - 1 - i))) & LAST_WORD for i in range(words)]


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
