"""The linear maps, beside the matrices that they never become."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core import basis
from tabulary.core.residuals import residual_values
from tabulary.planning.queries import ContrastMap, MarginMap, ResidualMap


@st.composite
def maps(draw):
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    every = [s for k in range(len(shape) + 1) for s in combinations(range(len(shape)), k)]
    sets = tuple(draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True)))
    kind = draw(st.sampled_from([ContrastMap, MarginMap, ResidualMap]))
    if kind is ResidualMap:
        centred = [draw(st.sampled_from(s).map(lambda axis: (axis,)) | st.just(s)) if s else () for s in sets]
        return ResidualMap(shape, tuple(zip(sets, centred, strict=True)))
    return kind(shape, sets)


def a_table(shape, seed):
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.float64)


seeds = st.integers(0, 2**32)


@given(maps(), seeds)
@settings(max_examples=60)
def test_a_map_measures_as_many_values_as_it_says(linear_map, seed):
    assert linear_map.forward(a_table(linear_map.shape, seed)).shape == (linear_map.size,)


@given(maps(), seeds)
@settings(max_examples=60)
def test_the_adjoint_is_the_transpose(linear_map, seed):
    table = a_table(linear_map.shape, seed)
    values = a_table((linear_map.size,), seed + 1)
    assert linear_map.forward(table) @ values == pytest.approx((table * linear_map.adjoint(values)).sum())


@given(maps(), seeds)
@settings(max_examples=60)
def test_what_is_measured_of_a_set_depends_on_its_margin_alone(linear_map, seed):
    table = a_table(linear_map.shape, seed)
    axes = range(len(linear_map.shape))
    match linear_map:
        case ContrastMap():
            sets = [(s, ()) for s in linear_map.sets]
        case MarginMap():
            sets = [(s, ()) for s in linear_map.margins]
        case _:
            sets = linear_map.parts
    expected = []
    for s, centred in sets:
        margin = np.asarray(table.sum(axis=tuple(i for i in axes if i not in s)))
        if isinstance(linear_map, ContrastMap):
            margin = basis.contrasts(margin)[(slice(1, None),) * margin.ndim]
        elif isinstance(linear_map, ResidualMap):
            margin = residual_values(margin.astype(np.int64), [s.index(axis) for axis in centred])
        expected.append(np.asarray(margin).reshape(-1))
    assert (linear_map.forward(table) == np.concatenate(expected)).all()


@given(maps(), seeds)
@settings(max_examples=30)
def test_measuring_leaves_the_table_as_it_was(linear_map, seed):
    table = a_table(linear_map.shape, seed)
    before = table.copy()
    linear_map.forward(table)
    assert (table == before).all()


def test_all_contrasts_together_are_the_table():
    every = tuple(s for k in range(3) for s in combinations(range(2), k))
    linear_map = ContrastMap((2, 3), every)
    assert linear_map.size == 6
    table = a_table((2, 3), 0)
    rows = np.stack([linear_map.forward(cell.reshape(2, 3)) for cell in np.eye(6)], axis=1)
    assert np.linalg.solve(rows, linear_map.forward(table)) == pytest.approx(table.reshape(-1))
