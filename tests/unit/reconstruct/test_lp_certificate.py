"""The lower bound of the linear program holds for any multipliers, good or bad."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tabulary.planning.queries import ContrastMap, MarginMap
from tabulary.reconstruct.column_generation import certified, covering_of

MAPS = {
    "contrasts": ContrastMap((2, 3, 2), ((), (0,), (1,), (2,), (0, 1))),
    "contrasts, the total last": ContrastMap((2, 3, 2), ((1,), (0, 2), ())),
    "margins": MarginMap((2, 3, 2), tuple(combinations(range(3), 2))),
    "one margin": MarginMap((4,), ((0,),)),
}


@pytest.mark.parametrize("name", MAPS)
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), likely=st.floats(0.0, 1.0), level=st.floats(-20.0, 20.0))
def test_no_multipliers_give_a_bound_above_the_optimum(name, seed, likely, level):
    linear_map = MAPS[name]
    generator = np.random.default_rng(seed)
    cells = int(np.prod(linear_map.shape))
    rows = linear_map.columns(np.arange(cells))
    scales = generator.uniform(0.5, 3.0, linear_map.size)
    targets = generator.normal(level, 10, linear_map.size) / scales
    best = linprog(
        np.append(np.zeros(cells), 1.0),
        A_ub=np.block([[rows / scales[:, None], -np.ones((len(rows), 1))]] * 2)
        * np.repeat([[1.0] * cells + [1.0], [-1.0] * cells + [1.0]], len(rows), axis=0),
        b_ub=np.concatenate([targets, -targets]),
        method="highs",
    ).fun
    # Between noise and the direction in which the bound rises fastest.
    multipliers = (1 - likely) * generator.normal(size=len(rows)) + likely * targets
    multipliers /= np.abs(multipliers).sum()
    possible = np.ones(cells, dtype=bool)
    prices = linear_map.adjoint(multipliers / scales).reshape(-1)
    bound = certified(multipliers, targets, prices, possible, covering_of(linear_map, scales, possible))
    assert 0 <= bound <= best + 1e-9 * np.abs(targets).max()


@pytest.mark.parametrize("name", MAPS)
def test_every_possible_cell_is_covered(name):
    linear_map = MAPS[name]
    scales = np.linspace(0.5, 2.0, linear_map.size)
    possible = np.arange(int(np.prod(linear_map.shape))) % 3 > 0
    covering = covering_of(linear_map, scales, possible)
    assert covering is not None
    assert (linear_map.adjoint(covering / scales).reshape(-1)[possible] >= 1 - 1e-12).all()


def test_contrasts_without_the_total_cover_no_full_table():
    linear_map = ContrastMap((2, 2), ((0,), (1,)))
    assert covering_of(linear_map, np.ones(2), np.ones(4, dtype=bool)) is None


@pytest.mark.parametrize("name", MAPS)
def test_columns_are_what_single_cells_measure(name):
    linear_map = MAPS[name]
    cells = np.arange(int(np.prod(linear_map.shape)))
    single = [linear_map.forward(unit.reshape(linear_map.shape)) for unit in np.eye(cells.size)]
    np.testing.assert_array_equal(linear_map.columns(cells), np.stack(single, axis=1))
