"""A level stands for the value that is shown so, and for no other."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tabulary.confidential.coding import text_of
from tabulary.confidential.engines.recoding.level_values import double_of, integer_of, least_single, single_of

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SINGLES = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(FINITE)
def test_a_double_is_found_by_its_text(number: float) -> None:
    assert double_of(text_of(number)) == number


@given(st.integers())
def test_a_whole_number_is_found_by_its_digits_and_by_no_others(number: int) -> None:
    assert integer_of(str(number)) == (number if abs(number) < 10**39 else None)
    assert integer_of(f"{number:+05d}") is None or number < -999


@given(SINGLES)
def test_a_number_of_32_bits_is_found_by_its_own_text_and_not_by_that_of_64_bits(number: float) -> None:
    shown = float(str(np.float32(number)))
    text = text_of(number if number.is_integer() and abs(number) <= 2**53 else shown)
    assert single_of(text) == number
    if text_of(number) != text:
        assert single_of(text_of(number)) is None


@given(SINGLES, FINITE | SINGLES, st.integers(-2, 2))
def test_a_number_of_32_bits_reaches_an_edge_if_what_it_is_shown_as_does(
    number: float, edge: float, steps: int
) -> None:
    beside = np.float32(number)
    for _ in range(abs(steps)):
        beside = np.nextafter(beside, np.float32(math.copysign(math.inf, steps)))
    for limit in (edge, number, float(str(beside))):
        if math.isfinite(limit):
            assert (number >= least_single(limit)) == (float(str(np.float32(number))) >= limit)
