"""Relaxed rows: their answers, the projection, and rounding to whole rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.confidential.tally import Tally
from tabulary.errors import MissingExtra
from tabulary.synth import relaxed
from tabulary.synth.queries import Queries
from tabulary.synth.relaxed import RelaxedRows, project
from tabulary.synth.rows import forbidden
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({"a": range(3), "b": range(2), "c": range(4)})
ZEROS = tb.Domain({"a": range(3), "b": range(2), "c": range(4)}, [{"a": 0, "b": 1}, {"b": 0, "c": [0, 3]}])
PAIRS = tb.Workload.k_way(DOMAIN, 2)


def of_codes(domain, codes):
    """Relaxed rows that are whole already."""
    rows = RelaxedRows.start(domain, len(codes), SeededEntropy(1))
    logits = np.full(rows.logits.shape, -80.0)
    firsts = np.cumsum(domain.shape) - domain.shape
    for place, first in enumerate(firsts):
        logits[np.arange(len(codes)), first + codes[:, place]] = 80.0
    return RelaxedRows(domain, logits)


def tables(domain, work, codes):
    counts = np.zeros(domain.shape, int)
    np.add.at(counts, tuple(codes.T), 1)
    return Queries.of(work).exact(Tally.from_table(tb.Table(domain, counts), work.margins))


def some_codes(seed, rows=60, domain=DOMAIN):
    return np.random.default_rng(seed).integers(0, domain.shape, (rows, len(domain.shape)))


@given(st.integers(0, 1000), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_whole_rows_answer_as_records_do(seed, order):
    codes = some_codes(seed)
    work = tb.Workload.all_up_to(DOMAIN, order)
    found = of_codes(DOMAIN, codes).answers(Queries.of(work))
    assert np.allclose(found * len(codes), tables(DOMAIN, work, codes), atol=1e-4)


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_answers_are_the_mean_product_of_shares(seed):
    """By the definition, attribute by attribute and row by row."""
    rows = RelaxedRows.start(DOMAIN, 5, SeededEntropy(seed))
    shares = np.split(rows.shares(), np.cumsum(DOMAIN.shape)[:-1], axis=1)
    wanted = np.mean([np.einsum("i,j,k->ijk", *(s[row] for s in shares)) for row in range(5)], axis=0)
    found = rows.answers(Queries.of(tb.Workload.k_way(DOMAIN, 3)))
    assert np.allclose(found, wanted.ravel(), atol=1e-6)


def test_answers_do_not_depend_on_how_they_are_batched(monkeypatch):
    rows = RelaxedRows.start(DOMAIN, 5, SeededEntropy(1))
    queries = Queries.of(tb.Workload.all_up_to(DOMAIN, 3))
    at_once = rows.answers(queries)
    monkeypatch.setattr(relaxed, "BATCH", 2)
    assert np.allclose(rows.answers(queries), at_once, atol=1e-7)


def test_shares_of_every_attribute_add_up_to_one():
    shares = RelaxedRows.start(DOMAIN, 7, SeededEntropy(1)).shares()
    assert np.allclose(np.add.reduceat(shares, [0, 3, 5], axis=1), 1.0)


@pytest.mark.parametrize("rows", [1, 5, 59, 60, 61, 1234])
def test_rows_that_are_whole_already_are_drawn_as_they_are(rows):
    codes = some_codes(3)
    made = of_codes(DOMAIN, codes).whole(rows, SeededEntropy(2))
    assert made.shape == (rows, 3)
    each = rows // 60
    found = np.unique(np.ravel_multi_index(tuple(made.T), DOMAIN.shape), return_counts=True)
    known, times = np.unique(np.ravel_multi_index(tuple(codes.T), DOMAIN.shape), return_counts=True)
    often = dict(zip(known.tolist(), times.tolist(), strict=True))
    for cell, count in zip(*found, strict=True):
        assert each * often[cell] <= count <= (each + 1) * often[cell]


def test_rounding_is_unbiased():
    rows = RelaxedRows(DOMAIN, 3 * RelaxedRows.start(DOMAIN, 20, SeededEntropy(4)).logits)
    queries = Queries.of(PAIRS)
    entropy = SeededEntropy(5)
    drawn = [tables(DOMAIN, PAIRS, rows.whole(50, entropy)) / 50 for _ in range(600)]
    errors = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    apart = (np.mean(drawn, axis=0) - rows.answers(queries)) / errors
    assert np.abs(apart).max() < 4.5


def test_tables_of_one_attribute_are_rounded_by_less_than_a_row_for_each_relaxed_one():
    """Draws from one relaxed row are spread evenly; independent ones would stray by the root of their number."""
    rows = RelaxedRows.start(DOMAIN, 1, SeededEntropy(4))
    made = rows.whole(10_000, SeededEntropy(5))
    singles = tb.Workload.k_way(DOMAIN, 1)
    apart = tables(DOMAIN, singles, made) - rows.answers(Queries.of(singles)) * 10_000
    assert np.abs(apart).max() < 1.1


@given(st.integers(0, 1000), st.floats(0, 200))
@settings(max_examples=40, deadline=None)
def test_structural_zeros_are_never_produced(seed, sharpness):
    """Even where a relaxed row is certain of an impossible combination."""
    rows = RelaxedRows(ZEROS, sharpness * RelaxedRows.start(ZEROS, 30, SeededEntropy(seed)).logits)
    assert not forbidden(ZEROS, rows.whole(200, SeededEntropy(seed + 1))).any()


def test_possible_combinations_keep_their_odds_beside_structural_zeros(monkeypatch):
    domain = tb.Domain({"a": range(2), "b": range(2)}, [{"a": 1, "b": 1}])
    rows = RelaxedRows(domain, np.log([[0.4, 0.6, 0.5, 0.5]] * 3))
    expected = np.array([0.2, 0.2, 0.3, 0.0]) / 0.7
    for laws in (1, 1 << 22):
        monkeypatch.setattr(relaxed, "LAWS", laws)
        made = rows.whole(30_000, SeededEntropy(1))
        found = np.bincount(np.ravel_multi_index(tuple(made.T), (2, 2)), minlength=4) / 30_000
        assert np.abs(found - expected).max() < 0.001


def test_the_projection_finds_rows_that_have_the_answers():
    pytest.importorskip("jax")
    wanted = tables(DOMAIN, PAIRS, some_codes(1, 500)) / 500
    queries = Queries.of(PAIRS)
    start = RelaxedRows.start(DOMAIN, 50, SeededEntropy(1))
    fitted = project(
        queries, np.arange(wanted.size), wanted, start, steps=400, entropy=SeededEntropy(2)
    ).answers(queries)
    before = np.abs(start.answers(queries) - wanted).max()
    assert np.abs(fitted - wanted).max() < 1e-3 < before / 10


def test_batches_find_what_all_queries_at_once_find(monkeypatch):
    pytest.importorskip("jax")
    wanted = tables(DOMAIN, PAIRS, some_codes(1, 500)) / 500
    queries = Queries.of(PAIRS)
    monkeypatch.setattr(relaxed, "BATCH", 2)
    assert len(queries.prefixes) > 2
    fitted = project(
        queries,
        np.arange(wanted.size),
        wanted,
        RelaxedRows.start(DOMAIN, 50, SeededEntropy(1)),
        steps=1000,
        entropy=SeededEntropy(2),
    )
    assert np.abs(fitted.answers(queries) - wanted).max() < 2e-3


def test_only_the_cells_that_were_answered_are_fitted():
    """One cell of each table is told; the rows take it on and are free in the others."""
    pytest.importorskip("jax")
    queries = Queries.of(PAIRS)
    cells = np.array([0, 8])
    start = RelaxedRows.start(DOMAIN, 50, SeededEntropy(1))
    fitted = project(queries, cells, np.array([0.9, 0.0]), start, steps=300, entropy=SeededEntropy(2))
    assert np.abs(fitted.answers(queries)[cells] - [0.9, 0.0]).max() < 1e-2


def test_impossible_cells_are_known_to_hold_nobody():
    """Nothing is measured, and the rows leave the impossible cells of the asked tables all the same."""
    pytest.importorskip("jax")
    work = tb.Workload.k_way(ZEROS, 2)
    queries = Queries.of(work)
    start = RelaxedRows.start(ZEROS, 50, SeededEntropy(1))
    fitted = project(
        queries, np.empty(0, int), np.empty(0), start, steps=300, entropy=SeededEntropy(2)
    ).answers(queries)
    assert start.answers(queries)[queries.impossible].max() > 0.05
    assert fitted[queries.impossible].max() < 1e-2


def test_the_projection_tells_how_far_it_is():
    pytest.importorskip("jax")
    told = []
    queries = Queries.of(PAIRS)
    start = RelaxedRows.start(DOMAIN, 5, SeededEntropy(1))
    project(
        queries,
        np.array([0]),
        np.array([0.5]),
        start,
        steps=120,
        entropy=SeededEntropy(2),
        progress=told.append,
    )
    assert told == [50, 100, 120]


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    with pytest.raises(MissingExtra, match=r"Nothing was measured.*tabulary\[synth\]"):
        relaxed.require_jax()
