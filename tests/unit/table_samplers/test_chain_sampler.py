import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.errors import InvalidArgument, InvalidTable, NotCertified
from tabulary.table_samplers import chain_sampler
from tabulary.table_samplers.chain_sampler import ChainTableSampler
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion
from tabulary.table_samplers.public_seed import PublicSeed
from tests.moving_tables import open_questions
from tests.suppressed_tables import (
    chi_square,
    consistent_tables,
    frequencies,
    known_table,
    total_variation,
    true_answers,
    true_deviation,
    true_marginals,
)

COINS = PublicSeed("a seed")

KINDS = known_table(
    [[[2, 2], [1, 3], [3, 0]], [[3, 1], [2, 2], [0, 4]], [[1, 1], [4, 0], [2, 1]]],
    [0.2, 0.6],
    [[2, 1, 1], [2, 3, 2], [0, 2, 1]],
)
"""3 × 3 cells with people of two kinds in each."""

KNOWN_CELLS = known_table(
    np.full((3, 4), 5),
    np.linspace(0.2, 0.7, 12).reshape(3, 4),
    [[1, 2, 3, 2], [2, 1, 4, 3], [1, 3, 2, 4]],
    released=[[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]],
)
THREE_WAY = known_table(
    np.full((2, 3, 2), 3),
    np.linspace(0.15, 0.7, 12).reshape(2, 3, 2),
    [[[1, 0], [2, 1], [1, 1]], [[2, 1], [0, 1], [1, 2]]],
    released=[[[1, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]]],
)
LARGE = known_table(
    np.full((5, 5), 60), np.linspace(0.3, 0.5, 25).reshape(5, 5), np.arange(25).reshape(5, 5) % 7 + 20
)


@pytest.mark.parametrize("known", [KINDS, KNOWN_CELLS, THREE_WAY])
def test_tables_are_drawn_as_often_as_enumeration_says(known):
    every, probability = consistent_tables(known)
    observed = frequencies(ChainTableSampler().draw(known, 20_000, seed=COINS), every)
    assert chi_square(observed, probability) > 1e-4


def test_draws_are_within_one_percent_of_enumeration():
    known = known_table(np.full((2, 3), 3), [[0.2, 0.5, 0.3], [0.6, 0.4, 0.5]], [[1, 2, 1], [2, 1, 1]])
    every, probability = consistent_tables(known)
    observed = frequencies(ChainTableSampler().draw(known, 60_000, seed=COINS), every)
    assert total_variation(observed, probability) < 0.01


def test_draws_do_not_depend_on_those_before_them():
    drawn = ChainTableSampler().draw(LARGE, 4_000, seed=COINS).reshape(4_000, -1).astype(float)
    # Draws of one chain are four apart.
    for lag in (1, 4):
        for cell in drawn.T:
            assert abs(np.corrcoef(cell[lag:], cell[:-lag])[0, 1]) < 5 / math.sqrt(4_000)


@settings(max_examples=30)
@given(open_questions())
def test_answers_agree_with_enumeration(asked):
    known, question = asked
    truth = true_answers(known, question)
    answers = ChainTableSampler(tolerance=0.2).answers(known, question, draws=1_000, seed=COINS)
    place = {int(value): number for number, value in enumerate(truth.values)}
    seen = np.array([place[int(value)] for value in answers.values])
    assert answers.probability.sum() == pytest.approx(1)
    observed = np.zeros(truth.values.size, dtype=int)
    observed[seen] = np.rint(answers.probability * 1_000)
    assert chi_square(observed, truth.probability) > 1e-6
    # Limits are above the truth, and not far above it.
    assert (answers.deviation >= truth.deviation[seen] - 1e-9).all()
    assert (answers.deviation <= truth.deviation[seen] + 0.2 * np.maximum(1, truth.deviation[seen])).all()


@settings(max_examples=30)
@given(open_questions(), st.sampled_from([0.2, 0.5, 1.0]))
def test_with_epsilon_no_unsafe_value_passes_and_few_safe_ones_are_lost(asked, epsilon):
    known, question = asked
    truth = true_answers(known, question)
    answers = ChainTableSampler(epsilon=epsilon).answers(known, question, draws=500, seed=COINS)
    true_deviations = dict(zip(truth.values.tolist(), truth.deviation, strict=True))
    for value, limit in zip(answers.values.tolist(), answers.deviation, strict=True):
        if true_deviations[value] > epsilon + 1e-9:
            assert limit > epsilon
        if true_deviations[value] < epsilon - 0.03:
            assert limit <= epsilon


