"""Made-up carriers of a gene."""

import numpy as np
import pytest

from tabulary.errors import InvalidTable
from tabulary_papers.datasets.carriers import carriers


@pytest.mark.parametrize(("rows", "columns", "people"), [(10, 10, 10_000), (3, 4, 12 * 80), (2, 5, 2_000)])
def test_groups_are_of_80_to_200_people_and_add_up(rows, columns, people):
    made = carriers(rows, columns, people=people)
    assert made.people.total == people
    assert made.people.counts.min() >= 80
    assert made.people.counts.max() <= 200
    assert (made.table.counts <= made.people.counts).all()


def test_the_chance_lies_between_three_and_five_tenths_and_depends_on_the_column_alone():
    made = carriers()
    chance = made.probability.counts
    assert ((chance >= 0.3) & (chance <= 0.5)).all()
    assert (chance == chance[0]).all()
    assert len(set(chance[0])) > 5


def test_carriers_are_as_many_as_their_chance_says():
    made = carriers(seed=5)
    mean = made.people.counts * made.probability.counts
    spread = np.sqrt(mean * (1 - made.probability.counts))
    scores = (made.table.counts - mean) / spread
    assert abs(scores.mean()) < 4 / np.sqrt(scores.size)
    assert 0.7 < scores.std() < 1.3


def test_the_same_seed_gives_the_same_table_and_another_one_another():
    first, again, other = (carriers(seed=seed).table.counts for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    "asked", [{"people": 7_999}, {"people": 20_001}, {"rows": 0}, {"columns": -1}], ids=str
)
def test_groups_that_cannot_be_are_refused(asked):
    with pytest.raises(InvalidTable, match=r"people cannot stand|at least one row"):
        carriers(**asked)
