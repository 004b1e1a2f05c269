"""Budgets side by side: each is the plan made directly, and the smallest one for a target is the smallest."""

from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabulary as tb
from tabulary.core.budget import amount, given_amounts, scaled, with_amount
from tabulary.errors import InvalidArgument, InvalidPlan, InvalidPrivacy, UnknownMargin
from tabulary.planning.budgets import LEAST_EPSILON, Target, compare_budgets, smallest_budget

PEOPLE = tb.Domain({"sex": ["F", "M"], "age": range(8), "job": range(5), "region": range(10)})
PAIRS = tb.Workload.k_way(PEOPLE, 2)
PROMISES = [tb.PureDP(1), tb.ApproxDP(1, 1e-9), tb.ZCDP("1/8")]
FACTORS = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3)]
OPTIONS = [
    {"reconstruct": "none", "mechanism": "cells"},
    {"reconstruct": "none", "mechanism": "margins"},
    {"reconstruct": "none", "mechanism": "residual"},
    {"reconstruct": "none"},
]
every_promise = pytest.mark.parametrize("privacy", PROMISES, ids=str)
every_option = pytest.mark.parametrize("options", OPTIONS, ids=str)


def planner_of(work=PAIRS, **options):
    return partial(tb.plan, work.domain, work, **options)


@every_promise
@every_option
def test_every_budget_is_the_plan_that_is_made_directly(privacy, options):
    planner = planner_of(**options)
    promises = [scaled(privacy, factor) for factor in FACTORS]
    found = compare_budgets(planner, reversed(promises))
    assert [row.privacy for row in found] == promises
    for row in found:
        made = planner(privacy=row.privacy)
        assert row.plan == made
        assert row.errors == made.expected_error()


@every_promise
@pytest.mark.parametrize("options", [each for each in OPTIONS if "mechanism" in each], ids=str)
def test_more_budget_never_has_more_error_with_one_mechanism(privacy, options):
    found = compare_budgets(planner_of(**options), [scaled(privacy, factor) for factor in FACTORS])
    for margin in PAIRS:
        widths = [row.errors[margin].half_width for row in found]
        assert widths == sorted(widths, reverse=True)


@every_promise
@every_option
@pytest.mark.parametrize("target", ["±30", "2% of cells of 5000", "±7.5"])
def test_the_smallest_budget_reaches_its_target_and_a_thousandth_less_misses_it(privacy, options, target):
    planner, wanted = planner_of(**options), Target.parse(target)
    found = smallest_budget(planner, privacy, wanted)
    assert type(found.privacy) is type(privacy)
    assert found.reaches(wanted)
    assert found.plan == planner(privacy=found.privacy)
    less = with_amount(privacy, amount(found.privacy) * Fraction(999, 1000))
    (missed,) = compare_budgets(planner, [less])
    assert not missed.reaches(wanted)


@settings(max_examples=15, deadline=None)
@given(start=st.fractions(min_value="1/1000", max_value=50), width=st.integers(1, 5000))
def test_the_smallest_budget_does_not_depend_on_where_the_search_begins(start, width):
    planner, target = planner_of(mechanism="margins", reconstruct="none"), Target(Fraction(width))
    one = smallest_budget(planner, tb.PureDP(1), target)
    assert smallest_budget(planner, tb.PureDP(start), target).privacy == one.privacy


def test_delta_is_kept_while_epsilon_varies():
    found = smallest_budget(planner_of(reconstruct="none"), tb.ApproxDP(1, 1e-9), Target.parse("±30"))
    assert found.privacy.delta == Fraction(1, 10**9)


def test_a_target_for_one_table_is_decided_by_that_table():
    work = tb.Workload.parse("[sex][age job region]", PEOPLE)
    planner, target = planner_of(work, reconstruct="none", mechanism="cells"), Target.parse("±30")
    every = smallest_budget(planner, tb.PureDP(1), target)
    one = smallest_budget(planner, tb.PureDP(1), target, tables=[("age", "job", "region")])
    assert every.worst.margin == ("sex",)
    assert one.worst.margin == ("age", "job", "region")
    assert amount(one.privacy) < amount(every.privacy)


