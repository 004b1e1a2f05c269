"""What one person can change in the parts of a residual measurement, beside every pair of neighbours."""

import time
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tabulary.core import residual_sensitivity as module
from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.residual_sensitivity import residual_sensitivity
from tabulary.core.residuals import residual_values
from tabulary.core.sensitivity import margin_sensitivity
from tabulary.errors import InvalidArgument
from tests.unit.core.small_domains import counted, domains, near, possible_cells

relations = st.sampled_from(["add-remove", "replace", "dropping"])
positive = st.fractions(min_value=Fraction(1, 5), max_value=5, max_denominator=5)


@st.composite
def free_domains(draw, max_cells=12):
    """A domain of few cells without structural zeros, of one to four levels."""
    sizes = draw(
        st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda s: np.prod(s) <= max_cells)
    )
    return Domain({f"x{i}": range(k) for i, k in enumerate(sizes)})


@st.composite
def parts_of(draw, domain, max_size=4):
    """Some parts of the domain, counted and centred attributes mixed."""
    margins = st.sets(st.sampled_from(domain.attributes)).map(domain.margin)
    found = []
    for margin in draw(st.lists(margins, min_size=1, max_size=max_size)):
        centred = draw(st.sets(st.sampled_from(margin)) if margin else st.just(set()))
        found.append((margin, domain.margin(centred)))
    return found


def brute_force(domain, parts, neighbours, weights, squares):
    """The largest weighted norms over everything that one person can change."""
    cells = possible_cells(domain)
    values = [
        [
            residual_values(counted(domain, margin, [cell]), [margin.index(a) for a in centred]).ravel()
            for cell in cells
        ]
        for margin, centred in parts
    ]
    bring = [
        c for n in range(neighbours.records + 1) for c in combinations_with_replacement(range(len(cells)), n)
    ]
    brought = [[sum((rows[i] for i in c), np.zeros_like(rows[0])) for c in bring] for rows in values]
    if neighbours.relation == "add-remove":
        pairs = [(0, j) for j in range(len(bring))]
    else:
        fixed = [
            i for i, a in enumerate(domain.attributes) if a not in (neighbours.sensitive or domain.attributes)
        ]
        kept = [sorted(tuple(cells[i][f] for f in fixed) for i in c) for c in bring]
        everyone = range(len(bring))
        pairs = [
            (i, j)
            for i, j in product(everyone, everyone)
            if neighbours.may_drop or (len(bring[i]) == len(bring[j]) and kept[i] == kept[j])
        ]
    norms = {
        tuple((int(abs(rows[j] - rows[i]).sum()), int(((rows[j] - rows[i]) ** 2).sum())) for rows in brought)
        for i, j in pairs
    }
    l1 = max(sum((w * n for w, (n, _) in zip(weights, norm, strict=True)), Fraction(0)) for norm in norms)
    l2 = max(sum((w * n for w, (_, n) in zip(squares, norm, strict=True)), Fraction(0)) for norm in norms)
    return l1, l2


@settings(max_examples=120)
@given(free_domains(), relations, st.data())
def test_the_sensitivity_is_reached_by_some_neighbours_and_exceeded_by_none(domain, relation, data):
    parts = data.draw(parts_of(domain))
    scales = data.draw(st.lists(positive, min_size=len(parts), max_size=len(parts)))
    weights = [1 / s for s in scales]
    found = residual_sensitivity(domain, parts, near(relation), scales=scales)
    expected = brute_force(domain, parts, near(relation), weights, [w * w for w in weights])
    assert (found.l1, found.l2_squared) == expected


@settings(max_examples=40)
@given(free_domains(max_cells=6), relations, st.data())
def test_several_records_of_a_person_move_that_many_times_as_much(domain, relation, data):
    parts = data.draw(parts_of(domain, max_size=3))
    found = residual_sensitivity(domain, parts, near(relation, 2))
    ones = [Fraction(1)] * len(parts)
    assert (found.l1, found.l2_squared) == brute_force(domain, parts, near(relation, 2), ones, ones)


@settings(max_examples=40)
@given(free_domains(), relations, st.data())
def test_squared_scales_divide_the_squared_norm_and_leave_the_other_alone(domain, relation, data):
    parts = data.draw(parts_of(domain, max_size=3))
    variances = data.draw(st.lists(positive, min_size=len(parts), max_size=len(parts)))
    found = residual_sensitivity(domain, parts, near(relation), squared_scales=variances)
    ones = [Fraction(1)] * len(parts)
    assert (found.l1, found.l2_squared) == brute_force(
        domain, parts, near(relation), ones, [1 / v for v in variances]
    )


@settings(max_examples=60)
@given(domains(max_attributes=3), relations, st.integers(1, 2), st.data())
def test_with_structural_zeros_the_sensitivity_is_never_too_small(domain, relation, records, data):
    assume(len(possible_cells(domain)) <= 8)
    parts = data.draw(parts_of(domain))
    neighbours = near(relation, records)
    found = residual_sensitivity(domain, parts, neighbours)
    ones = [Fraction(1)] * len(parts)
    l1, l2 = brute_force(domain, parts, neighbours, ones, ones)
    assert found.l1 >= l1
    assert found.l2_squared >= l2
    if relation == "add-remove":
        assert (found.l1, found.l2_squared) == (l1, l2)


