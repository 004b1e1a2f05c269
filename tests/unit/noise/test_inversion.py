"""Ties: the one draw in 2**50 that ordinary tests never see, forced here."""

from bisect import bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from tabulary.noise.inversion import Inversion, settle
from tabulary.noise.slots import Slots, gaussian_slots, laplace_slots, rounded_gaussian_slots
from tests.entropy import ScriptedEntropy, SeededEntropy
from tests.unit.noise.decimals import rounded_below, words_of

SCALE = Fraction(5)
LAPLACE = partial(laplace_slots, SCALE, 0)
GAUSSIAN = partial(gaussian_slots, Fraction(30), 0)
# A variance whose root is irrational.
SQUARE = Fraction(30)
ROUNDED = partial(rounded_gaussian_slots, SQUARE)
LAST_WORD = 2**64 - 1

every_law = pytest.mark.parametrize(
    "slots", [LAPLACE, GAUSSIAN, ROUNDED], ids=["laplace", "gaussian", "rounded gaussian"]
)


def laplace_below(k: int) -> Fraction:
    """P(X < k) to 200 digits, in decimal arithmetic."""
    with localcontext(prec=200):
        rate = Decimal(SCALE.denominator) / Decimal(SCALE.numerator)
        total = 1 + (-rate).exp()
        tail = (-rate * (k if k >= 1 else 1 - k)).exp() / total
        return Fraction(1 - tail if k >= 1 else tail)


@pytest.mark.parametrize(
    ("slots", "below", "k"),
    [
        *((LAPLACE, laplace_below, k) for k in (-200, -20, -3, 0, 1, 2, 30, 190)),
        *((ROUNDED, partial(rounded_below, SQUARE), k) for k in (-45, -20, -3, 0, 1, 2, 30, 44)),
    ],
    ids=lambda value: value if isinstance(value, int) else "",
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_tie_is_settled_on_the_right_side_of_the_exact_boundary(slots, below, k, depth):
    """The script follows the binary digits of P(X < k) for `depth` words, then steps off by one."""
    *prefix, last = words_of(below(k), depth + 1)
    for step, expected in ((-1, k - 1), (1, k)):
        if not 0 <= last + step <= LAST_WORD:
            continue
        entropy = ScriptedEntropy([*prefix, last + step])
        assert Inversion(slots).draw(1, entropy).tolist() == [expected]
        assert entropy.left == 0


@every_law
def test_a_word_that_equals_a_boundary_slot_draws_another_word(slots):
    inversion = Inversion(slots)
    lowest, floors = slots(64)
    for index in range(0, len(floors), 7):
        if floors[index] in (0, LAST_WORD) or floors.count(floors[index]) > 1:
            continue
        low = inversion.draw(1, ScriptedEntropy([floors[index], 0])).item()
        high = inversion.draw(1, ScriptedEntropy([floors[index], LAST_WORD])).item()
        assert (low, high) == (lowest + index, lowest + index + 1)


@every_law
def test_a_word_beside_a_boundary_slot_is_decided_at_once(slots):
    inversion = Inversion(slots)
    lowest, floors = slots(64)
    middle = len(floors) // 2
    for index in range(middle - 20, middle + 20):
        entropy = ScriptedEntropy([floors[index] - 1, floors[index] + 1])
        assert inversion.draw(2, entropy).tolist() == [lowest + index, lowest + index + 1]


@every_law
def test_the_tail_has_no_end(slots):
    """All bits alike, for longer and longer: the draw moves outward without a limit."""
    inversion = Inversion(slots)
    seen = []
    for words in range(1, 6):
        low = inversion.draw(1, ScriptedEntropy([*[0] * words, 2**63])).item()
        high = inversion.draw(1, ScriptedEntropy([*[LAST_WORD] * words, 2**63])).item()
        assert abs(low + high) <= 1
        seen.append(high)
    assert seen == sorted(set(seen))
    assert seen[0] >= slots(64).floors.count(0)


@pytest.mark.parametrize(
    ("slots", "below"),
    [(LAPLACE, laplace_below), (ROUNDED, partial(rounded_below, SQUARE))],
    ids=["laplace", "rounded gaussian"],
)
def test_a_draw_far_in_the_tail_agrees_with_the_decimal_tail(slots, below):
    for words in (1, 2, 3):
        drawn = Inversion(slots).draw(1, ScriptedEntropy([*[LAST_WORD] * words, 2**63])).item()
        uniform = 1 - Fraction(1, 2 ** (64 * words + 1))
        assert below(drawn) <= uniform < below(drawn + 1)


@every_law
def test_the_guide_never_changes_an_outcome(slots):
    words = SeededEntropy(1).words(20_000)
    lowest, floors = slots(64)
    expected = [lowest + bisect_right(floors, int(word)) for word in words]
    assert Inversion(slots).draw(words.size, SeededEntropy(1)).tolist() == expected


def test_a_tie_leaves_its_neighbours_alone():
    lowest, floors = LAPLACE(64)
    clear = 2**63
    entropy = ScriptedEntropy([clear, floors[100], clear, floors[50], clear, LAST_WORD, 0])
    assert Inversion(LAPLACE).draw(5, entropy).tolist() == [0, lowest + 101, 0, lowest + 50, 0]


def test_settling_works_with_toy_words_too():
    def thirds(bits: int) -> Slots:
        return Slots(0, (2**bits // 3, 2 * 2**bits // 3))

    # 0.0101… is one third, so every word of this form is a tie until one differs.
    third = 0x5555555555555555
    assert settle(thirds, 0b01, 2, ScriptedEntropy([third, third, third - 1])) == 0
    assert settle(thirds, 0b01, 2, ScriptedEntropy([third, third, third + 1])) == 1
    assert settle(thirds, 0b11, 2, ScriptedEntropy([])) == 2


def test_a_boundary_at_the_very_start_of_a_cell_is_a_tie_like_any_other():
    def half(bits: int) -> Slots:
        return Slots(0, (2 ** (bits - 1),))

    entropy = ScriptedEntropy([2**63, 0, 1])
    assert Inversion(half).draw(1, entropy).tolist() == [1]
    assert entropy.left == 0


def test_the_first_and_the_last_word_are_ties_even_for_the_smallest_noise():
    tiny = Inversion(partial(laplace_slots, Fraction(1, 100), 0))
    for word in (0, LAST_WORD):
        entropy = ScriptedEntropy([word, 2**63])
        assert tiny.draw(1, entropy).tolist() == [0]
        assert entropy.left == 0
    assert tiny.draw(1, ScriptedEntropy([0, 0, 0, 1])).tolist() == [-1]


def test_more_boundaries_than_the_guide_can_hold_are_refused():
    with pytest.raises(ArithmeticError, match="Nothing was drawn"):
        Inversion(lambda bits: Slots(0, tuple(range(2**15))))


def test_a_draw_of_nothing_is_empty():
    drawn = Inversion(LAPLACE).draw(0, ScriptedEntropy([]))
    assert drawn.dtype == np.int64
    assert drawn.size == 0
