import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidColumn
from tabulary.toolbox import Bounds, quantile
from tabulary.toolbox.quantile import rank_errors, rank_sensitivity
from tests.unit.toolbox.samplers import Captured, Given

ONE = tb.PureDP(1)
shares = st.sampled_from(["0", "1/10", "1/4", "1/2", "2/3", "0.99", "1"])


def _error(share, data, candidate):
    """How far share·n is from the ranks that a candidate takes, one value at a time."""
    below, through = sum(x < candidate for x in data), sum(x <= candidate for x in data)
    wanted = Fraction(share) * len(data)
    return max(Fraction(0), below - wanted, wanted - through)


@pytest.mark.parametrize("share", ["0", "1/3", "1/2", "0.9", "1"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("records", [1, 2])
def test_one_person_moves_a_rank_error_by_the_sensitivity_and_by_no_more(share, relation, records):
    grid, largest = range(3), Fraction(0)
    # Enough records for a rank to be moved as far as one person can.
    for data in itertools.chain.from_iterable(itertools.product(grid, repeat=n) for n in (2, 3, 4)):
        for other in itertools.product(grid, repeat=records):
            near = (*data, *other) if relation == "add-remove" else (*data[:-records], *other)
            moved = (abs(_error(share, data, c) - _error(share, near, c)) for c in grid)
            largest = max(largest, *moved)
    assert largest == rank_sensitivity(Fraction(share), tb.Neighbours(relation, records))


@given(st.lists(st.integers(-4, 12), min_size=1, max_size=12), shares)
def test_runs_of_candidates_have_the_rank_errors_of_every_candidate(data, share):
    bounds = Bounds(-4, 12)
    sampler = Captured()
    chosen = quantile(data, share, bounds, privacy=ONE, sampler=sampler)
    law = sampler.law
    listed = np.repeat(law.losses, law.sizes)
    errors = [_error(share, data, candidate) for candidate in range(-4, 13)]
    least = min(errors)
    found = [Fraction(int(loss), Fraction(share).denominator) for loss in listed]
    assert found == [error - least for error in errors]
    assert chosen.candidates == 17
    # ε·error/(2Δ).
    assert law.rate * Fraction(share).denominator == 1 / (
        2 * rank_sensitivity(Fraction(share), tb.Neighbours())
    )


@given(st.lists(st.integers(-4, 12), min_size=1, max_size=12), shares)
def test_listed_candidates_have_the_same_law_as_a_range(data, share):
    by_range, by_list = Captured(), Captured()
    quantile(data, share, Bounds(-4, 12), privacy=ONE, sampler=by_range)
    quantile(data, share, list(range(12, -5, -1)), privacy=ONE, sampler=by_list)
    assert np.repeat(by_range.law.losses, by_range.law.sizes).tolist() == list(by_list.law.losses)
    assert by_range.law.rate == by_list.law.rate


def test_a_number_that_was_drawn_is_the_candidate_at_that_place():
    assert quantile([2], "1/2", Bounds(1, 3, unit="1/4"), privacy=ONE, sampler=Given(3)).value == 1.75
    assert quantile([2], "1/2", [7, 5, Fraction(13, 2)], privacy=ONE, sampler=Given(1)).value == 6.5


def test_a_median_of_many_records_is_close_and_its_shortfall_is_in_ranks():
    data = np.arange(20_001)
    chosen = quantile(data, "1/2", Bounds(0, 1_000_000), privacy=ONE)
    # One run in 10⁹ is further off.
    assert abs(chosen.value - 10_000) <= chosen.shortfall(1 - 1e-9) + 1
    assert chosen.shortfall() < 20


def test_a_median_is_twice_as_good_where_records_are_added_and_not_replaced():
    errors = [
        quantile([1, 2, 3], "1/2", Bounds(0, 9), privacy=ONE, neighbours=relation).shortfall()
        for relation in ("add-remove", "replace")
    ]
    assert errors[1] == 2 * errors[0]


def test_rank_errors_are_whole_numbers_of_the_denominator():
    assert rank_errors(Fraction(1, 3), 4, np.array([0, 3]), np.array([1, 4])).tolist() == [1, 5]


@pytest.mark.parametrize("share", [-0.1, 1.1, "x", float("nan"), "1/1000003"])
def test_a_share_that_cannot_be_is_refused(share):
    with pytest.raises(InvalidArgument, match="share"):
        quantile([1], share, Bounds(0, 1), privacy=ONE)


@pytest.mark.parametrize(
    ("candidates", "says"),
    [
        ([], "no candidate"),
        ([1, 2, 1.0], "twice"),
        (["x"], "candidate"),
        ("123", "list of numbers"),
        (3, "list of numbers"),
    ],
)
def test_candidates_that_cannot_be_are_refused(candidates, says):
    with pytest.raises(InvalidArgument, match=says):
        quantile([1], "1/2", candidates, privacy=ONE)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([[1]], "a column of numbers"),
        ([float("nan")], "missing or not finite"),
        ([0.5, 99], "outside its bounds 0 to 1"),
    ],
)
def test_values_that_cannot_be_are_refused(values, reason):
    with pytest.raises(InvalidColumn, match=reason):
        quantile(values, "1/2", Bounds(0, 1), privacy=ONE)


@pytest.mark.parametrize("candidates", [Bounds(0, 3), [0, 1, 2, 3]])
def test_of_no_values_every_candidate_is_as_good_as_another(candidates):
    chosen = quantile([], "1/2", candidates, privacy=ONE)
    assert chosen.value in (0, 1, 2, 3)
