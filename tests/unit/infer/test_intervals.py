"""Intervals of cells, sums, differences and ratios of a released table."""

import math
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidDomain, InvalidNoise, InvalidTable
from tabulary.infer.intervals import Interval, interval, intervals
from tabulary.infer.poisson import poisson_interval
from tabulary.infer.ratios import PairLaw, ratio_interval
from tabulary.infer.sums import SumLaw, shared_noise
from tabulary.infer.table_noise import CorrelatedNoise
from tabulary.noise import DiscreteGaussian, DiscreteLaplace
from tabulary.planning import CellErrors, Measurement, StatedErrors
from tabulary.planning.covariance import CellCovariance, CountNoise
from tests.unit.infer.brute_force import mass_within

DOMAIN = tb.Domain({"sex": ["F", "M"], "age": ["young", "old", "oldest"]})
TABLE = tb.Table(DOMAIN, [[120, 40, 7], [90, 61, -3]])
LAPLACE = DiscreteLaplace(3)


def released(mechanism, privacy=None):
    """A release of one table by a linear mechanism, with some whole numbers in its measurement."""
    domain = tb.Domain({"a": range(4), "b": range(2)})
    plan = tb.plan(domain, "[a b]", privacy=privacy or tb.PureDP(1), mechanism=mechanism, reconstruct="none")
    values = tuple(np.full(shape, 40, dtype=np.int64) for shape in plan.shapes())
    return tb.Release(Measurement(plan, values))["a", "b"]


def law_of(noise, terms):
    return SumLaw.of(CellCovariance(CountNoise(noise, np.array([terms]))), [1])


# Sums and differences of the records.


@pytest.mark.parametrize(
    ("of", "cells"),
    [({"sex": "F", "age": "old"}, 1), ({"sex": "F"}, 3), ({"age": ["old", "oldest"]}, 4), ({}, 6)],
)
def test_a_sum_has_the_exact_half_width_of_the_sum_of_its_draws(of, cells):
    found = interval(TABLE, of, noise=LAPLACE)
    h = LAPLACE.half_width(0.95, cells)
    assert (found.lower, found.upper) == (found.estimate - h, found.estimate + h)
    assert mass_within(LAPLACE, cells, h) >= 0.95 > mass_within(LAPLACE, cells, h - 1)


def test_a_difference_is_not_cut_at_zero_and_has_the_draws_of_both_sides():
    found = interval(TABLE, {"sex": "M", "age": "oldest"}, minus={"sex": "F", "age": "oldest"}, noise=LAPLACE)
    h = LAPLACE.half_width(0.95, 2)
    assert (found.estimate, found.lower, found.upper) == (-10, -10 - h, -10 + h)


def test_cells_on_both_sides_of_a_difference_cancel():
    found = interval(TABLE, {"sex": "F"}, minus={"sex": "F", "age": ["young", "old"]}, noise=LAPLACE)
    assert found == interval(TABLE, [[0, 0, 1], [0, 0, 0]], noise=LAPLACE)


def test_no_number_of_records_is_below_zero():
    found = interval(TABLE, {"sex": "M", "age": "oldest"}, noise=LAPLACE)
    assert (found.estimate, found.lower, found.upper) == (-3, 0, -3 + LAPLACE.half_width(0.95))
    far = interval(tb.Table(DOMAIN, [[-90, 0, 0], [0, 0, 0]]), {"sex": "F", "age": "young"}, noise=LAPLACE)
    assert (far.lower, far.upper) == (0, 0)


def test_weights_are_any_numbers():
    weights = np.array([[0.5, 0.25, 0], [0, 0, -1]])
    found = interval(TABLE, weights, noise=DiscreteGaussian.from_sigma(20))
    assert found.estimate == pytest.approx(0.5 * 120 + 0.25 * 40 + 3)
    deviation = 20 * math.sqrt(np.sum(weights**2))
    assert (found.upper - found.lower) / 2 == pytest.approx(1.96 * deviation, rel=5e-3)


@pytest.mark.parametrize("mechanism", ["cells", "margins", "residual", "efron-stein", "fourier"])
@pytest.mark.parametrize("privacy", [tb.PureDP(1), tb.ZCDP("1/8"), tb.ApproxDP(1, "1e-6")], ids=str)
def test_every_linear_release_has_intervals_as_wide_as_its_covariance_says(mechanism, privacy):
    table = released(mechanism, privacy=privacy)
    weights = np.zeros((4, 2))
    weights[1] = 1
    found = interval(table, {"a": 1})
    deviation = math.sqrt(weights.reshape(-1) @ table.covariance.dense() @ weights.reshape(-1))
    assert found.estimate == pytest.approx(table.counts[1].sum())
    # A normal law, Laplace's and all between them, but for whole numbers.
    assert 1.9 * deviation - 1 <= found.upper - found.estimate <= 2.2 * deviation + 1


