import numpy as np
import pytest
from hypothesis import given, settings

from tabulary.table_samplers.convergence import Convergence
from tabulary.table_samplers.public_seed import PublicSeed
from tabulary.table_samplers.random_walk import RandomWalk
from tabulary.table_samplers.table_moves import starting_tables
from tests.moving_tables import moving_tables
from tests.suppressed_tables import (
    chi_square,
    consistent_tables,
    frequencies,
    known_table,
    total_variation,
)

THREE_BY_THREE = known_table(
    np.full((3, 3), 6),
    [[0.1, 0.3, 0.5], [0.5, 0.2, 0.4], [0.3, 0.6, 0.5]],
    [[1, 3, 2], [2, 4, 1], [3, 2, 1]],
    released=np.eye(3, dtype=bool),
)
"""With a known diagonal, the only move is a cycle of all six other cells."""

EIGHT = np.eye(4, dtype=bool) | np.roll(np.eye(4, dtype=bool), 1, axis=1)
FOUR_BY_FOUR = known_table(
    np.full((4, 4), 7),
    np.linspace(0.2, 0.7, 16).reshape(4, 4),
    [[3, 4, 1, 5], [2, 3, 4, 1], [0, 6, 3, 4], [4, 1, 2, 3]],
    released=~EIGHT,
)
"""The cells that are not known form one cycle of eight."""

NO_SWAP = np.zeros((2, 3, 3), dtype=bool)
for _place in [(1, 2, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1), (0, 1, 0), (1, 2, 2), (0, 0, 2), (1, 1, 2)]:
    NO_SWAP[_place] = True
THREE_WAY = known_table(np.full((2, 3, 3), 5), 0.4, np.full((2, 3, 3), 2), released=~NO_SWAP)
"""No swap of a level between two of the cells that are not known leads to two others of them."""

DOUBLE = np.zeros((2, 3, 3), dtype=bool)
for _place in [(0, 1, 2), (1, 0, 1), (1, 0, 2), (1, 1, 1), (0, 2, 1), (1, 2, 2), (0, 0, 0)]:
    DOUBLE[_place] = True
TWO_AT_ONCE = known_table(np.full((2, 3, 3), 8), 0.4, np.full((2, 3, 3), 4), released=~DOUBLE)
"""The only move takes two people at once into one cell and out of another."""


def walked(known, walk, records, sweeps, seed="a seed"):
    """Whole tables that a walk came by."""
    start = starting_tables(known, 1, PublicSeed(seed))
    made = np.repeat(start, records, axis=0)
    (state,) = walk.states(start)
    made.reshape(records, -1)[:, walk.moving] = walk.run(
        state, PublicSeed(seed).stream("walk"), records=records, sweeps=sweeps
    )
    return made


@pytest.mark.parametrize(
    ("known", "dimension", "tables"),
    [(THREE_BY_THREE, 1, 4), (FOUR_BY_FOUR, 1, 8), (THREE_WAY, 2, 13), (TWO_AT_ONCE, 1, 5)],
)
def test_a_walk_reaches_every_table_where_no_small_move_is_left(known, dimension, tables):
    walk = RandomWalk(known)
    every, probability = consistent_tables(known)
    assert (walk.dimension, len(every)) == (dimension, tables)
    observed = frequencies(walked(known, walk, 40_000, 8), every)
    assert total_variation(observed, probability) < 0.01
    assert chi_square(observed, probability) > 1e-4


@settings(max_examples=60)
@given(moving_tables())
def test_a_walk_comes_by_each_table_as_often_as_is_right(known):
    walk = RandomWalk(known)
    every, probability = consistent_tables(known)
    if not walk.dimension:
        assert len(every) == 1
        return
    observed = frequencies(walked(known, walk, 3_000, 40), every)
    assert chi_square(observed, probability) > 1e-6


