from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.workload import MarginIndex, Workload, maximal_margins, show_margin
from tabulary.errors import InvalidWorkload

LETTERS = Domain(dict.fromkeys("ABCDE", "xy"))
WORDS = Domain(dict.fromkeys(("sex", "age", "birth country", "job"), "xy"))


@st.composite
def workloads(draw, domain=LETTERS):
    margin = st.sets(st.sampled_from(domain.attributes)).map(domain.margin)
    return Workload(domain, draw(st.lists(margin, min_size=1, max_size=6, unique=True)))


@given(workloads() | workloads(WORDS))
def test_what_is_printed_can_be_read_back(work):
    assert Workload.parse(str(work), work.domain) == work


@given(workloads(Domain(dict.fromkeys(("A", "B", "age"), "xy"))))
def test_what_is_printed_can_be_read_back_where_names_are_of_both_kinds(work):
    assert Workload.parse(str(work), work.domain) == work


@given(workloads())
def test_the_closure_holds_the_workload_and_every_margin_of_its_margins(work):
    closed = set(work.closure())
    assert set(work) <= closed
    assert () in closed
    for margin in closed:
        assert {m for k in range(len(margin)) for m in combinations(margin, k)} <= closed
        assert any(set(margin) <= set(asked) for asked in work)


@given(workloads())
def test_the_closure_is_closed_and_in_rising_order(work):
    closure = work.closure()
    assert closure.closure() == closure
    assert [len(m) for m in closure] == sorted(len(m) for m in closure)


@given(workloads())
def test_the_maximal_margins_have_the_same_closure_and_none_holds_another(work):
    maximal = work.maximal()
    assert set(maximal.closure()) == set(work.closure())
    assert not any(set(a) < set(b) for a in maximal for b in maximal)


def test_a_margin_that_was_asked_for_keeps_its_weight_in_the_closure():
    work = Workload(LETTERS, [("A",), ("A", "B")], [3, "1/2"])
    closure = work.closure()
    assert dict(zip(closure, closure.weights, strict=True)) == {
        (): 1,
        ("A",): 3,
        ("B",): 1,
        ("A", "B"): Fraction(1, 2),
    }
    assert work.maximal().weights == (Fraction(1, 2),)


@pytest.mark.parametrize(
    "text",
    ["[AB][C]", "[A B] [C]", "[A,B],[C]", " [B A]\n[C]\t", '["A" "B"]["C"]', "[BA][C]"],
)
def test_margins_may_be_written_in_several_ways(text):
    assert Workload.parse(text, LETTERS).margins == (("A", "B"), ("C",))


def test_a_name_with_a_space_stands_in_quotes():
    work = Workload.parse('["birth country" sex][job]', WORDS)
    assert work.margins == (("sex", "birth country"), ("job",))
    assert str(work) == '[sex "birth country"][job]'


def test_empty_brackets_are_the_total():
    assert Workload.parse("[]", LETTERS).margins == ((),)
    assert show_margin(()) == "[]"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, "needs at least one margin") for text in ("", " ")),
        *((text, "write each in brackets") for text in ("AB", "[AB", "AB]", "[A]B", "[[A]]", "[A][", "A][B")),
        *((text, "write each in brackets") for text in (None, 3, b"[A]")),
    ],
)
def test_text_that_cannot_be_read_is_refused(text, reason):
    with pytest.raises(InvalidWorkload, match=reason):
        Workload.parse(text, LETTERS)


@pytest.mark.parametrize("text", ['["A]', '[A"]', '["A" "]', '[""]'])
def test_text_with_a_stray_quote_is_refused(text):
    with pytest.raises(InvalidWorkload, match="a quote is not closed, or a name is empty"):
        Workload.parse(text, LETTERS)


@pytest.mark.parametrize("text", ["[AX]", "[A][sex]"])
def test_a_margin_with_an_unknown_attribute_is_refused_with_those_there_are(text):
    with pytest.raises(InvalidWorkload, match=r"has no attribute '[Xs]'\. It has 'A', 'B'"):
        Workload.parse(text, LETTERS)


