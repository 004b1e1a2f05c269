from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tabulary.suppress.classical_method.cutting_planes import capacity_cuts, cheapest_pattern
from tabulary.suppress.classical_method.deviation_routes import routes_of
from tabulary.suppress.classical_method.heuristic import unprotectable
from tabulary.suppress.classical_method.linear_attacker import unmet
from tabulary.suppress.classical_method.rules import ProtectionLevels
from tabulary.suppress.classical_method.suppression_problem import SuppressionProblem
from tests.oracles.smallest_pattern import smallest_pattern
from tests.suppression_problems import cheapest_cost, problems, protects


def random_problem(shape, share, seed, *, level=0.15):
    generator = np.random.default_rng(seed)
    values = generator.integers(6, 500, shape).astype(float)
    primary = generator.random(shape) < share
    required = np.where(primary, np.ceil(level * values), 0)
    nothing = np.zeros(shape, dtype=bool)
    return SuppressionProblem(
        np.full(shape, np.inf), values, values, primary, nothing, ProtectionLevels(required, required)
    )


@settings(deadline=None, max_examples=80)
@given(problems())
def test_the_cheapest_pattern_costs_what_the_cheapest_of_all_patterns_costs(problem):
    routes = routes_of(problem)
    expected = cheapest_cost(problem)
    if expected is None:
        assert unprotectable(problem, routes)
        return
    assert not unprotectable(problem, routes)
    found = cheapest_pattern(problem, routes)
    assert found.optimal
    assert found.cost == pytest.approx(expected)
    assert found.lower_bound == found.cost
    assert protects(problem, found.pattern)
    assert not (found.pattern & problem.kept).any()
    assert (found.pattern >= problem.primary).all()


@settings(deadline=None, max_examples=40)
@given(problems(), st.integers(0, 2**12))
def test_a_cut_holds_for_every_pattern_that_protects(problem, number):
    pattern = (number >> np.arange(problem.rise.size) & 1).astype(bool).reshape(
        problem.shape
    ) | problem.primary
    assume(protects(problem, pattern))
    generator = np.random.default_rng(number)
    for target in problem.targets:
        share = np.where(problem.primary, 1.0, generator.random(problem.shape))
        for weights, least in capacity_cuts(problem, share, target):
            assert float((weights * pattern).sum()) >= least - 1e-9
            # And it is of use: the solution it was found for violates it.
            assert float((weights * share).sum()) < least


@settings(deadline=None, max_examples=50)
@given(problems())
def test_no_cut_is_found_for_a_pattern_that_protects_and_one_is_for_any_other(problem):
    for pattern in (problem.primary, ~problem.kept | problem.primary):
        share = pattern.astype(float)
        violated = any(list(capacity_cuts(problem, share, target)) for target in problem.targets)
        assert violated != protects(problem, pattern)


@settings(deadline=None, max_examples=40)
@given(problems())
def test_the_attackers_program_finds_unmet_what_looking_at_all_deviations_does(problem):
    for pattern in (problem.primary, ~problem.kept | problem.primary):
        assert bool(unmet(problem, pattern)) != protects(problem, pattern)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**20))
def test_against_exact_disclosure_of_large_counts_it_finds_the_smallest_pattern(seed):
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(2, 7, 2))
    primary = generator.random(shape) < generator.uniform(0, 0.5)
    assume(primary.any())
    values = np.full(shape, 9.0)
    problem = SuppressionProblem(
        np.full(shape, np.inf),
        values,
        np.ones(shape),
        primary,
        np.zeros(shape, bool),
        ProtectionLevels(width=np.where(primary, 1, 0)),
    )
    assert cheapest_pattern(problem, routes_of(problem)).cost == smallest_pattern(shape, primary)


@pytest.mark.parametrize("seed", range(3))
def test_a_larger_table_is_solved_with_branches_and_confirmed_by_the_attacker(seed):
    problem = random_problem((12, 12), 0.06, seed)
    found = cheapest_pattern(problem, routes_of(problem))
    assert found.optimal
    assert found.cost == problem.price(found.pattern)
    assert not unmet(problem, found.pattern)


def test_when_the_time_is_up_the_best_pattern_comes_with_its_gap():
    problem = random_problem((30, 30), 0.03, 1)
    found = cheapest_pattern(problem, routes_of(problem), time_limit=1e-9)
    assert not found.optimal
    assert problem.price(problem.primary) <= found.lower_bound < found.cost
    assert not unmet(problem, found.pattern)


def test_a_cell_that_is_of_no_use_is_published_even_if_it_costs_nothing():
    problem = random_problem((5, 5), 0.1, 4)
    free = replace(problem, cost=np.zeros(problem.shape))
    found = cheapest_pattern(free, routes_of(free))
    secondary = np.argwhere(found.pattern & ~problem.primary)
    for cell in secondary:
        without = found.pattern.copy()
        without[tuple(cell)] = False
        assert unmet(free, without)


def test_progress_is_told():
    told = []
    problem = random_problem((12, 12), 0.06, 0)
    cheapest_pattern(problem, routes_of(problem), progress=lambda *what: told.append(what))
    assert all(what == "searching for the cheapest pattern" for what, _, _ in told)


def test_a_small_amount_among_huge_ones_is_not_taken_for_protected():
    values = np.full((3, 3), 4e10)
    values[0, 0] = 40.0
    primary = values < 100
    problem = SuppressionProblem(
        np.full((3, 3), np.inf),
        values,
        np.ones((3, 3)),
        primary,
        np.zeros((3, 3), bool),
        ProtectionLevels(np.where(primary, 8.0, 0), np.where(primary, 8.0, 0)),
    )
    alone = primary.copy()
    alone[0, 1] = alone[2, 1] = True
    assert unmet(problem, primary) == unmet(problem, alone) == [0]
    found = cheapest_pattern(problem, routes_of(problem))
    assert found.cost == 4
    assert not unmet(problem, found.pattern)
