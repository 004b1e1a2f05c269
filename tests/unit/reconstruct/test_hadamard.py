"""The fast transform of binary tables is the slow one, faster."""

import numpy as np
import pytest

from tabulary.core import basis
from tabulary.errors import InvalidTable
from tabulary.planning.queries import ContrastMap
from tabulary.planning.queries.hadamard import HadamardMap, walsh_hadamard


@pytest.mark.parametrize("axes", [0, 1, 2, 5, 12, 13, 14])
def test_the_transform_is_the_contrasts_of_a_binary_table(axes):
    table = np.random.default_rng(axes).integers(-9, 9, (2,) * axes).astype(float)
    values = table.reshape(-1).copy()
    walsh_hadamard(values)
    np.testing.assert_array_equal(values, basis.contrasts(table).reshape(-1))


def test_the_fast_map_measures_what_the_slow_one_does_in_the_same_order():
    slow = ContrastMap((2,) * 5, ((3, 1), (), (4,), (0, 2, 4)))
    fast = HadamardMap(slow.shape, slow.sets)
    generator = np.random.default_rng(0)
    table, values = generator.normal(size=slow.shape), generator.normal(size=slow.size)
    np.testing.assert_allclose(fast.forward(table), slow.forward(table), atol=1e-12)
    np.testing.assert_allclose(fast.adjoint(values), slow.adjoint(values), atol=1e-12)
    assert fast.size == slow.size


def test_measuring_leaves_the_table_as_it_was():
    table = np.arange(8.0).reshape(2, 2, 2)
    HadamardMap((2, 2, 2), ((), (1,))).forward(table)
    np.testing.assert_array_equal(table, np.arange(8.0).reshape(2, 2, 2))


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros(0), np.zeros((2, 2)), np.zeros(8)[::2]])
def test_a_vector_that_cannot_be_transformed_in_place_is_refused(values):
    with pytest.raises(InvalidTable, match="Nothing was changed"):
        walsh_hadamard(values)


def test_a_table_that_is_not_binary_is_refused():
    with pytest.raises(InvalidTable, match="two levels"):
        HadamardMap((2, 3), ((0,),))
