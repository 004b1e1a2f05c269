import numpy as np
import pytest

import tabulary as tb
from tabulary.noise import DiscreteLaplace
from tabulary.planning import CellErrors

DOMAIN = tb.Domain(
    {"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"], "job": ["none", "paid"]},
    structural_zeros=[{"age": "0-14", "job": "paid"}],
)


def test_a_structural_zero_has_no_error():
    plan = tb.plan(DOMAIN, "[age job]", privacy=tb.PureDP(1), mechanism="cells")
    errors = plan.error_of(("age", "job"))
    assert errors.standard_errors[0, 1] == 0
    assert errors.half_widths(0.95)[0, 1] == 0
    assert (errors.standard_errors.reshape(-1)[[0, 2, 3, 4, 5]] > 0).all()


def test_a_margin_of_noisy_cells_sums_one_draw_for_each_possible_cell():
    plan = tb.plan(DOMAIN, "[age][age job sex]", privacy=tb.PureDP(1), mechanism="cells")
    assert plan.error_of(("age",)).terms.tolist() == [2, 4, 4]


def test_a_margin_is_taken_from_the_measurement_with_the_smallest_error():
    work = tb.Workload.parse("[sex][sex age]", DOMAIN).weighted({("sex", "age"): 100})
    plan = tb.plan(DOMAIN, work, privacy=tb.PureDP(1), mechanism="margins")
    assert plan.measured[plan.estimator.source_position(("sex",))].margin == ("sex", "age")


def test_expected_error_is_the_root_mean_square_and_the_widest_half_width():
    plan = tb.plan(DOMAIN, "[age][age job sex]", privacy=tb.PureDP(1), mechanism="cells")
    row = plan.expected_error()[("age",)]
    variance = DiscreteLaplace(1).variance
    assert row.cells == 3
    assert row.standard_error == pytest.approx(np.sqrt((2 + 4 + 4) / 3 * variance))
    assert row.half_width == DiscreteLaplace(1).half_width(0.95, terms=4)


def test_expected_errors_print_as_a_table_and_become_a_frame():
    expected = tb.plan(DOMAIN, "[sex][sex age]", privacy=tb.PureDP(1)).expected_error()
    assert str(expected).splitlines()[1].startswith("[sex] ")
    assert list(expected.to_pandas().columns) == ["margin", "cells", "standard_error", "half_width"]


def test_errors_cannot_be_changed_afterwards():
    errors = CellErrors(DiscreteLaplace(1), np.array([1, 2]))
    with pytest.raises(ValueError, match="read-only"):
        errors.terms[0] = 5


def test_errors_of_noise_that_is_nearly_always_zero_are_nearly_zero():
    domain = tb.Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]})
    plan = tb.plan(domain, "[sex age]", privacy=tb.PureDP(20), mechanism="residual", reconstruct="none")
    widths = plan.error_of(("sex", "age")).half_widths(0.95)
    assert np.all((widths > 0) & (widths < 0.01))
    assert np.all(plan.error_of(("sex", "age")).half_widths(0.5) >= 0)