@pytest.mark.parametrize("known", [KINDS, KNOWN_CELLS, THREE_WAY])
def test_posteriors_agree_with_enumeration(known):
    posterior = ChainTableSampler(tolerance=0.01).posterior(known, seed=COINS)
    truth = true_marginals(known)
    assert posterior.error <= 0.01
    for index in np.ndindex(known.shape):
        assert posterior.marginals[index].shape == truth[index].shape
        assert np.abs(posterior.marginals[index] - truth[index]).sum() / 2 < 0.02
    assert posterior.deviations(known).max() == pytest.approx(true_deviation(known), abs=0.05)


def test_a_cell_that_follows_from_the_rest_has_one_answer_and_nothing_is_drawn():
    released = np.ones((3, 3), dtype=bool)
    released[:2, :2] = released[2, 0] = False
    known = known_table(np.full((3, 3), 8), 0.4, [[3, 2, 4], [3, 4, 2], [3, 3, 2]], released=released)
    answers = ChainTableSampler().answers(known, CellQuestion((2, 0)), draws=1_000, seed=COINS)
    assert answers.values.tolist() == [3]
    assert answers.probability.tolist() == [1.0]
    assert answers.draws is None
    assert answers.deviation[0] == pytest.approx(true_deviation(known), abs=0.02)


def test_a_table_of_one_row_is_exact():
    known = known_table([[9, 8, 7]], 0.4, [[4, 3, 2]])
    posterior = ChainTableSampler().posterior(known, seed=COINS)
    assert [law.argmax() for law in posterior.marginals[0]] == [4, 3, 2]
    assert posterior.error == 0
    answers = ChainTableSampler().answers(known, CellQuestion((0, 1)), draws=10, seed=COINS)
    assert (answers.values.tolist(), answers.error) == ([3], 0)
    assert answers.deviation[0] == pytest.approx(true_deviation(known))


def test_parting_a_group_of_a_table_without_freedom_needs_no_chain():
    known = PartialTable.total(KINDS.people, 14)
    answers = ChainTableSampler().answers(known, SplitQuestion(0, 0, 1), draws=5_000, seed=COINS)
    truth = true_answers(known, SplitQuestion(0, 0, 1))
    seen = np.searchsorted(truth.values, answers.values)
    assert answers.error == 0
    assert answers.deviation == pytest.approx(truth.deviation[seen])
    assert answers.probability == pytest.approx(truth.probability[seen], abs=0.03)


def test_what_is_uncertain_is_said():
    answers = ChainTableSampler(epsilon=0.5).answers(
        KNOWN_CELLS, CellQuestion((2, 2)), draws=1_000, seed=COINS
    )
    assert 1e-6 <= answers.error <= 1.1e-5
    assert answers.draws == 1_000
    said = answers.diagnostics
    assert said["chains"] == 4
    assert said["r_hat"] <= 1.01
    assert said["effective"] >= 400
    assert said["thinning"] >= 1
    assert said["uncertified"] == 0


@pytest.mark.parametrize("known", [LARGE, THREE_WAY])
def test_a_chain_that_may_work_too_little_does_not_certify(known):
    idle = ChainTableSampler(sweeps=64)
    for ask in (
        lambda: idle.answers(known, CellQuestion((1,) * len(known.shape)), draws=100, seed=COINS),
        lambda: idle.posterior(known, seed=COINS),
        lambda: idle.draw(known, 10, seed=COINS),
    ):
        with pytest.raises(NotCertified, match="Nothing was concluded"):
            ask()


def test_draws_that_would_have_to_be_too_far_apart_are_refused(monkeypatch):
    monkeypatch.setattr(chain_sampler, "MOST_STEPS", 1_000)
    with pytest.raises(NotCertified, match="No table was drawn"):
        ChainTableSampler().draw(KINDS, 1_000, seed=COINS)


def test_a_value_whose_chains_do_not_agree_is_as_unsafe_as_can_be(monkeypatch):
    monkeypatch.setattr(chain_sampler, "CONDITIONAL_EFFECTIVE", math.inf)
    answers = ChainTableSampler(sweeps=4_096).answers(KINDS, CellQuestion((0, 0)), draws=100, seed=COINS)
    assert np.isinf(answers.deviation).all()
    assert answers.unsafe(0.5) == pytest.approx(1)
    assert answers.diagnostics["uncertified"] == answers.values.size


