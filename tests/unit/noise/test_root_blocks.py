"""The blocks in whole numbers against roots and exponentials in decimal arithmetic, and the ties of both coins."""

from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.noise.inversion import Inversion
from tabulary.noise.root_blocks import RootBlocks
from tests.entropy import ScriptedEntropy, SeededEntropy
from tests.unit.noise.decimals import decimal, words_of

DIGITS = 150
# Blocks so far that what lies beyond has a probability below 2**-380.
REACH = 1_100
LAST_WORD = 2**64 - 1

rates = st.one_of(
    st.fractions(min_value=Fraction(1, 200), max_value=50, max_denominator=200),
    st.sampled_from([Fraction(1, 2**20), Fraction(2**20), Fraction(1, 2), Fraction(1, 4), Fraction(1, 3)]),
)
centres = st.one_of(
    st.integers(min_value=0, max_value=30),
    st.integers(min_value=0, max_value=2**50),
    st.integers(min_value=0, max_value=2**25).map(lambda root: root * root),
)

LAWS = [
    (Fraction(1, 200), 3),
    (Fraction(1, 4), 0),
    (Fraction(1, 4), 10),
    (Fraction(1, 4), 10**12),
    (Fraction(3, 4), 144),
    (Fraction(7, 3), 1),
    (Fraction(50), 0),
    (Fraction(50), 3),
]
every_law = pytest.mark.parametrize(("rate", "centre"), LAWS, ids=lambda value: str(value))


def distance(value: int, centre: int) -> Decimal:
    return abs(Decimal(value).sqrt() - Decimal(centre).sqrt())


@cache
def proposed_below(rate: Fraction, centre: int) -> dict[int, Decimal]:
    """P(a proposal lies below a place) for all places within REACH blocks, to a hundred digits."""
    blocks = RootBlocks(rate, centre)
    with localcontext(prec=DIGITS):
        weights = []
        for place in range(-REACH, REACH + 1):
            first, end = blocks.ends(place)
            padded = next(2**k for k in range(64) if 2**k >= end - first) if end > first else 0
            weights.append(padded * (-decimal(rate * blocks.width) * abs(place)).exp())
        total = sum(weights, Decimal(0))
        sums = accumulate(weights, initial=Decimal(0))
        return {place: below / total for place, below in enumerate(sums, start=-REACH)}


@given(rate=rates)
def test_the_width_is_the_largest_power_of_two_that_keeps_a_block_flat(rate):
    width = RootBlocks(rate, 0).width
    assert rate * width <= Fraction(1, 2) < 2 * rate * width
    assert (width.numerator & (width.numerator - 1), width.denominator & (width.denominator - 1)) == (0, 0)


@given(rate=rates, centre=centres, place=st.integers(min_value=-60, max_value=60))
def test_a_block_holds_exactly_the_integers_at_its_distance(rate, centre, place):
    blocks = RootBlocks(rate, centre)
    first, end = blocks.ends(place)
    assert first >= 0
    with localcontext(prec=DIGITS):
        width = decimal(blocks.width)
        for value in {first, end - 1} if end > first else ():
            steps = int((distance(value, centre) / width).to_integral_value(ROUND_FLOOR))
            assert steps == abs(place)
            assert place == 0 or (value > centre) == (place > 0)


@given(rate=rates, centre=centres)
def test_every_integer_lies_in_one_block(rate, centre):
    blocks = RootBlocks(rate, centre)
    first, end = blocks.ends(0)
    assert first <= centre < end
    for place in range(1, 60):
        above, below = blocks.ends(place), blocks.ends(-place)
        assert above[0] == end
        assert below[1] == first
        first, end = below[0], above[1]
        assert first >= 0
    assert first == 0 or 60 * blocks.width <= Fraction(np.sqrt(centre)) * (1 + Fraction(1, 10**9))


@every_law
@pytest.mark.parametrize("bits", [64, 128])
def test_the_slots_are_the_floors_of_the_exact_boundaries(rate, centre, bits):
    lowest, floors = RootBlocks(rate, centre).slots(bits)
    below = proposed_below(rate, centre)
    with localcontext(prec=DIGITS):
        expected = [int(below[lowest + 1 + i] * 2**bits) for i in range(len(floors))]
    # Far out the boundary is one, to the digits that are carried.
    assert list(floors) == [min(floor, 2**bits - 1) for floor in expected]


@every_law
def test_what_lies_beyond_the_outer_slots_is_a_tie(rate, centre):
    """The last word, always; and the first, unless every value down to zero has a place of its own."""
    lowest, floors = RootBlocks(rate, centre).slots(64)
    assert floors[-1] == LAST_WORD
    assert floors[0] == 0 or RootBlocks(rate, centre).ends(lowest)[0] == 0


@every_law
@pytest.mark.parametrize("depth", [1, 2])
def test_a_tie_between_places_is_settled_on_the_right_side(rate, centre, depth):
    """The script follows the binary digits of a boundary for `depth` words, then steps off by one."""
    blocks = RootBlocks(rate, centre)
    inversion = Inversion(blocks.slots)
    places = [place for place in range(-130, 131) if len(range(*blocks.ends(place)))]
    pairs = sorted(pairwise(places), key=lambda pair: abs(pair[1]))[:12]
    checked = 0
    for lower, upper in pairs:
        *prefix, last = words_of(Fraction(proposed_below(rate, centre)[upper]), depth + 1)
        for step, expected in ((-1, lower), (1, upper)):
            if 0 <= last + step <= LAST_WORD:
                entropy = ScriptedEntropy([*prefix, last + step])
                assert inversion.draw(1, entropy).tolist() == [expected]
                assert entropy.left == 0
                checked += 1
    assert checked


