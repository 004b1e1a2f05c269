from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.errors import InvalidArgument, InvalidColumn
from tabulary.toolbox import Bounds
from tabulary.toolbox.bounds import numbers_of

SECRET = 987654.321


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    st.integers(-50, 50),
    st.integers(1, 100),
    st.sampled_from(["1", "1/3", "0.1", "7", "1/1024"]),
)
def test_every_clamped_value_becomes_a_step_inside_the_bounds(values, low, width, unit):
    step = Fraction(unit)
    bounds = Bounds(low * step, (low + width) * step, unit=unit, clamp=True)
    steps = bounds.steps(values)
    assert steps.min() >= bounds.lowest
    assert steps.max() <= bounds.highest


@given(st.integers(0, 1000))
def test_a_value_on_the_grid_is_its_own_step(k):
    assert Bounds(0, 100, unit="0.1").steps([k / 10]).tolist() == [k]


@given(st.floats(0, 1))
def test_rounding_moves_a_value_by_half_a_unit_at_most(value):
    (step,) = Bounds(0, 1, unit="1/64").steps([value])
    assert abs(Fraction(int(step), 64) - Fraction(value)) <= Fraction(1, 128)


@pytest.mark.parametrize("outside", [-0.001, 10.001, 1e300])
def test_a_value_outside_is_refused_without_being_told(outside):
    with pytest.raises(InvalidColumn, match="outside its bounds 0 to 10") as caught:
        Bounds(0, 10).steps([5, outside])
    assert str(outside) not in str(caught.value)
    assert "nothing was spent" in str(caught.value)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.0, float("nan")], "missing or not finite"),
        ([SECRET, float("inf")], "missing or not finite"),
        ([SECRET, None], "is not a number"),
        ([SECRET, "7"], "is not a number"),
        (["7"], "is not a number"),
        ([1 + 2j], "is not a number"),
        ([[1, 2]], "a column of numbers"),
        (3, "a column of numbers"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "is not a number"),
        (np.ma.masked_array([1.0, SECRET], [False, True]), "is not a number"),
        (pd.Series([1, None], dtype="Int64"), "missing or not finite"),
    ],
)
def test_what_is_no_column_of_numbers_is_refused_without_being_told(values, reason):
    with pytest.raises(InvalidColumn, match=reason) as caught:
        numbers_of(values)
    assert "987654" not in str(caught.value)
    assert "nothing was spent" in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [[1, 2], (1.0, 2.0), np.array([True, False]), pd.Series([1, 2]), [Fraction(1, 2), Decimal("0.25")]],
)
def test_numbers_of_every_kind_are_read(values):
    assert numbers_of(values).tolist() == [float(value) for value in values]


def test_a_value_outside_is_moved_or_refused_and_nothing_else():
    with pytest.raises(InvalidArgument, match="clamp"):
        Bounds(0, 1, clamp="drop")


@pytest.mark.parametrize(
    ("low", "high", "unit", "says"),
    [
        (1, 1, 1, "low < high"),
        (2, 1, 1, "low < high"),
        (0, 1, 0, "positive"),
        (0, 1, -1, "positive"),
        (0, 1, "2/3", "multiples of the unit"),
        ("1/2", 2, 1, "multiples of the unit"),
        (0, 1, "1e-15", "coarser unit"),
        (float("nan"), 1, 1, "low"),
        (0, "ten", 1, "high"),
    ],
)
def test_bounds_that_cannot_be_are_refused(low, high, unit, says):
    with pytest.raises(InvalidArgument, match=says):
        Bounds(low, high, unit=unit)
