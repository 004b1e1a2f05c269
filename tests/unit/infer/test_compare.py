"""Numbers of released tables compared: differences, ratios, percentages, two releases, and whole tables."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.errors import InvalidArgument, InvalidTable
from tabulary.infer import compare, difference, interval, ratio
from tabulary.infer.results import holm
from tabulary.noise import DiscreteGaussian, DiscreteLaplace, ExactSampler
from tabulary.planning import StatedErrors
from tests.entropy import SeededEntropy

DOMAIN = tb.Domain({"sex": ["F", "M"], "score": ["Low", "Medium", "High"]})
BEFORE = tb.Table(DOMAIN, [[300, 120, 60], [280, 150, 90]])
AFTER = tb.Table(DOMAIN, [[310, 180, 110], [275, 149, 95]])
NOISE = DiscreteLaplace(4)
both_scales = pytest.mark.parametrize("ask", [difference, ratio])


def released(table, mechanism="residual", seed=1):
    plan = tb.plan(DOMAIN, "[sex score]", privacy=tb.PureDP(1), mechanism=mechanism, reconstruct="none")
    return tb.release(table, plan, sampler=ExactSampler(SeededEntropy(seed)))["sex", "score"]


def test_categories_are_added_up_wherever_cells_are_selected():
    chosen = {"sex": "F", "score": ["Medium", "High"]}
    found = difference(AFTER, chosen, other=BEFORE, noise=NOISE, other_noise=NOISE)
    assert (found.first.estimate, found.second.estimate, found.estimate) == (290, 180, 110)
    assert found.first == interval(AFTER, chosen, noise=NOISE)
    assert ratio(AFTER, chosen, other=BEFORE, noise=NOISE, other_noise=NOISE).estimate == 290 / 180
    rates = difference(AFTER, chosen, other=BEFORE, per=["sex"], noise=NOISE, other_noise=NOISE)
    assert rates.estimate == pytest.approx(290 / 600 - 180 / 480)


def test_the_noise_of_two_releases_adds_up_and_that_of_one_table_is_shared():
    one, two = released(AFTER, seed=1), released(BEFORE, seed=2)
    chosen = {"sex": "F"}
    weights = np.array([[1.0, 1, 1], [0, 0, 0]])
    apart = difference(one, chosen, other=two)
    assert apart.standard_error**2 == pytest.approx(
        one.covariance.variance_of(weights) + two.covariance.variance_of(weights)
    )
    within = difference(one, {"sex": "F"}, {"sex": "M"})
    assert within.standard_error**2 == pytest.approx(one.covariance.variance_of([[1, 1, 1], [-1, -1, -1]]))


def test_two_shares_of_one_group_are_one_ratio():
    found = difference(AFTER, {"score": "Low"}, {"score": "High"}, per=[], noise=NOISE)
    weights = np.array([[1.0, 0, -1], [1, 0, -1]])
    assert found.interval == interval(AFTER, weights, per={}, noise=NOISE)


@both_scales
def test_the_published_face_does_not_enter(ask):
    one, two = released(AFTER, seed=1), released(BEFORE, seed=2)
    flat = tb.Table(DOMAIN, np.full((2, 3), 7))
    shaped = StatedErrors(np.ones((2, 3)), np.ones((2, 3)))
    official = tb.ReleasedTable(flat, shaped, one), tb.ReleasedTable(flat, shaped, two)
    asked = {"first": {"sex": "F"}, "per": []}
    assert ask(official[0], other=official[1], **asked) == ask(one, other=two, **asked)


@settings(max_examples=60)
@given(
    st.lists(st.integers(-20, 400), min_size=4, max_size=4),
    st.sampled_from([None, ["sex"], []]),
    st.sampled_from(["records", "population"]),
    st.sampled_from([DiscreteLaplace(5), DiscreteGaussian(100)]),
)
def test_verdict_p_value_and_both_scales_agree(counts, per, target, noise):
    domain = tb.Domain({"sex": ["F", "M"], "ill": ["yes", "no"]})
    table = tb.Table(domain, np.reshape(counts, (2, 2)))
    asked = {"first": {"sex": "F", "ill": "yes"}, "second": {"sex": "M", "ill": "yes"}, "per": per}
    gap, times = (ask(table, **asked, target=target, noise=noise) for ask in (difference, ratio))
    assert gap.p_value == times.p_value
    for found in (gap, times):
        assert found.interval.lower <= found.estimate <= found.interval.upper
        if found.p_value < 0.045:
            assert found.verdict == found.direction
        if found.p_value > 0.055:
            assert found.verdict == "not clear"
    if per is not None:
        assert -1 <= gap.interval.lower <= gap.interval.upper <= 1
    assert times.interval.lower >= 0


def test_a_difference_of_exact_percentages_is_newcombes():
    """His method 10 without continuity correction, for 56 of 70 and 48 of 80: 0.0524 to 0.3339."""
    table = tb.Table(tb.Domain({"a": ["x", "y"], "b": ["in", "out"]}), [[56, 14], [48, 32]])
    found = difference(
        table,
        {"a": "x", "b": "in"},
        {"a": "y", "b": "in"},
        per=["a"],
        target="population",
        noise=DiscreteGaussian.from_sigma(1e-3),
    )
    assert (found.interval.lower, found.interval.upper) == pytest.approx((0.0524, 0.3339), abs=2e-4)


def test_a_ratio_whose_denominator_may_be_zero_has_no_upper_end():
    table = tb.Table(tb.Domain({"a": ["x", "y"]}), [90, 3])
    found = ratio(table, {"a": "x"}, {"a": "y"}, noise=NOISE)
    assert math.isinf(found.interval.upper)
    assert found.verdict == "clearly more"
    domain = tb.Domain({"sex": ["F", "M"], "ill": ["yes", "no"]})
    rates = ratio(
        tb.Table(domain, [[40, 60], [2, 200]]),
        {"sex": "F", "ill": "yes"},
        {"sex": "M", "ill": "yes"},
        per=["sex"],
        noise=NOISE,
    )
    assert math.isinf(rates.interval.upper)
    assert rates.verdict == "clearly more"


def test_every_cell_of_a_table_is_compared_with_the_same_cell():
    found = compare(AFTER, BEFORE, noise=NOISE, other_noise=NOISE)
    for number, (sex, score) in enumerate((a, b) for a in ["F", "M"] for b in ["Low", "Medium", "High"]):
        one = difference(AFTER, {"sex": sex, "score": score}, other=BEFORE, noise=NOISE, other_noise=NOISE)
        assert found.compared[number] == one
    assert list(found.adjusted_p_values) == holm([each.p_value for each in found.compared])
    frame = found.to_pandas()
    assert frame["difference"].tolist() == [10, 60, 50, -5, -1, 5]
    assert frame["verdict"].tolist() == [
        "not clear",
        "clearly more",
        "clearly more",
        "not clear",
        "not clear",
        "not clear",
    ]


def test_many_cells_need_more_than_one_cell_by_itself():
    domain = tb.Domain({"a": range(40)})
    before = tb.Table(domain, np.full(40, 1000))
    after = tb.Table(domain, np.full(40, 1000) + 20 * (np.arange(40) == 7))
    found = compare(after, before, noise=NOISE, other_noise=NOISE)
    assert found.compared[7].verdict == "clearly more"
    assert set(found.verdicts) == {"not clear"}


def test_levels_in_where_are_added_up_and_leave_the_result():
    found = compare(
        AFTER,
        BEFORE,
        where={"score": ["Medium", "High"]},
        per=["sex"],
        noise=NOISE,
        other_noise=NOISE,
        scale="ratio",
    )
    assert found.domain.attributes == ("sex",)
    assert [each.estimate for each in found.compared] == pytest.approx(
        [(290 / 600) / (180 / 480), (244 / 519) / (240 / 520)]
    )
    everything = compare(AFTER, BEFORE, where={"sex": "F", "score": "High"}, noise=NOISE, other_noise=NOISE)
    assert everything.domain.attributes == ()
    assert everything.compared[0].estimate == 50


def test_two_groups_of_one_table_share_its_noise():
    table = released(AFTER)
    found = compare(table, where={"sex": "F"}, other_where={"sex": "M"})
    assert found.compared[0] == difference(table, {"sex": "F", "score": "Low"}, {"sex": "M", "score": "Low"})


def test_tables_in_another_order_are_the_same_tables():
    turned = tb.Table(
        tb.Domain({"score": ["High", "Medium", "Low"], "sex": ["M", "F"]}), BEFORE.counts.T[::-1, ::-1]
    )
    found = compare(AFTER, turned, noise=NOISE, other_noise=NOISE)
    assert [each.estimate for each in found.compared] == [10, 60, 50, -5, -1, 5]


def test_impossible_cells_are_found_by_their_levels_and_not_by_their_places():
    one = tb.Domain({"job": ["n", "p", "q"]}, structural_zeros=[{"job": "n"}])
    two = tb.Domain({"job": ["p", "n", "q"]}, structural_zeros=[{"job": "p"}])
    found = compare(tb.Table(one, [0, 30, 9]), tb.Table(two, [0, 50, 9]), noise=NOISE, other_noise=NOISE)
    assert [each and each.estimate for each in found.compared] == [-50, 30, 0]


def test_what_is_impossible_in_both_is_not_compared():
    holed = tb.Domain({"age": ["0", "1"], "job": ["n", "p"]}, structural_zeros=[{"age": "0", "job": "p"}])
    one, two = tb.Table(holed, [[5, 0], [90, 40]]), tb.Table(holed, [[7, 0], [30, 40]])
    found = compare(one, two, noise=NOISE, other_noise=NOISE)
    assert found.compared[1] is None
    assert found.verdicts == ("not clear", None, "clearly more", "not clear")
    assert math.isnan(found.to_pandas()["difference"][1])


def test_a_percentage_of_an_impossible_group_is_not_compared():
    holed = tb.Domain({"age": ["0", "1"], "job": ["n", "p"]}, structural_zeros=[{"age": "0", "job": "p"}])
    table = tb.Table(holed, [[50, 0], [90, 40]])
    found = compare(table, where={"job": "p"}, other_where={"job": "n"}, per=["age", "job"], noise=NOISE)
    assert found.compared[0] is None
    assert found.compared[1].estimate == 0


@both_scales
def test_the_standard_error_of_a_percentage_of_perhaps_nobody_is_infinite(ask):
    domain = tb.Domain({"sex": ["F", "M"], "ill": ["yes", "no"]})
    table = tb.Table(domain, [[3, -5], [90, 380]])
    asked = {"first": {"sex": "F", "ill": "yes"}, "second": {"sex": "M", "ill": "yes"}}
    assert math.isinf(ask(table, **asked, per=["sex"], noise=NOISE).standard_error)
    assert math.isfinite(ask(table, **asked, per=[], noise=NOISE).standard_error)


@pytest.mark.parametrize("mechanism", ["cells", "residual", "efron-stein"])
@pytest.mark.parametrize("epsilon", [8, 20, 50])
def test_noise_that_is_nearly_always_zero_leaves_nearly_exact_numbers(mechanism, epsilon):
    domain = tb.Domain({"sex": ["F", "M"], "ill": ["yes", "no"]})
    plan = tb.plan(domain, "[sex ill]", privacy=tb.PureDP(epsilon), mechanism=mechanism, reconstruct="none")
    counts = tb.Table(domain, [[120, 400], [90, 380]])
    table = tb.release(counts, plan, sampler=ExactSampler(SeededEntropy(1)))["sex", "ill"]
    asked = {"first": {"sex": "F", "ill": "yes"}, "second": {"sex": "M", "ill": "yes"}}
    for per in (None, ["sex"], []):
        gap, times = (ask(table, **asked, per=per) for ask in (difference, ratio))
        assert gap.p_value == times.p_value < 1e-3
        assert gap.verdict == times.verdict == "clearly more"
    lower, upper = table.interval()
    assert np.all(upper - lower < 5)


def test_attributes_of_percentages_may_be_one_name():
    asked = {"first": {"sex": "F", "score": "Low"}, "second": {"sex": "M", "score": "Low"}, "noise": NOISE}
    assert difference(AFTER, per="sex", **asked) == difference(AFTER, per=["sex"], **asked)


@both_scales
def test_a_table_is_not_another_release_of_itself(ask):
    table = released(AFTER)
    official = tb.ReleasedTable(AFTER, StatedErrors(np.ones((2, 3)), np.ones((2, 3))), table)
    for other in (table, official):
        with pytest.raises(InvalidArgument, match="share all of their noise"):
            ask(table, {"sex": "F"}, other=other)


@pytest.mark.parametrize(
    ("asked", "error", "reason"),
    [
        ({}, InvalidArgument, "the same people"),
        (
            {"where": {"sex": "F"}, "other_where": {"score": "Low"}},
            InvalidArgument,
            "levels of 'sex' and the other of 'score'",
        ),
        ({"other": tb.Table(tb.Domain({"sex": "FM"}), [1, 2])}, InvalidTable, "the same attributes"),
        (
            {
                "other": tb.Table(
                    tb.Domain({"sex": "FX", "score": ["Low", "Medium", "High"]}), [[1, 2, 3]] * 2
                )
            },
            InvalidTable,
            "the levels of 'sex' differ",
        ),
        ({"where": {"sex": "F"}, "other_where": {"sex": "M"}, "scale": "odds"}, InvalidArgument, "'ratio'"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(asked, error, reason):
    with pytest.raises(error, match=reason):
        compare(AFTER, noise=NOISE, other_noise=NOISE, **asked)


@both_scales
def test_one_number_alone_cannot_be_compared(ask):
    with pytest.raises(InvalidArgument, match="two numbers"):
        ask(AFTER, {"sex": "F"}, noise=NOISE)
    with pytest.raises(InvalidArgument, match="no level of 'sex'"):
        ask(AFTER, {"score": "Low"}, {"score": "High"}, per=["sex"], noise=NOISE)
