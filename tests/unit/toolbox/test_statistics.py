import itertools
import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidColumn
from tabulary.noise import ExactSampler
from tabulary.toolbox import Bounds, count, mean, standard_deviation, standard_deviation_sensitivity, total
from tabulary.toolbox.statistics import variance_sensitivity
from tests.entropy import SeededEntropy
from tests.unit.toolbox.samplers import Given

ONE = tb.PureDP(1)
BOUNDS = [Bounds(0, 1), Bounds(0, 2), Bounds(-1, 2), Bounds("1/2", "3/2", unit="1/4")]
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace"])
every_bounds = pytest.mark.parametrize("bounds", BOUNDS, ids=str)


def _count(values, bounds, **options):
    return count(np.array(values) > float(bounds.low), **options)


STATISTICS = {"count": _count, "total": total, "mean": mean, "standard deviation": standard_deviation}
every_statistic = pytest.mark.parametrize("statistic", STATISTICS.values(), ids=STATISTICS.keys())


def _grid(bounds):
    return [float(k * bounds.unit) for k in range(bounds.lowest, bounds.highest + 1)]


def _neighbours(data, grid, near):
    """All that one person's records can make of some data."""
    for records in range(1, near.records + 1):
        for added in itertools.combinations_with_replacement(grid, records):
            if near.relation == "add-remove":
                yield (*data, *added)
            elif records <= len(data):
                yield (*data[:-records], *added)


@every_statistic
@every_bounds
@both_relations
@pytest.mark.parametrize("records", [1, 2])
def test_one_person_moves_what_is_measured_by_the_sensitivity_and_by_no_more(
    statistic, bounds, relation, records
):
    near = tb.Neighbours(relation, records)
    grid = _grid(bounds)

    def exact(data):
        noisy = statistic(data, bounds, privacy=ONE, neighbours=near, sampler=Given(0, 0, 0))
        return np.array(noisy.measured), noisy.noise.scale

    for n in (2, 4) if len(grid) <= 3 else (2, 3):
        largest = 0
        for data in itertools.product(grid, repeat=n):
            here, scale = exact(data)
            largest = max(
                largest,
                *(int(np.abs(here - exact(other)[0]).sum()) for other in _neighbours(data, grid, near)),
            )
        # A scale of Δ/1 is Δ.
        assert largest == scale


