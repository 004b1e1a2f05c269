"""What every sampler of tables promises, checked on every one of them against all tables listed one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.errors import InvalidTable
from tabulary.table_samplers.chain_sampler import ChainTableSampler
from tabulary.table_samplers.exact_sampler import ExactTableSampler
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion
from tabulary.table_samplers.public_seed import PublicSeed
from tests.oracles.matching_sampler import Matching
from tests.suppressed_tables import (
    chi_square,
    consistent_tables,
    frequencies,
    known_table,
    small_tables,
    total_variation,
    true_answers,
    true_marginals,
)

SAMPLERS = {sampler.name: sampler for sampler in (ExactTableSampler(), ChainTableSampler(), Matching())}
COMPUTED = {"exact", "matching"}
COINS = PublicSeed("a seed that was not chosen")
DRAWS = 100_000

every_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)

TABLES = {
    "two by two": known_table([[6, 5], [4, 7]], 0.3, [[2, 2], [1, 3]]),
    "a prior a cell": known_table(
        [[3, 2, 3], [2, 3, 2]], [[0.3, 0.5, 0.2], [0.4, 0.1, 0.7]], [[1, 1, 1], [1, 1, 1]]
    ),
    "kinds of people": known_table(
        [[[2, 2], [1, 3]], [[3, 1], [2, 2]]], np.array([0.1, 0.6]), [[2, 1], [1, 2]]
    ),
    "released cells": known_table(
        np.full((3, 3), 3),
        0.4,
        [[1, 1, 1], [1, 2, 1], [2, 1, 0]],
        released=[[True, False, False], [False, False, False], [False, False, False]],
    ),
    # No two rows and two columns can be moved by themselves: it takes all three.
    "a released diagonal": known_table(
        [[3, 4, 3], [3, 3, 4], [4, 3, 3]],
        0.5,
        [[1, 2, 1], [1, 2, 2], [2, 1, 0]],
        released=np.eye(3, dtype=bool),
    ),
    "one row": known_table([[3, 4, 3]], 0.5, [[1, 2, 1]]),
    "one attribute": known_table([3, 4, 3], 0.5, [1, 2, 1]),
}
every_table = pytest.mark.parametrize("known", TABLES.values(), ids=TABLES)

SPLITS = {
    "the first": (
        known_table([[2, 3, 2], [3, 1, 2]], 0.3, [[1, 1, 0], [1, 1, 1]], groups=((), ())),
        SplitQuestion(1, 0, 1),
    ),
    "another": (
        known_table([[2, 3, 2], [3, 1, 2]], 0.3, [[1, 1, 0], [1, 1, 1]], groups=((1,), (1,))),
        SplitQuestion(1, 1, 2),
    ),
    "of the other attribute": (
        known_table([[2, 2], [3, 1], [1, 2]], [0.2, 0.5], [[1, 1], [1, 0], [1, 1]], groups=((2,), (1,))),
        SplitQuestion(0, 0, 1),
    ),
}


def _agree(known: PartialTable, tables) -> bool:
    inside = ((tables >= known.lower) & (tables <= known.upper)).all()
    axes = range(1, tables.ndim)
    sums = (tables.sum(axis=tuple(a for a in axes if a != axis)) for axis in axes)
    return bool(inside) and all((found == true).all() for found, true in zip(sums, known.sums, strict=True))


# ---- draws ----------------------------------------------------------------------------------------------------------


@every_sampler
@settings(max_examples=25)
@given(known=small_tables(people=4, bounded=False), number=st.integers(1, 7))
def test_drawn_tables_agree_with_what_is_known(sampler, known, number):
    tables = sampler.draw(known, number, seed=COINS)
    assert tables.shape == (number, *known.shape)
    assert tables.dtype == np.int64
    assert _agree(known, tables)


@every_table
@every_sampler
def test_every_table_comes_up_as_often_as_it_is_likely(sampler, known):
    tables, probability = consistent_tables(known)
    assert len(tables) <= 25
    seen = frequencies(sampler.draw(known, DRAWS, seed=COINS), tables)
    assert chi_square(seen, probability) > 1e-3
    assert total_variation(seen, probability) < 0.01


@pytest.mark.parametrize("name", ["a prior a cell", "kinds of people"])
def test_a_sampler_that_took_all_people_for_alike_would_be_found_out(name):
    known = TABLES[name]
    tables, probability = consistent_tables(known)
    alike = known_table(known.people.number, 0.3, tables[0])
    seen = frequencies(ExactTableSampler().draw(alike, DRAWS, seed=COINS), tables)
    assert chi_square(seen, probability) < 1e-12
    assert total_variation(seen, probability) > 0.02


@pytest.mark.parametrize("name", sorted(TABLES.keys() - {"one row", "one attribute"}))
def test_a_sampler_that_took_all_tables_for_alike_would_be_found_out(name):
    tables, probability = consistent_tables(TABLES[name])
    seen = np.random.default_rng(1).multinomial(DRAWS, np.full(len(tables), 1 / len(tables)))
    assert chi_square(seen, probability) < 1e-12
    assert total_variation(seen, probability) > 0.02


@every_sampler
def test_the_same_coins_give_the_same_tables_and_others_others(sampler):
    known = TABLES["released cells"]
    first, again = (sampler.draw(known, 50, seed=COINS) for _ in range(2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != sampler.draw(known, 50, seed=PublicSeed("another")).tobytes()


@every_sampler
def test_a_table_without_a_choice_is_drawn_every_time(sampler):
    known = known_table([[2, 2], [2, 2]], 0.3, [[2, 1], [2, 0]])
    assert (sampler.draw(known, 9, seed=COINS) == [[2, 1], [2, 0]]).all()


# ---- what is computed from them -------------------------------------------------------------------------------------


@every_table
@every_sampler
def test_the_law_of_each_cell_is_the_true_one_within_its_error(sampler, known):
    posterior = sampler.posterior(known, seed=COINS)
    # A simulated one says how far it is expected to be off.
    allowed = 3 * posterior.error + 1e-9
    assert allowed < 0.1
    for index, truth in np.ndenumerate(true_marginals(known)):
        found = np.asarray(posterior.marginals[index], dtype=np.float64)
        assert found.shape == truth.shape
        assert found.sum() == pytest.approx(1)
        assert np.abs(found - truth).sum() / 2 <= allowed


def _assert_answers_are_sound(sampler, known, question):
    answers = sampler.answers(known, question, draws=4_000, seed=COINS)
    truth = true_answers(known, question)
    true_value = dict(
        zip(truth.values.tolist(), zip(truth.probability, truth.deviation, strict=True), strict=True)
    )
    assert set(answers.values.tolist()) <= set(true_value)
    assert answers.probability.sum() == pytest.approx(1)
    found = np.zeros(truth.values.size)
    found[np.isin(truth.values, answers.values)] = answers.probability
    deviation = np.array([true_value[value][1] for value in answers.values.tolist()])
    if answers.draws is None:
        np.testing.assert_allclose(found, truth.probability, atol=answers.error + 1e-9)
    else:
        assert answers.draws == 4_000
        assert chi_square(np.round(found * answers.draws).astype(np.int64), truth.probability) > 1e-3
    if sampler.name in COMPUTED:
        np.testing.assert_allclose(answers.deviation, deviation, atol=1e-8)
    # An upper limit, and not a useless one.
    assert (answers.deviation >= deviation - 1e-9).all()
    assert (answers.deviation <= deviation + 0.05 * np.maximum(1, deviation)).all()
    assert answers.error < 1e-4


@every_table
@every_sampler
def test_answers_are_the_true_ones(sampler, known):
    for index in (tuple(0 for _ in known.shape), tuple(size - 1 for size in known.shape)):
        _assert_answers_are_sound(sampler, known, CellQuestion(index))


@pytest.mark.parametrize("asked", SPLITS.values(), ids=SPLITS)
@every_sampler
def test_answers_to_a_split_are_the_true_ones(sampler, asked):
    _assert_answers_are_sound(sampler, *asked)


@every_sampler
def test_the_same_coins_give_the_same_answers(sampler):
    known = TABLES["a prior a cell"]
    first, again = (sampler.answers(known, CellQuestion((0, 0)), draws=500, seed=COINS) for _ in range(2))
    for one, other in (
        (first.values, again.values),
        (first.probability, again.probability),
        (first.deviation, again.deviation),
    ):
        assert one.tobytes() == other.tobytes()


# ---- refusals -------------------------------------------------------------------------------------------------------


@every_sampler
def test_sums_and_cells_that_no_table_has_are_refused(sampler):
    folk = known_table([[3, 3], [3, 3]], 0.5, [[1, 1], [1, 1]]).people
    known = PartialTable.table(
        folk, (np.array([3, 3]), np.array([3, 3])), np.array([[3, np.nan], [np.nan, 2.0]])
    )
    for asked in (
        lambda: sampler.answers(known, CellQuestion((0, 1)), draws=100, seed=COINS),
        lambda: sampler.posterior(known, seed=COINS),
        lambda: sampler.draw(known, 10, seed=COINS),
    ):
        with pytest.raises(InvalidTable, match="contradict"):
            asked()


@every_sampler
def test_a_table_of_three_attributes_is_drawn_right_or_refused(sampler):
    known = known_table(np.full((2, 2, 2), 2), 0.4, np.array([[[1, 0], [1, 0]], [[0, 1], [0, 0]]]))
    tables, probability = consistent_tables(known)
    if sampler.name != "chain":
        with pytest.raises(InvalidTable, match="two attributes"):
            sampler.draw(known, 10, seed=COINS)
        return
    seen = frequencies(sampler.draw(known, DRAWS, seed=COINS), tables)
    assert chi_square(seen, probability) > 1e-3
    assert total_variation(seen, probability) < 0.01
