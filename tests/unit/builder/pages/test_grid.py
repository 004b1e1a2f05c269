"""The numbers of a shown table: totals and shares, each with an error of its own."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.builder.api.answers import answer_to
from tabulary.builder.pages.choices import Choices, Show
from tabulary.builder.pages.grid import Grid, smaller_tables
from tabulary.cellkey import CellKeyTable
from tabulary.core.domain import Domain
from tabulary.core.table import Table
from tabulary.errors import TableRefused
from tabulary.infer import interval
from tabulary.noise import DiscreteGaussian, DiscreteLaplace
from tabulary.planning import CellErrors
from tabulary.release import ReleasedTable
from tests.builders import DOMAIN, service

SHARES = [Show.row_percent, Show.column_percent, Show.total_percent]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """The datasets of a builder; `shrunk` is a census whose tables were made non-negative."""
    linear = service(tmp_path_factory.mktemp("linear"), rho="1/50", question="1/500")
    shrunk = service(tmp_path_factory.mktemp("shrunk"), rho="1/50", only=["census"], reconstruct="shrink")
    yield {**linear.datasets, "shrunk": shrunk.datasets["census"], "ledger": linear.ledger}
    linear.close()
    shrunk.close()


def asked(dataset, chosen):
    """Return the table that was chosen."""
    question = chosen.question(DOMAIN)
    return answer_to(dataset, question, "bob").table


def grid_of(dataset, chosen):
    """Return the grid of the table that was chosen."""
    return Grid.of(asked(dataset, chosen), chosen, smaller=smaller_tables(dataset.answers, chosen))


def lines(grid):
    """Return the numbers and widths of the totals of rows, of columns and of all."""
    return (
        (grid.values[:-1, -1], grid.widths[:-1, -1]),
        (grid.values[-1, :-1], grid.widths[-1, :-1]),
        (grid.values[-1, -1], grid.widths[-1, -1]),
    )


TABLES = [
    Choices(rows=("sex",), columns=("age",)),
    Choices(rows=("age", "sex"), columns=("region",)),
    Choices(rows=("region",), columns=("age",), where=(("sex", "F"),)),
    Choices(rows=("age",)),
    Choices(columns=("region",)),
]


@pytest.mark.parametrize("name", ["census", "shrunk"])
@pytest.mark.parametrize("chosen", TABLES, ids=lambda chosen: chosen.url("x"))
def test_a_total_is_the_number_and_the_error_of_the_smaller_table(opened, name, chosen):
    grid = grid_of(opened[name], chosen)
    for by, (values, widths) in zip((chosen.rows, chosen.columns, ()), lines(grid), strict=True):
        cut = replace(chosen, rows=by, columns=())
        own = asked(opened[name], cut)
        np.testing.assert_allclose(values, own.counts.reshape(np.shape(values)), rtol=0, atol=1e-6)
        np.testing.assert_allclose(widths, own.half_widths().reshape(np.shape(values)), rtol=1e-6)


@pytest.mark.parametrize("chosen", TABLES, ids=lambda chosen: chosen.url("x"))
def test_a_total_that_is_a_sum_agrees_with_the_smaller_table(opened, chosen):
    alone, own = Grid.of(asked(opened["census"], chosen), chosen), grid_of(opened["census"], chosen)
    np.testing.assert_allclose(alone.values, own.values, rtol=0, atol=1e-6)
    # Exact for whole noise, where a table states a normal width.
    np.testing.assert_allclose(alone.widths, own.widths, rtol=0.03)


@pytest.mark.parametrize("chosen", TABLES, ids=lambda chosen: chosen.url("x"))
def test_what_is_shown_of_a_reconstructed_table_adds_up_to_its_totals(opened, chosen):
    grid = grid_of(opened["shrunk"], chosen)
    np.testing.assert_allclose(grid.values[:, :-1].sum(axis=1), grid.values[:, -1], atol=1e-6)
    np.testing.assert_allclose(grid.values[:-1].sum(axis=0), grid.values[-1], atol=1e-6)


def test_totals_of_a_paid_table_ask_no_new_question(opened):
    chosen = Choices(rows=("sex",), columns=("age",))
    table = asked(opened["survey"], chosen)
    before = len(opened["ledger"].account("survey").entries())
    assert smaller_tables(opened["survey"].answers, chosen) is None
    grid = Grid.of(table, chosen)
    assert len(opened["ledger"].account("survey").entries()) == before
    women = interval(table, {"sex": "F"})
    assert (grid.values[0, -1], grid.widths[0, -1]) == (women.estimate, women.upper - women.estimate)
    assert grid.widths[-1, -1] > grid.widths[0, -1] > grid.widths[0, 0]


KEPT = Choices(
    rows=("region",),
    columns=("sex", "age"),
    keep=(("region", ("North", "South: east")), ("age", ("0-14", "65+"))),
)


@pytest.mark.parametrize("name", ["census", "survey"])
def test_a_total_of_some_levels_has_the_error_of_their_sum(opened, name):
    table = asked(opened[name], KEPT)
    grid = grid_of(opened[name], KEPT)
    for number, region in enumerate(KEPT.keep[0][1]):
        told = interval(table, {"region": region})
        assert grid.widths[number, -1] == pytest.approx(told.upper - told.estimate, rel=0.01)
    for number, (sex, age) in enumerate(product("FM", KEPT.keep[1][1])):
        told = interval(table, {"sex": sex, "age": age})
        assert grid.widths[-1, number] == pytest.approx(told.upper - told.estimate, rel=0.01)
    everyone = interval(table, {})
    assert grid.widths[-1, -1] == pytest.approx(everyone.upper - everyone.estimate, rel=0.01)
    assert not grid.bounded


def test_the_error_of_some_levels_of_a_reconstructed_table_is_bounded(opened):
    chosen = Choices(rows=("region",), columns=("age",), keep=(("age", ("0-14", "65+")),))
    table = asked(opened["shrunk"], chosen)
    grid = grid_of(opened["shrunk"], chosen)
    assert grid.bounded
    np.testing.assert_allclose(grid.widths[:-1, -1], table.half_widths().sum(axis=1))
    # A column holds all regions, so its total is a table.
    by_age = asked(opened["shrunk"], Choices(rows=("age",), keep=chosen.keep))
    np.testing.assert_allclose(grid.widths[-1, :-1], by_age.half_widths())
    assert grid.widths[-1, -1] == pytest.approx(by_age.half_widths().sum())


@pytest.mark.parametrize("show", SHARES)
@pytest.mark.parametrize("name", ["census", "survey"])
@pytest.mark.parametrize("chosen", [TABLES[0], KEPT, TABLES[2]], ids=["two", "kept", "filtered"])
def test_the_interval_of_a_share_is_that_of_inference(opened, name, show, chosen):
    table = asked(opened[name], chosen)
    grid = grid_of(opened[name], replace(chosen, show=show))
    for (i, row), (j, column) in product(
        *(enumerate(_levels(table, side)) for side in (chosen.rows, chosen.columns))
    ):
        per = {Show.row_percent: row, Show.column_percent: column, Show.total_percent: {}}[show]
        told = interval(table, {**row, **column}, per=per)
        found = [100 * end for end in (told.estimate, told.lower, told.upper)]
        shown = [max(0.0, float(part[i, j])) for part in (grid.values, grid.lower, grid.upper)]
        # The widths of whole noise are whole; those of inference are normal here.
        assert shown == pytest.approx(found, rel=0.01, abs=0.08 * (found[2] - found[1]))


def test_shares_with_heavy_tails_are_those_of_inference_within_a_few_per_cent():
    domain = Domain({"a": "xyz", "b": "pqr"})
    counts = [[400, 210, 95], [333, 71, 512], [48, 260, 120]]
    table = ReleasedTable(
        Table(domain, counts), CellErrors(DiscreteLaplace(12), np.ones((3, 3), dtype=np.int64))
    )
    grid = Grid.of(table, Choices(rows=("a",), columns=("b",), show=Show.row_percent))
    for (i, a), (j, b) in product(enumerate("xyz"), enumerate("pqr")):
        told = interval(table, {"a": a, "b": b}, per={"a": a})
        assert grid.upper[i, j] - grid.lower[i, j] == pytest.approx(100 * (told.upper - told.lower), rel=0.06)


def _levels(table, attributes):
    return [
        dict(zip(attributes, codes, strict=True))
        for codes in product(*map(table.domain.levels_of, attributes))
    ]


def shares_of_noisy_rows(truth, sigma, seed, rows=4_000):
    """Return the shares of rows that all have the same truth and noise of their own."""
    drawn = np.random.default_rng(seed).normal(0, sigma, (rows, len(truth)))
    cells = np.array(truth) + drawn
    values = np.column_stack([cells, cells.sum(axis=1)])
    widths = np.full(values.shape, 1.96 * sigma)
    widths[:, -1] *= np.sqrt(len(truth))
    parts = np.tile([1] * len(truth) + [len(truth)], (rows, 1))
    return Grid.about(values, widths, parts, alike=True).shares(Show.row_percent)


def coverage(grid, truth, stretch=1.0):
    """Return how many of the first shares of rows lie in intervals that are made so much longer."""
    lower, upper = (grid.values + stretch * (end - grid.values) for end in (grid.lower, grid.upper))
    return np.mean((lower[:, 0] <= truth) & (truth <= upper[:, 0]))


@pytest.mark.parametrize("truth", [(300, 50, 50), (20, 200, 180, 100), (60, 60)])
def test_intervals_of_shares_hold_the_truth_19_times_out_of_20_and_shorter_ones_do_not(truth):
    grid = shares_of_noisy_rows(truth, sigma=10, seed=7)
    share = 100 * truth[0] / sum(truth)
    assert 0.937 < coverage(grid, share) < 0.963
    assert coverage(grid, share, stretch=0.85) < 0.937


half_widths = st.floats(0.5, 40)


@given(
    counts=st.tuples(st.floats(0, 500), st.floats(100, 500)),
    widths=st.tuples(half_widths, half_widths),
    correlation=st.floats(-1, 1),
)
def test_a_share_whose_covariance_is_not_known_is_at_least_as_wide_as_with_any(counts, widths, correlation):
    values = np.array([[counts[0], counts[1], sum(counts)]])
    h_t, h_b = widths
    told = Grid.about(values, np.array([[h_t, h_t, h_b]]), np.array([[1, 1, 2]])).shares(Show.row_percent)
    if np.isnan(told.values[0, 0]):
        return
    ratio = values[0, 0] / values[0, -1]
    for end in (told.lower[0, 0] / 100, told.upper[0, 0] / 100):
        # What is beyond this end would be contradicted with this covariance too.
        width = np.sqrt(max(0.0, h_t**2 - 2 * end * correlation * h_t * h_b + (end * h_b) ** 2))
        if end >= 0:
            assert abs(values[0, 0] - end * values[0, -1]) >= width * (1 - 1e-6) - 1e-6
    assert told.lower[0, 0] <= 100 * ratio <= told.upper[0, 0]


def test_nothing_is_a_share_of_what_may_be_nobody():
    domain = Domain({"a": "xy", "b": "pq"})
    table = ReleasedTable(
        Table(domain, [[3, -2], [900, 400]]),
        CellErrors(DiscreteGaussian(100), np.ones((2, 2), dtype=np.int64)),
    )
    grid = Grid.of(table, Choices(rows=("a",), columns=("b",), show=Show.row_percent))
    assert np.isnan(grid.values[0]).all()
    assert not np.isnan(grid.values[1:]).any()


def test_the_whole_is_all_of_itself_without_an_error(opened):
    for name in ("census", "survey", "shrunk"):
        grid = grid_of(opened[name], Choices(rows=("sex",), columns=("age",), show=Show.row_percent))
        assert grid.values[:, -1].tolist() == [100.0] * 3
        assert grid.widths[:, -1].tolist() == [0.0] * 3
        assert not grid.doubt[:, -1].any()


def test_impossible_cells_are_no_part_of_any_sum():
    domain = Domain({"a": "xyz", "b": "pq"}, [{"a": "x", "b": "p"}, {"a": "z"}])
    possible = ~domain.impossible(("a", "b"))
    table = ReleasedTable(
        Table(domain, [[0, 40], [50, 60], [0, 0]]),
        CellErrors(DiscreteGaussian(25), possible.astype(np.int64)),
    )
    grid = Grid.of(table, Choices(rows=("a",), columns=("b",)))
    assert grid.parts.tolist() == [[0, 1, 1], [1, 1, 2], [0, 0, 0], [1, 2, 3]]
    assert grid.widths[0, -1] == table.half_widths()[0, 1]
    assert grid.widths[1, -1] == interval(table, {"a": "y"}).upper - 110
    assert grid.widths[2, -1] == 0


def test_with_cell_keys_a_total_is_perturbed_by_itself_and_has_no_error(opened):
    old = opened["old"]
    grid = grid_of(old, Choices(rows=("sex", "age"), columns=("region",)))
    own = asked(old, Choices(rows=("sex", "age")))
    assert grid.values[:-1, -1].tolist() == own.counts.reshape(-1).tolist()
    assert np.isnan(grid.widths).all()
    assert np.isnan(grid.values[0, 0]), "withheld"
    assert (grid.values[:-1, :-1].sum(axis=1) != grid.values[:-1, -1]).any(), "not a sum"
    assert not grid.doubt.any()


def test_a_total_that_a_rule_refuses_is_the_sum_of_what_is_shown(opened):
    class Refusing:
        method = opened["old"].answers.method
        domain = DOMAIN

        def answer(self, margin):
            raise TableRefused("too sparse")

    domain = Domain({"sex": ["F", "M"], "age": ["0-14", "15-64", "65+"]})
    table = CellKeyTable(domain, np.ma.MaskedArray([[1, 2, 3], [4, 5, 6]], [[0, 0, 0], [0, 0, 1]]), {})
    chosen = Choices(rows=("sex",), columns=("age",))
    grid = Grid.of(table, chosen, smaller=smaller_tables(Refusing(), chosen))
    assert grid.values[0, -1] == 6
    assert np.isnan(grid.values[1, -1]), "a sum with a withheld part is withheld"


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_shares_of_a_row_add_up_to_all_of_it(seed):
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(1, 5, 2).tolist())
    domain = Domain({"a": "pqrs"[: shape[0]], "b": "wxyz"[: shape[1]]})
    counts = random.integers(50, 1000, shape)
    table = ReleasedTable(
        Table(domain, counts), CellErrors(DiscreteGaussian(4), np.ones(shape, dtype=np.int64))
    )
    grid = Grid.of(table, Choices(rows=("a",), columns=("b",), show=Show.row_percent))
    np.testing.assert_allclose(grid.values[:, :-1].sum(axis=1), 100)


def test_a_count_whose_interval_reaches_zero_or_lies_below_it_is_in_doubt():
    counts = np.array([[-26.0, -3.0, 20.0, 22.0]])
    grid = Grid.about(counts, np.full((1, 4), 21.0), np.ones((1, 4), dtype=np.int64))
    assert grid.doubt.tolist() == [[True, True, True, False]]