@every_law
def test_a_place_far_in_the_tail_is_the_one_that_the_decimal_tail_says(rate, centre):
    blocks = RootBlocks(rate, centre)
    inversion, below = Inversion(blocks.slots), proposed_below(rate, centre)
    for words in (1, 2, 3, 4):
        for script, uniform in (
            ([*[LAST_WORD] * words, 2**63], 1 - Fraction(1, 2 ** (64 * words + 1))),
            ([*[0] * words, 2**63], Fraction(1, 2 ** (64 * words + 1))),
        ):
            place = inversion.draw(1, ScriptedEntropy(script)).item()
            assert Fraction(below[place]) <= uniform < Fraction(below[place + 1])


def coin(blocks: RootBlocks, place: int, value: int, script: list[int]) -> tuple[bool, int]:
    entropy = ScriptedEntropy(script)
    kept = blocks.keep(np.array([place]), np.array([value]), entropy)
    return bool(kept[0]), entropy.left


def exponent(blocks: RootBlocks, place: int, value: int) -> Fraction:
    with localcontext(prec=DIGITS):
        inner = distance(value, blocks.centre) - abs(place) * decimal(blocks.width)
        return Fraction(decimal(blocks.rate) * inner)


BLOCKS = RootBlocks(Fraction(1, 2), 10)
# Roots that are irrational, one that is whole, and one on the edge of its block.
PROPOSALS = [(BLOCKS, 0, 13), (BLOCKS, -1, 3), (BLOCKS, 0, 9), (BLOCKS, 4, 60)]


@pytest.mark.parametrize(("blocks", "place", "value"), PROPOSALS)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_coin_that_doubles_cannot_tell_is_settled_on_the_exact_side(blocks, place, value, depth):
    """The first uniform number follows the digits of x. At or above x the value is kept, and that is all."""
    *prefix, last = words_of(exponent(blocks, place, value), depth + 1)
    assert coin(blocks, place, value, [*prefix, last + 3]) == (True, 0)
    # Below x another number decides: the last word is above x/2, so the value is not kept.
    assert coin(blocks, place, value, [*prefix, last - 3, LAST_WORD]) == (False, 0)


@pytest.mark.parametrize("order", [2, 3])
def test_later_numbers_of_a_coin_are_settled_against_their_share(order):
    blocks, place, value = PROPOSALS[0]
    *prefix, last = words_of(exponent(blocks, place, value) / order, 3)
    below = [0] * (order - 1)
    assert coin(blocks, place, value, [*below, *prefix, last + 3]) == (order % 2 == 1, 0)
    assert coin(blocks, place, value, [*below, *prefix, last - 3, LAST_WORD]) == (order % 2 == 0, 0)


def test_the_centre_is_kept_by_every_word_that_is_not_zero():
    for centre in (0, 10, 9):
        blocks = RootBlocks(Fraction(1, 2), centre)
        assert coin(blocks, 0, centre, [2**63]) == (True, 0)
        assert coin(blocks, 0, centre, [1]) == (True, 0)
    assert coin(BLOCKS, 0, 9, [0, LAST_WORD]) == (False, 0)


def test_a_value_exactly_on_the_inner_edge_of_its_block_is_kept():
    # √25 - √9 = 2 and w = 1: the exponent is zero.
    blocks = RootBlocks(Fraction(1, 2), 9)
    assert blocks.ends(2)[0] == 25
    assert coin(blocks, 2, 25, [1]) == (True, 0)


@every_law
def test_the_coin_in_doubles_agrees_with_the_coin_in_integers(rate, centre):
    blocks = RootBlocks(rate, centre)
    places = Inversion(blocks.slots).draw(300, SeededEntropy(1))
    firsts, sizes, _ = blocks.described(places)
    values = firsts + np.arange(places.size) % sizes
    kept = blocks.keep(places, values, SeededEntropy(2))
    entropy = SeededEntropy(2)
    undecided, order = list(range(places.size)), 1
    while undecided:
        below = []
        for index, word in zip(undecided, entropy.words(len(undecided)).tolist(), strict=True):
            share = exponent(blocks, int(places[index]), int(values[index])) / order
            if word < int(share * 2**64):
                below.append(index)
            else:
                assert kept[index] == (order % 2 == 1)
        undecided, order = below, order + 1


@settings(deadline=None, max_examples=30)
@given(rate=rates, centre=centres)
def test_at_least_three_proposals_in_ten_are_kept(rate, centre):
    """What the law weighs over what the proposals weigh, block by block."""
    blocks = RootBlocks(rate, centre)
    ratio = float(rate * blocks.width)
    for place in range(-40, 41):
        first, end = blocks.ends(place)
        if end == first:
            continue
        value = np.array([first, end - 1], dtype=np.int64)
        _, sizes, bits = blocks.described(np.array([place]))
        assert 2 * sizes[0] > 2 ** bits[0] >= sizes[0] == end - first
        for each in value.tolist():
            x = float(exponent(blocks, place, each))
            assert 0 <= x < ratio <= 0.5
            assert np.exp(-x) * sizes[0] / 2.0 ** bits[0] >= 0.3
