"""The exact program agrees with going through every table, and says how far it may be from the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import tabulary as tb
from tabulary.core.domain import Domain
from tabulary.errors import InvalidTable
from tabulary.table_samplers.column_program import TOLERANCE
from tabulary.table_samplers.exact_sampler import LIMIT, ExactTableSampler
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion
from tabulary.table_samplers.people import People
from tabulary.table_samplers.public_seed import PublicSeed
from tests.suppressed_tables import (
    known_table,
    posteriors_by_data_sets,
    questions,
    small_tables,
    true_answers,
    true_marginals,
    true_posteriors,
)

COINS = PublicSeed("a seed")


def _answers(known, question, **options):
    return ExactTableSampler(**options).answers(known, question, draws=0, seed=COINS)


def _assert_answers_are(answers, truth):
    assert answers.values.tolist() == truth.values.tolist()
    np.testing.assert_allclose(answers.probability, truth.probability, atol=1e-9)
    np.testing.assert_allclose(answers.deviation, truth.deviation, rtol=1e-9, atol=1e-9)


def _plain(shape, people=30, prior=0.4, seed=0):
    """A table of many people, and counts as their priors have it."""
    generator = np.random.default_rng(seed)
    number = np.full(shape, people)
    return number, np.full(shape, prior), generator.binomial(number, prior)


# ---- small tables: nothing is left out ------------------------------------------------------------------------------


@settings(max_examples=200)
@given(small_tables(), st.data())
def test_answers_are_those_of_all_tables_listed_one_by_one(known, data):
    question = data.draw(questions(known))
    answers = _answers(known, question)
    _assert_answers_are(answers, true_answers(known, question))
    assert answers.error == 0
    assert answers.draws is None


@settings(max_examples=200)
@given(small_tables(grouped=True), st.data())
def test_answers_to_a_split_are_those_of_all_finer_tables_listed_one_by_one(known, data):
    question = data.draw(questions(known))
    _assert_answers_are(_answers(known, question), true_answers(known, question))


@pytest.mark.parametrize("groups", [((), ()), ((1,), ()), ((), (1, 2)), ((1, 2), (2,)), ((2,), (1, 2, 3))])
@pytest.mark.parametrize("axis", [0, 1])
def test_either_axis_may_be_parted_whatever_the_other_looks_like(groups, axis):
    number = np.array([[2, 1, 3, 0], [1, 2, 1, 2], [2, 2, 0, 1]])
    counts = np.array([[1, 1, 2, 0], [0, 1, 1, 1], [2, 0, 0, 1]])
    prior = np.linspace(0.1, 0.8, 12).reshape(3, 4)
    known = known_table(number, prior, counts, groups=groups)
    for group, (first, last) in enumerate(known.groups[axis]):
        for cut in range(first + 1, last):
            question = SplitQuestion(axis, group, cut)
            _assert_answers_are(_answers(known, question), true_answers(known, question))


@settings(max_examples=100)
@given(small_tables(axes=1, levels=4, grouped=True), st.data())
def test_tables_of_one_attribute_are_answered_too(known, data):
    question = data.draw(questions(known))
    _assert_answers_are(_answers(known, question), true_answers(known, question))


@settings(max_examples=50)
@given(small_tables(axes=2, levels=3), st.integers(0, 2), st.data())
def test_an_attribute_of_one_group_changes_nothing(known, position, data):
    question = CellQuestion(tuple(data.draw(st.integers(0, size - 1)) for size in known.shape))
    levels = list(known.people.shape)
    levels.insert(position, 1)
    folk = People(
        Domain({f"x{axis}": range(size) for axis, size in enumerate(levels)}),
        np.expand_dims(known.people.number, position),
        np.expand_dims(known.people.probability, position),
    )
    sums, groups, index = list(known.sums), list(known.groups), list(question.index)
    sums.insert(position, np.array([known.sums[0].sum()]))
    groups.insert(position, ((0, 1),))
    index.insert(position, 0)
    bounds = (np.expand_dims(bound, position) for bound in (known.lower, known.upper))
    wider = PartialTable(folk, tuple(groups), tuple(sums), *bounds)
    flat, same = _answers(known, question), _answers(wider, CellQuestion(tuple(index)))
    assert flat.values.tolist() == same.values.tolist()
    np.testing.assert_allclose(flat.probability, same.probability, atol=1e-12)
    np.testing.assert_allclose(flat.deviation, same.deviation, atol=1e-12)


@settings(max_examples=100)
@given(small_tables())
def test_the_law_of_each_cell_is_that_of_all_tables_listed_one_by_one(known):
    posterior = ExactTableSampler().posterior(known, seed=COINS)
    for index, marginal in np.ndenumerate(true_marginals(known)):
        np.testing.assert_allclose(posterior.marginals[index], marginal, atol=1e-9)
    assert posterior.error == 0


@settings(max_examples=100)
@given(small_tables(levels=2, people=3, kinds=3))
def test_everybody_has_the_posterior_that_all_data_sets_give_him(known):
    posterior = ExactTableSampler().posterior(known, seed=COINS)
    listed = true_posteriors(known)
    for index, truth in posteriors_by_data_sets(known).items():
        count_law = known.count_law(index)
        np.testing.assert_allclose(listed[index], truth, atol=1e-9)
        np.testing.assert_allclose(count_law.posterior(posterior.marginals[index]), truth, atol=1e-9)


def test_sums_that_leave_some_cells_no_choice_are_no_obstacle():
    # No row or column by itself fixes a cell here; rows 1-2 and columns 1-2 together do.
    people = [[2, 2, 3], [2, 2, 3], [3, 3, 4]]
    known = known_table(people, 0.3, [[2, 2, 1], [2, 2, 2], [1, 1, 0]])
    for index in np.ndindex(3, 3):
        _assert_answers_are(_answers(known, CellQuestion(index)), true_answers(known, CellQuestion(index)))


# ---- larger tables: what is left out is bounded ---------------------------------------------------------------------


@pytest.mark.parametrize("people", [100, 2_000, 10_000])
@pytest.mark.parametrize("away", [0, 20])
def test_a_cut_law_is_the_true_one_within_its_error_however_unlikely_the_sums(people, away):
    # The first row's sum is that many standard deviations from what the prior has.
    expected, deviation = 2 * people * 0.3, np.sqrt(2 * people * 0.3 * 0.7)
    first, second = int(min(expected + away * deviation, 2 * people - 1)), int(expected)
    column = (first + second) // 2
    folk = People.of(Domain({"x": range(2), "y": range(2)}), np.full((2, 2), people), 0.3)
    known = PartialTable.table(folk, (np.array([first, second]), np.array([column, first + second - column])))
    answers = _answers(known, CellQuestion((0, 0)))
    # C(n, x) C(n, r - x) C(n, c - x) C(n, s - c + x), with s the second row's sum: two hypergeometric laws.
    values = np.arange(people + 1)
    logs = stats.hypergeom(2 * people, people, first).logpmf(values)
    logs = logs + stats.hypergeom(2 * people, people, second).logpmf(column - values)
    truth = np.exp(logs - logs.max())
    found = np.zeros(people + 1)
    found[answers.values] = answers.probability
    assert np.abs(found - truth / truth.sum()).sum() / 2 <= answers.error + 1e-10
    assert answers.error <= TOLERANCE
    assert answers.values.size < 1_500


@pytest.mark.parametrize("question", [CellQuestion((0, 1)), CellQuestion((2, 0))])
def test_the_deviation_of_a_cut_law_is_an_upper_bound_and_a_close_one(question, monkeypatch):
    number = np.full((3, 3, 2), 25)
    counts = np.array([[20, 18, 22], [25, 21, 16], [19, 24, 20]])
    known = known_table(number, np.array([0.3, 0.5]), counts)
    cut = _answers(known, question)
    assert cut.error > 0
    monkeypatch.setattr("tabulary.table_samplers.columns.WHOLE", 10_000)
    whole = _answers(known, question, limit=1e12)
    assert whole.error == 0
    assert set(cut.values) < set(whole.values)
    kept = np.isin(whole.values, cut.values)
    missed = whole.probability[~kept].sum()
    distance = (np.abs(whole.probability[kept] - cut.probability).sum() + missed) / 2
    assert distance <= cut.error
    assert (cut.deviation >= whole.deviation[kept] - 1e-10).all()
    likely = cut.probability > 1e-6
    np.testing.assert_allclose(cut.deviation[likely], whole.deviation[kept][likely], atol=1e-2)
    np.testing.assert_allclose(
        cut.deviation[cut.probability > 1e-3], whole.deviation[kept][cut.probability > 1e-3], atol=1e-5
    )


@pytest.mark.parametrize("split", [SplitQuestion(0, 0, 1), SplitQuestion(1, 1, 2)])
def test_a_split_of_a_cut_law_is_an_upper_bound_too(split, monkeypatch):
    number, prior, counts = _plain((3, 3), people=40)
    groups = ((2,), (1, 2)) if split.axis == 0 else ((1, 2), (1,))
    known = known_table(number, prior, counts, groups=groups)
    cut = _answers(known, split)
    assert 0 < cut.error <= TOLERANCE
    monkeypatch.setattr("tabulary.table_samplers.columns.WHOLE", 10_000)
    whole = _answers(known, split, limit=1e12)
    kept = np.isin(whole.values, cut.values)
    missed = whole.probability[~kept].sum()
    assert (np.abs(whole.probability[kept] - cut.probability).sum() + missed) / 2 <= cut.error
    assert (cut.deviation >= whole.deviation[kept] - 1e-10).all()
    likely = cut.probability > 1e-3
    np.testing.assert_allclose(cut.deviation[likely], whole.deviation[kept][likely], atol=1e-5)


def test_more_people_than_the_prior_can_explain_underflow_nothing():
    # Everybody in one corner has it though hardly anybody should: 50 standard deviations away.
    people = np.full((2, 3), 1_000)
    counts = [[980, 10, 12], [9, 11, 10]]
    posterior = ExactTableSampler().posterior(known_table(people, 0.01, counts), seed=COINS)
    assert posterior.error <= TOLERANCE
    for index, count in np.ndenumerate(np.array(counts)):
        marginal = np.asarray(posterior.marginals[index])
        assert marginal.sum() == pytest.approx(1, abs=1e-12)
        assert abs(marginal @ np.arange(1_001) - count) < 30


def test_released_cells_make_a_question_cheaper():
    number, prior, counts = _plain((3, 4), people=100)
    nothing = known_table(number, prior, counts)
    row = known_table(number, prior, counts, released=np.array([[True] * 4, [False] * 4, [False] * 4]))
    assert (
        ExactTableSampler().cost(row, CellQuestion((1, 0)))
        < ExactTableSampler().cost(nothing, CellQuestion((1, 0))) / 100
    )


def test_a_long_table_of_two_rows_is_within_reach():
    number, prior, counts = _plain((2, 400), people=100)
    folk = People.of(Domain({"x": range(2), "y": range(400)}), number, prior)
    known = PartialTable.table(folk, (counts.sum(axis=1), counts.sum(axis=0)))
    assert ExactTableSampler().feasible(known, CellQuestion((0, 200)))
    assert _answers(known, CellQuestion((0, 200))).error <= TOLERANCE


def test_the_table_of_the_paper_is_within_reach_at_every_step():
    described = tb.datasets.describe("hair-eye-gene")
    counts = np.asarray(described.table.counts)
    known = known_table(described.people.counts, np.asarray(described.probability.counts), counts)
    for index in np.ndindex(counts.shape):
        assert ExactTableSampler().feasible(known, CellQuestion(index))
        answers = _answers(known, CellQuestion(index))
        # One value meets ε exactly: its upper bound is a hair above.
        assert answers.unsafe(0.5 + 1e-6) + answers.error < 0.2 / 16
        known = known.answered(CellQuestion(index), int(counts[index]))


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_a_table_of_three_attributes_is_left_to_the_chain():
    known = known_table(np.full((2, 2, 2), 2), 0.5, np.ones((2, 2, 2), dtype=int))
    assert not ExactTableSampler().feasible(known, CellQuestion((0, 0, 0)))
    for refused in (
        lambda: _answers(known, CellQuestion((0, 0, 0))),
        lambda: ExactTableSampler().posterior(known, seed=COINS),
        lambda: ExactTableSampler().draw(known, 1, seed=COINS),
    ):
        with pytest.raises(InvalidTable, match="Use the chain"):
            refused()


def test_a_split_that_makes_a_third_attribute_is_left_to_the_chain():
    known = known_table(np.full((2, 2, 2), 2), 0.5, np.ones((2, 2, 2), dtype=int), groups=((1,), (1,), ()))
    assert ExactTableSampler().feasible(known, CellQuestion((0, 0, 0)))
    assert ExactTableSampler().cost(known, SplitQuestion(2, 0, 1)) == np.inf
    with pytest.raises(InvalidTable, match="Use the chain"):
        _answers(known, SplitQuestion(2, 0, 1))


def test_a_table_that_is_too_large_is_refused_before_any_work():
    number, prior, counts = _plain((10, 10), people=100)
    known = known_table(number, prior, counts)
    assert ExactTableSampler().cost(known, CellQuestion((0, 0))) > LIMIT
    with pytest.raises(InvalidTable, match="above its limit"):
        _answers(known, CellQuestion((0, 0)))


def test_sums_that_no_table_has_are_refused():
    folk = known_table([[3, 3], [3, 3]], 0.5, [[1, 1], [1, 1]]).people
    known = PartialTable.table(
        folk, (np.array([3, 3]), np.array([3, 3])), np.array([[3, np.nan], [np.nan, 2.0]])
    )
    for refused in (
        lambda: _answers(known, CellQuestion((0, 1))),
        lambda: ExactTableSampler().posterior(known, seed=COINS),
        lambda: ExactTableSampler().draw(known, 1, seed=COINS),
    ):
        with pytest.raises(InvalidTable, match="contradict"):
            refused()


def test_sums_that_contradict_each_other_only_together_are_refused():
    # Every row and every column could be filled by itself; the first two of each, together, cannot.
    folk = known_table(np.full((4, 4), 1), 0.5, np.zeros((4, 4), dtype=int)).people
    upper = np.ones((4, 4), dtype=np.int64)
    upper[:2, :2] = 0
    known = PartialTable(
        folk,
        tuple(tuple((level, level + 1) for level in range(4)) for _ in range(2)),
        (np.array([2, 2, 0, 2]), np.array([2, 2, 1, 1])),
        np.zeros((4, 4), dtype=np.int64),
        upper,
    )
    with pytest.raises(InvalidTable, match="contradict"):
        ExactTableSampler().posterior(known, seed=COINS)


def test_a_refusal_holds_no_count():
    number, prior, counts = _plain((10, 10), people=777)
    with pytest.raises(InvalidTable, match="operations for this table, above its limit") as refusal:
        _answers(known_table(number, prior, counts), CellQuestion((0, 0)))
    assert not any(str(value) in str(refusal.value) for value in (777, int(counts[0, 0]), int(counts.sum())))


# ---- draws ----------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(small_tables(), st.integers(0, 5))
def test_drawn_tables_agree_with_what_is_known(known, number):
    tables = ExactTableSampler().draw(known, number, seed=COINS)
    assert tables.shape == (number, *known.shape)
    assert ((tables >= known.lower) & (tables <= known.upper)).all()
    assert (tables.sum(axis=2) == known.sums[0]).all()
    assert (tables.sum(axis=1) == known.sums[1]).all()


def test_draws_of_a_large_table_have_the_computed_means():
    number, prior, counts = _plain((3, 5), people=80)
    known = known_table(number, prior, counts)
    tables = ExactTableSampler().draw(known, 4_000, seed=COINS)
    posterior = ExactTableSampler().posterior(known, seed=COINS)
    for index in np.ndindex(known.shape):
        law = np.asarray(posterior.marginals[index])
        mean = law @ np.arange(law.size)
        sd = np.sqrt(law @ (np.arange(law.size) - mean) ** 2)
        assert abs(tables[:, *index].mean() - mean) < 5 * sd / np.sqrt(4_000)
