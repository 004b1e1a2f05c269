"""Rows that reproduce the tables of a release."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import TooManyCells
from tabulary.synth import from_release, utility
from tabulary.synth.particles import particles
from tests.entropy import SeededEntropy
from tests.releases import release_of

DOMAIN = tb.Domain({"a": range(3), "b": range(4), "c": range(2), "d": range(5)})
PAIRS = tb.Workload.k_way(DOMAIN, 2)


def released(domain, work, counts):
    """A release without noise, of the margins of one table."""
    plan = tb.plan(domain, work, privacy=tb.ZCDP(1), mechanism="residual", reconstruct="shrink")
    table = tb.Table(domain, counts)
    return release_of(plan, {m: table.project(m).counts for m in plan.workload.margins})


def a_table(seed, domain=DOMAIN, people=20_000):
    draw = np.random.default_rng(seed)
    shares = draw.dirichlet(np.full(domain.size, 0.3)).reshape(domain.shape)
    return draw.multinomial(people, shares.ravel()).reshape(domain.shape)


@pytest.mark.parametrize("seed", range(3))
def test_rows_have_the_pairs_that_were_released(seed):
    release = released(DOMAIN, PAIRS, a_table(seed))
    rows = from_release(release, entropy=SeededEntropy(seed))
    assert len(rows) == 20_000
    fit = utility(rows, release)
    assert fit.mean(2) < 0.004
    assert max(one.distance for one in fit.fits) < 0.01


def test_raking_brings_pairs_that_the_tree_does_not_hold():
    """A triangle: the tree holds two of three strong pairs, and independent draws of the third would show."""
    domain = tb.Domain({"x": range(2), "y": range(2), "z": range(2)})
    counts = np.zeros((2, 2, 2), int)
    counts[0, 0, 0] = counts[1, 1, 1] = 3_000
    counts[0, 1, 1] = counts[1, 0, 0] = counts[0, 0, 1] = counts[1, 1, 0] = 700
    release = released(domain, "[x y][y z][x z]", counts)
    tables = {m: np.asarray(release[m].counts, float) for m in release.margins}
    drawn = particles(domain, tables, 100_000, entropy=SeededEntropy(1), sweeps=1)
    raked = particles(domain, tables, 100_000, entropy=SeededEntropy(1), sweeps=30)
    assert drawn.fitted > 0.03
    assert raked.fitted < drawn.fitted / 3


def test_rows_are_as_many_as_asked_for():
    release = released(DOMAIN, PAIRS, a_table(1))
    for rows in (1, 17, 100_000):
        assert len(from_release(release, rows, entropy=SeededEntropy(2))) == rows


def test_the_same_entropy_gives_the_same_rows_and_other_entropy_others():
    release = released(DOMAIN, PAIRS, a_table(1))
    first, again, other = (
        from_release(release, 500, entropy=SeededEntropy(seed)).codes for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_rows_never_stand_in_impossible_cells(seed):
    """The zeros tie three attributes together, and no released table shows all three."""
    domain = tb.Domain(
        {"a": range(2), "b": range(3), "c": range(2)}, structural_zeros=[{"a": 1, "b": [1, 2], "c": 1}]
    )
    counts = a_table(seed, domain, 1_000)
    counts[1, 1:, 1] = 0
    rows = from_release(released(domain, "[a b][b c]", counts), 2_000, entropy=SeededEntropy(seed))
    codes = rows.codes
    assert not ((codes[:, 0] == 1) & (codes[:, 1] > 0) & (codes[:, 2] == 1)).any()


def test_tables_on_three_attributes_are_reproduced_too():
    release = released(DOMAIN, "[a b c][c d]", a_table(4))
    fit = utility(from_release(release, entropy=SeededEntropy(4)), release)
    assert fit.mean(3) < 0.003


def test_attributes_of_no_table_are_left_out():
    release = released(DOMAIN, "[a b]", a_table(5))
    assert from_release(release, 10, entropy=SeededEntropy(5)).domain.attributes == ("a", "b")


def test_tables_that_share_nothing_are_drawn_independently():
    release = released(DOMAIN, "[a b][c d]", a_table(6))
    rows = from_release(release, 50_000, entropy=SeededEntropy(6))
    assert utility(rows, release).mean(2) < 0.003
    both = rows.table("a", "c").counts / 50_000
    apart = np.outer(both.sum(axis=1), both.sum(axis=0))
    assert np.abs(both - apart).sum() < 0.03


def test_whole_rows_are_unbiased():
    """The mean over many roundings to few rows is the table; one rounding is not."""
    counts = a_table(7)
    release = released(DOMAIN, "[a b]", counts)
    wanted = counts.sum(axis=(2, 3)) / counts.sum()
    tables = {m: np.asarray(release[m].counts, float) for m in release.margins}
    domain = DOMAIN.project(["a", "b"])
    held = particles(domain, tables, 50_000, entropy=SeededEntropy(7))
    entropy = SeededEntropy(8)
    found = np.zeros((3, 4))
    for _ in range(600):
        codes = held.whole(7, entropy)
        np.add.at(found, tuple(codes.T), 1 / (7 * 600))
    # Systematic sampling: each cell's share is within one row of its own, so its variance is below that of seven draws.
    assert np.abs(found - wanted).max() < 5 * np.sqrt(0.25 / 7 / 600)


def test_rows_follow_from_estimates_that_are_negative_or_contradict_each_other():
    plan = tb.plan(DOMAIN, "[a b][b c]", privacy=tb.ZCDP(1), mechanism="margins", reconstruct="none")
    fine = {("a", "b"): np.full((3, 4), 2), ("b", "c"): np.full((4, 2), 3)}
    negative = {**fine, ("a", "b"): np.array([[-1, 4, 2, 1]] + [[3, 1, 2, 2]] * 2)}
    twisted = {**fine, ("b", "c"): np.array([[6, 6], [2, 2], [2, 2], [2, 2]])}
    heavier = {**fine, ("b", "c"): np.full((4, 2), 4)}
    for noisy in (fine, negative, twisted, heavier):
        release = release_of(plan, noisy)
        rows = from_release(release)
        # As many rows as the official face of the same measurements counts people.
        assert len(rows) == release.rebuild()[()].counts


def test_more_rows_than_memory_are_refused():
    with pytest.raises(TooManyCells, match="rows of 2 attributes take about"):
        from_release(released(DOMAIN, "[a b]", a_table(1)), 10**12)
