"""Questions as they arrive: in a query and as JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.builder.api.asking import question_in_json, question_in_query
from tabulary.builder.api.models import AskedTable
from tabulary.builder.problems import HTTPProblem
from tabulary.core.domain import Domain
from tabulary.errors import InvalidDomain, InvalidWorkload
from tests.builders import DOMAIN

KNOWN = ("by", "where", "keep", "estimate")


@st.composite
def questions(draw):
    """Any question that the domain has an answer to, as the parts of a JSON body."""
    attributes = draw(st.permutations(DOMAIN.attributes))
    split = draw(st.integers(0, len(attributes)))
    by, rest = attributes[:split], attributes[split:]
    filtered = draw(st.lists(st.sampled_from(rest), unique=True)) if rest else []
    where = {a: draw(st.sampled_from(DOMAIN.levels_of(a))) for a in filtered}
    kept = draw(st.lists(st.sampled_from(by), unique=True)) if by else []
    levels = {a: draw(st.lists(st.sampled_from(DOMAIN.levels_of(a)), min_size=1, unique=True)) for a in kept}
    return {
        "by": by,
        "where": where,
        "keep": levels,
        "estimate": draw(st.sampled_from(["published", "linear"])),
    }


def as_query(question):
    return [
        *(("by", a) for a in question["by"]),
        *(("where", f"{a}:{level}") for a, level in question["where"].items()),
        *(("keep", f"{a}:{level}") for a, levels in question["keep"].items() for level in levels),
        ("estimate", question["estimate"]),
    ]


@given(questions())
def test_a_question_in_a_query_is_the_same_question_in_json(question):
    in_query = question_in_query(DOMAIN, as_query(question), known=KNOWN)
    assert in_query == question_in_json(DOMAIN, AskedTable(**question))
    assert in_query.linear == (question["estimate"] == "linear")


def test_a_name_reaches_up_to_the_first_colon_that_makes_an_attribute():
    domain = Domain({"a": ["b:c", "x"], "a:b": ["c", "y"]})
    asked = question_in_query(domain, [("where", "a:b:c")], known=KNOWN)
    assert asked.where == (("a", "b:c"),)
    only_longer = Domain({"a:b": ["c", "y"]})
    assert question_in_query(only_longer, [("where", "a:b:c")], known=KNOWN).where == (("a:b", "c"),)


def test_no_attribute_at_all_asks_for_the_total():
    assert question_in_query(DOMAIN, [], known=KNOWN).by == ()


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ([("by", "faith")], InvalidDomain, "no attribute 'faith'"),
        ([("by", "")], InvalidDomain, "no attribute ''"),
        ([("by", "sex"), ("by", "sex")], InvalidDomain, "'sex' twice"),
        ([("by", "sex"), ("where", "sex:F")], InvalidDomain, "'sex' twice"),
        ([("where", "sex")], InvalidWorkload, "'where' is an attribute and a level with a colon"),
        ([("where", "faith:x")], InvalidWorkload, "no attribute is named here"),
        ([("where", "sex:X")], InvalidDomain, "no level 'X'"),
        ([("where", "sex:F"), ("where", "sex:M")], InvalidWorkload, "nobody is in both"),
        ([("keep", "sex:F")], InvalidWorkload, "the table is not by it"),
        ([("by", "sex"), ("keep", "sex:F"), ("keep", "sex:F")], InvalidWorkload, "none of them twice"),
        ([("estimate", "best")], HTTPProblem, "'estimate' is 'published' or 'linear'"),
        ([("estimate", "linear"), ("estimate", "linear")], HTTPProblem, "'estimate'"),
        ([("bye", "sex")], HTTPProblem, "'bye' is not known"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_name_of_what_is_wrong(query, error, words):
    with pytest.raises(error, match=words):
        question_in_query(DOMAIN, query, known=KNOWN)


def test_a_parameter_of_a_million_letters_is_not_given_back():
    with pytest.raises(HTTPProblem, match="is not known") as refused:
        question_in_query(DOMAIN, [("x" * 1_000_000, "")], known=KNOWN)
    assert len(refused.value.detail) < 300
