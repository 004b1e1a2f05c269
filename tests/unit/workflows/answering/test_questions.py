"""Questions: what is asked, in one spelling, and the part of a table that answers it."""

import numpy as np
import pytest

from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import InvalidDomain, InvalidWorkload
from tabulary.noise import DiscreteLaplace
from tabulary.planning import CellErrors
from tabulary.release import ReleasedTable
from tabulary.workflows.answering.questions import Question

DOMAIN = Domain({"sex": ["F", "M"], "age": ["0", "1", "2"], "job": ["none", "paid"]})
TABLE = ReleasedTable(
    Table(DOMAIN, np.arange(12).reshape(2, 3, 2)),
    CellErrors(DiscreteLaplace(2), np.arange(1, 13).reshape(2, 3, 2)),
)


def asked(by, where=None, keep=None):
    return Question.of(DOMAIN, by, where, keep)


def test_one_question_is_one_object_however_its_filters_are_written():
    one = asked(["age"], {"job": "paid", "sex": "F"}, {"age": ["2", "0"]})
    assert one == asked(("age",), {"sex": "F", "job": "paid"}, {"age": ("0", "2")})
    assert hash(one) == hash(asked(["age"], {"sex": "F", "job": "paid"}, {"age": ["0", "2"]}))
    assert asked(["sex"], keep={"sex": ["M", "F"]}) == asked(["sex"])
    assert asked(["sex", "age"]) != asked(["age", "sex"])


def test_the_table_behind_a_question_has_its_filters_among_its_attributes():
    assert asked(["job"], {"sex": "F"}).margin(DOMAIN) == ("sex", "job")
    assert asked([]).margin(DOMAIN) == ()


def test_the_answer_is_a_slice_in_the_asked_order_with_the_chosen_levels_and_their_errors():
    answer = asked(["job", "age"], {"sex": "M"}, {"age": ["2", "0"]}).cut(TABLE)
    assert answer.margin == ("job", "age")
    assert answer.domain.levels_of("age") == ("0", "2")
    assert answer.counts.tolist() == [[6, 10], [7, 11]]
    assert answer.standard_errors.tolist() == TABLE.standard_errors[1, [0, 2]].T.tolist()
    assert asked([], {"sex": "M", "age": "0", "job": "none"}).cut(TABLE).counts.tolist() == 6


@pytest.mark.parametrize(
    ("question", "error", "said"),
    [
        ({"by": ["sexe"]}, InvalidDomain, "no attribute 'sexe'"),
        ({"by": ["sex", "sex"]}, InvalidDomain, "twice"),
        ({"by": ["sex"], "where": {"sex": "F"}}, InvalidDomain, "twice"),
        ({"by": ["sex"], "where": {"age": "7"}}, InvalidDomain, "no level '7'"),
        ({"by": ["sex"], "keep": {"age": ["0"]}}, InvalidWorkload, "the table is not by it"),
        ({"by": ["age"], "keep": {"age": ["0", "9"]}}, InvalidDomain, "no level '9'"),
        ({"by": ["age"], "keep": {"age": []}}, InvalidWorkload, "at least one level"),
        ({"by": ["age"], "keep": {"age": ["0", "0"]}}, InvalidWorkload, "none of them twice"),
    ],
)
def test_what_the_domain_does_not_have_is_refused(question, error, said):
    with pytest.raises(error, match=said):
        Question.of(DOMAIN, **question)


def test_it_is_described_as_plain_data():
    assert asked(["age"], {"sex": "F"}, {"age": ["0"]}).describe() == {
        "by": ["age"],
        "where": {"sex": "F"},
        "keep": {"age": ["0"]},
    }
