"""What the least-squares table promises, checked against a dense solver."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from tabulary.errors import InvalidArgument, InvalidTable
from tabulary.planning.queries import ContrastMap, LinearMap, MarginMap
from tabulary.reconstruct.least_squares import solve_least_squares

SHAPES = [(2,), (3, 2), (2, 2, 2), (4, 3, 2), (2, 2, 2, 2, 2)]


@dataclass(frozen=True)
class PlainMap(LinearMap):
    """A map that nothing is known of but its two directions."""

    inner: LinearMap

    @property
    def size(self):
        return self.inner.size

    def forward(self, table):
        return self.inner.forward(table)

    def adjoint(self, values):
        return self.inner.adjoint(values)


def matrix_of(linear):
    units = np.eye(int(np.prod(linear.shape))).reshape(-1, *linear.shape)
    return np.stack([linear.forward(unit) for unit in units], axis=1)


@st.composite
def problems(draw):
    shape = draw(st.sampled_from(SHAPES))
    order = draw(st.integers(1, min(2, len(shape))))
    sets = tuple(s for k in range(order + 1) for s in itertools.combinations(range(len(shape)), k))
    linear = draw(
        st.sampled_from([ContrastMap(shape, sets), MarginMap(shape, sets), MarginMap(shape, sets[-1:])])
    )
    values = st.integers(-40, 60).map(float)
    measured = np.array(draw(st.lists(values, min_size=linear.size, max_size=linear.size)))
    spread = st.sampled_from([0.25, 1.0, 9.0, 100.0])
    variances = np.array(draw(st.lists(spread, min_size=linear.size, max_size=linear.size)))
    cells = int(np.prod(shape))
    impossible = np.array(draw(st.lists(st.booleans(), min_size=cells, max_size=cells)))
    # At least one cell stays possible.
    impossible[draw(st.integers(0, cells - 1))] = False
    return linear, measured, variances, impossible.reshape(shape)


def best_by_brute_force(linear, measured, variances, impossible):
    weights = 1 / np.sqrt(variances)
    columns = (matrix_of(linear) * weights[:, None])[:, ~impossible.reshape(-1)]
    table, distance = nnls(columns, measured * weights)
    return columns @ table, distance**2


@settings(max_examples=150)
@given(problems())
def test_the_table_fits_as_well_as_that_of_a_dense_solver(problem):
    linear, measured, variances, impossible = problem
    found = solve_least_squares(linear, measured, variances=variances, impossible=impossible)
    fitted, objective = best_by_brute_force(*problem)
    assert found.objective == pytest.approx(objective, rel=2e-6, abs=2e-6)
    distance = np.linalg.norm(linear.forward(found.table) / np.sqrt(variances) - fitted)
    assert distance <= np.sqrt(found.gap) + 1e-5


@settings(max_examples=150)
@given(problems())
def test_no_table_is_better_than_the_certificate_allows(problem):
    linear, measured, variances, impossible = problem
    found = solve_least_squares(linear, measured, variances=variances, impossible=impossible, tolerance=1e-2)
    _, objective = best_by_brute_force(*problem)
    residual = (measured - linear.forward(found.table)) / np.sqrt(variances)
    assert found.objective == pytest.approx(residual @ residual, rel=1e-9, abs=1e-9)
    assert found.objective - found.gap <= objective * (1 + 1e-9) + 1e-9
    assert found.gap <= 1e-2 * max(1, found.objective)


@settings(max_examples=60)
@given(problems())
def test_the_table_is_non_negative_and_empty_where_it_must_be(problem):
    linear, measured, variances, impossible = problem
    table = solve_least_squares(linear, measured, variances=variances, impossible=impossible).table
    assert table.shape == linear.shape
    assert (table >= 0).all()
    assert not table[impossible].any()
    assert not table.flags.writeable


@settings(max_examples=25)
@given(problems())
def test_a_map_that_only_goes_forward_and_back_gives_the_same_fit(problem):
    linear, measured, variances, _ = problem
    known = solve_least_squares(linear, measured, variances=variances)
    plain = solve_least_squares(PlainMap(linear.shape, linear), measured, variances=variances)
    assert plain.objective == pytest.approx(known.objective, rel=3e-6, abs=3e-6)


def test_what_a_table_would_show_without_noise_is_found_again():
    counts = np.arange(1.0, 25.0).reshape(4, 3, 2)
    linear = ContrastMap(counts.shape, ((), (0,), (1,), (2,), (0, 1), (1, 2)))
    found = solve_least_squares(linear, linear.forward(counts))
    assert found.objective < 1e-6
    assert found.table.sum(axis=2) == pytest.approx(counts.sum(axis=2), abs=1e-2)


def test_a_sparse_table_with_much_noise_is_certified():
    generator = np.random.default_rng(7)
    shape = (2,) * 10
    linear = ContrastMap(shape, tuple(s for k in range(4) for s in itertools.combinations(range(10), k)))
    counts = generator.multinomial(300, generator.dirichlet(np.full(1024, 0.02))).reshape(shape)
    noisy = linear.forward(counts.astype(float)) + np.rint(generator.laplace(0, 60, linear.size))
    seen = []
    found = solve_least_squares(
        linear, noisy, variances=np.full(linear.size, 7200.0), progress=lambda *state: seen.append(state)
    )
    assert found.gap <= 1e-6 * max(1, found.objective)
    assert [done for _, done, _ in seen] == list(range(1, len(seen) + 1))


@pytest.mark.slow
def test_contrasts_of_many_levels_are_certified():
    generator = np.random.default_rng(3)
    shape = (12, 9, 3)
    linear = ContrastMap(shape, ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)))
    counts = generator.poisson(30, shape).astype(float)
    found = solve_least_squares(linear, linear.forward(counts) + generator.integers(-5, 6, linear.size))
    assert found.objective < 1e-5


def test_values_that_ask_for_less_than_nothing_get_an_empty_table():
    found = solve_least_squares(MarginMap((2, 2), ((0,),)), np.array([-3.0, -4.0]))
    assert not found.table.any()
    assert found.objective == pytest.approx(25)


def test_a_table_without_a_possible_cell_stays_empty():
    nowhere = np.ones((2, 2), dtype=bool)
    found = solve_least_squares(MarginMap((2, 2), ((0,),)), np.array([3.0, 4.0]), impossible=nowhere)
    assert not found.table.any()
    assert found.objective == pytest.approx(25)


def test_a_measurement_that_bounds_no_cell_is_refused():
    with pytest.raises(InvalidArgument, match="Measure the total"):
        solve_least_squares(ContrastMap((2, 2), ((0,),)), np.array([1.0]))


def test_a_tolerance_beyond_double_precision_gives_the_best_table_and_says_what_is_proved():
    linear = MarginMap((2, 2), ((0,), (1,)))
    found = solve_least_squares(linear, np.array([1e9, 2e9, 1.5e9, 1.5e9]), tolerance=1e-12)
    assert found.gap > 1e-12
    assert linear.forward(found.table) == pytest.approx([1e9, 2e9, 1.5e9, 1.5e9], abs=1e-3)


@pytest.mark.parametrize(
    ("measured", "options", "reason"),
    [
        (np.zeros(3), {}, r"\(3,\) measured values"),
        (np.array([np.nan, 0.0]), {}, "must be finite numbers"),
        (np.zeros(2), {"variances": np.array([1.0, 0.0])}, "variances finite and positive"),
        (np.zeros(2), {"variances": np.ones(3)}, r"\(3,\) variances do not fit"),
        (np.zeros(2), {"impossible": np.zeros(3, dtype=bool)}, "the mask of impossible cells has shape"),
    ],
)
def test_values_that_do_not_fit_the_map_are_refused(measured, options, reason):
    with pytest.raises(InvalidTable, match=reason):
        solve_least_squares(MarginMap((2, 2), ((0,),)), measured, **options)


def test_a_tolerance_of_zero_is_refused():
    with pytest.raises(InvalidArgument, match="tolerance"):
        solve_least_squares(MarginMap((2,), ((0,),)), np.zeros(2), tolerance=0)
