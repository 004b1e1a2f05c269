"""The people of a table and their priors."""

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.errors import InvalidTable
from tabulary.table_samplers.people import People

DOMAIN = Domain({"eye": ["blue", "brown"], "hair": ["fair", "dark", "red"]})
NUMBER = np.array([[20, 30, 5], [10, 40, 0]])


def test_one_prior_serves_everybody():
    people = People.of(DOMAIN, NUMBER, 0.3)
    assert people.number.shape == (2, 3, 1)
    assert (people.probability == 0.3).all()
    assert people.in_cells.tolist() == NUMBER.tolist()


def test_each_cell_may_have_its_prior():
    prior = np.linspace(0.1, 0.6, 6).reshape(2, 3)
    people = People.of(DOMAIN, NUMBER, prior)
    assert people.count_law(((1, 2), (0, 1))).probability.tolist() == [prior[1, 0]]


def test_each_kind_of_person_may_have_its_prior():
    number = np.stack([NUMBER, NUMBER + 1], axis=-1)
    people = People.of(DOMAIN, number, [0.1, 0.2])
    assert people.probability.shape == (2, 3, 2)
    assert people.count_law(((0, 1), (0, 1))).people.tolist() == [20, 21]
    assert people.in_cells.tolist() == (2 * NUMBER + 1).tolist()


def test_a_block_holds_the_people_of_all_its_cells():
    people = People.of(DOMAIN, NUMBER, np.array([[0.1, 0.2, 0.1], [0.2, 0.1, 0.3]]))
    count_law = people.count_law(((0, 2), (0, 2)))
    assert dict(zip(count_law.probability.tolist(), count_law.people.tolist(), strict=True)) == {
        0.1: 60,
        0.2: 40,
    }


def test_nobody_can_change_them_afterwards():
    given = NUMBER.copy()
    people = People.of(DOMAIN, given, 0.3)
    given[0, 0] = 0
    assert people.in_cells[0, 0] == 20
    with pytest.raises(ValueError, match="read-only"):
        people.number[0, 0, 0] = 1


def test_a_prior_of_nobody_may_be_anything():
    prior = np.full((2, 3), 0.3)
    prior[1, 2] = np.nan
    assert People.of(DOMAIN, NUMBER, prior).count_law(((1, 2), (2, 3))).size == 0


@pytest.mark.parametrize(
    ("number", "prior", "what"),
    [
        (NUMBER[:1], 0.3, "the domain's shape"),
        (NUMBER, [0.1, 0.2], "one probability, one for each cell or one for each kind"),
        (-NUMBER, 0.3, "below zero"),
        (NUMBER + 0.5, 0.3, "not whole"),
        (NUMBER * np.nan, 0.3, "not whole"),
        ([["many"] * 3] * 2, 0.3, "not a number"),
        (NUMBER, "half", "not a number"),
        (NUMBER, 0.0, "not strictly between 0 and 1"),
        (NUMBER, 1.0, "not strictly between 0 and 1"),
        (NUMBER, 1.5, "not strictly between 0 and 1"),
        (NUMBER, np.nan, "not strictly between 0 and 1"),
    ],
)
def test_people_or_priors_that_cannot_be_are_refused(number, prior, what):
    with pytest.raises(InvalidTable, match=what):
        People.of(DOMAIN, number, prior)


def test_priors_of_another_shape_than_the_people_are_refused():
    with pytest.raises(InvalidTable, match="the probabilities have"):
        People(DOMAIN, NUMBER[..., None], np.full((2, 3, 2), 0.5))
    with pytest.raises(InvalidTable, match="not a number"):
        People(DOMAIN, NUMBER[..., None], "half")
