"""The boundaries, against decimal arithmetic that shares no line with them."""

from bisect import bisect_left, bisect_right
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.noise.slots import (
    gaussian_slots,
    half_line_slots,
    laplace_digit_slots,
    laplace_slots,
    rounded_gaussian_slots,
)
from tests.unit.noise.decimals import decimal, decimal_normal_tail

laplace_laws = pytest.mark.parametrize("scale", ["1/3", "1", "7/2", "105"])
gaussian_laws = pytest.mark.parametrize("square", ["1/5", "1", "50/3", "1600"])
ONE_VALUE_A_BLOCK = 0


def laplace_tails(scale, block_bits, count) -> list[Decimal]:
    rate = 1 / decimal(scale)
    total = 1 + (-rate).exp()
    return [(-rate * (1 + 2**block_bits * (j - 1))).exp() / total for j in range(1, count + 1)]


def gaussian_tails(square, block_bits, count) -> list[Decimal]:
    size = 2**block_bits
    rate = 1 / (2 * decimal(square))
    weights, start = [], 1
    while not weights or weights[-1] > Decimal(10) ** -120 or len(weights) < count:
        weights.append(size * (-rate * start**2).exp())
        start += size
    tails, total = [], Decimal(0)
    for weight in reversed(weights):
        total += weight
        tails.append(total)
    return [tail / (1 + 2 * total) for tail in reversed(tails)][:count]


def rounded_tails(square, count) -> list[Decimal]:
    return [
        decimal_normal_tail(Fraction((2 * k - 1) ** 2) / (4 * Fraction(square))) for k in range(1, count + 1)
    ]


def half_line_tails(square, block_bits, count) -> list[Decimal]:
    rate = 2 ** (2 * block_bits) / (2 * decimal(square))
    weights = [(-rate * j**2).exp() for j in range(max(count, int((300 / rate).sqrt())) + 1)]
    total = sum(weights)
    return [sum(weights[j:]) / total for j in range(1, count + 1)]


def floors_of(tails, bits) -> list[int]:
    return [int((tail * 2**bits).to_integral_value(ROUND_FLOOR)) for tail in tails]


def check_two_sided(slots, tails, bits):
    lowest, floors = slots
    expected = floors_of(tails(-lowest), bits)
    assert list(floors) == [*reversed(expected), *(2**bits - 1 - floor for floor in expected)]
    assert expected[-1] == 0


@laplace_laws
@pytest.mark.parametrize("block_bits", [0, 3])
@pytest.mark.parametrize("bits", [64, 128])
def test_every_laplace_boundary_is_the_floor_of_the_distribution_function(scale, block_bits, bits):
    with localcontext(prec=100):
        slots = laplace_slots(Fraction(scale), block_bits, bits)
        check_two_sided(slots, partial(laplace_tails, scale, block_bits), bits)


@gaussian_laws
@pytest.mark.parametrize("block_bits", [0, 2])
@pytest.mark.parametrize("bits", [64, 128])
def test_every_gaussian_boundary_is_the_floor_of_the_distribution_function(square, block_bits, bits):
    with localcontext(prec=100):
        slots = gaussian_slots(Fraction(square), block_bits, bits)
        check_two_sided(slots, partial(gaussian_tails, square, block_bits), bits)


@gaussian_laws
@pytest.mark.parametrize("bits", [64, 128])
def test_every_rounded_gaussian_boundary_is_the_floor_of_the_distribution_function(square, bits):
    with localcontext(prec=100):
        slots = rounded_gaussian_slots(Fraction(square), bits)
        check_two_sided(slots, partial(rounded_tails, square), bits)


@pytest.mark.parametrize(("square", "block_bits"), [("50/3", 0), ("1600", 2), ("1000000", 5)])
@pytest.mark.parametrize("bits", [64, 128])
def test_every_half_line_boundary_is_the_floor_of_the_distribution_function(square, block_bits, bits):
    lowest, floors = half_line_slots(Fraction(square), block_bits, bits)
    with localcontext(prec=100):
        expected = floors_of(half_line_tails(square, block_bits, len(floors)), bits)
    assert lowest == 0
    assert list(floors) == [2**bits - 1 - floor for floor in expected]
    assert expected[-1] == 0


