"""The suppressor: what it may look at, when it may ask, and by what rule it decides."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.errors import InvalidArgument, InvalidPrivacy, InvalidTable, NotCertified
from tabulary.suppress.simulatable_method.confidential_counts import ConfidentialCounts
from tabulary.suppress.simulatable_method.decisions import (
    FOLLOWS,
    NOT_CERTIFIED,
    SAFE,
    UNSAFE,
    Decision,
    TotalQuestion,
)
from tabulary.suppress.simulatable_method.suppressor import (
    NO_SAFE_BINNING,
    TABLE,
    implied_answer,
    run_suppressor,
    total_answers,
)
from tabulary.suppress.simulatable_method.terms import SuppressionTerms
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion
from tabulary.table_samplers.people import People
from tabulary.table_samplers.table_sampler import PossibleAnswers
from tests.suppressed_tables import law, priors, weighted_tables
from tests.suppressors import Enumeration, Peeking, decided

EYE_HAIR = Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark"]})
TERMS = SuppressionTerms("0.9", "0.3", seed="a seed")


def small_people(number=7, probability=0.5, shape=(2, 2)) -> People:
    domain = Domain({f"x{axis}": range(levels) for axis, levels in enumerate(shape)})
    return People.of(domain, np.full(shape, number), probability)


class Scripted:
    """A sampler that says the same of every question: one value is unsafe with a given probability."""

    name = "scripted"

    def __init__(self, unsafe=0.0, *, error=0.0, deviation=1.0, draws=None):
        self.asked = []
        self._answers = PossibleAnswers(
            np.array([0, 1]), np.array([1 - unsafe, unsafe]), np.array([0.0, deviation]), error, draws
        )

    def answers(self, known, question, *, draws, seed):
        self.asked.append((question, draws, seed))
        return self._answers


class Refusing(Scripted):
    """A sampler that makes sure of nothing, or of nothing but sums."""

    def __init__(self, *, only_cells):
        super().__init__()
        self._only_cells = only_cells

    def answers(self, known, question, *, draws, seed):
        if isinstance(question, CellQuestion) or not self._only_cells:
            raise NotCertified("the chains disagree.")
        return super().answers(known, question, draws=draws, seed=seed)


# ---- what it may look at --------------------------------------------------------------------------------------------

PEOPLE = small_people()
REMEMBERING = Enumeration()
cells_of_seven = st.lists(st.integers(0, 7), min_size=4, max_size=4).map(lambda c: np.array(c).reshape(2, 2))


def record(decision: Decision) -> bytes:
    return json.dumps(decision.describe(), sort_keys=True).encode()


def unanswered(decision: Decision) -> bytes:
    return json.dumps({**decision.describe(), "value": None}, sort_keys=True).encode()


def assert_same_until_the_answers_part(one, other) -> None:
    """Each decision is byte for byte the same as long as all answers before it are."""
    for first, second in zip(one.decisions, other.decisions, strict=False):
        assert unanswered(first) == unanswered(second), "decided by a value that it may not see"
        if first.value != second.value:
            return
        assert record(first) == record(second)
    assert len(one.decisions) == len(other.decisions)
    assert one.outcome == other.outcome


@pytest.mark.parametrize("rule", ["computed", "sampled"])
@settings(deadline=None, max_examples=60)
@given(one=cells_of_seven, other=cells_of_seven)
def test_a_decision_is_the_same_whatever_the_values_that_it_may_not_see(rule, one, other):
    terms = SuppressionTerms("0.9", "0.3", rule=rule, seed="a seed")
    assert_same_until_the_answers_part(
        decided(PEOPLE, one, terms, REMEMBERING), decided(PEOPLE, other, terms, REMEMBERING)
    )


def test_the_whole_record_is_the_same_when_only_suppressed_cells_change_within_the_sums():
    # Four people a cell: 0 and 4 are unsafe, and too likely for a cell but not for a sum.
    people, terms = small_people(4), SuppressionTerms("0.9", "0.9", seed="a seed")
    records: dict[tuple[int, ...], set[tuple[bytes, ...]]] = {}
    changed = 0
    for values in product(range(5), repeat=4):
        counts = np.reshape(values, (2, 2))
        course = decided(people, counts, terms, REMEMBERING)
        cells = [decision for decision in course.decisions if isinstance(decision.question, CellQuestion)]
        if course.outcome == TABLE and not any(decision.released for decision in cells):
            sums = (*counts.sum(axis=0), *counts.sum(axis=1))
            changed += sums in records
            records.setdefault(sums, set()).add(tuple(map(record, course.decisions)))
    assert {len(same) for same in records.values()} == {1}
    assert changed > 100


def test_the_same_check_catches_a_suppressor_that_peeks():
    one, other = np.array([[3, 4], [4, 3]]), np.array([[0, 7], [7, 0]])
    courses = [
        decided(PEOPLE, counts, TERMS, Peeking(ConfidentialCounts(PEOPLE, counts), REMEMBERING))
        for counts in (one, other)
    ]
    with pytest.raises(AssertionError, match="decided by a value that it may not see"):
        assert_same_until_the_answers_part(*courses)


# ---- when it may ask ------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(counts=cells_of_seven, epsilon=st.sampled_from(["0.3", "0.6", "0.9"]))
def test_the_custodian_is_asked_only_after_a_decision_to_release_is_recorded(counts, epsilon):
    events = []
    custodian = ConfidentialCounts(PEOPLE, counts)

    class Spied:
        def answer(self, block):
            events.append("asked")
            return custodian.answer(block)

    course = run_suppressor(
        PEOPLE,
        Spied(),
        SuppressionTerms(epsilon, "0.5", seed="a seed"),
        choose=lambda known, question: REMEMBERING,
        record=events.append,
    )
    expected = []
    for decision in course.decisions:
        expected.append(decision.question)
        if decision.released and decision.reason != FOLLOWS:
            expected.append("asked")
    assert [getattr(event, "question", event) for event in events] == expected


def test_a_decision_is_recorded_without_its_answer():
    seen = []
    custodian = ConfidentialCounts(PEOPLE, np.full((2, 2), 3))
    run_suppressor(PEOPLE, custodian, TERMS, choose=lambda known, question: REMEMBERING, record=seen.append)
    assert {decision.value for decision in seen if decision.reason == SAFE} == {None}


def test_the_suppressor_is_not_handed_the_counts():
    class Mute:
        def answer(self, block):
            raise AssertionError("asked")

    people = small_people(1)
    course = run_suppressor(
        people, Mute(), SuppressionTerms("0.1", "0.1", seed=""), choose=lambda known, question: REMEMBERING
    )
    assert course.outcome == NO_SAFE_BINNING


# ---- the order of its questions -------------------------------------------------------------------------------------


def test_the_total_comes_first_then_rows_then_columns_then_cells_row_by_row():
    people = small_people(20, 0.5, (2, 3))
    course = decided(people, np.full((2, 3), 10), TERMS, Scripted())
    asked = [decision.question for decision in course.decisions]
    assert asked[:4] == [
        TotalQuestion(),
        SplitQuestion(0, 0, 1),
        SplitQuestion(1, 0, 1),
        SplitQuestion(1, 1, 2),
    ]
    assert asked[4:] == [CellQuestion((row, column)) for row in range(2) for column in range(3)]


def test_cells_are_decided_in_a_given_order():
    order = ((1, 1), (0, 1), (1, 0), (0, 0))
    course = decided(
        small_people(), np.full((2, 2), 3), SuppressionTerms("0.9", "0.3", order=order, seed=""), Scripted()
    )
    assert tuple(d.question.index for d in course.decisions if isinstance(d.question, CellQuestion)) == order


@pytest.mark.parametrize(
    "order", [((0, 0), (0, 1), (1, 0)), ((0, 0), (0, 1), (1, 0), (1, 0)), ((0, 0), (0, 1), (1, 0), (2, 2))]
)
def test_an_order_that_is_no_permutation_of_the_cells_is_refused(order):
    with pytest.raises(InvalidArgument, match="every cell of the table exactly once"):
        decided(small_people(), np.full((2, 2), 3), SuppressionTerms("0.9", "0.3", order=order))


def test_an_order_of_cells_is_refused_where_bins_may_change_them():
    order = ((0, 0), (0, 1), (1, 0), (1, 1))
    with pytest.raises(InvalidArgument, match="`order` and `bins` are given together"):
        decided(
            small_people(), np.full((2, 2), 3), SuppressionTerms("0.9", "0.3", order=order, bins={"x0": 2})
        )


def test_progress_ends_at_the_number_of_questions():
    seen = []
    people = small_people()
    run_suppressor(
        people,
        ConfidentialCounts(people, np.full((2, 2), 3)),
        TERMS,
        choose=lambda known, question: REMEMBERING,
        progress=lambda *step: seen.append(step),
    )
    assert seen == [("deciding", done, 7) for done in range(1, 8)]


# ---- by what rule it decides ----------------------------------------------------------------------------------------


def cell_decisions(people, terms, sampler, counts=3):
    course = decided(people, np.full(people.shape, counts), terms, sampler)
    return [decision for decision in course.decisions if isinstance(decision.question, CellQuestion)]


def test_delta_is_divided_among_the_cells_with_all_their_sums():
    terms = SuppressionTerms("0.5", "0.2", bins={"age": 4, "sex": 9})
    domain = Domain({"age": range(20), "sex": ["F", "M"], "job": range(3)})
    assert terms.limits(domain) == (4, 2, 3)
    assert terms.parts(domain) == 5 * 3 * 4
    assert terms.share(16) == 0.0125


@pytest.mark.parametrize(("unsafe", "released"), [(0.0333, True), (0.0334, False)])
def test_a_computed_decision_releases_where_an_unsafe_answer_has_probability_at_most_delta_over_t(
    unsafe, released
):
    decision = decided(
        small_people(), np.full((2, 2), 3), SuppressionTerms("0.9", "0.3", seed=""), Scripted(unsafe)
    ).decisions[1]
    assert decision.released is released
    assert (decision.unsafe, decision.limit, decision.draws) == (unsafe, pytest.approx(0.3 / 9), None)


def test_what_a_computation_leaves_out_counts_as_unsafe():
    terms = SuppressionTerms("0.9", "0.3", seed="")
    sampler = Scripted(0.033, error=0.001)
    decision = decided(small_people(), np.full((2, 2), 3), terms, sampler).decisions[1]
    assert not decision.released
    assert decision.error == 0.001


@pytest.mark.parametrize(("deviation", "released"), [(0.9, True), (0.9 + 1e-9, True), (0.9 + 1e-5, False)])
def test_a_deviation_of_epsilon_is_safe_though_rounding_brings_it_above(deviation, released):
    sampler = Scripted(0.5, deviation=deviation)
    decision = decided(
        small_people(), np.full((2, 2), 3), SuppressionTerms("0.9", "0.3", seed=""), sampler
    ).decisions[1]
    assert decision.released is released


def test_the_sampling_counts_are_those_of_the_algorithms():
    terms = SuppressionTerms("0.5", "0.2", rule="sampled", seed="")
    assert terms.draws(16) == math.ceil(80 * math.log(80)) == 351
    assert terms.allowed(16) == pytest.approx(math.log(80) / 2)
    assert SuppressionTerms("0.5", "0.2").draws(121) == 3876


def test_a_sampled_decision_counts_unsafe_draws_from_the_law_of_the_answer():
    people, terms = small_people(), SuppressionTerms("0.9", "0.3", rule="sampled", seed="coins")
    decisions = [
        decided(
            people,
            np.full((2, 2), 3),
            SuppressionTerms("0.9", "0.3", rule="sampled", seed=f"{k}"),
            Scripted(0.02),
        ).decisions[1]
        for k in range(400)
    ]
    draws, limit = terms.draws(9), terms.allowed(9)
    assert {(d.draws, d.limit) for d in decisions} == {(draws, limit)} == {(103, limit)}
    assert all(d.released == (d.unsafe <= limit) for d in decisions)
    assert {d.released for d in decisions} == {True, False}
    # 400 binomial counts of mean 2.06 and standard deviation 1.42: five standard errors of their mean.
    assert np.mean([d.unsafe for d in decisions]) == pytest.approx(2.06, abs=5 * 1.42 / 20)


def test_simulated_answers_are_counted_whatever_the_rule():
    # 3 of 103 simulated answers are unsafe, more than ½ ln 30; by the computed rule 3/103 would be below δ/T = 1/30.
    simulated = Scripted(3 / 103, draws=103, error=0.01)
    decision = decided(
        small_people(), np.full((2, 2), 3), SuppressionTerms("0.9", "0.3", seed=""), simulated
    ).decisions[1]
    assert (decision.unsafe, decision.draws, decision.released) == (3, 103, False)


def test_every_decision_has_random_numbers_of_its_own():
    sampler = Scripted()
    decided(small_people(), np.full((2, 2), 3), TERMS, sampler)
    assert len({seed for _, _, seed in sampler.asked}) == len(sampler.asked) == 3


def test_a_cell_that_could_not_be_made_sure_of_is_suppressed_and_the_record_says_so():
    decisions = cell_decisions(small_people(), TERMS, Refusing(only_cells=True))
    assert not any(decision.released for decision in decisions)
    assert {d.reason for d in decisions} == {f"{NOT_CERTIFIED}: the chains disagree."}
    assert {d.unsafe for d in decisions} == {None}


def test_there_is_no_table_where_a_sum_could_not_be_made_sure_of():
    course = decided(small_people(), np.full((2, 2), 3), TERMS, Refusing(only_cells=False))
    assert course.outcome == NO_SAFE_BINNING
    assert [decision.released for decision in course.decisions] == [True, False]


def test_there_is_no_table_where_a_level_cannot_be_parted_from_the_next():
    # One woman among a hundred men: her row's sum is her value.
    people = People.of(Domain({"sex": ["F", "M"], "hair": ["fair", "dark"]}), [[1, 0], [50, 50]], 0.5)
    course = decided(people, [[1, 0], [20, 30]], SuppressionTerms("0.5", "0.2", seed=""))
    assert course.outcome == NO_SAFE_BINNING
    assert [(d.asked, d.released) for d in course.decisions] == [
        ("the total", True),
        ("sex: F apart from M", False),
    ]
    assert course.decisions[-1].unsafe == pytest.approx(1)
    assert course.decisions[-1].reason == UNSAFE


# ---- what follows anyway --------------------------------------------------------------------------------------------


def test_a_cell_that_follows_from_what_is_released_is_no_question():
    sampler = Scripted()
    decisions = cell_decisions(small_people(), TERMS, sampler)
    assert [d.reason for d in decisions] == [SAFE, FOLLOWS, FOLLOWS, FOLLOWS]
    assert [d.value for d in decisions] == [3, 3, 3, 3]
    assert [question for question, _, _ in sampler.asked] == [
        SplitQuestion(0, 0, 1),
        SplitQuestion(1, 0, 1),
        CellQuestion((0, 0)),
    ]


def test_a_cell_that_follows_from_others_released_after_it_is_not_left_out():
    # Of the four cells the first alone is called unsafe; the second, once it is released, gives the first away.
    class FirstIsUnsafe(Scripted):
        def answers(self, known, question, *, draws, seed):
            first = Scripted(1.0) if question == CellQuestion((0, 0)) else Scripted()
            return first.answers(known, question, draws=draws, seed=seed)

    decisions = cell_decisions(small_people(), TERMS, FirstIsUnsafe())
    assert [(d.question.index, d.reason) for d in decisions] == [
        ((0, 0), UNSAFE),
        ((0, 1), SAFE),
        ((1, 0), FOLLOWS),
        ((1, 1), FOLLOWS),
        ((0, 0), FOLLOWS),
    ]


@settings(deadline=None, max_examples=60)
@given(
    people=st.lists(st.integers(0, 3), min_size=6, max_size=6),
    data=st.data(),
)
def test_an_implied_answer_is_the_only_one_of_every_table_that_agrees(people, data):
    number = np.array(people).reshape(2, 3)
    counts = np.array([data.draw(st.integers(0, n)) for n in people]).reshape(2, 3)
    folk = People.of(Domain({"a": "xy", "b": "xyz"}), number, 0.5)
    given_cells = np.where(np.array([data.draw(st.booleans()) for _ in people]).reshape(2, 3), counts, np.nan)
    known = PartialTable.table(folk, (counts.sum(axis=1), counts.sum(axis=0)), given_cells)
    tables, _ = weighted_tables(known)
    narrow = known.tightened()
    lower, upper = narrow.lower, narrow.upper
    assert (lower <= tables.min(axis=0)).all()
    assert (tables.max(axis=0) <= upper).all()
    for index in np.ndindex(2, 3):
        implied = implied_answer(known, CellQuestion(index))
        assert implied is None or implied == counts[index]


def test_a_split_with_nobody_on_one_side_follows():
    people = People.of(EYE_HAIR, [[0, 0], [9, 9]], 0.5)
    assert implied_answer(PartialTable.total(people, 8), SplitQuestion(0, 0, 1)) == 0
    assert implied_answer(PartialTable.total(people, 8), SplitQuestion(1, 0, 1)) is None


def test_sums_that_no_table_has_are_refused_rather_than_searched_for_ever():
    people = People.of(EYE_HAIR, [[5, 5], [5, 5]], 0.5)
    known = PartialTable.table(people, (np.array([9, 1]), np.array([9, 1])))
    with pytest.raises(InvalidTable, match="contradict each other"):
        known.tightened()


# ---- the total ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.lists(st.sampled_from([0.05, 0.3, 0.5, 0.8]), min_size=4, max_size=4),
)
def test_the_answers_for_the_total_are_those_of_everyone_added_up(number, prior):
    people = People.of(EYE_HAIR, np.reshape(number, (2, 2)), np.reshape(prior, (2, 2)))
    answers = total_answers(people)
    everyone = priors(people.count_law(((0, 2), (0, 2))))
    weights = law(everyone)
    np.testing.assert_allclose(answers.probability, weights, atol=1e-12)
    for value in range(len(everyone) + 1):
        worst = 0.0
        for person, p in enumerate(everyone):
            others = np.append(law(everyone[:person] + everyone[person + 1 :]), 0.0)
            posterior = p * (others[value - 1] if value else 0.0) / weights[value]
            worst = max(worst, abs(1 - posterior / p), abs(1 - (1 - posterior) / (1 - p)))
        assert answers.deviation[value] == pytest.approx(worst, abs=1e-9)


def test_totals_that_are_left_out_are_in_the_error():
    people = People.of(EYE_HAIR, np.full((2, 2), 400), 0.4)
    answers = total_answers(people)
    assert answers.values.size < 400
    assert answers.probability.sum() + answers.error == pytest.approx(1, abs=1e-12)
    assert 0 < answers.error < 1e-15


def test_a_table_of_nobody_is_published():
    course = decided(People.of(EYE_HAIR, np.zeros((2, 2)), 0.5), np.zeros((2, 2), dtype=int), TERMS)
    assert course.outcome == TABLE
    assert {decision.value for decision in course.decisions} == {0}


# ---- tables of other shapes -----------------------------------------------------------------------------------------


def test_a_three_way_table_is_decided_axis_by_axis():
    people = small_people(2, 0.5, (2, 2, 2))
    course = decided(people, np.ones((2, 2, 2), dtype=int), SuppressionTerms(1, "0.9", seed=""))
    assert course.outcome == TABLE
    asked = [decision.question for decision in course.decisions]
    assert asked[:4] == [
        TotalQuestion(),
        SplitQuestion(0, 0, 1),
        SplitQuestion(1, 0, 1),
        SplitQuestion(2, 0, 1),
    ]
    assert len(asked) == 12


def test_a_table_on_one_attribute_has_its_sums_for_cells():
    people = small_people(20, 0.5, (3,))
    course = decided(people, np.array([9, 10, 11]), SuppressionTerms("0.9", "0.3", seed=""))
    assert [d.value for d in course.decisions] == [30, 9, 10, 9, 10, 11]
    assert {d.reason for d in course.decisions[3:]} == {FOLLOWS}


# ---- terms that cannot be -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), "much", None, True])
def test_an_epsilon_that_cannot_be_is_refused(epsilon):
    with pytest.raises(InvalidPrivacy, match="epsilon"):
        SuppressionTerms(epsilon, "0.2")


@pytest.mark.parametrize("delta", [0, 1, 1.5, -0.1, float("nan"), float("inf"), "little"])
def test_a_delta_that_cannot_be_is_refused(delta):
    with pytest.raises(InvalidPrivacy, match="delta"):
        SuppressionTerms("0.5", delta)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"rule": "guessed"}, "unknown rule 'guessed'.*'computed', 'sampled'"),
        ({"sampler": "best"}, "unknown sampler 'best'.*'auto', 'exact', 'chain'"),
        ({"bins": {"age": 0}}, "at least 1"),
        ({"bins": {"age": 2.5}}, "at least 1"),
        ({"bins": {"age": True}}, "at least 1"),
        ({"bins": [4]}, "by attribute"),
        ({"seed": 7}, "the seed must be a text"),
    ],
)
def test_an_option_that_cannot_be_is_refused(option, message):
    with pytest.raises(InvalidArgument, match=message):
        SuppressionTerms("0.5", "0.2", **option)


def test_bins_of_an_attribute_that_is_not_there_are_refused():
    with pytest.raises(InvalidArgument, match="'age', which the table does not have"):
        decided(small_people(), np.full((2, 2), 3), SuppressionTerms("0.9", "0.3", bins={"age": 2}))


def test_terms_come_back_from_their_description():
    terms = SuppressionTerms(
        "1/3", 0.2, bins={"age": 4}, order=None, rule="sampled", sampler="chain", seed="x"
    )
    assert SuppressionTerms.from_description(json.loads(json.dumps(terms.describe()))) == terms
    assert terms.epsilon == Fraction(1, 3)
    with pytest.raises(InvalidArgument, match="not in the form that Tabulary writes"):
        SuppressionTerms.from_description({**terms.describe(), "more": 1})


def test_the_derived_seed_depends_on_everything_public_and_on_nothing_else():
    people = small_people()
    seed = SuppressionTerms("0.5", "0.2").derived_seed(people)
    assert SuppressionTerms("0.5", "0.2", seed="another").derived_seed(people) == seed
    assert SuppressionTerms(Fraction(1, 2), 0.2).derived_seed(small_people()) == seed
    others = {
        SuppressionTerms("0.6", "0.2").derived_seed(people),
        SuppressionTerms("0.5", "0.1").derived_seed(people),
        SuppressionTerms("0.5", "0.2", rule="sampled").derived_seed(people),
        SuppressionTerms("0.5", "0.2", sampler="chain").derived_seed(people),
        SuppressionTerms("0.5", "0.2", bins={"x0": 2}).derived_seed(people),
        SuppressionTerms("0.5", "0.2").derived_seed(small_people(8)),
        SuppressionTerms("0.5", "0.2").derived_seed(small_people(7, 0.4)),
    }
    assert len({seed, *others}) == 8