@given(st.integers(2, 400), st.integers(1, 6))
def test_the_sensitivity_of_a_variance_grows_with_the_number_of_records_and_never_exceeds_the_range(
    n, records
):
    bounds = Bounds(0, 3)
    found = variance_sensitivity(n, bounds, tb.Neighbours("replace", records))
    fewer = variance_sensitivity(n, bounds, tb.Neighbours("replace", 1))
    assert fewer == 9 * (n - 1)
    assert fewer <= found <= min(records * fewer, 9 * (n * n // 4))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_the_sensitivity_of_a_standard_deviation_is_exact(n):
    def largest(deviation):
        pairs = itertools.product(itertools.product((0, 0.5, 1), repeat=n), (0, 0.5, 1))
        return max(abs(deviation(data) - deviation((*data[:-1], other))) for data, other in pairs)

    assert largest(statistics.pstdev) == pytest.approx(standard_deviation_sensitivity(n), rel=1e-12)
    assert largest(statistics.pstdev) < 1 / math.sqrt(n)
    # What is quoted as an approximation is exact for the divisor n - 1.
    assert largest(statistics.stdev) == pytest.approx(1 / math.sqrt(n), rel=1e-12)


@pytest.mark.parametrize(("n", "known"), [(2, 0.5), (3, 1), (4, 0.5), (5, 1)])
def test_the_sensitivity_of_a_median_is_the_range_for_odd_numbers_and_half_of_it_for_even_ones(n, known):
    pairs = itertools.product(itertools.product((0, 0.5, 1), repeat=n), (0, 0.5, 1))
    assert known == max(
        abs(statistics.median(data) - statistics.median((*data[:-1], other))) for data, other in pairs
    )


@given(st.lists(st.integers(-30, 80), min_size=2, max_size=40), st.sampled_from(["add-remove", "replace"]))
def test_without_noise_every_statistic_is_the_one_of_the_records(data, relation):
    bounds = Bounds(-30, 80)
    options = {"privacy": ONE, "neighbours": relation}
    assert total(data, bounds, **options, sampler=Given(0)).value == sum(data)
    assert mean(data, bounds, **options, sampler=Given(0, 0)).value == pytest.approx(statistics.fmean(data))
    found = standard_deviation(data, bounds, **options, sampler=Given(0, 0, 0)).value
    assert found == pytest.approx(statistics.pstdev(data), abs=1e-6)


def test_a_large_sum_of_squares_is_measured_in_coarse_steps_and_still_right():
    bounds = Bounds(0, 1_000_000)
    data = np.arange(0, 1_000_001, 50)
    noisy = standard_deviation(data, bounds, privacy=ONE, neighbours="replace", sampler=Given(0))
    assert noisy.value == pytest.approx(np.std(data), rel=1e-9)
    assert 2**29 <= noisy.noise.scale <= 2**30
    low, high = noisy.interval()
    assert low < np.std(data) < high


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 1])
def test_a_mean_costs_no_more_where_the_number_of_records_is_confidential(share):
    n = 1000
    data = np.arange(n) < share * n
    errors = {
        relation: mean(
            data, Bounds(0, 1), privacy=ONE, neighbours=relation, sampler=Given(0, 0)
        ).standard_error
        for relation in ("add-remove", "replace")
    }
    assert errors["add-remove"] <= errors["replace"] * (1 + 1e-12)


@both_relations
@pytest.mark.parametrize("statistic", [mean, standard_deviation])
def test_the_stated_standard_error_is_the_one_that_is_seen(statistic, relation):
    data = [2, 3, 9, 4, 4, 7, 0, 5] * 60
    bounds = Bounds(0, 10)
    sampler = ExactSampler(SeededEntropy(5))
    exact = np.mean(data) if statistic is mean else np.std(data)
    noisy = [
        statistic(data, bounds, privacy=tb.PureDP(2), neighbours=relation, sampler=sampler)
        for _ in range(1500)
    ]
    seen = math.sqrt(np.mean([(each.value - exact) ** 2 for each in noisy]))
    stated = np.mean([each.standard_error for each in noisy])
    # A Laplace law's second moment varies by √(5/n): four deviations of its root.
    assert seen == pytest.approx(stated, rel=4 * math.sqrt(5 / 1500) / 2)


def _covered(statistic, data, bounds, noise, relation, draws, confidence, exact):
    """The exact probability of covering, over all draws that matter."""
    covered = 0.0
    values = np.arange(-draws, draws + 1)
    chances = noise.pmf(values)
    parts = 1 if relation == "replace" else 2 if statistic is mean else 3
    for picked in itertools.product(range(values.size), repeat=parts):
        noisy = statistic(
            data, bounds, privacy=tb.PureDP(2), neighbours=relation, sampler=Given(*values[list(picked)])
        )
        low, high = noisy.interval(confidence)
        if low - 1e-9 <= exact <= high + 1e-9:
            covered += float(np.prod(chances[list(picked)]))
    return covered


@pytest.mark.parametrize("data", [[0, 1, 1, 2], [2, 2], [0], [0, 2], [1, 1, 1, 1, 1, 2]], ids=str)
def test_intervals_of_a_mean_with_a_confidential_number_cover_for_any_number_of_records(data):
    bounds = Bounds(0, 2)
    noise = mean(data, bounds, privacy=tb.PureDP(2), sampler=Given(0, 0)).noise
    assert _covered(mean, data, bounds, noise, "add-remove", 14, 0.9, statistics.fmean(data)) >= 0.9