def test_a_value_that_is_not_settled_counts_with_its_upper_limit():
    hasty = ChainTableSampler(tolerance=1e-9, sweeps=4_096).answers(
        KINDS, CellQuestion((0, 0)), draws=200, seed=COINS
    )
    truth = true_answers(KINDS, CellQuestion((0, 0)))
    seen = np.searchsorted(truth.values, hasty.values)
    assert (hasty.deviation >= truth.deviation[seen] - 1e-9).all()
    assert np.isfinite(hasty.deviation).all()


def test_a_value_that_its_own_cell_betrays_needs_no_chain(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a chain was run")

    drawn = ChainTableSampler(epsilon=0.01).draw(LARGE, 8, seed=COINS)
    own = LARGE.count_law((0, 0))
    deviation = own.deviation(own.chances)
    monkeypatch.setattr(chain_sampler, "chain_runs", forbidden)
    sampler = ChainTableSampler(epsilon=0.01)
    far = np.array([table for table in drawn if deviation[table[0, 0]] > 0.01])
    for table in far:
        value = table[:1, 0]
        found, _ = sampler.weighed(LARGE, CellQuestion((0, 0)), value, [table[None]], COINS)
        assert found[0] == deviation[value[0]]
    assert far.size


@pytest.mark.parametrize("known", [KINDS, THREE_WAY])
def test_the_same_seed_gives_the_same_answers_on_any_number_of_threads(known, monkeypatch):
    def everything(threads):
        monkeypatch.setattr(chain_sampler, "available_threads", lambda _: threads)
        sampler = ChainTableSampler(epsilon=0.5)
        answers = sampler.answers(
            known, CellQuestion((0,) * (len(known.shape) - 1) + (1,)), draws=300, seed=COINS
        )
        posterior = sampler.posterior(known, seed=COINS)
        return b"".join(
            [
                answers.values.tobytes(),
                answers.probability.tobytes(),
                answers.deviation.tobytes(),
                repr((answers.error, dict(answers.diagnostics), posterior.error)).encode(),
                *[law.tobytes() for law in posterior.marginals.ravel()],
                sampler.draw(known, 50, seed=COINS).tobytes(),
            ]
        )

    assert everything(1) == everything(4) == everything(4)


def test_another_seed_gives_other_draws():
    one, other = (ChainTableSampler().draw(LARGE, 20, seed=PublicSeed(seed)) for seed in ("one", "other"))
    assert (one != other).any()


def test_progress_is_told_for_every_value():
    told = []
    sampler = ChainTableSampler(epsilon=0.5, progress=lambda *step: told.append(step))
    answers = sampler.answers(KINDS, CellQuestion((0, 0)), draws=200, seed=COINS)
    number = answers.values.size
    assert told == [("weighing answers", done + 1, number) for done in range(number)]


def test_groups_are_not_split_once_a_cell_is_bounded():
    known = PartialTable.total(KINDS.people, 14).answered(SplitQuestion(0, 0, 1), 4).bounded((0, 0), 0, 5)
    with pytest.raises(InvalidTable, match="after a cell was released or bounded"):
        ChainTableSampler().answers(known, SplitQuestion(1, 0, 1), draws=10, seed=COINS)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sweeps": 3}, "3 sweeps are too few"),
        ({"tolerance": 0.0}, "must be above 0, not 0.0"),
        ({"tolerance": math.nan}, "must be above 0, not nan"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(options, reason):
    with pytest.raises(InvalidArgument, match=reason):
        ChainTableSampler(**options)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_group_of_a_three_way_table_may_be_parted(axis):
    rest = [other for other in range(3) if other != axis]
    known = PartialTable.total(THREE_WAY.people, 13)
    for other in rest:
        known = known.answered(SplitQuestion(other, 0, 1), int(THREE_WAY.sums[other][0]))
    truth = true_answers(known, SplitQuestion(axis, 0, 1))
    answers = ChainTableSampler(tolerance=0.1).answers(
        known, SplitQuestion(axis, 0, 1), draws=1_000, seed=COINS
    )
    seen = np.searchsorted(truth.values, answers.values)
    observed = np.zeros(truth.values.size, dtype=int)
    observed[seen] = np.rint(answers.probability * 1_000)
    assert chi_square(observed, truth.probability) > 1e-4
    assert (answers.deviation >= truth.deviation[seen] - 1e-9).all()
    assert (answers.deviation <= truth.deviation[seen] + 0.1 * np.maximum(1, truth.deviation[seen])).all()
