"""The linear program, beside scipy's, and the proof that comes with it."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from tabulary.errors import InvalidArgument, InvalidTable, NotCertified, TooManyCells
from tabulary.planning.queries import ContrastMap, LinearMap, MarginMap
from tabulary.reconstruct.lp import solve_program

every_solver = pytest.mark.parametrize("solver", ["simplex", "column-generation"])


def subsets(axes: int, order: int) -> tuple[tuple[int, ...], ...]:
    return tuple(s for size in range(order + 1) for s in combinations(range(axes), size))


def matrix(linear_map: LinearMap) -> np.ndarray:
    cells = int(np.prod(linear_map.shape))
    return np.stack([linear_map.forward(row.reshape(linear_map.shape)) for row in np.eye(cells)], axis=1)


def optimum(linear_map: LinearMap, measured, scales=None, impossible=None) -> float:
    """What scipy says of the program, written down with both sides of every absolute value."""
    rows = matrix(linear_map)
    scales = np.ones(linear_map.size) if scales is None else scales
    blocked = np.zeros(rows.shape[1], dtype=bool) if impossible is None else impossible.reshape(-1)
    found = linprog(
        np.append(np.zeros(rows.shape[1]), 1.0),
        A_ub=np.block([[rows, -scales[:, None]], [-rows, -scales[:, None]]]),
        b_ub=np.concatenate([measured, -measured]),
        bounds=[(0, 0 if x else None) for x in blocked] + [(0, None)],
        method="highs",
    )
    assert found.success
    return float(found.fun)


@st.composite
def programs(draw):
    """A map, noisy values of a sparse table, and perhaps scales and impossible cells."""
    shape = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=4)))
    order = draw(st.integers(1, len(shape)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["contrasts", "closed margins", "largest margins"]))
    if kind == "contrasts":
        linear_map: LinearMap = ContrastMap(shape, subsets(len(shape), order))
    elif kind == "closed margins":
        linear_map = MarginMap(shape, subsets(len(shape), order))
    else:
        linear_map = MarginMap(shape, tuple(combinations(range(len(shape)), order)))
    impossible = generator.random(shape) < 0.2 if draw(st.booleans()) else None
    table = generator.poisson(3.0 * (generator.random(shape) < 0.3)).astype(float)
    noise = draw(st.sampled_from([0.0, 1.0, 10.0]))
    measured = linear_map.forward(table) + np.round(generator.laplace(0, 1, linear_map.size) * noise)
    scales = generator.uniform(0.5, 4.0, linear_map.size) if draw(st.booleans()) else None
    return linear_map, measured, scales, impossible


@every_solver
@given(programs())
def test_the_optimum_is_that_of_scipy_and_lies_between_the_two_bounds(solver, program):
    linear_map, measured, scales, impossible = program
    found = solve_program(linear_map, measured, scales=scales, impossible=impossible, solver=solver, gap=1e-6)
    best = optimum(linear_map, measured, scales, impossible)
    slack = 1e-6 * max(1.0, np.abs(measured).max())
    assert found.lower_bound <= best + slack
    assert best <= found.b + slack
    assert found.b == pytest.approx(best, rel=2e-6, abs=slack)
    assert found.gap <= 1e-6


@every_solver
@settings(max_examples=50)
@given(programs())
def test_the_table_is_a_vertex_and_its_deviation_is_the_one_that_is_told(solver, program):
    linear_map, measured, scales, impossible = program
    found = solve_program(linear_map, measured, scales=scales, impossible=impossible, solver=solver)
    scales = np.ones(linear_map.size) if scales is None else scales
    assert (found.table >= 0).all()
    assert found.table.shape == linear_map.shape
    assert found.b == pytest.approx(
        np.abs((measured - linear_map.forward(found.table)) / scales).max(), abs=1e-9
    )
    assert found.vertex
    assert found.support == np.count_nonzero(found.table) <= linear_map.size
    if impossible is not None:
        assert (found.table[impossible] == 0.0).all()


@every_solver
@settings(max_examples=50)
@given(programs())
def test_rounding_a_vertex_moves_at_most_half_a_person_in_each_positive_cell(solver, program):
    linear_map, measured, scales, impossible = program
    found = solve_program(linear_map, measured, scales=scales, impossible=impossible, solver=solver)
    moved = np.abs(np.rint(found.table) - found.table).sum()
    assert moved <= found.support / 2 <= linear_map.size / 2


def test_an_interior_solution_of_a_sparse_table_rounds_to_nothing_and_a_vertex_does_not():
    shape = (2,) * 10
    linear_map = ContrastMap(shape, subsets(10, 1))
    total = 200.0
    measured = np.where(np.arange(linear_map.size) == 0, total, 0.0)
    interior = np.full(shape, total / 2**10)
    np.testing.assert_allclose(linear_map.forward(interior), measured, atol=1e-9)
    found = solve_program(linear_map, measured)
    assert found.feasible
    assert np.rint(interior).sum() == 0
    assert abs(np.rint(found.table).sum() - total) <= linear_map.size / 2


@every_solver
@pytest.mark.parametrize(
    "linear_map",
    [
        ContrastMap((2,) * 6, subsets(6, 2)),
        ContrastMap((3, 2, 4), subsets(3, 2)),
        MarginMap((3, 2, 4), ((0, 1), (1, 2))),
    ],
)
def test_exact_measurements_of_a_table_are_met_exactly(solver, linear_map):
    table = np.random.default_rng(1).poisson(2.0, linear_map.shape).astype(float)
    found = solve_program(linear_map, linear_map.forward(table), solver=solver)
    assert found.feasible
    assert found.b <= 1e-7 * np.abs(linear_map.forward(table)).max()
    assert found.gap == 0.0


@every_solver
def test_measurements_that_no_table_has_are_proved_to_be_so(solver):
    # Ten people of whom fourteen more are in the second level than in the first.
    found = solve_program(ContrastMap((2, 2), ((), (0,), (1,))), [10, 4, -14], solver=solver)
    assert not found.feasible
    assert found.b == pytest.approx(2.0)
    assert found.lower_bound == pytest.approx(2.0)


@every_solver
def test_contrasts_without_the_total_can_always_be_met(solver):
    # A constant added to every cell changes none of them.
    linear_map = ContrastMap((2, 3, 2), tuple(s for s in subsets(3, 2) if s))
    measured = np.random.default_rng(2).normal(0, 50, linear_map.size)
    assert solve_program(linear_map, measured, solver=solver).feasible


def test_a_map_of_any_other_kind_is_asked_cell_by_cell():
    @dataclass(frozen=True)
    class Doubled(LinearMap):
        """Twice the margins of another map."""

        inner: MarginMap

        @property
        def size(self):
            return self.inner.size

        def forward(self, table):
            return 2 * self.inner.forward(table)

        def adjoint(self, values):
            return 2 * self.inner.adjoint(values)

    inner = MarginMap((3, 3), ((0,), (1,)))
    measured = np.array([4.0, -2.0, 6.0, 1.0, 1.0, 9.0])
    found = solve_program(Doubled(inner.shape, inner), measured, solver="column-generation", gap=1e-6)
    assert found.b == pytest.approx(optimum(Doubled(inner.shape, inner), measured), rel=1e-6)


def hard(seed: int = 0) -> tuple[ContrastMap, np.ndarray]:
    """People whose ten attributes lean on one trait: b is above zero, and one round is too few."""
    linear_map = ContrastMap((2,) * 10, subsets(10, 2))
    generator = np.random.default_rng(seed)
    likely = generator.uniform(0.05, 0.5, 10)
    people = generator.random((1000, 10)) < 2 * likely * generator.random((1000, 1))
    table = np.zeros(linear_map.shape)
    np.add.at(table, tuple(people.T.astype(int)), 1.0)
    return linear_map, linear_map.forward(table) + np.round(generator.laplace(0, 14, linear_map.size))


@pytest.mark.parametrize("seed", [0, 1, 13])
def test_cells_added_in_rounds_reach_the_optimum_on_every_cell(seed):
    linear_map, measured = hard(seed)
    every, needed = (solve_program(linear_map, measured, solver=s, gap=1e-8) for s in ("simplex", "auto"))
    assert (every.solver, needed.solver) == ("simplex", "column-generation")
    assert every.rounds == 1 < needed.rounds
    assert every.b > 1.0
    assert needed.b == pytest.approx(every.b, rel=1e-7)


@pytest.mark.parametrize("seed", [0, 1, 13])
def test_the_bounds_hold_on_both_sides_when_a_loose_gap_ends_the_search_early(seed):
    linear_map, measured = hard(seed)
    best = solve_program(linear_map, measured, gap=1e-8).b
    loose = solve_program(linear_map, measured, gap=0.999)
    assert loose.lower_bound <= best * (1 + 1e-8)
    assert best <= loose.b * (1 + 1e-8)
    assert loose.vertex


def test_a_gap_that_is_not_certified_in_the_rounds_allowed_is_refused():
    linear_map, measured = hard()
    assert solve_program(linear_map, measured).rounds > 1
    with pytest.raises(NotCertified, match=r"1 rounds were not enough.*No table was made"):
        solve_program(linear_map, measured, rounds=1)


def test_a_gap_that_is_not_certified_in_the_time_allowed_is_refused():
    linear_map, measured = hard()
    with pytest.raises(NotCertified, match=r"time was not enough.*No table was made"):
        solve_program(linear_map, measured, seconds=1e-6)


def test_a_program_that_no_memory_holds_is_refused_by_arithmetic():
    with pytest.raises(NotCertified, match=r"would begin with 90,000,000,000 entries.*No table was made"):
        solve_program(MarginMap((1_000, 300), ((0, 1),)), np.ones(300_000))


def test_progress_is_told_after_every_round_but_the_last():
    told = []
    linear_map, measured = hard()
    found = solve_program(linear_map, measured, rounds=50, progress=lambda *at: told.append(at))
    assert told == [("linear program", done, 50) for done in range(1, found.rounds)]


def test_nothing_measured_above_zero_gives_the_empty_table():
    linear_map = MarginMap((2, 2), ((0,), (1,)))
    found = solve_program(linear_map, np.zeros(4))
    assert found.feasible
    assert found.support == 0
    below = solve_program(linear_map, [-1.0, -2.0, -3.0, -1.0])
    assert below.support == 0
    assert below.b == below.lower_bound == pytest.approx(3.0)


@every_solver
@pytest.mark.parametrize("linear_map", [ContrastMap((), ((),)), MarginMap((), ((),))])
def test_a_table_of_no_attributes_holds_its_total(solver, linear_map):
    assert solve_program(linear_map, [7.0], solver=solver).table == pytest.approx(7.0)


def test_a_table_without_a_possible_cell_is_empty():
    found = solve_program(MarginMap((2,), ((0,),)), [1.0, 5.0], impossible=np.ones(2, dtype=bool))
    assert (found.support, found.b, found.lower_bound, found.feasible) == (0, 5.0, 5.0, False)


def test_the_table_cannot_be_written_to():
    found = solve_program(MarginMap((2,), ((0,),)), [1.0, 5.0])
    with pytest.raises(ValueError, match="read-only"):
        found.table[0] = 1.0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"measured": [1.0]}, InvalidTable, "measures 2 values"),
        ({"measured": [1.0, np.nan]}, InvalidTable, "finite"),
        ({"scales": [1.0, 0.0]}, InvalidTable, "above 0"),
        ({"scales": [1.0]}, InvalidTable, "scales of shape"),
        ({"impossible": np.zeros(3, dtype=bool)}, InvalidTable, "booleans"),
        ({"impossible": np.zeros(2)}, InvalidTable, "booleans"),
        ({"solver": "magic"}, InvalidArgument, "unknown solver 'magic'"),
        ({"gap": 0.0}, InvalidArgument, "gap between 0 and 1"),
        ({"rounds": 0}, InvalidArgument, "rounds"),
        ({"seconds": float("nan")}, InvalidArgument, "seconds"),
    ],
)
def test_what_cannot_be_a_program_is_refused(options, error, words):
    arguments = {"measured": [1.0, 5.0], **options}
    with pytest.raises(error, match=words):
        solve_program(MarginMap((2,), ((0,),)), arguments.pop("measured"), **arguments)


def test_the_simplex_method_on_every_cell_has_a_limit():
    linear_map = ContrastMap((2,) * 17, subsets(17, 2))
    with pytest.raises(TooManyCells, match="Use solver='auto'"):
        solve_program(linear_map, np.ones(linear_map.size), solver="simplex")
