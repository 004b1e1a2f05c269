"""Binning: where ordered attributes are parted, how far, and what is said when they cannot be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.suppress.simulatable_method.binning import joined_label, masses, median_cut, next_split
from tabulary.suppress.simulatable_method.suppressor import NO_SAFE_BINNING, TABLE, grouped_domain
from tabulary.suppress.simulatable_method.terms import SuppressionTerms
from tabulary.table_samplers.partial_table import CellQuestion, PartialTable, SplitQuestion
from tabulary.table_samplers.people import People
from tabulary.table_samplers.table_sampler import PossibleAnswers
from tests.suppressors import Enumeration, decided

AGES = Domain({"age": range(20, 26), "sex": ["F", "M"]})


def aged(*people: int, probability=0.5) -> People:
    """People of six ages, as many of either sex."""
    return People.of(AGES, np.repeat(people, 2).reshape(6, 2), probability)


class Wary(Enumeration):
    """A sampler that calls some splits unsafe and everything else safe."""

    def __init__(self, *unsafe_cuts: int) -> None:
        self.cuts = []
        self._unsafe = unsafe_cuts

    def answers(self, known, question, *, draws, seed):
        deviation = 0.0
        if isinstance(question, SplitQuestion) and question.axis == 0:
            self.cuts.append(question.cut)
            deviation = 9.0 * (question.cut in self._unsafe)
        return PossibleAnswers(np.array([0]), np.ones(1), np.array([deviation]))


def course(people, sampler, **bins):
    counts = people.in_cells // 2
    return decided(people, counts, SuppressionTerms("0.5", "0.2", bins=bins, seed=""), sampler)


# ---- where ----------------------------------------------------------------------------------------------------------


def test_mass_is_the_expected_number_of_people_with_the_private_attribute():
    people = People.of(AGES, np.full((6, 2), 10), np.full((6, 2), [0.1, 0.5]))
    assert masses(people, 0) == [6.0] * 6
    assert masses(people, 1) == [6.0, 30.0]


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=9))
def test_no_other_cut_makes_the_two_masses_more_equal(mass):
    cut = median_cut(mass, (0, len(mass)))
    if cut is None:
        assert sum(weight > 0 for weight in mass) < 2
        return
    assert sum(mass[:cut]) > 0
    assert sum(mass[cut:]) > 0
    gaps = [
        abs(sum(mass[:other]) - sum(mass[other:]))
        for other in range(1, len(mass))
        if sum(mass[:other]) > 0 and sum(mass[other:]) > 0
    ]
    assert abs(sum(mass[:cut]) - sum(mass[cut:])) <= min(gaps) + 1e-6


def test_of_several_cuts_as_good_the_first_is_taken():
    assert median_cut([0.1, 0.2, 0.0, 0.3], (0, 4)) == 2
    assert median_cut([1.0, 1.0, 1.0], (0, 3)) == 1


def test_a_tie_is_a_tie_in_whatever_order_numbers_are_added():
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in their last digit when added one by one.
    assert median_cut([0.1, 0.2, 0.3, 5.0, 5.0, 0.3, 0.2, 0.1], (0, 8)) == 4


def test_an_attribute_is_parted_at_its_median_then_its_heavier_part():
    sampler = Wary()
    # Masses 10, 2, 2, 2, 2, 2: the first age alone weighs as much as all the others.
    ended = course(aged(10, 2, 2, 2, 2, 2), sampler, age=4)
    assert sampler.cuts == [1, 3, 4]
    assert ended.outcome == TABLE
    assert ended.known.groups[0] == ((0, 1), (1, 3), (3, 4), (4, 6))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(4, 9), min_size=6, max_size=6), st.integers(1, 8))
def test_limits_are_respected(people, limit):
    ended = course(aged(*people), Wary(), age=limit)
    groups = ended.known.groups[0]
    assert len(groups) == min(limit, 6)
    assert [first for first, _ in groups] == [0, *(last for _, last in groups[:-1])]
    assert groups[-1][1] == 6


def test_attributes_without_bins_keep_their_levels():
    ended = course(aged(4, 4, 4, 4, 4, 4), Wary(), age=2)
    assert ended.known.groups[1] == ((0, 1), (1, 2))
    ended = course(aged(4, 4, 4, 4, 4, 4), Wary(), sex=1)
    assert ended.known.groups == (tuple((age, age + 1) for age in range(6)), ((0, 2),))


def test_columns_are_parted_after_rows():
    ended = course(aged(4, 4, 4, 4, 4, 4), Wary(), age=3)
    axes = [d.question.axis for d in ended.decisions if isinstance(d.question, SplitQuestion)]
    assert axes == [0, 0, 1]


# ---- what is not safe -----------------------------------------------------------------------------------------------


def test_a_split_that_is_not_safe_is_not_made_and_the_others_go_on():
    sampler = Wary(5)
    ended = course(aged(4, 4, 4, 4, 4, 4), sampler, age=6)
    # Halves; then the first half falls apart, and the second keeps its last two ages together.
    assert sampler.cuts == [3, 1, 4, 2, 5]
    assert ended.outcome == TABLE
    assert ended.known.groups[0] == ((0, 1), (1, 2), (2, 3), (3, 4), (4, 6))
    refused = [d for d in ended.decisions if not d.released]
    assert [(d.asked, d.value) for d in refused] == [("age: 24 apart from 25", None)]


def test_there_is_no_table_where_an_attribute_cannot_be_parted_at_all():
    ended = course(aged(4, 4, 4, 4, 4, 4), Wary(3), age=4)
    assert ended.outcome == NO_SAFE_BINNING
    assert [(d.asked, d.released) for d in ended.decisions] == [
        ("the total", True),
        ("age: 20-22 apart from 23-25", False),
    ]


def test_what_was_committed_before_there_was_no_table_stays_in_the_record():
    people = People.of(AGES, np.full((6, 2), 4), 0.5)

    class SexIsUnsafe(Wary):
        def answers(self, known, question, *, draws, seed):
            answers = super().answers(known, question, draws=draws, seed=seed)
            if isinstance(question, SplitQuestion) and question.axis == 1:
                answers.deviation[:] = 9.0
            return answers

    ended = course(people, SexIsUnsafe(), age=2)
    assert ended.outcome == NO_SAFE_BINNING
    assert [d.value for d in ended.decisions] == [24, 12, None]
    assert ended.known.groups == (((0, 3), (3, 6)), ((0, 2),))


def test_one_part_is_enough_where_no_more_are_wanted():
    ended = course(aged(4, 4, 4, 4, 4, 4), Wary(), age=1)
    assert ended.outcome == TABLE
    assert ended.known.shape == (1, 2)


def test_levels_without_people_are_not_parted_from_the_rest():
    people = aged(0, 0, 9, 0, 9, 0)
    split = next_split(PartialTable.total(people, 9), 0, ())
    assert split == SplitQuestion(0, 0, 3)
    parted = PartialTable.total(people, 9).answered(split, 5)
    assert next_split(parted, 0, ()) is None
    ended = course(people, Wary(), age=6)
    assert ended.outcome == TABLE
    assert ended.known.groups[0] == ((0, 3), (3, 6))


def test_bins_make_a_table_safe_that_would_not_be_with_every_level():
    people = aged(3, 3, 3, 3, 3, 3)
    terms = {"epsilon": "0.9", "delta": "0.5", "seed": ""}
    counts = np.array([[1, 2], [2, 1], [1, 1], [2, 2], [1, 2], [2, 1]])
    enumeration = Enumeration()
    fine = decided(people, counts, SuppressionTerms(**terms), enumeration)
    assert fine.outcome == NO_SAFE_BINNING or not all(d.released for d in fine.decisions)
    coarse = decided(people, counts, SuppressionTerms(**terms, bins={"age": 2}), enumeration)
    assert coarse.outcome == TABLE
    assert all(d.released for d in coarse.decisions)
    assert [d.value for d in coarse.decisions if isinstance(d.question, CellQuestion)] == [4, 4, 5, 5]


# ---- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "joined"),
    [
        (["20", "21", "22"], "20-22"),
        (["20-24", "25-29"], "20-29"),
        (["0", "1-4"], "0-4"),
        (["80-84", "85+"], "80+"),
        (["84", "85+"], "84+"),
        (["85+"], "85+"),
        (["85+", "unknown"], "85+ to unknown"),
        (["0 to under 0.5", "0.5 to under 2", "2+"], "0+"),
        (["-5", "-4"], "-5 to -4"),
        (["low", "middle", "high"], "low to high"),
        (["0 to under 0.5", "0.5 to under 2"], "0 to under 2"),
    ],
)
def test_parts_are_called_by_their_first_and_last_level(labels, joined):
    assert joined_label(labels) == joined


def test_the_table_has_the_parts_for_levels():
    ended = course(aged(4, 4, 4, 4, 4, 4), Wary(), age=3)
    domain = grouped_domain(AGES, ended.known.groups)
    assert domain == Domain({"age": ["20", "21-22", "23-25"], "sex": ["F", "M"]})
