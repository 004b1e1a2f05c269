"""The split of a budget that makes a weighted error small."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidWorkload
from tabulary.perturb.budget_split import split_budget
from tabulary.perturb.tables import Tables

PEOPLE = tb.Domain({"sex": "FM", "age": range(8), "job": range(5), "region": range(20)})
LIST = "[sex age job][age region][region][sex]"

weights = st.lists(st.fractions(min_value=Fraction(1, 100), max_value=10_000), min_size=1, max_size=6)
rates = st.fractions(min_value=Fraction(1, 1000), max_value=30)


def error(weights, shares, rate):
    """Σ weight · variance, with the exact variance of discrete Laplace noise."""
    return sum(
        float(w) / (2 * math.sinh(float(share * rate) / 2) ** 2)
        for w, share in zip(weights, shares, strict=True)
    )


@settings(max_examples=40, deadline=None)
@given(weights, rates)
def test_the_shares_never_exceed_the_budget_and_leave_next_to_nothing(weights, rate):
    shares = split_budget(weights, rate)
    assert all(share > 0 for share in shares)
    assert 1 - Fraction(len(weights), 100_000) <= sum(shares) <= 1


@settings(max_examples=40, deadline=None)
@given(weights, rates, st.data())
def test_no_other_split_has_a_smaller_error(weights, rate, data):
    parts = data.draw(st.lists(st.integers(1, 1000), min_size=len(weights), max_size=len(weights)))
    other = [Fraction(part, sum(parts)) for part in parts]
    # Six digits of the shares cost a little, at most as much as they lose of the budget.
    assert error(weights, split_budget(weights, rate), rate) <= error(weights, other, rate) * (
        1 + 3e-5 * (1 + float(rate))
    )


@settings(max_examples=30, deadline=None)
@given(weights, rates, st.data())
def test_moving_a_little_budget_from_one_table_to_another_gains_nothing(weights, rate, data):
    shares = split_budget(weights, rate)
    one, other = (data.draw(st.sampled_from(range(len(weights)))) for _ in range(2))
    moved = list(shares)
    step = min(shares[one], shares[other]) / 20
    moved[one], moved[other] = moved[one] - step, moved[other] + step
    if one != other:
        assert error(weights, moved, rate) > error(weights, shares, rate)


def test_where_noise_is_wide_the_budget_goes_by_cube_roots():
    shares = split_budget([Fraction(1), Fraction(8), Fraction(27)], Fraction(1, 100))
    assert [float(share) for share in shares] == pytest.approx([1 / 6, 2 / 6, 3 / 6], rel=1e-4)


def test_an_allocated_list_costs_at_most_its_budget_and_has_the_least_weighted_error():
    importance = {("sex",): 100, ("age", "region"): "1/2"}
    work = tb.Workload.parse(LIST, PEOPLE).weighted(importance)
    tables = Tables.allocated(PEOPLE, LIST, epsilon="1/2", importance=importance)
    assert tables.workload == work
    assert Fraction(49999, 100000) < tables.epsilon <= Fraction(1, 2)
    assert tables.expected_rmse() < Tables(PEOPLE, work, epsilon="1/2").expected_rmse()
    cells = {m: PEOPLE.cells(m) for m in work}
    cubes = {m: (float(w) * cells[m]) ** (1 / 3) for m, w in zip(work.margins, work.weights, strict=True)}
    for margin, epsilon in tables.epsilons.items():
        assert float(epsilon) == pytest.approx(0.5 * cubes[margin] / sum(cubes.values()), rel=0.01)


def test_the_weighted_error_is_that_of_all_cells_each_table_by_its_importance():
    tables = Tables.allocated(PEOPLE, "[sex][region]", epsilon=1, importance={"sex": 3})
    variances = {m: tables.standard_deviation(m) ** 2 for m in tables.margins}
    expected = (3 * 2 * variances["sex",] + 20 * variances["region",]) / (3 * 2 + 20)
    assert tables.expected_rmse() ** 2 == pytest.approx(expected)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("sensitivity", [1, 30])
def test_an_allocated_list_is_better_than_an_equal_split_in_every_relation(relation, sensitivity):
    asked = {"epsilon": 1, "neighbours": relation, "sensitivity": sensitivity}
    allocated, equal = Tables.allocated(PEOPLE, LIST, **asked), Tables(PEOPLE, LIST, **asked)
    assert allocated.epsilon <= equal.epsilon == 1
    assert allocated.expected_rmse() < equal.expected_rmse()


def test_what_people_who_never_differ_everywhere_save_is_spent():
    tied = tb.Domain(dict.fromkeys("abc", "xy"), [{x: "y", z: "y"} for x, z in ("ab", "ac", "bc")])
    tables = Tables.allocated(tied, "[a][b][c]", epsilon=1, neighbours="replace")
    assert Fraction(99999, 100000) < tables.epsilon <= 1
    assert float(tables.epsilons["a",]) == pytest.approx(1 / 2, rel=1e-4)


def test_impossible_cells_are_not_reckoned_with():
    zeros = tb.Domain({"a": range(4), "b": range(4)}, [{"a": [1, 2, 3], "b": [1, 2, 3]}])
    tables = Tables.allocated(zeros, "[a b][a]", epsilon="1/10")
    # Seven possible cells beside four.
    assert float(tables.epsilons["a", "b"] / tables.epsilons["a",]) == pytest.approx(
        (7 / 4) ** (1 / 3), rel=1e-3
    )


def test_an_importance_of_a_table_that_is_not_in_the_list_is_refused():
    with pytest.raises(InvalidWorkload, match=r"there is a weight for \[age\], which is not in the workload"):
        Tables.allocated(PEOPLE, "[sex]", epsilon=1, importance={"age": 2})