def test_only_a_covariance_is_enough():
    covariance = 25 * np.eye(6) + 9
    found = interval(TABLE, {}, noise=CorrelatedNoise(covariance, (2, 3)))
    assert found.upper - found.estimate == pytest.approx(1.959964 * math.sqrt(covariance.sum()), rel=1e-6)


def test_a_cell_without_noise_is_exact():
    table = tb.ReleasedTable(TABLE, CellErrors(LAPLACE, np.array([[0, 1, 1], [1, 1, 1]])))
    found = interval(table, {"sex": "F", "age": "young"})
    assert (found.lower, found.upper) == (120, 120)


@given(st.integers(1, 6), st.sampled_from([0.8, 0.95, 0.99]), st.sampled_from(["1/2", 3, 40]))
def test_the_tails_of_a_sum_are_those_of_its_draws(terms, confidence, scale):
    noise = DiscreteLaplace(scale)
    law = law_of(noise, terms)
    assert law.half_width(confidence) == noise.half_width(confidence, terms)
    assert law.kurtosis == pytest.approx(law_of(noise, 1).kurtosis / terms)


def test_one_cell_of_what_cannot_be_added_up_has_an_interval_and_a_sum_has_none():
    simulated = tb.ReleasedTable(TABLE, StatedErrors(np.full((2, 3), 4.0), np.full((2, 3), 9.0)))
    found = interval(simulated, {"sex": "F", "age": "young"})
    assert (found.lower, found.upper) == (111, 129)
    assert intervals(simulated)["F", "young"] == found
    with pytest.raises(InvalidNoise, match="no unbiased face"):
        interval(simulated, {"sex": "F"})


def test_intervals_are_those_of_the_unbiased_face_whatever_was_published():
    linear = tb.ReleasedTable(TABLE, CellErrors(DiscreteLaplace(3), np.ones((2, 3), dtype=np.int64)))
    shrunk = StatedErrors(np.full((2, 3), 1.0), np.full((2, 3), 2.0))
    official = tb.ReleasedTable(tb.Table(DOMAIN, np.zeros((2, 3), dtype=np.int64)), shrunk, linear)
    for question in (
        {"of": {"sex": "F"}},
        {"of": {"sex": "F", "age": "young"}},
        {"of": {"sex": "F"}, "per": {}},
    ):
        assert interval(official, **question) == interval(linear, **question)
    assert intervals(official)["F", "young"] == intervals(linear)["F", "young"]


def test_a_perturbation_that_adds_the_same_law_to_every_count_can_be_added_up():
    table = tb.Table(DOMAIN, [[120, 40, 7], [90, 61, 3]])
    law = tb.perturb.Laplace(1.5, bound=7)
    published = law.apply(table)
    assert interval(published, {"sex": "F"}).upper - interval(published, {"sex": "F"}).estimate == (
        law.noise.half_width(0.95, 3)
    )
    cut = law.apply(table, minimum=0)
    assert interval(cut, {"sex": "F", "age": "old"}).estimate == cut["F", "old"]
    with pytest.raises(InvalidNoise, match="the intervals of its single cells"):
        interval(cut, {"sex": "F"})


# What the records are a sample of.


