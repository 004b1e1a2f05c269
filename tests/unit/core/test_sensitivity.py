from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core import sensitivity
from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.sensitivity import margin_sensitivity
from tabulary.errors import PublicError
from tests.unit.core.small_domains import counted, domains, margins_of, near, possible_cells

relations = st.sampled_from(["add-remove", "replace", "dropping"])


def people(domain, records):
    """Everything one person can bring: up to so many records, each in a possible cell."""
    cells = possible_cells(domain)
    return [chosen for k in range(records + 1) for chosen in combinations_with_replacement(cells, k)]


def changes(domain, margins, neighbours):
    """What one person can change in each margin, over all pairs of neighbouring tables."""
    brought = [
        (len(cells), [counted(domain, m, cells).ravel() for m in margins])
        for cells in people(domain, neighbours.records)
    ]
    if neighbours.relation == "add-remove":
        return [after for _, after in brought]
    return [
        [y - x for x, y in zip(before, after, strict=True)]
        for (n, before), (k, after) in product(brought, repeat=2)
        if neighbours.may_drop or n == k
    ]


def norms(change, weights, squares):
    l1 = sum((w * int(abs(c).sum()) for c, w in zip(change, weights, strict=True)), Fraction(0))
    l2 = sum((s * int((c * c).sum()) for c, s in zip(change, squares, strict=True)), Fraction(0))
    return l1, l2


@settings(max_examples=150)
@given(
    domains(max_attributes=3, max_levels=3).filter(lambda d: len(possible_cells(d)) <= 9),
    relations,
    st.integers(1, 2),
    st.data(),
)
def test_the_sensitivity_is_reached_by_some_neighbours_and_exceeded_by_none(domain, relation, records, data):
    margins = data.draw(st.lists(margins_of(domain), min_size=1, max_size=4, unique=True))
    positive = st.fractions(min_value=Fraction(1, 5), max_value=5, max_denominator=5)
    scales = data.draw(st.lists(positive, min_size=len(margins), max_size=len(margins)))
    neighbours = near(relation, records)
    found = margin_sensitivity(domain, margins, neighbours, scales=scales)
    weights = [1 / s for s in scales]
    moved = [norms(c, weights, [w * w for w in weights]) for c in changes(domain, margins, neighbours)]
    assert found.l1 == max(l1 for l1, _ in moved)
    assert found.l2_squared == max(l2 for _, l2 in moved)


@settings(max_examples=50)
@given(domains(max_attributes=3, max_levels=2), relations, st.data())
def test_squared_scales_divide_the_squared_norm_and_leave_the_other_alone(domain, relation, data):
    margins = data.draw(st.lists(margins_of(domain), min_size=1, max_size=3, unique=True))
    variances = data.draw(
        st.lists(st.integers(1, 7).map(Fraction), min_size=len(margins), max_size=len(margins))
    )
    found = margin_sensitivity(domain, margins, near(relation), squared_scales=variances)
    ones = [Fraction(1)] * len(margins)
    moved = [norms(c, ones, [1 / v for v in variances]) for c in changes(domain, margins, near(relation))]
    assert found.l1 == max(l1 for l1, _ in moved)
    assert found.l2_squared == max(l2 for _, l2 in moved)


def test_scales_default_to_one():
    domain = Domain({"A": "xy", "B": "xyz"})
    margins = [(), ("A",), ("A", "B")]
    added = margin_sensitivity(domain, margins, Neighbours("add-remove"))
    assert (added.l1, added.l2_squared) == (3, 3)
    replaced = margin_sensitivity(domain, margins, Neighbours("replace", 3))
    # The total does not move when a record is replaced.
    assert (replaced.l1, replaced.l2_squared) == (12, 36)


def test_structural_zeros_can_lower_the_sensitivity_of_replacing():
    # One attribute at most is not at its first level, so no two records differ in all three.
    zeros = [{a: "y", b: "y"} for a, b in ("AB", "AC", "BC")]
    margins = [("A",), ("B",), ("C",)]
    free = margin_sensitivity(Domain(dict.fromkeys("ABC", "xy")), margins, Neighbours("replace"))
    tied = margin_sensitivity(Domain(dict.fromkeys("ABC", "xy"), zeros), margins, Neighbours("replace"))
    assert (free.l1, tied.l1) == (6, 4)


def test_an_attribute_of_one_level_never_moves():
    domain = Domain({"A": "x", "B": "xy"})
    assert margin_sensitivity(domain, [("A",)], Neighbours("replace")).l1 == 0
    assert margin_sensitivity(domain, [("A",)], Neighbours("add-remove")).l1 == 1


def test_where_pairs_are_too_many_to_compare_the_bound_is_never_too_small():
    # The cells of a star: one of three attributes is off its first level, and no two cells differ in all.
    # A fourth attribute, tied to them, makes the possible cells too many to compare one by one.
    levels = {"A": range(40), "B": range(40), "C": range(40), "D": range(40)}
    others = list(range(1, 40))
    zeros = [{a: others, b: others} for a, b in ("AB", "AC", "BC")]
    large = Domain(levels, [*zeros, {"A": 39, "D": 39}])
    margins = [("A",), ("B",), ("C",), ("D",)]
    assert np.count_nonzero(~large.impossible(large.attributes)) > 4000
    found = margin_sensitivity(large, margins, Neighbours("replace"))
    assert 6 <= found.l1 <= 8


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("scales", ["scales", "squared_scales"])
def test_scales_that_do_not_match_the_margins_are_refused(relation, scales):
    margins = [("A",), ("B",)]
    with pytest.raises(PublicError, match="2 margins need as many positive scales"):
        margin_sensitivity(Domain({"A": "xy", "B": "xy"}), margins, near(relation), **{scales: [Fraction(1)]})


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_margin_with_an_unknown_attribute_is_refused(relation):
    with pytest.raises(PublicError, match="no attribute 'Q'"):
        margin_sensitivity(Domain({"A": "xy"}), [("Q",)], near(relation))


def stars(groups):
    """Groups of three attributes of which at most one is not at its first level: no two cells differ in all."""
    levels = {f"{g}{a}": "xyz" for g in range(groups) for a in "abc"}
    pairs = [(f"{g}{a}", f"{g}{b}") for g in range(groups) for a, b in ("ab", "ac", "bc")]
    return Domain(levels, [{one: ["y", "z"], other: ["y", "z"]} for one, other in pairs])


def test_groups_that_are_not_told_apart_give_a_sensitivity_that_is_never_too_small(monkeypatch):
    domain = stars(3)
    margins = [(a,) for a in domain.attributes]
    exact = margin_sensitivity(domain, margins, Neighbours("replace"))
    monkeypatch.setattr(sensitivity, "MOST_PATTERNS", 4)
    bounded = margin_sensitivity(domain, margins, Neighbours("replace"))
    assert exact.l1 == 12
    assert exact.l1 < bounded.l1 <= 18
    assert exact.l2_squared < bounded.l2_squared <= 18


def test_however_many_groups_of_structural_zeros_there_are_not_all_combinations_are_tried():
    domain = stars(40)
    found = margin_sensitivity(domain, [(a,) for a in domain.attributes], Neighbours("replace"))
    assert 160 <= found.l1 <= 240
