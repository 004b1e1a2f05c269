"""Between which values suppressed numbers lie, against every table that it may be."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.attacks.suppression.intervals import intervals
from tabulary.attacks.suppression.published_tables import AttackedTables
from tabulary.core.domain import Domain
from tabulary.core.suppressed_table import SuppressedTable
from tabulary.errors import InvalidTable
from tests.published_tables import agrees, crowded, fillings, hidden, projected, several_tables, two_way

NAN = np.nan


def found(*tables, parts=None, **options):
    return intervals(AttackedTables.of(tables, parts), **options)


def value_of(term, tables):
    table = tables[term.place.table]
    if term.of == "people":
        return Fraction(int(table.people[term.place.index]))
    cells = term.place.attributes == table.domain.attributes
    values = table.counts if cells else table.sums[term.place.attributes]
    return Fraction(float(values[term.place.index]))


@settings(max_examples=60, deadline=None)
@given(several_tables())
def test_the_ends_are_the_least_and_largest_values_in_all_whole_tables(case):
    total, tables = case
    shape = [1, 1, 1]
    for table in tables:
        for name, size in zip(table.domain.attributes, table.domain.shape, strict=True):
            shape["abc".index(name)] = size
    possible = [
        each for each in fillings(total, tuple(shape)) if agrees(each, tables) and crowded(each, tables)
    ]
    for interval in found(*tables):
        shown = {int(projected(each, interval.place.attributes)[interval.place.index]) for each in possible}
        assert interval.whole == (min(shown), max(shown))
        assert interval.lower <= min(shown)
        assert interval.upper >= max(shown)
        assert interval.disclosed == (len(shown) == 1)


@settings(max_examples=40, deadline=None)
@given(several_tables())
def test_a_proof_adds_up_to_the_number(case):
    _, tables = case
    for interval in found(*tables):
        for proof in interval.proofs:
            assert interval.disclosed
            assert (
                sum((t.coefficient * value_of(t, tables) for t in proof.terms), Fraction(0))
                == interval.whole[0]
            )
        # Where whole numbers are not what makes it certain, there is a proof.
        assert bool(interval.proofs) == (interval.lower == interval.upper)


@given(st.integers(2, 4), st.integers(2, 4), st.data())
@settings(max_examples=40, deadline=None)
def test_in_one_two_way_table_linear_ends_are_whole(rows, columns, data):
    cells = rows * columns
    counts = np.reshape(
        data.draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells)), (rows, columns)
    )
    mask = np.reshape(data.draw(st.lists(st.booleans(), min_size=cells, max_size=cells)), (rows, columns))
    people = counts + np.reshape(
        data.draw(st.lists(st.integers(0, 3), min_size=cells, max_size=cells)), counts.shape
    )
    for interval in found(two_way(counts, mask, people=people)):
        assert interval.whole == (interval.lower, interval.upper)


def test_whole_ends_may_be_tighter_than_linear_ones():
    # x₁ + x₂, x₂ + x₃, x₁ + x₃ are at most 1, so their sum is at most 3/2; at most 1 in whole numbers. And twice that.
    leaves = [f"{kind}{number}" for kind in "xs" for number in range(1, 7)]
    sets = {
        "p": "x1 x2 s1",
        "q": "x2 x3 s2",
        "r": "x1 x3 s3",
        "u": "x4 x5 s4",
        "v": "x5 x6 s5",
        "w": "x4 x6 s6",
    }
    parts, tables = {}, []
    for name, members in {**sets, "half": "x1 x2 x3", "all": "x1 x2 x3 x4 x5 x6"}.items():
        parts[name] = members.split()
        parts[f"not {name}"] = [leaf for leaf in leaves if leaf not in parts[name]]
        counts = [1 if name in sets else NAN, NAN]
        tables.append(SuppressedTable(Domain({"level": [name, f"not {name}"]}), counts))
    wanted = {each.place.levels[0]: each for each in found(*tables, parts={"level": parts})}
    assert (wanted["half"].lower, wanted["half"].upper, wanted["half"].whole) == (0, 1.5, (0, 1))
    assert (wanted["all"].lower, wanted["all"].upper, wanted["all"].whole) == (0, 3, (0, 2))


def test_people_known_in_another_table_bound_a_cell():
    counts = hidden(np.full((2, 2), NAN), {"b": [5, 5]})
    people = hidden([NAN, NAN], people=[3, 30])
    assert [each.whole for each in found(counts, people)][:4] == [(0, 3), (0, 3), (2, 5), (2, 5)]


def test_people_of_several_tables_are_the_same_people():
    # One person for each pair of levels: they stand in the cells of even parity, or in those of odd.
    pairs = [
        SuppressedTable(
            Domain({one: range(2), other: range(2)}), np.full((2, 2), NAN), people=np.ones((2, 2))
        )
        for one, other in ("ab", "bc", "ac")
    ]
    counts = np.full((2, 2, 2), NAN)
    counts[0, 0, 0] = 1
    for each in found(hidden(counts), *pairs):
        if each.place.table == 0:
            assert each.whole == ((0, 1) if sum(each.place.index) % 2 == 0 else (0, 0))


def test_tables_that_agree_in_pairs_may_contradict_together():
    # a is b, b is c, and a is not c.
    same, different = np.eye(2), 1 - np.eye(2)
    tables = [
        SuppressedTable(Domain({one: range(2), other: range(2)}), counts)
        for (one, other), counts in (("ab", same), ("bc", same), ("ac", different))
    ]
    for pair in (tables[:2], tables[1:], tables[::2]):
        assert found(*pair) == ()
    with pytest.raises(InvalidTable, match="contradict"):
        found(*tables)


def test_two_tables_give_away_what_each_hides():
    counts = [[8, 3, 5], [9, 7, 4], [6, 2, 1]]
    one = two_way(counts, [[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    other = two_way(counts, [[0, 0, 0], [0, 1, 1], [0, 1, 1]])
    for table in (one, other):
        assert not any(each.disclosed for each in found(table))
    both = found(one, other)
    assert all(each.disclosed and each.by_combining for each in both)
    assert [each.whole[0] for each in both] == [8, 3, 9, 7, 7, 4, 2, 1]
    assert both[0].alone == (1, 11)


def test_the_difference_of_two_cuts_of_an_attribute_is_a_cell():
    old = SuppressedTable(Domain({"age": ["0-17", "18+"]}), [31, NAN], {(): 80})
    new = SuppressedTable(Domain({"age": ["0-14", "15+"]}), [30, NAN], {(): 80})
    between = SuppressedTable(Domain({"age": ["0-14", "15-17", "18+"]}), [NAN, NAN, NAN])
    parts = {"age": {"0-17": ["0-14", "15-17"], "15+": ["15-17", "18+"]}}
    one = next(each for each in found(old, new, between, parts=parts) if each.place.levels == ("15-17",))
    assert one.whole == (1, 1)
    assert one.by_combining
    assert one.alone == (0, np.inf)
    (proof,) = one.proofs
    assert proof.identity
    assert proof.tables == (0, 1)
    assert str(proof) == "[age 0-17] (table 1) - [age 0-14] (table 2)"


def test_what_a_table_does_not_bound_is_unbounded():
    (one, other) = found(hidden([NAN, NAN]))
    assert one.whole == other.whole == (0, np.inf)
    assert not one.disclosed


def test_a_suppressed_sum_has_an_interval_too():
    table = hidden([[4, NAN], [5, 6]], {"a": [NAN, 11], "b": [9, NAN], "": 20})
    assert [(each.place.attributes, each.place.levels, each.whole) for each in found(table)] == [
        (("a", "b"), ("0", "1"), (5, 5)),
        (("a",), ("0",), (9, 9)),
        (("b",), ("1",), (11, 11)),
    ]


def test_people_bound_the_count_of_a_cell():
    table = hidden([[NAN, NAN], [NAN, NAN]], {"a": [7, 0], "b": [6, 1]}, people=[[6, 30], [2, 30]])
    full, one_of_many, nobody, neither = found(table)
    assert (full.whole, full.people) == ((6, 6), 6)
    assert one_of_many.whole == (1, 1)
    assert nobody.whole == neither.whole == (0, 0)


def test_a_cell_without_people_has_a_count_of_zero():
    table = hidden([NAN, NAN], {"": 3}, people=[0, 5])
    nobody, some = found(table)
    assert nobody.whole == (0, 0)
    assert some.whole == (3, 3)


def test_amounts_have_real_ends_and_no_whole_ones():
    table = hidden([[0.5, NAN], [NAN, NAN]], {"a": [2.25, 3], "b": [1.75, 3.5]}, whole=False)
    assert [each.whole for each in found(table)] == [None, None, None]
    assert [each.lower for each in found(table)] == pytest.approx([1.75, 1.25, 1.75])
    assert all(each.disclosed for each in found(table))


def test_large_amounts_are_not_lost_in_the_tolerance_of_the_solver():
    scale = 3e11
    values = np.array([[0.1, 0.7, 0.4], [0.3, 0.9, 0.2], [0.6, 0.5, 0.8]]) * scale
    mask = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=bool)
    for each in found(two_way(values, mask, whole=False)):
        assert (each.lower, each.upper) == pytest.approx(
            {
                ("0", "0"): (0, 0.4 * scale),
                ("0", "1"): (0.4 * scale, 0.8 * scale),
                ("1", "0"): (0, 0.4 * scale),
                ("1", "1"): (0.8 * scale, 1.2 * scale),
            }[each.place.levels],
            abs=1e-5 * scale,
        )


def test_a_cell_that_cannot_be_is_known_to_be_empty():
    domain = Domain({"age": ["child", "adult"], "job": ["none", "paid"]}, [{"age": "child", "job": "paid"}])
    table = SuppressedTable(domain, np.full((2, 2), NAN), {("age",): [4, 9], ("job",): [7, 6]})
    assert [(each.place.levels, each.whole) for each in found(table)] == [
        (("child", "none"), (4, 4)),
        (("adult", "none"), (3, 3)),
        (("adult", "paid"), (6, 6)),
    ]


@pytest.mark.parametrize(
    "table",
    [
        hidden([[4, NAN], [5, 6]], {"a": [3, 11]}),
        hidden([[4, 1], [5, 6]], {"a": [5, 12]}),
        hidden([[NAN, NAN], [NAN, NAN]], {"a": [3, 11], "b": [7, 8]}),
        hidden([[NAN, NAN], [NAN, NAN]], {"a": [3, 11], "": 15}),
        hidden([[NAN, NAN], [NAN, NAN]], {"a": [3, 11], "b": [7, 7]}, people=[[1, 1], [9, 9]]),
        hidden([[0.3, NAN], [0.5, 0.6]], {"a": [0.2, 1.1]}, whole=False),
        hidden([[0.3, 0.1], [0.5, 0.6]], {"a": [0.4, 1.3]}, whole=False),
    ],
)
def test_numbers_that_contradict_are_refused(table):
    with pytest.raises(InvalidTable, match="contradict"):
        found(table)


def test_a_table_of_whole_numbers_must_be_left():
    # x₁ + x₂ = x₂ + x₃ = x₁ + x₃ = 1 has a solution, of halves.
    parts = {"p": ["1", "2"], "q": ["2", "3"], "r": ["1", "3"]}
    tables = [
        SuppressedTable(Domain({"level": [name, rest]}), [1, NAN])
        for name, rest in (("p", "3"), ("q", "1"), ("r", "2"))
    ]
    with pytest.raises(InvalidTable, match="no table of non-negative whole numbers"):
        found(*tables, parts={"level": parts})


def test_tables_that_disagree_about_the_people_are_refused():
    one, other = hidden([NAN, NAN], people=[3, 4]), hidden([NAN, NAN], people=[3, 5])
    with pytest.raises(InvalidTable, match="about the number of people"):
        found(one, other)
    crossed = two_way([[1, 1], [1, 1]], True, people=[[2, 2], [2, 2]])
    with pytest.raises(InvalidTable, match="about the number of people"):
        found(crossed, hidden([NAN, NAN], people=[4, 5]))


def test_progress_is_told():
    told = []
    found(two_way([[1, 2], [3, 4]], True), progress=lambda *step: told.append(step))
    assert told == [("suppressed numbers", done, 4) for done in range(4)]