@pytest.mark.parametrize("data", [[0, 1, 1, 1], [1, 1], [0, 1]], ids=str)
def test_intervals_of_a_deviation_with_a_confidential_number_cover_for_any_number_of_records(data):
    bounds = Bounds(0, 1)
    noise = standard_deviation(data, bounds, privacy=tb.PureDP(2), sampler=Given(0, 0, 0)).noise
    deviation = statistics.pstdev(data)
    assert _covered(standard_deviation, data, bounds, noise, "add-remove", 6, 0.9, deviation) >= 0.9


@pytest.mark.parametrize("data", [[0, 1, 1, 2], [2, 2], [0, 2], [0, 0, 1, 0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("statistic", [mean, standard_deviation])
def test_intervals_cover_where_the_number_of_records_is_public(data, statistic):
    bounds = Bounds(0, 2)
    noise = statistic(data, bounds, privacy=tb.PureDP(2), neighbours="replace", sampler=Given(0)).noise
    exact = statistics.fmean(data) if statistic is mean else statistics.pstdev(data)
    reach = math.ceil(40 * noise.scale)
    assert _covered(statistic, data, bounds, noise, "replace", reach, 0.9, exact) >= 0.9


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=6),
    st.lists(st.integers(-200, 200), min_size=3, max_size=3),
)
def test_every_value_and_interval_is_possible_whatever_the_noise(data, draws):
    bounds = Bounds(0, 3)
    for relation in ("add-remove", "replace"):
        for statistic in (mean, standard_deviation):
            noisy = statistic(data, bounds, privacy=ONE, neighbours=relation, sampler=Given(*draws))
            low, high = noisy.interval(0.8)
            top = 3 if statistic is mean else 1.5
            assert 0 <= low <= high <= top
            assert noisy.standard_error >= 0
            if (statistic, relation) != (mean, "replace"):
                assert 0 <= noisy.value <= (3 if statistic is mean else math.inf)


def test_a_count_is_unbiased_and_its_interval_is_not_negative():
    low = count([False, True], privacy=ONE, sampler=Given(-7))
    assert low.value == -6
    assert low.interval() == (0, 0)


@pytest.mark.parametrize(
    "flags", [[0, 1], ["yes"], [True, None], [[True]], np.ma.masked_array([True], [True])]
)
def test_a_count_of_anything_but_truth_values_is_refused(flags):
    with pytest.raises(InvalidColumn, match="truth value"):
        count(flags, privacy=ONE)


def test_one_value_has_no_deviation_of_its_own():
    with pytest.raises(InvalidColumn, match="at least two values"):
        standard_deviation([3], Bounds(0, 5), privacy=ONE, neighbours="replace")


@every_statistic
def test_no_record_and_one_are_neighbours_and_both_are_measured(statistic):
    none, one = (statistic(values, Bounds(0, 1), privacy=ONE, sampler=Given(0, 0, 0)) for values in ([], [1]))
    changed = sum(abs(a - b) for a, b in zip(none.measured, one.measured, strict=True))
    assert changed <= none.noise.scale * ONE.epsilon
    low, high = none.interval()
    assert low <= high


@pytest.mark.parametrize(
    ("statistic", "says"), [(mean, "a mean needs"), (standard_deviation, "at least two values")]
)
def test_where_the_number_of_records_is_public_a_ratio_of_none_is_refused(statistic, says):
    with pytest.raises(InvalidColumn, match=says):
        statistic([], Bounds(0, 1), privacy=ONE, neighbours="replace")


@pytest.mark.parametrize("statistic", [total, mean, standard_deviation])
def test_bounds_that_are_not_declared_as_such_are_refused(statistic):
    with pytest.raises(InvalidArgument, match="Bounds"):
        statistic([1, 2], (0, 5), privacy=ONE)


def test_rounding_to_the_unit_is_part_of_the_mechanism():
    noisy = total([0.3, 0.3, 0.3], Bounds(0, 1, unit="1/2"), privacy=ONE, sampler=Given(0))
    assert noisy.value == 1.5
    assert noisy.measured == (3,)
    assert noisy.noise.scale == Fraction(2)
