"""Dwork, McSherry & Talwar and Yang, Fienberg & Rinaldo, Table 1, on binary tables: numbers and theorems."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary import datasets
from tabulary.core import basis
from tabulary.core.neighbours import Neighbours
from tabulary.planning.queries import ContrastMap
from tabulary.reconstruct.lp import solve_program
from tabulary.reconstruct.rounding.full_table import round_table
from tabulary_papers.published import exact_sensitivity, published_fourier, published_sensitivity
from tabulary_papers.shift import nonnegative_shift, published_failure, published_shift

BINARY = ("fungus", "autoworkers", "rochdale")


def workload(name):
    found = datasets.describe(name)
    return tb.Workload.parse(found.model, found.table.domain)


# Yang, Fienberg & Rinaldo print 29 for Rochdale; the closure of their model has 30 sets.
@pytest.mark.parametrize(("name", "sets"), [("fungus", 12), ("autoworkers", 22), ("rochdale", 30)])
def test_the_downward_closures_have_as_many_sets_as_table_8_says(name, sets):
    assert len(workload(name).closure()) == sets


@pytest.mark.parametrize(("epsilon", "place"), [("1/100", 0), (1, 1), (2, 2)])
@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("fungus", (300, 3, 1.5)),
        ("autoworkers", (550, 5.5, 2.75)),
        # Printed 362.5, 3.625, 1.8125, which is for 29 sets.
        ("rochdale", (375, 3.75, 1.875)),
    ],
)
def test_the_noise_as_published_has_the_scales_of_table_8(name, printed, epsilon, place):
    found = published_fourier(datasets.load(name), workload(name), epsilon)
    assert found.published_scale == pytest.approx(printed[place], rel=1e-12)


@pytest.mark.parametrize(
    ("name", "added", "replaced"), [("fungus", 12, 16), ("autoworkers", 22, 28), ("rochdale", 30, 38)]
)
def test_the_plan_has_the_exact_sensitivity_for_both_kinds_of_neighbours(name, added, replaced):
    work = workload(name)
    for relation, exact in (("add-remove", added), ("replace", replaced)):
        plan = tb.plan(
            work.domain,
            work,
            privacy=tb.PureDP(1),
            neighbours=relation,
            mechanism="fourier",
            reconstruct="none",
        )
        assert plan.sensitivity == exact
        assert {part.noise.scale for part in plan.measured} == {exact}
        assert exact_sensitivity(work, "YFR Table 1", Neighbours(relation)) == exact


@pytest.mark.parametrize(
    ("name", "exact", "published"),
    [("fungus", 2, 3), ("autoworkers", 3.5, 5.5), ("rochdale", 2.375, 3.75)],
)
def test_for_replaced_records_a_third_less_noise_is_enough(name, exact, published):
    work = workload(name)
    unit = math.sqrt(work.domain.size)
    assert float(exact_sensitivity(work, "YFR Table 1", Neighbours("replace"))) / unit == exact
    assert float(published_sensitivity(work, "YFR Table 1")) / unit == published
    found = published_fourier(datasets.load(name), work, 1, neighbours="replace")
    assert found.true_epsilon == Fraction(exact) / Fraction(published) < Fraction(2, 3) + Fraction(1, 100)


@pytest.mark.parametrize("name", BINARY)
def test_the_noise_of_theorem_4_is_exact_for_added_records_and_too_small_for_replaced_ones(name):
    table, work = datasets.load(name), workload(name)
    assert published_fourier(table, work, 1, paper="DMT").true_epsilon == 1
    assert published_fourier(table, work, 1, paper="DMT", neighbours="replace").true_epsilon > Fraction(5, 4)
    # Twice the scale is twice the protection where nothing had to be doubled.
    assert published_fourier(table, work, 1).true_epsilon == Fraction(1, 2)


@st.composite
def tables_and_margins(draw):
    """A small binary table, with negative cells too: the theorem is one of linear algebra."""
    attributes = draw(st.integers(1, 5))
    cells = draw(st.lists(st.integers(-9, 9), min_size=2**attributes, max_size=2**attributes))
    margin = draw(st.sets(st.integers(0, attributes - 1)).map(lambda axes: tuple(sorted(axes))))
    return np.array(cells).reshape((2,) * attributes), margin


def margin_of(table, axes):
    return np.asarray(table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in axes)))


@settings(max_examples=60)
@given(tables_and_margins())
def test_a_margin_of_a_basis_vector_vanishes_unless_its_set_lies_in_the_margin(drawn):
    table, margin = drawn
    for place in np.ndindex(table.shape):
        unit = np.zeros(table.shape, dtype=np.int64)
        unit[place] = 1
        inside = {axis for axis, bit in enumerate(place) if bit} <= set(margin)
        assert margin_of(basis.adjoint(unit), margin).any() == inside


@settings(max_examples=60)
@given(tables_and_margins())
def test_a_margin_is_the_sum_over_the_coefficients_of_its_subsets(drawn):
    table, margin = drawn
    coefficients = basis.contrasts(table)
    kept = np.zeros_like(coefficients)
    for axes in (s for k in range(len(margin) + 1) for s in combinations(margin, k)):
        place = tuple(int(axis in axes) for axis in range(table.ndim))
        kept[place] = coefficients[place]
    assert margin_of(basis.table_of(kept), margin).tolist() == margin_of(table, margin).tolist()


@settings(max_examples=30)
@given(tables_and_margins())
def test_the_fourier_vectors_are_orthonormal(drawn):
    table, _ = drawn
    units = np.eye(table.size, dtype=np.int64).reshape(-1, *table.shape)
    vectors = np.array([basis.adjoint(unit).reshape(-1) for unit in units]) / math.sqrt(table.size)
    assert set(np.abs(vectors).reshape(-1)) == {1 / math.sqrt(table.size)}
    assert vectors @ vectors.T == pytest.approx(np.eye(table.size), abs=1e-12)


def test_the_shift_of_corollary_1_fails_more_often_than_it_promises():
    assert published_failure(12, t=1) == pytest.approx(0.46, abs=0.005)
    assert published_failure(12, t=1) > math.exp(-1)


def test_the_exact_shift_is_less_than_half_of_the_published_one():
    t = -math.log(0.05)
    exact = nonnegative_shift(Fraction(1), 22, failure=0.05)
    assert exact / 22 == pytest.approx(1.375, abs=0.0005)
    assert published_shift(Fraction(1), 22, t=t) / 22 == pytest.approx(2.996, abs=0.0005)


def test_an_interior_solution_on_a_sparse_table_rounds_to_nothing_and_a_vertex_does_not():
    # Thirty people in 64 cells; wanted are the six margins of one attribute, without any noise.
    counts = np.zeros((2,) * 6)
    counts[0, 0, 0, 0, 0, 0] = counts[1, 1, 1, 1, 1, 1] = 15
    sets = ((), *((axis,) for axis in range(6)))
    linear_map = ContrastMap(counts.shape, sets)
    measured = linear_map.forward(counts)
    interior = linear_map.adjoint(measured) / counts.size
    assert (interior > 0).all()
    assert linear_map.forward(interior).tolist() == measured.tolist()
    assert not round_table(interior, method="nearest").any()

    vertex = solve_program(linear_map, measured)
    assert vertex.feasible
    assert vertex.vertex
    rounded = round_table(vertex.table, method="nearest")
    assert np.abs(rounded - vertex.table).sum() <= len(sets) / 2
    for axis in range(6):
        assert np.abs(margin_of(rounded, (axis,)) - margin_of(counts, (axis,))).sum() <= len(sets) / 2 + 1e-6
