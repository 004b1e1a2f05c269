"""The attacker: what follows, who is certain, what is likely, and what is said of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.attacks.suppression.attack import attack
from tabulary.core.domain import Domain
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import InvalidTable, UnknownMargin
from tabulary.suppress.classical_method.rules import Threshold
from tests.published_tables import hidden, two_way
from tests.suppressed_tables import weighted_tables

NAN = np.nan
CURE = [[6, 9, 2], [8, 1, 7]]
PEOPLE = [[12, 15, 9], [11, 10, 14]]
PRIOR = np.array([[0.3, 0.5, 0.4], [0.6, 0.2, 0.5]])


def laws(belief, kept=lambda table: True):
    """The mean of each cell over the tables that are kept, and how likely they are, by listing them all."""
    tables, weights = weighted_tables(belief.known)
    weights = np.where([kept(table) for table in tables], weights, 0.0)
    return (weights @ tables.reshape(len(tables), -1) / weights.sum()).reshape(
        belief.known.shape
    ), weights.sum()


# ---- what follows ----------------------------------------------------------------------------------------------------


def test_a_safe_table_is_not_called_private():
    found = attack(two_way([[20, 30], [40, 50]], True))
    assert found.disclosed == ()
    assert found.verdict == (
        "No suppressed number follows exactly from this table. That is no proof of privacy.",
    )


def test_a_table_without_suppressed_cells_says_so():
    assert attack(two_way([[20, 30], [40, 50]], False)).verdict == ("Nothing is suppressed.",)


def test_what_follows_exactly_is_named_with_its_value():
    found = attack(two_way([[20, 30], [40, 50]], [[1, 1], [0, 0]]))
    assert found.verdict == ("2 of 2 suppressed numbers follow exactly: 0, 0 is 20 and 0, 1 is 30.",)
    assert found.interval("0", "1").whole == (30, 30)
    assert repr(found) == "<AttackFindings of 1 tables: 2 of 2 suppressed numbers follow exactly>"


def test_several_tables_together_are_named():
    counts = [[8, 3, 5], [9, 7, 4], [6, 2, 1]]
    one = two_way(counts, [[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    other = two_way(counts, [[0, 0, 0], [0, 1, 1], [0, 1, 1]])
    assert attack(one).disclosed == attack(other).disclosed == ()
    found = attack(one, other)
    assert len(found.disclosed) == 8
    assert found.verdict[1].startswith(
        "8 of them follow from several tables together and not from their own: 0, 0 of table 1"
    )


def test_the_ends_of_every_cell_have_the_shape_of_the_table():
    found = attack(two_way([[20, 30, 1], [40, 50, 2]], [[1, 1, 0], [1, 1, 0]]))
    lower, upper = found.bounds()
    assert lower.tolist() == [[0, 0, 1], [10, 30, 2]]
    assert upper.tolist() == [[50, 50, 1], [60, 80, 2]]


def test_a_published_cell_has_no_interval():
    with pytest.raises(UnknownMargin, match="no suppressed cell '0', '2'"):
        attack(two_way([[20, 30, 1], [40, 50, 2]], [[1, 1, 0], [1, 1, 0]])).interval("0", "2")


def test_differently_cut_attributes_are_put_together():
    old = SuppressedTable(Domain({"age": ["0-17", "18+"]}), [31, NAN], {(): 80})
    new = SuppressedTable(Domain({"age": ["0-14", "15+"]}), [30, NAN], {(): 80})
    parts = {"age": {"0-17": ["0-14", "15-17"], "15+": ["15-17", "18+"]}}
    assert [each.whole for each in attack(old, new, parts=parts).intervals] == [(49, 49), (50, 50)]
    with pytest.raises(InvalidTable, match="parts"):
        attack(old, new)


# ---- who is certain --------------------------------------------------------------------------------------------------


def test_people_are_certain_by_what_is_published_by_what_follows_and_by_the_rule():
    sums = {"a": [110, 105, 20], "b": [55, 105, 55, 20]}
    counts = np.full((3, 4), NAN)
    counts[:, 3], counts[2] = [0, 0, 20], [0, 0, 0, 20]
    people = np.full((3, 4), 300)
    people[1, 1], people[2, 3] = 100, 20
    table = hidden(counts, sums, people=people)
    reasons = {str(each.place): (each.have, each.reason) for each in attack(table).certain}
    assert reasons["2, 3"] == (True, "published")
    assert reasons["0, 3"] == (False, "published")
    assert len(reasons) == 6
    follows = attack(hidden(np.full((2, 2), NAN), {"a": [7, 0], "b": [6, 1]}, people=[[6, 30], [2, 30]]))
    assert {(str(each), each.reason) for each in follows.certain} == {
        ("all 6 of 0, 0 have it", "follows"),
        ("none of 1, 0 has it", "follows"),
        ("none of 1, 1 has it", "follows"),
    }
    assert any(
        "The private value of 38 people follows from the published numbers" in each
        for each in follows.verdict
    )


def test_the_rule_makes_people_certain_that_the_numbers_do_not():
    # Known besides: this corner is small, so the sensitive cells are 2, 4 and 6, and all 100 of the fifth have it.
    sums = {"a": [110, 105], "b": [55, 105, 55]}
    people = np.full((2, 3), 300)
    people[1, 1] = 100
    table = hidden(np.full((2, 3), NAN), sums, people=people)
    corner = hidden([[NAN] * 3, [4, NAN, NAN]])
    assert attack(table, corner).certain == ()
    found = attack(table, corner, rule=[Threshold(5), None])
    assert [(str(each), each.reason) for each in found.certain] == [("all 100 of 1, 1 have it", "rule")]
    assert found.verdict[0].endswith("0, 0 of table 1 is 51, 1, 0 of table 1 is 4 and 0, 0 of table 2 is 51.")
    told = "The private value of 100 people follows once the rule of suppression is known: all 100 of 1, 1 have it."
    assert told in found.verdict
    assert found.verdict[-1].endswith("leaves one possible set of sensitive cells of table 1: {2, 4, 6}.")


def test_a_pattern_that_the_rule_does_not_explain_is_said_to_be_made_otherwise():
    # One cell alone protects nothing, itself included.
    found = attack(two_way([[30, 40], [40, 40]], [[1, 0], [0, 0]]), rule=Threshold(5, zeros=False))
    assert found.verdict[-1] == (
        "No set of sensitive cells agrees with the rule (counts from 1 up to 5 are sensitive, and as few cells as "
        "possible were suppressed): the table was made in another way."
    )


def test_tables_without_suppressed_cells_are_not_asked_for_a_rule():
    found = attack(
        two_way([[1, 40], [40, 40]], True), hidden([41, NAN], {"": 121}), two_way([[1, 40], [40, 40]], False),
        rule=[Threshold(5), None, Threshold(5)],
    )  # fmt: skip
    assert [sets.table for sets in found.primary_sets] == [0]


# ---- what is likely --------------------------------------------------------------------------------------------------


def test_the_posterior_is_that_of_all_the_tables():
    table = two_way(CURE, [[1, 1, 1], [1, 1, 0]], people=PEOPLE)
    (belief,) = attack(table, probability=PRIOR).beliefs
    mean, _ = laws(belief)
    assert belief.mean == pytest.approx(mean)
    assert belief.prior.tolist() == PRIOR.tolist()
    # People of one cell are alike, so each has the share of the expected count.
    assert belief.posterior == pytest.approx(mean / PEOPLE)
    moved = np.abs(mean / PEOPLE - PRIOR) / np.minimum(PRIOR, 1 - PRIOR)
    assert belief.deviation == pytest.approx(moved)


def test_other_tables_narrow_the_posterior():
    table = two_way(CURE, True, people=PEOPLE)
    corner = hidden([[NAN, 9, NAN], [NAN] * 3])
    belief = attack(table, corner, probability=0.3).beliefs[0]
    assert belief.mean[0, 1] == 9
    alone = attack(table, probability=0.3).beliefs[0]
    mean, _ = laws(alone, lambda each: each[0, 1] == 9)
    assert belief.mean == pytest.approx(mean)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 3), st.booleans(), st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_with_a_rule_the_posterior_is_that_of_the_tables_it_allows(limit, zeros, values):
    counts = np.reshape(values, (2, 3))
    rule = Threshold(limit, zeros=zeros)
    found = attack(two_way(counts, True, people=counts + 4), rule=rule, probability=0.4)
    (belief,), (sets,) = found.beliefs, found.primary_sets
    if not sets.sets:
        mean, _ = laws(belief)
        assert belief.mean == pytest.approx(mean)
        return

    def within(cases):
        return lambda table: any(((case.lower <= table) & (table <= case.upper)).all() for case in cases)

    mean, every = laws(belief, within([case for each in sets.sets for case in each.cases]))
    assert belief.mean == pytest.approx(mean)
    for each in sets.sets:
        assert each.probability == pytest.approx(laws(belief, within(each.cases))[1] / every)


def test_a_cell_without_people_keeps_its_prior():
    table = hidden(np.full((2, 2), NAN), {"a": [3, 4], "b": [3, 4]}, people=[[0, 9], [9, 9]])
    (belief,) = attack(table, probability=0.25).beliefs
    assert belief.posterior[0, 0] == 0.25
    assert belief.deviation[0, 0] == 0


def test_the_chain_may_be_asked_instead():
    from tabulary.table_samplers.chain_sampler import ChainTableSampler

    table = two_way(CURE, True, people=PEOPLE)
    (exact,) = attack(table, probability=PRIOR).beliefs
    (chain,) = attack(table, probability=PRIOR, sampler=ChainTableSampler()).beliefs
    assert (exact.sampler, chain.sampler) == ("exact", "chain")
    assert chain.mean == pytest.approx(exact.mean, abs=0.2)


def test_the_largest_move_is_told():
    table = two_way(CURE, True, people=PEOPLE)
    found = attack(table, probability=PRIOR)
    cell = np.unravel_index(found.beliefs[0].deviation.argmax(), (2, 3))
    told = next(each for each in found.verdict if each.startswith("The probability that a person of"))
    assert told.startswith(
        f"The probability that a person of {cell[0]}, {cell[1]} has it moves from {PRIOR[cell]:.3g} to"
    )


def test_priors_are_one_number_or_one_for_each_table():
    table = two_way(CURE, True, people=PEOPLE)
    bare = two_way(CURE, True)
    assert [each.table for each in attack(bare, table, probability=0.3).beliefs] == [1]
    assert [each.table for each in attack(bare, table, probability=[None, PRIOR]).beliefs] == [1]
    for wrong in ([0.3], np.full((2, 3), 0.3)):
        with pytest.raises(InvalidTable, match="for each table"):
            attack(bare, table, probability=wrong)


@pytest.mark.parametrize(
    ("table", "probability", "wrong"),
    [
        (two_way(CURE, True), 0.3, "no table says how many people"),
        (two_way(CURE, True), [0.3], "needs the number of people in each cell"),
        (hidden(np.full((2, 2), NAN), {"a": [3, 4]}, people=np.full((2, 2), 9)), 0.3, "all the sums"),
        (two_way(CURE, True, people=PEOPLE), 1.0, "strictly between 0 and 1"),
        (two_way(CURE, True, people=PEOPLE), np.full((3, 2), 0.3), "one for each cell"),
    ],
)
def test_a_posterior_that_cannot_be_is_refused(table, probability, wrong):
    with pytest.raises(InvalidTable, match=wrong):
        attack(table, probability=probability)


def test_no_table_is_refused():
    with pytest.raises(InvalidTable, match="no table"):
        attack()


def test_progress_is_told_of_every_stage():
    told = []
    table = two_way([[1, 40], [40, 40]], True, people=np.full((2, 2), 60))
    attack(table, rule=Threshold(5), probability=0.3, progress=lambda what, *_: told.append(what))
    assert list(dict.fromkeys(told)) == ["suppressed numbers", "guessing the sensitive cells", "posteriors"]
