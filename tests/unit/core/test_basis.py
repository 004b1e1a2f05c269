"""The integer contrasts, beside the matrices that they never become."""

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tabulary.core import basis

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def helmert(levels):
    """The basis of one attribute, written down entry by entry."""
    matrix = np.zeros((levels, levels), dtype=np.int64)
    matrix[0] = 1
    for i in range(1, levels):
        matrix[i, :i] = 1
        matrix[i, i] = -i
    return matrix


def kronecker(shape):
    """The basis of a table as one matrix: rows are contrasts, columns are cells."""
    return reduce(np.kron, map(helmert, shape), np.ones((1, 1), dtype=np.int64))


@st.composite
def tables(draw):
    return draw(arrays.arrays(np.int64, draw(shapes), elements=st.integers(-(10**6), 10**6)))


@given(tables())
@settings(max_examples=60)
def test_contrasts_are_the_rows_of_the_kronecker_product_times_the_table_to_the_last_digit(table):
    found = basis.contrasts(table)
    assert found.dtype == np.int64
    assert (found.reshape(-1) == kronecker(table.shape) @ table.reshape(-1)).all()


@given(tables())
@settings(max_examples=60)
def test_the_adjoint_is_the_transposed_matrix(table):
    assert (basis.adjoint(table).reshape(-1) == kronecker(table.shape).T @ table.reshape(-1)).all()


@given(tables(), st.integers(0, 2**32))
@settings(max_examples=40)
def test_a_product_with_contrasts_is_a_product_with_the_adjoint(table, seed):
    other = np.random.default_rng(seed).integers(-1000, 1000, table.shape)
    assert (basis.contrasts(table) * other).sum() == (table * basis.adjoint(other)).sum()


@given(shapes)
def test_different_rows_are_orthogonal_and_their_lengths_are_the_squared_norms(shape):
    rows = kronecker(shape)
    assert (rows @ rows.T == np.diag(basis.squared_norms(shape).reshape(-1))).all()


@given(tables())
@settings(max_examples=40)
def test_the_table_of_its_contrasts_is_the_table(table):
    assert basis.table_of(basis.contrasts(table)) == pytest.approx(table, abs=1e-6)


@given(tables())
@settings(max_examples=40)
def test_contrasts_of_a_margin_are_those_of_the_table_that_do_not_vary_elsewhere(table):
    for axis in range(table.ndim):
        assert (basis.contrasts(table.sum(axis=axis)) == basis.contrasts(table).take(0, axis=axis)).all()


@pytest.mark.parametrize("levels", range(1, 9))
def test_what_a_level_adds_to_the_contrasts_of_one_attribute_has_the_stated_norms(levels):
    columns = helmert(levels)[1:]
    assert (np.abs(columns).sum(axis=0) == basis.level_l1(levels)).all()
    assert ((columns**2).sum(axis=0) == basis.level_l2_squared(levels)).all()
    assert (basis.contrast_matrix(levels) == helmert(levels)).all()


@given(shapes)
def test_the_coefficients_of_all_subsets_are_as_many_as_the_cells(shape):
    subsets = range(2 ** len(shape))
    of = [tuple(k for i, k in enumerate(shape) if s >> i & 1) for s in subsets]
    assert sum(map(basis.coefficients, of)) == math.prod(shape)


def test_on_two_levels_the_contrasts_are_the_walsh_hadamard_transform():
    table = np.arange(8).reshape(2, 2, 2) ** 2
    signs = [[(-1) ** bin(s & x).count("1") for x in range(8)] for s in range(8)]
    assert basis.contrasts(table).reshape(-1).tolist() == (np.array(signs) @ table.reshape(-1)).tolist()


def test_a_table_of_real_numbers_has_real_contrasts():
    assert basis.contrasts(np.array([0.5, 0.25])).tolist() == [0.75, 0.25]