@settings(max_examples=40)
@given(free_domains(), st.data())
def test_with_sensitive_attributes_only_these_differ(domain, data):
    hidden = data.draw(st.sets(st.sampled_from(domain.attributes), min_size=1).map(domain.margin))
    neighbours = Neighbours("replace", sensitive=hidden)
    parts = data.draw(parts_of(domain))
    found = residual_sensitivity(domain, parts, neighbours)
    ones = [Fraction(1)] * len(parts)
    assert (found.l1, found.l2_squared) == brute_force(domain, parts, neighbours, ones, ones)


@settings(max_examples=40)
@given(free_domains(), st.data())
def test_on_a_domain_too_large_to_compare_the_bound_is_never_too_small(domain, data):
    parts = data.draw(parts_of(domain))
    exact = residual_sensitivity(domain, parts, Neighbours("replace"))
    for cap in ("MOST_PATTERNS", "MOST_WORK"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, cap, 0)
            bound = residual_sensitivity(domain, parts, Neighbours("replace"))
        assert bound.l1 >= exact.l1
        assert bound.l2_squared >= exact.l2_squared


@settings(max_examples=40)
@given(free_domains(), st.data())
def test_patterns_compared_a_few_at_a_time_give_the_same(domain, data):
    parts = data.draw(parts_of(domain))
    whole = residual_sensitivity(domain, parts, Neighbours("replace"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TOGETHER", 1)
        assert residual_sensitivity(domain, parts, Neighbours("replace")) == whole


@settings(max_examples=40)
@given(free_domains(), st.data())
def test_exchanging_attributes_that_are_alike_loses_no_pattern(domain, data):
    parts = data.draw(parts_of(domain, max_size=3))
    alike = residual_sensitivity(domain, parts, Neighbours("replace"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "classes_alike", lambda columns, laws, levels: [[a] for a in domain.attributes])
        assert residual_sensitivity(domain, parts, Neighbours("replace")) == alike


@settings(max_examples=40)
@given(domains(), relations, st.data())
def test_parts_that_are_only_counted_are_margins(domain, relation, data):
    margins = [margin for margin, _ in data.draw(parts_of(domain))]
    found = residual_sensitivity(domain, [(m, ()) for m in margins], near(relation))
    known = margin_sensitivity(domain, margins, near(relation))
    assert found.l1 >= known.l1
    if not domain.structural_zeros:
        assert found == known


@settings(max_examples=30)
@given(free_domains(), relations, st.data())
def test_stretching_all_scales_divides_the_sensitivity_exactly(domain, relation, data):
    # A plan is checked with the very scales that were stretched to fit it.
    parts = data.draw(parts_of(domain))
    long = st.integers(10**20, 10**22).map(lambda n: Fraction(n, 10**21 + 7))
    scales = data.draw(st.lists(long, min_size=len(parts), max_size=len(parts)))
    stretch = data.draw(long)
    once = residual_sensitivity(domain, parts, near(relation), scales=scales)
    found = residual_sensitivity(domain, parts, near(relation), scales=[s * stretch for s in scales])
    assert (found.l1, found.l2_squared) == (once.l1 / stretch, once.l2_squared / stretch**2)


def test_binary_residuals_move_as_the_published_fourier_model():
    # Fungus: Yang, Fienberg & Rinaldo, Table 1; exactly 12 and 16.
    domain = Domain(dict.fromkeys("ABCDEF", "01"))
    wanted = ["AD", "AB", "BE", "CE", "CF"]
    sets = sorted({tuple(s) for m in wanted for n in range(3) for s in combinations(m, n)})
    parts = [(s, s) for s in sets]
    assert residual_sensitivity(domain, parts, Neighbours("add-remove")).l1 == 12
    assert residual_sensitivity(domain, parts, Neighbours("replace")).l1 == 16


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_thousands_of_parts_of_a_hundred_attributes_take_seconds(relation):
    domain = Domain({f"x{i}": range(10) for i in range(100)})
    parts = [(s, s) for n in range(3) for s in combinations(domain.attributes, n)]
    scales = [Fraction(1000, 7 + len(s)) for s, _ in parts]
    before = time.process_time()
    found = residual_sensitivity(domain, parts, near(relation), scales=scales)
    assert time.process_time() - before < 10
    if relation == "add-remove":
        assert found.l1 == Fraction(7 + 100 * 18 * 8 + 4950 * 18**2 * 9, 1000)


@pytest.mark.parametrize("scales", [[], [Fraction(0)], [Fraction(-1)], [Fraction(1)] * 2])
def test_scales_that_do_not_fit_are_refused(scales):
    with pytest.raises(InvalidArgument, match="scales"):
        residual_sensitivity(Domain({"A": "01"}), [(("A",), ())], Neighbours("replace"), scales=scales)


def test_centring_an_attribute_outside_the_margin_is_refused():
    with pytest.raises(InvalidArgument, match="centres 'B'"):
        residual_sensitivity(Domain({"A": "01", "B": "01"}), [(("A",), ("B",))], Neighbours())


def test_an_empty_part_costs_nothing():
    domain = Domain({"A": "0", "B": "01"})
    found = residual_sensitivity(domain, [(("A", "B"), ("A",))], Neighbours("replace"))
    assert (found.l1, found.l2_squared) == (0, 0)
