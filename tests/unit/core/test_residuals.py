"""Residuals: exact whole numbers in, the table and its covariance out."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.residuals import add_up, centre, component, residual_shape, residual_values
from tabulary.errors import InvalidTable

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def subsets(axes):
    return [s for n in range(len(axes) + 1) for s in combinations(axes, n)]


def rows(levels, centred):
    """What a part takes of one axis, as a matrix."""
    if not centred:
        return np.eye(levels, dtype=np.int64)
    if levels >= 3:
        return levels * np.eye(levels, dtype=np.int64) - 1
    return np.array([[1, -1]])[: levels - 1, :levels]


def projection(levels):
    return np.eye(levels) - 1 / levels


def kron(matrices):
    found = np.ones((1, 1))
    for matrix in matrices:
        found = np.kron(found, matrix)
    return found


@st.composite
def tables(draw):
    shape = draw(shapes)
    cells = draw(st.lists(st.integers(0, 10**6), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    return np.array(cells, dtype=np.int64).reshape(shape)


@given(tables(), st.data())
def test_the_values_of_a_part_are_those_of_its_matrix(table, data):
    centred = data.draw(st.sets(st.integers(0, table.ndim - 1)) if table.ndim else st.just(set()))
    values = residual_values(table, centred)
    matrix = kron([rows(k, axis in centred) for axis, k in enumerate(table.shape)]).astype(np.int64)
    assert values.dtype == np.int64
    assert values.shape == residual_shape(table.shape, centred)
    assert (values.ravel() == matrix @ table.ravel()).all()


@given(tables(), st.data())
def test_without_noise_a_part_gives_every_residual_that_it_knows(table, data):
    axes = tuple(range(table.ndim))
    centred = data.draw(st.sampled_from(subsets(axes)))
    values = residual_values(table, centred)
    for onto in subsets(axes):
        if set(centred) <= set(onto):
            margin = table.sum(axis=tuple(a for a in axes if a not in onto)).astype(float)
            found = component(values, table.shape, centred, onto)
            assert found.shape == margin.shape
            assert np.allclose(found, centre(margin), atol=1e-6)


@given(tables())
def test_a_table_is_the_sum_of_its_residuals(table):
    axes = tuple(range(table.ndim))
    residuals = {
        s: component(residual_values(table, s), table.shape, s, s)
        if not set(axes) - set(s)
        else centre(table.sum(axis=tuple(a for a in axes if a not in s)).astype(float))
        for s in subsets(axes)
    }
    assert np.allclose(add_up(residuals, table.shape), table, atol=1e-6)


@given(tables())
def test_a_residual_that_is_not_named_is_zero(table):
    axes = tuple(range(table.ndim))
    margins = {s: table.sum(axis=tuple(a for a in axes if a not in s)).astype(float) for s in subsets(axes)}
    kept = {s: centre(r) for s, r in margins.items() if len(s) != 1}
    zeros = {s: np.zeros_like(r) for s, r in margins.items() if len(s) == 1}
    assert np.allclose(add_up(kept, table.shape), add_up(kept | zeros, table.shape))


def test_no_residual_at_all_is_a_table_of_zeros():
    assert (add_up({}, (2, 3)) == np.zeros((2, 3))).all()


@pytest.mark.parametrize("shape", [(3,), (2,), (2, 3), (4, 2, 2), (3, 1, 2), (3, 4)])
def test_noise_comes_out_with_the_stated_variance_on_the_residual_space(shape):
    axes = tuple(range(len(shape)))
    for centred in subsets(axes):
        inner = residual_shape(shape, centred)
        size = int(np.prod(inner))
        for onto in (s for s in subsets(axes) if set(centred) <= set(s)):
            # The estimate as a matrix, one column a value of the part; unit noise has covariance M Mᵀ.
            units = np.eye(size).reshape((size, *inner))
            columns = [component(unit, shape, centred, onto).ravel() for unit in units]
            outer = int(np.prod([shape[a] for a in onto]))
            matrix = np.array(columns).T if columns else np.zeros((outer, 0))
            if any(shape[a] == 1 for a in onto):
                assert not matrix.any()
                continue
            stated = np.prod([float(shape[a]) for a in axes if a not in onto])
            stated *= np.prod([0.5 if shape[a] == 2 else shape[a] ** -2.0 for a in centred])
            assert np.allclose(matrix @ matrix.T, stated * kron([projection(shape[a]) for a in onto]))


@pytest.mark.parametrize("shape", [(2, 3), (3, 2, 2)])
def test_estimates_of_different_residuals_are_uncorrelated(shape):
    axes = tuple(range(len(shape)))
    for centred in subsets(axes):
        inner = residual_shape(shape, centred)
        units = np.eye(int(np.prod(inner))).reshape((-1, *inner))
        known = [s for s in subsets(axes) if set(centred) <= set(s)]
        matrices = [np.array([component(u, shape, centred, s).ravel() for u in units]).T for s in known]
        for one, other in combinations(matrices, 2):
            assert np.allclose(one @ other.T, 0)


@settings(max_examples=30)
@given(st.data())
def test_the_variance_of_a_cell_is_the_sum_over_its_residuals(data):
    shape = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3).map(tuple))
    axes = tuple(range(len(shape)))
    variances = {s: data.draw(st.floats(0.1, 10)) for s in subsets(axes)}
    covariance = np.zeros((int(np.prod(shape)),) * 2)
    for s, variance in variances.items():
        spread = kron([np.eye(k) if a in s else np.full((k, 1), 1 / k) for a, k in enumerate(shape)])
        covariance += variance * spread @ kron([projection(shape[a]) for a in s]) @ spread.T
    stated = sum(
        v * np.prod([(shape[a] - 1) / shape[a] if a in s else shape[a] ** -2.0 for a in axes])
        for s, v in variances.items()
    )
    assert np.allclose(np.diag(covariance), stated)


def test_a_residual_without_the_centred_axes_is_refused():
    with pytest.raises(ValueError, match="centred"):
        component(np.zeros((3, 2)), (3, 2), (0,), (1,))


def test_counts_beyond_64_bits_are_refused_and_not_wrapped_around():
    table = np.full((1000, 1000), 10**10, dtype=np.int64)
    with pytest.raises(InvalidTable, match="64 bits"):
        residual_values(table, (0, 1))
    assert residual_values(table, ()).sum() == 10**16


def test_centring_takes_the_average_out_of_every_axis():
    table = np.arange(24.0).reshape(2, 3, 4) ** 2
    for axis in product(range(3)):
        assert np.allclose(centre(table).sum(axis=axis), 0)
