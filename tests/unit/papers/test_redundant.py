"""The redundant Efron–Stein terms, and how far one person can move them."""

import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.core.neighbours import Neighbours
from tabulary.core.workload import Workload
from tabulary.errors import InvalidArgument, TooManyCells
from tabulary.reconstruct.lp import solve_program
from tabulary_papers.redundant import RedundantMap, centred, exact_redundant_sensitivity


@st.composite
def workloads(draw, *, max_cells=18, max_levels=4):
    """Some margins of a small domain without structural zeros."""
    sizes = draw(
        st.lists(st.integers(1, max_levels), min_size=1, max_size=3).filter(
            lambda s: math.prod(s) <= max_cells
        )
    )
    domain = Domain({letter: range(levels) for letter, levels in zip("ABC", sizes, strict=False)})
    every = [m for k in range(len(sizes) + 1) for m in combinations(domain.attributes, k)]
    return Workload(domain, draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True)))


def terms_by_definition(work, counts):
    """Every f^S(x_S)·Π k by the paper's alternating sum of conditional means, in exact fractions."""
    domain = work.domain
    cells = math.prod(domain.shape)
    found = []
    for s in work.closure():
        for x in product(*(range(len(domain.levels_of(a))) for a in s)):
            total = Fraction(0)
            for k in range(len(s) + 1):
                for inner in combinations(range(len(s)), k):
                    at = tuple(
                        x[s.index(a)] if a in s and s.index(a) in inner else slice(None)
                        for a in domain.attributes
                    )
                    chosen = np.asarray(counts[at])
                    total += (-1) ** (len(s) - k) * Fraction(int(chosen.sum()), chosen.size)
            found.append(total * cells)
    return found


def map_of(work):
    return RedundantMap(
        work.domain.shape, tuple(tuple(work.domain.position(a) for a in s) for s in work.closure())
    )


@settings(max_examples=40)
@given(workloads(), st.data())
def test_the_terms_are_the_alternating_sums_of_conditional_means(work, data):
    cells = math.prod(work.domain.shape)
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=cells, max_size=cells)))
    counts = counts.reshape(work.domain.shape)
    assert map_of(work).forward(counts.astype(float)).tolist() == terms_by_definition(work, counts)


@settings(max_examples=40)
@given(workloads(), st.data())
def test_the_adjoint_is_the_transpose(work, data):
    linear_map = map_of(work)
    numbers = st.integers(-5, 5).map(float)
    cells = math.prod(work.domain.shape)
    table = np.array(data.draw(st.lists(numbers, min_size=cells, max_size=cells)))
    values = np.array(data.draw(st.lists(numbers, min_size=linear_map.size, max_size=linear_map.size)))
    table = table.reshape(work.domain.shape)
    assert linear_map.forward(table) @ values == (table * linear_map.adjoint(values)).sum()


@settings(max_examples=30)
@given(workloads())
def test_the_terms_have_the_rank_of_the_basis_without_redundancy(work):
    linear_map = map_of(work)
    rows = np.array([linear_map.adjoint(unit).reshape(-1) for unit in np.eye(linear_map.size)])
    rank = sum(math.prod(k - 1 for k in work.domain.shape_of(s)) for s in work.closure())
    assert np.linalg.matrix_rank(rows) == rank


def test_the_terms_of_one_set_add_up_to_zero_along_every_attribute():
    terms = centred(np.arange(24).reshape(2, 3, 4) ** 2)
    for axis in range(3):
        assert not terms.sum(axis=axis).any()


def changes(domain, neighbours):
    """Every change that one person can make to the full table: all neighbouring pairs, up to what they share."""
    cells = list(product(*map(range, domain.shape)))

    def brought(number):
        for chosen in combinations_with_replacement(cells, number):
            table = np.zeros(domain.shape, dtype=np.int64)
            for cell in chosen:
                table[cell] += 1
            yield table

    if neighbours.relation == "add-remove":
        return [table for number in range(neighbours.records + 1) for table in brought(number)]
    pairs = product(list(brought(neighbours.records)), repeat=2)
    return [after - before for before, after in pairs]


@settings(max_examples=40)
@given(workloads(max_cells=12), st.sampled_from(["add-remove", "replace"]))
def test_the_sensitivity_is_reached_by_some_neighbours_and_exceeded_by_none(work, relation):
    neighbours = Neighbours(relation)
    moved = [sum(map(abs, terms_by_definition(work, change))) for change in changes(work.domain, neighbours)]
    assert exact_redundant_sensitivity(work, neighbours) == max(moved)


@settings(max_examples=15)
@given(workloads(max_cells=6), st.sampled_from(["add-remove", "replace"]))
def test_two_records_a_person_move_the_terms_twice_as_far(work, relation):
    neighbours = Neighbours(relation, records=2)
    linear_map = map_of(work)
    moved = [np.abs(linear_map.forward(c.astype(float))).sum() for c in changes(work.domain, neighbours)]
    assert exact_redundant_sensitivity(work, neighbours) == max(moved)


def test_without_noise_the_program_finds_a_table_with_the_same_terms():
    work = Workload.k_way(Domain({"A": range(2), "B": range(3), "C": range(3)}), 2)
    linear_map = map_of(work)
    truth = np.arange(18.0).reshape(2, 3, 3) % 5
    found = solve_program(linear_map, linear_map.forward(truth))
    assert found.feasible
    assert linear_map.forward(found.table) == pytest.approx(linear_map.forward(truth), abs=1e-6)


def test_a_domain_with_impossible_cells_is_refused():
    domain = Domain({"A": "xy", "B": "xy"}, [{"A": "x", "B": "x"}])
    with pytest.raises(InvalidArgument, match="structural zeros"):
        exact_redundant_sensitivity(Workload.k_way(domain, 1), Neighbours("replace"))


def test_too_many_attributes_to_compare_are_refused_and_counted():
    work = Workload.k_way(Domain({f"a{i}": "xy" for i in range(17)}), 1)
    assert exact_redundant_sensitivity(work, Neighbours("add-remove")) == 1 + 17 * 2
    with pytest.raises(TooManyCells, match=r"2\^17"):
        exact_redundant_sensitivity(work, Neighbours("replace"))
