"""Proportional fitting reaches margins and keeps odds ratios; tables that are scaled together come to agree."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabulary.core.domain import Domain
from tabulary.reconstruct.proportional import Agreement, Projections, fit, held_table, shared_margins


def onto(table, axes):
    return table.sum(axis=tuple(i for i in range(table.ndim) if i not in axes))


def odds_ratios(table):
    return table[:-1, :-1] * table[1:, 1:] / (table[:-1, 1:] * table[1:, :-1])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 2**32))
def test_places_add_up_to_margins(shape, seed):
    table = np.random.default_rng(seed).random(shape)
    projections = Projections()
    for order in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), order):
            expected = onto(table, axes)
            places = projections.onto(tuple(shape), axes)
            found = np.bincount(places, table.reshape(-1), expected.size)
            assert found == pytest.approx(expected.reshape(-1))


def test_places_are_kept_for_tables_of_equal_shape():
    projections = Projections()
    assert projections.onto((2, 3), (0,)) is projections.onto((2, 3), (0,))


@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 2**32))
def test_a_fitted_table_has_the_margins_and_the_odds_ratios_of_what_went_in(rows, columns, seed):
    generator = np.random.default_rng(seed)
    start, other = generator.random((2, rows, columns)) + 0.1
    targets = [other.sum(axis=1), other.sum(axis=0)]
    found = fit(start, Projections().without_one(start.shape), targets, sweeps=500, tolerance=1e-12)
    assert found.sum(axis=1) == pytest.approx(targets[0])
    assert found.sum(axis=0) == pytest.approx(targets[1])
    assert odds_ratios(found) == pytest.approx(odds_ratios(start))


def test_three_attributes_are_fitted_to_their_pairs_without_a_new_interaction():
    generator = np.random.default_rng(3)
    truth = generator.random((2, 2, 2)) + 0.1
    places = Projections().without_one(truth.shape)
    targets = [onto(truth, kept) for kept in itertools.combinations(range(3), 2)]
    found = fit(np.ones((2, 2, 2)), places, targets, sweeps=2_000, tolerance=1e-12)
    for kept, target in zip(itertools.combinations(range(3), 2), targets, strict=True):
        assert onto(found, kept) == pytest.approx(target)
    assert odds_ratios(found[0]) == pytest.approx(odds_ratios(found[1]))


def test_zeros_stay_zeros_and_an_empty_target_empties_its_cells():
    start = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    targets = [np.array([4.0, 6.0]), np.array([3.0, 7.0, 0.0])]
    found = fit(start, Projections().without_one((2, 3)), targets, sweeps=100, tolerance=1e-12)
    assert found == pytest.approx(np.array([[0.0, 4.0, 0.0], [3.0, 3.0, 0.0]]))


def test_what_goes_in_is_left_alone():
    start = np.ones((2, 2))
    fit(start, Projections().without_one((2, 2)), [np.ones(2), np.ones(2)], sweeps=3, tolerance=0.0)
    assert (start == 1).all()


def test_numbers_that_are_all_but_zero_do_no_harm():
    start = np.array([[1e-310, 1e-310], [1.0, 1.0]])
    found = fit(start, Projections().without_one((2, 2)), [np.full(2, 1e9)] * 2, sweeps=50, tolerance=0.0)
    assert np.isfinite(found).all()


def test_contradicting_targets_leave_the_last_one_reached():
    found = fit(
        np.ones((2, 2)),
        Projections().without_one((2, 2)),
        [np.full(2, 5.0), np.full(2, 7.0)],
        sweeps=9,
        tolerance=0.0,
    )
    # The first row of places keeps the first axis.
    assert found.sum(axis=0) == pytest.approx(np.full(2, 7.0))


margins_of_four = st.lists(
    st.sampled_from([m for k in range(1, 5) for m in itertools.combinations("abcd", k)]),
    min_size=1,
    max_size=6,
    unique=True,
)


def implied(shared, margins, one, other):
    """Whether tables that agree on the shared margins agree on all that two of them have in common."""
    common = {a for a in one if a in other}
    linked = {one}
    while True:
        more = {
            m
            for m in margins
            for known in linked
            if any(common <= set(s) <= set(m) & set(known) for s in shared)
        } - linked
        if not more:
            return other in linked
        linked |= more


@given(margins_of_four)
def test_agreeing_on_the_shared_margins_is_agreeing_on_everything(margins):
    shared = shared_margins(margins)
    for one, other in itertools.combinations(margins, 2):
        assert implied(shared, margins, one, other)


@given(margins_of_four)
def test_a_shared_margin_is_all_that_its_tables_have_in_common(margins):
    for s in shared_margins(margins):
        holders = [set(m) for m in margins if set(s) <= set(m)]
        assert len(holders) > 1
        assert set.intersection(*holders) == set(s)


def test_one_table_shares_nothing():
    assert shared_margins([("a", "b")]) == set()


def test_thousands_of_margins_are_compared_at_once():
    names = [f"{i:02d}" for i in range(40)]
    margins = list(itertools.combinations(names, 3))
    shared = shared_margins(margins)
    assert len(shared) == 1 + 40 + 40 * 39 / 2


def agreed(domain, tables, *, sweeps=2_000, total=None):
    margins = tuple(tables)
    total = total or float(tables[margins[0]].sum())
    found, left = Agreement(domain, margins, Projections()).reached(
        tables, total=total, sweeps=sweeps, tolerance=1e-11 * (1 + total)
    )
    return found, left, total


def largest_difference(found):
    return max(
        np.abs(
            here.sum(axis=tuple(i for i, a in enumerate(one) if a not in other))
            - there.sum(axis=tuple(i for i, a in enumerate(other) if a not in one))
        ).max()
        for one, here in found.items()
        for other, there in found.items()
    )


@given(margins_of_four, st.integers(0, 2**32), st.sampled_from([1.0, 1e3, 1e9]))
@settings(max_examples=60)
def test_tables_come_to_agree_and_keep_their_total(margins, seed, size):
    domain = Domain(dict(zip("abcd", (range(2), range(3), range(1), range(4)), strict=True)))
    margins = [m for m in margins if not any(set(m) < set(other) for other in margins)]
    generator = np.random.default_rng(seed)
    tables = {m: size * (generator.random(domain.shape_of(m)) + 0.05) for m in margins}
    found, left, total = agreed(domain, tables)
    assert left <= 1e-11 * (1 + total)
    assert largest_difference(found) <= 1e-10 * (1 + total)
    for table in found.values():
        assert table.sum() == pytest.approx(total)
        assert (table > 0).all()


def test_agreement_keeps_zeros_and_interactions():
    domain = Domain({"a": range(2), "b": range(2), "c": range(2)})
    tables = {("a", "b"): np.array([[3.0, 1.0], [2.0, 0.0]]), ("b", "c"): np.array([[1.0, 2.0], [5.0, 1.0]])}
    found, _, _ = agreed(domain, tables)
    assert found["a", "b"][1, 1] == 0
    assert odds_ratios(found["b", "c"]) == pytest.approx(odds_ratios(tables["b", "c"]))


def test_tables_that_agree_are_left_as_they_are():
    domain = Domain({"a": range(2), "b": range(3), "c": range(2)})
    truth = np.random.default_rng(0).random((2, 3, 2))
    tables = {("a", "b"): truth.sum(axis=2), ("b", "c"): truth.sum(axis=0), ("a", "c"): truth.sum(axis=1)}
    found, left, _ = agreed(domain, tables)
    assert left < 1e-12
    for margin, table in tables.items():
        assert found[margin] == pytest.approx(table)


def test_what_one_table_rules_out_goes_from_all():
    domain = Domain({"a": range(2), "b": range(2), "c": range(2)})
    tables = {("a", "b"): np.array([[4.0, 4.0], [0.0, 0.0]]), ("a", "c"): np.ones((2, 2))}
    found, _, total = agreed(domain, tables)
    assert not found["a", "c"][1].any()
    assert found["a", "c"].sum() == pytest.approx(total)


def test_tables_with_nothing_in_common_are_said_not_to_agree():
    domain = Domain({"a": range(2), "b": range(2), "c": range(2)})
    tables = {("a", "b"): np.array([[4.0, 4.0], [0.0, 0.0]]), ("a", "c"): np.array([[0.0, 0.0], [4.0, 4.0]])}
    assert agreed(domain, tables)[1] == np.inf


def test_the_total_that_is_asked_for_is_reached():
    domain = Domain({"a": range(3)})
    found, left, _ = agreed(domain, {("a",): np.array([1.0, 2.0, 3.0])}, total=12.0)
    assert found["a",] == pytest.approx([2, 4, 6])
    assert left == 0


def test_a_table_is_found_in_the_first_that_holds_it():
    tables = {("a", "b"): np.array([[1.0, 2.0], [3.0, 4.0]]), ("b", "c"): np.ones((2, 2))}
    assert held_table(tables, ("b",)).tolist() == [4, 6]
    assert held_table(tables, ("a", "b")) is tables["a", "b"]
    assert held_table(tables, ()) == 10
    assert held_table({m: t.astype(np.int64) for m, t in tables.items()}, ("c",)).dtype == np.int64
