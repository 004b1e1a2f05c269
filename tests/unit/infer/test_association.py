"""Cramér's V, odds ratios and rates of tables with and without noise."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidDomain, InvalidTable
from tabulary.infer.association import chi_squared, cramers_v, odds_ratio, rate
from tabulary.infer.intervals import interval
from tabulary.infer.table_noise import CorrelatedNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler
from tabulary.planning import StatedErrors
from tests.entropy import SeededEntropy

SMALL = DiscreteLaplace("1/20")
"""Noise that is zero but for one draw in hundreds of millions."""


def table_of(counts):
    counts = np.asarray(counts)
    return tb.Table(tb.Domain({name: range(n) for name, n in zip("ab", counts.shape, strict=True)}), counts)


def noisy_versions(table, noise, repetitions, seed=1):
    drawn = ExactSampler(SeededEntropy(seed)).draw(noise, (repetitions, *table.shape))
    return [tb.Table(table.domain, table.counts + errors) for errors in drawn]


CENSUS = tb.datasets.load("uk-census")
DENSE = table_of([[300, 120, 80], [90, 260, 150], [110, 140, 250]])


# Cramér's V.


def test_the_census_has_the_association_of_its_page():
    assert chi_squared(CENSUS) == pytest.approx(3839.05, abs=0.005)
    assert cramers_v(CENSUS) == pytest.approx(0.25763, abs=5e-6)


@given(arrays(np.int64, st.tuples(st.integers(2, 6), st.integers(2, 6)), elements=st.integers(1, 500)))
def test_of_an_exact_table_it_is_the_statistic_of_another_implementation(counts):
    expected = scipy.stats.chi2_contingency(counts, correction=False).statistic
    assert chi_squared(table_of(counts)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    association = scipy.stats.contingency.association(counts, method="cramer")
    assert cramers_v(table_of(counts)) == pytest.approx(association, rel=1e-9, abs=1e-6)


@given(arrays(np.int64, st.tuples(st.integers(2, 5), st.integers(2, 5)), elements=st.integers(0, 20)))
def test_of_an_exact_table_it_does_not_care_for_order_or_empty_levels(counts):
    found = cramers_v(table_of(counts))
    assert 0 <= found <= 1 + 1e-12
    assert cramers_v(table_of(counts[::-1].T)) == pytest.approx(found, abs=1e-12)
    assert cramers_v(table_of(np.pad(counts, ((0, 1), (1, 0))))) == pytest.approx(found, abs=1e-12)


def test_it_is_one_for_full_association_and_zero_for_independence():
    assert cramers_v(table_of(np.diag([3, 5, 9]))) == pytest.approx(1)
    assert cramers_v(table_of(np.outer([1, 2, 3], [4, 5]))) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("counts", [[[0, 0], [0, 0]], [[3, 4], [0, 0]], [[3, 0], [7, 0]]])
def test_it_is_zero_where_nothing_varies_together(counts):
    assert cramers_v(table_of(counts)) == 0
    assert chi_squared(table_of(counts)) == 0


@given(arrays(np.int64, st.tuples(st.integers(2, 5), st.integers(2, 5)), elements=st.integers(1, 300)))
def test_without_noise_the_released_table_has_the_value_of_the_exact_one(counts):
    table = table_of(counts)
    found = cramers_v(table, noise=SMALL)
    expected = scipy.stats.contingency.association(counts, method="cramer")
    assert found.naive == pytest.approx(expected, abs=1e-6)
    assert found.estimate == pytest.approx(expected, abs=1e-3)
    assert found.lower - 1e-3 <= expected <= found.upper + 1e-3


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(10), DiscreteGaussian.from_sigma(14)], ids=["laplace", "gaussian"]
)
def test_noise_is_taken_out_that_the_naive_value_takes_for_association(noise):
    independent = table_of(np.outer([2, 3, 4, 5], [5, 4, 3, 6, 2]) * 4)
    found = [cramers_v(table, noise=noise) for table in noisy_versions(independent, noise, 60)]
    naive = np.mean([one.naive for one in found])
    assert naive > 0.08
    # The square is as often too low as too high, and its root is cut at zero: half of the estimates are zero.
    assert 0.3 < np.mean([one.estimate == 0 for one in found]) < 0.7
    assert np.mean([one.estimate for one in found]) < naive / 2
    assert np.mean([one.lower == 0 for one in found]) > 0.85


def test_strong_association_stays():
    noise = DiscreteLaplace(10)
    truth = cramers_v(DENSE)
    found = [cramers_v(table, noise=noise) for table in noisy_versions(DENSE, noise, 60)]
    assert np.mean([one.estimate for one in found]) == pytest.approx(truth, abs=0.005)
    assert np.mean([one.lower <= truth <= one.upper for one in found]) > 0.88


def test_the_sampling_of_the_records_makes_the_interval_wider_and_the_estimate_smaller():
    records = cramers_v(DENSE, noise=DiscreteLaplace(5))
    population = cramers_v(DENSE, noise=DiscreteLaplace(5), target="population")
    assert population.estimate < records.estimate
    assert population.upper - population.lower > records.upper - records.lower
    # Without noise: φ² less (r - 1)(c - 1)/n.
    bare = cramers_v(DENSE, noise=SMALL, target="population").estimate
    assert bare**2 == pytest.approx(cramers_v(DENSE) ** 2 - 4 / DENSE.total / 2, abs=1e-6)


@pytest.mark.parametrize("mechanism", ["cells", "residual", "efron-stein", "fourier"])
def test_it_is_told_of_a_release_by_any_linear_mechanism(mechanism):
    domain = tb.Domain({"a": range(4), "b": range(4)})
    counts = np.full((4, 4), 60) + np.diag([300, 200, 100, 200])
    plan = tb.plan(domain, "[a b]", privacy=tb.PureDP(2), mechanism=mechanism, reconstruct="none")
    release = tb.release(tb.Table(domain, counts), plan, sampler=ExactSampler(SeededEntropy(3)))
    found = cramers_v(release["a", "b"])
    assert abs(found.estimate - cramers_v(tb.Table(domain, counts))) < 0.1
    assert 0 < found.lower < found.estimate < found.upper < 1
    assert float(found) == found.estimate
    turned = cramers_v(release["b", "a"])
    assert (turned.lower, turned.upper) == pytest.approx((found.lower, found.upper), rel=1e-6)


def test_levels_that_cannot_be_told_from_empty_ones_are_left_out_and_named():
    table = table_of([[300, 120, 2], [90, 260, -3], [4, -6, 1]])
    found = cramers_v(table, noise=DiscreteLaplace(3))
    assert found.left_out == (("a", "2"), ("b", "2"))
    corner = cramers_v(table_of([[300, 120], [90, 260]]), noise=DiscreteLaplace(3))
    assert (found.lower, found.estimate, found.upper) == pytest.approx(
        (corner.lower, corner.estimate, corner.upper)
    )


@pytest.mark.parametrize("counts", [[[3, 4, 5]], [[-9, 2], [1, -4]], [[0, 0], [0, 0]], [[500, 400], [1, -1]]])
def test_where_nothing_can_be_told_everything_is_possible(counts):
    found = cramers_v(table_of(counts), noise=DiscreteLaplace(10))
    assert (found.estimate, found.lower, found.upper) == (0, 0, 1)


@settings(max_examples=50)
@given(
    counts=arrays(np.int64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.integers(-60, 200)),
    scale=st.sampled_from(["1/4", 3, 30]),
    target=st.sampled_from(["records", "population"]),
)
def test_it_lies_between_zero_and_one_whatever_was_released(counts, scale, target):
    found = cramers_v(table_of(counts), noise=DiscreteLaplace(scale), target=target)
    assert 0 <= found.lower <= found.upper <= 1
    assert 0 <= found.estimate <= 1
    assert 0 <= found.naive <= 1 + 1e-9


def test_tables_that_are_not_two_way_are_refused():
    with pytest.raises(InvalidTable, match="Project it on two"):
        cramers_v(tb.datasets.load("rochdale"))
    with pytest.raises(InvalidTable, match="Project it on two"):
        cramers_v(tb.datasets.load("rochdale"), noise=SMALL)
    with pytest.raises(InvalidTable, match="or its noise"):
        cramers_v(table_of([[1, -1], [2, 3]]))
    with pytest.raises(InvalidTable, match="minimum=0"):
        chi_squared(table_of([[1, -1], [2, 3]]))
    with pytest.raises(InvalidArgument, match="'records'"):
        cramers_v(DENSE, noise=SMALL, target="people")


# Odds ratios.


def test_for_large_counts_it_is_the_delta_method_of_the_logarithm_with_the_noise_in_every_variance():
    counts = np.array([[40_000, 60_000], [30_000, 80_000]])
    noise = DiscreteGaussian.from_sigma(400)
    found = odds_ratio(table_of(counts), noise=noise)
    spread = math.sqrt(np.sum((counts + noise.variance) / counts.astype(float) ** 2))
    middle = math.log(40_000 * 80_000 / (60_000 * 30_000))
    assert found.estimate == pytest.approx(math.exp(middle))
    assert (math.log(found.lower), math.log(found.upper)) == pytest.approx(
        (middle - 1.96 * spread, middle + 1.96 * spread), abs=0.02 * spread
    )


def test_of_the_records_alone_only_the_noise_counts():
    counts = np.array([[4_000, 6_000], [3_000, 8_000]])
    noise = DiscreteGaussian.from_sigma(40)
    found = odds_ratio(table_of(counts), noise=noise, target="records")
    spread = math.sqrt(np.sum(noise.variance / counts.astype(float) ** 2))
    assert math.log(found.upper / found.lower) / 2 == pytest.approx(1.96 * spread, rel=0.02)


def test_what_cells_share_is_taken_into_account():
    # All four errors are one: the cells of a diagonal move together, and so does their product.
    table = table_of([[400, 300], [300, 400]])
    alike = odds_ratio(table, noise=CorrelatedNoise(np.full((4, 4), 900.0), (2, 2)), target="records")
    apart = odds_ratio(table, noise=CorrelatedNoise(900.0 * np.eye(4), (2, 2)), target="records")
    assert alike.upper - alike.lower < 0.5 * (apart.upper - apart.lower)


@given(arrays(np.int64, (2, 2), elements=st.integers(-20, 300)), st.sampled_from(["1/4", 3, 30]))
def test_it_does_not_care_for_order_and_never_is_no_number(counts, scale):
    noise = DiscreteLaplace(scale)
    found = odds_ratio(table_of(counts), noise=noise)
    assert 0 <= found.lower <= found.estimate <= found.upper
    assert not math.isnan(found.upper)
    turned = odds_ratio(table_of(counts.T), noise=noise)
    assert (turned.lower, turned.upper) == pytest.approx((found.lower, found.upper), rel=1e-6)
    if found.lower < found.upper and np.all(counts > 0):
        swapped = odds_ratio(table_of(counts[::-1]), noise=noise)
        inverse = [math.inf if end == 0 else 1 / end for end in (found.upper, found.lower)]
        assert (swapped.lower, swapped.upper) == pytest.approx(tuple(inverse), rel=1e-5, abs=1e-9)


def test_a_table_of_noise_leaves_it_open():
    found = odds_ratio(table_of([[3, -2], [1, 4]]), noise=DiscreteLaplace(10))
    assert (found.lower, found.upper) == (0, math.inf)


def test_two_levels_of_each_attribute_may_be_chosen():
    corner = odds_ratio(table_of([[300, 80], [110, 250]]), noise=DiscreteLaplace(3))
    assert odds_ratio(DENSE, rows=(0, 2), columns=("0", 2), noise=DiscreteLaplace(3)) == corner
    with pytest.raises(InvalidTable, match="Choose two"):
        odds_ratio(DENSE, noise=DiscreteLaplace(3))
    with pytest.raises(InvalidTable, match="Choose two"):
        odds_ratio(DENSE, rows=(0, 0), columns=(0, 1), noise=DiscreteLaplace(3))
    with pytest.raises(InvalidDomain, match="no level"):
        odds_ratio(DENSE, rows=(0, 9), columns=(0, 1), noise=DiscreteLaplace(3))


# Rates.


def test_a_rate_is_the_interval_of_a_ratio_in_the_population():
    noise = DiscreteLaplace(3)
    found = rate(DENSE, {"a": 0, "b": 1}, {"a": 0}, noise=noise)
    assert found == interval(DENSE, {"a": 0, "b": 1}, per={"a": 0}, noise=noise, target="population")
    whole = rate(DENSE, {"a": 0}, noise=noise)
    assert whole.estimate == pytest.approx(500 / 1500)


def test_association_is_that_of_the_unbiased_face_and_only_the_naive_value_that_of_the_published_one():
    plan = tb.plan(DENSE.domain, "[a b]", privacy=tb.PureDP(1), mechanism="cells", reconstruct="none")
    linear = tb.release(DENSE, plan, sampler=ExactSampler(SeededEntropy(3)))["a", "b"]
    flat = tb.Table(DENSE.domain, np.full(DENSE.shape, 10))
    official = tb.ReleasedTable(flat, StatedErrors(np.ones(DENSE.shape), np.ones(DENSE.shape)), linear)
    for ask in (lambda t: odds_ratio(t, (0, 1), (0, 1)), lambda t: rate(t, {"a": 0})):
        assert ask(official) == ask(linear)
    assert cramers_v(official).interval == cramers_v(linear).interval
    assert cramers_v(official).naive == 0 < cramers_v(linear).naive