@pytest.mark.parametrize("axes", [2, 3])
def test_a_walk_with_a_wrong_weight_is_caught(axes, monkeypatch):
    people = np.full((2, 3, 2)[:axes], 4)
    known = known_table(people, 0.4, people // 2)
    every, probability = consistent_tables(known)
    right, true_law = RandomWalk(known), RandomWalk.law

    def heavier(self):
        *law, log_weights = true_law(self)
        return (*law, 1.1 * log_weights)

    monkeypatch.setattr(RandomWalk, "law", heavier)
    wrong = RandomWalk(known)
    sides = [
        chi_square(frequencies(walked(known, walk, 20_000, 30), every), probability)
        for walk in (right, wrong)
    ]
    assert sides[0] > 1e-4 > 1e-9 > sides[1]


def test_a_walk_that_leaves_out_a_cycle_is_caught():
    counts = np.array([[2, 1, 3], [1, 2, 2], [3, 2, 1]])
    known = known_table(np.full((3, 3), 5), 0.4, counts)
    every, probability = consistent_tables(known)
    # A cell that it takes for known takes with it every cycle through that cell.
    start = starting_tables(known, 1, PublicSeed("a seed"))[0]
    lamed = RandomWalk(known.bounded((0, 0), int(start[0, 0]), int(start[0, 0])))
    sides = [
        total_variation(frequencies(walked(known, walk, 20_000, 12), every), probability)
        for walk in (RandomWalk(known), lamed)
    ]
    assert sides[0] < 0.1 < 0.3 < sides[1]


@pytest.mark.parametrize(("shape", "dimension"), [((4, 5), 12), ((8, 8), 49)])
def test_in_a_table_of_equal_cells_a_sweep_leaves_an_eth_of_every_deviation(shape, dimension):
    # The mean projection on the line of a 2 × 2 move is 1/dimension in every direction, by symmetry.
    known = known_table(np.full(shape, 400), 0.5, np.full(shape, 200))
    walk = RandomWalk(known)
    assert walk.dimension == dimension
    states = walk.states(np.full((2, *shape), 200))
    streams = [PublicSeed("a seed").stream("walk", chain) for chain in range(2)]
    records = np.stack([walk.run(s, c, records=20_000) for s, c in zip(states, streams, strict=True)])
    run = Convergence.of(records)
    left = (run.records - run.sizes) / (run.records + run.sizes)
    assert left.mean() == pytest.approx((1 - 1 / dimension) ** dimension, abs=0.02)


@pytest.mark.parametrize("people", [3, 40, 3_000, 1_000_000])
@pytest.mark.parametrize(("probability", "share"), [(0.3, 0.3), (0.001, 0.001), (0.001, 0.4), (0.5, 0.0001)])
def test_one_step_of_a_2_by_2_table_is_a_draw_whatever_the_spread(people, probability, share):
    # One degree of freedom: from wherever it is, a step draws from the law itself.
    count = max(1, round(people * share))
    known = known_table(np.full((2, 2), people), probability, np.full((2, 2), count))
    walk = RandomWalk(known)
    assert walk.dimension == 1
    (state,) = walk.states(starting_tables(known, 1, PublicSeed("a seed")))
    drawn = walk.run(state, PublicSeed("a seed").stream("walk"), records=20_000)[:, 0]
    count_law = known.count_law((0, 0)).log_weights
    values = np.arange(max(0, 2 * count - people), min(people, 2 * count) + 1)
    heights = 2 * count_law[values] + 2 * count_law[2 * count - values]
    law = np.exp(heights - heights.max())
    observed = np.bincount(drawn - values[0], minlength=values.size)
    assert chi_square(observed, law / law.sum()) > 1e-4
    lag = np.corrcoef(drawn[1:], drawn[:-1])[0, 1]
    assert abs(lag) < 4 / np.sqrt(drawn.size)


def test_attributes_of_one_level_are_no_hindrance():
    flat = known_table(np.full((3, 3), 6), 0.4, np.full((3, 3), 2))
    deep = known_table(np.full((3, 1, 3), 6), 0.4, np.full((3, 1, 3), 2))
    one, other = (walked(known, RandomWalk(known), 50, 1) for known in (flat, deep))
    assert (one == other.reshape(one.shape)).all()


def test_what_follows_from_the_sums_does_not_move():
    # Two squares of free cells, joined by one cell, which is on no cycle.
    free = np.zeros((4, 4), dtype=bool)
    free[:2, :2] = free[2:, 2:] = free[1, 2] = True
    known = known_table(np.full((4, 4), 6), 0.4, np.full((4, 4), 3), released=~free)
    walk = RandomWalk(known)
    assert walk.dimension == 2
    assert int(np.ravel_multi_index((1, 2), (4, 4))) not in walk.moving
    assert walk.moving.size == 8
