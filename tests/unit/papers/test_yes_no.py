import numpy as np
import pytest

from tabulary.errors import InvalidTable
from tabulary_papers.datasets.yes_no import yes_no, yes_no_domain


def test_the_same_seed_makes_the_same_people():
    one, same, other = (yes_no(5, 400, seed=seed) for seed in (3, 3, 4))
    assert one.total == 400
    assert (one.counts == same.counts).all()
    assert not (one.counts == other.counts).all()
    assert one.domain == yes_no_domain(5)


def test_answers_hang_together():
    table = yes_no(3, 100_000, seed=1)
    strongest = 0.0
    for pair in (("x01", "x02"), ("x01", "x03"), ("x02", "x03")):
        shares = table.project(pair).counts / table.total
        strongest = max(strongest, np.abs(shares - np.outer(shares.sum(1), shares.sum(0))).max())
    assert strongest > 0.02


@pytest.mark.parametrize("wrong", [{"questions": 0}, {"questions": 21}, {"people": -1}])
def test_people_that_cannot_be_are_refused(wrong):
    with pytest.raises(InvalidTable, match="Nothing was made"):
        yes_no(**wrong)
