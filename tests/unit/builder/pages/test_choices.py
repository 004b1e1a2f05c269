"""A reader's choices: every choice has an address, and every address is read back or refused with what to do."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.builder.pages.choices import Chart, Choices, Hypothesis, Names, Show, from_form, is_form
from tabulary.builder.problems import HTTPProblem
from tabulary.core.domain import Domain
from tabulary.errors import InvalidDomain, InvalidWorkload
from tests.builders import DOMAIN


def query_of(url):
    return parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=True)


@st.composite
def choices(draw):
    """Choices that the domain allows, whatever is chosen."""
    attributes = draw(st.permutations(DOMAIN.attributes))
    placed = draw(st.integers(0, len(attributes)))
    split = draw(st.integers(0, placed))
    rows, columns = tuple(attributes[:split]), tuple(attributes[split:placed])
    by, others = (*rows, *columns), attributes[placed:]
    where = {a: draw(st.sampled_from(DOMAIN.levels_of(a))) for a in others if draw(st.booleans())}
    keep = {
        a: draw(st.lists(st.sampled_from(DOMAIN.levels_of(a)), min_size=1, unique=True))
        for a in by
        if draw(st.booleans())
    }
    cells = [
        [(a, draw(st.sampled_from(DOMAIN.levels_of(a)))) for a in by if draw(st.booleans())] for _ in range(2)
    ]
    items = [
        *(("rows", a) for a in rows),
        *(("columns", a) for a in columns),
        *(("where", f"{a}:{level}") for a, level in where.items()),
        *(("keep", f"{a}:{level}") for a, levels in keep.items() for level in levels),
        ("show", draw(st.sampled_from(list(Show)))),
        ("chart", draw(st.sampled_from(list(Chart)))),
        ("names", draw(st.sampled_from(list(Names)))),
        ("totals", draw(st.sampled_from(["on", "off"]))),
        ("test", draw(st.sampled_from(["", *Hypothesis]))),
        *(
            (name, f"{a}:{level}")
            for name, cell in zip(("first", "second"), cells, strict=True)
            for a, level in cell
        ),
    ]
    return Choices.of(DOMAIN, items)


@given(choices())
def test_the_address_of_a_choice_reads_back_to_the_same_choice(chosen):
    assert Choices.of(DOMAIN, query_of(chosen.url("census"))) == chosen
    assert Choices.of(DOMAIN, query_of(chosen.build_url("census"))) == chosen
    assert Choices.of(DOMAIN, chosen.items()) == chosen


@given(choices())
def test_the_question_has_the_rows_first_and_then_the_columns(chosen):
    question = chosen.question(DOMAIN)
    assert question.by == (*chosen.rows, *chosen.columns)
    assert (question.where, question.keep) == (chosen.where, chosen.keep)


@given(choices())
def test_a_pivot_changes_rows_for_columns_and_twice_changes_nothing_but_the_test(chosen):
    turned = chosen.pivoted()
    assert (turned.rows, turned.columns) == (chosen.columns, chosen.rows)
    assert turned.test is None
    again = turned.pivoted()
    assert Choices.of(DOMAIN, [i for i in chosen.items() if i[0] not in ("test", "first", "second")]) == again
    assert {chosen.show, turned.show} <= {Show.row_percent, Show.column_percent} or chosen.show == turned.show


@given(choices())
def test_a_variable_moves_to_the_other_side_and_leaves_with_all_that_was_chosen_of_it(chosen):
    for attribute in chosen.by:
        moved = chosen.moved(attribute)
        assert moved.place(attribute) == {"rows": "columns", "columns": "rows"}[chosen.place(attribute)]
        assert set(moved.by) == set(chosen.by)
        assert attribute not in dict(chosen.with_all_levels(attribute).keep)
    for attribute in (*chosen.by, *dict(chosen.where)):
        left = chosen.dropped(attribute)
        assert left.place(attribute) == ""
        assert attribute not in dict(left.keep)
        assert left.question(DOMAIN)


def test_an_address_says_nothing_of_what_was_not_chosen():
    assert Choices().url("census") == "/datasets/census/table"
    assert Choices.of(DOMAIN, [("show", "counts"), ("totals", "on"), ("where", "")]) == Choices()


def test_names_that_mean_something_in_an_address_are_written_so_that_they_do_not():
    chosen = Choices.of(DOMAIN, [("rows", "job: kind"), ("where", 'region:Straße, "old"')])
    assert chosen.api_url("a b", "csv") == (
        "/api/datasets/a%20b/tables.csv?by=job%3A+kind&where=region%3AStra%C3%9Fe%2C+%22old%22"
    )
    assert chosen.accuracy_url("census").startswith("/api/datasets/census/accuracy?by=job%3A+kind&where=")
    assert chosen.where == (("region", 'Straße, "old"'),)


@pytest.mark.parametrize(
    ("items", "problem", "remedy"),
    [
        ([("row", "sex")], HTTPProblem, "'rows'"),
        ([("rows", "gender")], InvalidDomain, "'sex'"),
        ([("rows", "sex"), ("columns", "sex")], InvalidWorkload, "Choose one"),
        ([("rows", "sex"), ("rows", "sex")], InvalidDomain, "twice"),
        ([("where", "sex:X")], InvalidDomain, "'F'"),
        ([("where", "sex")], InvalidWorkload, "colon"),
        ([("where", "sex:F"), ("where", "sex:M")], InvalidWorkload, "nobody is in both"),
        ([("keep", "sex:F")], InvalidWorkload, "not by it"),
        ([("show", "percent")], HTTPProblem, "'row-percent'"),
        ([("show", "counts"), ("show", "row-percent")], HTTPProblem, "'row-percent'"),
        ([("chart", "pie")], HTTPProblem, "'bars'"),
        ([("names", "short")], HTTPProblem, "'codes'"),
        ([("totals", "yes")], HTTPProblem, "'off'"),
        ([("test", "luck")], HTTPProblem, "'independence'"),
        ([("rows", "sex"), ("first", "age:65+")], InvalidWorkload, "Leave it out"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_what_can(items, problem, remedy):
    with pytest.raises(problem, match=remedy):
        Choices.of(DOMAIN, items)


def test_a_form_sent_without_a_script_becomes_an_address():
    sent = [
        *(("place:sex", "columns"), ("level:sex", "F")),
        *(("place:age", "rows"), ("level:age", "0-14"), ("keep", "age:65+"), ("keep", "age:0-14")),
        *(("place:region", "filter"), ("level:region", "South: east"), ("keep", "region:North")),
        *(("place:job: kind", ""), ("level:job: kind", "none"), ("keep", "job: kind:paid")),
        ("chart", "bars"),
    ]
    assert is_form(sent)
    chosen = from_form(DOMAIN, sent)
    assert not is_form(chosen.items())
    assert chosen == Choices(
        rows=("age",),
        columns=("sex",),
        where=(("region", "South: east"),),
        keep=(("age", ("0-14", "65+")),),
        chart=Chart.bars,
    )


@pytest.mark.parametrize(
    ("sent", "problem", "remedy"),
    [
        ([("place:gender", "rows")], InvalidDomain, "'sex'"),
        ([("place:sex", "top")], HTTPProblem, "in the rows"),
        ([("place:sex", "filter")], InvalidWorkload, "Choose one of 'F'"),
        ([("place:sex", "rows"), ("colour", "red")], HTTPProblem, "'rows'"),
    ],
)
def test_a_form_that_nobody_was_given_is_refused(sent, problem, remedy):
    with pytest.raises(problem, match=remedy):
        from_form(DOMAIN, sent)


def test_levels_in_a_form_are_read_as_the_api_reads_them():
    domain = Domain({"a": ["x", "b:x"], "a:b": ["x", "y"]})
    chosen = from_form(domain, [("place:a", ""), ("place:a:b", "rows"), ("keep", "a:b:x")])
    assert chosen.rows == ("a:b",)
