from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tabulary import Domain
from tabulary.infer.boundary import degrees_of_freedom, positive_cells
from tabulary.infer.fitting import fitted_counts
from tabulary.infer.models import LogLinearModel

MODELS = ["[AB][AC][BC]", "[AB][BC]", "[A][B][C]", "[AB][C]", "[ABC]", "[A][BC]", "[AB]", "[]"]


@st.composite
def sparse_tables(draw, zeros=False):
    shape = draw(st.tuples(st.integers(2, 3), st.integers(2, 3), st.integers(2, 2)))
    impossible = []
    if zeros:
        cells = st.tuples(*(st.integers(0, k - 1) for k in shape))
        impossible = [dict(zip("ABC", cell, strict=True)) for cell in draw(st.lists(cells, max_size=3))]
    domain = Domain({a: range(k) for a, k in zip("ABC", shape, strict=True)}, impossible)
    size = int(np.prod(shape))
    counts = draw(st.lists(st.sampled_from([0, 0, 1, 2, 7]), min_size=size, max_size=size))
    counts = np.where(domain.impossible(domain.attributes), 0.0, np.reshape(counts, shape))
    return LogLinearModel.parse(draw(st.sampled_from(MODELS)), domain), counts


def can_be_positive(model, counts):
    """For every cell by itself: the most that it can be in a non-negative table with the same margins."""
    domain = model.domain
    impossible = domain.impossible(domain.attributes).reshape(-1)
    design = model.design(np.arange(counts.size)).T
    bounds = [(0, 0) if never else (0, None) for never in impossible]
    most = [
        -linprog(-np.eye(counts.size)[c], A_eq=design, b_eq=design @ counts.reshape(-1), bounds=bounds).fun
        for c in range(counts.size)
    ]
    return np.reshape(np.array(most) > 1e-7, counts.shape)


def exact_rank(matrix):
    rows = [[Fraction(int(v)) for v in row] for row in matrix]
    rank = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][column] / rows[rank][column]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank


@settings(max_examples=60, deadline=None)
@given(sparse_tables(zeros=True))
def test_the_positive_cells_are_those_that_some_table_with_the_same_margins_has(drawn):
    model, counts = drawn
    assert np.array_equal(positive_cells(model, counts), can_be_positive(model, counts))


@settings(max_examples=60, deadline=None)
@given(sparse_tables(zeros=True))
def test_degrees_of_freedom_are_positive_cells_less_their_exact_rank(drawn):
    model, counts = drawn
    positive = positive_cells(model, counts)
    rank = exact_rank(model.design(np.flatnonzero(positive)))
    assert degrees_of_freedom(model, positive) == positive.sum() - rank


@settings(max_examples=60, deadline=None)
@given(sparse_tables(zeros=True))
def test_the_fit_is_positive_on_these_cells_and_has_the_margins_of_the_counts(drawn):
    model, counts = drawn
    positive = positive_cells(model, counts)
    fitted = fitted_counts(model, counts, positive)
    assert np.array_equal(fitted > 0, positive)
    margins = model.margins
    np.testing.assert_allclose(margins.forward(fitted), margins.forward(counts), atol=1e-9)


def test_two_opposite_zeros_leave_no_three_way_table_inside_the_model():
    # Haberman's example: all margins are positive, and still no estimate exists inside.
    model = LogLinearModel.parse("[AB][AC][BC]", Domain({"A": "xy", "B": "xy", "C": "xy"}))
    counts = np.array([[[0.0, 3], [4, 5]], [[6, 7], [8, 0]]])
    assert (model.margins.forward(counts) > 0).all()
    positive = positive_cells(model, counts)
    assert np.array_equal(positive, counts > 0)
    assert degrees_of_freedom(model, positive) == 0
    assert np.allclose(fitted_counts(model, counts, positive), counts)


def test_one_zero_alone_leaves_the_estimate_inside():
    model = LogLinearModel.parse("[AB][AC][BC]", Domain({"A": "xy", "B": "xy", "C": "xy"}))
    counts = np.array([[[0.0, 3], [4, 5]], [[6, 7], [8, 2]]])
    assert positive_cells(model, counts).all()


@settings(max_examples=60, deadline=None)
@given(sparse_tables())
def test_a_larger_model_never_has_more_degrees_of_freedom(drawn):
    model, counts = drawn
    freedom = degrees_of_freedom(model, positive_cells(model, counts))
    for generator in model.generators:
        if generator:
            smaller = model.without(generator)
            assert degrees_of_freedom(smaller, positive_cells(smaller, counts)) >= freedom


@pytest.mark.parametrize("model", MODELS)
def test_an_empty_table_has_no_positive_cell_and_no_freedom(model):
    parsed = LogLinearModel.parse(model, Domain({"A": "xy", "B": "xy", "C": "xy"}))
    positive = positive_cells(parsed, np.zeros((2, 2, 2)))
    assert not positive.any()
    assert degrees_of_freedom(parsed, positive) == 0
