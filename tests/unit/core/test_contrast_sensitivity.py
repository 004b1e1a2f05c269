"""What one person can change in contrasts, beside every pair of neighbouring tables."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.core import contrast_sensitivity as module
from tabulary.core.contrast_sensitivity import contrast_sensitivity
from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.errors import InvalidArgument
from tests.unit.core.small_domains import domains, margins_of, near, possible_cells

relations = st.sampled_from(["add-remove", "replace", "dropping"])
small = domains(max_attributes=3, max_levels=4).filter(lambda d: len(possible_cells(d)) <= 8)
positive = st.fractions(min_value=Fraction(1, 5), max_value=5, max_denominator=5)


def column(levels, level):
    """What a record at `level` adds to the contrasts of one attribute."""
    return np.array([1 if level < i else -i if level == i else 0 for i in range(1, levels)], dtype=np.int64)


def added(domain, s, cell):
    """What a record in `cell` adds to the coefficients that vary on exactly `s`."""
    found = np.ones(1, dtype=np.int64)
    for attribute in s:
        i = domain.position(attribute)
        found = np.kron(found, column(domain.shape[i], cell[i]))
    return found


def brute_force(domain, sets, neighbours, weights, squares):
    """The largest weighted norms over everything that one person can change."""
    cells = possible_cells(domain)
    bring = [
        chosen
        for k in range(neighbours.records + 1)
        for chosen in combinations_with_replacement(range(len(cells)), k)
    ]
    one = [[added(domain, s, cell) for cell in cells] for s in sets]
    brought = [[sum((rows[i] for i in chosen), np.zeros_like(rows[0])) for chosen in bring] for rows in one]
    if neighbours.relation == "add-remove":
        pairs = [(0, j) for j in range(len(bring))]
    else:
        everyone = range(len(bring))
        pairs = [
            (i, j)
            for i, j in product(everyone, everyone)
            if neighbours.may_drop or len(bring[i]) == len(bring[j])
        ]
    norms = {
        tuple((int(abs(rows[j] - rows[i]).sum()), int(((rows[j] - rows[i]) ** 2).sum())) for rows in brought)
        for i, j in pairs
    }
    l1 = max(sum((w * n for w, (n, _) in zip(weights, norm, strict=True)), Fraction(0)) for norm in norms)
    l2 = max(sum((w * n for w, (_, n) in zip(squares, norm, strict=True)), Fraction(0)) for norm in norms)
    return l1, l2


@settings(max_examples=80)
@given(small, relations, st.integers(1, 2), st.data())
def test_the_sensitivity_is_reached_by_some_neighbours_and_exceeded_by_none(domain, relation, records, data):
    sets = data.draw(st.lists(margins_of(domain), min_size=1, max_size=4, unique=True))
    scales = data.draw(st.lists(positive, min_size=len(sets), max_size=len(sets)))
    neighbours = near(relation, records)
    found = contrast_sensitivity(domain, sets, neighbours, scales=scales)
    weights = [1 / s for s in scales]
    assert (found.l1, found.l2_squared) == brute_force(
        domain, sets, neighbours, weights, [w * w for w in weights]
    )


@settings(max_examples=40)
@given(small, relations, st.data())
def test_squared_scales_divide_the_squared_norm_and_leave_the_other_alone(domain, relation, data):
    sets = data.draw(st.lists(margins_of(domain), min_size=1, max_size=3, unique=True))
    variances = data.draw(st.lists(positive, min_size=len(sets), max_size=len(sets)))
    neighbours = near(relation)
    found = contrast_sensitivity(domain, sets, neighbours, squared_scales=variances)
    ones = [Fraction(1)] * len(sets)
    assert (found.l1, found.l2_squared) == brute_force(
        domain, sets, neighbours, ones, [1 / v for v in variances]
    )


@settings(max_examples=60)
@given(small, relations, st.integers(1, 2), st.data())
def test_on_a_domain_too_large_to_compare_the_bound_is_never_too_small(domain, relation, records, data):
    sets = data.draw(st.lists(margins_of(domain), min_size=1, max_size=4, unique=True))
    exact = contrast_sensitivity(domain, sets, near(relation, records))
    with pytest.MonkeyPatch.context() as patch:
        for cap in ("_MOST_BITS", "MOST_CELLS", "_MOST_WORK"):
            patch.setattr(module, cap, -1)
        bound = contrast_sensitivity(domain, sets, near(relation, records))
    assert bound.l1 >= exact.l1
    assert bound.l2_squared >= exact.l2_squared


@settings(max_examples=40)
@given(small, st.data())
def test_scales_of_many_digits_are_rounded_to_the_safe_side_and_hardly(domain, data):
    sets = data.draw(st.lists(margins_of(domain), min_size=1, max_size=4, unique=True))
    long = st.integers(10**20, 10**22).map(lambda n: Fraction(n, 10**21 + 7))
    scales = data.draw(st.lists(long, min_size=len(sets), max_size=len(sets)))
    found = contrast_sensitivity(domain, sets, Neighbours("replace"), scales=scales)
    weights = [1 / s for s in scales]
    l1, l2 = brute_force(domain, sets, Neighbours("replace"), weights, [w * w for w in weights])
    # By at most one step of 2^-35 of the sum of all weights in each of them.
    change = max(4 ** len(domain.shape) * domain.cells(domain.attributes) ** 2, 1)
    assert l1 <= found.l1 <= l1 + Fraction(change, 2**35) * sum(weights)
    assert l2 <= found.l2_squared <= l2 + Fraction(change, 2**35) * sum(w * w for w in weights)


@pytest.mark.parametrize("scales", [[], [Fraction(0)], [Fraction(-1)], [Fraction(1)] * 2])
def test_scales_that_do_not_fit_are_refused(scales):
    with pytest.raises(InvalidArgument, match="scales"):
        contrast_sensitivity(Domain({"A": "01"}), [("A",)], Neighbours("replace"), scales=scales)


@pytest.mark.parametrize(
    ("name", "margins", "add_remove", "replace"),
    [
        ("fungus", "[A D][A B][B E][C E][C F]", 12, 16),
        ("autoworkers", "[B F][A D E][A B C E]", 22, 28),
        ("rochdale", "[A C E][A C G][A D G][B D H][B F][B E][C E F][C F G]", 30, 38),
    ],
)
def test_the_published_models_move_less_than_published(name, margins, add_remove, replace):
    # Yang, Fienberg & Rinaldo, Table 1, would have twice the add-remove number for replace.
    domain = tb.datasets.load(name).domain
    sets = tb.Workload.parse(margins, domain).closure().margins
    assert contrast_sensitivity(domain, sets, Neighbours("add-remove")).l1 == add_remove
    assert contrast_sensitivity(domain, sets, Neighbours("replace")).l1 == replace


def test_a_bound_in_place_of_too_many_rows_is_never_too_small(monkeypatch):
    domain = Domain({"a": "wxyz", "b": "wxyz"}, [{"a": ["y", "z"], "b": ["y", "z"]}])
    sets = [("a",), ("b",), ("a", "b")]
    exact = contrast_sensitivity(domain, sets, Neighbours("add-remove"))
    monkeypatch.setattr(module, "MOST_CELLS", 1)
    bounded = contrast_sensitivity(domain, sets, Neighbours("add-remove"))
    assert bounded.l2_squared > exact.l2_squared
    assert bounded.l1 == exact.l1
