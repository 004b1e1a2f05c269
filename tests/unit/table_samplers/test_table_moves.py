import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tabulary.errors import InvalidTable
from tabulary.table_samplers.partial_table import PartialTable
from tabulary.table_samplers.public_seed import PublicSeed
from tabulary.table_samplers.table_moves import lattice_basis, starting_tables
from tests.moving_tables import moving_tables
from tests.suppressed_tables import consistent_tables, known_table

shapes = st.sampled_from([(3,), (2, 2), (3, 4), (1, 3), (2, 2, 2), (2, 3, 2), (3, 1, 3), (2, 2, 2, 2)])
masks = shapes.flatmap(lambda shape: st.tuples(st.just(shape), arrays.arrays(np.bool_, int(np.prod(shape)))))


def sums_of(move, shape):
    table = move.reshape(shape)
    return [table.sum(axis=tuple(a for a in range(len(shape)) if a != axis)) for axis in range(len(shape))]


@given(masks)
def test_a_move_changes_no_sum_and_no_cell_that_may_not_move(case):
    shape, movable = case
    for move in lattice_basis(shape, movable):
        assert not move[~movable].any()
        assert all(not sums.any() for sums in sums_of(move, shape))


@given(masks)
def test_there_are_as_many_moves_as_degrees_of_freedom(case):
    shape, movable = case
    incidence = np.array(
        [
            (np.indices(shape)[axis] == level).reshape(-1)[movable]
            for axis, levels in enumerate(shape)
            for level in range(levels)
        ],
        dtype=float,
    )
    rank = int(np.linalg.matrix_rank(incidence)) if movable.any() else 0
    assert lattice_basis(shape, movable).shape == (movable.sum() - rank, movable.size)


@given(moving_tables())
def test_the_difference_of_two_tables_is_a_whole_combination_of_moves(known):
    basis = lattice_basis(known.shape, (known.lower < known.upper).reshape(-1))
    tables = consistent_tables(known)[0].reshape(-1, known.lower.size)
    differences = (tables - tables[0]).T
    if not basis.size:
        assert not differences.any()
        return
    times = np.linalg.lstsq(basis.T.astype(float), differences, rcond=None)[0]
    np.testing.assert_allclose(times, np.rint(times), atol=1e-6)
    assert (basis.T @ np.rint(times).astype(int) == differences).all()


@given(moving_tables())
def test_first_tables_agree_with_what_is_known(known):
    for table in starting_tables(known, 3, PublicSeed("a seed")):
        assert ((known.lower <= table) & (table <= known.upper)).all()
        for axis, sums in enumerate(sums_of(table, known.shape)):
            assert (sums == known.sums[axis]).all()


@pytest.mark.parametrize("shape", [(4, 4), (3, 3, 3)])
def test_first_tables_are_far_apart(shape):
    known = known_table(np.full(shape, 40), 0.5, np.full(shape, 20))
    tables = starting_tables(known, 4, PublicSeed("a seed")).reshape(4, -1)
    for one in range(4):
        for other in range(one):
            # The law given the sums strays about three people from 20.
            assert np.abs(tables[one] - tables[other]).mean() > 8


@pytest.mark.parametrize(
    ("shape", "least", "most"),
    [
        ((2, 2), {(0, 0): 3}, {(1, 1): 2}),
        ((2, 2, 2), {(0, 0, 0): 4}, {(0, 1, 1): 0, (1, 1, 1): 0, (0, 0, 1): 3, (0, 1, 0): 3, (1, 0, 0): 0}),
    ],
)
def test_sums_that_can_be_had_one_by_one_but_not_together_are_refused_without_a_count(shape, least, most):
    known = known_table(np.full(shape, 5), 0.5, np.full(shape, 2))
    lower, upper = known.lower.copy(), known.upper.copy()
    for index, value in least.items():
        lower[index] = value
    for index, value in most.items():
        upper[index] = value
    contradicting = PartialTable(known.people, known.groups, known.sums, lower, upper)
    assert not consistent_tables(contradicting)[0].size
    with pytest.raises(InvalidTable, match="no table has all of them") as caught:
        starting_tables(contradicting, 1, PublicSeed("a seed"))
    assert not any(letter.isdigit() for letter in str(caught.value))
