"""Curves of errors: they rise with the count, stay finite, and are read back strictly."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidTable
from tabulary.planning import CurveErrors, ErrorCurve

numbers = st.floats(0, 1e15)
CURVE = ErrorCurve(low=6.0, high=10.0, reach=40.0)
COUNTS = np.array([[0, 40, 7], [1, 1_000, 0]])
IMPOSSIBLE = np.array([[False, False, True], [False, False, False]])


@st.composite
def curves(draw):
    low, high = sorted((draw(numbers), draw(numbers)))
    return ErrorCurve(low, high, draw(st.floats(1e-9, 1e15)))


@given(curves(), st.lists(st.floats(-1e15, 1e15), min_size=1))
def test_half_widths_are_finite_rise_with_the_count_and_stay_between_the_ends(curve, counts):
    widths = curve.half_widths(np.sort(counts))
    assert np.isfinite(widths).all()
    slack = 1e-9 * (1 + curve.high)
    assert (np.diff(widths) >= -slack).all()
    assert (widths >= curve.low - slack).all()
    assert (widths <= curve.high + slack).all()


@given(curves())
def test_a_curve_is_read_back_from_json_as_it_was(curve):
    assert ErrorCurve.from_description(json.loads(json.dumps(curve.describe()))) == curve


@pytest.mark.parametrize(
    "described",
    [
        {"low": -1.0, "high": 1.0, "reach": 1.0},
        {"low": 2.0, "high": 1.0, "reach": 1.0},
        {"low": 1.0, "high": 2.0, "reach": 0.0},
        {"low": 1.0, "high": math.inf, "reach": 1.0},
        {"low": math.nan, "high": 1.0, "reach": 1.0},
        {"low": 1.0, "high": 1e300, "reach": 1.0},
        {"low": 1, "high": 10**400, "reach": 1},
        {"low": "1", "high": 2.0, "reach": 1.0},
        {"low": True, "high": 2.0, "reach": 1.0},
        {"low": [1.0], "high": 2.0, "reach": 1.0},
        {"low": 1.0, "high": 2.0},
        {"low": 1.0, "high": 2.0, "reach": 1.0, "more": 1.0},
        {},
        [1.0, 2.0, 3.0],
        None,
        "low",
    ],
    ids=repr,
)
def test_what_is_not_a_curve_is_refused(described):
    with pytest.raises(InvalidTable, match="a curve of errors"):
        ErrorCurve.from_description(described)


def test_impossible_cells_are_exact_and_no_others():
    errors = CurveErrors(COUNTS, CURVE, IMPOSSIBLE)
    assert ((errors.standard_errors == 0) == IMPOSSIBLE).all()
    assert ((errors.half_widths(0.9) == 0) == IMPOSSIBLE).all()


def test_the_standard_error_is_that_of_a_normal_error_with_the_same_interval():
    errors = CurveErrors(COUNTS, CURVE, IMPOSSIBLE)
    assert errors.half_widths(0.95) == pytest.approx(1.959964 * errors.standard_errors)
    assert errors.half_widths(0.99)[0, 0] == pytest.approx(2.575829 / 1.959964 * CURVE.low)


def test_parts_and_turned_tables_keep_the_errors_of_their_cells():
    errors = CurveErrors(COUNTS, CURVE, IMPOSSIBLE)
    widths = errors.half_widths(0.95)
    assert (errors.transpose([1, 0]).half_widths(0.95) == widths.T).all()
    assert (errors.at((slice(None), 1)).half_widths(0.95) == widths[:, 1]).all()
    assert errors.at((0, 1)).half_widths(0.95).shape == ()


def test_intervals_of_a_table_with_a_curve_do_not_leave_what_is_possible():
    domain = tb.Domain({"a": "xy", "b": "uvw"})
    lower, upper = tb.ReleasedTable(
        tb.Table(domain, COUNTS), CurveErrors(COUNTS, CURVE, IMPOSSIBLE)
    ).interval()
    assert (lower >= 0).all()
    assert lower[1, 1] > 900
    assert upper[0, 0] == CURVE.low