@pytest.mark.parametrize(
    ("scale", "place_bits", "digit_bits"),
    [("200", 0, 1), ("1000000", 0, 12), ("1000000", 12, 1), (2**40, 24, 10)],
)
def test_every_digit_boundary_is_the_floor_of_the_distribution_function(scale, place_bits, digit_bits):
    with localcontext(prec=100):
        rate = 2**place_bits / decimal(scale)
        radix = 2**digit_bits
        whole = 1 - (-rate * radix).exp()
        expected = floors_of([(1 - (-rate * j).exp()) / whole for j in range(1, radix)], 64)
    assert laplace_digit_slots(Fraction(scale), place_bits, digit_bits, 64) == (0, tuple(expected))


def exhaustive(slots, bits):
    """The outcomes that each of the 2**bits prefixes leaves possible: one, or several on a tie."""
    lowest, floors = slots(bits)
    return [
        range(lowest + bisect_left(floors, prefix), lowest + bisect_right(floors, prefix) + 1)
        for prefix in range(2**bits)
    ]


@pytest.mark.parametrize(
    "slots",
    [
        *(partial(laplace_slots, Fraction(scale), ONE_VALUE_A_BLOCK) for scale in ("1/3", "1", "7/2")),
        *(partial(gaussian_slots, Fraction(square), ONE_VALUE_A_BLOCK) for square in ("1/5", "1", "50/3")),
        *(partial(rounded_gaussian_slots, Fraction(square)) for square in ("1/5", "1", "50/3")),
        partial(half_line_slots, Fraction(9), ONE_VALUE_A_BLOCK),
        partial(laplace_digit_slots, Fraction(9), 0, 3),
    ],
    ids=lambda slots: f"{slots.func.__name__}{slots.args}",
)
def test_more_bits_only_refine_what_fewer_bits_decided(slots):
    for bits in range(1, 11):
        coarse, fine = exhaustive(slots, bits), exhaustive(slots, bits + 1)
        lowest, highest = coarse[0][0], coarse[-1][-1]
        for prefix, outcomes in enumerate(fine):
            parents = coarse[prefix // 2]
            # The outermost outcome of a two-sided table stands for the whole tail behind it.
            clipped = {min(max(outcome, lowest), highest) for outcome in outcomes}
            assert clipped <= set(parents)


@pytest.mark.parametrize(
    ("slots", "tails"),
    [
        (
            partial(laplace_slots, Fraction("7/2"), ONE_VALUE_A_BLOCK),
            partial(laplace_tails, "7/2", ONE_VALUE_A_BLOCK),
        ),
        (
            partial(gaussian_slots, Fraction("50/3"), ONE_VALUE_A_BLOCK),
            partial(gaussian_tails, "50/3", ONE_VALUE_A_BLOCK),
        ),
        (partial(rounded_gaussian_slots, Fraction("50/3")), partial(rounded_tails, "50/3")),
    ],
    ids=["laplace", "gaussian", "rounded gaussian"],
)
@pytest.mark.parametrize("bits", [4, 8, 12])
def test_the_words_that_decide_an_outcome_weigh_at_most_its_probability(slots, tails, bits):
    outcomes = exhaustive(slots, bits)
    upper = [0.5, *map(float, tails(40))]
    for k in range(-30, 31):
        probability = upper[abs(k)] - upper[abs(k) + 1] if k else 1 - 2 * upper[1]
        surely = sum(1 for possible in outcomes if list(possible) == [k])
        perhaps = sum(
            1 for possible in outcomes if k in possible or k < outcomes[0][0] or k > outcomes[-1][-1]
        )
        assert surely / 2**bits <= probability <= perhaps / 2**bits


def probabilities(slots, bits=256) -> dict[int, Fraction]:
    """The probability of each outcome, to within 2**(1 - bits)."""
    lowest, floors = slots(bits)
    ends = [0, *floors, 2**bits]
    return {lowest + i: Fraction(ends[i + 1] - ends[i], 2**bits) for i in range(len(ends) - 1)}


def test_block_and_digits_of_a_laplace_draw_multiply_to_the_law():
    scale, bits, first, second = Fraction(50), 256, 2, 3
    block = probabilities(partial(laplace_slots, scale, first + second), bits)
    low = probabilities(partial(laplace_digit_slots, scale, 0, first), bits)
    high = probabilities(partial(laplace_digit_slots, scale, first, second), bits)
    with localcontext(prec=100):
        rate = 1 / decimal(scale)
        total = (1 + (-rate).exp()) / (1 - (-rate).exp())
        for k in range(1, 400):
            j, offset = divmod(k - 1, 2 ** (first + second))
            drawn = block[j + 1] * low[offset % 2**first] * high[offset >> first]
            assert abs(decimal(drawn) - (-rate * k).exp() / total) < Decimal(10) ** -70
        assert abs(decimal(block[0]) - 1 / total) < Decimal(10) ** -70


def test_envelope_and_acceptance_of_a_gaussian_draw_multiply_to_the_law():
    square, block_bits = Fraction(400), 2
    block = probabilities(partial(gaussian_slots, square, block_bits))
    with localcontext(prec=100):
        rate = 1 / (2 * decimal(square))
        for k in range(1, 150):
            j, offset = divmod(k - 1, 2**block_bits)
            start = k - offset
            kept = decimal(block[j + 1]) / 2**block_bits * (-rate * (k**2 - start**2)).exp()
            assert abs(kept / decimal(block[0]) - (-rate * k**2).exp()) < Decimal(10) ** -60


def test_the_envelope_of_a_rounded_gaussian_draw_is_the_density_where_each_block_starts():
    square, block_bits = Fraction(400), 2
    block = probabilities(partial(half_line_slots, square, block_bits))
    with localcontext(prec=100):
        rate = 1 / (2 * decimal(square))
        for j in range(1, 40):
            expected = (-rate * (j << block_bits) ** 2).exp()
            assert abs(decimal(block[j]) / decimal(block[0]) - expected) < Decimal(10) ** -60


@pytest.mark.parametrize(
    ("slots", "arguments"),
    [
        (laplace_slots, (Fraction(105), 0)),
        (laplace_slots, (Fraction(10**6), 13)),
        (laplace_digit_slots, (Fraction(10**6), 0, 12)),
        (laplace_digit_slots, (Fraction(2**40), 0, 6)),
        (gaussian_slots, (Fraction(1600), 0)),
        (gaussian_slots, (Fraction(10**12), 11)),
        (rounded_gaussian_slots, (Fraction(1600),)),
        (rounded_gaussian_slots, (Fraction(1, 7),)),
        (half_line_slots, (Fraction(10**12), 11)),
    ],
)
@pytest.mark.parametrize("bits", [40, 64])
def test_the_precision_decides_whether_the_floors_are_found_and_never_what_they_are(
    slots, arguments, bits, monkeypatch
):
    ample = slots(*arguments, bits)
    # So few guard bits that enclosures do straddle: were one of them too narrow, a floor would be wrong.
    monkeypatch.setattr("tabulary.noise.enclosure.GUARDS", tuple(range(8, 200, 8)))
    assert slots.__wrapped__(*arguments, bits) == ample


@settings(deadline=None, max_examples=30)
@given(st.fractions(min_value=Fraction(1, 50), max_value=60, max_denominator=1000))
def test_slots_ascend_and_mirror_each_other(parameter):
    for lowest, floors in (
        laplace_slots(parameter, 0, 64),
        gaussian_slots(parameter, 0, 64),
        rounded_gaussian_slots(parameter, 64),
    ):
        assert list(floors) == sorted(floors)
        assert [2**64 - 1 - floor for floor in reversed(floors)] == list(floors)
        assert len(floors) == -2 * lowest
