from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.exact_numbers import exact_fraction, show_fraction
from tabulary.errors import InvalidNoise, InvalidPrivacy


def read(value):
    return exact_fraction(value, name="epsilon", error=InvalidPrivacy)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (1, "1"),
        (0.1, "1/10"),
        (1e-9, "1/1000000000"),
        (-0.25, "-1/4"),
        ("1/8", "1/8"),
        (" 0.5 ", "1/2"),
        ("1e-3", "1/1000"),
        (Decimal("0.30"), "3/10"),
        (Fraction(2, 6), "1/3"),
        (np.float64(0.1), "1/10"),
    ],
)
def test_a_number_is_read_as_its_writer_meant_it(value, meant):
    assert read(value) == Fraction(meant)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_through_its_shortest_decimal(value):
    assert float(read(value)) == value
    assert read(value) == Fraction(repr(value))


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -float("inf"), "nan", "inf", Decimal("NaN"), Decimal("Infinity"), "a tenth",
     "1/0", "", " ", "1/2/3", True, False, None, [1], 1j, b"1"],
)  # fmt: skip
def test_what_is_not_a_number_is_refused_by_name(value):
    with pytest.raises(InvalidPrivacy, match=r"^epsilon must be a whole number"):
        read(value)


def test_the_error_is_the_callers():
    with pytest.raises(InvalidNoise, match=r"^scale must be"):
        exact_fraction("wide", name="scale", error=InvalidNoise)


@given(st.fractions() | st.decimals(allow_nan=False, allow_infinity=False, places=6).map(Fraction))
def test_what_is_shown_can_be_read_back_exactly(value):
    assert Fraction(show_fraction(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [("3", "3"), ("-1/2", "-0.5"), ("1/3", "1/3"), ("1e-9", "1e-9"), ("1e20", "1" + "0" * 20), ("0", "0")],
)
def test_a_fraction_is_shown_in_its_shortest_form(value, text):
    assert show_fraction(Fraction(value)) == text


def test_a_fraction_beyond_the_floats_can_be_shown():
    assert show_fraction(Fraction(10**400, 3)) == "a number of hundreds of digits"