def test_a_budget_behind_a_change_of_mechanism_is_found():
    """A planner whose tables get worse when it changes its mechanism: the target is reached below the change."""

    def planner(*, privacy):
        mechanism = "margins" if privacy.epsilon < Fraction("0.9") else "cells"
        return tb.plan(PEOPLE, "[sex][age]", privacy=privacy, mechanism=mechanism, reconstruct="none")

    target = Target.parse("±20")
    below = smallest_budget(partial(tb.plan, PEOPLE, "[sex][age]", mechanism="margins"), tb.PureDP(1), target)
    assert amount(below.privacy) < Fraction("0.9")
    assert smallest_budget(planner, tb.PureDP(1), target).privacy == below.privacy


def test_shrunk_tables_are_marked_as_what_a_model_expects():
    modelled = compare_budgets(planner_of(reconstruct="shrink"), [tb.ZCDP("1/100")])
    exact = compare_budgets(planner_of(reconstruct="none"), [tb.ZCDP("1/100")])
    assert [row.modelled for row in (*modelled, *exact)] == [True, False]


def test_a_target_that_any_budget_reaches_takes_the_smallest_that_is_tried():
    found = smallest_budget(planner_of(reconstruct="none"), tb.PureDP(1), Target(Fraction(10**12)))
    assert found.privacy == tb.PureDP(LEAST_EPSILON)


def test_a_target_that_no_budget_reaches_is_refused_with_the_cap():
    wide = tb.Domain({f"x{i}": range(2) for i in range(60)})
    planner = planner_of(tb.Workload.k_way(wide, 1), mechanism="margins", reconstruct="none")
    with pytest.raises(
        InvalidPlan, match=r"no ε up to 100 reaches ±1/3: at ε = 100 the table \[x0\] still has ±"
    ):
        smallest_budget(planner, tb.PureDP(1), Target(Fraction(1, 3)), confidence=0.99)


def test_a_table_that_the_plan_lacks_is_refused_with_those_that_it_has():
    planner = partial(tb.plan, PEOPLE, "[sex age][job]")
    with pytest.raises(UnknownMargin, match=r"no table \[sex\]. Its tables are \[sex age\], \[job\]"):
        compare_budgets(planner, [tb.PureDP(1)], tables=[("sex",)])


def test_no_budget_at_all_is_refused():
    with pytest.raises(InvalidArgument, match="at least one budget"):
        compare_budgets(planner_of(), [])


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("±10", 10, "±10"),
        ("+-10", 10, "±10"),
        ("+/- 10", 10, "±10"),
        ("10", 10, "±10"),
        (" ±2.5 ", Fraction(5, 2), "±2.5"),
        ("±1,000", 1000, "±1,000"),
        ("10% of cells of 1000", 100, "±100 (10 % of a cell of 1,000)"),
        ("10 % of a cell of 1,000", 100, "±100 (10 % of a cell of 1,000)"),
        ("2.5% of 40", 1, "±1 (2.5 % of a cell of 40)"),
    ],
)
def test_a_target_is_read_as_it_is_written(text, width, shown):
    assert Target.parse(text).half_width == width
    assert str(Target.parse(text)) == shown


@pytest.mark.parametrize("text", ["", "ten", "10%", "-10", "10% of", "10% of cells", "±", "1e9", "±10 of 5"])
def test_a_target_that_is_not_understood_is_refused_with_examples(text):
    with pytest.raises(InvalidArgument, match=r"not understood.*±10.*10% of cells of 1000"):
        Target.parse(text)


@pytest.mark.parametrize("text", ["0", "±0", "0% of cells of 1000", "10% of cells of 0"])
def test_a_target_of_zero_is_refused(text):
    with pytest.raises(InvalidArgument, match="above zero"):
        Target.parse(text)


def test_budgets_of_another_kind_or_of_nothing_are_refused():
    with pytest.raises(InvalidArgument, match=r"amounts of ρ are given, but the plan promises ε = 1"):
        given_amounts(tb.PureDP(1), rhos=["1"])
    with pytest.raises(InvalidPrivacy, match="epsilon must be positive, not 0"):
        given_amounts(tb.PureDP(1), epsilons=["1", "0"])


def test_the_long_form_has_one_row_per_budget_and_table():
    found = compare_budgets(planner_of(reconstruct="none"), [tb.ZCDP("1/8"), tb.ZCDP("1/2")])
    frame = found.to_pandas()
    assert list(frame) == ["rho", "margin", "cells", "standard_error", "half_width"]
    assert len(frame) == 2 * len(PAIRS)
    assert frame["rho"].tolist() == [0.125] * len(PAIRS) + [0.5] * len(PAIRS)
    assert frame["half_width"].max() == found.rows[0].worst.half_width
