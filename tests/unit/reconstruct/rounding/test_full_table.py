"""What rounding promises: integers, margins, no bias."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.errors import InvalidArgument, InvalidNoise, InvalidTable
from tabulary.reconstruct.rounding.full_table import round_table, rounding_report, uniforms_from
from tests.entropy import ScriptedEntropy, SeededEntropy

SHAPES = [(5,), (3, 4), (1, 6), (2, 2, 2), (4, 3, 2), (2, 2, 2, 2, 2)]
# Eighths add up exactly in floats, so that a margin within one is a statement without tolerance.
eighths = st.integers(0, 30).map(lambda eighth: eighth / 8)
sparse = st.one_of(st.just(0.0), st.just(0.0), eighths)
anything = st.floats(0, 1e6)


@st.composite
def tables(draw, shapes=SHAPES, entries=(eighths, sparse, anything)):
    shape = draw(st.sampled_from(shapes))
    kind = draw(st.sampled_from(entries))
    cells = math.prod(shape)
    return np.array(draw(st.lists(kind, min_size=cells, max_size=cells))).reshape(shape)


def all_margins(dimensions, order):
    return [m for k in range(order + 1) for m in itertools.combinations(range(dimensions), k)]


def controlled(table, margins, seed=0, **options):
    uniform = uniforms_from(SeededEntropy(seed))
    return round_table(table, method="controlled", margins=margins, uniform=uniform, **options)


@given(tables())
def test_nearest_is_never_farther_than_one_half(table):
    rounded = round_table(table, method="nearest")
    assert rounded.dtype == np.int64
    assert (np.abs(rounded - table) <= 0.5).all()


def test_one_half_goes_upwards():
    assert round_table(np.array([0.5, 1.5, 2.5]), method="nearest").tolist() == [1, 2, 3]


def test_nearest_leaves_a_vertex_of_few_cells_as_good_as_its_margins():
    vertex = np.zeros((8, 8))
    vertex[[0, 3, 5], [1, 1, 7]] = [4.4, 2.3, 7.4]
    rounded = round_table(vertex, method="nearest")
    assert rounding_report(vertex, rounded, [(0,), (1,)]).largest <= 3 / 2


@given(tables(), st.integers(0, 2), st.integers(0, 2**32))
def test_every_cell_becomes_the_integer_below_or_above(table, order, seed):
    rounded = controlled(table, all_margins(table.ndim, min(order, table.ndim)), seed)
    assert rounded.dtype == np.int64
    assert (np.abs(rounded - table) < 1).all()
    assert (rounded >= 0).all()
    assert not rounded[table == 0].any()


@given(tables(entries=(eighths, sparse)), st.integers(0, 2), st.integers(0, 2**32))
def test_the_total_moves_by_less_than_one(table, order, seed):
    rounded = controlled(table, all_margins(table.ndim, min(order, table.ndim)), seed)
    assert abs(rounded.sum() - table.sum()) < 1


@settings(max_examples=200)
@given(tables(shapes=[(3, 4), (1, 6), (7, 5), (5,)], entries=(eighths, sparse)), st.integers(0, 2**32))
def test_rows_columns_and_total_of_a_two_way_table_move_by_less_than_one(table, seed):
    margins = all_margins(table.ndim, 1)
    assert rounding_report(table, controlled(table, margins, seed), margins).controlled


@given(tables(shapes=[(4, 3, 2), (2, 2, 2, 2, 2)], entries=(eighths, sparse)), st.integers(0, 2**32))
def test_any_two_margins_of_a_larger_table_move_by_less_than_one(table, seed):
    for margins in ([(0, 1), (1, 2)], [(0,), (1, 2)], [(0, 1)]):
        assert rounding_report(table, controlled(table, margins, seed), margins).controlled


@given(tables(shapes=[(3, 4), (7, 5)], entries=(anything,)), st.integers(0, 2**32))
def test_margins_of_arbitrary_fractions_move_by_less_than_one_and_the_rounding_of_floats(table, seed):
    assert rounding_report(table, controlled(table, [(0,), (1,)], seed), [(0,), (1,)]).largest < 1 + 1e-6


def test_whole_margins_stay_what_they_are():
    latin = np.full((4, 4), 0.25)
    rounded = controlled(latin, [(0,), (1,)])
    assert rounded.sum(axis=0).tolist() == rounded.sum(axis=1).tolist() == [1, 1, 1, 1]


def test_an_interior_solution_vanishes_to_the_nearest_and_keeps_its_total_under_control():
    interior = np.full((2,) * 8, 70 / 256)
    margins = list(itertools.combinations(range(8), 2))
    assert round_table(interior, method="nearest").sum() == 0
    kept = controlled(interior, margins)
    assert kept.sum() == 70
    # Independent rounding would move a cell of 17.5 by three on average; nearest rounding by 17.5.
    assert rounding_report(interior, kept, margins).largest < 6


@pytest.mark.parametrize("seed", range(5))
def test_many_margins_stay_nearer_than_with_independent_rounding(seed):
    generator = np.random.default_rng(seed)
    table = generator.random((2,) * 10) * 3
    margins = list(itertools.combinations(range(10), 2))
    apart = np.floor(table + generator.random(table.shape)).astype(np.int64)
    kept = rounding_report(table, controlled(table, margins, seed), margins)
    assert kept.largest < rounding_report(table, apart, margins).largest / 2


def strays(rounder, table, draws):
    """The largest standardised difference between the mean of many roundings and the table."""
    mean = sum(rounder(seed) for seed in range(draws)) / draws
    part = table - np.floor(table)
    error = np.sqrt(np.maximum(part * (1 - part), 1e-12) / draws)
    return np.abs(mean - table).max(), (np.abs(mean - table) / error)[part > 0].max()


@pytest.mark.parametrize(
    ("shape", "margins"),
    [((3, 4), [(0,), (1,)]), ((2, 3, 2), [(0,), (1,), (2,)]), ((2, 2, 2), [(0, 1), (0, 2), (1, 2)])],
)
def test_rounding_has_no_bias_and_a_twin_that_rounds_down_is_caught(shape, margins):
    table = np.random.default_rng(1).random(shape) * 2
    table.reshape(-1)[0] = 3
    # A normal quantile at α = 1e-6, shared among the cells.
    limit = 5.4
    assert strays(lambda seed: controlled(table, margins, seed), table, 4000)[1] < limit
    assert strays(lambda seed: np.floor(table), table, 10)[0] > 0.2
    # A twin whose coin always falls on the same side.
    low = strays(
        lambda seed: round_table(
            table, method="controlled", margins=margins, uniform=lambda n: np.full(n, 0.0)
        ),
        table,
        20,
    )
    assert low[0] > 0.2


def test_the_same_words_round_the_same_way():
    table = np.random.default_rng(2).random((6, 6))
    assert (controlled(table, [(0,), (1,)], 5) == controlled(table, [(0,), (1,)], 5)).all()


def test_a_large_table_is_rounded_with_its_rows_and_columns():
    table = np.random.default_rng(3).integers(0, 24, (256, 256)) / 8
    assert rounding_report(table, controlled(table, [(0,), (1,)]), [(0,), (1,)]).controlled


def test_a_table_without_axes_is_a_number():
    assert controlled(np.array(2.0), []).tolist() == 2
    assert controlled(np.array(2.5), [()]).tolist() in (2, 3)


def test_uniform_numbers_are_the_leading_bits_of_the_words():
    words = [0, 2**64 - 1, 2**63]
    assert uniforms_from(ScriptedEntropy(words))(3).tolist() == [0, 1 - 2**-53, 0.5]


def test_entropy_that_runs_short_is_refused():
    class Short:
        def words(self, count):
            return np.zeros(1, dtype=np.uint64)

    with pytest.raises(InvalidNoise, match="asked for 2 words of 64 bits"):
        uniforms_from(Short())(2)


def test_impossible_cells_stay_empty():
    table = np.full((4, 4), 0.5)
    impossible = np.eye(4, dtype=bool)
    table[impossible] = 0
    assert not controlled(table, [(0,), (1,)], impossible=impossible)[impossible].any()


@pytest.mark.parametrize(
    ("table", "options", "reason"),
    [
        (np.array([-0.1]), {}, "only a table of non-negative numbers"),
        (np.array([np.nan]), {}, "only a table of non-negative numbers"),
        (np.array([np.inf]), {}, "only a table of non-negative numbers"),
        (np.array([1.0]), {"impossible": np.array([True])}, "a cell that is impossible is not zero"),
        (np.array([1.0]), {"impossible": np.array([[True]])}, "the mask of impossible cells has shape"),
        (np.array([0.5]), {"margins": [(1,)]}, r"the margin \(1,\) is not a set of axes"),
        (np.array([0.5]), {"margins": [(0, 0)]}, r"the margin \(0, 0\) is not a set of axes"),
    ],
)
def test_a_table_that_cannot_be_rounded_is_refused(table, options, reason):
    with pytest.raises(InvalidTable, match=reason):
        round_table(table, method="controlled", uniform=uniforms_from(SeededEntropy(0)), **options)


def test_an_unknown_method_and_missing_randomness_are_refused():
    with pytest.raises(InvalidArgument, match="no rounding 'up'"):
        round_table(np.ones(2), method="up")
    with pytest.raises(InvalidArgument, match="uniform"):
        round_table(np.ones(2), method="controlled")
