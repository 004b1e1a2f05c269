"""A column given its sum: every filling, how likely it is, and what was left out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.errors import InvalidTable
from tabulary.table_samplers.columns import WHOLE, Column, window
from tabulary.table_samplers.poisson_binomial import PoissonBinomial
from tests.suppressed_tables import law, priors


@st.composite
def columns(draw):
    count_laws = [
        PoissonBinomial([draw(st.integers(0, 4))], [draw(st.sampled_from([0.1, 0.4, 0.8]))])
        for _ in range(draw(st.integers(1, 4)))
    ]
    value = [draw(st.integers(0, count_law.size)) for count_law in count_laws]
    theta = np.array([draw(st.sampled_from([-1.0, 0.0, 2.0])) for _ in count_laws])
    return count_laws, theta, sum(value)


def _column(count_laws, theta, total, cut=0.0):
    sizes = np.array([count_law.size for count_law in count_laws])
    return Column.of(count_laws, np.zeros_like(sizes), sizes, theta, total, cut=cut)


@given(columns())
def test_every_filling_is_listed_once_with_its_probability(made):
    count_laws, theta, total = made
    column = _column(count_laws, theta, total)
    listed = [x for x in product(*(range(count_law.size + 1) for count_law in count_laws)) if sum(x) == total]
    weights = np.array(
        [
            np.prod([law(priors(c))[v] * np.exp(v * t) for c, v, t in zip(count_laws, x, theta, strict=True)])
            for x in listed
        ]
    )
    assert [tuple(filling) for filling in column.low + column.cells] == listed
    np.testing.assert_allclose(column.weights, weights / weights.sum(), atol=1e-12)
    assert column.fillings == len(listed)
    assert column.dropped == 0


def test_what_is_left_out_of_wide_cells_is_less_than_it_says():
    count_laws = [PoissonBinomial([300], [0.3]), PoissonBinomial([200], [0.5]), PoissonBinomial([100], [0.4])]
    whole, cut = (_column(count_laws, np.zeros(3), 230, cut=share) for share in (0.0, 1e-6))
    assert (cut.widths < whole.widths).all()
    assert cut.fillings == len(cut.cells) < whole.fillings
    missing = 1 - cut.weights.sum()
    assert 0 < missing <= cut.dropped <= 6 * 1e-6
    assert whole.weights.sum() == pytest.approx(1, abs=1e-12)


def test_a_sum_that_the_cells_cannot_have_is_refused():
    with pytest.raises(InvalidTable, match="contradicts"):
        _column([PoissonBinomial([3], [0.5]), PoissonBinomial([3], [0.5])], np.zeros(2), 7)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=80), st.floats(1e-6, 0.4))
def test_a_window_loses_no_more_than_it_may_and_says_how_much(weights, cut):
    values = np.array(weights)
    first, last, lost = window(values, cut)
    assert 0 <= first < last <= values.size
    assert values[:first].sum() <= cut * (1 + 1e-9)
    assert values[last:].sum() <= cut * (1 + 1e-9)
    assert lost == pytest.approx(values[:first].sum() + values[last:].sum())
    if values.size <= WHOLE:
        assert (first, last) == (0, values.size)
