"""Shares of trials, and how often tests reject."""

import pytest

from tabulary.core.proportion import Proportion
from tabulary.errors import InvalidArgument
from tabulary.studies.proportion import SIGNIFICANT, rejected, shown

ROWS = [
    {"law": "laplace", "p": SIGNIFICANT},
    {"law": "laplace", "p": 0.051},
    {"law": "laplace", "p": None},
    {"law": "normal", "p": None},
]


def test_a_share_is_of_the_tests_that_were_made():
    assert rejected(ROWS, "p") == Proportion(1, 2)
    assert rejected(ROWS[1:], "p", law="laplace") == Proportion(0, 1)


def test_where_every_fit_failed_there_is_no_share_and_not_one_of_nought():
    assert rejected(ROWS, "p", law="normal") is None
    assert shown(rejected(ROWS, "p", law="normal"), ".1%", interval=True) == "–"
    assert shown(rejected(ROWS[1:], "p"), ".1%") == "0.0%"


def test_a_share_is_shown_with_its_interval_where_that_is_wanted():
    assert shown(Proportion(1, 2)) == "50%"
    assert shown(Proportion(30, 1_000), ".3f", interval=True) == "0.030 (0.021–0.043)"


@pytest.mark.parametrize(("times", "trials"), [(0, 0), (3, 2), (-1, 2)])
def test_what_is_no_share_is_refused(times, trials):
    with pytest.raises(InvalidArgument, match="is no proportion"):
        Proportion(times, trials)
