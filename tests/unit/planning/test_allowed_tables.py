"""The tables that a table builder allows, by public rules."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.errors import InvalidArgument, InvalidDomain, TableRefused, TooManyCells
from tabulary.planning.allowed_tables import AllowedTables

DOMAIN = Domain({"a": "xy", "b": "xyz", "c": range(10), "d": range(50)})


@st.composite
def rules(draw):
    sets = st.lists(st.sampled_from(DOMAIN.attributes), min_size=1, max_size=3, unique=True)
    return AllowedTables(
        DOMAIN,
        order=draw(st.integers(1, 4)),
        forbidden=draw(st.lists(sets, max_size=3)),
        max_cells=draw(st.integers(1, 3000)),
    )


@given(rules())
def test_a_table_is_allowed_by_the_three_rules_and_nothing_else(allowed):
    for k in range(5):
        for margin in combinations(DOMAIN.attributes, k):
            follows_the_rules = (
                k <= allowed.order
                and not any(set(combination) <= set(margin) for combination in allowed.forbidden)
                and DOMAIN.cells(margin) <= allowed.max_cells
            )
            assert allowed.allows(margin) == follows_the_rules == (margin in allowed.margins)


@given(rules())
def test_with_a_table_its_sums_are_allowed(allowed):
    for margin in allowed.margins:
        assert all(allowed.allows(s) for k in range(len(margin)) for s in combinations(margin, k))


@given(rules())
def test_each_table_of_the_workload_counts_alike(allowed):
    work = allowed.workload()
    assert work.margins == allowed.margins
    assert {w * DOMAIN.cells(m) for m, w in zip(work.margins, work.weights, strict=True)} == {Fraction(1)}


def test_a_refusal_says_which_rule_stood_in_the_way():
    allowed = AllowedTables(DOMAIN, order=2, forbidden=[["d", "a"], ["b"]], max_cells=100)
    for margin, error, said in [
        (("a", "b", "c"), TableRefused, "at most 2 attributes"),
        (("a", "d"), TableRefused, "'a' and 'd' together"),
        (("b", "c"), TableRefused, "no table with 'b'. "),
        (("c", "d"), TooManyCells, "has 500 cells, filters included, and the most is 100"),
    ]:
        with pytest.raises(error, match=said):
            allowed.refuse(margin)


def test_slips_of_the_pen_are_refused():
    order, cells = "the order of the largest tables", "the most cells of a table"
    for reason, options in (
        *((order, {"order": wrong}) for wrong in (0, 5, True)),
        (cells, {"order": 2, "max_cells": 0}),
    ):
        with pytest.raises(InvalidArgument, match=reason):
            AllowedTables(DOMAIN, **options)
    with pytest.raises(InvalidArgument, match="at least one attribute"):
        AllowedTables(DOMAIN, order=2, forbidden=[[]])
    with pytest.raises(InvalidDomain, match="no attribute 'e'"):
        AllowedTables(DOMAIN, order=2, forbidden=[["e"]])
    with pytest.raises(InvalidArgument, match="up to 166,751 tables"):
        AllowedTables(Domain({f"x{i}": "ab" for i in range(100)}), order=3)


def test_its_rules_are_plain_data():
    allowed = AllowedTables(DOMAIN, order=2, forbidden=[["d", "a"]], max_cells=100)
    assert allowed.describe() == {
        "order": 2,
        "forbidden": [["a", "d"]],
        "max_cells": 100,
        "within": None,
    }


def test_the_parts_of_the_tables_of_a_release_are_allowed_and_no_others():
    allowed = AllowedTables(DOMAIN, order=3, within=[["b", "a"], ["b"], ["d", "b", "c"]], max_cells=2000)
    assert allowed.within == (("a", "b"), ("b", "c", "d"))
    assert allowed.margins == (
        (), ("a",), ("b",), ("c",), ("d",), ("a", "b"), ("b", "c"), ("b", "d"), ("c", "d"), ("b", "c", "d"),
    )  # fmt: skip
    for margin in (m for k in range(5) for m in combinations(DOMAIN.attributes, k)):
        assert allowed.allows(margin) == (margin in allowed.margins)
    with pytest.raises(
        TableRefused, match=r"the release has no table with \[ad\] together\..* \[ab\]\[bcd\]"
    ):
        allowed.refuse(("a", "d"))
    assert AllowedTables(DOMAIN, **allowed.describe()) == allowed


def test_too_many_parts_of_a_release_are_refused():
    vast = Domain({f"a{i}": "x" for i in range(21)})
    with pytest.raises(InvalidArgument, match="2,097,152 tables, and 1,000,000 is the most"):
        AllowedTables(vast, order=21, within=[vast.attributes])
