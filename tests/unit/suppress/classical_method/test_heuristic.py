import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.errors import CannotProtect
from tabulary.suppress.classical_method.deviation_routes import NetworkRoutes, ProgramRoutes, routes_of
from tabulary.suppress.classical_method.heuristic import heuristic, unprotectable
from tabulary.suppress.classical_method.linear_attacker import unmet
from tabulary.suppress.classical_method.rules import ProtectionLevels
from tabulary.suppress.classical_method.suppression_problem import SuppressionProblem
from tests.suppression_problems import cheapest_cost, problems, protects

every_way = pytest.mark.parametrize("ways", [NetworkRoutes, ProgramRoutes])


@every_way
@settings(deadline=None, max_examples=50)
@given(problem=problems(), guided=st.booleans())
def test_the_heuristic_protects_and_is_never_cheaper_than_the_cheapest(ways, problem, guided):
    routes = ways(problem)
    expected = cheapest_cost(problem)
    if expected is None:
        assert unprotectable(problem, routes)
        with pytest.raises(CannotProtect, match="cannot be protected by the cells that may be suppressed"):
            heuristic(problem, routes)
        return
    assert not unprotectable(problem, routes)
    guide = np.random.default_rng(0).random(problem.shape) if guided else None
    pattern = heuristic(problem, routes, guide=guide)
    assert protects(problem, pattern)
    assert problem.price(pattern) >= expected - 1e-9
    assert not (pattern & problem.kept).any()
    assert (pattern >= problem.primary).all()


@settings(deadline=None, max_examples=50)
@given(problems(shapes=((2, 2, 2), (2, 2, 3), (2, 3, 2))))
def test_tables_of_three_attributes_are_protected_too(problem):
    routes = routes_of(problem)
    assert isinstance(routes, ProgramRoutes)
    if unprotectable(problem, routes):
        assert cheapest_cost(problem) is None
        return
    pattern = heuristic(problem, routes)
    assert protects(problem, pattern)
    assert problem.price(pattern) >= cheapest_cost(problem) - 1e-9


@settings(deadline=None, max_examples=40)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_flows_and_programs_reach_equally_far(problem, seed):
    generator = np.random.default_rng(seed)
    pattern = generator.random(problem.shape) < 0.6
    cell = int(generator.integers(problem.rise.size))
    for up in (True, False):
        far = [
            ways(problem).reach(pattern, cell, up=up, level=5.0)[0] for ways in (NetworkRoutes, ProgramRoutes)
        ]
        assert far[0] == pytest.approx(far[1], abs=1e-6)


@every_way
def test_a_way_goes_through_cells_that_let_the_cell_deviate_without_others(ways):
    shape = (4, 4)
    generator = np.random.default_rng(3)
    problem = SuppressionProblem(
        np.full(shape, np.inf),
        generator.integers(1, 9, shape).astype(float),
        np.ones(shape),
        np.zeros(shape, bool),
        np.zeros(shape, bool),
        ProtectionLevels().stretched(shape),
    )
    routes = ways(problem)
    for up in (True, False):
        reached, cells = routes.cheapest(np.ones(shape), 5, up=up, level=6.0)
        assert reached == pytest.approx(6.0)
        pattern = np.zeros(shape, bool)
        pattern.reshape(-1)[cells] = True
        assert routes.reach(pattern, 5, up=up, level=6.0)[0] == pytest.approx(6.0)


@pytest.mark.parametrize("shape", [(20, 20), (4, 4, 5)])
def test_on_larger_tables_the_attackers_program_confirms_every_cell(shape):
    generator = np.random.default_rng(8)
    values = generator.integers(1, 300, shape).astype(float)
    primary = generator.random(shape) < 0.06
    width = np.where(primary, np.ceil(values / 5), 0)
    problem = SuppressionProblem(
        np.full(shape, np.inf),
        values,
        values,
        primary,
        np.zeros(shape, bool),
        ProtectionLevels(np.zeros(shape), width, 2 * width),
    )
    told = []
    pattern = heuristic(problem, routes_of(problem), progress=lambda *what: told.append(what[0]))
    assert not unmet(problem, pattern)
    assert set(told) == {"suppressing cells", "publishing cells again", "replacing cells"}
    # Nothing of it is superfluous.
    for cell in np.argwhere(pattern & ~primary)[:5]:
        without = pattern.copy()
        without[tuple(cell)] = False
        assert unmet(problem, without)