def test_a_margin_that_names_an_attribute_twice_is_refused():
    with pytest.raises(InvalidWorkload, match="names attribute 'A' twice"):
        Workload.parse("[ABA]", LETTERS)


def test_a_margin_asked_for_twice_is_refused_in_whatever_order_it_is_written():
    with pytest.raises(InvalidWorkload, match=r"margin \[AB\] twice"):
        Workload.parse("[AB][C][BA]", LETTERS)


def test_a_workload_of_nothing_is_refused():
    with pytest.raises(InvalidWorkload, match="at least one margin"):
        Workload(LETTERS, [])


def test_all_margins_of_one_size_and_up_to_it():
    assert len(Workload.k_way(LETTERS, 2)) == 10
    assert Workload.k_way(LETTERS, 0).margins == ((),)
    assert len(Workload.all_up_to(LETTERS, 2)) == 15
    assert Workload.all_up_to(LETTERS, 0).margins == ((),)
    assert Workload.k_way(LETTERS, 5).margins == (tuple("ABCDE"),)


@pytest.mark.parametrize("k", [-1, 6, 1.0, "2", True, None])
def test_a_size_that_the_domain_does_not_have_is_refused(k):
    for make in (Workload.k_way, Workload.all_up_to):
        with pytest.raises(InvalidWorkload, match="from 0 to 5"):
            make(LETTERS, k)


def test_weights_are_exact_and_default_to_one():
    assert Workload.parse("[A][B]", LETTERS).weights == (1, 1)
    assert Workload(LETTERS, ["A", "B"], {"B": 0.1}).weights == (1, Fraction(1, 10))
    assert Workload.parse("[A][BC]", LETTERS).weighted({("C", "B"): "1/3"}).weights == (1, Fraction(1, 3))


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "heavy", True, None])
def test_a_weight_that_cannot_be_is_refused(weight):
    with pytest.raises(InvalidWorkload, match="weight must be"):
        Workload(LETTERS, ["A"], [weight])


def test_weights_must_match_the_margins():
    with pytest.raises(InvalidWorkload, match="2 margins need as many weights, not 1"):
        Workload(LETTERS, ["A", "B"], [1])
    with pytest.raises(InvalidWorkload, match=r"there is a weight for \[C\]"):
        Workload(LETTERS, ["A", "B"], {"C": 1})


def test_a_workload_cannot_be_changed():
    work = Workload.parse("[A]", LETTERS)
    with pytest.raises(FrozenInstanceError):
        work.margins = ()


def test_equal_workloads_are_equal_and_others_are_not():
    assert Workload.parse("[AB]", LETTERS) == Workload.parse("[BA]", LETTERS)
    assert hash(Workload.parse("[AB]", LETTERS)) == hash(Workload.parse("[BA]", LETTERS))
    assert Workload.parse("[A][B]", LETTERS) != Workload.parse("[B][A]", LETTERS)
    assert Workload.parse("[A]", LETTERS) != Workload.parse("[A]", LETTERS).weighted({"A": 2})


@given(st.lists(st.lists(st.sampled_from("ABCDE"), unique=True).map(lambda m: tuple(sorted(m))), min_size=1))
def test_maximal_margins_are_those_that_no_other_contains(margins):
    expected = [m for m in dict.fromkeys(margins) if not any(set(m) < set(other) for other in margins)]
    assert maximal_margins(margins) == expected


@given(
    st.lists(st.lists(st.sampled_from("ABCDE"), unique=True).map(lambda m: tuple(sorted(m))), max_size=20),
    st.lists(st.sampled_from("ABCDEF"), unique=True).map(tuple),
)
def test_an_index_finds_the_margins_that_contain_another(margins, margin):
    index = MarginIndex(margins)
    expected = [i for i, other in enumerate(margins) if set(margin) <= set(other)]
    assert index.containing(margin) == expected
    assert index.count(margin) == len(expected)
    assert index.first(margin) == (expected[0] if expected else -1)