@pytest.mark.parametrize("count", [0, 1, 4, 20, 300])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_without_noise_the_mean_of_a_count_has_the_classical_exact_interval(count, confidence):
    tail = (1 - confidence) / 2
    lower = scipy.stats.chi2.ppf(tail, 2 * count) / 2 if count else 0.0
    upper = scipy.stats.chi2.ppf(1 - tail, 2 * count + 2) / 2
    found = poisson_interval(count, SumLaw(0.0, ()), confidence)
    assert found == pytest.approx((lower, upper), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("x", [-4, 0, 3, 25])
def test_with_noise_both_ends_leave_exactly_a_tail(x):
    law = law_of(LAPLACE, 1)
    lower, upper = poisson_interval(x, law, 0.95)
    counts = np.arange(400)

    def at_most(value, mean):
        return float(scipy.stats.poisson.pmf(counts, mean) @ LAPLACE.cdf(value - counts))

    assert at_most(x, upper) == pytest.approx(0.025, abs=1e-7)
    if lower > 0:
        assert 1 - at_most(x - 1, lower) == pytest.approx(0.025, abs=1e-7)
    else:
        assert 1 - at_most(x - 1, 0) >= 0.025


@pytest.mark.parametrize("x", [-10, 0, 30, 400])
def test_where_the_noise_is_shared_the_ends_are_near_the_exact_ones(x):
    # Many equal draws are exact as whole numbers, and nearly so by their first moments.
    noise = DiscreteLaplace(5)
    law = law_of(noise, 8)
    near = SumLaw(law.variance, law.draws)
    object.__setattr__(near, "single", None)
    exact, smooth = poisson_interval(x, law, 0.95), poisson_interval(x, near, 0.95)
    assert smooth == pytest.approx(exact, abs=0.05 * law.deviation)


def test_a_value_far_below_zero_leaves_nobody():
    assert poisson_interval(-200, law_of(LAPLACE, 1), 0.95) == (0, 0)


def test_very_large_counts_take_no_longer():
    lower, upper = poisson_interval(10**9, law_of(LAPLACE, 1), 0.95)
    assert (upper - lower) / 2 == pytest.approx(1.96 * math.sqrt(10**9), rel=1e-3)


@given(st.integers(0, 60), st.integers(0, 60))
def test_without_noise_a_share_has_the_interval_of_wilson(inside, outside):
    if inside + outside == 0:
        return
    table = tb.Table(tb.Domain({"a": "xy"}), [inside, outside])
    exact = CorrelatedNoise(np.zeros((2, 2)), (2,))
    found = interval(table, {"a": "x"}, per={}, noise=exact, target="population")
    wilson = scipy.stats.binomtest(inside, inside + outside).proportion_ci(0.95, "wilson")
    assert (found.lower, found.upper) == pytest.approx((wilson.low, wilson.high), abs=1e-9)


SELECTIONS = [
    {"of": {"sex": "F"}},
    {"of": {"sex": "F"}, "minus": {"sex": "M"}},
    {"of": {"sex": "F", "age": "old"}, "per": {"sex": "F"}},
    {"of": {"sex": "F"}, "per": {"sex": "M"}},
    {"of": {"sex": "F"}, "per": {"age": "young"}},
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_the_population_is_less_certain_than_the_records_and_noise_makes_both_worse(selection):
    def width(**options):
        found = interval(TABLE, **selection, **options)
        return found.upper - found.lower

    for noise in (LAPLACE, DiscreteLaplace(10)):
        assert width(noise=noise, target="population") > width(noise=noise)
    assert width(noise=DiscreteLaplace(10)) > width(noise=LAPLACE)
    assert width(noise=LAPLACE, confidence=0.99) > width(noise=LAPLACE)


# Ratios.


def test_both_ends_of_a_ratio_are_just_not_contradicted():
    noise = DiscreteGaussian.from_sigma(5)
    found = interval(TABLE, {"sex": "F", "age": "old"}, per={"sex": "F"}, noise=noise)
    for end in (found.lower, found.upper):
        # x_a - ρ x_b = (1 - ρ) cell - ρ (the two others)
        deviation = math.sqrt(noise.variance * ((1 - end) ** 2 + 2 * end**2))
        assert abs(40 - end * 167) == pytest.approx(1.959964 * deviation, rel=1e-6)
    assert found.estimate == pytest.approx(40 / 167)


def test_a_ratio_to_what_may_be_nothing_is_open_above():
    table = tb.Table(DOMAIN, [[120, 40, 7], [1, -2, 3]])
    found = interval(table, {"sex": "F"}, per={"sex": "M"}, noise=LAPLACE)
    assert found.upper == math.inf
    assert 0 < found.lower < 120
    assert "∞" in str(found)


@settings(max_examples=60)
@given(
    counts=arrays(np.int64, (2, 3), elements=st.integers(-40, 400)),
    selection=st.sampled_from(SELECTIONS),
    target=st.sampled_from(["records", "population"]),
    scale=st.sampled_from(["1/4", 3, 60]),
)
def test_no_table_however_odd_gives_an_interval_that_is_no_interval(counts, selection, target, scale):
    found = interval(tb.Table(DOMAIN, counts), **selection, noise=DiscreteLaplace(scale), target=target)
    assert found.lower <= found.upper
    assert math.isfinite(found.estimate)
    if "per" in selection:
        assert 0 <= found.lower <= found.estimate <= found.upper
        part = all(selection["of"].get(a) == level for a, level in selection["per"].items())
        assert not part or found.upper <= 1


@given(
    top=st.floats(-100, 100),
    bottom=st.floats(-100, 100),
    variances=st.tuples(st.floats(0.1, 50), st.floats(0.1, 50)),
)
def test_the_set_of_a_ratio_is_where_its_parabola_says(top, bottom, variances):
    law = PairLaw((variances[0], 0.0, variances[1]))
    estimate, lower, upper = ratio_interval(top, bottom, law, 0.95, bounds=(0.0, 1.0))
    z = 1.959963984540054
    grid = np.linspace(0, 1, 2_001)
    inside = grid[(top - grid * bottom) ** 2 <= z**2 * (variances[0] + grid**2 * variances[1])]
    assert 0 <= lower <= estimate <= upper <= 1
    if inside.size:
        assert lower <= inside[0] + 1e-9
        assert upper >= inside[-1] - 1e-9
        assert lower >= inside[0] - 0.0006
        assert upper <= inside[-1] + 0.0006


def test_ratios_of_weights_of_any_sign_may_be_negative():
    found = interval(TABLE, [[1, 0, 0], [-1, 0, 0]], per={"sex": "M"}, noise=LAPLACE)
    assert found.lower < 30 / 148 < found.upper
    turned = interval(TABLE, [[-1, 0, 0], [1, 0, 0]], per={"sex": "M"}, noise=LAPLACE)
    assert (turned.lower, turned.upper) == pytest.approx((-found.upper, -found.lower))


# Tables of intervals.


@pytest.mark.parametrize("target", ["records", "population"])
def test_a_table_of_intervals_holds_that_of_each_sum(target):
    found = intervals(TABLE, ["age"], noise=LAPLACE, target=target)
    for age in DOMAIN.levels_of("age"):
        assert found[age] == interval(TABLE, {"age": age}, noise=LAPLACE, target=target)


def test_shares_are_told_within_each_cell_of_the_margin_that_is_named():
    found = intervals(TABLE, per=["sex"], noise=LAPLACE)
    for sex, age in product(*DOMAIN.levels):
        assert found[sex, age] == interval(TABLE, {"sex": sex, "age": age}, per={"sex": sex}, noise=LAPLACE)
    whole = intervals(TABLE, ["sex"], per=[], noise=LAPLACE)
    assert whole["F"] == interval(TABLE, {"sex": "F"}, per={}, noise=LAPLACE)


def test_the_cells_of_a_release_have_the_intervals_that_it_publishes_cut_at_zero():
    table = released("efron-stein")
    found = intervals(table)
    lower, upper = table.interval()
    assert found.lower == pytest.approx(np.maximum(lower, 0))
    assert found.upper == pytest.approx(np.maximum(upper, 0))


def test_a_table_of_intervals_is_a_frame_with_a_row_for_each_cell():
    frame = intervals(TABLE, ["sex"], noise=LAPLACE).to_pandas()
    assert list(frame.columns) == ["sex", "estimate", "lower", "upper"]
    assert frame["estimate"].tolist() == [167, 148]


def test_impossible_cells_are_known_to_be_empty():
    domain = tb.Domain(
        {"age": ["child", "adult"], "job": ["none", "paid"]}, [{"age": "child", "job": "paid"}]
    )
    table = tb.Table(domain, [[50, 0], [20, 80]])
    for target in ("records", "population"):
        found = intervals(table, noise=LAPLACE, target=target)["child", "paid"]
        assert (found.estimate, found.lower, found.upper) == (0, 0, 0)
        share = intervals(table, per=["age"], noise=LAPLACE, target=target)
        assert (share["child", "paid"].lower, share["child", "paid"].upper) == (0, 0)
        # Of a child it is known that there is no job: no noise is in its share.
        assert share["child", "none"].upper == 1


# What cannot be.


@pytest.mark.parametrize(
    ("given_options", "error", "words"),
    [
        ({"of": {"sex": "F"}, "target": "everyone"}, InvalidArgument, "'records'"),
        ({"of": {"sex": "F"}, "confidence": 1.0}, InvalidNoise, "strictly between 0 and 1"),
        ({"of": {"sex": "F"}, "minus": {"sex": "M"}, "per": {}}, InvalidArgument, "Leave one out"),
        ({"of": {"sex": "X"}}, InvalidDomain, "no level 'X'"),
        ({"of": {"height": "F"}}, InvalidDomain, "no attribute 'height'"),
        ({"of": [1, 2]}, InvalidTable, "one finite weight for each cell"),
        ({"of": [[1, 2, 3], [1, 2, math.nan]]}, InvalidTable, "one finite weight for each cell"),
        ({"of": {"sex": "F"}, "per": np.zeros((2, 3))}, InvalidTable, "selects no possible cell"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(given_options, error, words):
    with pytest.raises(error, match=words):
        interval(TABLE, **given_options, noise=LAPLACE)


def test_a_table_without_its_noise_is_refused():
    with pytest.raises(InvalidNoise, match="does not state its noise"):
        interval(TABLE, {"sex": "F"})
    with pytest.raises(InvalidNoise, match="states its own noise"):
        shared_noise(released("cells"), LAPLACE)


def test_tables_of_intervals_refuse_what_they_do_not_have():
    with pytest.raises(InvalidArgument, match="Name these attributes in `margin` too"):
        intervals(TABLE, ["age"], per=["sex"], noise=LAPLACE)
    with pytest.raises(InvalidTable, match="has 2 labels"):
        intervals(TABLE, noise=LAPLACE)["F"]


def test_an_interval_is_never_no_number():
    with pytest.raises(InvalidTable, match="not a number"):
        Interval(math.nan, 0.0, 1.0, 0.95, "records")
